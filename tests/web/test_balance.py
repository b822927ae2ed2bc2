# SPDX-License-Identifier: GPL-2.0-or-later
"""The balance of the whole machine on the page: the figures are the model's, and they add up."""

from pathlib import Path
from typing import Dict

import pytest

from jmassif.analysis.balance import memory_balance, fullest, sampled, ledger_of_balance
from jmassif.model.run import Profile
from jmassif.units import size
from tests.reporter.test_reconciliation import LATER, trace as traced
from tests.web.browser import look, visit, write_page
from tests.web.pages import Shown, kept_page, train

ROWS = ["rows", "#balance tbody"]  # name, bytes, share, what it is
# After the owners; those of the machine are of it only, and "used before the run" stands first.
PROCESS = ["allocated, never written", "free inside malloc", "profiler overhead", "unexplained"]
MACHINE = ["used by others since", "freed by others since", "available"]


@pytest.fixture(scope="module", name="training")
def fixture_training() -> Shown:
    page = kept_page("balance", train("--pages=yes").traces)
    return Shown(page.path, page.profile)


def expected(profile: Profile, snapshot: int) -> Dict[str, int]:
    made = memory_balance(profile, snapshot)
    rows = {row.name: row.bytes for row in ledger_of_balance(profile, made).owners if row.bytes}
    return {
        "used before the run": made.before,
        **rows,
        **dict(zip(PROCESS, (made.untouched, made.allocators, made.valgrind, made.unaccounted))),
        MACHINE[made.elsewhere < 0]: made.elsewhere,
        "available": made.free,
    }


def test_the_steps_lead_from_what_was_there_to_what_is_free(training: Shown) -> None:
    profile = training.profile
    snapshot = fullest(profile, profile.peaks["total"].time)
    assert snapshot is not None
    rows, total, said = look(training.page, ROWS, ["text", "#balance tfoot"], ["text", "#balance .above"])
    wanted = expected(profile, snapshot)
    names = [row[0] for row in rows]
    assert {row[0]: row[1] for row in rows} == wanted
    assert names[0] == "used before the run" and names[-6:-2] == PROCESS and names[-1] == "available"
    assert sum(wanted.values()) == memory_balance(profile, snapshot).board
    assert size(memory_balance(profile, snapshot).board) in total
    assert f"snapshot {profile.snapshots[snapshot].id}" in said


def test_another_moment_has_another_balance(training: Shown) -> None:
    profile = training.profile
    last = sampled(profile)[-1]
    (rows,) = look(training.page, ["click", ".moment button:text-is('End')"], ROWS)[1:]
    assert {row[0]: row[1] for row in rows}["available"] in {
        memory_balance(profile, snapshot).free for snapshot in sampled(profile)
    }
    assert last != fullest(profile, profile.peaks["total"].time)


def test_what_is_doubtful_is_said(tmp_path: Path) -> None:
    path = traced({**LATER, "resident-valgrind": 40, "mem-available": 2500}).save(tmp_path)
    texts, rows = look(write_page(tmp_path, path), ["texts", "#balance .doubt"], ROWS)
    assert len(texts) == 2 and texts[0].startswith("45.0 MiB is unexplained")
    assert [row[0] for row in rows if row[1] < 0] == ["allocated, never written"]


def test_what_is_taken_away_is_negative(tmp_path: Path) -> None:
    path = traced({**LATER, "resident-heap": 60}).save(tmp_path)
    (rows,) = look(write_page(tmp_path, path), ROWS)
    away = [(row[0], row[3]) for row in rows if row[1] < 0]
    assert away == [
        ("allocated, never written", "taken away: it has no pages"),
        ("freed by others since", ""),
    ]


def test_a_run_without_them_has_no_such_section(tmp_path: Path) -> None:
    path = traced({"mem-available": 2760}).save(tmp_path)
    visited = visit(write_page(tmp_path, path), ["count", "#balance:not([hidden])"])
    assert visited.results == [0]
