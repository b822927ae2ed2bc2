# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs side by side: rows that mean the same are one, sums hold to the byte, repeats tell what is noise."""

import random
from typing import Dict, List, Sequence, Tuple

import pytest

from jmassif.analysis.aggregate import Usage
from jmassif.analysis.compare import (
    _RUNGS,
    HELD,
    VIEWS,
    Column,
    Difference,
    Run,
    View,
    compare,
    measure,
)
from jmassif.analysis.ladder import LESS, PLUS, Ladder
from jmassif.analysis.moments import SelectionError
from jmassif.render.ladder import LABELS
from tests.reporter.test_ladder import board_trace
from tests.reporter.traces import Trace, random_run, small_training_run

MIB = 1 << 20


def held(cudnn: int, version: str, tensors: int, memory: str = "unified", **manifest: str) -> Trace:
    """A run that holds so much at its peak, and ends with nothing; bytes."""
    trace = Trace(time_unit="ms", memory=memory, **manifest)
    trace.group("yours", "tensor")
    trace.group("libraries", "cudnn")
    main = ["main (train.c:9)"]
    handle = ["malloc (/vg/vgpreload_jmassif.so)", f"cudnnCreate (/usr/lib/libcudnn.so.{version})"] + main
    library = trace.account("heap", "cudnn", handle)
    tensor = trace.account("device", "tensor", ["cudaMalloc (/usr/lib/libcudart.so.10.2)"] + main, "gradient")
    trace.snapshot(0, "start")
    at_peak = (5, {library: (cudnn, min(cudnn, 1)), tensor: (tensors, min(tensors, 1))})
    peaks = {which: at_peak for which in ("total", "host", "device")}
    trace.snapshot(10, "exit", {library: (0, 0, cudnn, 1), tensor: (0, 0, tensors, 1)}, peaks)
    trace.lines.append("Z 10 exit 0")
    return trace


def run(trace: Trace, views: Sequence[str] = HELD, at: str = "peak") -> Run:
    return measure("trace", trace.load(), views, at)


def columns(*sides: Sequence[Trace], views: Sequence[str] = HELD, at: str = "peak") -> List[Column]:
    return [Column(str(n), [run(trace, views, at) for trace in side]) for n, side in enumerate(sides)]


def compared(
    *sides: Sequence[Trace], min_bytes: int = 0, views: Sequence[str] = HELD, at: str = "peak"
) -> Dict[str, View]:
    found = compare(columns(*sides, views=views, at=at), views, min_bytes)
    for view in found.views:
        assert_adds_up(view)
    return {view.by: view for view in found.views}


def assert_adds_up(view: View) -> None:
    """The rows that count, with what was folded and what medians lack, are the total, in every column."""
    rows = [row for row in view.rows if row.key.is_counted]
    rows += [row for row in (view.other, view.rounding) if row]
    for n, cell in enumerate(view.total.cells):
        sums = [sum(row.cells[n].figures[field] for row in rows) for field in range(4)]
        assert tuple(sums) == cell.figures
        changes = [sum(row.cells[n].change[field] for row in rows) for field in range(4)]
        assert tuple(changes) == cell.change


def figures(usage: Usage) -> Tuple[int, int, int]:
    """Host and device bytes, and blocks or calls."""
    return usage.host_bytes, usage.device_bytes, usage.blocks


def told(view: View) -> Dict[str, List[int]]:
    """By name: the bytes of each column."""
    return {row.key.name: [cell.figures.bytes for cell in row.cells] for row in view.rows}


def test_each_view_tells_the_same_difference() -> None:
    views = compared([held(3 * MIB, "8", 5000)], [held(9 * MIB, "8.6.0", 5000)])
    cudnn, tensors = [3 * MIB, 9 * MIB], [5000, 5000]
    assert told(views["owner"]) == {"cudnn": cudnn, "tensor": tensors}
    assert told(views["group"]) == {"libraries": cudnn, "yours": tensors}
    assert told(views["kind"]) == {"heap": cudnn, "device": tensors}
    assert told(views["role"]) == {"(no tensor)": cudnn, "gradient": tensors}
    assert told(views["library"])["libcudnn.so"] == cudnn
    assert told(views["function"]) == {"cudnnCreate (libcudnn.so)": cudnn, "main (train.c)": tensors}
    assert [figures(cell.figures) for cell in views["owner"].total.cells] == [
        (3 * MIB, 5000, 2),
        (9 * MIB, 5000, 2),
    ]
    assert figures(views["owner"].rows[0].cells[1].change) == (6 * MIB, 0, 0)


