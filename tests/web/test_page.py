# SPDX-License-Identifier: GPL-2.0-or-later
"""The HTML page as a person uses it, in Chromium: every figure asserted is the model's."""

import json
import os
import re
from pathlib import Path
from typing import Any, Callable, Dict, List, Set, Tuple

import pytest

from jmassif.analysis.aggregate import ledger
from jmassif.analysis.leaks import held_at_end
from jmassif.analysis.moments import select
from jmassif.attribution.names import Names
from jmassif.model.records import side_of
from jmassif.model.run import Profile
from jmassif.render.words import OWNERS
from jmassif.units import moment, size

from tests.harness import ROOT
from tests.reporter.traces import Trace, small_training_run
from tests.web.browser import Seen, Step, look, look_once, visit, write_page
from tests.web.pages import TREE, WHOLE_RUN, Page, assert_adds_up, find, held, owners, page_of, walk


@pytest.fixture(scope="module", name="discrete")
def fixture_discrete(tmp_path_factory: Any) -> Page:
    directory = tmp_path_factory.mktemp("discrete")
    return page_of(directory, small_training_run("discrete").save(directory))


@pytest.fixture(scope="module", name="small")
def fixture_small(tmp_path_factory: Any) -> Page:
    directory = tmp_path_factory.mktemp("small")
    return page_of(directory, small_training_run().save(directory))


# ---- what several tests look at in one visit -----------------------------------------------------

DIMENSIONS = ("owner", "group", "kind", "library")
NAMELESS = """[...document.querySelectorAll('button, select, [role=slider], [role=region], [role=img], section')].filter(
    (e) => !e.closest('[hidden]') &&
        !(e.textContent || e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.closest('label')?.innerText)
).length"""
HEADLESS = "[...document.querySelectorAll('tbody tr')].filter((row) => !row.querySelector('th, [colspan]')).length"


def compared(first: float, second: float) -> List[Step]:
    """Two moments of the timeline, the second of them by a click with shift; and back to the page as it was."""
    return [
        WHOLE_RUN,
        ["pick", "#timeline .u-over", first],
        ["pick", "#timeline .u-over", second, ["Shift"]],
        ["text", "#chosen"],
        ["text", ".comparison"],
        ["texts", "#owners thead th"],
        ["rows", "#owners tbody"],
        ["rows", "#owners tfoot"],
        ["click", ".comparison button"],
        ["press", "#timeline .plot", "p"],
    ]


@pytest.fixture(scope="module", name="seen")
def fixture_seen(real: Page) -> Seen:
    plans: Dict[str, List[Step]] = {
        "headline": [
            ["text", "#headline .size"],
            ["attributes", "#headline .piece", "data-key"],
            ["attributes", "#headline .piece", "data-bytes"],
            ["choose", "#timeline select", "group"],
            ["attributes", "#timeline .values [data-name]", "data-name"],
            ["attributes", "#timeline .values [data-name]", "data-bytes"],
            ["choose", "#timeline select", "owner"],
        ],
        "at exit": [["rows", "#leaks .table:has(h3:text-is('Still allocated at exit, by owner')) tbody"]],
        "pointer": [["hover", "#timeline .u-over", 0.9995, 0.5], ["text", "#timeline .tip"]],
        "saved and copied": [
            ["save", "#owners .tools button:text-is('CSV')"],
            ["click", "#owners .tools button:text-is('Copy')"],
            ["evaluate", "navigator.clipboard.readText()"],
        ],
        "earlier clicked": compared(0.02, 0.5),
        "later clicked": compared(0.5, 0.02),
        "sorted": [
            ["click", "#owners thead th:nth-child(3) button"],
            ["rows", "#owners tbody"],
            ["click", "#owners thead th:nth-child(3) button"],
            ["rows", "#owners tbody"],
            ["click", "#owners thead th:nth-child(1) button"],
            ["attributes", "#owners thead th", "aria-sort"],
        ],
    }
    for dimension in DIMENSIONS:
        plans[f"areas by {dimension}"] = [
            ["choose", "#timeline select", dimension],
            ["attributes", "#timeline .values tr[data-name]", "data-name"],
            ["texts", "#timeline .values tr[data-name] td:nth-child(2)"],
        ]
    return look_once(real.path, plans)


@pytest.fixture(scope="module", name="training_seen")
def fixture_training_seen(training: Page) -> Seen:
    return look_once(
        training.path,
        {
            "lines": [["rows", "#lines tbody"]],
            "start-up": [["rows", "#start-up tbody"]],
            "controls and tables": [["evaluate", NAMELESS], ["evaluate", HEADLESS]],
            "owners": [
                ["click", "#owners .owners > summary"],
                ["texts", "#owners .owners dt"],
                ["texts", "#owners .owners dd"],
                ["attributes", "#timeline .values button", "title"],
            ],
        },
    )


