# SPDX-License-Identifier: GPL-2.0-or-later
"""Trees: exact sums, folding, and stacks of any depth."""

from itertools import product
from typing import Any, List, Tuple

import pytest

from jmassif.analysis.calltree import ROOT, BottomUp, Shape
from jmassif.attribution.names import STACK_ENDS, Names
from jmassif.model.records import counted_blocks
from jmassif.model.run import Profile
from tests.reporter.traces import Trace, random_run


def shape(
    profile: Profile, threshold: float = 0, by: str = "", max_frames: int = 1 << 30, is_folded: bool = False
) -> Shape:
    levels = [lambda account: str(getattr(profile.accounts[account], by))] if by else []
    names = Names(profile)
    return Shape(levels, names.frame, names.folding, threshold, is_folded, max_frames)


def outline(tree: BottomUp, node: int = ROOT) -> Any:
    """[label, bytes, blocks, child…]; a folded child has its number of places for a label."""
    n_bytes, blocks = (column[node] for column in tree.totals())
    below = [outline(tree, child) for child in tree.children()[node]]
    return [tree.places.get(node) or tree.text(node), n_bytes, blocks, *below]


def test_the_allocation_site_comes_first_then_its_callers() -> None:
    trace = Trace()
    shared = ["malloc (libc.so.6)", "work (a.c:1)"]
    one = trace.account("heap", "app", shared + ["left (a.c:2)", "main (a.c:9)"])
    two = trace.account("heap", "app", shared + ["right (a.c:3)", "main (a.c:9)"])
    trace.snapshot(1, "time", {one: (10, 1), two: (30, 2)})
    profile = trace.load()
    assert outline(BottomUp(profile, profile.composition(0), shape(profile), "all")) == [
        "all", 40, 3,
        ["malloc (libc.so.6)", 40, 3,
         ["work (a.c:1)", 40, 3,
          ["right (a.c:3)", 30, 2, ["main (a.c:9)", 30, 2]],
          ["left (a.c:2)", 10, 1, ["main (a.c:9)", 10, 1]]]],
    ]  # fmt: skip


def test_levels_stand_above_the_stacks() -> None:
    trace = Trace()
    one = trace.account("heap", "app", ["main (a.c:9)"])
    two = trace.account("device", "lib", ["main (a.c:9)"])
    trace.snapshot(1, "time", {one: (10, 1), two: (30, 2)})
    profile = trace.load()
    assert outline(BottomUp(profile, profile.composition(0), shape(profile, by="owner"), "all")) == [
        "all", 40, 3,
        ["lib", 30, 2, ["main (a.c:9)", 30, 2]],
        ["app", 10, 1, ["main (a.c:9)", 10, 1]],
    ]  # fmt: skip


def test_small_places_are_folded_into_one_child() -> None:
    trace = Trace()
    accounts = [trace.account("heap", "app", [f"f{i} (a.c:{i})"]) for i in range(1, 5)]
    trace.snapshot(1, "time", {account: (size, 1) for account, size in zip(accounts, (1, 90, 2, 7))})
    profile = trace.load()
    assert outline(BottomUp(profile, profile.composition(0), shape(profile, threshold=7), "all")) == [
        "all", 100, 4,
        ["f2 (a.c:2)", 90, 1],
        ["f4 (a.c:4)", 7, 1],
        [2, 3, 2],
    ]  # fmt: skip


def test_where_some_stacks_end_and_others_go_on_a_child_stands_for_the_end() -> None:
    trace = Trace()
    short = trace.account("heap", "app", ["f (a.c:1)"])
    long = trace.account("heap", "app", ["f (a.c:1)", "main (a.c:9)"])
    none = trace.account("heap", "app")
    trace.snapshot(1, "time", {short: (4, 1), long: (2, 1), none: (1, 1)})
    profile = trace.load()
    assert outline(BottomUp(profile, profile.composition(0), shape(profile), "all")) == [
        "all", 7, 3,
        ["f (a.c:1)", 6, 2, [STACK_ENDS, 4, 1], ["main (a.c:9)", 2, 1]],
        ["(heap of app, without a stack)", 1, 1],
    ]  # fmt: skip


