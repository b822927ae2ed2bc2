# SPDX-License-Identifier: GPL-2.0-or-later
"""What became of some memory between two moments: what is new and still there, what is gone, and what was only passing.

A snapshot tells of each place what it holds and all that it ever allocated. From two of them follows how much was allocated
and freed in between; which blocks these frees ended, old ones or new ones, does not follow, unless there were none, or none
of the old is left. So a flow is a pair of bounds with one unknown: how much of what was allocated in between is still there.
"""

from typing import NamedTuple, Tuple


class Flow(NamedTuple):
    """Bytes, or blocks. All but `before` and `after` are the least that is certain."""

    before: int = 0  # held at the first moment
    after: int = 0  # held at the second
    new: int = 0  # allocated in between, and held at the second
    freed: int = 0  # of `before`, no longer held at the second
    passing: int = 0  # allocated in between, and no longer held at the second
    # So much more either is new and took the place of what was freed, or was passing: `new` and `freed` may be larger by up to
    # this, or `passing` may.
    uncertain: int = 0
    untold: int = 0  # so much more may have been passing: totals at a moment that is no snapshot are not told

    @property
    def allocated(self) -> int:
        """In between; with `untold` at least."""
        return self.new + self.passing + self.uncertain

    def plus(self, other: "Flow") -> "Flow":
        return Flow(*(mine + theirs for mine, theirs in zip(self, other)))


NOTHING = Flow()


def bounds(before: int, after: int, allocated: Tuple[int, int], lowest: int) -> Flow:
    """The flow of a place that held `before` and then `after`, and in between allocated from the least to the most that `allocated`
    tells. `lowest` is the least that it is known to have held from the first moment to the second.
    """
    # Memory that a cache takes back comes to it, and is no allocation.
    least = max(allocated[0], after - before, 0)
    most = max(allocated[1], least)
    # What was there before cannot be more than was there at any time since.
    new = after - min(before, after, lowest)
    at_most = max(new, min(most, after))
    passing = max(0, least - at_most)
    return Flow(before, after, new, before - after + new, passing, at_most - new, most - at_most - passing)


def recorded(before: int, after: int, new: int, allocated: int) -> Flow:
    """The flow of blocks that have records, of which nothing is uncertain."""
    return Flow(before, after, new, before - after + new, allocated - new)
