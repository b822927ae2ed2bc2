# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine over time: the figures are the model's, and the plot shows the span of the timeline."""

from pathlib import Path
from typing import Any, Dict, List

import pytest

from jmassif.analysis.moments import select
from jmassif.analysis.system import machine
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from tests.reporter.test_machine import trace
from tests.reporter.traces import small_training_run
from tests.web.browser import look, visit, write_page
from tests.web.pages import WHOLE_RUN, Page

MIB = 1 << 20
ROWS = ["rows", "#machine tbody"]


def expected(profile: Profile, time: int) -> Dict[str, List[Any]]:
    """By figure: at first, at the moment, at last, at worst, when."""
    return {
        row.label: ["" if n is None else n for n in (row.first, row.chosen, row.last, row.worst, row.worst_at)]
        for row in machine(profile, time)
    }


def shown(rows: List[List[Any]]) -> Dict[str, List[Any]]:
    return {row[0]: row[1:] for row in rows}


def test_the_figures_are_those_of_the_moment(training: Page) -> None:
    profile = training.profile
    at_peak, _, at_end = look(training.path, ROWS, ["click", ".moment button:text-is('End')"], ROWS)
    peak, end = (select(profile, name) for name in ("peak", "end"))
    assert "available" in shown(at_peak)
    assert shown(at_peak) == expected(profile, peak.time)
    assert shown(at_end) == expected(profile, end.time)


@pytest.fixture(scope="module", name="small")
def fixture_small(tmp_path_factory: Any) -> Path:
    """From 0 to 20 ms; short of memory at 10."""
    directory = tmp_path_factory.mktemp("machine")
    return write_page(directory, trace("low-memory").save(directory))


def test_what_was_said_last_holds_and_the_worst_is_found(small: Path) -> None:
    rows, note = look(small, ROWS, ["text", "#machine .table .above .quiet"])
    assert shown(rows) == {
        "available": [3000 * MIB, 100 * MIB, 2000 * MIB, 100 * MIB, 10],
        # More in use than the limit is nothing left.
        "left of the control group's limit": [1500 * MIB, 0, 0, 0, 10],
        "this process, with profiler": [7 * MIB, "", 7 * MIB, 7 * MIB, 20],
    }
    assert note == "with 4.00 GiB of memory; memory ran short at 10 ms"


def test_a_click_below_the_timeline_chooses_a_moment_too(small: Path) -> None:
    _, _, chosen, _, compared = look(
        small,
        WHOLE_RUN,
        ["pick", ".machine .u-over", 0.999],
        ["text", "#chosen"],
        ["pick", ".machine .u-over", 0.001, ["Shift"]],
        ["text", ".comparison"],
    )
    assert chosen.startswith("snapshot 3, 20 ms")
    assert compared.startswith("vs. snapshot 1, 0 ms")


def test_plots_show_one_span(small: Path) -> None:
    """What was dragged over begins at 12 ms: nearest to its left edge is 10, and of the whole it is 0."""
    _, _, _, enlarged, _, _, whole = look(
        small,
        WHOLE_RUN,
        ["drag", "#timeline .plot .u-over", 0.6, 0.9],
        ["pick", ".machine .u-over", 0.01],
        ["text", "#chosen"],
        WHOLE_RUN,
        ["pick", ".machine .u-over", 0.01],
        ["text", "#chosen"],
    )
    assert (enlarged, whole) == ("peak, 10 ms", "snapshot 1, 0 ms")


def test_without_figures_there_is_no_plot_of_the_machine(tmp_path: Path) -> None:
    visited = visit(write_page(tmp_path, small_training_run().save(tmp_path)), ["count", ".machine"])
    assert visited.results == [0]


def test_a_sum_of_processes_has_the_machine_and_no_process(tmp_path: Path) -> None:
    """Two of them, of which each told of itself."""
    paths = []
    for pid in (1, 2):
        made = trace()
        made.lines[1:1] = [f"m pid {pid}", "m start-unix-ms 1000", "m host board"]
        paths.append(made.save(tmp_path, f"jmassif.out.{pid}"))
    profile = load_file(str(paths[0]))
    assert "this process, with profiler" in expected(profile, 20)
    (rows,) = look(write_page(tmp_path, *paths), ROWS)
    assert set(shown(rows)) == {"available", "left of the control group's limit"}