def owners_ever(profile: Profile) -> Set[str]:
    return {account.owner for account in profile.accounts if account.kind}


# ---- the answer ------------------------------------------------------------------------------


def test_the_headline_says_how_much_when_and_whose(real: Page, seen: Seen) -> None:
    profile = real.profile
    peak = select(profile, "peak")
    table = ledger(profile, peak.composition)
    said, pieces, piece_bytes, _, groups, bytes_, _ = seen["headline"]
    assert said.startswith(f"{size(table.total.bytes)} peak, at {moment(peak.time, 'ms')}")
    told = {name: int(n) for name, n in zip(groups, bytes_) if int(n)}
    assert told == {group.name: group.bytes for group in table.groups if group.bytes}
    parts = {key: int(n) for key, n in zip(pieces, piece_bytes)}
    assert sum(parts.values()) >= table.total.bytes
    assert parts.get("libraries", 0) == told.get("libraries", 0) and parts.get("cache", 0) == told.get("cached", 0)


def test_a_named_moment_is_one_click_away(training: Page) -> None:
    chosen, rows = look(
        training.path,
        ["click", ".moment button:text-is('Device peak')"],
        ["text", "#chosen"],
        ["rows", "#owners tbody"],
        tabs="needed",
    )[1:]
    assert chosen.startswith("device peak")
    assert training.owner_table(rows) == owners(training.profile, training.profile.peak_composition("device"))


def test_pools_that_do_not_add_up_are_shown_apart(discrete: Page) -> None:
    peak = select(discrete.profile, "peak")
    table = ledger(discrete.profile, peak.composition)
    said, bars, plots, tables, heads = look(
        discrete.path,
        ["text", "#headline .size"],
        ["count", "#headline .stack-bar"],
        ["count", "#timeline .plot"],
        ["texts", "#timeline .values tfoot td:nth-child(2)"],
        ["texts", "#owners thead th"],
    )
    for side in ("host", "device"):
        assert f"{size(table.total.on(side))} {side}" in said
    assert bars == plots == 2 and tables == [size(table.total.on(side)) for side in ("host", "device")]
    assert "total" not in heads and "host share" in heads


def test_owners_are_explained(training: Page, training_seen: Seen) -> None:
    _, names, texts, titles = training_seen["owners"]
    told = dict(zip(names, texts))
    assert told == {name: OWNERS[name] for name in owners_ever(training.profile) if name in OWNERS}
    assert OWNERS["tensor"] in titles


# ---- time ------------------------------------------------------------------------------------


def test_a_click_in_the_timeline_chooses_a_moment_that_all_sections_show(real: Page) -> None:
    profile = real.profile
    said, rows, line_rows, _, libraries = look(
        real.path,
        ["pick", "#timeline .u-over", 0.999],
        ["text", "#chosen"],
        ["rows", "#owners tbody"],
        ["rows", "#lines tfoot"],
        ["choose", "#owners .choice select", "library"],
        ["rows", "#owners tfoot"],
        tabs="needed",
    )[1:]
    # Of a long run several snapshots lie in the last pixels.
    (chosen,) = (i for i, snapshot in enumerate(profile.snapshots) if said.startswith(f"snapshot {snapshot.id}, "))
    assert profile.snapshots[chosen].time >= 0.99 * profile.snapshots[-1].time
    composition = profile.composition(chosen)
    assert real.owner_table(rows) == owners(profile, composition)
    held = sum(n for account, (n, _) in composition.items() if side_of(profile.accounts[account].kind))
    assert held in line_rows[0] and held in libraries[0]


@pytest.mark.parametrize("clicked", ["earlier", "later"])
def test_growth_from_the_earlier_to_the_later_moment_is_more(real: Page, seen: Seen, clicked: str) -> None:
    """Whichever of them is clicked, and whichever is clicked with shift."""
    profile = real.profile
    bar, compared, heads, rows, total = seen[f"{clicked} clicked"][3:8]
    ids = {snapshot.id: index for index, snapshot in enumerate(profile.snapshots)}
    later, earlier = (ids[int(re.findall(r"snapshot (\d+), ", text)[0])] for text in (bar, compared))
    assert profile.snapshots[earlier].time < profile.snapshots[later].time
    now = owners(profile, profile.composition(later))
    before = owners(profile, profile.composition(earlier))
    place = heads.index("change")
    assert {row[0]: row[place] for row in rows} == {
        name: now.get(name, [0, 0, 0])[2] - before.get(name, [0, 0, 0])[2] for name in set(now) | set(before)
    }
    change = sum(row[2] for row in now.values()) - sum(row[2] for row in before.values())
    assert total[0][place] == change > 0
    assert f": +{size(change)} " in compared


