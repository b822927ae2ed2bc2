# SPDX-License-Identifier: GPL-2.0-or-later
"""The ledger, the answer, the choice of the moment, and the start-up waterfall."""

from typing import List, Tuple

import pytest

from jmassif.analysis.aggregate import Usage, UsageRow, ledger, roles
from jmassif.analysis.lines import by_place, hot_spot
from jmassif.analysis.moments import SelectionError, select
from jmassif.analysis.regions import waterfall
from jmassif.analysis.summary import Temporaries, hottest_temporaries
from jmassif.attribution.names import Names
from jmassif.model.records import LISTED_KINDS
from tests.reporter.traces import Trace, random_run, small_training_run


def test_owners_fold_into_groups_in_a_fixed_order() -> None:
    profile = small_training_run().load()
    table = ledger(profile, profile.peak_composition("total"))
    assert [(group.name, [owner.name for owner in group.owners]) for group in table.groups] == [
        ("yours", ["tensor"]),
        ("cached", ["cache"]),
        ("libraries", ["cudnn", "python"]),
        ("runtime", ["context"]),
    ]
    assert table.total.bytes == profile.peaks["total"].host + profile.peaks["total"].device


def test_a_heap_block_counts_once_with_its_overhead() -> None:
    trace = Trace()
    heap, overhead = trace.account("heap", "app"), trace.account("heap-overhead", "app")
    trace.snapshot(1, "time", {heap: (100, 4), overhead: (32, 4)})
    profile = trace.load()
    assert ledger(profile, profile.composition(0)).total == Usage(132, 4)


def test_imported_memory_is_listed_apart() -> None:
    trace = Trace()
    heap, imported = trace.account("heap", "app"), trace.account("imported", "app")
    trace.snapshot(1, "time", {heap: (100, 4), imported: (4096, 1)})
    profile = trace.load()
    table = ledger(profile, profile.composition(0))
    assert table.total.bytes == 100 and (table.imported_bytes, table.imported_blocks) == (4096, 1)


def test_an_owner_without_a_group_is_not_lost() -> None:
    trace = Trace()
    trace.group("yours", "app")
    one, two = trace.account("heap", "app"), trace.account("heap", "mystery")
    trace.snapshot(1, "time", {one: (100, 4), two: (4096, 1)})
    profile = trace.load()
    groups = [(group.name, group.bytes) for group in ledger(profile, profile.composition(0)).groups]
    assert groups == [("yours", 100), ("other", 4096)]


@pytest.mark.parametrize("seed", range(5))
def test_the_ledger_of_a_random_run_adds_up(seed: int) -> None:
    profile = random_run(seed).load()
    for index, snapshot in enumerate(profile.snapshots):
        composition = profile.composition(index)
        table = ledger(profile, composition)
        rows = table.owners
        assert sum(row.usage.host_bytes for row in rows) == table.total.host_bytes == snapshot.host
        assert sum(row.usage.device_bytes for row in rows) == table.total.device_bytes == snapshot.device
        for group in table.groups:
            assert group.bytes == sum(owner.bytes for owner in group.owners)
        imported = [held for a, held in composition.items() if profile.accounts[a].kind in LISTED_KINDS]
        assert table.imported_bytes == sum(n_bytes for n_bytes, _ in imported)


def test_temporaries_are_hot_when_many_and_most() -> None:
    trace = Trace()
    hot, few, mixed = (trace.account("heap", "app") for _ in range(3))
    trace.snapshot(
        1,
        "time",
        {hot: (1, 1, 90_000, 3000, 2900), few: (1, 1, 900, 999, 999), mixed: (1, 1, 9_000_000, 90_000, 4000)},
    )
    profile = trace.load()
    expected = [Temporaries("memory without a stack", 2900, 3000, 90_000)]
    assert hottest_temporaries(profile, Names(profile)) == expected


# ---- the moment ----------------------------------------------------------------------------------


def test_a_moment_is_a_peak_the_last_snapshot_or_one_by_its_number() -> None:
    profile = small_training_run().load()
    chosen = {name: select(profile, name) for name in ("peak", "peak-host", "peak-device", "last", "2")}
    assert {name: moment.time for name, moment in chosen.items()} == {
        "peak": 600,
        "peak-host": 900,
        "peak-device": 600,
        "last": 1000,
        "2": 250,
    }
    assert chosen["2"].composition == profile.composition(1) and chosen["2"].name == "snapshot 2"


@pytest.mark.parametrize("selector", ["0", "4", "first", "02", ""])
def test_a_moment_that_is_not_there_is_refused_with_what_is(selector: str) -> None:
    with pytest.raises(
        SelectionError, match="there are 1 to 3, peak, peak-host, peak-device, peak-allocated, start, end, last"
    ):
        select(small_training_run().load(), selector)


