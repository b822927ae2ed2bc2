# SPDX-License-Identifier: GPL-2.0-or-later
"""Which Python line a stack's memory is charged to: the innermost that is the user's own.

So a line's figure is what that line caused, whatever it called in PyTorch or NumPy, and every byte is charged to one line
at most. A stack without a line of the user's own is charged to the innermost of an installed package that is not the core
(see folding.py), for such is all that a program has that pip installed; and to none, where only Python itself is in it.
"""

from array import array
from typing import Callable, Set

from jmassif.model.profile import Profile
from jmassif.whose.folding import INSTALLED, OWN, Folding


class Innermost:
    """The first of some frames, from the innermost outwards, in any stack; 0: none. Remembers, as stacks share frames."""

    def __init__(self, profile: Profile, wanted: Set[int]) -> None:
        self._parents, self._frames = profile.node_parent, profile.node_frame
        self._wanted = wanted
        self._found = array("q", [-1]) * len(self._parents)
        self._found[0] = 0

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


def charge(profile: Profile, folding: Folding, is_folded: bool) -> Callable[[int], int]:
    """A function from a stack's node to the frame that is charged, 0 if there is none.

    Unless `is_folded` no frame is internal: the innermost Python frame is charged.
    """
    python = {frame for frame, fields in profile.frames.items() if fields[0] == "p"}
    if not is_folded:
        return Innermost(profile, python)
    own = Innermost(profile, {frame for frame in python if folding.internal(frame).rank == OWN})
    installed = Innermost(profile, {frame for frame in python if folding.internal(frame).rank == INSTALLED})
    return lambda node: own(node) or installed(node)
