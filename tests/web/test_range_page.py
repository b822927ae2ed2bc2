# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory between two moments on the page: of a program that prints its truth to the byte, and of real runs as the trace has it."""

from pathlib import Path
from typing import Any, Dict, List

import pytest

from tests.harness import ROOT, record
from tests.tool.programs import program
from jmassif.units import moment
from tests.web.browser import SCREENSHOTS, look
from tests.web.pages import Page, owners, page_of


def chosen(page: Page, first: int, second: int, by: str = "owner") -> List[List[Any]]:
    """Steps that choose two snapshots, by their index."""

    def to_choose(which: int, index: int) -> List[Any]:
        snapshot = page.profile.snapshots[index]
        label = f"snapshot {snapshot.id}, {moment(snapshot.time, page.profile.time_unit)}"
        return ["choose", f"#range label:nth-child({which}) select", {"label": label}]

    # Whichever moment is chosen at first, the later one of two is the second.
    steps = [to_choose(2, second), to_choose(1, first), to_choose(2, second)]
    return [*steps, ["choose", "#range label:nth-child(3) select", by], ["rows", "#range table"]]


def figures(rows: List[List[Any]]) -> Dict[str, Dict[str, int]]:
    """By name and head of a column."""
    heads = [str(head).strip(" ▾▴") for head in rows[0]]
    return {row[0]: {head: int(n or 0) for head, n in zip(heads[1:], row[1:])} for row in rows[1:]}


def test_a_range_of_a_program_that_knows_is_right_to_the_byte(tmp_path: Path) -> None:
    recording = record([program("range.c", f"-I{ROOT / 'jmassif'}", "-O0", "-g")])
    page = page_of(tmp_path, recording.trace)
    first, second = (mark.snapshot or 0 for mark in page.profile.marks)
    *_, rows, _, _ = look(
        page.path,
        *chosen(page, first, second, "line"),
        ["evaluate", "document.querySelector('#range').scrollIntoView()"],
        ["screenshot", str(SCREENSHOTS / "range.png")],
    )
    shown = figures(rows)
    for line in recording.stdout.splitlines():
        name, new, gone, both = line.split()  # bytes of blocks of one end or of neither
        found = [shown[place] for place in shown if place.startswith(f"{name} (")]
        row = found[0] if found else {"allocated": 0, "freed": 0, "change": 0}
        allocated, freed = int(new) + int(both), int(gone) + int(both)
        assert (row["allocated"], row["freed"], row["change"]) == (allocated, freed, allocated - freed), name


@pytest.mark.parametrize("ends", [(0, -1), (2, -2), (3, 9)])
def test_a_range_of_a_real_run_adds_up(training: Page, ends: List[int]) -> None:
    profile = training.profile
    first, second = (index % len(profile.snapshots) for index in ends)
    *_, rows = look(training.path, *chosen(training, first, second))
    shown = figures(rows)
    before, after = (owners(profile, profile.composition(index)) for index in (first, second))
    for name in set(before) | set(after):
        row = shown[name]
        assert [row["before"], row["after"]] == [of.get(name, [0, 0, 0])[2] for of in (before, after)], name
        assert row["before"] + row["allocated"] - row["freed"] == row["after"] and row["allocated"] >= 0, name
