# SPDX-License-Identifier: GPL-2.0-or-later
"""Ranges of programs that print themselves what they allocate and free in between."""

from pathlib import Path
from typing import Dict, List, NamedTuple

import pytest

from jmassif.analysis.range_diff import Change, Range, between
from tests import harness
from tests.tool.programs import program


class Truth(NamedTuple):
    new: int
    freed: int
    passing: int


def printed_by(recording: harness.Recording) -> Dict[str, Truth]:
    rows = [line.split() for line in recording.stdout.splitlines()]
    return {name: Truth(*map(int, figures)) for name, *figures in rows}


def assert_right(change: Change, truth: Truth, name: str) -> None:
    """Bytes allocated and freed in between, and by how much more is held at the end."""
    found = change.allocated, change.freed, change.after - change.before
    assert found == (truth.new + truth.passing, truth.freed + truth.passing, truth.new - truth.freed), name


def by_function(found: Range) -> Dict[str, Change]:
    """Heap memory by the innermost function."""
    profile = found.names.profile

    def name(account: int) -> str:
        node, kind, _ = profile.accounts[account]
        return profile.frame(profile.node_frame[node]).function if node and kind == "heap" else ""

    return {row.name: row.on("") for row in found.rows_of(name)}


@pytest.mark.parametrize("argument, options", [("", []), ("churn", ["--large=0"])])
def test_a_range_between_two_marks_is_exact(argument: str, options: List[str]) -> None:
    # When a program that allocates and frees between two marks is recorded,
    compiled = program("range.c", f"-I{harness.ROOT / 'jmassif'}", "-O0")
    recording = harness.record([compiled] + ([argument] if argument else []), options)
    found = by_function(between(recording.profile, "first", "second"))
    # then each function has to the byte what was allocated and freed in between.
    for name, truth in printed_by(recording).items():
        assert_right(found.get(name, Change()), truth, name)


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


def test_a_range_of_a_python_script_is_exact(tmp_path: Path) -> None:
    # When a script makes and drops objects that are too large for Python's arenas,
    script = tmp_path / "work.py"
    script.write_text(SCRIPT)
    recording = harness.record(
        [harness.PYTHON, script], env={"PYTHONPATH": str(harness.ROOT / "reporter"), "PYTHONDONTWRITEBYTECODE": "1"}
    )
    found = between(recording.profile, "first", "second")
    rows = {row.name.partition(" ")[0]: row for row in found.rows("python-function", True)}
    # then each of its functions has to the byte what it allocated and freed, by the sizes that Python has for its objects.
    truths = printed_by(recording)
    assert set(truths) == {"stays", "comes", "goes", "changes", "passes"}, recording.stderr
    for name, truth in truths.items():
        assert_right(rows[name].host if name in rows else Change(), truth, name)
