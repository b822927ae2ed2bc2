# SPDX-License-Identifier: GPL-2.0-or-later
"""A range from one moment to another, on programs that know and print what became of their memory in between."""

from pathlib import Path
from typing import Dict, NamedTuple, Tuple

import pytest

from jmassif.analysis.processes import join
from jmassif.analysis.processes_range import job_range
from jmassif.analysis.range_diff import Flow, Range, RangeRow, between, rows_of
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
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


def test_a_range_over_processes_is_exact_of_each_and_in_sum() -> None:
    # Given a process with three forked children, of which one was there before the range, one ended in it, and all free what they inherited,
    compiled = program("range_processes.c", f"-I{harness.ROOT / 'jmassif'}", "-O0")
    recording = harness.record([compiled], ["--large=0"])
    truths: Dict[Tuple[int, str], Tuple[int, ...]] = {}
    for line in recording.stdout.splitlines():
        pid, function, *figures = line.split()
        truths[int(pid), function] = tuple(map(int, figures))
    assert len(truths) == 12 and len(recording.traces) == 4
    # when a range is asked for by the marks of the first process,
    job = join([(trace.name, load_file(str(trace))) for trace in recording.traces])
    found = job_range(job, "first", "second")
    sums: Dict[str, Flow] = {}
    for part in found.parts:
        profile = part.process.profile

        def function_of(account: int, profile: Profile = profile) -> str:
            node, kind, _ = profile.accounts[account]
            return profile.frame(profile.node_frame[node]).function if node and kind == "heap" else ""

        rows = {row.name: row.both for row in part.rows(function_of)}
        for function in ("pool", "comes", "passes"):
            flow, truth = rows.get(function, Flow()), truths[part.process.pid, function]
            # then each process has to the byte what it has itself held, got, freed and passed,
            assert (flow.before, flow.new, flow.freed, flow.passing) == truth, (part.process.pid, function)
            assert (flow.uncertain, flow.untold, flow.after) == (0, 0, truth[0] + truth[1] - truth[2])
            sums[function] = sums.get(function, Flow()).plus(flow)
    # and so has their sum.
    for function, flow in sums.items():
        told = [sum(figures) for figures in zip(*(truth for (_, of), truth in truths.items() if of == function))]
        assert [flow.before, flow.new, flow.freed, flow.passing] == told
    text = harness.run([harness.ROOT / "reporter" / "jm_print", "--from=first", "--to=second", *recording.traces])
    (row,) = [line for line in text.stdout.splitlines() if line.startswith("comes (")]
    assert f" {sums['comes'].new:,} " in row


SCRIPT = """
import sys

import jmassif

N = 60
kept, gone, old, new = [None] * N, [None] * N, [None] * N, [None] * N
truth = {name: [0, 0, 0] for name in ("stays", "comes", "goes", "changes", "passes")}


def stays(n):
    return bytes(n)


def comes(n):
    return bytes(n)


def goes(n):
    return bytes(n)


def changes(n):
    return bytes(n)


def passes(n):
    return sys.getsizeof(bytes(n))


def work():
    for i in range(N):
        kept[i], gone[i], old[i] = stays(100_003 + i), goes(70_001 + 7 * i), None
    for phase in range(2):
        for i in range(0, N, 1 + 2 * phase):
            if phase:
                truth["changes"][1] += sys.getsizeof(old[i])
            old[i] = changes(80_021 + 11 * i + 1000 * phase)
            if phase and i % 2:
                truth["changes"][2] += sys.getsizeof(old[i])
                old[i] = None
            elif phase:
                truth["changes"][0] += sys.getsizeof(old[i])
        if not phase:
            jmassif.mark("first")
    for i in range(N):
        new[i] = comes(90_001 + i)
        truth["comes"][0] += sys.getsizeof(new[i])
        truth["passes"][2] += passes(66_000 + i)
        if i % 4:
            truth["goes"][1] += sys.getsizeof(gone[i])
            gone[i] = None
    jmassif.mark("second")


work()
for name, figures in truth.items():
    print(name, *figures)
"""


def test_a_range_of_a_python_script_is_exact_where_its_blocks_have_records(tmp_path: Path) -> None:
    # When a script makes and drops objects that are all large enough to have records by default,
    script = tmp_path / "work.py"
    script.write_text(SCRIPT)
    recording = harness.record(
        [harness.PYTHON, script], env={"PYTHONPATH": str(harness.ROOT / "reporter"), "PYTHONDONTWRITEBYTECODE": "1"}
    )
    profile, names = recording.profile, Names(recording.profile)
    name_of = naming(profile, names, "python-function")
    told = {row.name.partition(" ")[0]: row for row in rows_of(profile, between(profile, "first", "second"), name_of)}
    # then of each of its functions it is told to the byte, by the sizes that Python has for its objects.
    truths = told_by(recording)
    assert set(truths) == {"stays", "comes", "goes", "changes", "passes"}, recording.stderr
    for name, truth in truths.items():
        flow = told[name].host if name in told else Flow()
        assert (flow.new, flow.freed, flow.passing, flow.uncertain) == (*truth, 0), name
