# SPDX-License-Identifier: GPL-2.0-or-later
"""Groups of runs compared: distributions, significant changes, outliers, differences in software and machine.

Tables are DataFrames. That of runs is in the order in which they began, with a column for each column of the table `run` and each fact.
"""

import fnmatch
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy
import pandas
from scipy.stats import binom, mannwhitneyu
from sqlalchemy import select

from jmassif.fleet import TOTAL, VIEWS, FleetError
from jmassif.fleet.database import FIGURE, PART, RUN, SETUP
from jmassif.model.run_info import grouped_by, is_redundant, label, suggestions
from jmassif.units import printable

Frame = Any  # pandas.DataFrame

# ---- runs ----

# Not worth a group.
_NUMBERS = ("run", "setup", "peak_total", "peak_host", "peak_device", "end_time")


def frame(connection: Any, query: Any, dtype: Any = None) -> Frame:
    found = connection.execute(query)
    return pandas.DataFrame(found.fetchall(), columns=list(found.keys()), dtype=dtype)


def _texts(runs: Frame, key: str) -> Any:
    """Raises FleetError if no run has that column or fact."""
    texts = runs.reindex(columns=[key])[key].fillna("").astype(str)
    if key in _NUMBERS or not texts.any():
        known = [name for name in runs if name not in _NUMBERS and runs[name].fillna("").astype(str).any()]
        raise FleetError(f'no run has "{printable(key)}"; keys: {suggestions(key, known)}')
    return texts


def read_runs(connection: Any, conditions: Sequence[str] = ()) -> Frame:
    """The runs that meet all conditions: "board=*Nano*", "jetpack!=4.6.1". Raises FleetError."""
    runs = frame(connection, select(RUN).order_by(RUN.c.start_unix_ms, RUN.c.run), object)  # large numbers as they are
    facts = frame(connection, select(SETUP)).pivot(index="setup", columns="key", values="value")
    runs = runs.join(facts[facts.columns.difference(runs.columns)].fillna(""), on="setup")
    is_kept = pandas.Series(True, runs.index)
    for condition in conditions:
        found = re.fullmatch(r"([\w.+-]+)(!?)=(.*)", condition, re.DOTALL)
        if not found:
            raise FleetError(f'"{printable(condition)}" is not a condition; use KEY=PATTERN or KEY!=PATTERN')
        key, is_not, pattern = found.groups()
        is_kept &= _texts(runs, key).str.fullmatch(fnmatch.translate(pattern)) != bool(is_not)
    return runs[is_kept]


class Runs:
    """Runs to compare, by default only those with an end, and bytes by run and part, (view, name)."""

    def __init__(self, connection: Any, conditions: Sequence[str]) -> None:
        self.all = read_runs(connection, conditions)
        is_all = any(condition.startswith("is_complete") for condition in conditions)
        self.runs = runs = self.all if is_all else self.all[self.all["is_complete"] == 1]
        is_discrete = runs["is_discrete"].astype(bool) & runs["peak_device"].fillna(0).astype(bool)
        self.pool = "device" if is_discrete.any() else "bytes"  # the device's, where a run has memory of its own there
        n_bytes = FIGURE.c.device if is_discrete.any() else FIGURE.c.host + FIGURE.c.device
        parts = frame(connection, select(PART)).set_index("part")
        figures = frame(connection, select(FIGURE.c.run, FIGURE.c.part, n_bytes.label("bytes")))
        figures = figures[figures["run"].isin(runs["run"])]
        figures = figures.set_index(["run", "part"])["bytes"].unstack(fill_value=0).reindex(runs["run"], fill_value=0)
        figures.columns = pandas.MultiIndex.from_frame(parts.loc[figures.columns, ["view", "name"]])
        self.figures = figures.sort_index(axis=1)


# ---- statistics ----
# Neither the test nor the interval takes costs for normal; any number of runs may be equal.


def intervals(before: Frame, now: Frame, level: float) -> List[Optional[Tuple[int, int]]]:
    """For each column the confidence interval of the difference of the medians. None with too few runs.

    A median lies between the runs of certain ranks by the binomial distribution; each group has half of the error.
    """
    first, second = (int(binom.ppf(level / 4, len(runs), 0.5)) for runs in (before, now))
    if not first or not second:
        return [None] * before.shape[1]
    old, new = numpy.sort(before, axis=0), numpy.sort(now, axis=0)
    low, high = new[second - 1] - old[-first], new[-second] - old[first - 1]
    return list(zip(low.tolist(), high.tolist()))


def holm(p_values: Any) -> Any:
    """A Series, adjusted for each other: those below a level hold all together at that level."""
    least_first = p_values.sort_values(kind="stable")
    return (least_first * numpy.arange(len(least_first), 0, -1)).cummax().clip(upper=1.0)


# ---- compare ----

