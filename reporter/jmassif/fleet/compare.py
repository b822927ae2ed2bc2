# SPDX-License-Identifier: GPL-2.0-or-later
"""Groups of runs compared: distributions, significant changes, outliers, differences in software and machine.

Tables are DataFrames. That of runs is in the order in which they began, with a column for each column of the table `run` and each fact.
"""

import fnmatch
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy
import pandas
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
    if runs.empty:
        raise FleetError("the database has no runs in it")
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

    def __init__(self, connection: Any, conditions: Sequence[str], views: Sequence[str] = VIEWS, is_all: bool = False):
        self.all, self.views = read_runs(connection, conditions), [TOTAL, *views]
        self.runs = runs = self.all if is_all else self.all[self.all["is_complete"] == 1]
        is_discrete = runs["is_discrete"].astype(bool) & runs["peak_device"].fillna(0).astype(bool)
        self.pool = "device" if is_discrete.any() else "bytes"  # the device's, where a run has memory of its own there
        n_bytes = FIGURE.c.device if is_discrete.any() else FIGURE.c.host + FIGURE.c.device
        parts = frame(connection, select(PART).where(PART.c.view.in_(self.views))).set_index("part")
        figures = frame(connection, select(FIGURE.c.run, FIGURE.c.part, n_bytes.label("bytes")))
        figures = figures[figures["run"].isin(runs["run"]) & figures["part"].isin(parts.index)]
        figures = figures.set_index(["run", "part"])["bytes"].unstack(fill_value=0).reindex(runs["run"], fill_value=0)
        figures.columns = pandas.MultiIndex.from_frame(parts.loc[figures.columns, ["view", "name"]])
        self.figures = figures.sort_index(axis=1)


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
    """A Series, adjusted for each other: those below a level hold all together at that level."""
    least_first = p_values.sort_values(kind="stable")
    return (least_first * numpy.arange(len(least_first), 0, -1)).cummax().clip(upper=1.0)


# ---- compare ----

_NOT_COMPARED = {*RUN.columns.keys(), "mem-total-bytes"} - {"board", "jetpack", "l4t", "pytorch"}
_QUANTILES = {0.05: "low", 0.25: "quarter", 0.5: "median", 0.75: "three", 0.95: "high"}
# A multiple of the distance from the median to the 5th or 95th percentile: five standard deviations of a normal distribution.
_FAR = 3


class Comparison(NamedTuple):
    key: str
    pool: str
    level: float
    base: int
    compared: int  # tests
    left_out: int  # runs without an end
    groups: Frame  # value, label (safe to show), runs
    rows: Frame  # of a part in a group: the total first, then by view; of a view the largest change first
    outliers: Frame  # runs far from their group's median, in the part where they are farthest; the farthest first
    facts: Frame  # that differ between most runs of the groups: by group the value that most have, and how many
    runs: List[Frame]  # by group
    values: List[Frame]  # by group: bytes by run and part


def _outliers(runs: Sequence[Frame], values: Sequence[Frame], tables: Sequence[Frame]) -> Frame:
    """Each in the part where it is farthest."""
    least, found = max(1, max(table.at[(TOTAL, TOTAL), "median"] for table in tables) // 200), []
    for group, (of, held, table) in enumerate(zip(runs, values, tables)):
        distance = (held - table["median"]).abs().to_numpy()
        tails = table["high"] - table["median"], table["median"] - table["low"]
        distance[(distance <= _FAR * numpy.where(held > table["median"], *tails)) | (distance < least)] = 0
        at = numpy.flatnonzero(distance.any(axis=1))
        parts = table.iloc[distance[at].argmax(axis=1)].reset_index()[["group", "view", "name", "median"]]
        far = of.iloc[at][["id", "file", "host"]].reset_index(drop=True).join(parts)
        found.append(
            far.assign(bytes=held.to_numpy()[at, distance[at].argmax(axis=1)], distance=-distance[at].max(axis=1))
        )
    far = pandas.concat(found).sort_values(["distance", "id"]).rename(columns={"id": "run"})
    return far[["run", "file", "host", "group", "view", "name", "bytes", "median"]]


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


def compare(of: Runs, key: str, base: Optional[str], level: float) -> Comparison:
    """Each group with that of the base, by default the first. Raises FleetError."""
    from scipy.stats import mannwhitneyu

    if of.runs.empty:
        raise FleetError("no run is left: see --where, and --incomplete for runs without an end")
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
        table["p"] = mannwhitneyu(each, values[first], axis=0, method="asymptotic").pvalue
        tables.append(table.assign(group=group, n=len(each), interval=intervals(values[first], each, level)))
    outliers, rows = _outliers(runs, values, tables), pandas.concat(tables).reset_index()
    rows["bytes"] = rows["median"] - numpy.tile(tables[first]["median"], len(tables))
    rows["spread"] = rows["three"] - rows["quarter"]
    is_judged = rows["interval"].notna() & (rows["group"] != first)
    rows["p"] = rows["p"].where(is_judged, 1.0)
    rows.loc[is_judged, "p"] = holm(rows.loc[is_judged, "p"])
    rows["is_change"] = (rows["bytes"] != 0) & (rows["p"] < level)
    rows["order"] = rows["view"].map(of.views.index)
    rows["largest"] = -rows["bytes"].abs().groupby([rows["view"], rows["name"]]).transform("max")
    rows = rows.sort_values(["order", "largest", "name", "group"], ignore_index=True)
    parts = list(rows.loc[rows["group"] == first, ["view", "name"]].itertuples(index=False, name=None))
    values, left_out = [each[parts] for each in values], len(of.all) - len(of.runs)
    more = groups, rows, outliers, _facts(runs, key), runs, values
    return Comparison(key, of.pool, level, first, int(is_judged.sum()), left_out, *more)
