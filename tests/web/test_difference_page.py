# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of jm_diff in Chromium: the figures shown are those of --format=json, on two simulated JetPacks and on repeated
runs. Screenshots are left in the build tree's tests/made/screenshots."""

import json
import re
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import pytest

from jmassif.html import page as html
from jmassif.render.diff_tables import change_of
from jmassif.render.words import OWNERS
from jmassif.units import size
from tests.reporter.commands import jm_diff
from tests.reporter.test_difference import held
from tests.reporter.traces import Trace, small_training_run
from tests.tool.cuda_ledger import run_sim
from tests.web.browser import SCREENSHOTS, Seen, look, look_once, visit

MIB = 1 << 20
VIEWS = ("owner", "library", "scope", "kind", "function")


class Page(NamedTuple):
    path: Path
    found: Dict[str, Any]  # the same as JSON

    def view(self, by: str) -> Dict[str, Any]:
        (view,) = [view for view in self.found["views"] if view["by"] == by]
        return dict(view)


def page_of(directory: Path, *arguments: object) -> Page:
    path = directory / "difference.html"
    done = jm_diff("--format=html", "-o", path, *arguments)
    assert done.status == 0, done.err
    by = [] if any(str(argument).startswith("--by") for argument in arguments) else [f"--by={','.join(VIEWS)}"]
    told = jm_diff("--format=json", *by, *arguments)
    return Page(path, json.loads(told.out))


@pytest.fixture(scope="module", name="pair")
def fixture_pair(sim: Path, tmp_path_factory: Any) -> Page:
    recordings = []
    for release in ("4.6.1", "5.1.2"):
        options = [f"--board-root={sim}/jetpack-{release}/root"]
        recordings.append(run_sim(sim, f"../jetpack-{release}/jetpack", options=options, marks=True))
    traces = [recording.trace for recording in recordings]
    return page_of(tmp_path_factory.mktemp("pair"), "--group-by=jetpack", *traces)


# All places of the tree that is drawn, also those too narrow to be seen.
FRAMES = """(() => {
    const found = [];
    const walk = (node, parent) => {
        found.push([node.name, node.now, node.before, parent]);
        for (const child of node.children) walk(child, node.name);
    };
    walk(document.querySelector('#calls .flame').tree, null);
    return found;
})()"""
COLOURS = """[...document.querySelectorAll('#calls .flame g')].map((g) =>
    [g.dataset.bytes, g.dataset.before, g.querySelector('rect').getAttribute('fill')].map((e, i) => (i < 2 ? Number(e) : e)))"""


@pytest.fixture(scope="module", name="seen")
def fixture_seen(pair: Page) -> Seen:
    """One visit for several tests."""
    return look_once(
        pair.path,
        {
            "ladder": [["rows", "#changes tbody"]],
            "sides": [["rows", "#sides .table:first-of-type tbody"]],
            "flame graph": [["evaluate", FRAMES], ["evaluate", COLOURS]],
            "saved": [["save", "#by-scope .tools button:nth-of-type(2)"]],
            "owners": [
                ["texts", "#by-owner .table:first-of-type tbody tr th"],
                ["rows", "#by-owner .table:last-of-type tbody"],
            ],
            "other way round": [
                ["choose", "#calls .choice:nth-of-type(1) select", "JetPack 4.6.1"],
                ["choose", "#calls .choice:nth-of-type(2) select", "JetPack 5.1.2"],
                ["evaluate", COLOURS],
            ],
        },
    )


def full_name(row: Dict[str, Any]) -> str:
    is_listed = not row["in_total"] and not row["inside"]
    return str(row["name"]) + (": further calls, not counted" if is_listed else "")


def together(cell: Dict[str, Any]) -> int:
    return int(cell["host"] + cell["device"])


def expected(view: Dict[str, Any], now: int, before: int) -> List[List[Any]]:
    """Name, what each column holds, the change, that of host and device, and of blocks or calls."""
    rows = []
    for row in view["rows"]:
        cells = row["cells"]
        changes = [cells[now][side] - cells[before][side] for side in ("host", "device", "number")]
        rows.append([full_name(row), *map(together, cells), changes[0] + changes[1], *changes])
    return rows


def without_text(rows: List[List[Any]]) -> List[List[Any]]:
    return [[row[0].strip()] + [cell for cell in row[1:] if isinstance(cell, (int, float))] for row in rows]


# ---- two JetPacks ------------------------------------------------------------------------------


