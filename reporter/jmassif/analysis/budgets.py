# SPDX-License-Identifier: GPL-2.0-or-later
"""Budgets: names for what a run held or did, limits for them, and whether they were kept.

A name is a counter, or a moment and what is held then, joined by a dot: `peak.cudnn`, `end.leak.tensor`,
`peak-device.library.libcudnn*`. A name that a run cannot have is an error; one of which it holds nothing is 0.
"""

import difflib
from fnmatch import fnmatchcase
from typing import Callable, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from jmassif.analysis.aggregate import aggregate, sum_of
from jmassif.analysis.balance import MemoryBalance, balance_at
from jmassif.analysis.held_twice import held_twice
from jmassif.analysis.leaks import Growth, Leak, find_growth, held_at_end
from jmassif.analysis.moments import SELECTORS, mark_snapshots, select
from jmassif.analysis.oom import n_failures
from jmassif.attribution import names as alignment
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.records import DRIVER_KINDS, GROUPS, KINDS, OTHER, ROLES, LiveBytesByAccount, side_of
from jmassif.model.run import Profile
from jmassif.model.run_info import unseen_heap
from jmassif.units import Allowance, QuantityError, parse_allowance, parse_number, parse_size


# ---- culprits ----
# Lines to blame where a budget is not kept: those that hold most of it or, against a baseline, that have grown most.

# Bytes by the line that is charged, or the place that allocated where there is none, and the owner.
Places = Dict[Tuple[str, str], int]

_MOST = 3


class Culprit(NamedTuple):
    label: str  # safe to show
    owner: str
    bytes: int
    before: Optional[int]  # the baseline's
    leak: Optional[Leak] = None  # the line, if it was still growing

    @property
    def grown(self) -> int:
        return self.bytes - (self.before or 0)


def by_place(profile: Profile, names: Names, held: Mapping[int, int]) -> Places:
    """`held` is bytes by account."""
    found: Places = {}
    for account, n_bytes in held.items():
        _, kind, owner = profile.accounts[account]
        frame = names.charged(account) or names.site_id(account)
        key = (names.frame(frame) if frame else f"({kind}, without a stack)", owner)
        found[key] = found.get(key, 0) + n_bytes
    return found


def largest(now: Places, before: Optional[Places]) -> List[Culprit]:
    """The largest first; against a baseline those that have grown most, of which a line that has moved is new."""
    rows = [Culprit(*key, n_bytes, None if before is None else before.get(key, 0)) for key, n_bytes in now.items()]
    rows.sort(key=lambda row: (-row.grown, row.label, row.owner))
    return [row for row in rows[:_MOST] if row.grown > 0]


# ---- budgets ----

# Counters of the recorder; docs/jmassif.1 says what they mean.
COUNTERS = tuple(
    """absurd-block-announced copies-not-followed copies-not-followed-bytes cuda-alloc-retries cuda-block-ended-unseen
    cuda-free-of-unknown-pointer cuda-report-refused driver-address-spaces driver-block-without-memory
    driver-channels driver-objects-without-size driver-rm-channels framework-out-of-memory
    free-of-unknown-pointer heap-allocation-failed out-of-memory python-frame-cut
    python-frame-unreadable python-stack-not-interleaved realloc-of-unknown-pointer regions-left-out
    stack-completed-from-api-call tensor-allocated-differs tensor-free-unknown tensor-reserved-differs
    tensor-without-segment""".split()
)
# Memory still allocated at exit: with a name behind it also memory that is kept on purpose.
_LEAK = "end.leak"
# Growth of the lines that still grew at the end.
_GROWTH = "growth"
# Host memory that is in a device copy too: by itself at the peak.
_HELD_TWICE = "held-twice"
# Calls of one function that failed.
_FAILURES = "failures."
_SIDES = ("host", "device")
# Parts that may follow behind a dot.
_PARTS = _SIDES + KINDS
# Memory that the driver has committed and no block of the API lies in.
_DRIVER = "driver"
# Rows of the balance of the whole machine: absolute, where either sign is an error of that size.
_BALANCE: Dict[str, Callable[[MemoryBalance], int]] = {
    "allocators": lambda made: made.allocators,
    "elsewhere": lambda made: abs(made.elsewhere),
    "process": lambda made: made.process,
    "unaccounted": lambda made: abs(made.unaccounted),
    "untouched": lambda made: -made.untouched,
    "valgrind": lambda made: made.valgrind,
}
_N_SUGGESTIONS = 4
_MAX_NAME = 200  # of a name that nothing is like


