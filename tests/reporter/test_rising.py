# SPDX-License-Identifier: GPL-2.0-or-later
"""What rises to the end of a run, by hand-made runs: leaks do, and nothing else that programs do."""

from typing import Dict, List

import pytest

from jmassif.questions.rising import rising
from jmassif.whose.names import Names
from jmassif.writers.text.lines import write_lines
from jmassif.writers.view import View
from tests.reporter.traces import Trace

MIB = 1 << 20
IMPORT = "py _load (<frozen importlib._bootstrap>:5)"
SCRIPT = "py <module> (/a/b.py:{})"

# What a line holds at the ten snapshots of a run, after the import.
RISES: Dict[str, List[int]] = {
    "a leak": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    "a leak that starts late": [0, 0, 0, 1, 2, 3, 4, 5, 6, 7],
    "a leak beside what comes and goes": [1, 9, 1, 9, 2, 9, 3, 9, 4, 9],
    "a leak that comes before something": [0, 0, 1, 1, 2, 2, 3, 3, 9, 9],
    "a leak that is cut back a little": [2, 1, 4, 3, 6, 5, 8, 7, 10, 9],
    "a leak after something large": [90, 90, 2, 2, 3, 3, 4, 4, 5, 5],
}
DOES_NOT: Dict[str, List[int]] = {
    "what is made once": [0, 0, 0, 5, 5, 5, 5, 5, 5, 5],
    "what is made twice": [0, 5, 5, 5, 5, 5, 9, 9, 9, 9],
    "what is held for longer in the end": [0, 5, 0, 5, 0, 5, 0, 5, 5, 5],
    "what is freed": [9, 9, 8, 7, 6, 5, 4, 3, 2, 1],
    "what rises and stops": [1, 2, 3, 4, 5, 6, 7, 7, 7, 7],
    "what rises until it is let go of": [1, 2, 3, 4, 5, 6, 7, 8, 9, 0],
    "nothing": [0] * 10,
}


def run(**held: List[int]) -> Trace:
    """An import, then what the lines hold, in MiB; their names are those of the accounts, as _1 for the line 1."""
    trace = Trace()
    start = trace.account("heap", "python", ["malloc (libc.so.6)", IMPORT, SCRIPT.format(99)])
    for step in range(1, 11):
        trace.snapshot(step, "time", {start: (step * 10 * MIB, step)})
    accounts = {name: trace.account("heap", "tensor", [SCRIPT.format(name[1:])]) for name in held}
    for step in range(10):
        changes = {accounts[name]: (sizes[step] * MIB, 1) for name, sizes in held.items()}
        trace.snapshot(20 + step, "time" if step < 9 else "end", changes)
    trace.snapshot(30, "exit", {account: (0, 0) for account in accounts.values()})
    return trace


def found(trace: Trace, end: int = 19) -> List[str]:
    profile = trace.load()
    names = Names(profile)
    return rising(profile, lambda account: names.frame(names.charged(account)), end)


@pytest.mark.parametrize("what", sorted(RISES))
def test_what_holds_more_and_more_rises(what: str) -> None:
    assert found(run(_7=RISES[what])) == ["b.py:7 (<module>)"]


@pytest.mark.parametrize("what", sorted(DOES_NOT))
def test_what_does_not_is_no_leak(what: str) -> None:
    assert found(run(_7=DOES_NOT[what])) == []


def test_what_rises_most_comes_first() -> None:
    leaks = run(_1=list(range(10)), _2=[n * 5 for n in range(10)], _3=[9] * 10, _4=[n // 2 for n in range(10)])
    assert found(leaks) == ["b.py:2 (<module>)", "b.py:1 (<module>)", "b.py:4 (<module>)"]


def test_imports_are_no_leak_however_slowly_they_grow() -> None:
    assert found(run(), end=9) == []


def test_a_trickle_is_not_told() -> None:
    trace = Trace()
    held = trace.account("heap", "app", [SCRIPT.format(1)])
    trickle = trace.account("heap", "app", [SCRIPT.format(2)])
    for step in range(8):
        trace.snapshot(step, "time", {held: (100 * MIB, 1), trickle: (step * 1000, 1)})
    assert found(trace, end=7) == []


def test_a_run_with_few_snapshots_gives_no_verdict() -> None:
    assert found(run(_1=list(range(10))), end=12) == []


def table(trace: Trace, selector: str) -> List[str]:
    profile = trace.load()
    return write_lines(profile, Names(profile), View(selector or None, 5, "python-line", 70, None, None, False))


def test_the_leaking_line_is_named_and_comes_first_though_others_hold_more() -> None:
    trace = run(_7=[1, 1, 1, 1, 2, 2, 3, 3, 4, 4], _8=[50] * 10)
    lines = table(trace, "end")
    assert "Rising steadily to the end, as what leaks does: b.py:7." in lines
    rows = [line.split()[0] for line in lines[lines.index("") + 1 :] if line.startswith("b.py")]
    assert rows == ["b.py:7", "b.py:99", "b.py:8"]
    rows = [line.split()[0] for line in table(trace, "") if line.startswith("b.py")]
    assert rows == ["b.py:99", "b.py:8", "b.py:7"]


def test_a_healthy_run_has_no_warning() -> None:
    assert not [line for line in table(run(_7=[5] * 10), "end") if "Rising" in line]