def test_a_drag_zooms_in_and_a_double_click_out(real: Page) -> None:
    shown = ["evaluate", "parseFloat(document.querySelector('.brush').style.width)"]
    before, _, zoomed, chosen, _, after = look(
        real.path,
        shown,
        ["drag", "#timeline .u-over", 0.3, 0.6],
        shown,
        ["text", "#chosen"],
        ["click", "#timeline .u-over", {"clickCount": 2, "position": {"x": 200, "y": 100}}],
        shown,
        tabs="needed",
    )
    assert zoomed == pytest.approx(0.3 * before, rel=0.05) and after == 100
    assert chosen.startswith("peak")  # the drag has chosen nothing


def test_what_is_under_the_pointer_is_told_in_figures(real: Page, seen: Seen) -> None:
    last = real.profile.snapshots[-1]
    text = seen["pointer"][1]
    assert f"nearest: snapshot {last.id} at {moment(last.time, 'ms')}" in text
    largest = max(
        owners(real.profile, real.profile.composition(len(real.profile.snapshots) - 1)).items(),
        key=lambda item: item[1][2],
    )
    assert f"{largest[0]}\t{size(largest[1][2])}" in text


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_areas_are_of_what_was_asked_for(real: Page, seen: Seen, dimension: str) -> None:
    profile = real.profile
    composition = select(profile, "peak").composition
    names_of: Dict[str, Callable[[int], str]] = {
        "owner": lambda account: profile.accounts[account].owner,
        "group": lambda account: profile.group_of.get(profile.accounts[account].owner, "other"),
        "kind": lambda account: profile.accounts[account].kind,
        "library": real.names.library,
    }
    name_of = names_of[dimension]
    sums: Dict[str, int] = {}
    for account, (n_bytes, _) in composition.items():
        sums[name_of(account)] = sums.get(name_of(account), 0) + n_bytes
    names, texts = seen[f"areas by {dimension}"][1:]
    assert len(names) == len(texts) >= 2
    for name, text in zip(names, texts):
        if not re.fullmatch(r"\d+ others?", name):
            assert text == size(sums.get(name, 0)), name


def test_the_timeline_is_used_with_the_keyboard(real: Page) -> None:
    profile = real.profile
    first, second, back, compared = look(
        real.path,
        ["press", "#timeline .plot", "Home"],
        ["text", "#chosen"],
        ["press", "#timeline .plot", "ArrowRight"],
        ["attributes", "#timeline .plot", "aria-valuetext"],
        ["press", "#timeline .plot", "p"],
        ["text", "#chosen"],
        ["press", "#timeline .plot", "Shift+Home"],
        ["text", ".comparison"],
        tabs="needed",
    )[1::2]
    snapshots = profile.snapshots
    assert first.startswith(f"snapshot {snapshots[0].id}, ")
    held = snapshots[1].host + snapshots[1].device
    assert second == [f"snapshot {snapshots[1].id} at {moment(snapshots[1].time, 'ms')}: {size(held)}"]
    assert back.startswith("peak")
    assert f"vs. snapshot {snapshots[0].id}" in compared


def test_regions_and_marks_are_on_the_page(small: Page) -> None:
    rows = look(small.path, ["rows", "#events tbody"])[0]
    assert [(row[1], row[2]) for row in rows] == [("region", "warm-up"), ("mark", "epoch 1")]


# ---- tables ----------------------------------------------------------------------------------


def test_a_table_is_sorted_by_the_column_that_is_clicked(seen: Seen) -> None:
    down, up, said = seen["sorted"][1::2]
    assert [row[2] for row in down] == sorted((row[2] for row in down), reverse=True)
    assert [row[2] for row in up] == sorted(row[2] for row in up)
    assert said[0] == "ascending" and not any(said[1:])


def test_a_table_is_saved_and_copied_with_exact_figures(real: Page, seen: Seen) -> None:
    saved, copied = seen["saved and copied"][0::2]
    expected = owners(real.profile, select(real.profile, "peak").composition)
    assert saved["name"] == "owners.csv"
    for text, separator, end in ((saved["text"], ",", "\r\n"), (copied, "\t", "\n")):
        rows = [line.split(separator) for line in text.strip().split(end)]
        assert rows[0][:3] == ["owner", "group", "host" if real.has_device else "total"]
        figures = [row[:2] + [float(field) for field in row[2:]] for row in rows[1:]]
        assert real.owner_table(figures) == expected


def test_lines_have_their_text(training_seen: Seen) -> None:
    ((top, *_),) = training_seen["lines"]
    line = int(top[0].rpartition(":")[2])
    source = (ROOT / "docs/examples/train.py").read_text().splitlines()[line - 1].strip()
    assert top[-1].rstrip("…") == source[: len(top[-1].rstrip("…"))] and top[-1]