def test_what_is_only_in_one_run_is_new_or_gone() -> None:
    views = compared([held(0, "8", 7)], [held(100, "8", 0)])
    assert told(views["owner"]) == {"cudnn": [0, 100], "tensor": [7, 0]}


def test_memory_that_moves_from_host_to_device_is_a_change() -> None:
    def moved(kind: str) -> Trace:
        trace = Trace(time_unit="ms", memory="unified")
        trace.snapshot(0, "start", {trace.account(kind, "app", ["main (a.c:1)"]): (4096, 1)})
        return trace

    (row,) = compared([moved("heap")], [moved("device")])["owner"].rows
    assert figures(row.cells[1].change) == (-4096, 4096, 0)
    assert row.change == 4096


def test_functions_without_names_are_one_a_library() -> None:
    """Their addresses are others in every build."""

    def stripped(*addresses: str) -> Trace:
        trace = Trace(time_unit="ms", memory="unified")
        live = {}
        for n, address in enumerate(addresses):
            string = trace.string("/usr/lib/libcudnn.so.8")
            frame = trace.frame_of_fields(f"stripped {n}", f"n 0 {string} 0 0 {address}")
            live[trace.account("heap", "cudnn", [frame])] = (10, 1)
        trace.snapshot(0, "start", live)
        return trace

    assert told(compared([stripped("4000")], [stripped("5000", "6000")])["function"]) == {
        "libcudnn.so (no debug symbols)": [10, 20]
    }


def test_python_lines_and_functions_and_modules() -> None:
    def script(package: str, cwd: str, n_bytes: int) -> Trace:
        trace = Trace(time_unit="ms", memory="unified", cwd=cwd)
        stack = [
            f"py relu ({package}/torch/nn/functional.py:9)",
            "py train (/app/train.py:7)",
            "py <module> (/app/train.py:20)",
        ]
        trace.snapshot(0, "start", {trace.account("heap", "tensor", stack): (n_bytes, 1)})
        return trace

    sides = [script("/usr/lib/python3/dist-packages", "/app", 10)], [
        script("/opt/venv/lib/python3.8/site-packages", "/", 30)
    ]
    views = compared(*sides)
    assert told(views["python-line"]) == {"train.py:7": [10, 30]}
    assert told(views["python-function"]) == {"train (train.py)": [10, 30]}
    assert told(views["module"]) == {"train": [10, 30]}
    assert told(views["function"]) == {"relu (torch/nn/functional.py)": [10, 30]}


# ---- moments -----------------------------------------------------------------------------------


def marked() -> Trace:
    trace = Trace(time_unit="ms", memory="unified")
    account = trace.account("heap", "app", ["main (a.c:1)"])
    trace.snapshot(0, "start", {account: (1, 1)})
    for time, text, n_bytes in ((10, "epoch", 100), (10, "saved", 150), (20, "epoch", 200)):
        trace.mark(time, text)
        trace.snapshot(time, "mark", {account: (n_bytes, 1)})
    trace.mark(30, "of NVTX, which takes no snapshot")
    trace.snapshot(
        30, "exit", {account: (5, 1)}, {"total": (25, {account: (999, 3)}), "host": (25, {account: (999, 3)})}
    )
    trace.lines.append("Z 30 exit 0")
    return trace


@pytest.mark.parametrize(
    "at, n_bytes",
    [
        ("peak", 999),
        ("peak-host", 999),
        ("start", 1),
        ("end", 200),
        ("last", 5),
        ("epoch", 200),
        ("saved", 150),
        ("2", 100),
    ],
)
def test_moments(at: str, n_bytes: int) -> None:
    assert told(compared([marked()], views=["owner"], at=at)["owner"]) == {"app": [n_bytes]}


