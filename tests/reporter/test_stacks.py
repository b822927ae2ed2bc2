# SPDX-License-Identifier: GPL-2.0-or-later
"""Call stacks of several runs in one trie, and what the page of jm_diff is told of them: summed up anew from the profiles."""

from typing import Any, Callable, Dict, List, Tuple

import pytest

from jmassif.analysis.compare import Column, Difference, Stacks, compare, measure, namer
from jmassif.attribution.names import Names

from jmassif.html import cells
from jmassif.html.cells import TooLarge
from jmassif.html.diff_page import stacks_data
from jmassif.model.records import counted_blocks, side_of
from jmassif.model.run import Profile
from tests.reporter.test_page_data import column, moments
from tests.reporter.traces import Trace, random_run

VIEWS = ("owner", "library")
Sums = Dict[Any, Tuple[int, int]]


def holding(*rows: Tuple[str, List[str], int]) -> Trace:
    """A run that holds so many bytes of the heap by stack, innermost first."""
    trace = Trace(time_unit="ms", memory="unified")
    trace.group("yours", "app")
    live = {trace.account("heap", owner, frames): (n_bytes, 1) for owner, frames, n_bytes in rows}
    trace.snapshot(1, "time", live, {which: (1, {}) for which in ("total", "host")})
    trace.lines.append("Z 2 exit 0")
    return trace


def paths(traces: List[Trace]) -> List[Dict[Tuple[str, ...], int]]:
    """By run: the bytes by names of frames, outermost first."""
    stacks = Stacks()
    found = []
    for trace in traces:
        profile = trace.load()
        held = stacks.add(profile, Names(profile), profile.peak_composition("total"))
        sums: Dict[Tuple[str, ...], int] = {}
        for account, n_bytes in zip(held.account, held.bytes):
            frames = tuple(stacks.labels[frame] for frame in stacks.stack(stacks.accounts[account].node))[::-1]
            sums[frames] = sums.get(frames, 0) + n_bytes
        found.append(sums)
    edges = list(zip(stacks.node_parent, stacks.node_frame))[1:]
    assert len(edges) == len(set(edges))  # no place is there twice
    return found


def test_a_stack_of_another_release_is_the_same_place() -> None:
    old = holding(("app", ["cudnnCreate.part.3 (/usr/lib/libcudnn.so.8.2.1)", "main (t.c:9)"], 100))
    new = holding(("app", ["cudnnCreate (/usr/lib/libcudnn.so.8.6.0)", "main (t.c:12)"], 300))
    path = ("main (t.c)", "cudnnCreate (libcudnn.so)")
    assert paths([old, new]) == [{path: 100}, {path: 300}]
    data = stacks_data(*diff([[old], [new]]))
    assert data.head["libraries"] == ["libcudnn.so"]
    assert [live[0][0] for live in moments(data)] == [100, 300]


def test_other_callers_and_other_libraries_are_other_places() -> None:
    run = holding(
        ("app", ["f (a.so)", "main (t.c:1)"], 1),
        ("app", ["f (b.so)", "main (t.c:1)"], 2),
        ("app", ["f (a.so)", "g (a.so)", "main (t.c:1)"], 4),
        ("app", ["main (t.c:2)"], 8),
        ("app", [], 16),
    )
    main = "main (t.c)"
    assert paths([run]) == [
        {(main, "f (a.so)"): 1, (main, "f (b.so)"): 2, (main, "g (a.so)", "f (a.so)"): 4, (main,): 8, (): 16}
    ]


def test_python_frames_go_by_function_and_file() -> None:
    old = holding(("app", ["malloc (libc.so.6)", "py step (/home/a/train.py:8)"], 5))
    new = holding(("app", ["malloc (libc.so.6)", "py step (/home/b/train.py:9)"], 6))
    assert [list(found) for found in paths([old, new])] == [[("step (train.py)", "malloc (libc.so)")]] * 2


# ---- what the page is told ---------------------------------------------------------------------