class BudgetError(Exception):
    """A budget that means nothing. The message says what would."""


class Note(NamedTuple):
    """A remark on a verdict."""

    # "two-pools": the value adds up both pools of a discrete GPU; "no-library": no library of that name was loaded;
    # "growth-unknown"; "no-growth": no line grew for a third of the run; "freed": of the growth `bytes`, before the end; "heap": `name`, why the trace lacks it; "held": `bytes` of `name` were allocated at exit.
    key: str
    name: str = ""
    bytes: int = 0


class Value(NamedTuple):
    number: int
    is_bytes: bool = True
    notes: Sequence[Note] = ()
    places: Callable[[], Places] = dict  # memory that is counted, by line; empty for counters


def _is_growth(name: str) -> bool:
    return name == _GROWTH or name.startswith(_GROWTH + ".")


def _counts(run: Profile, _names: Names) -> Dict[str, int]:
    """Of the whole run, by name."""
    found = {**dict.fromkeys(COUNTERS, 0), **run.counters}
    found["failures"] = n_failures(run)
    for (api, _), n in run.failures.items():
        found[_FAILURES + api] = found.get(_FAILURES + api, 0) + n
    lifetime = run.lifetime()
    ever = dict(enumerate(zip(lifetime.bytes, lifetime.blocks)))
    allocated = sum_of(aggregate(run, ever, lambda account: "").values())
    found.update(allocations=allocated.blocks, allocated=allocated.bytes, temporaries=sum(lifetime.temporaries))
    return found


