# SPDX-License-Identifier: GPL-2.0-or-later
"""Which Python line a stack's memory is charged to: the innermost that is the user's own; and which lines had called that.

So a line's figure is what that line caused, whatever it called in PyTorch or NumPy, and every byte is charged to one line
at most. A stack without a line of the user's own is charged to the innermost of an installed package that is not the core
(see folding.py), for such is all that a program has that pip installed; and to none, where only Python itself is in it.
"""

from array import array
from typing import Callable, List, Optional, Set, Tuple, TypeVar

from jmassif.model.profile import Profile
from jmassif.whose.folding import INSTALLED, OWN, Folding


class Innermost:
    """The first of some frames, from the innermost outwards, in any stack; 0: none. Remembers, as stacks share frames."""

    def __init__(self, profile: Profile, wanted: Set[int]) -> None:
        self._parents, self._frames = profile.node_parent, profile.node_frame
        self._wanted = wanted
        self._found = array("q", [-1]) * len(self._parents)
        self._found[0] = 0

    def extend(self) -> None:
        """To nodes that the profile, and frames that `wanted`, have got since: of a trace that is still being written."""
        self._found.extend(array("q", [-1]) * (len(self._parents) - len(self._found)))

    def __call__(self, node: int) -> int:
        found, frames, wanted = self._found, self._frames, self._wanted
        passed = []
        while found[node] < 0:
            if frames[node] in wanted:
                found[node] = frames[node]
            else:
                passed.append(node)
                node = self._parents[node]
        frame = found[node]
        for node in passed:
            found[node] = frame
        return frame


class Passed:
    """All of some frames that any stack goes through, each once, the outermost first. Remembers, as stacks share frames."""

    def __init__(self, profile: Profile, wanted: Set[int]) -> None:
        self._parents, self._frames = profile.node_parent, profile.node_frame
        self._wanted = wanted
        self._found: List[Optional[Tuple[int, ...]]] = [None] * len(self._parents)
        self._found[0] = ()

    def __call__(self, node: int) -> Tuple[int, ...]:
        found = self._found
        pending = []
        while found[node] is None:
            pending.append(node)
            node = self._parents[node]
        passed = found[node] or ()
        for node in reversed(pending):
            frame = self._frames[node]
            if frame in self._wanted and frame not in passed:
                passed = passed + (frame,)
            found[node] = passed
        return passed


# What is known of the Python frames on the way to a stack's node: one of them, or all.
_Told = TypeVar("_Told")


def _by_rank(
    of: Callable[[Profile, Set[int]], Callable[[int], _Told]], profile: Profile, folding: Folding, is_folded: bool
) -> Callable[[int], _Told]:
    """What `of` tells of the program's own frames or, in a stack without any, of installed packages'.

    Unless `is_folded` no frame is internal: of all.
    """
    python = {frame for frame, fields in profile.frames.items() if fields[0] == "p"}
    if not is_folded:
        return of(profile, python)
    own = of(profile, {frame for frame in python if folding.internal(frame).rank == OWN})
    installed = of(profile, {frame for frame in python if folding.internal(frame).rank == INSTALLED})
    return lambda node: own(node) or installed(node)


def callers(profile: Profile, folding: Folding, is_folded: bool) -> Callable[[int], Tuple[int, ...]]:
    """A function from a stack's node to all frames that have the memory in their totals: what charge() tells, and its callers."""
    return _by_rank(Passed, profile, folding, is_folded)


def charge(profile: Profile, folding: Folding, is_folded: bool) -> Callable[[int], int]:
    """A function from a stack's node to the frame that is charged, the innermost one; 0 if there is none."""
    return _by_rank(Innermost, profile, folding, is_folded)
