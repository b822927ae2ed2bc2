# SPDX-License-Identifier: GPL-2.0-or-later
"""Who calls a function or a line, and whom it calls, by what they hold: the stacks seen from their middle.

Every stack that goes through it counts once, also where it calls itself: with whoever called its outermost call, and with whom its
innermost call called. So callers add up to its total, and so do callees with its own.
"""

import re
from array import array
from difflib import get_close_matches
from typing import Callable, Dict, List, NamedTuple, Sequence, Set, Tuple

from jmassif.analysis.aggregate import NOTHING, Samples
from jmassif.attribution.names import Names, describe
from jmassif.model.records import Composition, counted_blocks, side_of
from jmassif.model.run import Profile


# ---- costs ----
# What each line of each function costs, by itself and by the functions that it calls.
#
# What a function allocates itself is its own cost, and what the functions that it calls allocate is the cost of the call. A call
# that a stack goes through more than once, in a recursion, counts once for that stack.


class Function(NamedTuple):
    object: str
    file: str
    name: str


# (function, line)
Place = Tuple[int, int]


class Costs:
    """What each line of each function costs: itself, and by the functions that it calls."""

    def __init__(self, profile: Profile) -> None:
        self.functions: Dict[Function, int] = {}
        self.own: Dict[Place, List[int]] = {}
        self.calls: Dict[Tuple[Place, int], List[int]] = {}  # by caller and called function
        self.line_of: Dict[int, int] = {}  # of a function: the first that is known
        self._profile = profile
        self._places: Dict[int, Place] = {}

    def _place_of(self, function: Function, line: int) -> Place:
        index = self.functions.setdefault(function, len(self.functions))
        self.line_of.setdefault(index, line)
        return index, line

    def place(self, frame: int) -> Place:
        place = self._places.get(frame)
        if place is None:
            fields = self._profile.frame(frame)
            name = fields.function or ("?" if fields.type == "p" else describe(fields))
            object_ = fields.object or ("python" if fields.type == "p" else "")
            place = self._places[frame] = self._place_of(Function(object_, fields.file, name), fields.line)
        return place

    def add_own(self, place: Place, figures: Sequence[int]) -> None:
        _add(self.own.setdefault(place, list(NOTHING)), figures)

    def add_call(self, caller: Place, called: int, figures: Sequence[int]) -> None:
        _add(self.calls.setdefault((caller, called), list(NOTHING)), figures)

    def stackless(self, kind: str, owner: str) -> Place:
        return self._place_of(Function("", "", f"({kind} of {owner}, without a stack)"), 0)


def _add(sums: List[int], figures: Sequence[int]) -> None:
    for index, figure in enumerate(figures):
        sums[index] += figure


def costs_of(profile: Profile, columns: Samples) -> Costs:
    costs = Costs(profile)
    parents, frames = profile.node_parent, profile.node_frame
    # By node of the trie, at first of the stacks that end there, and in the end of those below as well.
    sums = [array("Q", bytes(8 * len(parents))) for _ in NOTHING]
    for account, figures in columns.rows():
        node, kind, owner = profile.accounts[account]
        costs.add_own(costs.place(frames[node]) if node else costs.stackless(kind, owner), figures)
        for column, figure in zip(sums, figures):
            column[node] += figure
    first = array("q", bytes(8 * len(parents)))
    sibling = array("q", first)
    for node in range(1, len(parents)):
        if frames[node]:
            sibling[node] = first[parents[node]]
            first[parents[node]] = node
    # How often a call is in the stack that is being walked.
    depth: Dict[Tuple[Place, int], int] = {}
    pending = [first[0]]
    while pending:
        node = pending.pop()
        if node > 0:
            pending += [sibling[node], -node, first[node]]
            if parents[node]:
                call = (costs.place(frames[parents[node]]), costs.place(frames[node])[0])
                depth[call] = depth.get(call, 0) + 1
        elif node < 0 and parents[-node]:
            node, parent = -node, parents[-node]
            figures = tuple(column[node] for column in sums)  # type: ignore[assignment]
            for column, figure in zip(sums, figures):
                column[parent] += figure
            call = (costs.place(frames[parent]), costs.place(frames[node])[0])
            depth[call] -= 1
            if not depth[call] and figures != NOTHING:
                costs.add_call(call[0], call[1], figures)
    return costs


