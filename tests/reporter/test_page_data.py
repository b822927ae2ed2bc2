# SPDX-License-Identifier: GPL-2.0-or-later
"""What the HTML page is told, read back by a decoder of its own and compared with the model: to the byte, at every moment."""

import base64
import io
import json
import re
import struct
import zlib
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest

from jmassif.analysis.oom import NOTE
from jmassif.analysis.processes import join
from jmassif.analysis.blocks import Block, blocks
from jmassif.attribution.names import Names
from jmassif.attribution.views import thread_naming
from jmassif.html import cells as cells_module, page as html
from jmassif.html.cells import OTHER_LIBRARIES, OTHER_THREADS, Columns, TooLarge, shown
from jmassif.html.data import RunData, report_of, run_data
from jmassif.html.first import sentence, statements_data
from jmassif.html.head import Packed, run_head
from jmassif.model.records import LiveBytesByAccount, counted_blocks
from jmassif.model.run import Profile
from jmassif.reader.builder import load
from jmassif.render.job import Statement
from jmassif.render.view import FormatError, View

from tests.reporter.page_tables import page_rows
from tests.reporter.test_summary import ONCE_EACH, count_analyses
from tests.reporter.traces import Trace, random_run, small_training_run

TINY = ((4, 1, 1),)
ANY = ((10**6, 10**6, 10**6),)


