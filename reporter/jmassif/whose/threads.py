# SPDX-License-Identifier: GPL-2.0-or-later
"""Which thread allocated: the outermost frame of a stack, in a trace that was recorded with --threads=yes.

Threads are told apart by their numbers, in the order in which they began, and are called by their names. Threads that share one are
shown as one, for eight workers do the same work; each by itself has its number behind the name.
"""

from array import array
from collections import Counter
from typing import Callable, Dict

from jmassif.model.profile import Profile
from jmassif.units import printable

NO_THREAD = "(no thread)"  # what was there before the program began, and what is kept of all threads together
_NONE = -1
WITHOUT_THREADS = (
    "the trace does not tell which thread has allocated: record it with valgrind --tool=jmassif --threads=yes"
)


def _thread_of(profile: Profile, roots: Dict[int, int]) -> Callable[[int], int]:
    """A function from a stack's node to the number of its thread. In the first version callers could come later than who they call."""
    parents, frames = profile.node_parent, profile.node_frame
    known = {0: _NONE}

    def number(innermost: int) -> int:
        passed, node = [], innermost
        while node not in known and parents[node]:
            passed.append(node)
            node = parents[node]
        found = known.setdefault(node, roots.get(frames[node], _NONE))
        known.update(dict.fromkeys(passed, found))
        return found

    return number


class Threads:
    """Of one profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        frames = profile.frames
        roots = {id_: frame[4] for id_, frame in frames.items() if frame[0] == "t"}
        self._numbers = array("q", map(_thread_of(profile, roots), (account.node for account in profile.accounts)))
        # All that began, not only those that hold something.
        self._sharing = Counter(map(self.name, set(roots.values())))

    def number(self, account: int) -> int:
        """Of the thread that allocated the account's memory, from 1; 0: one of many that are not told apart; -1: none."""
        return self._numbers[account]

    def name(self, number: int) -> str:
        return NO_THREAD if number == _NONE else printable(self._profile.thread(number))

    def sharing(self, name: str) -> int:
        """How many threads were called so."""
        return self._sharing[name]


def thread_naming(profile: Profile, is_together: bool) -> Callable[[int], str]:
    """A function from an account to its thread's name; unless `is_together` with the thread's number if it shares the name."""
    threads = Threads(profile)

    def name_of(account: int) -> str:
        number = threads.number(account)
        name = threads.name(number)
        return name if is_together or threads.sharing(name) < 2 else f"{name} (thread {number})"

    return name_of
