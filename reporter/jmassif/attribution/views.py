# SPDX-License-Identifier: GPL-2.0-or-later
"""Groups of --by: from an account to the name it goes under, safe to show."""

from array import array
from collections import Counter
from functools import lru_cache
from typing import Callable, Dict, List, NamedTuple, Tuple

from jmassif.attribution.blame import callers
from jmassif.attribution.names import NO_TENSOR, Names
from jmassif.attribution.parts import Parts
from jmassif.model.records import OTHER
from jmassif.model.run import Profile
from jmassif.units import printable


# ---- threads ----
# The thread that allocated: the outermost frame of a stack, in a trace that was recorded with --threads=yes.
#
# Threads have numbers, in the order in which they began, and are called by their names. Threads that share one are
# shown as one, for eight workers do the same work; each by itself has its number behind the name.

NO_THREAD = "(no thread)"  # what was there before the program began, and what is kept of all threads together
_NONE = -1
WITHOUT_THREADS = "the trace has no threads: record it with jmassif --threads=yes"


class Threads:
    """The threads of one run."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        roots = {id_: frame[4] for id_, frame in profile.frames.items() if frame[0] == "t"}
        by_node = array("q", [_NONE])
        for parent, frame in zip(profile.node_parent[1:], profile.node_frame[1:]):
            by_node.append(by_node[parent] if parent else roots.get(frame, _NONE))
        # Numbers of the threads that allocated, by account, from 1; 0: one of many that share it; -1: none.
        self.numbers = array("q", map(by_node.__getitem__, profile.accounts.nodes))
        # How many threads were called so: all that began, not only those that hold something.
        self.sharing = Counter(map(self.name, set(roots.values())))

    def name(self, number: int) -> str:
        return NO_THREAD if number == _NONE else printable(self._profile.thread(number))


def thread_naming(profile: Profile, is_together: bool) -> Callable[[int], str]:
    """A function from an account to its thread's name; unless `is_together` with the thread's number if it shares the name."""
    threads = Threads(profile)

    def name_of(account: int) -> str:
        number = threads.numbers[account]
        name = threads.name(number)
        return name if is_together or threads.sharing[name] < 2 else f"{name} (thread {number})"

    return name_of


# ---- lines ----
# The line, function or module that memory is charged to (blame.py).

LINE_VIEWS = {"python-line": "line", "python-function": "function", "module": "module"}


class Location(NamedTuple):
    """A line, a function or a module."""

    label: str
    frame: int  # of the line; 0: it is no line
    is_place: bool  # False: what could not be charged to anything


def _module(profile: Profile, names: Names, frame: int, home: str) -> str:
    """The package of a frame; of the user's own files the path below the directory `home`, as import has it."""
    package = names.folding.internal(frame).package
    if package:
        return package
    path = profile.frame(frame).file
    below = home.rstrip("/") + "/"
    name = path[len(below) :] if home and path.startswith(below) else names.file(frame)
    name = name[: -len(".py")] if name.endswith(".py") else name
    return ".".join(part for part in name.split("/") if part not in ("", ".", "__init__")) or name


def _places(profile: Profile, names: Names, view: str, is_below_cwd: bool = True) -> Callable[[int], Location]:
    """A function from a frame to its name in one of LINE_VIEWS."""
    home = profile.manifest.get("cwd", "") if is_below_cwd else ""

    @lru_cache(maxsize=None)
    def place(frame: int) -> Location:
        file = names.file(frame)
        if view == "python-line":
            return Location(f"{file}:{profile.frame(frame).line}", frame, True)
        if view == "python-function":
            return Location(printable(f"{profile.frame(frame).function or '?'} ({file})"), 0, True)
        return Location(printable(_module(profile, names, frame, home)), 0, True)

    return place


def totals(profile: Profile, names: Names, view: str, is_folded: bool) -> Callable[[int], List[Location]]:
    """A function from an account to all that has it in its total, each once: what is charged, and what had called that."""
    place = _places(profile, names, view)
    passed = callers(profile, names.folding, is_folded)

    @lru_cache(maxsize=None)
    def places(frames: Tuple[int, ...]) -> List[Location]:
        return list({found.label: found for found in map(place, frames)}.values())

    return lambda account: places(passed(profile.accounts.nodes[account]))


def charges(
    profile: Profile, names: Names, view: str, is_folded: bool, is_below_cwd: bool = True
) -> Callable[[int], Location]:
    """A function from an account to what it is charged to in one of LINE_VIEWS.

    Unless `is_below_cwd`, modules have names that do not depend on where the program was started.
    """
    place = _places(profile, names, view, is_below_cwd)
    nowhere = Location(f"(no Python {LINE_VIEWS[view]})", 0, False)

    def charged(account: int) -> Location:
        frame = names.charged(account, is_folded)
        if frame:
            return place(frame)
        if not profile.accounts.nodes[account]:
            return Location(f"({profile.accounts.kind(account)}, without a stack)", 0, False)
        return Location(names.library(account), 0, True) if view == "module" else nowhere

    return charged


# ---- views ----


def parts(profile: Profile, names: Names) -> Parts:
    """For Names.once."""
    return Parts(profile)


def naming(profile: Profile, names: Names, by: str, is_folded: bool = True) -> Callable[[int], str]:
    """A function from an account to its name in one of view.BY, "stack" excepted; or in "group" or "line".

    Unless `is_folded` the views by line charge memory to the innermost Python frame, internal or not, and threads that share a
    name are kept apart.
    """
    if by in LINE_VIEWS:
        charged = charges(profile, names, by, is_folded)
        return lambda account: charged(account).label
    accounts = profile.accounts
    table: Dict[str, Callable[[int], str]] = {
        "kind": accounts.kind,
        "owner": accounts.owner,
        "group": lambda account: profile.group_of.get(accounts.owner(account), OTHER),
        "role": lambda account: profile.role(account) or NO_TENSOR,
        "library": names.library,
        "part": names.once(parts).name if by == "part" else names.line,
        "line": names.line,
    }
    return table[by] if by != "thread" else thread_naming(profile, is_folded)