def called_in_turn() -> Trace:
    """Line 9 calls line 5, through a package, and itself; each allocates, as does line 2 where line 5 calls it twice."""
    main, work = "py <module> (/home/u/a.py:9)", "py work (/home/u/a.py:5)"
    package = "py relu (/usr/lib/python3/dist-packages/torch/nn/functional.py:9)"
    leaf = "py leaf (/home/u/a.py:2)"
    trace = Trace(memory="unified")
    stacks = [[main], [work, package, main], [leaf, work, package, main], [leaf, leaf, work, main]]
    rows = {trace.account("heap", "app", frames): (1000 * 10**place, 1) for place, frames in enumerate(stacks)}
    trace.snapshot(5, "time", rows, {"total": (5, {})})
    only = {account: held for account, held in rows.items() if held[0] == 1000000}
    trace.snapshot(7, "exit", {account: only.get(account, (0, 0)) for account in rows})
    trace.lines.append("Z 8 exit 0")
    return trace


def test_lines_have_what_is_their_own_and_a_total_with_all_that_they_called(tmp_path: Path) -> None:
    page = write_page(tmp_path, called_in_turn().save(tmp_path))
    heads, rows, sums, _, after = look(
        page,
        ["texts", "#lines thead th"],
        ["rows", "#lines tbody"],
        ["rows", "#lines tfoot"],
        ["click", ".moment button:text-is('End')"],
        ["rows", "#lines tbody"],
    )
    own, total = heads.index("self"), heads.index("total")
    leaf, work, main = 1100000, 10000, 1000
    told = {row[0]: (row[own], row[total]) for row in rows}
    assert told == {"a.py:2": (leaf, leaf), "a.py:5": (work, leaf + work), "a.py:9": (main, leaf + work + main)}
    assert sums[0][own] == sums[0][total] == leaf + work + main
    # At the end the callers hold nothing themselves, and have their totals yet.
    now = {row[0]: (row[own], row[total]) for row in after}
    assert now["a.py:2"] == (1000000, 1000000) and now["a.py:9"] == (0, 1000000) == now["a.py:5"]


def test_totals_of_lines_add_up_over_processes(tmp_path: Path) -> None:
    paths = []
    for pid in (1, 2):
        trace = called_in_turn()
        trace.lines[1:1] = [f"m pid {pid}", "m start-unix-ms 1000", "m host board"]
        paths.append(trace.save(tmp_path, str(pid)))
    heads, rows = look(write_page(tmp_path, *paths), ["texts", "#lines thead th"], ["rows", "#lines tbody"])
    told = {row[0]: (row[heads.index("self")], row[heads.index("total")]) for row in rows}
    assert told["a.py:9"] == (2000, 2222000) and told["a.py:2"] == (2200000, 2200000)


def test_the_text_of_lines_can_be_left_out(tmp_path: Path) -> None:
    script = tmp_path / "secret.py"
    script.write_text("password = 1\n")
    trace = Trace(memory="unified", cwd=str(tmp_path))
    trace.source(str(script), script.read_bytes())
    account = trace.account("heap", "app", [f"py <module> ({script}:1)"])
    trace.snapshot(5, "time", {account: (100, 1)})
    path = trace.save(tmp_path)
    (with_text,) = look(write_page(tmp_path, path), ["texts", "#lines tbody tr"])
    (without,) = look(write_page(tmp_path, path, options=["--no-source"]), ["texts", "#lines tbody tr"])
    assert "password" in with_text[0] and "password" not in without[0] and "secret.py:1" in without[0]


def live_blocks(profile: Profile, time: int) -> Dict[Tuple[int, str], int]:
    """By address and side, bytes."""
    live: Dict[Tuple[int, str], int] = {}
    frees = set(profile.frees)
    rows = profile.blocks
    for row, (at, address, n_bytes, account) in enumerate(zip(rows[0::4], rows[1::4], rows[2::4], rows[3::4])):
        key = (address, side_of(profile.accounts[account].kind) or "")
        if at > time:
            break
        if row in frees:
            live.pop(key, None)
        else:
            live[key] = n_bytes
    return live


def test_blocks_are_those_that_live_at_the_moment(pytorch: Page) -> None:
    live = live_blocks(pytorch.profile, select(pytorch.profile, "peak").time)
    shown, stack = look(
        pytorch.path,
        ["rows", "#blocks tbody"],
        ["click", "#blocks tbody tr"],
        ["texts", "#blocks .stack li"],
    )[0::2]
    expected = sorted(live.values(), reverse=True)
    assert [row[0] for row in shown] == expected[: len(shown)]
    assert any("train.py" in frame for frame in stack)


