# SPDX-License-Identifier: GPL-2.0-or-later
"""A callgrind profile, for KCachegrind, QCachegrind and callgrind_annotate: costs are bytes and blocks.

What a function allocates itself is its own cost, and what the functions that it calls allocate is the cost of the call.
The number of a call is that of the blocks allocated through it: how often it was called is not on record. A call that a
stack goes through more than once, in a recursion, counts once for that stack.

A line is a record and a name runs to its end, so control characters in names are escaped; all names are given as
"(number) name", and a name alone cannot be taken for a number.
"""

from array import array
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

from jmassif.model.profile import Profile
from jmassif.questions.moments import Moment, select
from jmassif.questions.samples import NOTHING, VALUES, Figures, Samples, samples
from jmassif.units import moment, printable
from jmassif.version import __version__
from jmassif.whose.names import describe
from jmassif.writers.view import View

# In the order of samples.VALUES.
_EVENTS = (
    ("LiveBytes", "bytes held"),
    ("LiveBlocks", "blocks held"),
    ("AllocBytes", "bytes allocated in all"),
    ("AllocBlocks", "blocks allocated in all"),
    ("Temporaries", "blocks freed at once"),
)
_CALLS = list(VALUES).index("allocated-blocks")


class _Function(NamedTuple):
    object: str
    file: str
    name: str


# (function, line)
_Place = Tuple[int, int]


class _Costs:
    """What each line of each function costs: itself, and by the functions that it calls."""

    def __init__(self, profile: Profile) -> None:
        self.functions: Dict[_Function, int] = {}
        self.own: Dict[_Place, List[int]] = {}
        self.calls: Dict[Tuple[_Place, int], List[int]] = {}  # by caller and called function
        self.line_of: Dict[int, int] = {}  # of a function: the first that is known
        self._profile = profile
        self._places: Dict[int, _Place] = {}

    def _place_of(self, function: _Function, line: int) -> _Place:
        index = self.functions.setdefault(function, len(self.functions))
        self.line_of.setdefault(index, line)
        return index, line

    def place(self, frame: int) -> _Place:
        place = self._places.get(frame)
        if place is None:
            fields = self._profile.frame(frame)
            name = fields.function or ("?" if fields.type == "p" else describe(fields))
            object_ = fields.object or ("python" if fields.type == "p" else "")
            place = self._places[frame] = self._place_of(_Function(object_, fields.file, name), fields.line)
        return place

    def add_own(self, place: _Place, figures: Sequence[int]) -> None:
        _add(self.own.setdefault(place, list(NOTHING)), figures)

    def add_call(self, caller: _Place, called: int, figures: Sequence[int]) -> None:
        _add(self.calls.setdefault((caller, called), list(NOTHING)), figures)

    def stackless(self, kind: str, owner: str) -> _Place:
        return self._place_of(_Function("", "", f"({kind} of {owner}, without a stack)"), 0)


def _add(sums: List[int], figures: Sequence[int]) -> None:
    for index, figure in enumerate(figures):
        sums[index] += figure


def _costs(profile: Profile, columns: Samples) -> _Costs:
    costs = _Costs(profile)
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
    depth: Dict[Tuple[_Place, int], int] = {}
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


class _Names:
    """Written in full once and by number from then on."""

    def __init__(self) -> None:
        self._known: Dict[str, int] = {}

    def __call__(self, text: str) -> str:
        shown = printable(text).strip() or "???"
        number = self._known.get(shown)
        if number is not None:
            return f"({number})"
        number = self._known[shown] = len(self._known) + 1
        return f"({number}) {shown}"


def _header(profile: Profile, at: Moment, totals: Sequence[int]) -> Iterator[str]:
    yield "# callgrind format"
    yield "version: 1"
    yield f"creator: jmassif {__version__}"
    if profile.number("pid") is not None:
        yield f"pid: {profile.number('pid')}"
    yield f"cmd: {printable(profile.manifest.get('command', '')) or '???'}"
    yield f"desc: Moment: {at.name} ({moment(at.time, profile.time_unit)})"
    yield "positions: line"
    for name, text in _EVENTS:
        yield f"event: {name} : {text}"
    yield f"events: {' '.join(name for name, _ in _EVENTS)}"
    yield f"summary: {' '.join(map(str, totals))}"
    yield ""


def write(profile: Profile, view: View) -> Iterator[str]:
    """The lines. Raises moments.SelectionError."""
    at = select(profile, view.selector or "peak")
    columns = samples(profile, at.composition)
    costs = _costs(profile, columns)
    totals = [sum(column) for column in columns]
    yield from _header(profile, at, totals)
    functions = list(costs.functions)
    own: Dict[int, List[int]] = {}
    calls: Dict[int, List[Tuple[_Place, int]]] = {}
    for index, line in sorted(costs.own):
        own.setdefault(index, []).append(line)
    for caller, called in sorted(costs.calls):
        calls.setdefault(caller[0], []).append((caller, called))
    objects, files, names = _Names(), _Names(), _Names()
    for index, function in enumerate(functions):
        if index not in own and index not in calls:
            continue
        yield f"ob={objects(function.object)}"
        yield f"fl={files(function.file)}"
        yield f"fn={names(function.name)}"
        for line in own.get(index, []):
            yield f"{line} {_numbers(costs.own[(index, line)])}"
        for caller, called in calls.get(index, []):
            target = functions[called]
            figures = costs.calls[(caller, called)]
            yield f"cob={objects(target.object)}"
            yield f"cfi={files(target.file)}"
            yield f"cfn={names(target.name)}"
            yield f"calls={max(1, figures[_CALLS])} {costs.line_of[called]}"
            yield f"{caller[1]} {_numbers(figures)}"
        yield ""
    yield f"totals: {_numbers(totals)}"


def _numbers(figures: Sequence[int]) -> str:
    return " ".join(map(str, figures))