def column(run: RunData, name: str) -> List[int]:
    """As docs/contributing.md says: planes, the lowest bytes first."""
    spec = run.head["columns"][name]
    values = [0] * spec["rows"]
    for plane in range(spec["planes"]):
        begin = spec["at"] + plane * spec["rows"]
        for row, byte in enumerate(run.columns[begin : begin + spec["rows"]]):
            values[row] |= byte << (8 * plane)
    if spec["type"] == "signed":
        values = [value // 2 if value % 2 == 0 else -(value + 1) // 2 for value in values]
    return values


def moments(run: RunData) -> List[Dict[int, Tuple[int, int, int]]]:
    """By moment, by cell: live bytes, live blocks, bytes allocated."""
    steps = list(zip(*(column(run, f"row.{name}") for name in ("cell", "bytes", "blocks", "allocated"))))
    found, live, at = [], {}, 0  # type: ignore[var-annotated]
    for n_rows in column(run, "moment.rows"):
        cell = 0
        for step, n_bytes, blocks, beyond in steps[at : at + n_rows]:
            cell += step
            held = live.get(cell, (0, 0, 0))
            live[cell] = (held[0] + n_bytes, held[1] + blocks, held[2] + max(0, n_bytes) + beyond)
        at += n_rows
        found.append({cell: held for cell, held in live.items() if any(held)})
    return found


def compositions(profile: Profile, run: RunData) -> List[LiveBytesByAccount]:
    """The model's, of the moments of the page."""
    ids = {snapshot.id: index for index, snapshot in enumerate(profile.snapshots)}
    reasons = [run.head["reasons"][place] for place in column(run, "moment.reason")]
    found = []
    for id_, reason in zip(column(run, "moment.id"), reasons):
        found.append(profile.composition(ids[id_]) if id_ else profile.peak_composition(reason[len("peak-") :]))
    return found


def by(profile: Profile, composition: LiveBytesByAccount, name_of: Callable[[int], Any]) -> Dict[Any, Tuple[int, int]]:
    sums: Dict[Any, Tuple[int, int]] = {}
    for account, (n_bytes, blocks) in composition.items():
        before = sums.get(name_of(account), (0, 0))
        counted = counted_blocks(profile.accounts[account].kind, blocks)
        sums[name_of(account)] = (before[0] + n_bytes, before[1] + counted)
    return {name: sums_ for name, sums_ in sums.items() if any(sums_)}


def cells_by(run: RunData, held: Dict[int, Tuple[int, int, int]], names: List[Any]) -> Dict[Any, Tuple[int, int]]:
    sums: Dict[Any, Tuple[int, int]] = {}
    for cell, (n_bytes, blocks, _) in held.items():
        before = sums.get(names[cell], (0, 0))
        sums[names[cell]] = (before[0] + n_bytes, before[1] + blocks)
    return {name: sums_ for name, sums_ in sums.items() if any(sums_)}


def dimension(run: RunData, name: str, names: List[Any]) -> List[Any]:
    return [names[place] for place in column(run, f"cell.{name}")]


@pytest.mark.parametrize("seed", range(12))
def test_every_sum_is_exact_at_every_moment(monkeypatch: Any, seed: int) -> None:
    budgets = (ANY, TINY, cells_module._BUDGETS)[seed % 3]
    monkeypatch.setattr(cells_module, "_BUDGETS", budgets)
    profile = random_run(seed).load()
    run = run_data(report_of(profile))
    head, names = run.head, Names(profile)
    owners = dimension(run, "owner", [row["name"] for row in head["owners"]])
    kinds = dimension(run, "kind", [row["name"] for row in head["kinds"]])
    roles = dimension(run, "role", head["roles"])
    libraries = dimension(run, "library", head["libraries"])
    lines = dimension(run, "line", head["lines"]["label"])
    told = moments(run)
    expected = compositions(profile, run)
    assert len(told) == len(profile.snapshots) + len(profile.peaks)
    for held, composition in zip(told, expected):
        accounts = profile.accounts
        assert cells_by(run, held, owners) == by(profile, composition, lambda account: accounts[account].owner)
        assert cells_by(run, held, kinds) == by(profile, composition, lambda account: accounts[account].kind)
        assert cells_by(run, held, roles) == by(profile, composition, lambda account: profile.role(account) or "")
        by_library = by(profile, composition, names.library)
        for name, sums in cells_by(run, held, libraries).items():
            if name != OTHER_LIBRARIES:
                assert by_library[name] == sums
        if budgets is ANY:
            assert cells_by(run, held, libraries) == by_library
            charged = {account: names.charged(account) for account in composition}
            label = {frame: f"{names.file(frame)}:{profile.frame(frame).line}" for frame in charged.values() if frame}
            label[0] = "(no Python line)"
            assert cells_by(run, held, lines) == by(profile, composition, lambda account: label[charged[account]])


@pytest.mark.parametrize("budgets", [TINY, ANY])
def test_sums_by_thread_are_exact_and_those_beyond_the_budget_are_one(monkeypatch: Any, budgets: Any) -> None:
    monkeypatch.setattr(cells_module, "_BUDGETS", budgets)
    trace = Trace(time_unit="ms", memory="unified")
    trace.manifest("option.threads", "yes")
    threads = [trace.thread(number, f"worker {number}") for number in range(1, 9)]
    accounts = [trace.account("heap", "app", ["make (a.c:5)", thread]) for thread in threads]
    for time in range(1, 6):
        trace.snapshot(time, "time", {account: (time * 10**account, time) for account in accounts})
    profile = trace.load()
    run = run_data(report_of(profile))
    told = dimension(run, "thread", run.head["threads"])
    for held, composition in zip(moments(run), compositions(profile, run)):
        wanted = by(profile, composition, thread_naming(profile, True))
        found = cells_by(run, held, told)
        rest = found.pop(OTHER_THREADS, (0, 0))
        assert bool(rest[0]) == (budgets is TINY) and all(wanted[name] == sums for name, sums in found.items())
        assert [sum(column) for column in zip(rest, *found.values())] == [
            sum(column) for column in zip(*wanted.values())
        ]
    assert ("worker 8" in run.head["threads"]) and len(run.head["threads"]) == (3 if budgets is TINY else 8)


@pytest.mark.parametrize("seed", range(6))
def test_a_node_holds_what_the_model_says_with_all_below_it(monkeypatch: Any, seed: int) -> None:
    budgets = (((20, 9, 9),), TINY, ANY)[seed % 3]
    monkeypatch.setattr(cells_module, "_BUDGETS", budgets)
    profile = random_run(seed, n_accounts=200).load()
    run = run_data(report_of(profile))
    parents, frames = column(run, "node.parent"), column(run, "node.frame")
    assert all(parent < node for node, parent in enumerate(parents) if node)
    labels = run.head["frames"]["label"]
    names = Names(profile)

    def path(node: int) -> Tuple[str, ...]:
        return path(parents[node]) + (labels[frames[node]],) if node else ()

    kept = {path(node) for node in range(1, len(parents))}
    nodes = column(run, "cell.node")
    for held, composition in zip(moments(run), compositions(profile, run)):
        told: Dict[Tuple[str, ...], int] = {}
        for cell, (n_bytes, _, _) in held.items():
            stack = path(nodes[cell])
            for depth in range(1, len(stack) + 1):
                told[stack[:depth]] = told.get(stack[:depth], 0) + n_bytes
        expected: Dict[Tuple[str, ...], int] = {}
        for account, (n_bytes, _) in composition.items():
            stack = tuple(names.frame(frame) for frame in profile.stack(profile.accounts[account].node))[::-1]
            for depth in range(1, len(stack) + 1):
                if stack[:depth] in kept:
                    expected[stack[:depth]] = expected.get(stack[:depth], 0) + n_bytes
        assert {k: n for k, n in told.items() if n} == {k: n for k, n in expected.items() if n}


@pytest.mark.parametrize("budgets", [ANY, TINY])
def test_totals_of_lines_are_those_of_their_stacks(monkeypatch: Any, budgets: Any) -> None:
    """Counted here by walking each stack outwards, whatever the page has folded of it."""
    monkeypatch.setattr(cells_module, "_BUDGETS", budgets)
    profile = random_run(3, 25).load()
    names, run = Names(profile), run_data(report_of(random_run(3, 25).load()))
    lines, through = run.head["lines"], column(run, "cell.through")
    n_totals = 0
    for composition, now in zip(compositions(profile, run), moments(run)):
        told: Dict[str, int] = {}
        for cell, (n_bytes, _, _) in now.items():
            for line in lines["through"][through[cell]]:
                told[lines["label"][line]] = told.get(lines["label"][line], 0) + n_bytes
        known: Dict[str, int] = {}
        for account, (n_bytes, _) in composition.items():
            node, passed = profile.accounts[account].node, set()
            while node:
                frame = profile.frame(profile.node_frame[node])
                if frame.type == "p" and "dist-packages" not in frame.file:
                    passed.add(f"{names.file(profile.node_frame[node])}:{frame.line}")
                node = profile.node_parent[node]
            for label in passed:
                known[label] = known.get(label, 0) + n_bytes
        assert {label: n for label, n in told.items() if n and label in known} == {
            label: n for label, n in known.items() if n and label in lines["label"]
        }
        n_totals += len(told)
    assert n_totals


def test_what_was_allocated_is_told_for_snapshots_exactly_and_for_peaks_at_least() -> None:
    profile = small_training_run().load()
    run = run_data(report_of(profile))
    told = [sum(row[2] for row in held.values()) for held in moments(run)]
    assert told[-1] == sum(profile.lifetime().bytes)
    assert told == sorted(told)
    for held in moments(run):
        assert all(allocated >= n_bytes for n_bytes, _, allocated in held.values())


def test_folded_cells_say_how_many_places_they_stand_for(monkeypatch: Any) -> None:
    monkeypatch.setattr(cells_module, "_BUDGETS", TINY)
    profile = random_run(3, n_accounts=200).load()
    run = run_data(report_of(profile))
    n_kept = len(column(run, "node.parent"))
    assert n_kept <= 6
    deeper = sum(1 for account in profile.accounts if account.node) - sum(column(run, "cell.places"))
    assert sum(column(run, "cell.places")) > 0 and deeper >= 0


def test_what_a_forked_process_inherited_is_in_cells_of_its_own() -> None:
    trace = Trace(time_unit="ms", memory="unified")
    old = trace.account("heap", "app", ["malloc (a.c:1)"])
    new = trace.account("heap", "app", ["malloc (a.c:2)"])
    trace.snapshot(5, "fork", {old: (1000, 10)})
    trace.snapshot(6, "time", {old: (1500, 12), new: (70, 1)})
    trace.snapshot(7, "exit", {old: (400, 4)})
    run = run_data(report_of(trace.load()), has_parent=True)
    inherited = column(run, "cell.inherited")
    sums = [cells_by(run, held, inherited) for held in moments(run)]
    assert sums == [{1: (1000, 10)}, {1: (1000, 10), 0: (570, 3)}, {1: (400, 4), 0: (70, 1)}]


def test_texts_are_fit_to_be_shown_and_of_a_bearable_length() -> None:
    assert shown("a\x1b[2J\u202e\udcff") == "a\\x1b[2J\\u202e\\xff"
    text = shown("<b>" * 40000)
    assert len(text) < 500 and text.endswith("… (120,000 characters)")


@pytest.mark.parametrize("n_characters", [600, 5000])
def test_what_to_do_is_whole_behind_evidence_of_any_length(n_characters: int) -> None:
    evidence = "x" * n_characters + ". "
    (said,) = statements_data([Statement("finding", NOTE, f"{evidence}Stop it.", "Stop it.")])
    assert said.action == "Stop it." and said.text.endswith(" Stop it.") and len(said.text) < 1100
    assert said.text.startswith(evidence) == (n_characters == 600)


def test_what_stands_in_backticks_is_code_before_any_script_runs() -> None:
    assert sentence("1 `<dict>` of `a`, not `") == "1 <code>&lt;dict&gt;</code> of <code>a</code>, not `"


def test_functions_that_share_a_line_have_names_of_their_own() -> None:
    """As a comprehension and the function around it."""
    trace = Trace()
    stacks = ["py parse (/a/server.py:9)", "py parse.<locals>.<listcomp> (/a/server.py:9)", "py main (/a/server.py:20)"]
    held = {trace.account("heap", "data", [stack]): (bytes_, 1) for stack, bytes_ in zip(stacks, (3000, 2000, 1000))}
    trace.snapshot(5, "exit", held)
    names = ["server.py:9 (parse)", "server.py:9 (parse.<locals>.<listcomp>)", "server.py:20"]
    report = report_of(trace.load())
    assert [row.label for row in report.lines] == names
    assert run_data(report).head["lines"]["label"] == names


@pytest.mark.parametrize("values", [[0], [1, 2, 3], [0, 2**53 - 1, 255, 256], []])
def test_columns_come_back(values: List[int]) -> None:
    columns = Columns()
    columns.add("before", [7, 8])
    columns.add("it", values)
    columns.add("signed", [-value for value in values], "signed")
    run = RunData(run_head(Packed(columns.specs)), columns.bytes())
    assert column(run, "it") == values
    assert column(run, "signed") == [-value for value in values]


@pytest.mark.parametrize("value", [2**53, 2**64])
def test_a_figure_that_a_browser_would_round_is_refused(value: int) -> None:
    with pytest.raises(TooLarge):
        Columns().add("it", [1, value])


def page_of(monkeypatch: Any, tmp_path: Path, *profiles: Profile, **assets: str) -> str:
    texts = {
        "page.html": "{{policy}}|{{served}}|{{title}}|{{style}}|{{title}}|{{first}}|{{licences}}|{{data}}|{{script}}",
        "page.js": "script",
        "page.css": "style {{data}}",
        "licences.txt": "<licence>",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(html, "ASSETS", str(tmp_path))
    view = View(None, 1.0, "stack", 70)
    if len(profiles) == 1:
        return "\n".join(html.write(profiles[0], view))
    job = join([(str(number), profile) for number, profile in enumerate(profiles)])
    return "\n".join(html.write_several(job, lambda profile: view, False))


def test_the_page_is_the_shell_filled_in_once(monkeypatch: Any, tmp_path: Path) -> None:
    trace = small_training_run()
    trace.lines.insert(-1, "m command <title><script>alert(1){{data}}")
    parts = page_of(monkeypatch, tmp_path, trace.load()).split("|")
    policy, served, title, style, heading, first, licences, data, script = parts
    assert served == ""  # a file of its own asks nobody
    assert "default-src &#x27;none&#x27;" in policy and "sha256-" in policy
    assert heading == title == "&lt;title&gt;&lt;script&gt;alert(1){{data}}"
    assert (style, licences, script) == ("style {{data}}", "&lt;licence&gt;", "script")
    assert "Peak 233 MiB" in first
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", data)


def test_a_page_computes_each_analysis_once_for_each_named_moment(monkeypatch: Any, tmp_path: Path) -> None:
    calls = count_analyses(monkeypatch)
    page_of(monkeypatch, tmp_path, small_training_run().load())
    n_moments = calls["ladders"]  # the peak and the end
    assert n_moments == 2
    assert {name: n for name, n in calls.items() if n not in (ONCE_EACH[name], n_moments * ONCE_EACH[name])} == {}


def test_the_data_of_several_processes_is_one_after_the_other(monkeypatch: Any, tmp_path: Path) -> None:
    profiles = [random_run(1).load(), small_training_run().load()]
    raw = zlib.decompress(base64.b64decode(page_of(monkeypatch, tmp_path, *profiles).split("|")[7]))
    (length,) = struct.unpack("<I", raw[:4])
    head = json.loads(raw[4 : 4 + length])
    whole, *each = head["runs"]
    assert [run["command"] for run in each] == ["random 1", "python3 train.py --epochs 2"]
    assert whole["owners"] and not any("owners" in run for run in each)  # names are those of all
    for about, profile in zip(each, profiles):
        run = RunData(about, raw[4 + length + about["columns_at"] :])
        last = moments(run)[-1]
        assert sum(held[0] for held in last.values()) == sum(
            n for n, _ in profile.composition(len(profile.snapshots) - 1).values()
        )


def test_without_its_script_the_page_says_what_builds_it(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(html, "ASSETS", str(tmp_path / "nowhere"))
    with pytest.raises(FormatError, match="make page"):
        list(html.write(small_training_run().load(), View(None, 1.0, "stack", 70)))


def test_a_trace_without_a_snapshot_makes_a_page() -> None:
    run = run_data(report_of(load(io.BytesIO(b"jmassif-trace 4\nm command true\n"))))
    assert moments(run) == [] and run.head["at"] == {"first": -1, "peak": -1, "end": -1}


def test_a_tensor_at_the_start_of_its_segment_ends_for_itself() -> None:
    trace = Trace(time_unit="ms")
    cache = trace.account("device", "cache", ["grow (libc10_cuda.so)"])
    tensor = trace.account("device", "tensor", ["empty (libtorch.so)"])
    trace.block(1, 0x1000, 100, cache)
    trace.block(2, 0x1000, 50, tensor)
    trace.block_end(3, 0x1000, tensor)
    trace.block_end(4, 0x1000, cache)
    segment, inside = blocks(trace.load(), 9).rows
    assert segment == Block(1, 5, 0x1000, 100, cache)
    assert inside == Block(2, 4, 0x1000, 50, tensor)


def test_a_page_goes_through_the_snapshots_as_often_whatever_their_number(monkeypatch: "pytest.MonkeyPatch") -> None:
    """A replay for each moment would take the square of their number."""
    replays: List[int] = []
    composition = Profile._held

    def counted(profile: Profile, snapshot: int) -> Any:
        replays[-1] += 1
        return composition(profile, snapshot)

    monkeypatch.setattr(Profile, "_held", counted)
    for n_snapshots in (20, 80):
        replays.append(0)
        run_data(report_of(random_run(5, n_snapshots).load()))
    assert replays[0] == replays[1]


def test_a_line_that_leaks_memory_of_several_kinds_is_a_row_for_each_owner() -> None:
    trace = Trace(memory="unified", time_unit="ms")
    of = [("heap", "app"), ("device", "app"), ("heap", "data")]
    accounts = [trace.account(kind, owner, ["py work (/a/b.py:7)"]) for kind, owner in of]
    trace.snapshot(1, "exit", dict(zip(accounts, [(100, 1), (7, 1), (50, 2)])))
    sites = page_rows(trace.load(), "Still allocated at exit, by call site")
    rows = [[107, 2, "heap, device", "app"], [50, 2, "heap", "data"]]
    assert [list(site.values())[:4] for site in sites] == rows
