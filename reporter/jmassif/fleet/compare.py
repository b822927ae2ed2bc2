# SPDX-License-Identifier: GPL-2.0-or-later
"""Groups of runs compared: distributions, significant changes, outliers, differences in software and machine.

A table of runs is a DataFrame in the order in which they began, with a column for each column of the table `run` and each fact.
"""

import fnmatch
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy
import pandas
from sqlalchemy import select

from jmassif.model.run_info import grouped_by, is_redundant, label, suggestions
from jmassif.fleet import TOTAL, FleetError
from jmassif.fleet.database import FIGURE, PART, RUN, SETUP
from jmassif.units import printable

Frame = Any  # pandas.DataFrame

# ---- runs ----

# Not worth a group.
_NUMBERS = ("run", "setup", "peak_total", "peak_host", "peak_device", "end_time")


def frame(connection: Any, query: Any, dtype: Any = None) -> Frame:
    found = connection.execute(query)
    return pandas.DataFrame(found.fetchall(), columns=list(found.keys()), dtype=dtype)


def _texts(runs: Frame, key: str) -> Any:
    return runs[key].fillna("").astype(str)


def _check_key(runs: Frame, key: str) -> None:
    """Raises FleetError if no run has that column or fact."""
    known = [name for name in runs if name not in _NUMBERS and _texts(runs, name).any()]
    if key not in known:
        raise FleetError(f'no run has "{printable(key)}"; keys: {suggestions(key, known)}')


def read_runs(connection: Any, conditions: Sequence[str] = ()) -> Frame:
    """The runs that meet all conditions: "board=*Nano*", "jetpack!=4.6.1". Raises FleetError."""
    runs = frame(connection, select(RUN).order_by(RUN.c.start_unix_ms, RUN.c.run), object)  # large numbers as they are
    if runs.empty:
        raise FleetError("the database has no runs in it")
    facts = frame(connection, select(SETUP)).pivot(index="setup", columns="key", values="value")
    runs = kept = runs.join(facts[facts.columns.difference(runs.columns)].fillna(""), on="setup")
    for condition in conditions:
        found = re.fullmatch(r"([\w.+-]+)(!?)=(.*)", condition, re.DOTALL)
        if not found:
            raise FleetError(f'"{printable(condition)}" is not a condition; use KEY=PATTERN or KEY!=PATTERN')
        key, is_not, pattern = found.groups()
        _check_key(runs, key)
        matches = [fnmatch.fnmatchcase(value, pattern) != bool(is_not) for value in _texts(kept, key)]
        kept = kept[matches]
    return kept


# ---- records ----
# `data` of export/json.py writes them as they are.


class Group(NamedTuple):
    value: str
    label: str  # safe to show
    runs: int


class Distribution(NamedTuple):
    n: int
    median: int
    spread: int  # between the quartiles
    low: int  # 5th percentile
    high: int  # 95th


class Change(NamedTuple):
    """A difference from the base group."""

    bytes: int  # of the medians
    interval: Optional[Tuple[int, int]]  # None: too few runs
    p: float  # adjusted
    is_change: bool  # significant


class FleetRow(NamedTuple):
    view: str
    name: str
    groups: List[Distribution]
    changes: List[Optional[Change]]  # None of the base

    @property
    def has_changed(self) -> bool:
        return any(change and change.is_change for change in self.changes)


class Outlier(NamedTuple):
    """A run far from its group's median, in the part where it is farthest."""

    run: str
    file: str
    host: str
    group: int
    view: str
    name: str
    bytes: int
    median: int


class FleetFact(NamedTuple):
    key: str
    label: str
    values: List[Dict[str, Any]]  # by group: the value that most runs have, and how many


class FleetDifference(NamedTuple):
    key: str
    pool: str
    level: float
    base: int
    compared: int  # tests
    left_out: int  # runs without an end
    groups: List[Group]
    rows: List[FleetRow]  # the total first, then by view; of a view the largest change first
    outliers: List[Outlier]  # the farthest first
    facts: List[FleetFact]  # that differ between most runs of the groups
    runs: List[Frame]  # by group; not in JSON
    values: List[Frame]  # by group: bytes by run and row; not in JSON


# ---- statistics ----
# Neither the test nor the interval takes costs for normal; any number of runs may be equal.


def intervals(before: Frame, now: Frame, level: float) -> List[Optional[Tuple[int, int]]]:
    """For each column the confidence interval of the difference of the medians. None with too few runs.

    A median lies between the runs of certain ranks by the binomial distribution; each group has half of the error.
    """
    from scipy.stats import binom

    first, second = (int(binom.ppf(level / 4, len(runs), 0.5)) for runs in (before, now))
    if not first or not second:
        return [None] * before.shape[1]
    old, new = numpy.sort(before, axis=0), numpy.sort(now, axis=0)
    low, high = new[second - 1] - old[-first], new[-second] - old[first - 1]
    return list(zip(low.tolist(), high.tolist()))


def holm(p_values: Any) -> Any:
    """Adjusted for each other: those below a level hold all together at that level."""
    order = numpy.argsort(p_values, axis=None, kind="stable")
    adjusted = numpy.empty(len(order))
    adjusted[order] = numpy.maximum.accumulate(p_values.ravel()[order] * numpy.arange(len(order), 0, -1))
    return numpy.minimum(adjusted, 1.0).reshape(p_values.shape)


# ---- compare ----

_NOT_COMPARED = {*RUN.columns.keys(), "mem-total-bytes"} - {"board", "jetpack", "l4t", "pytorch"}
# A multiple of the distance from the median to the 5th or 95th percentile: five standard deviations of a normal distribution.
_FAR = 3