def test_a_moment_that_a_run_lacks_is_said_with_those_it_has() -> None:
    with pytest.raises(SelectionError, match='no snapshot "Epoch": there are 1 to 5, peak.*"epoch", "saved"'):
        run(marked(), at="Epoch")


# ---- calls -------------------------------------------------------------------------------------


def called(*records: str, **manifest: str) -> Trace:
    """`records` are those of scopes, with the name of a call for its string: "x 1 0 1 0 9 0 cuInit heap 100 1"."""
    trace = Trace(time_unit="ms", memory="unified", **manifest)
    for record in records:
        words = record.split("'")
        trace.lines.append(words[0] + str(trace.string(words[1])) + words[2])
    trace.snapshot(9, "exit")
    trace.lines.append("Z 9 exit 0")
    return trace


OLD_CALLS = (
    "x 1 0 1 0 1 0 'cuInit' heap 100 1",
    "x 2 3 1 2 3 0 'cuModuleLoadData' heap 30 1 device 50 1",
    "x 3 0 1 2 4 0 'cudnnCreate' heap 40 2 device 60 2",
    "x 4 0 1 5 6 0 'dlopen libcudnn.so.8.2.1' heap 7 1",
    "x 5 0 1 7 8 0 'cuModuleLoadData' heap 30 1",
    "X 'cuModuleLoadData' 12 9 heap 360 12",
)
NEW_CALLS = (
    "x 1 0 1 0 1 0 'cuInit' heap 100 1",
    "x 2 4 1 2 3 0 'cuModuleLoadData' heap 30 1",
    "x 3 4 1 2 3 0 'cuModuleLoadData' heap 30 1",
    "x 4 0 1 2 4 0 'cudnnCreate' heap 90 2 device 60 2",
    "x 5 0 1 5 6 0 'dlopen libcudnn.so.8.6.0' heap 7 1",
    "x 6 0 1 7 8 0 'cublasCreate_v2' heap -5 1 imported 9000 1",
)


def test_calls_are_compared_with_those_inside_them_beneath() -> None:
    view = compared([called(*OLD_CALLS)], [called(*NEW_CALLS)], views=VIEWS)["scope"]
    rows = [
        (row.key.inside, row.key.name, row.key.is_counted, row.key.is_listed)
        + tuple(figures(cell.figures) for cell in row.cells)
        for row in view.rows
    ]
    nothing = (0, 0, 0)
    assert rows == [
        ((), "cuModuleLoadData", False, True, (360, 0, 12), nothing),
        ((), "cudnnCreate", True, False, (40, 60, 1), (90, 60, 1)),
        (("cudnnCreate",), "cuModuleLoadData", False, False, (30, 50, 1), (60, 0, 2)),
        ((), "cuModuleLoadData", True, False, (30, 0, 1), nothing),
        ((), "cublasCreate", True, False, nothing, (-5, 0, 1)),
        ((), "cuInit", True, False, (100, 0, 1), (100, 0, 1)),
        ((), "dlopen libcudnn.so", True, False, (7, 0, 1), (7, 0, 1)),
    ]
    assert [figures(cell.figures) for cell in view.total.cells] == [(177, 60, 4), (192, 60, 4)]


def test_calls_nested_without_end_are_told_to_a_depth() -> None:
    depth = 5000
    records = [f"x {n} {n + 1} 1 0 1 0 'cuInit' heap 10 1" for n in range(1, depth)] + [
        f"x {depth} 0 1 0 1 0 'cuInit' heap 10 1"
    ]
    view = compared([called(*records)], views=["scope"])["scope"]
    assert len(view.rows) == 16 and figures(view.total.cells[0].figures) == (10, 0, 1)


# ---- what is left out, and repeats ---------------------------------------------------------------


def test_small_differences_are_folded_into_one_row() -> None:
    view = compared([held(1000, "8", 500)], [held(1300, "8", 510)], min_bytes=11)["owner"]
    assert told(view) == {"cudnn": [1000, 1300]}
    assert view.n_other == 1 and view.other and [cell.figures.bytes for cell in view.other.cells] == [500, 510]
    assert compared([held(1000, "8", 500)], [held(1300, "8", 510)], min_bytes=10)["owner"].other is None


