# SPDX-License-Identifier: GPL-2.0-or-later
"""Groups of runs compared: distributions, significant changes, outliers, and the first sentences about them."""

import fnmatch
import json
import re
from array import array
from bisect import bisect_right
from collections import Counter
from functools import lru_cache
from itertools import accumulate
from math import exp, lgamma, log
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.fleet.database import RUN, TOTAL, Database, FleetError
from jmassif.model.run_info import grouped_by, is_redundant, label, suggestions
from jmassif.units import count, growth, percent, printable, size


# ---- statistics ----
# The interval of the difference between two medians needs only the order of the runs: the binomial distribution says between which
# two runs a median lies, for any shape of distribution and any number of equal values. Each group's interval gets half of the
# error; the difference lies between their outermost differences. An interval is never too narrow; few runs have none at a high level.
#
# Among many rows some differ by chance. Holm's procedure keeps the family-wise error below the level: the row with the smallest
# error is compared with level / m, the next one with level / (m - 1), and so on.

Interval = Tuple[int, int]


class Distribution(NamedTuple):
    n: int
    median: int
    spread: int  # between the quartiles
    low: int  # 5th percentile
    high: int  # 95th


def quantile(ordered: Sequence[int], per_cent: int) -> int:
    """The smallest value that is at or above that share of all. `ordered` has at least one."""
    rank = -(-len(ordered) * per_cent // 100)
    return ordered[max(rank, 1) - 1]


def distribution(ordered: Sequence[int]) -> Distribution:
    if not ordered:
        return Distribution(0, 0, 0, 0, 0)
    quarter, median, three = (quantile(ordered, per_cent) for per_cent in (25, 50, 75))
    return Distribution(len(ordered), median, three - quarter, quantile(ordered, 5), quantile(ordered, 95))


class Fences(NamedTuple):
    """Bounds of a group; a run outside them is an outlier."""

    least: int
    most: int


# A multiple of the distance from the median to the 5th or 95th percentile: five standard deviations of a normal distribution.
_FAR = 3


def fences(of: Distribution) -> Fences:
    return Fences(of.median - _FAR * (of.median - of.low), of.median + _FAR * (of.high - of.median))


@lru_cache(maxsize=None)
def _tails(n: int) -> List[float]:
    """For each k the chance that k or fewer of n runs lie below the median."""
    return list(accumulate(exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2)) for k in range(n // 2)))


@lru_cache(maxsize=None)
def _errors(n: int, m: int) -> List[float]:
    """Errors at which another run becomes the outermost one, so that the interval changes."""
    return sorted({4 * tail for tail in _tails(n) + _tails(m) if 4 * tail <= 1} | {1.0})


def interval_of(before: Sequence[int], now: Sequence[int], error: float) -> Optional[Interval]:
    """The interval of the difference of the medians at this error; None with too few runs. Both sequences are sorted."""
    # The median lies between the run of this rank and that of the same rank from the end. 0: too few runs.
    first, second = (bisect_right(_tails(len(runs)), error / 4) for runs in (before, now))
    if not first or not second:
        return None
    return now[second - 1] - before[-first], now[-second] - before[first - 1]


def smallest_error(before: Sequence[int], now: Sequence[int]) -> float:
    """The smallest error at which the interval excludes zero; 1 if none does."""
    errors = _errors(len(before), len(now))
    low, high = 0, len(errors)
    while low < high:
        middle = (low + high) // 2
        if is_one_sided(interval_of(before, now, errors[middle])):
            high = middle
        else:
            low = middle + 1
    return errors[low] if low < len(errors) else 1.0


def is_one_sided(interval: Optional[Interval]) -> bool:
    return interval is not None and (interval[0] > 0 or interval[1] < 0)


def holm(errors: Sequence[float], level: float) -> List[Tuple[bool, float]]:
    """For each comparison: whether it is significant, and the error allowed for it and its interval."""
    found: List[Tuple[bool, float]] = [(False, level)] * len(errors)
    m = len(errors)
    is_on = True
    allowed = level / m if m else level
    for place, index in enumerate(sorted(range(m), key=lambda index: errors[index])):
        if is_on:
            allowed = level / (m - place)
            is_on = errors[index] <= allowed
        found[index] = (is_on, allowed)
    return found


# ---- runs ----
# The runs of a fleet: conditions, and groups by a column or a fact.

_FIELDS = [name for name, _ in RUN.columns]
# Not worth a group.
_NUMBERS = ("run", "setup", "peak_total", "peak_host", "peak_device", "end_time")


class FleetRun(NamedTuple):
    number: int
    fields: Dict[str, Any]  # of the table run
    facts: Dict[str, str]  # of its setup; shared by many runs

    def value(self, key: str) -> str:
        """The value of a column or a fact; "" if unknown."""
        if key in self.fields and key not in _NUMBERS:
            value = self.fields[key]
            return "" if value is None else str(value)
        return self.facts.get(key, "")

    @property
    def is_complete(self) -> bool:
        return bool(self.fields["is_complete"])


Condition = Tuple[str, bool, str]  # key, whether it must not match, pattern


def condition(text: str) -> Condition:
    """ "board=*Nano*", "jetpack!=4.6.1". Raises FleetError."""
    found = re.fullmatch(r"([\w.+-]+)(!?=)(.*)", text, re.DOTALL)
    if not found:
        raise FleetError(f'"{printable(text)}" is not a condition; use KEY=PATTERN or KEY!=PATTERN')
    key, sign, pattern = found.groups()
    return key, sign == "!=", pattern


def read_runs(database: Database) -> List[FleetRun]:
    """All, in the order in which they began."""
    setups: Dict[int, Dict[str, str]] = {}
    for setup, key, value in database.rows("SELECT setup, key, value FROM setup"):
        setups.setdefault(setup, {})[key] = value
    rows = database.rows(f"SELECT {RUN.names} FROM run ORDER BY start_unix_ms, run")
    found = [dict(zip(_FIELDS, row)) for row in rows]
    return [FleetRun(fields["run"], fields, setups.get(fields["setup"], {})) for fields in found]


def check_key(runs: Sequence[FleetRun], key: str) -> None:
    """Raises FleetError if no run has that column or fact."""
    if any(run.value(key) for run in runs):
        return
    facts = {
        name for run in {id(run.facts): run for run in runs}.values() for name, value in run.facts.items() if value
    }
    known = sorted(facts | {name for name in _FIELDS if any(run.value(name) for run in runs)})
    raise FleetError(f'no run has "{printable(key)}"; keys: {suggestions(key, known) or "none, as there is no run"}')


def chosen(runs: Sequence[FleetRun], conditions: Sequence[Condition]) -> List[FleetRun]:
    """Those that meet all conditions. Raises FleetError."""
    kept = list(runs)
    for key, is_not, pattern in conditions:
        check_key(runs, key)
        kept = [run for run in kept if fnmatch.fnmatchcase(run.value(key), pattern) != is_not]
    return kept


class RunGroup(NamedTuple):
    value: str
    label: str  # safe to show
    runs: List[FleetRun]


def grouped(runs: Sequence[FleetRun], key: str) -> List[RunGroup]:
    """A group for each value, in the order of versions. Raises FleetError."""
    check_key(runs, key)
    return [RunGroup(*group) for group in grouped_by(key, runs, lambda run: run.value(key))]


# ---- compare ----
# Groups of runs side by side: the distribution of each part, changes of medians, outliers.

POOLS = {"bytes": "host + device", "host": "host", "device": "device"}
_NOT_COMPARED = ("command", "mem-total-bytes", "start")


class Change(NamedTuple):
    """A difference from the base group."""

    bytes: int  # by which the medians differ
    interval: Optional[Interval]  # None: too few runs
    allowed: float  # the error that the interval may have
    is_change: bool  # the interval lies on one side of zero


class FleetRow(NamedTuple):
    view: str
    name: str
    groups: List[Distribution]
    changes: List[Optional[Change]]  # None of the base
    values: List["array[int]"]  # by group, in the order of its runs

    @property
    def largest(self) -> int:
        """The most that a median differs from the base's."""
        return max(abs(change.bytes) for change in self.changes if change)

    @property
    def has_changed(self) -> bool:
        return any(change and change.is_change for change in self.changes)


class Outside(NamedTuple):
    """A run far from its group's median."""

    group: int
    run: FleetRun
    view: str
    name: str
    bytes: int
    median: int

    @property
    def distance(self) -> int:
        return abs(self.bytes - self.median)


class FleetFact(NamedTuple):
    key: str
    label: str
    values: List[Tuple[str, int]]  # by group: what most runs have, and how many


class FleetDifference(NamedTuple):
    key: str
    pool: str
    level: float
    base: int
    groups: List[RunGroup]
    n_compared: int  # rows and groups
    rows: List[FleetRow]  # the total first, then by view; of a view what has changed most first
    outside: List[Outside]  # the farthest first, of each run where it lies farthest
    facts: List[FleetFact]
    n_left_out: int  # runs that did not end well

    @property
    def total(self) -> FleetRow:
        return self.rows[0]


def _values(
    database: Database, pool: str, views: Sequence[str], groups: Sequence[RunGroup]
) -> List[Tuple[str, str, List["array[int]"]]]:
    """View, name, and bytes by run and group; 0 for a run without that part."""
    at: Dict[int, Tuple[int, int]] = {
        run.number: (number, place) for number, group in enumerate(groups) for place, run in enumerate(group.runs)
    }
    places = ",".join("?" * len(views))
    names = {
        part: (view, name)
        for part, view, name in database.rows(f"SELECT part, view, name FROM part WHERE view IN ({places})", views)
    }
    pair = f"CAST(run AS TEXT) || ',' || CAST({POOLS[pool]} AS TEXT)"
    found = []
    for part, text in database.rows(f"SELECT part, {database.joined.format(pair)} FROM figure GROUP BY part"):
        if part not in names:
            continue
        numbers = json.loads(f"[{text}]")
        values = [array("q", bytes(8 * len(group.runs))) for group in groups]
        is_there = False
        for run, n_bytes in zip(numbers[0::2], numbers[1::2]):
            place = at.get(run)
            if place is not None:
                values[place[0]][place[1]] = n_bytes
                is_there = True
        if is_there:
            found.append((*names[part], values))
    # Databases hand out groups in an order of their own, and of rows that are as sure as each other Holm takes the first first.
    return sorted(found, key=lambda row: row[:2])


def _outside(groups: Sequence[RunGroup], rows: Sequence[FleetRow], least: int) -> List[Outside]:
    farthest: Dict[int, Outside] = {}
    for row in rows:
        for number, group in enumerate(groups):
            of = row.groups[number]
            bounds = fences(of)
            if max(row.values[number], default=0) <= bounds.most and min(row.values[number], default=0) >= bounds.least:
                continue
            for run, value in zip(group.runs, row.values[number]):
                if bounds.least <= value <= bounds.most or abs(value - of.median) < least:
                    continue
                found = Outside(number, run, row.view, row.name, value, of.median)
                before = farthest.get(run.number)
                if before is None or found.distance > before.distance:
                    farthest[run.number] = found
    return sorted(farthest.values(), key=lambda each: (-each.distance, each.run.number))


def _facts(groups: Sequence[RunGroup], key: str) -> List[FleetFact]:
    """Facts for which most runs of a group differ from most runs of the base."""
    counters: List[Dict[str, "Counter[str]"]] = []
    for group in groups:
        setups: "Counter[int]" = Counter(id(run.facts) for run in group.runs)
        facts_of = {id(run.facts): run.facts for run in group.runs}
        found: Dict[str, "Counter[str]"] = {}
        for setup, n in setups.items():
            for fact, value in facts_of[setup].items():
                found.setdefault(fact, Counter())[value] += n
        counters.append(found)
    keys = {fact: None for counter in counters for fact in counter}
    rows = []
    for fact in keys:
        if fact in _NOT_COMPARED or fact == key or (is_redundant(fact) and fact != key):
            continue
        values = []
        for group, counter in zip(groups, counters):
            counts = Counter(counter.get(fact, {}))
            counts[""] += len(group.runs) - sum(counts.values())
            values.append(min(counts.items(), key=lambda item: (-item[1], item[0])))
        # A fact with many values, such as the kind of board, differs by chance.
        is_usual = any(2 * n > len(group.runs) for (_, n), group in zip(values, groups))
        if is_usual and len({value for value, _ in values}) > 1:
            rows.append(FleetFact(fact, label(fact), values))
    return rows


def _rank(row: FleetRow) -> Tuple[int, int, str]:
    return (-row.largest, -max(of.median for of in row.groups), row.name)


def compare(
    database: Database,
    groups: Sequence[RunGroup],
    key: str,
    views: Sequence[str],
    pool: str = "bytes",
    level: float = 0.01,
    base: int = 0,
    n_left_out: int = 0,
) -> FleetDifference:
    """Each group with the base. Raises FleetError."""
    if len(groups) < 2:
        raise FleetError(f'all {len(groups[0].runs):,} runs have the same "{key}": there is nothing to compare')
    unjudged = []
    errors = []
    for view, name, values in _values(database, pool, [TOTAL, *views], groups):
        ordered = [sorted(each) for each in values]
        unjudged.append((view, name, values, ordered))
        errors += [smallest_error(ordered[base], now) for number, now in enumerate(ordered) if number != base]
    judged = iter(holm(errors, level))
    rows = []
    for view, name, values, ordered in unjudged:
        changes: List[Optional[Change]] = []
        distributions = [distribution(each) for each in ordered]
        for number, now in enumerate(ordered):
            if number == base:
                changes.append(None)
                continue
            is_change, allowed = next(judged)
            by = distributions[number].median - distributions[base].median
            changes.append(Change(by, interval_of(ordered[base], now, allowed), allowed, is_change))
        rows.append(FleetRow(view, name, distributions, changes, values))
    if not any(row.view == TOTAL for row in rows):
        raise FleetError("no run has figures of its peak")
    order = {view: place for place, view in enumerate([TOTAL, *views])}
    rows.sort(key=lambda row: (order[row.view], _rank(row)))
    largest = max(of.median for of in rows[0].groups)
    outside = _outside(groups, rows, max(1, largest // 200))
    return FleetDifference(
        key, pool, level, base, list(groups), len(errors), rows, outside, _facts(groups, key), n_left_out
    )


# ---- headline ----

_MOST_NAMED = 3


def surely(level: float) -> str:
    """0.01 → "99 %"."""
    return f"{100 * (1 - level):.6g} %"


def between(interval: Interval) -> str:
    return f"{growth(interval[0])} to {growth(interval[1])}"


def memory(found: FleetDifference) -> str:
    return "" if found.pool == "bytes" else f" of {found.pool} memory"


def _most(found: FleetDifference, group: int, view: str) -> str:
    def by(row: FleetRow) -> int:
        change = row.changes[group]
        return change.bytes if change and change.is_change else 0

    changed = sorted((row for row in found.rows if row.view == view and by(row)), key=lambda row: -abs(by(row)))
    if not changed:
        return ""
    named = [f"{printable(row.name)} {growth(by(row))}" for row in changed[:_MOST_NAMED]]
    more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
    return f" By {view.replace('-', ' ')}: {', '.join(named)}{more}."


def _sentence(found: FleetDifference, group: int, views: List[str]) -> str:
    now, before = found.groups[group], found.groups[found.base]
    total = found.total
    change = total.changes[group]
    assert change
    medians = f"{size(total.groups[found.base].median)} → {size(total.groups[group].median)}"
    n = f"{count(len(now.runs), 'run')} against {len(before.runs):,}"
    if change.interval is None:
        text = f"Not enough runs to compare {now.label} with {before.label} at {surely(found.level)} ({n}): {medians} at the peak."
        return text
    if change.is_change:
        more = "more" if change.bytes > 0 else "less"
        share = percent(abs(change.bytes), total.groups[found.base].median)
        text = (
            f"{now.label} needs {size(abs(change.bytes))}{memory(found)} {more} than {before.label} at the peak"
            f" ({between(change.interval)}): {medians}, {share}, medians of {n}."
        )
    else:
        text = (
            f"No significant difference between {now.label} and {before.label} at the peak{memory(found)}, {n}: {medians}"
            f" ({between(change.interval)})."
        )
    parts = [_most(found, group, view) for view in views]
    return text + (next(filter(None, parts), "") or ("" if change.is_change else " No part differs significantly."))


def fleet_headline(found: FleetDifference) -> List[str]:
    """Sentences that are safe to show; the group that differs most comes first."""
    views = list(dict.fromkeys(row.view for row in found.rows[1:]))

    def rank(group: int) -> int:
        changes = [row.changes[group] for row in found.rows]
        return -max(abs(change.bytes) if change and change.is_change else 0 for change in changes)

    others = [group for group in range(len(found.groups)) if group != found.base]
    return [_sentence(found, group, views) for group in sorted(others, key=lambda group: (rank(group), group))]


def method(found: FleetDifference) -> str:
    """The statistical method, in words."""
    return (
        f"Changes are of medians, against {found.groups[found.base].label}; their intervals follow from the order of the runs (binomial"
        f" distribution, of any shape). Changes are significant at {surely(found.level)} for all {found.n_compared:,} comparisons"
        f" together (Holm). Spread is between the quartiles."
    )


def left_out(found: FleetDifference) -> str:
    n = found.n_left_out
    if not n:
        return ""
    return f"Left out: {count(n, 'run')} without an end (killed, or still running); --incomplete includes them."