class Meter:
    """Reads off a run what names stand for. `owners` are further ones that exist, if the run holds nothing of them."""

    def __init__(self, profile: Profile, owners: Collection[str] = ()) -> None:
        self.profile = profile
        self.owners: Set[str] = {*owners, *profile.group_of, *(type_.owner for type_ in profile.accounts.types[1:])}
        self._fields = {"group": (*GROUPS, OTHER), "kind": KINDS, "role": (*ROLES, *profile.roles.values())}
        self._moments = (*SELECTORS, *mark_snapshots(profile), _LEAK)
        self._names = Names(profile)
        self._compositions: Dict[str, LiveBytesByAccount] = {}

    def value(self, name: str) -> Value:
        """The value of `name` in the run. Raises BudgetError if there is no such thing."""
        counts = self._names.once(_counts)
        if name in counts or name.startswith(_FAILURES):
            return Value(counts.get(name, 0), name == "allocated" or name.endswith("-bytes"))
        if _is_growth(name):
            value = self._growth_of(name)
            return value._replace(notes=[*self._unseen, *value.notes])
        moment, what = self._split(f"peak.{name}" if name == _HELD_TWICE else name)
        if what == _HELD_TWICE and moment != _LEAK:
            twice = held_twice(self.profile, self._names, select(self.profile, moment))
            places = {(f"{row.allocated}, copied by {row.copied}", row.kind): row.bytes for row in twice.rows}
            return Value(twice.bytes, True, (), lambda: places)
        if what in _BALANCE and what not in self.owners and moment != _LEAK:
            made = balance_at(self.profile, select(self.profile, moment))
            if made is None:
                raise BudgetError(f"{name}: the trace has no sample of the process's pages (it takes --pages=yes)")
            return Value(_BALANCE[what](made))
        held, notes = self._held(name, moment, what)
        return Value(sum(held.values()), True, notes, lambda: by_place(self.profile, self._names, held))

    @property
    def _unseen(self) -> List[Note]:
        why = unseen_heap(self.profile)
        return [Note("heap", why)] if why else []

    @property
    def growth(self) -> Growth:
        return find_growth(self.profile, self._names)

    def _growth_of(self, name: str) -> Value:
        owner = name[len(_GROWTH) + 1 :]
        if owner and owner not in self.owners:
            raise self._unknown(name)
        lines = [line for line in self.growth.lines if owner in ("", line.owner)]
        places = {(line.label, line.owner): line.grown for line in lines}
        if places:
            freed = sum(line.grown for line in lines if line.is_freed)
            return Value(sum(places.values()), True, [Note("freed", "", freed)] if freed else (), lambda: places)
        # A leak that is over soon is never seen growing: what there is of it must not read as none.
        leak = _LEAK + name[len(_GROWTH) :]
        left = self.value(leak).number
        why = "growth-unknown" if self.growth.unknown else "no-growth" if left else ""
        return Value(0, True, ([Note(why)] if why else []) + ([Note("held", leak, left)] if left else []))

    def _split(self, name: str) -> Tuple[str, str]:
        """The moment, and what is held then."""
        moments = [moment for moment in self._moments if f"{name}.".startswith(moment + ".")]
        moment = max(moments, key=len, default="")
        if not moment or name == moment != _LEAK:
            raise self._unknown(name)
        return moment, name[len(moment) + 1 :]

    def _composition(self, moment: str, what: str) -> LiveBytesByAccount:
        if moment != _LEAK:
            return select(self.profile, moment).composition
        held = held_at_end(self.profile, self._names)
        if held is None:
            return {}
        return {**held.leaked, **held.on_purpose} if what else held.leaked

    def _held(self, name: str, moment: str, what: str) -> Tuple[Dict[int, int], Sequence[Note]]:
        """Bytes by account."""
        key = moment if what else name
        if key not in self._compositions:
            self._compositions[key] = self._composition(moment, what)
        part, chosen = "", self._choose(what or "total")
        if chosen is None:
            what, _, part = what.rpartition(".")
            chosen = self._choose(what) if part in _PARTS else None
        if chosen is None:
            raise self._unknown(name)

        def counts(account: int) -> bool:
            kind = self.profile.accounts.kind(account)
            return part in (side_of(kind), kind) if part else side_of(kind) is not None or what.startswith("kind.")

        live = self._compositions[key].items()
        held = {account: n_bytes for account, (n_bytes, _) in live if counts(account) and chosen(account)}
        notes = () if part else self._notes(what, sum(held.values()))
        return held, [*self._unseen, *notes] if moment == _LEAK and "device" not in (what, part) else notes

    def _notes(self, what: str, held: int) -> Sequence[Note]:
        device = self.profile.peaks.get("device")
        if what == "total" and self.profile.is_discrete and device and device.device:
            return (Note("two-pools"),)
        field, _, glob = what.partition(".")
        loaded = (each.path.rpartition("/")[2] for each in self.profile.objects)
        is_absent = field == "library" and not held and not any(_is_library(name, glob) for name in loaded)
        return (Note("no-library"),) if is_absent else ()

    def _choose(self, what: str) -> Optional[Callable[[int], bool]]:
        """The accounts of a name; None: there is nothing of that name."""
        accounts = self.profile.accounts
        field, _, value = what.partition(".")
        if what == "total":
            return lambda account: True
        if what in _SIDES:
            return lambda account: side_of(accounts.kind(account)) == what
        if what == _DRIVER:
            return lambda account: accounts.kind(account) in DRIVER_KINDS
        if value in self._fields.get(field, ()):
            name_of = naming(self.profile, self._names, field)
            return lambda account: name_of(account) == value
        if field == "library" and value and not value.endswith(tuple(f".{part}" for part in _PARTS)):
            return lambda account: _is_library(self._names.library(account), value)
        if what in self.owners:
            return lambda account: accounts.owner(account) == what
        return None

    def _unknown(self, name: str) -> BudgetError:
        held = ["total", *_SIDES, _DRIVER, _HELD_TWICE, *sorted(self.owners), *_BALANCE]
        held += [f"{field}.{value}" for field, values in self._fields.items() for value in dict.fromkeys(values)]
        known = [f"{moment}.{what}" for moment in self._moments for what in held]
        known += [_GROWTH, _LEAK, _HELD_TWICE, *sorted(self._names.once(_counts))]
        near = difflib.get_close_matches(name[:_MAX_NAME], known, _N_SUGGESTIONS, 0.5)
        named = ", ".join(near or ["peak.total", "peak-host.host", "peak-device.device"])
        return BudgetError(f'unknown budget "{name[:_MAX_NAME]}"; try {named}')