def test_repeats_give_medians_and_mark_changes_beyond_noise() -> None:
    old = [held(cudnn, "8", tensors) for cudnn, tensors in ((100, 70), (130, 50), (110, 60))]
    new = [held(cudnn, "8", tensors) for cudnn, tensors in ((140, 65), (131, 75), (170, 60))]
    view = compared(old, new)["owner"]
    cudnn, tensor = view.rows
    assert (cudnn.key.name, cudnn.cells[0].figures.host_bytes, cudnn.cells[1].figures.host_bytes) == ("cudnn", 110, 140)
    assert cudnn.cells[1].is_beyond_noise is True and cudnn.cells[0].is_beyond_noise is False
    assert (tensor.cells[0].figures.device_bytes, tensor.cells[1].figures.device_bytes) == (60, 65)
    assert tensor.cells[1].is_beyond_noise is False
    assert [row.cells[1].is_beyond_noise for row in compared(old[:1], new[:1])["owner"].rows] == [None, None]


def test_one_repeated_side_is_enough_to_know_noise() -> None:
    old = [held(n, "8", 5) for n in (100, 120, 110)]
    assert compared(old, [held(121, "8", 5)])["owner"].rows[0].cells[1].is_beyond_noise is True
    assert compared(old, [held(120, "8", 5)])["owner"].rows[0].cells[1].is_beyond_noise is False


def test_medians_that_do_not_add_up_have_a_row_that_says_so() -> None:
    def holding(a: int, b: int) -> Trace:
        trace = Trace(time_unit="ms", memory="unified")
        site = ["f (a.c:1)"]
        trace.snapshot(0, "start", {trace.account("heap", "a", site): (a, 1), trace.account("heap", "b", site): (b, 1)})
        return trace

    view = compared([holding(9, 1)], [holding(9, 1), holding(9, 9), holding(1, 9)])["owner"]
    assert told(view) == {"a": [9, 9], "b": [1, 9]}
    assert [cell.figures.host_bytes for cell in view.total.cells] == [10, 10]  # of 10, 18, 10
    assert view.rounding and [cell.figures.host_bytes for cell in view.rounding.cells] == [0, -8]


def test_of_a_single_column_the_small_rows_are_folded() -> None:
    view = compared([held(1000, "8", 500)], min_bytes=501)["owner"]
    assert told(view) == {"cudnn": [1000]} and view.n_other == 1


@pytest.mark.parametrize("seed", range(12))
def test_rows_add_up_whatever_is_compared(seed: int) -> None:
    random_ = random.Random(seed)
    sides = [
        [random_run(random_.randrange(1000), 6, 40) for _ in range(random_.randrange(1, 4))]
        for _ in range(random_.randrange(2, 4))
    ]
    for min_bytes in (0, 1, 1 << 20, 1 << 40):
        views = compared(*sides, min_bytes=min_bytes, at=random_.choice(["peak", "end", "last"]))
        totals = {tuple(cell.figures for cell in view.total.cells) for view in views.values()}
        assert len(totals) == 1  # every view has the same
        assert all(row.change >= min_bytes for view in views.values() for row in view.rows)


# ---- facts -------------------------------------------------------------------------------------


def facts(*sides: Sequence[Trace]) -> Dict[str, List[str]]:
    return {fact.key: fact.values for fact in compare(columns(*sides), [], 0).facts}


def test_facts_that_differ_are_told_and_others_not() -> None:
    old, new = small_training_run(), small_training_run()
    for key, value in (
        ("l4t", "35.4.1"),
        ("package.libcudnn8", "8.6.0.166-1+cuda11.4"),
        ("option.depth", "30"),
        ("pid", "1"),
    ):
        new.lines.insert(-1, f"m {key} {value}")
    assert facts([old], [new]) == {
        "jetpack": ["4.6.1", "5.1.2"],
        "l4t": ["32.7.1", "35.4.1"],
        "cudnn": ["8.2.1.32", "8.6.0.166"],
        "option.depth": ["", "30"],
        "package.libcudnn8": ["8.2.1.32-1+cuda10.2", "8.6.0.166-1+cuda11.4"],
    }
    assert facts([old], [old]) == {}
    assert facts([old, new], [new])["jetpack"] == ["4.6.1, 5.1.2", "5.1.2"]