_NOT_COMPARED = {*RUN.columns.keys(), "mem-total-bytes"} - {"board", "jetpack", "l4t", "pytorch"}
_QUANTILES = {0.05: "low", 0.25: "quarter", 0.5: "median", 0.75: "three", 0.95: "high"}
LEVEL = 0.01  # the chance of any false change among all parts of all groups
# A multiple of the distance from the median to the 5th or 95th percentile: five standard deviations of a normal distribution.
_FAR = 3


class Comparison(NamedTuple):
    key: str
    pool: str
    base: int
    compared: int  # tests
    left_out: int  # runs without an end
    groups: Frame  # value, label (safe to show), runs
    rows: Frame  # of a part in a group: the total first, then by view; of a view the largest change first
    outliers: Frame  # runs far from their group's median, in the part where they are farthest; the farthest first
    facts: Frame  # that differ between most runs of the groups: by group the value that most have, and how many
    runs: List[Frame]  # by group
    values: List[Frame]  # by group: bytes by run and part


def _outliers(runs: Frame, values: Sequence[Frame], rows: Frame) -> Frame:
    """Each in the part where it is farthest."""
    least = max(1, rows.loc[rows["view"] == TOTAL, "median"].max() // 200)
    by_part = pandas.concat(values, keys=range(len(values)), names=["group"]).stack(["view", "name"])
    cells = by_part.rename("bytes").reset_index().merge(rows)
    change = cells["bytes"] - cells["median"]
    tail = (cells["high"] - cells["median"]).where(change > 0, cells["median"] - cells["low"])
    far = cells.assign(distance=change.abs())[(change.abs() > _FAR * tail) & (change.abs() >= least)]
    far = far.merge(runs[["run", "id", "file", "host"]]).sort_values(["distance", "id"], ascending=[False, True])
    return far.drop_duplicates("id")[["id", "file", "host", "group", "view", "name", "bytes", "median"]]


def _facts(runs: Sequence[Frame], key: str) -> Frame:
    found = []
    for fact in sorted(runs[0].columns.difference([*_NOT_COMPARED, key])):
        counts = [group[fact].fillna("").astype(str).value_counts() for group in runs]
        most = [{"value": min(each.index[each == each.max()]), "runs": int(each.max())} for each in counts]
        # A fact with many values, such as the kind of board, differs by chance.
        is_usual = any(2 * each["runs"] > len(group) for each, group in zip(most, runs))
        if is_usual and not is_redundant(fact) and len({each["value"] for each in most}) > 1:
            found.append((fact, label(fact), most))
    return pandas.DataFrame(found, columns=["key", "label", "values"])


def compare(of: Runs, key: str, base: Optional[str] = None) -> Comparison:
    """Each group with that of the base, by default the first. Raises FleetError."""
    if of.runs.empty:
        raise FleetError("there is no such run; runs without an end count with --where 'is_complete=*'")
    by_value = grouped_by(key, range(len(of.runs)), list(_texts(of.runs, key)).__getitem__)
    groups = pandas.DataFrame([(*each, len(at)) for *each, at in by_value], columns=["value", "label", "runs"])
    known = list(groups["value"])
    if base is not None and base not in known:
        raise FleetError(f'no run has {key} "{base}": there is {", ".join(known)}')
    if len(known) < 2:
        raise FleetError(f'all {len(of.runs):,} runs have the same "{key}": there is nothing to compare')
    if (TOTAL, TOTAL) not in of.figures:
        raise FleetError("no run has figures of its peak")
    first = known.index(base) if base is not None else 0
    runs = [of.runs.iloc[at] for *_, at in by_value]
    values = [of.figures.loc[each["run"]] for each in runs]
    tables = []
    for group, each in enumerate(values):
        table = each.quantile(list(_QUANTILES)).round().astype("int64").T.rename(columns=_QUANTILES)
        table["spread"] = table.pop("three") - table.pop("quarter")
        table["p"] = mannwhitneyu(each, values[first], axis=0, method="asymptotic").pvalue
        change = intervals(values[first], each, LEVEL) if group != first else None
        tables.append(table.assign(group=group, n=len(each), interval=change))
    rows = pandas.concat(tables).reset_index()
    outliers = _outliers(of.runs, values, rows)
    rows["bytes"] = rows["median"] - numpy.tile(tables[first]["median"], len(tables))
    is_judged = rows["interval"].notna()
    rows["p"] = holm(rows.loc[is_judged, "p"]).reindex(rows.index, fill_value=1.0)
    rows["is_change"] = (rows["bytes"] != 0) & (rows["p"] < LEVEL)
    rows["order"] = rows["view"].map((TOTAL, *VIEWS).index)
    rows["largest"] = -rows["bytes"].abs().groupby([rows["view"], rows["name"]]).transform("max")
    rows = rows.sort_values(["order", "largest", "name", "group"], ignore_index=True).drop(columns=["order", "largest"])
    parts = list(rows.loc[rows["group"] == first, ["view", "name"]].itertuples(index=False, name=None))
    more = groups, rows, outliers, _facts(runs, key), runs, [each[parts] for each in values]
    return Comparison(key, of.pool, first, int(is_judged.sum()), len(of.all) - len(of.runs), *more)