def _is_library(name: str, glob: str) -> bool:
    return fnmatchcase(name, glob) or fnmatchcase(alignment.library(name), glob)


# ---- limits ------------------------------------------------------------------------------------


class Budget(NamedTuple):
    name: str
    limit: str = ""  # as it was written: an amount, or with a sign what may come on top of the baseline's


def parse_budget(text: str, sign: str) -> Budget:
    """ "peak.cudnn=800MiB", where `sign` is "=", or the name alone. Raises BudgetError."""
    name, found, limit = text.rpartition(sign)
    budget = Budget(name.strip(), limit.strip()) if found else Budget(text.strip())
    if not budget.name or (found and not budget.limit):
        raise BudgetError(f'"{text}" is not a budget: write NAME{sign}LIMIT')
    return budget


def parse_budgets(text: str) -> List[Budget]:
    """A budget a line, "peak.cudnn <= 800MiB"; what follows a # is a comment. Raises BudgetError."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if line:
            try:
                found.append(parse_budget(line, "<="))
            except BudgetError as error:
                raise BudgetError(f"line {number}: {error}")
    return found


class Verdict(NamedTuple):
    name: str
    value: int
    limit: int
    is_bytes: bool
    before: Optional[int]  # the baseline's
    notes: Sequence[Note]
    time_unit: str
    growth: Optional[Growth] = None  # of a budget of growth, or one that is not kept
    culprits: Sequence[Culprit] = ()  # where it is not kept
    written: str = ""  # the budget's limit

    @property
    def left(self) -> int:
        """Head-room; negative: how much too much it is."""
        return self.limit - self.value

    @property
    def is_unknown(self) -> bool:
        return any(note.key == "growth-unknown" for note in self.notes)

    @property
    def is_kept(self) -> bool:
        return self.value <= self.limit


def _limit(budget: Budget, is_bytes: bool, before: Optional[int], allowances: Sequence[Allowance]) -> int:
    if budget.limit and not budget.limit.startswith("+"):
        return parse_size(budget.limit) if is_bytes else parse_number(budget.limit)
    if before is None:
        raise BudgetError(f"{budget.name[:_MAX_NAME]}: has no limit of its own: write one, or give a --baseline")
    if budget.limit:
        allowances = [parse_allowance(budget.limit)]
    return max([before] + [allowance.beyond(before) for allowance in allowances])


def _culprits(budget: Budget, meter: Meter, baseline: Optional[Meter]) -> List[Culprit]:
    """Against a baseline what is more than it, unless the limit is the budget's own."""
    is_beyond = baseline is not None and (not budget.limit or budget.limit.startswith("+"))
    before = baseline.value(budget.name).places() if baseline and is_beyond else None
    found = largest(meter.value(budget.name).places(), before)
    leaks = {(leak.label, leak.owner): leak for leak in meter.growth.lines} if found else {}
    return [each._replace(leak=leaks.get((each.label, each.owner))) for each in found]


def judge(
    budgets: Sequence[Budget], profile: Profile, baseline: Optional[Profile], allowances: Sequence[Allowance]
) -> List[Verdict]:
    """A verdict a budget; the most generous allowance counts. Raises BudgetError."""
    meter = Meter(profile, Meter(baseline).owners if baseline else ())
    old = Meter(baseline, meter.owners) if baseline else None
    verdicts = []
    for budget in budgets:
        value = meter.value(budget.name)
        try:
            before = old.value(budget.name).number if old else None
        except BudgetError as error:
            raise BudgetError(f"the baseline: {error}")
        try:
            limit = _limit(budget, value.is_bytes, before, allowances)
        except QuantityError as error:
            raise BudgetError(f"{budget.name[:_MAX_NAME]}: {error}")
        is_over = value.number > limit
        growth = meter.growth if is_over or _is_growth(budget.name) else None
        culprits = _culprits(budget, meter, old) if is_over else []
        figures = (value.number, limit, value.is_bytes, before, value.notes)
        verdicts.append(Verdict(budget.name, *figures, profile.time_unit, growth, culprits, budget.limit))
    return verdicts