def test_a_discrete_gpu_in_any_run_keeps_the_pools_apart() -> None:
    def difference(*memory: str) -> Difference:
        return compare(columns(*[[Trace(memory=each)] for each in memory]), ["owner"])

    assert difference("unified", "discrete").is_discrete and not difference("unified", "unified").is_discrete


def test_a_trace_of_nothing_can_be_compared() -> None:
    views = compared([Trace()], [held(5, "8", 6)], views=VIEWS)
    assert [cell.figures.bytes for cell in views["owner"].total.cells] == [0, 11]


# ---- the ladder --------------------------------------------------------------------------------


def assert_ladder_adds_up(ladders: List[Ladder]) -> None:
    """The bytes of each column, and the changes, from each figure to the next."""
    first = [rung.bytes for rung in ladders[0].rungs]
    for ladder in ladders:
        figures = [rung.bytes for rung in ladder.rungs]
        for column in (figures, [now - before for now, before in zip(figures, first)]):
            level = column[0]
            for rung, n_bytes in list(zip(ladder.rungs, column))[1:]:
                if rung.role in (LESS, PLUS):
                    level += n_bytes if rung.role == PLUS else -n_bytes
                else:
                    assert level == n_bytes, rung.key


def ladder_of(*traces: Trace) -> Dict[str, List[int]]:
    """By key: MiB in each column, and the change."""
    (ladders,) = compare(columns(*[[trace] for trace in traces]), ["owner"]).ladders
    assert_ladder_adds_up(ladders)
    rows = [[rung.bytes for rung in rungs] for rungs in zip(*(ladder.rungs for ladder in ladders))]
    return {rung.key: [n // MIB for n in [*row, row[-1] - row[0]]] for rung, row in zip(ladders[0].rungs, rows)}


def test_the_ladders_of_two_runs_show_which_step_has_grown() -> None:
    rows = ladder_of(board_trace(), board_trace(cache=402))
    assert rows["cache"] == [92, 402, 310] and rows["allocated"] == [508, 508, 0]
    assert rows["jtop"][2] == 0 and rows["program"][2] == 310 and rows["others"] == [270, -40, -310]
    found = compare(columns([board_trace()], [board_trace(cache=402)]), ["owner"]).findings
    assert found[0].step == ("cache", 310 * MIB)


def test_ladders_between_other_figures_meet_at_the_program() -> None:
    rows = ladder_of(board_trace(), held(3 * MIB, "8", 40 * MIB))
    assert list(rows)[0] == "program" and rows["allocated"] == [508, 40, -468] and rows["libraries"] == [250, 3, -247]
    rows = ladder_of(board_trace(), held(3 * MIB, "8", 0))
    assert rows["allocated"] == [508, 0, -508]


def test_a_ladder_of_repeated_runs_is_that_of_the_median() -> None:
    runs = [board_trace(cache=n) for n in (92, 400, 100)]
    (ladders,) = compare(columns(runs, [board_trace()]), ["owner"]).ladders
    cached = [rung.bytes for ladder in ladders for rung in ladder.rungs if rung.key == "cache"]
    assert cached == [100 * MIB, 92 * MIB]


@pytest.mark.parametrize("seed", range(6))
def test_ladders_add_up_whatever_is_compared(seed: int) -> None:
    traces = [random_run(seed * 3 + number, 6, 40) for number in range(3)]
    for ladders in compare(columns(*[[trace] for trace in traces]), ["owner"]).ladders:
        assert len(ladders) == 3
        assert_ladder_adds_up(ladders)


def test_every_rung_has_its_place_between_those_of_another_ladder() -> None:
    assert {*LABELS, "allocated"} <= set(_RUNGS)
