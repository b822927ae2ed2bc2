# SPDX-License-Identifier: GPL-2.0-or-later
"""A range from one moment to another, on programs that know and print what became of their memory in between."""

from typing import Dict, NamedTuple

import pytest

from jmassif.model.profile import Profile
from jmassif.questions.between import Range, RangeRow, between, rows_of
from jmassif.questions.flows import Flow
from tests import harness
from tests.tool.programs import program


class Truth(NamedTuple):
    new: int
    freed: int
    passing: int


def told_by(recording: harness.Recording) -> Dict[str, Truth]:
    rows = [line.split() for line in recording.stdout.splitlines()]
    return {name: Truth(*map(int, figures)) for name, *figures in rows}


def by_function(profile: Profile, found: Range) -> Dict[str, Flow]:
    """What is told of heap memory, by the innermost function."""

    def name(account: int) -> str:
        node, kind, _ = profile.accounts[account]
        return profile.frame(profile.node_frame[node]).function if node and kind == "heap" else ""

    return {row.name: row.both for row in rows_of(profile, found, name)}


def recorded(*options: str, argument: str = "") -> harness.Recording:
    compiled = program("range.c", f"-I{harness.ROOT / 'jmassif'}", "-O0")
    return harness.record([compiled] + ([argument] if argument else []), options)


@pytest.mark.parametrize("argument", ["", "churn"])
def test_with_records_of_all_blocks_a_range_is_exact(argument: str) -> None:
    # When a program that allocates and frees between two marks is recorded with a record of each block,
    recording = recorded("--large=0", argument=argument)
    found = by_function(recording.profile, between(recording.profile, "first", "second"))
    # Then of each function it is told to the byte what is new, what is gone and what passed, and nothing is uncertain.
    for name, truth in told_by(recording).items():
        flow = found.get(name, Flow())
        assert (flow.new, flow.freed, flow.passing, flow.uncertain, flow.untold) == (*truth, 0, 0), name


def test_without_records_the_bounds_hold_the_truth() -> None:
    # When no block has a record,
    recording = recorded("--large=1GiB")
    found = by_function(recording.profile, between(recording.profile, "first", "second"))
    for name, truth in told_by(recording).items():
        flow = found.get(name, Flow())
        # then what is told is no more than what was, and with what is uncertain no less.
        assert flow.new <= truth.new <= flow.new + flow.uncertain, name
        assert flow.freed <= truth.freed <= flow.freed + flow.uncertain, name
        assert flow.passing <= truth.passing <= flow.passing + flow.uncertain, name
        # A place that only allocates, or only frees, is exact all the same.
        if name in ("stays", "comes", "goes"):
            assert flow.uncertain == 0, name
            assert (flow.new, flow.freed, flow.passing) == truth, name
    # And of a place that does both it is said that it cannot be known.
    assert found["changes"].uncertain
