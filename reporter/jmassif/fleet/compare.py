# SPDX-License-Identifier: GPL-2.0-or-later
"""Groups of runs laid side by side: how each part is distributed in each of them, what has changed, and who stands apart."""

import json
from array import array
from collections import Counter
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.fleet.database import Database
from jmassif.fleet.runs import FleetRun, RunGroup
from jmassif.fleet.schema import TOTAL, FleetError
from jmassif.fleet.statistics import Distribution, Interval, Medians, distribution, fences, holm
from jmassif.questions.facts import is_told_by_others, label

POOLS = {"bytes": "host + device", "host": "host", "device": "device"}
_NOT_COMPARED = ("command", "mem-total-bytes", "start")


class Change(NamedTuple):
    """Against the base."""

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
    """A run that lies far from its group."""

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
    """View, name, and what each run of each group held of it: nothing where it does not tell of it."""
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
    """What most runs of one group have otherwise than those of the base."""
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
        if fact in _NOT_COMPARED or fact == key or (is_told_by_others(fact) and fact != key):
            continue
        values = []
        for group, counter in zip(groups, counters):
            told = Counter(counter.get(fact, {}))
            told[""] += len(group.runs) - sum(told.values())
            values.append(min(told.items(), key=lambda item: (-item[1], item[0])))
        # What is spread over many values, as kinds of boards are, differs by chance.
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
    medians = Medians()
    unjudged = []
    errors = []
    for view, name, values in _values(database, pool, [TOTAL, *views], groups):
        ordered = [sorted(each) for each in values]
        unjudged.append((view, name, values, ordered))
        errors += [medians.error(ordered[base], now) for number, now in enumerate(ordered) if number != base]
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
            changes.append(Change(by, medians.interval(ordered[base], now, allowed), allowed, is_change))
        rows.append(FleetRow(view, name, distributions, changes, values))
    if not any(row.view == TOTAL for row in rows):
        raise FleetError("no run tells what it held at its peak")
    order = {view: place for place, view in enumerate([TOTAL, *views])}
    rows.sort(key=lambda row: (order[row.view], _rank(row)))
    largest = max(of.median for of in rows[0].groups)
    outside = _outside(groups, rows, max(1, largest // 200))
    return FleetDifference(
        key, pool, level, base, list(groups), len(errors), rows, outside, _facts(groups, key), n_left_out
    )