def test_tensors_are_listed_in_their_segments_and_counted_once(tmp_path: Path) -> None:
    """Two segments with three tensors, and a block on the heap at an address that is also the device's."""
    mib = 1 << 20
    trace = Trace(memory="unified")
    cache = trace.account("device", "cache", ["reserve (a.c:1)"])
    tensor = trace.account("device", "tensor", ["take (a.c:2)"])
    heap = trace.account("heap", "app", ["main (a.c:3)"])
    trace.snapshot(0, "start", {})
    blocks = [(0, 20, cache), (0, 8, tensor), (12, 8, tensor), (100, 10, cache), (100, 10, tensor), (2, 4, heap)]
    for at, n, account in blocks:
        trace.block(5, 0x10000000 + at * mib, n * mib, account)
    trace.snapshot(9, "exit", {cache: (4 * mib, 2), tensor: (26 * mib, 3), heap: (4 * mib, 1)})
    heads, rows, texts, total = look(
        write_page(tmp_path, trace.save(tmp_path)),
        ["texts", "#blocks thead th"],
        ["rows", "#blocks tbody"],
        ["texts", "#blocks tbody tr > :first-child"],
        ["rows", "#blocks tfoot"],
    )
    assert heads[:2] == ["size", "in use"]
    assert [row[0] // mib for row in rows] == [20, 8, 8, 10, 10, 4]
    assert [text.startswith("↳") for text in texts] == [False, True, True, False, True, False]
    assert [row[1] and row[1] // mib for row in rows] == [16, "", "", 10, "", ""]
    assert [n // mib for n in total[0][:2]] == [34, 26]


def test_what_was_held_at_the_end_is_the_same_by_owner_as_in_text(real: Page, seen: Seen) -> None:
    held_then = held_at_end(real.profile, Names(real.profile))
    assert held_then is not None
    (rows,) = seen["at exit"]
    figures = {row[0]: sum(row[2:4]) if real.has_device else row[2] for row in rows}
    assert figures == {row.name: row.bytes for row in ledger(real.profile, held_then.leaked).owners}


def test_a_line_that_leaks_is_named_with_its_slope(tmp_path: Path) -> None:
    trace = Trace(memory="unified", time_unit="ms")
    account = trace.account("heap", "app", ["py <module> (/a/b.py:7)"])
    for step in range(20):
        trace.mark(100 * step, f"epoch {step}")
        trace.snapshot(100 * step, "mark", {account: (5000 * step, step)})
    trace.snapshot(2000, "exit")
    page = write_page(tmp_path, trace.save(tmp_path))
    said = page.read_text(encoding="utf-8")
    assert "Leak: b.py:7 (&lt;module&gt;) keeps what it allocates: 4.88 KiB an epoch, " in said  # before scripts run
    (rows,) = look(page, ["rows", "#leaks .table:has(h3:text-is('Growing')) tbody"])
    assert [row[:5] for row in rows] == [["b.py:7 (<module>)", "app", 5000, 95000, 95000]]


def test_pages_of_libraries_are_nothing_that_leaks(tmp_path: Path) -> None:
    trace = Trace(memory="unified", **{"option.pages": "yes"})
    pages = trace.account("file", "lib", ["map mapped (libx.so)"])
    heap = trace.account("heap", "app", ["main (a.c:1)"])
    trace.snapshot(5, "exit", {pages: (1 << 20, 1), heap: (100, 1)})
    (rows,) = look(write_page(tmp_path, trace.save(tmp_path)), ["rows", "#leaks .table tbody"])
    assert [row[0] for row in rows] == ["app", 100]


def test_start_up_calls_have_their_cost(training: Page, training_seen: Seen) -> None:
    (rows,) = training_seen["start-up"]
    costs = {scope.name: scope for scope in training.profile.scopes}
    (retain,) = [row for row in rows if row[0].strip() == "cuDevicePrimaryCtxRetain"]
    host = sum(part.bytes for part in costs["cuDevicePrimaryCtxRetain"].growths if side_of(part.kind) == "host")
    assert retain[3] == host


def test_snapshots_can_be_chosen_from_their_table(small: Page) -> None:
    _, chosen, current = look(
        small.path,
        ["press", "#snapshots tbody tr:nth-child(2)", "Enter"],
        ["text", "#chosen"],
        ["attributes", "#snapshots tbody tr", "aria-current"],
    )
    assert chosen.startswith("snapshot 2, ")
    assert current[1] == "true"


def test_oddities_and_temporaries_are_told(small: Page) -> None:
    odd, temporaries = look(small.path, ["text", "#about .table"], ["rows", "#temporaries tbody"])
    assert "cudaMalloc failed with error 2" in odd and "3 calls" in odd and "unknown-ioctl" in odd
    assert temporaries[0][:2] == [890000, 900000]


def test_what_has_no_size_is_no_oddity(tmp_path: Path) -> None:
    trace = small_training_run()
    trace.lines[-1:-1] = ["k driver-channels 16", "k driver-rm-channels 0", "k driver-address-spaces 1"]
    page = write_page(tmp_path, trace.save(tmp_path))
    odd, kept = look(page, ["text", "#about .table"], ["text", "#about p:has-text('unknown size')"])
    assert "unknown-ioctl" in odd and "channel" not in odd
    assert kept.endswith("unknown size (1 GPU address space, 16 GPU channels).")


# ---- several processes -----------------------------------------------------------------------


def test_the_sum_can_be_told_apart_by_process(forking: Page) -> None:
    names, texts = look(
        forking.path,
        ["choose", "#timeline select", "process"],
        ["attributes", "#timeline .values tr[data-name]", "data-name"],
        ["texts", "#timeline .values tr[data-name] td:nth-child(2)"],
        tabs="needed",
    )[1:]
    assert len(names) == 3 and all(profile.manifest["pid"] in " ".join(names) for profile in forking.profiles)
    assert texts[0] != "0 B"


# ---- whoever looks ---------------------------------------------------------------------------


def test_colours_can_be_chosen(training: Page) -> None:
    background = "getComputedStyle(document.documentElement).backgroundColor"
    before, _, _, after = look(
        training.path,
        ["evaluate", background],
        ["click", ".menu > summary"],
        ["choose", ".menu .choice:has-text('Theme') select", "Dark"],
        ["evaluate", background],
        tabs="needed",
    )
    assert before == "rgb(255, 255, 255)" and after != before


def test_controls_have_names_and_tables_have_heads(training_seen: Seen) -> None:
    assert training_seen["controls and tables"] == [0, 0]


# ---- whatever is in a trace ------------------------------------------------------------------

HOSTILE = [
    "<script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 1'>",
    '"><svg onload="window.hit = 1">',
    "</script></style></title><b id=injected>",
    "javascript:window.hit=1",
    "{{script}}${window.hit=1}",
    "a\x00b\x1b[31m\u202e\u2028\x7f'\"&<>",
    "x" * 100000,
    "=1+1",
]


def test_hostile_texts_are_shown_and_nothing_is_executed(tmp_path: Path) -> None:
    trace = Trace(command=HOSTILE[0] + HOSTILE[3], time_unit="ms", memory="unified", pid="<i>1</i>", cwd=HOSTILE[1])
    changes = {}
    for number, text in enumerate(HOSTILE):
        name = text.replace(" (", "(")
        trace.manifest(f"env.X{number}", text)
        account = trace.account("heap", "app", [f"{name} ({name}.so)", f"py {name} (/{name}.py:{number + 1})"])
        changes[account] = (1000 * (number + 1), 2000, 9999, 5000, 4000)
        trace.mark(number, text)
        trace.region_begin(10 + number, text)
        trace.region_end(11 + number, text)
        trace.lines.append(f"x {number + 1} 0 1 1 5 0 {trace.string(text)} heap {number + 1} 1")
        trace.lines.append(f"e {trace.string(text)} 2 3")
    trace.snapshot(50, "time", changes)
    trace.snapshot(60, "exit", {})
    raw = trace.bytes().replace(b"=1+1", b"=1+1\xff\xfe")
    path = tmp_path / "jmassif.out.1"
    path.write_bytes(raw + b"Z 60 exit 0\n")
    page = write_page(tmp_path, path)
    hit, injected, text, scopes, saved = look(
        page,
        ["evaluate", "String(window.hit)"],
        ["count", "#injected, img, [onload], [onerror], i:not([style]):not(:empty)"],
        ["text", "body"],
        ["texts", "#start-up tbody th"],
        ["save", "#start-up .tools button:text-is('CSV')"],
    )
    assert hit == "undefined" and injected == 0
    assert HOSTILE[0] in text and HOSTILE[1] in scopes and HOSTILE[2] in scopes
    assert "a\\x00b\\x1b[31m\\u202e\\u2028\\x7f'\"&<>" in scopes
    assert any(scope.endswith("… (100,000 characters)") and len(scope) < 500 for scope in scopes)
    assert "=1+1\\xff\\xfe" in scopes
    assert "\r\n'=1+1\\xff\\xfe," in saved["text"]


def test_the_page_may_not_load_anything(small: Page) -> None:
    visited = visit(
        small.path,
        ["evaluate", "fetch('data:text/plain,x').then(() => 'loaded', () => 'refused')"],
        [
            "evaluate",
            "new Promise((done) => { const s = document.createElement('script'); s.textContent = 'window.hit = 1';"
            " document.body.append(s); setTimeout(() => done(String(window.hit)), 50); })",
        ],
        [
            "evaluate",
            "new Promise((done) => { const i = new Image(); i.onload = i.onerror = (e) => done(e.type);"
            " i.src = 'http://127.0.0.1:9/x.png'; })",
        ],
    )
    assert visited.results == ["refused", "undefined", "error"]
    assert sum("violation" in line for line in visited.trouble) == 3


def test_a_trace_that_was_cut_off_makes_a_page_that_says_so(tmp_path: Path) -> None:
    trace = small_training_run()
    path = tmp_path / "jmassif.out.1"
    path.write_bytes(trace.bytes()[:-200])
    (text,) = look(write_page(tmp_path, path), ["text", "#about .problem"])
    assert text.startswith("Incomplete trace")


def test_a_trace_without_snapshots_makes_a_page(tmp_path: Path) -> None:
    path = tmp_path / "jmassif.out.1"
    path.write_bytes(b"jmassif-trace 4\nm command true\n")
    (text,) = look(write_page(tmp_path, path), ["text", "#headline .size"])
    assert text == "This trace has no complete snapshot."


def test_types_and_modules_of_the_page_fit_together() -> None:
    from tests.harness import check_run

    check_run(["node_modules/.bin/tsc", "--noEmit"], cwd=ROOT / "reporter" / "web")
    assert os.path.exists(ROOT / "reporter/jmassif/assets/licences.txt")


# ---- the call tree ---------------------------------------------------------------------------


def test_the_call_tree_holds_what_the_model_does(real: Page) -> None:
    profile, names = real.profile, real.names
    composition = select(profile, "peak").composition
    orders = ("bottom-up", "python", "library")
    steps: List[List[Any]] = [["evaluate", TREE]]
    for order in orders:
        steps += [["choose", "#calls label:has-text('Order') select", order], ["evaluate", TREE]]
    top_down, bottom_up, python, library = map(json.loads, look(real.path, *steps, tabs="needed")[::2])
    for tree in (top_down, bottom_up, python, library):
        assert tree[1] == held(profile, composition)
        assert_adds_up(tree)

    def passes_through(label: str) -> int:
        return held(
            profile,
            composition,
            lambda account: any(names.frame(f) == label for f in profile.stack(profile.accounts[account].node)),
        )

    # The program's own lines have branches large enough never to be summed with others.
    large = {node[0] for node in walk(python) if "train.py" in node[0] and node[1] >= python[1] / 10}
    assert len(large) >= 4
    for label in large:
        for tree in (top_down, python):
            # Nothing is missing but what is said to be too small, and that is little.
            small = sum(node[1] for node in walk(tree) if node[0].startswith(("(smaller", "(deeper")))
            missing = passes_through(label) - sum(node[1] for node in find(tree, label))
            assert 0 <= missing <= small < tree[1] / 2
    by_library: Dict[str, int] = {}
    for account, (n_bytes, _) in composition.items():
        by_library[names.library(account)] = by_library.get(names.library(account), 0) + n_bytes
    largest = max(by_library, key=lambda name: by_library[name])
    assert [largest, by_library[largest]] in [child[:2] for child in library[3]]


def test_the_call_tree_compares_two_moments(real: Page) -> None:
    profile = real.profile
    _, _, tree, colours = look(
        real.path,
        ["click", real.bar_moment],
        ["pick", "#timeline .u-over", 0.5, ["Shift"]],
        ["evaluate", TREE],
        ["texts", "#calls .legend li"],
        tabs="needed",
    )
    tree = json.loads(tree)
    assert tree[1] == held(profile, select(profile, "peak-host" if real.has_device else "end").composition)
    assert_adds_up(tree)
    totals = {snapshot.host + snapshot.device for snapshot in profile.snapshots}
    assert tree[2] in totals | {peak.host + peak.device for peak in profile.peaks.values()}
    assert "grown" in colours


def test_the_call_tree_is_walked_and_enlarged_with_the_keyboard(training: Page) -> None:
    """Two steps down, enlarged, and back to the whole."""

    def pressed(*keys: str) -> List[str]:
        script = f"""(async () => {{
            const flame = document.querySelector('.flame');
            flame.focus();
            for (const key of {[*keys]}) {{
                flame.dispatchEvent(new KeyboardEvent('keydown', {{ key }}));
                await new Promise((done) => setTimeout(done));
            }}
            return [document.querySelector('.flame-detail').textContent, document.querySelector('#calls .tools button').disabled];
        }})()"""
        return ["evaluate", script]

    (focused, _), (_, enlarged), (_, again) = look(
        training.path,
        ["click", "#tab-flame-graph"],
        pressed("ArrowDown"),
        pressed("ArrowDown", "Enter"),
        pressed("Escape"),
        tabs="needed",
    )[1:]
    assert "python" in focused or "Py" in focused
    assert (enlarged, again) == (False, True)


# ---- device memory ---------------------------------------------------------------------------


@pytest.fixture(scope="module", name="segments")
def fixture_segments(tmp_path_factory: Any) -> Page:
    """Two segments, in one of them three tensors of which the middle one is freed, and a block by itself."""
    mib = 1 << 20
    trace = Trace(command="segments", memory="unified", time_unit="ms")
    trace.group("cached", "cache")
    trace.group("yours", "tensor", "app")
    cache = trace.account("device", "cache", ["cudaMalloc (libcudart.so)", "main (a.c:1)"])
    tensor = trace.account("device", "tensor", ["at::empty (libtorch.so)", "main (a.c:2)"], "activation")
    alone = trace.account("device", "app", ["cudaMalloc (libcudart.so)", "main (a.c:3)"])
    base, other = 0x700000000, 0x710000000
    trace.lines += [
        f"+ 1 {base:x} {20 * mib} {cache}",
        f"+ 1 {other:x} {8 * mib} {cache}",
        f"+ 2 7f0000000 {mib} {alone}",
    ]
    trace.lines += [f"+ {3 + i} {base + 4 * i * mib:x} {4 * mib} {tensor}" for i in range(3)]
    trace.lines.append(f"- 9 {base + 4 * mib:x} {tensor}")
    trace.snapshot(10, "time", {cache: (20 * mib, 2), tensor: (8 * mib, 2), alone: (mib, 1)}, {"total": (10, {})})
    trace.lines.append("Z 20 exit 0")
    directory = tmp_path_factory.mktemp("segments")
    return page_of(directory, trace.save(directory))


def test_the_map_of_device_memory_shows_segments_blocks_and_holes(segments: Page) -> None:
    summary, labels, parts, _, stack = look(
        segments.path,
        ["text", "#device .map-summary"],
        ["texts", "#device .map-label"],
        ["attributes", "#device .segment button", "aria-label"],
        ["click", "#device .segment .block"],
        ["texts", "#device .stack li"],
    )
    # Free: 4 MiB between two tensors, 8 MiB behind them, and all 8 MiB of the other segment.
    assert "2 segments with 20.0 MiB free in 3 holes, the largest 8.00 MiB; fragmentation 60.0 %" in summary
    assert labels == ["20.0 MiB, 40.0 % used", "8.00 MiB, 0.0 % used", "1.00 MiB"]
    assert parts == [
        "tensor (activation): 4.00 MiB at 0x700000000",
        "hole: 4.00 MiB at 0x700400000",
        "tensor (activation): 4.00 MiB at 0x700800000",
        "hole: 8.00 MiB at 0x700c00000",
        "hole: 8.00 MiB at 0x710000000",
        "app: 1.00 MiB at 0x7f0000000",
    ]
    assert len(stack) == 2 and "at::empty" in stack[0] and "main" in stack[1]


def test_the_map_of_device_memory_is_one_stop_of_the_tab_key(segments: Page) -> None:
    told = "document.querySelector('#device output').textContent"
    results = look(
        segments.path,
        ["count", "#device .segment button[tabindex='0']"],
        ["press", "#device .segment button[tabindex='0']", "ArrowRight"],
        ["evaluate", told],
        ["keys", "ArrowDown"],
        ["evaluate", told],
        ["keys", "ArrowUp", "ArrowRight", "ArrowRight", "Enter"],
        ["evaluate", told],
        ["texts", "#device .stack li"],
        ["count", "#device .segment button[tabindex='0']"],
    )
    assert results[2] == "hole: 4.00 MiB at 0x700400000"
    assert results[4] == "hole: 8.00 MiB at 0x710000000"
    assert results[6] == "tensor (activation): 4.00 MiB at 0x700800000" and "at::empty" in results[7][0]
    assert results[0] == results[8] == 1


def test_blocks_over_time_are_those_that_lived(segments: Page) -> None:
    note, _, first, _, _, last, _, is_whole = look(
        segments.path,
        ["text", "#lives p:not([hidden])"],
        ["press", "#lives canvas", "ArrowRight"],
        ["text", "#lives output"],
        ["press", "#lives canvas", "ArrowRight"],
        ["press", "#lives canvas", "ArrowRight"],
        ["text", "#lives output"],
        ["press", "#lives canvas", "Escape"],
        ["evaluate", "document.querySelector('#lives .tools button').disabled"],
    )
    # Segments hold others and are left out: three tensors and the block by itself, 13 MiB at once.
    assert "4 blocks of device memory, 13.0 MiB at most together" in note
    assert first.startswith("1.00 MiB, app") and "never freed" in first
    assert last.startswith("4.00 MiB, tensor (activation)") and "freed at 9 ms" in last
    assert is_whole
