# SPDX-License-Identifier: GPL-2.0-or-later
"""Which tests broke their limits, from the trace of the run.

A test with limits is a stage of the run (jmassif.stage), so its peaks are exact, and it ends where the next stage begins. What
counts is what it held beyond what was held at its begin: what fixtures and other tests hold is not its own.
"""

from typing import Dict, List, NamedTuple, Tuple

from jmassif.analysis.budgets import Culprit, by_place, largest
from jmassif.attribution.names import Names
from jmassif.model.records import Composition, Stage, side_of
from jmassif.model.run import Profile
from jmassif.testing.limits import LEAKS, Limit
from jmassif.units import printable, size

# The mark that a test with limits begins with, and that which it ends with, before its number.
BEGIN, END = "jmassif test ", "jmassif end of test "
_SMALLEST = 0.02  # of what a limit counts: lines with less are not named, but for the first
_OF = {"host": "of host memory", "device": "of device memory", "total": "of memory"}


class Test(NamedTuple):
    stage: Stage
    end: int  # index of the snapshot at its end


def _tests(profile: Profile) -> Dict[str, Test]:
    """By number, those that came to their end."""
    found: Dict[str, Test] = {}
    for stage, following in zip(profile.stages, profile.stages[1:]):
        if stage.text.startswith(BEGIN) and following.text == END + stage.text[len(BEGIN) :]:
            found[stage.text[len(BEGIN) :]] = Test(stage, following.snapshot)
    return found


def _held(profile: Profile, composition: Composition, pool: str) -> Dict[int, int]:
    """By account: bytes of a pool."""
    sides = ("host", "device") if pool in ("total", LEAKS) else (pool,)
    return {
        account: n_bytes
        for account, (n_bytes, _) in composition.items()
        if side_of(profile.accounts[account].kind) in sides
    }


class Verdicts:
    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._names = Names(profile)
        self._tests = _tests(profile)

    def broken(self, number: str, limits: List[Limit]) -> List[str]:
        """What is to be said of the limits that the test broke: nothing if it kept them all."""
        test = self._tests.get(number)
        if test is None:
            return ["its limits could not be held: the trace does not have its end"]
        texts: List[str] = []
        for limit in limits:
            more, culprits = self._beyond_begin(test, limit.what)
            if more > limit.bytes:
                texts.extend(self._sentences(limit, more, culprits))
        return texts

    def _beyond_begin(self, test: Test, what: str) -> Tuple[int, List[Culprit]]:
        profile = self._profile
        before = _held(profile, profile.composition(test.stage.snapshot), what)
        if what == LEAKS:
            composition = profile.composition(test.end)
        elif what in test.stage.peaks:
            composition = profile.composition_at(test.stage.peaks[what])
        else:
            return 0, []  # a pool that nothing was ever in
        now = _held(profile, composition, what)
        places = by_place(profile, self._names, now), by_place(profile, self._names, before)
        return sum(now.values()) - sum(before.values()), largest(*places)

    def _sentences(self, limit: Limit, more: int, culprits: List[Culprit]) -> List[str]:
        text = printable(limit.text)
        if limit.what == LEAKS:
            lines = [f"limit_leaks: left {size(more)} ({more:,} B) behind, more than {text}"]
        else:
            which = _OF[limit.what]
            lines = [
                f"limit_memory: held {size(more)} ({more:,} B) {which} beyond what was held at its begin, more than {text}"
            ]
        for index, culprit in enumerate(culprits):
            first = "look first at" if index == 0 else "then at"
            grown = culprit.bytes - (culprit.before or 0)
            if index and grown < more * _SMALLEST:
                break
            lines.append(f"  {first} {culprit.label}: {size(grown)} ({printable(culprit.owner)})")
        return lines