def assert_tables(page: Page, views: Sequence[str]) -> None:
    """Each view's table has the figures of the JSON: all rows, and the total."""
    steps: List[Sequence[Any]] = []
    for by in views:
        if len(page.view(by)["rows"]) > 25:
            steps.append(["click", f"#by-{by} .more"])
    n_clicks = len(steps)
    for by in views:
        table = f"#by-{by} .table:first-of-type"
        steps += [["rows", f"{table} tbody"], ["rows", f"{table} tfoot"]]
    shown = look(page.path, *steps)[n_clicks:]
    for by, body, foot in zip(views, shown[0::2], shown[1::2]):
        view = page.view(by)
        assert without_text(body) == narrow(view, 1, 0), by
        percents = [change_of(*map(together, row["cells"])) for row in view["rows"]]  # as in text
        assert [row[4] for row in body] == percents, by
        before, now = map(together, view["total"]["cells"])
        assert without_text(foot)[0][1:4] == [before, now, now - before], by


def narrow(view: Dict[str, Any], now: int, before: int) -> List[List[Any]]:
    """As expected(), where only one side was used without the columns of either."""
    has_sides = all(any(cell[side] for cell in view["total"]["cells"]) for side in ("host", "device"))
    return [row if has_sides else row[:-3] + row[-1:] for row in expected(view, now, before)]


def test_each_table_has_the_figures_of_the_json(pair: Page) -> None:
    assert_tables(pair, VIEWS)


def test_roles_and_python_lines_have_tables_where_there_are_any(tmp_path: Path) -> None:
    def trace(n_bytes: int) -> Trace:
        run = Trace(time_unit="ms", memory="unified")
        run.group("yours", "tensor")
        live = {}
        for role, line, factor in (("gradient", 7, 2), ("parameter", 9, 3)):
            stack = ["cudaMalloc (/usr/lib/libcudart.so.10.2)", f"py step (/home/a/train.py:{line})"]
            live[run.account("device", "tensor", stack, role)] = (factor * n_bytes, 1)
        run.snapshot(1, "time", live, {which: (1, {}) for which in ("total", "device")})
        run.lines.append("Z 2 exit 0")
        return run

    views = ["owner", "role", "python-line"]
    traces = [trace(n).save(tmp_path, str(n)) for n in (1000, 3000)]
    page = page_of(tmp_path, f"--by={','.join(views)}", *traces)
    assert [row["name"] for row in page.view("role")["rows"]] == ["parameter", "gradient"]
    assert_tables(page, views)
    path = tmp_path / "all.html"
    jm_diff("--format=html", "-o", path, *traces)
    headings = look(path, ["texts", "main section h2"])[0]
    ways = ["owner", "calling library", "kind", "role", "function", "python line"]
    assert headings == ["Changes", *(f"By {way}, at the peak" for way in ways), "Call tree", "Compared runs"]


def test_the_ladder_is_the_texts(pair: Page, seen: Seen) -> None:
    (ladder,) = pair.found["ladders"]
    (rows,) = seen["ladder"]
    assert len(rows) == len(ladder["rows"]) > 3 and rows[-1][0].startswith("= ")


def test_the_head_names_both_releases(pair: Page, seen: Seen) -> None:
    (rows,) = seen["sides"]
    told = {row[0]: row[1:] for row in rows}
    assert told["JetPack"] == ["4.6.1", "5.1.2"] and told["cuDNN"] == ["8.2.1", "8.6.0"]
    main = {fact["label"]: fact["values"] for fact in pair.found["facts"] if "." not in fact["key"]}
    assert {name: values for name, values in told.items() if name != "traces"} == main


# ---- the flame graph ---------------------------------------------------------------------------


def function_sums(pair: Page, by: str) -> Dict[str, Tuple[int, int]]:
    cells = {row["name"]: [together(cell) for cell in row["cells"]] for row in pair.view(by)["rows"]}
    return {name: (now, before) for name, (before, now) in cells.items()}


def test_the_flame_graph_adds_up_to_the_total(pair: Page, seen: Seen) -> None:
    frames = seen["flame graph"][0]
    (root,) = [frame for frame in frames if frame[3] is None]
    before, now = map(together, pair.view("owner")["total"]["cells"])
    assert root[1:3] == [now, before]
    outermost = [frame for frame in frames if frame[3] == ""]
    assert [sum(frame[n] for frame in outermost) for n in (1, 2)] == [now, before]


def test_blocks_add_up_too(pair: Page) -> None:
    frames = look(pair.path, ["choose", "#calls .choice:has-text('Show') select", "live blocks"], ["evaluate", FRAMES])[
        1
    ]
    (root,) = [frame for frame in frames if frame[3] is None]
    assert [root[2], root[1]] == [cell["number"] for cell in pair.view("owner")["total"]["cells"]]


