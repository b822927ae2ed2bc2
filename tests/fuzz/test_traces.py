# SPDX-License-Identifier: GPL-2.0-or-later
"""A short search for faults, from one seed (or JMASSIF_SEED); `python3 -m tests.fuzz.traces` searches longer."""

import random
import re
from pathlib import Path
from typing import Callable, List, Tuple

import pytest

from tests.fuzz import searching, traces
from tests.fuzz.mutations import CHANGES, golden, mutant
from tests.harness import BUILD
from tests.reporter.traces import ROOT


@searching.extent(20, 400)
def test_changed_traces_never_break_a_command(n_runs: int) -> None:
    seed = searching.seed()
    tally = traces.search(seed, n_runs, BUILD / "fuzz")
    print(f"seed {seed}: {tally.runs} runs, slowest {tally.slowest[0]:.1f} s, largest {tally.largest[0] >> 20} MiB")
    assert tally.runs > 10
    assert not tally.faults, f"seed {seed}: " + "\n".join(tally.faults)


def test_the_search_sees_what_a_command_may_not_do(tmp_path: Path) -> None:
    """Each rule, by a command that breaks it."""

    def shows_an_escape(words: List[str]) -> int:
        print("\x1b[2J")
        return 0

    def fails_silently(words: List[str]) -> int:
        return 2

    def raises(words: List[str]) -> int:
        raise KeyError("missing")

    def fills_the_memory(words: List[str]) -> int:
        bytearray(traces.MOST_BYTES + (32 << 20))[:] = b"x" * (traces.MOST_BYTES + (32 << 20))
        return 0

    def writes_a_formula(words: List[str]) -> int:
        print("name,bytes\n=1+1,5")
        return 0

    def is_well(words: List[str]) -> int:
        print("name,bytes\nmain,-5")
        return 0

    breaking: List[Tuple[Callable[[List[str]], int], List[str], str]] = [
        (shows_an_escape, [], "terminal"),
        (fails_silently, [], "without one line"),
        (raises, [], "exit status 99"),
        (fills_the_memory, [], "MiB"),
        (writes_a_formula, ["--format=csv"], "formula"),
    ]
    for main, words, told in breaking:
        outcome = traces.attempt([], tmp_path, main)
        assert told in (traces.fault(["report", *words], outcome) or ""), main.__name__
    assert traces.fault(["report", "--format=csv"], traces.attempt([], tmp_path, is_well)) is None


@pytest.mark.parametrize("value", (b"9" * 5000, b"-1", b"what", b""), ids=("long", "negative", "word", "empty"))
def test_a_change_may_come_after_any_other(value: bytes) -> None:
    """Such as one of the trace's last time after one that has made all numbers too long to be converted."""
    for original in golden():
        spoilt = [re.sub(rb"\d+", value, line) if number else line for number, line in enumerate(original)]
        for change in CHANGES:
            change(list(spoilt), random.Random(1))


def test_a_seed_makes_the_same_traces() -> None:
    assert (ROOT / "tests" / "data" / "small.jmassif.gz").exists()
    made = [[mutant(golden(), random.Random(7)) for _ in range(1)] for _ in range(2)]
    assert made[0] == made[1]
