# SPDX-License-Identifier: GPL-2.0-or-later
"""A callgrind profile, for KCachegrind, QCachegrind and callgrind_annotate: costs are bytes and blocks.

What a function allocates itself is its own cost, and what the functions that it calls allocate is the cost of the call.
The number of a call is that of the blocks allocated through it: how often it was called is not on record. A call that a
stack goes through more than once, in a recursion, counts once for that stack.

A line is a record and a name runs to its end, so control characters in names are escaped; all names are given as
"(number) name", and a name alone cannot be taken for a number.
"""

from typing import Dict, Iterator, List, Sequence, Tuple

from jmassif.model.profile import Profile
from jmassif.questions.costs import Place, costs_of
from jmassif.questions.moments import Moment, select
from jmassif.questions.samples import VALUES, samples
from jmassif.units import moment, printable
from jmassif.version import __version__
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
    costs = costs_of(profile, columns)
    totals = [sum(column) for column in columns]
    yield from _header(profile, at, totals)
    functions = list(costs.functions)
    own: Dict[int, List[int]] = {}
    calls: Dict[int, List[Tuple[Place, int]]] = {}
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