def test_frames_have_the_same_name_in_both(pair: Page) -> None:
    """By library, as jm_diff's view: names without the versions that differ."""
    frames = look(pair.path, ["choose", "#calls .choice:has-text('Order') select", "by library"], ["evaluate", FRAMES])[
        1
    ]
    shown = {name: (now, before) for name, now, before, parent in frames if parent == ""}
    assert shown == function_sums(pair, "library")
    assert shown["libcudnn.so"][0] > shown["libcudnn.so"][1] > 0
    names = {frame[0] for frame in frames}
    assert not [name for name in names if re.search(r"\.so\.\d", name)]


def test_bottom_up_begins_with_the_allocating_functions(pair: Page) -> None:
    label = "bottom-up"
    frames = look(pair.path, ["choose", "#calls .choice:has-text('Order') select", label], ["evaluate", FRAMES])[1]
    outer = [frame for frame in frames if frame[3] == ""]
    before, now = map(together, pair.view("owner")["total"]["cells"])
    assert [sum(frame[n] for frame in outer) for n in (1, 2)] == [now, before]
    assert {"cost_take", "cudaMalloc"} <= {frame[0].split(" ")[0] for frame in outer}
    assert "main" not in {frame[0].split(" ")[0] for frame in outer}


def test_red_has_grown_and_blue_has_shrunk(seen: Seen) -> None:
    def hue(fill: str) -> str:
        return fill.rstrip(")").split(" ")[-1]

    grown = seen["flame graph"][1]
    assert {hue(fill) for now, before, fill in grown if now > before} == {"25"}
    assert any(now > before for now, before, _ in grown)
    # The other way round: the older release compared with the newer one.
    shrunk = seen["other way round"][2]
    assert {hue(fill) for now, before, fill in shrunk if now < before} == {"255"}
    assert sorted((now, before) for now, before, _ in shrunk) == sorted((before, now) for now, before, _ in grown)


def test_compared_with_nothing_it_is_a_flame_graph_of_one(pair: Page) -> None:
    frames = look(pair.path, ["choose", "#calls .choice:nth-of-type(2) select", "nothing"], ["evaluate", FRAMES])[1]
    (root,) = [frame for frame in frames if frame[3] is None]
    assert root[1:3] == [together(pair.view("owner")["total"]["cells"][1]), 0]


def test_the_page_can_be_looked_at(pair: Page) -> None:
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390)):
        path = SCREENSHOTS / f"difference-{scheme}-{width}.png"
        overflow = look(
            pair.path,
            ["screenshot", str(path), True],
            ["evaluate", "document.documentElement.scrollWidth - innerWidth"],
            scheme=scheme,
            width=width,
        )[1]
        assert overflow <= 0 and path.stat().st_size > 10000


def test_a_table_is_saved_with_exact_figures(pair: Page, seen: Seen) -> None:
    (saved,) = seen["saved"]
    lines = saved["text"].strip().split("\r\n")
    assert lines[0].startswith("scope,JetPack 4.6.1,JetPack 5.1.2,change")
    names = ["  " * len(row["inside"]) + full_name(row) for row in pair.view("scope")["rows"]]
    assert [line.split(",")[0] for line in lines[1:]] == names


def test_owners_are_explained_beside_what_they_differ_by(seen: Seen) -> None:
    names, told = seen["owners"]
    assert told and dict(told) == {name: OWNERS[name] for name in names if name in OWNERS}


def test_an_owners_part_of_the_flame_graph_is_its_row(pair: Page) -> None:
    row = next(row for row in pair.view("owner")["rows"] if row["name"] == "cudnn")
    before, now = map(together, row["cells"])
    frames, held_then = look(
        pair.path,
        ["choose", "#calls .choice:has-text('Owner') select", "cudnn"],
        ["evaluate", FRAMES],
        ["choose", "#calls .choice:has-text('Memory') select", "device"],
        ["evaluate", FRAMES],
    )[1::2]
    assert frames[0][1:3] == [now, before]
    assert held_then[0][1:3] == [row["cells"][1]["device"], row["cells"][0]["device"]]


def test_a_search_tells_what_was_found(pair: Page) -> None:
    type_ = ["fill", "#calls input[type=search]", "^cost_take .libcudnn"]
    row = next(row for row in pair.view("function")["rows"] if row["name"] == "cost_take (libcudnn.so)")
    found = look(pair.path, type_, ["text", "#calls .tools output"])[1]
    assert size(together(row["cells"][1])) in found


# ---- repeated runs, discrete GPUs, hostile names -----------------------------------------------


