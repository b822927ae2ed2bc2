# SPDX-License-Identifier: GPL-2.0-or-later
"""Down into the flame graph: a frame enlarged, the way back, and what else the page has of it."""

from pathlib import Path
from typing import Any, List

import pytest

from tests.reporter.traces import Trace
from tests.web.browser import SCREENSHOTS, look, write_page

TRAIL = "#calls .trail p:first-child"
LINKS = "#calls .trail .links a"
MIB = 1 << 20


def made() -> Trace:
    """main calls load (of which there are two callers) and train; train.py:7 calls a native function."""
    trace = Trace(time_unit="ms", memory="unified", command="python3 train.py")
    trace.group("yours", "app")
    python = ["py main (/home/u/train.py:30)"]
    load = trace.account("heap", "app", ["malloc_site (a.c:1)", "py load (/home/u/train.py:3)"] + python)
    step = trace.account("heap", "app", ["malloc_site (a.c:1)", "py step (/home/u/train.py:7)"] + python)
    deep = trace.account("heap", "app", ["deep (b.c:2)", "helper (b.c:9)", "py step (/home/u/train.py:7)"] + python)
    trace.snapshot(1, "time", {load: (6 * MIB, 6)})
    trace.snapshot(2, "exit", {load: (1 * MIB, 1), step: (2 * MIB, 2), deep: (5 * MIB, 1)}, {"total": (2, {})})
    trace.lines.append("Z 3 exit 0")
    return trace


@pytest.fixture(scope="module", name="page")
def fixture_page(tmp_path_factory: Any) -> Path:
    directory: Path = tmp_path_factory.mktemp("page")
    return write_page(directory, made().save(directory))


def key(name: str) -> List[str]:
    return ["press", ".flame", name]


DOWN, ENTER = key("ArrowDown"), key("Enter")
STEP = [DOWN, DOWN, ENTER]  # the widest: main, step
WIDE = "#calls .flame .focused rect"


def test_a_trail_tells_where_the_reader_is_and_leads_back(page: Path) -> None:
    steps = [["text", "#calls"], *STEP, ["text", TRAIL], DOWN, ENTER, ["text", TRAIL]]
    steps += [["click", "#calls .trail button:text-is('train.py:30 (main)')"], ["text", TRAIL]]
    steps += [["click", "#calls .trail button:text-is('all')"], ["count", "#calls .trail:visible"]]
    results = look(page, *steps)
    begin, step, deeper, up, gone = (results[i] for i in (0, 4, 7, 9, 11))
    assert "›" not in begin and gone == 0
    assert step == "all › train.py:30 (main) › train.py:7 (step)"
    assert deeper == f"{step} › helper (b.c:9)" and up == "all › train.py:30 (main)"


def test_back_is_what_was_enlarged_before(page: Path) -> None:
    back = ["click", "#calls button:text-is('Zoom out')"]
    steps = [*STEP, DOWN, ENTER, key("Backspace"), ["text", TRAIL], DOWN, ENTER, back, ["text", TRAIL], back]
    results = look(page, *steps, ["count", "#calls .trail:visible"], ["attributes", "#calls .tools button", "disabled"])
    assert results[6] == results[10] == "all › train.py:30 (main) › train.py:7 (step)"
    assert results[12] == 0 and results[13][:2] == ["", ""]


def test_an_enlarged_frame_stays_so_at_another_moment_and_is_as_wide_as_all(page: Path) -> None:
    load = ["click", "#calls .flame g:has-text('train.py:3 (load)')"]
    results = look(page, load, ["attributes", WIDE, "width"], ["click", ".moment button >> nth=0"], ["text", TRAIL])
    assert results[3] == "all › train.py:30 (main) › train.py:3 (load)"
    assert float(results[1][0]) > 1000


def test_a_link_leads_to_the_callers_and_callees_of_the_frame(page: Path) -> None:
    results = look(
        page,
        *STEP,
        ["click", f"{LINKS}:text-is('Callers and callees')"],
        ["evaluate", "document.querySelector('#callers-callees input').value"],
        ["rows", "#callers-callees .table:nth-of-type(1) tbody"],
        ["evaluate", "document.querySelector('#callers-callees').getBoundingClientRect().top < innerHeight"],
    )
    assert results[4] == "train.py:7 (step)" and results[6] is True
    assert "train.py:30 (main)" in str(look(page, *STEP, ["click", LINKS], ["text", "#callers-callees"])[-1])


def test_a_link_leads_to_the_line_in_the_table_and_only_lines_have_it(page: Path) -> None:
    line = ["click", f"{LINKS}:text-is('In the table of Python lines')"]
    results = look(page, *STEP, line, ["rows", "#lines tbody"], DOWN, ENTER, ["texts", LINKS])
    assert [row[0] for row in results[4]] == ["train.py:7"]
    assert results[7] == ["Callers and callees"]


def test_a_search_goes_on_in_what_is_enlarged(page: Path) -> None:
    found = look(page, ["fill", "#calls input[type=search]", "deep"], *STEP, ["text", "#calls .tools output"])[-1]
    assert found == "1 match: 5.00 MiB, 62.5 %"


def test_axe_finds_nothing_wrong_with_an_enlarged_frame(page: Path) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    shot = ["screenshot", str(SCREENSHOTS / "drill-down.png")]
    scroll = ["evaluate", "document.querySelector('#calls').scrollIntoView()"]
    assert look(page, *STEP, ["axe"], scroll, shot)[3] == []