def test_on_a_discrete_gpu_the_peak_is_the_devices() -> None:
    trace = Trace(memory="discrete")
    heap, device = trace.account("heap", "app"), trace.account("device", "app")
    peaks = {"total": (1, {heap: (900, 1)}), "host": (1, {heap: (900, 1)}), "device": (5, {device: (70, 1)})}
    trace.snapshot(9, "time", {heap: (100, 1), device: (10, 1)}, peaks)
    assert select(trace.load(), "peak").time == 5


def test_without_a_peak_on_record_the_fullest_snapshot_stands_in() -> None:
    trace = Trace()
    heap = trace.account("heap", "app")
    for time, size in ((1, 10), (2, 30), (3, 20)):
        trace.snapshot(time, "time", {heap: (size, 1)})
    chosen = select(trace.load(), "peak")
    assert (chosen.time, chosen.name) == (2, "the fullest snapshot")


@pytest.mark.parametrize(
    "sizes, reason, end",
    [
        ([10, 70, 90, 80, 100, 95, 40, 5], "exit", 6),
        ([10, 70, 90, 5], "exit", 3),
        ([10, 70, 90, 91], "exit", 4),
        ([10, 70, 90, 85], "exit", 4),
        ([10, 70, 90, 5], "time", 4),
        ([10], "exit", 1),
    ],
)
def test_the_end_is_before_the_program_lets_go_of_its_memory(sizes: List[int], reason: str, end: int) -> None:
    trace = Trace()
    heap = trace.account("heap", "app")
    for time, size in enumerate(sizes, 1):
        trace.snapshot(time, reason if time == len(sizes) else "time", {heap: (size, 1)})
    assert select(trace.load(), "end").time == end


@pytest.mark.parametrize("kind", ["heap", "device"])
@pytest.mark.parametrize(
    "run, end",
    [
        ("time 90, end 100, time 40, exit 5", 2),  # an interpreter's end, where it told of it
        ("time 90, end 20, time 15, exit 5", 2),
        ("end 20, time 190, exit 5", 1),  # it may hold more for a moment
        ("end 20, time 30, end 50, exit 45", 3),
        ("end 20, end 2, exit 3", 1),
        ("end 20, time 30, exit 30", 3),  # the program went on
        ("end 20, time 10, signal 5", 1),
        ("time 20, time 10, signal 5", 3),
        ("end 20, time 10", 2),  # it was killed, or still runs
    ],
)
def test_the_end_is_that_of_the_interpreter_unless_the_program_goes_on(run: str, end: int, kind: str) -> None:
    trace = Trace()
    account = trace.account(kind, "app")
    for time, (reason, size) in enumerate((step.split() for step in run.split(", ")), 1):
        trace.snapshot(time, reason, {account: (int(size), 1)})
    assert select(trace.load(), "end").time == end


def test_the_end_of_a_forked_child_has_what_the_child_has_allocated() -> None:
    """Its parent's pages of libraries are the child's as it begins; it has fewer of them when it ends."""
    trace = Trace()
    heap, library = trace.account("heap", "app"), trace.account("file", "loader")
    trace.snapshot(1, "fork", {heap: (40_000, 4), library: (1_442_912, 15)})
    trace.snapshot(2, "exit", {heap: (70_000, 6), library: (1_110_296, 12)})
    assert select(trace.load(), "end").time == 2


def test_a_trace_without_snapshots_has_an_empty_moment() -> None:
    assert select(Trace().load(), "peak").composition == {}
    with pytest.raises(SelectionError, match="no complete snapshot"):
        select(Trace().load(), "1")


# ---- the hot spot --------------------------------------------------------------------------------


def place_in(trace: Trace, index: int) -> Tuple[str, int]:
    profile = trace.load()
    names = Names(profile)
    found = hot_spot(profile, names, by_place(profile, names, profile.composition(index)))
    assert found
    return found.label, found.bytes


@pytest.mark.parametrize("place", ["/usr/include/c++/12/bits/unordered_map.h", "/usr/lib/llvm-14/include/c++/v1/map"])
def test_functions_in_the_cxx_librarys_headers_are_not_to_blame(place: str) -> None:
    trace = Trace()
    stack = [
        f"_Scoped_node ({place}:308)",
        f"operator[] ({place}:980)",
        "add(long) (/app/c++/map.h:7)",
        "main (a.cpp:9)",
    ]
    trace.snapshot(1, "time", {trace.account("heap", "app", stack): (50, 1)})
    assert place_in(trace, 0) == ("add(long) (map.h:7)", 50)


