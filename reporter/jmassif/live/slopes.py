# SPDX-License-Identifier: GPL-2.0-or-later
"""Which lines of a run grow, asked again and again while it goes on.

The question (questions/growth.py) takes a second for a run of PyTorch. So a process of its own answers it, and it is asked no
more often than makes half a hundredth of the time: whoever shows a run stays awake, and is cheap.
"""

import os
import pickle
import select
import time
from typing import Callable, List, NamedTuple, Optional

from jmassif.model.profile import Profile
from jmassif.questions.growth import find_growth
from jmassif.whose.names import Names

_SHARE = 0.005  # of the time
_LEAST_SECONDS = 2.0


class Slope(NamedTuple):
    label: str
    bytes: float  # by step or, where that is "", by unit of time
    step: str


def _answer(profile: Profile) -> List[Slope]:
    growth = find_growth(profile, Names(profile))
    return [Slope(line.label, line.bytes_per_step, growth.step) for line in growth.lines[:3]]


class Slopes:
    """Of one run after the other."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._next = now() + _LEAST_SECONDS
        self._child = 0
        self._pipe = -1

    def ask(self, profile: Profile) -> None:
        """Unless an answer is under way, or it is too early to ask."""
        if self._child or self._now() < self._next or not profile.snapshots:
            return
        reading, writing = os.pipe()
        child = os.fork()
        if child:
            os.close(writing)
            self._child, self._pipe = child, reading
            return
        # What is the parent's, its terminal above all, is none of the child's.
        try:
            os.nice(10)
            os.write(writing, pickle.dumps(_answer(profile)))
        finally:
            os._exit(0)

    def answer(self) -> Optional[List[Slope]]:
        """To what was asked; None: not yet."""
        if not self._child or not select.select([self._pipe], [], [], 0)[0]:
            return None
        told = os.read(self._pipe, 1 << 16)
        os.close(self._pipe)
        _, _, used = os.wait4(self._child, 0)
        self._child = 0
        self._next = self._now() + max(_LEAST_SECONDS, (used.ru_utime + used.ru_stime) / _SHARE)
        found: List[Slope] = pickle.loads(told) if told else []
        return found