def held(connection: Any, pool: str, views: Sequence[str], runs: Frame) -> Frame:
    """Bytes by run and part, (view, name); 0 for a run without that part."""
    n_bytes = FIGURE.c.host + FIGURE.c.device if pool == "bytes" else FIGURE.c[pool]
    parts = connection.execute(select(PART).where(PART.c.view.in_(list(views)))).fetchall()
    names = {part: (view, name) for part, view, name in parts}
    figures = frame(connection, select(FIGURE.c.run, FIGURE.c.part, n_bytes.label("bytes")))
    figures = figures[figures["run"].isin(runs["run"]) & figures["part"].isin(list(names))]
    found = figures.set_index(["run", "part"])["bytes"].unstack(fill_value=0).reindex(runs["run"], fill_value=0)
    return found.rename(columns=names).sort_index(axis=1)


def pool_of(runs: Frame) -> str:
    """The device, where a run has memory of its own there, else both."""
    is_discrete = runs["is_discrete"].astype(bool) & runs["peak_device"].fillna(0).astype(bool)
    return "device" if is_discrete.any() else "bytes"


def _outliers(runs: Sequence[Frame], values: Sequence[Frame], quantiles: Any, least: int) -> List[Outlier]:
    outliers = []
    for group, (low, _, median, _, high) in enumerate(quantiles):
        n_bytes = values[group].to_numpy()
        distance = abs(n_bytes - median)
        fence = _FAR * numpy.where(n_bytes > median, high - median, median - low)
        distance[(distance <= fence) | (distance < least)] = 0
        for at in numpy.flatnonzero(distance.any(axis=1)):
            run, part = runs[group].iloc[at], distance[at].argmax()
            view, name = values[group].columns[part]
            numbers = int(n_bytes[at, part]), int(median[part])
            outliers.append(Outlier(run["id"], run["file"], run["host"], group, view, name, *numbers))
    return sorted(outliers, key=lambda each: (-abs(each.bytes - each.median), each.run))


def _facts(runs: Sequence[Frame], key: str) -> List[FleetFact]:
    found = []
    for fact in sorted(runs[0].columns.difference([*_NOT_COMPARED, key])):
        counts = [_texts(group, fact).value_counts() for group in runs]
        most = [{"value": min(each.index[each == each.max()]), "runs": int(each.max())} for each in counts]
        # A fact with many values, such as the kind of board, differs by chance.
        is_usual = any(2 * each["runs"] > len(group) for each, group in zip(most, runs))
        if is_usual and not is_redundant(fact) and len({each["value"] for each in most}) > 1:
            found.append(FleetFact(fact, label(fact), most))
    return found


def compare(
    database: Any, runs: Frame, key: str, base: Optional[str], views: List[str], pool: str, level: float, left_out: int
) -> FleetDifference:
    """Each group with that of the base, by default the first. Raises FleetError."""
    pool = pool or pool_of(runs)
    figures = held(database, pool, [TOTAL, *views], runs)
    return compared(figures, runs, key, base, views, pool, level, left_out)


def compared(
    figures: Frame, runs: Frame, key: str, base: Optional[str], views: List[str], pool: str, level: float, left_out: int
) -> FleetDifference:
    """Likewise, of figures that were read: bytes by run and part, as held() has them."""
    from scipy.stats import mannwhitneyu

    if runs.empty:
        raise FleetError("no run is left: see --where, and --incomplete for runs without an end")
    _check_key(runs, key)
    by_value = grouped_by(key, range(len(runs)), list(_texts(runs, key)).__getitem__)
    groups = [Group(value, label, len(at)) for value, label, at in by_value]
    runs_of = [runs.iloc[at] for *_, at in by_value]
    known = [group.value for group in groups]
    if base is not None and base not in known:
        raise FleetError(f'no run has {key} "{base}": there is {", ".join(known)}')
    if len(groups) < 2:
        raise FleetError(f'all {len(runs):,} runs have the same "{key}": there is nothing to compare')
    first = known.index(base) if base is not None else 0
    if (TOTAL, TOTAL) not in figures:
        raise FleetError("no run has figures of its peak")
    values = [figures.loc[each["run"]] for each in runs_of]
    between = [intervals(values[first], each, level) for each in values]
    judged = [group for group, found in enumerate(between) if group != first and found[0]]
    p_values = numpy.ones((len(groups), figures.shape[1]))
    for group in judged:
        p_values[group] = mannwhitneyu(values[group], values[first], axis=0, method="asymptotic").pvalue
    p_values[judged] = holm(p_values[judged])
    quantiles = [each.quantile([0.05, 0.25, 0.5, 0.75, 0.95]).round().astype("int64").to_numpy() for each in values]
    rows = []
    for at, (view, name) in enumerate(figures):
        of: List[Distribution] = []
        changes: List[Optional[Change]] = []
        for group, found in enumerate(quantiles):
            low, quarter, median, three, high = found[:, at].tolist()
            of.append(Distribution(groups[group].runs, median, three - quarter, low, high))
            by, p = median - int(quantiles[first][2, at]), float(p_values[group, at])
            changes.append(None if group == first else Change(by, between[group][at], p, bool(by) and p < level))
        rows.append(FleetRow(view, name, of, changes))
    rows.sort(key=lambda row: ([TOTAL, *views].index(row.view), -max(abs(each.bytes) for each in row.changes if each)))
    outliers = _outliers(runs_of, values, quantiles, max(1, max(of.median for of in rows[0].groups) // 200))
    values = [each[[(row.view, row.name) for row in rows]] for each in values]
    tests, facts = len(judged) * len(rows), _facts(runs_of, key)
    return FleetDifference(key, pool, level, first, tests, left_out, groups, rows, outliers, facts, runs_of, values)