# ---- neighbours ----

ITSELF = "(itself)"
NOBODY = "(nobody: the stack begins here)"

_LINE = re.compile(r".+:\d+")


class NoSuchPlace(Exception):
    """No frame is called so. The message says what comes near."""


class Figures(NamedTuple):
    bytes: int = 0
    blocks: int = 0
    allocated: int = 0  # bytes, in the whole run

    def plus(self, other: "Figures") -> "Figures":
        return Figures(*(mine + theirs for mine, theirs in zip(self, other)))


class Neighbours(NamedTuple):
    name: str  # as frames call it; safe to show
    n_frames: int
    total: Figures
    callers: List[Tuple[str, Figures]]  # the largest first
    callees: List[Tuple[str, Figures]]  # likewise; ITSELF is what it allocated by itself


def frames_called(profile: Profile, names: Names, wanted: str) -> Set[int]:
    """The frames of a function by its name, of a line by "FILE:LINE", or that reports call so. Raises NoSuchPlace."""
    found: Set[int] = set()
    functions: Set[str] = set()
    for id_ in profile.frames:
        frame = profile.frame(id_)
        label = names.frame(id_)
        path = f"{frame.file}:{frame.line}"
        is_line = _LINE.fullmatch(wanted) and frame.line and (path == wanted or path.endswith("/" + wanted))
        if wanted in (frame.function, label) or is_line or label.split(" (")[0] == wanted:
            found.add(id_)
        functions.add(frame.function)
    if not found:
        near = get_close_matches(wanted, [name for name in functions if len(name) < 100], 4, 0.5)
        hint = f"; there is {', '.join(near)}" if near else "; name a function, or a line as FILE:LINE"
        raise NoSuchPlace(f'no frame is called "{wanted}"{hint}')
    return found


def neighbours(profile: Profile, names: Names, held: Composition, wanted: str) -> Neighbours:
    """At a moment. Raises NoSuchPlace."""
    frames = frames_called(profile, names, wanted)
    parents, frame_of = profile.node_parent, profile.node_frame
    allocated = profile.allocated()
    callers: Dict[str, Figures] = {}
    callees: Dict[str, Figures] = {}
    known: Dict[int, Tuple[str, str]] = {0: ("", "")}  # by node of a stack's innermost frame

    def around(innermost: int) -> Tuple[str, str]:
        """The caller and the callee; "" where the stack does not go through it."""
        node, inner = innermost, 0
        first_inner, last = -1, 0
        while node:
            if frame_of[node] in frames:
                first_inner = inner if first_inner < 0 else first_inner
                last = node
            inner, node = node, parents[node]
        if not last:
            return "", ""
        caller = names.frame(frame_of[parents[last]]) if parents[last] else NOBODY
        return caller, names.frame(frame_of[first_inner]) if first_inner else ITSELF

    total = Figures()
    for account, (node, kind, _) in enumerate(profile.accounts):
        n_bytes, blocks = held.get(account, (0, 0))
        if side_of(kind) is None or not node or not (n_bytes or blocks or allocated[account]):
            continue
        if node not in known:
            known[node] = around(node)
        caller, callee = known[node]
        if caller:
            figures = Figures(n_bytes, counted_blocks(kind, blocks), allocated[account])
            callers[caller] = callers.get(caller, Figures()).plus(figures)
            callees[callee] = callees.get(callee, Figures()).plus(figures)
            total = total.plus(figures)
    return Neighbours(_called(names, frames), len(frames), total, _ranked(callers), _ranked(callees))


def _called(names: Names, frames: Set[int]) -> str:
    first = names.frame(min(frames))
    return first if len(frames) == 1 else f"{first} and {len(frames) - 1:,} more"


def _ranked(sums: Dict[str, Figures]) -> List[Tuple[str, Figures]]:
    rank: Callable[[Tuple[str, Figures]], Tuple[int, int, str]] = lambda row: (-row[1].bytes, -row[1].allocated, row[0])
    return sorted(sums.items(), key=rank)