def test_a_place_is_all_that_one_frame_allocated() -> None:
    trace = Trace()
    trace.group("yours", "app")
    for caller, size in (("a", 30), ("b", 40)):
        many = trace.account("heap", "app", ["malloc (libc.so.6)", "work (x.c:1)", f"{caller} (x.c:2)"])
        trace.snapshot(1, "time", {many: (size, 1)})
    trace.snapshot(2, "time", {trace.account("heap", "app", ["once (y.c:1)"]): (60, 1)})
    assert place_in(trace, 2) == ("work (x.c:1)", 70)


def test_a_place_in_a_python_program_is_all_that_one_line_of_the_users_own_caused() -> None:
    trace = Trace()
    trace.group("yours", "tensor")
    relu = "py relu (/usr/lib/python3/dist-packages/torch/nn/functional.py:1457)"
    for frame, size in (("conv (libtorch.so)", 30), ("relu (libtorch.so)", 40)):
        line = trace.account("heap", "tensor", [frame, relu, "py forward (/a/net.py:7)", "py main (/a/train.py:9)"])
        trace.snapshot(1, "time", {line: (size, 1)})
    trace.snapshot(2, "time", {trace.account("heap", "tensor", ["once (y.c:1)"]): (60, 1)})
    assert place_in(trace, 2) == ("net.py:7 (forward)", 70)


def test_roles_come_in_the_order_of_training_and_add_up() -> None:
    trace = Trace()
    sizes = {"other": 1, "whim": 2, "gradient": 4, "parameter": 8, "": 16}
    tensors = {trace.account("heap", "tensor", role=role): (size, 1) for role, size in sizes.items()}
    on_device = trace.account("device", "tensor", role="parameter")
    trace.snapshot(1, "time", {**tensors, on_device: (32, 1), trace.account("device", "cache"): (64, 1)})
    profile = trace.load()
    rows = roles(profile, profile.composition(0))
    assert rows == [
        UsageRow("parameter", Usage(8, 1, 32, 1)),
        UsageRow("gradient", Usage(4, 1)),
        UsageRow("other", Usage(17, 2)),
        UsageRow("whim", Usage(2, 1)),
    ]


def test_a_trace_that_tells_no_roles_has_none() -> None:
    trace = Trace()
    trace.snapshot(1, "time", {trace.account("heap", "tensor"): (10, 1)})
    profile = trace.load()
    assert roles(profile, profile.composition(0)) == []


def scopes(*records: str) -> Trace:
    trace = Trace()
    for name in "abcdefgh":
        trace.string(name)
    trace.lines += records
    return trace


def test_the_waterfall_is_in_order_of_time_with_nested_scopes_inside() -> None:
    fall = waterfall(
        scopes(
            "x 2 1 1 10 20 0 2 heap 5 1",
            "x 3 1 1 10 12 0 3 heap 7 1",
            "x 1 0 1 10 30 0 1 heap 12 2",
            "x 4 0 1 5 6 0 4 heap 1 1",
        ).load(),
        9,
    )
    assert [(row.scope.name, row.depth) for row in fall.rows] == [("d", 0), ("a", 0), ("b", 1), ("c", 1)]
    assert fall.n_left_out == 0


def test_the_waterfall_shows_the_costliest_and_what_is_around_them() -> None:
    fall = waterfall(
        scopes(
            "x 2 1 1 10 20 0 2 heap 500 1",
            "x 1 0 1 10 30 0 1 heap -20 0",
            "x 3 0 1 40 50 0 3 heap 30 1",
            "x 4 0 1 60 70 0 4 device 40 1 imported 999 1",
        ).load(),
        1,
    )
    assert [(row.scope.name, row.depth) for row in fall.rows] == [("a", 0), ("b", 1)]
    assert (fall.n_left_out, fall.left_out_bytes) == (2, 70)


def test_scopes_that_cost_next_to_nothing_are_only_counted() -> None:
    trace = scopes("x 1 0 1 0 1 0 1 heap 9 1", "x 2 0 1 5 5000 0 2", "x 3 0 1 6000 6001 0 3 heap 20000 1")
    trace.snapshot(9000, "time", {trace.account("heap", "app"): (100_000, 1)}, {"total": (9000, {})})
    fall = waterfall(trace.load(), 9)
    assert [row.scope.name for row in fall.rows] == ["b", "c"]
    assert (fall.n_left_out, fall.left_out_bytes) == (1, 9)


def test_a_scope_whose_outer_one_never_ended_stands_on_its_own() -> None:
    fall = waterfall(scopes("x 2 7 1 10 20 0 2 heap 500 1").load(), 5)
    assert [(row.scope.name, row.depth) for row in fall.rows] == [("b", 0)]
