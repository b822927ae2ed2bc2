# SPDX-License-Identifier: GPL-2.0-or-later
"""The graph of characters."""

from jmassif.render.graph import Point, draw, one_pool, timeline_points
from tests.reporter.traces import Trace


def test_host_is_below_device_and_a_level_stays_until_the_next_sample() -> None:
    points = [Point(0, 0, 0, 0), Point(2, 4, 0, 4), Point(5, 2, 2, 4), Point(9, 1, 0, 1)]
    assert draw(points, 10, 4, "ms", "peak") == [
        "            v peak",
        "      4 B^  :::@@@@",
        "         |  :::@@@@",
        "         |  :::::::",
        "         |  ::::::::",
        "        0+--------->",
        "          0 ms  9 ms",
    ]


def test_what_was_reached_between_two_samples_shows_above_the_bar() -> None:
    lines = draw([Point(0, 1, 0, 1), Point(1, 1, 0, 4), Point(3, 1, 0, 1)], 4, 4, "ms", "peak")
    assert lines[1:5] == ["      4 B^ '", "         | '", "         | '", "         |::::"]


def test_what_was_reached_counts_wherever_in_the_column_it_was() -> None:
    points = [Point(0, 1, 0, 4), Point(1, 2, 0, 2), Point(40, 1, 0, 1)]
    assert [line[10:11] for line in draw(points, 4, 4, "ms", "peak")[1:5]] == ["'", "'", ":", ":"]


def test_a_spike_within_a_column_is_not_lost() -> None:
    points = [Point(time, 100 if time == 5001 else 1, 0, 1) for time in range(10_000)]
    points[5001] = Point(5001, 100, 0, 100)
    lines = draw(points, 10, 4, "ms", "peak")
    assert [line.count(":") for line in lines[1:5]] == [1, 1, 1, 10]


def test_the_caption_stands_where_there_is_room() -> None:
    points = [Point(0, 1, 0, 1), Point(9, 4, 0, 4)]
    assert draw(points, 10, 4, "ms", "top")[0] == "               top v"


def test_memory_that_is_there_at_all_shows() -> None:
    lines = draw([Point(0, 1, 0, 1), Point(9, 100000, 0, 100000)], 4, 4, "ms", "top")
    assert lines[4] == "         |::::"


def test_one_pool_alone() -> None:
    points = [Point(0, 3, 5, 9)]
    assert one_pool(points, "host") == [Point(0, 3, 0, 3)]
    assert one_pool(points, "device") == [Point(0, 0, 5, 5)]


def test_a_run_without_extent_or_memory_can_be_drawn() -> None:
    assert draw([Point(7, 0, 0, 0)], 12, 4, "ms", "top") == [
        "          v top",
        "      0 B^",
        "         |",
        "         |",
        "         |",
        "        0+----------->",
        "          7 ms    7 ms",
    ]


def test_the_peak_is_a_point_of_the_timeline() -> None:
    trace = Trace()
    heap = trace.account("heap", "app")
    trace.totals(1, 10, 0)
    trace.snapshot(9, "time", {heap: (10, 1)}, {"total": (5, {heap: (70, 1)})})
    assert timeline_points(trace.load()) == [Point(1, 10, 0, 10), Point(5, 70, 0, 70), Point(9, 10, 0, 10)]
