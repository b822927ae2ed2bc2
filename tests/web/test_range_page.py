# SPDX-License-Identifier: GPL-2.0-or-later
"""What the page tells of two moments: of a program that prints its truth to the byte, and of real runs what jm_print tells."""

from pathlib import Path
from typing import Any, Dict, List

import pytest

from jmassif.analysis.range_diff import between, rows_of
from tests.harness import ROOT, record
from tests.tool.programs import program
from tests.tool.test_range import printed_by
from tests.web.browser import SCREENSHOTS, look
from tests.web.pages import Page, page_of


def chosen(page: Page, first: int, second: int, by: str = "owner") -> List[List[Any]]:
    """Steps that choose two snapshots, by their index."""

    def label(index: int) -> str:
        return f"snapshot {page.profile.snapshots[index].id},"

    find = "[...document.querySelectorAll('#range select.to option')].findIndex((o) => o.text.startsWith('%s'))"
    choose = """(() => {
        for (const [which, index] of [['from', %s], ['to', %s]]) {
            const select = document.querySelector(`#range select.${which}`);
            select.selectedIndex = index;
        }
        document.querySelector('#range select.to').dispatchEvent(new Event('change'));
    })()""" % (
        find % label(first),
        find % label(second),
    )
    return [["evaluate", choose], ["choose", "#range label:nth-child(3) select", by], ["rows", "#range table"]]


def figures(rows: List[List[Any]]) -> Dict[str, Dict[str, int]]:
    """By name and head of a column."""
    heads = [str(head).strip(" ▾▴") for head in rows[0]]
    return {row[0]: {head: int(n or 0) for head, n in zip(heads[1:], row[1:])} for row in rows[1:]}


def test_a_range_of_a_program_that_knows_is_right_to_the_byte(tmp_path: Path) -> None:
    # When a program is recorded with a record of each block, and two of its marks are chosen on the page,
    recording = record([program("range.c", f"-I{ROOT / 'jmassif'}", "-O0", "-g")], ["--large=0"])
    page = page_of(tmp_path, recording.trace)
    first, second = (mark.snapshot or 0 for mark in page.profile.marks)
    *_, rows, _, _ = look(
        page.path,
        *chosen(page, first, second, "line"),
        ["evaluate", "document.querySelector('#range').scrollIntoView()"],
        ["screenshot", str(SCREENSHOTS / "range.png")],
    )
    told = figures(rows)
    # then of each function what is new, gone and passed is what it prints.
    for name, truth in printed_by(recording).items():
        found = [told[place] for place in told if place.startswith(f"{name} (")]
        row = found[0] if found else {}
        assert (row.get("new", 0), row.get("freed", 0), row.get("passing", 0)) == truth, name
        assert not row.get("uncertain"), name


@pytest.mark.parametrize("ends", [(0, -1), (2, -2), (3, 9)])
def test_a_range_of_a_real_run_is_what_the_text_has(training: Page, ends: List[int]) -> None:
    profile = training.profile
    first, second = (index % len(profile.snapshots) for index in ends)
    *_, rows = look(training.path, *chosen(training, first, second))
    told = figures(rows)
    ids = [str(profile.snapshots[index].id) for index in (first, second)]
    expected = rows_of(profile, between(profile, *ids), lambda account: profile.accounts[account].owner)
    for row in expected:
        flow = row.both
        if any(flow):
            shown = told[row.name]
            assert [shown["held before"], shown["held after"]] == [flow.before, flow.after], row.name
            assert shown["new"] + shown["passing"] + shown.get("uncertain", 0) == flow.allocated, row.name
