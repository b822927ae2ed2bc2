# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory between two moments on the page: of a program that prints its truth to the byte, and of real runs as the trace has it."""

from pathlib import Path
from typing import Any, Dict, List

import pytest

from tests.harness import ROOT, record
from tests.tool.programs import program
from tests.web.browser import look
from tests.web.pages import Page, owners, page_of


def between(page: Page, first: int, second: int, by: str) -> Dict[str, Dict[str, int]]:
    """The owners' table of two snapshots, by their index."""
    ids = [page.profile.snapshots[index].id for index in (second, first)]
    fragment = f"at={ids[0]}&with={ids[1]}&owners.by={by}&tab=by-owner"
    more = ["evaluate", "document.querySelectorAll('#owners .more').forEach((more) => more.hidden || more.click())"]
    return figures(look(page.path, more, ["rows", "#owners table"], fragment=fragment, tabs=False)[1])


def figures(rows: List[List[Any]]) -> Dict[str, Dict[str, int]]:
    """By name and head of a column."""
    heads = [str(head).strip(" ▾▴") for head in rows[0]]
    return {
        row[0]: {head: int(n) for head, n in zip(heads[1:], row[1:]) if isinstance(n, (int, float))} for row in rows[1:]
    }


def test_a_range_of_a_program_that_knows_is_right_to_the_byte(tmp_path: Path) -> None:
    recording = record([program("range.c", f"-I{ROOT / 'jmassif'}", "-O0", "-g")])
    page = page_of(tmp_path, recording.trace)
    first, second = (mark.snapshot or 0 for mark in page.profile.marks)
    shown = between(page, first, second, "site")
    for line in recording.stdout.splitlines():
        name, new, gone, both = line.split()  # bytes of blocks of one end or of neither
        found = [shown[place] for place in shown if place.startswith(f"{name} (")]
        row = found[0] if found else {"allocated since": 0, "freed since": 0, "change": 0}
        allocated, freed = int(new) + int(both), int(gone) + int(both)
        assert (row["allocated since"], row["freed since"], row["change"]) == (
            allocated,
            freed,
            allocated - freed,
        ), name


@pytest.mark.parametrize("ends", [(0, -1), (2, -2), (3, 9)])
def test_a_range_of_a_real_run_adds_up(training: Page, ends: List[int]) -> None:
    profile = training.profile
    first, second = (index % len(profile.snapshots) for index in ends)
    shown = between(training, first, second, "owner")
    before, after = (owners(profile, profile.composition(index)) for index in (first, second))
    for name in set(before) | set(after):
        row = shown[name]
        assert [row["before"], row["total"]] == [of.get(name, [0, 0, 0])[2] for of in (before, after)], name
        assert row["before"] + row["allocated since"] - row["freed since"] == row["total"], name
        assert row["allocated since"] >= 0, name