def test_repeated_runs_are_medians_and_say_what_is_noise(tmp_path: Path) -> None:
    sides = [
        [held(n * MIB, "8.2.1", 100 * MIB).save(tmp_path, f"{label}{i}") for i, n in enumerate(sizes)]
        for label, sizes in (("old", (40, 44, 41)), ("new", (70, 73, 71)))
    ]
    page = page_of(tmp_path, *sides[0], "--vs", *sides[1])
    heads, rows, frames, said = look(
        page.path,
        ["texts", "#by-owner .table:first-of-type thead th"],
        ["rows", "#by-owner .table:first-of-type tbody"],
        ["evaluate", FRAMES],
        ["text", "#sides"],
    )
    names = [head.strip() for head in heads]
    assert names[:6] == ["owner", "old", "new", "change", "%", "noise"]
    for shown, row in zip(rows, page.view("owner")["rows"]):
        old, new = row["cells"]
        assert shown[:4] == [row["name"], together(old), together(new), together(new) - together(old)]
        assert shown[5] == ("" if new["beyond_noise"] else "within")
    assert {row[5] for row in rows} == {"", "within"}
    (root,) = [frame for frame in frames if frame[3] is None]
    before, now = map(together, page.view("owner")["total"]["cells"])
    assert root[1:3] == [now, before]
    assert "old2" in said and "new2" in said  # the runs of the medians


def test_groups_of_runs_are_columns(tmp_path: Path) -> None:
    traces = []
    for release, sizes in (("32.7.1", (10, 12)), ("35.4.1", (20, 27)), ("36.4.3", (5, 5))):
        for n, n_bytes in enumerate(sizes):
            traces.append(held(n_bytes * MIB, "8", MIB, l4t=release).save(tmp_path, f"{release}-{n}"))
    page = page_of(tmp_path, "--group-by=jetpack", *reversed(traces))
    heads, rows, said = look(
        page.path,
        ["texts", "#by-owner .table:first-of-type thead th"],
        ["rows", "#by-owner .table:first-of-type tbody"],
        ["text", "#sides"],
    )
    labels = ["JetPack 4.6.1", "JetPack 5.1.2", "JetPack 6.2"]
    assert [head.strip() for head in heads[:4]] == ["owner", *labels]
    cudnn = next(row for row in rows if row[0] == "cudnn")
    assert cudnn[1:4] == [n * MIB for n in (10, 20, 5)]
    assert all(f"{release}-1" in said for release in ("32.7.1", "35.4.1", "36.4.3"))


def test_of_more_columns_the_change_is_from_the_first_to_the_last(tmp_path: Path) -> None:
    traces = [held(n * MIB, "8", 100 * MIB).save(tmp_path, str(n)) for n in (10, 30, 20)]
    page = page_of(tmp_path, *traces)
    rows, said = look(page.path, ["rows", "#by-owner .table:first-of-type tbody"], ["text", "#sides"])
    assert without_text(rows) == narrow(page.view("owner"), 2, 0)
    assert "Change is from the first column to the last." in said


def test_of_a_discrete_gpu_either_memory_has_tables_of_its_own(tmp_path: Path) -> None:
    traces = [small_training_run("discrete").save(tmp_path, name) for name in ("one", "two")]
    page = page_of(tmp_path, *traces)
    captions, device, frames = look(
        page.path,
        ["texts", "#by-owner h3"],
        ["rows", "#by-owner .table:nth-of-type(2) tfoot"],
        ["evaluate", FRAMES],
    )
    assert captions[:2] == [f"By owner, at the peak: {space} memory" for space in ("host", "device")]
    total = page.view("owner")["total"]["cells"][1]["device"]
    assert device[0][1:3] == [total, total] and total
    (root,) = [frame for frame in frames if frame[3] is None]
    assert root[1:3] == [total, total]  # of the device, never both


def hostile(n_bytes: int, name: str) -> Trace:
    trace = held(n_bytes, "8", 5)
    trace.lines = [line.replace("cudnnCreate", name) if line.startswith("s ") else line for line in trace.lines]
    return trace


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "q" * 100000])
def test_names_are_text(tmp_path: Path, name: str) -> None:
    traces = [hostile(n * MIB, name).save(tmp_path, str(n)) for n in (10, 30)]
    page = page_of(tmp_path, *traces)
    visited = visit(page.path, ["text", "#by-function"], ["count", "img"])
    assert visited.trouble == [] and visited.results[1] == 0
    assert name[:60] in visited.results[0]
    assert page.path.stat().st_size < 1 << 20


def test_without_the_built_page_it_says_how_to_build_it(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(html, "ASSETS", str(tmp_path))
    done = jm_diff("--format=html", "old", "new")
    assert done.status == 2 and "make page" in done.err and done.err.count("\n") == 1
