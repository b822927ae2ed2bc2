# SPDX-License-Identifier: GPL-2.0-or-later
"""What jmassif top draws is a function of what is held and of the screen's size: here without a terminal."""

from typing import Any, List

import pytest

from jmassif.analysis.aggregate import Usage, UsageRow
from jmassif.analysis.ladder import LESS, SUM, Ladder, Rung
from jmassif.live.run import Event, LineUsage, LiveReport, Now, Pool
from jmassif.render.graph import Point
from jmassif.render.layout import Line
from jmassif.render.top import Process, Screen, draw, frame, width_of

MIB = 1 << 20
OWNERS = [
    UsageRow(name, Usage(host * MIB, 0, device * MIB))
    for name, host, device in (("tensor", 0, 600), ("cache", 0, 100), ("python", 200, 0))
]
OWNERS += [UsageRow(f"owner{number}", Usage((20 - number) * MIB)) for number in range(20)]
LINES = [LineUsage(f"train.py:{number} (train)", Usage((100 - number) * MIB), number) for number in range(100)]
RUNGS = [
    Rung("program", SUM, 1200 * MIB),
    Rung("runtime", LESS, 600 * MIB, parts=[("context", 600 * MIB)]),
    Rung("own-code", SUM, 600 * MIB, parts=[("tensor", 600 * MIB)]),
]
REPORT = LiveReport(
    command="python3 train.py",
    pid=4711,
    state="running",
    is_running=True,
    is_pytorch=False,
    unit="ms",
    now=Now(61000, 400 * MIB, 800 * MIB, 1300 * MIB, 60000),
    pools=[Pool("memory", 400 * MIB, 800 * MIB, 400 * MIB, 4000 * MIB)],
    owners=OWNERS,
    ladders=[Ladder("", 61000, None, RUNGS, {})],
    lines=LINES,
    events=[Event(1000, "mark: one"), Event(2000, "out of memory: cudaMalloc, 512 MiB asked for", True)],
)
POINTS = [Point(at * 1000, at * MIB, at * 2 * MIB, at * 3 * MIB) for at in range(61)]
SCREEN = Screen(REPORT, POINTS)
SEVERAL = SCREEN._replace(processes=[Process(4711 + n, n * MIB, f"running: process {n}") for n in range(9)])
EMPTY = Screen(REPORT._replace(owners=[], lines=[], events=[]), [])


def of(**fields: Any) -> Screen:
    """The screen of a report with other fields."""
    return SCREEN._replace(report=REPORT._replace(**fields))


def text(lines: List[Line]) -> str:
    return "\n".join(lines)


@pytest.mark.parametrize(
    "screen",
    [SCREEN, SEVERAL, EMPTY],
)
@pytest.mark.parametrize(
    "width, height", [(80, 24), (200, 60), (79, 23), (40, 10), (20, 5), (10, 3), (1, 1), (80, 2), (300, 7)]
)
def test_it_fits_any_screen(screen: Screen, width: int, height: int) -> None:
    lines = draw(screen, width, height)
    assert len(lines) <= height and all(width_of(line) <= width for line in lines)
    # What is drawn is the parts.
    assert all("".join(part for part, _ in line.parts) == line for line in lines)


def test_wide_characters_count_twice() -> None:
    screen = of(command="訓練" * 50, lines=[LineUsage("重み" * 50, Usage(MIB), 0)], events=[Event(1, "印" * 80)])
    lines = draw(screen, 80, 24)
    assert "訓練" in text(lines) and "重み" in text(lines) and all(width_of(line) <= 80 for line in lines)


def test_everything_that_was_asked_for_is_in_80_by_24() -> None:
    shown = text(draw(SCREEN, 80, 24))
    for words in (
        "4711",
        "python3 train.py",
        "running",
        "1 min 01 s",
        "host 400 MiB",
        "device 800 MiB",
        "others 400 MiB",
    ):
        assert words in shown
    for words in (
        "free 2.34 GiB of 3.91 GiB",
        "tensor",
        "600 MiB",
        "train.py:0",
        "peak 1.27 GiB at 1 min 00 s",
        "out of memory",
        "q quit",
    ):
        assert words in shown


def test_bars_are_as_long_as_their_shares() -> None:
    bar = draw(SCREEN, 80, 24)[1]
    inside = bar[bar.index("[") + 1 : bar.index("]")]
    assert [inside.count(character) for character in ":@#."] == [7, 14, 7, 42]
    owner = next(line for line in draw(SCREEN, 160, 24) if line.startswith("tensor"))
    inside = owner[owner.index("[") + 1 : owner.index("]")]
    whole = sum(row.bytes for row in OWNERS)
    assert abs(inside.count("@") - len(inside) * 600 * MIB / whole) <= 1 and inside.count(":") == 0


def test_what_is_there_at_all_shows_in_a_bar() -> None:
    bar = draw(of(pools=[Pool("memory", 1, 1, 1, 1 << 40)]), 80, 24)[1]
    assert [bar.count(character) for character in ":@#"] == [1, 1, 1]


def test_owners_that_do_not_fit_are_one_row_and_nothing_is_lost() -> None:
    lines = draw(of(events=[]), 50, 30)
    rows = [line for line in lines if " smaller" in line]
    assert len(rows) == 1
    n = int(rows[0].split()[0])
    rest = sum(row.bytes for row in OWNERS[len(OWNERS) - n :])
    assert f"{rest / MIB:.0f} MiB" in rows[0]


def test_the_timeline_shows_its_highest_column() -> None:
    spike = [Point(at, 10, 0, 1000 if at == 500 else 10) for at in range(0, 1001, 10)]
    lines = draw(SCREEN._replace(points=spike), 80, 24)
    above = [line for line in lines if "'" in line]
    assert above and len({line.index("'") for line in above}) == 1


def test_lines_scroll() -> None:
    shown = text(draw(SCREEN._replace(offset=50), 80, 24))
    assert "train.py:50 " in shown and "train.py:0 " not in shown


def test_the_newest_event_comes_first_and_a_warning_looks_like_one() -> None:
    lines = draw(SCREEN, 80, 24)
    first, second = (next(line for line in lines if words in line) for words in ("out of memory", "mark: one"))
    assert lines.index(first) < lines.index(second)
    assert ("out of memory: cudaMalloc, 512 MiB asked for", "warning") in first.parts


def test_the_chosen_process_is_in_sight() -> None:
    for chosen in range(9):
        assert f">{4711 + chosen:>8}" in text(draw(SEVERAL._replace(chosen=chosen), 80, 24))


def test_a_frame_that_is_printed_has_no_keys() -> None:
    assert "quit" not in text(frame(SCREEN, 80, 24)) and "train.py:0" in text(frame(SCREEN, 80, 24))


def test_a_pause_is_seen() -> None:
    assert "PAUSED" in draw(SCREEN._replace(is_paused=True), 80, 24)[0]


def test_a_small_screen_keeps_what_matters_most() -> None:
    shown = draw(SCREEN, 80, 4)
    assert "4711" in shown[0] and "[" in shown[1] and len(shown) == 4
