# SPDX-License-Identifier: GPL-2.0-or-later
"""Fleets drawn by lot: a planted difference is found, with its size; without one next to nothing is said to have changed."""

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

for library in ("sqlalchemy", "pandas", "scipy"):
    pytest.importorskip(library)

import numpy
import pandas

from jmassif.fleet import FleetError
from jmassif.fleet.compare import Runs, compare, holm, intervals
from jmassif.fleet.database import FIGURE, PART, RUN, SETUP, begin, insert, opened
from jmassif.fleet.tables import write_json

_TAIL = 0.3  # of a cost's logarithm


def drawn(random: Any, n_runs: int, n_parts: int) -> Any:
    """A cost with a long tail, many equal values, and boards of two kinds."""
    boards = random.choice([1.0, 1.6], (n_runs, n_parts))
    return (random.lognormal(10, _TAIL, (n_runs, n_parts)) * boards).astype(int) // 64 * 64


def fill(path: Path, groups: List[Any]) -> Path:
    """A database of groups of runs, with the bytes of each part by run: the first part is the total."""
    names = ["total", *(f"owner{n}" for n in range(1, groups[0].shape[1]))]
    with opened(str(path), may_be_new=True) as connection:
        parts = [{"part": n, "view": "owner" if n else "total", "name": name} for n, name in enumerate(names)]
        begin(connection)
        insert(connection, PART, parts)
        number = 0
        for group, values in enumerate(groups):
            insert(connection, SETUP, [{"setup": group, "key": "release", "value": str(group)}])
            for row in values.tolist():
                number += 1
                insert(connection, RUN, [run_row(number, group)])
                figures = [{"run": number, "part": n, "host": each - each // 4} for n, each in enumerate(row)]
                device = [{"device": each // 4, "number": 1} for each in row]
                insert(connection, FIGURE, [{**host, **more} for host, more in zip(figures, device)])
        connection.commit()
    return path


def run_row(number: int, group: int) -> Any:
    row = {name: "" for name in ("file", "host", "board", "l4t", "jetpack", "pytorch", "command", "start", "ended")}
    numbers = {name: 0 for name in ("pid", "end_time", "is_discrete", "peak_total", "peak_host", "peak_device")}
    known = {"run": number, "id": f"{number:032x}", "start_unix_ms": number, "is_complete": 1, "setup": group}
    return {**row, **numbers, **known}


def difference(path: Path) -> Dict[str, Any]:
    with opened(str(path)) as connection:
        compared = compare(Runs(connection, []), "release")
    found: Dict[str, Any] = json.loads("".join(write_json(compared)))
    return found


def changed_rows(found: Dict[str, Any]) -> Dict[str, Any]:
    """By name, the change of the second group."""
    return {row["name"]: row for row in found["rows"] if row["is_change"] and row["group"] == 1}


def test_a_planted_difference_is_found_with_its_size(tmp_path: Path) -> None:
    random = numpy.random.default_rng(1)
    before, now = drawn(random, 120, 20), drawn(random, 80, 20)
    now[:, 0] += 30000
    now[:, 7] += 20000
    found = difference(fill(tmp_path / "f.db", [before, now]))
    changed = changed_rows(found)
    assert set(changed) == {"total", "owner7"} and found["rows"][2]["name"] == "owner7" and found["compared"] == 20
    for name, planted in (("total", 30000), ("owner7", 20000)):
        low, high = changed[name]["interval"]
        assert changed[name]["p"] < 0.01 and 0 < low <= planted <= high
        assert low <= changed[name]["bytes"] <= high


def test_of_fleets_without_a_difference_next_to_none_has_one() -> None:
    """200 fleets of 60 rows at 5 %: ten are expected to have one."""
    from scipy.stats import mannwhitneyu

    random = numpy.random.default_rng(20)
    n_alarms = 0
    for _ in range(200):
        found = mannwhitneyu(drawn(random, 40, 60), drawn(random, 60, 60), axis=0, method="asymptotic")
        n_alarms += bool((holm(pandas.Series(found.pvalue)) < 0.05).any())
    assert n_alarms <= 20


def test_a_difference_of_medians_lies_in_its_interval_as_often_as_is_said() -> None:
    random = numpy.random.default_rng(21)
    found = intervals(drawn(random, 30, 3000), drawn(random, 50, 3000) + 777, 0.1)
    outside = [interval for interval in found if interval and not interval[0] <= 777 <= interval[1]]
    assert all(found) and len(outside) <= 0.1 * len(found)


def test_equal_values_are_no_change_and_different_constants_are_one(tmp_path: Path) -> None:
    before, now = numpy.full((40, 3), 5000), numpy.full((30, 3), 5000)
    now[:, 1] = 7000
    found = difference(fill(tmp_path / "f.db", [before, now]))
    assert list(changed_rows(found)) == ["owner1"]
    assert changed_rows(found)["owner1"]["interval"] == [2000, 2000]


def test_few_runs_have_no_interval_and_are_not_judged(tmp_path: Path) -> None:
    found = difference(fill(tmp_path / "f.db", [numpy.full((40, 2), 5000), numpy.full((3, 2), 9000)]))
    assert found["compared"] == 0 and not changed_rows(found)
    assert [row["interval"] for row in found["rows"]] == [None] * 4


def test_holm_is_its_definition() -> None:
    """By hand: of the k-th smallest of m at most, each times m - k + 1, and never less than the one before."""
    for values, adjusted in (([0.04, 0.01, 0.03], [0.06, 0.03, 0.06]), ([0.5, 0.6], [1.0, 1.0]), ([], [])):
        assert holm(pandas.Series(values, dtype=float)).sort_index().tolist() == adjusted


def test_outliers_are_runs_far_from_the_median_of_their_group(tmp_path: Path) -> None:
    random = numpy.random.default_rng(4)
    groups = [random.normal(1e6, 1e4, (400, 2)).astype(int) for _ in range(2)]
    groups[1][17, 1] = 1_200_000
    found = difference(fill(tmp_path / "f.db", groups))
    far = [(each["group"], each["name"], each["bytes"]) for each in found["outliers"]]
    assert far == [(1, "owner1", 1_200_000)]


def test_one_group_and_no_runs_are_nothing_to_compare(tmp_path: Path) -> None:
    path = fill(tmp_path / "f.db", [numpy.full((4, 2), 5000)])
    with pytest.raises(FleetError, match="nothing to compare"):
        difference(path)