def model(profile: Profile, name_of: Callable[[int], str]) -> Sums:
    sums: Sums = {}
    for account, (n_bytes, blocks) in profile.peak_composition("total").items():
        kind = profile.accounts[account].kind
        if side_of(kind):
            held = sums.get(name_of(account), (0, 0))
            sums[name_of(account)] = (held[0] + n_bytes, held[1] + counted_blocks(kind, blocks))
    return {name: held for name, held in sums.items() if any(held)}


def diff(sides: List[List[Trace]]) -> Tuple[Difference, Stacks]:
    stacks = Stacks()
    columns = [
        Column(str(n), [measure(f"{n}.{i}", trace.load(), VIEWS, "peak", stacks) for i, trace in enumerate(side)])
        for n, side in enumerate(sides)
    ]
    return compare(columns, VIEWS), stacks


@pytest.mark.parametrize("seed", range(6))
def test_however_few_nodes_are_kept_each_column_is_exact(monkeypatch: Any, seed: int) -> None:
    max_nodes = (3, 0, 10**6)[seed % 3]
    monkeypatch.setattr(cells, "_BUDGETS", ((max_nodes, 0, 300),))
    traces = [random_run(3 * seed + n) for n in range(3)]
    difference, stacks = diff([[trace] for trace in traces])
    data = stacks_data(difference, stacks)
    head = data.head
    assert len(column(data, "node.parent")) <= max_nodes + 2
    named: List[Tuple[str, List[str]]] = [
        (name, [row[place] for place in column(data, f"cell.{name}")])
        for name, row in (
            ("owner", [owner["name"] for owner in head["owners"]]),
            ("kind", [kind["name"] for kind in head["kinds"]]),
            ("library", head["libraries"]),
        )
    ]
    assert len(moments(data)) == len(traces)
    for trace, live in zip(traces, moments(data)):
        profile = trace.load()
        for view, names in named:
            sums: Sums = {}
            for cell, (n_bytes, blocks, _) in live.items():
                held = sums.get(names[cell], (0, 0))
                sums[names[cell]] = (held[0] + n_bytes, held[1] + blocks)
            found = {name: held for name, held in sums.items() if any(held)}
            assert found == model(profile, namer(profile, Names(profile), view))


def test_a_kept_node_has_what_is_below_it(monkeypatch: Any) -> None:
    monkeypatch.setattr(cells, "_BUDGETS", ((1, 0, 300),))
    main = "main (t.c:1)"
    runs = [
        holding(("app", ["f (a.so)", main], 1000 * n), ("app", ["g (a.so)", main], n), ("app", ["h (a.so)", main], 1))
        for n in (1, 2)
    ]
    data = stacks_data(*diff([[run] for run in runs]))
    labels = [data.head["frames"]["label"][frame] for frame in column(data, "node.frame")]
    assert labels == ["", "main (t.c)", "f (a.so)"]
    by_node = list(zip(column(data, "cell.node"), column(data, "cell.places")))
    assert sorted(by_node) == [(1, 2), (2, 0)]
    held = [{by_node[cell]: n_bytes for cell, (n_bytes, _, _) in live.items()} for live in moments(data)]
    assert held == [{(1, 2): 2, (2, 0): 1000}, {(1, 2): 3, (2, 0): 2000}]


def test_of_repeated_runs_the_stacks_are_the_medians() -> None:
    def run(n_bytes: int) -> Trace:
        return holding(("app", ["f (a.so)"], n_bytes))

    difference, stacks = diff([[run(50), run(10), run(30)], [run(7), run(9)]])
    data = stacks_data(difference, stacks)
    assert [sum(held[0] for held in live.values()) for live in moments(data)] == [30, 7]
    tables = {table["view"]: table for table in reversed(data.head["tables"])}
    assert "of the median run (0: 0.2; 1: 1.0)" in tables["sides"]["note"]
    assert tables["by-owner"]["total"][1:3] == [30, 7]


def test_what_a_browser_cannot_count_is_refused() -> None:
    difference, stacks = diff([[holding(("app", ["f (a.so)"], 1 << 53))], [holding(("app", ["f (a.so)"], 1))]])
    with pytest.raises(TooLarge):
        stacks_data(difference, stacks)
