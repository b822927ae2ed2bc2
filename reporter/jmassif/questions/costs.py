# SPDX-License-Identifier: GPL-2.0-or-later
"""What each line of each function costs, by itself and by the functions that it calls.

What a function allocates itself is its own cost, and what the functions that it calls allocate is the cost of the call. A call
that a stack goes through more than once, in a recursion, counts once for that stack.
"""

from array import array
from typing import Dict, List, NamedTuple, Sequence, Tuple

from jmassif.model.profile import Profile
from jmassif.questions.samples import NOTHING, Samples
from jmassif.whose.names import describe


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
