# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run held or spent, by owner, by library, by call and so on, under names that mean the same in every run.

A *part* is a name with its figures. The parts of a view add up to the run's total, to the byte. Calls may be nested in
others: those are told beneath the call they were made in, whose figures include them, and count no second time.
"""

from typing import Callable, Dict, Iterable, List, NamedTuple, Sequence, Tuple

from jmassif.model.profile import Profile
from jmassif.model.records import Composition
from jmassif.questions.ledger import LedgerRow, rows_by
from jmassif.questions.moments import Moment
from jmassif.questions.reconciliation import BESIDE_LEDGER, books, nearest_to, whose
from jmassif.questions.scopes import growth_by_side
from jmassif.units import printable
from jmassif.whose import alignment
from jmassif.whose.lines import LINE_VIEWS, charges
from jmassif.whose.names import Names
from jmassif.whose.sites import NO_STACK, base_name
from jmassif.whose.views import naming

SCOPE = "scope"
PROCESS = "process"
# What is held at a moment; SCOPE is what calls have cost instead, PROCESS all that the process had in memory.
HELD = ("owner", "group", "kind", "role", "thread", "library", "function") + tuple(LINE_VIEWS)
VIEWS = HELD + (PROCESS, SCOPE)

# Calls nested deeper than any real ones are in the figures of those around them alone.
_MAX_DEPTH = 16


class PartFigures(NamedTuple):
    host: int = 0  # bytes, as is the next
    device: int = 0
    number: int = 0  # of blocks; in a view by scope, of calls

    @property
    def bytes(self) -> int:
        return self.host + self.device

    def plus(self, other: "PartFigures") -> "PartFigures":
        return PartFigures(self.host + other.host, self.device + other.device, self.number + other.number)

    def minus(self, other: "PartFigures") -> "PartFigures":
        return PartFigures(self.host - other.host, self.device - other.device, self.number - other.number)


def median(numbers: Sequence[int]) -> int:
    """Of an even count the lower one: a figure that some run has."""
    return sorted(numbers)[(len(numbers) - 1) // 2]


class Key(NamedTuple):
    """What a part is known by in every run."""

    path: Tuple[str, ...]  # its name, after those of the calls around it
    is_listed: bool = False  # calls of which it is not known what they are nested in: in no sum

    @property
    def is_counted(self) -> bool:
        return not self.is_listed and len(self.path) == 1


Parts = Dict[Key, PartFigures]


def frame_name(profile: Profile, names: Names, frame_id: int) -> str:
    """The function of a frame and its library or, of Python, its file. Safe to show."""
    frame = profile.frame(frame_id)
    if frame.type == "p":
        return printable(f"{frame.function or '?'} ({names.file(frame_id)})")
    if frame.type == "t":
        return names.frame(frame_id)
    name = printable(alignment.function(frame.function)) or "(no name)"
    library = printable(base_name(frame.object or frame.file)) or "(no object file)"
    return f"{name} ({alignment.library(library)})"


def _function(profile: Profile, names: Names, account: int) -> str:
    """The function to blame."""
    frame_id = names.site_id(account)
    return frame_name(profile, names, frame_id) if frame_id else NO_STACK


def namer(profile: Profile, names: Names, view: str) -> Callable[[int], str]:
    """A function from an account to the name that it goes by in a view of HELD; names are safe to show."""
    if view in LINE_VIEWS:
        charged = charges(profile, names, view, True, is_below_cwd=False)
        if view == "module":
            return lambda account: alignment.library(charged(account).label)
        return lambda account: charged(account).label
    if view == "library":
        return lambda account: alignment.library(names.library(account))
    if view == "function":
        return lambda account: _function(profile, names, account)
    return naming(profile, names, view)


def _parts_of(rows: Iterable[LedgerRow]) -> Parts:
    return {
        Key((row.name,)): PartFigures(row.host.bytes, row.device.bytes, row.host.blocks + row.device.blocks)
        for row in rows
    }


def held(profile: Profile, names: Names, view: str, composition: Composition) -> Parts:
    """The parts of what was held, by a view of HELD. Memory of kinds that are only listed is left out."""
    return _parts_of(rows_by(profile, composition, namer(profile, names, view)))


def whole_process(profile: Profile, moment: Moment) -> Parts:
    """What the kernel counts as the process's: by owner, and what is beside the ledger. Nothing where it was not sampled."""
    snapshot = nearest_to(profile, moment)
    if snapshot is None:
        return {}
    made = books(profile, snapshot)
    parts = _parts_of(row for _, owners in whose(profile, made).groups for row in owners)
    for row in BESIDE_LEDGER:
        parts[Key((row.name,))] = PartFigures(row.bytes(made))
    return parts


def _add(parts: Parts, key: Key, figures: PartFigures) -> None:
    parts[key] = parts.get(key, PartFigures()).plus(figures)


def spent(profile: Profile) -> Parts:
    """What calls have cost: the net growth by the time they returned, over the whole run."""
    by_id = {scope.id: scope for scope in profile.scopes}
    paths: Dict[int, Tuple[str, ...]] = {}

    def path(id_: int) -> Tuple[str, ...]:
        inner: List[int] = []
        while id_ in by_id and id_ not in paths:
            inner.append(id_)
            id_ = by_id[id_].parent
        found = paths.get(id_, ())
        for each in reversed(inner):
            name = printable(alignment.scope(by_id[each].name))
            found = paths[each] = (found + (name,))[: _MAX_DEPTH + 1]
        return found

    parts: Parts = {}
    for scope in profile.scopes:
        called = path(scope.id)
        if len(called) <= _MAX_DEPTH:
            _add(parts, Key(called), PartFigures(*growth_by_side(scope.growths), 1))
    for rest in profile.scope_sums.values():
        key = Key((printable(alignment.scope(rest.name)),), is_listed=True)
        _add(parts, key, PartFigures(*growth_by_side(rest.growths), rest.calls))
    return parts


def total(parts: Parts) -> PartFigures:
    found = PartFigures()
    for key, figures in parts.items():
        if key.is_counted:
            found = found.plus(figures)
    return found