def test_memory_without_stacks_is_told_apart_by_kind_and_owner() -> None:
    trace = Trace()
    accounts = [trace.account(kind, owner) for kind, owner in (("pool", "cache"), ("stack", "app"), ("stack", "lib"))]
    trace.snapshot(1, "time", {account: (10 * account, 1) for account in accounts})
    profile = trace.load()
    assert outline(BottomUp(profile, profile.composition(0), shape(profile), "all")) == [
        "all", 60, 3,
        ["(stack of lib, without a stack)", 30, 1],
        ["(stack of app, without a stack)", 20, 1],
        ["(pool of cache, without a stack)", 10, 1],
    ]  # fmt: skip


def test_a_stack_deeper_than_pythons_own_is_no_problem() -> None:
    trace = Trace()
    deep = trace.account("heap", "app", ["f (a.c:1)", "g (a.c:2)"] * 10_000)
    trace.snapshot(1, "time", {deep: (10, 1)})
    profile = trace.load()
    composition = profile.composition(0)
    assert len(BottomUp(profile, composition, shape(profile), "all").parent) == 20_001
    assert len(BottomUp(profile, composition, shape(profile, max_frames=5), "all").parent) == 6


def test_runs_of_internal_frames_are_one_node_whatever_is_in_them() -> None:
    trace = Trace()
    torch = "/usr/lib/python3/dist-packages/torch/nn/functional.py"
    run = [f"py relu ({torch}:1)", f"py conv ({torch}:2)", "_PyObject_Call (python3.11)"]
    outer = ["py main (/a/train.py:9)", "Py_Main (python3.11)"]
    one = trace.account("heap", "app", ["c10::alloc_cpu (libc10.so)"] + run[:1] + outer)
    two = trace.account("heap", "app", ["c10::alloc_cpu (libc10.so)"] + run + outer)
    three = trace.account("heap", "app", ["own (net.so)"] + run[2:] + outer)
    trace.snapshot(1, "time", {one: (10, 1), two: (30, 2), three: (5, 1)})
    profile = trace.load()
    assert outline(BottomUp(profile, profile.composition(0), shape(profile, is_folded=True), "all")) == [
        "all", 45, 4,
        ["… 2 to 4 frames of torch", 40, 3, ["train.py:9 (main)", 40, 3, ["… 1 frame of python", 40, 3]]],
        ["own (net.so)", 5, 1,
         ["… 1 frame of python", 5, 1, ["train.py:9 (main)", 5, 1, ["… 1 frame of python", 5, 1]]]],
    ]  # fmt: skip


def test_kind_and_owner_are_known_where_they_are_the_same_throughout() -> None:
    trace = Trace()
    one = trace.account("heap", "app", ["f (a.c:1)"])
    two = trace.account("heap", "lib", ["f (a.c:1)", "main (a.c:2)"])
    trace.snapshot(1, "time", {one: (10, 1), two: (10, 1)})
    profile = trace.load()
    tree = BottomUp(profile, profile.composition(0), shape(profile), "all")
    assert (tree.kind(ROOT), tree.owner(ROOT)) == ("heap", None)
    assert [{tree.owner(node) for node in nodes} for nodes in tree.children()[:2]] == [{None}, {"app", "lib"}]


SHAPES: List[Tuple[float, str, bool]] = list(product([0, 1, 10, 60, 100], ["", "kind", "owner"], [False, True]))


@pytest.mark.parametrize("seed", range(len(SHAPES)))
def test_sums_are_exact_in_any_tree(seed: int) -> None:
    threshold, by, is_folded = SHAPES[seed]
    profile = random_run(seed).load()
    for index in range(0, len(profile.snapshots), 7):
        composition = profile.composition(index)
        tree = BottomUp(profile, composition, shape(profile, threshold, by, is_folded=is_folded), "all")
        n_bytes, blocks = tree.totals()
        assert n_bytes[ROOT] == sum(held[0] for held in composition.values())
        assert blocks[ROOT] == sum(
            counted_blocks(profile.accounts[account].kind, held[1]) for account, held in composition.items()
        )
        for node, children in enumerate(tree.children()):
            assert not children or not tree.own[0][node]  # it is all in its children
            assert node == ROOT or node in tree.places or n_bytes[node] * 100 >= threshold * n_bytes[ROOT]
