# SPDX-License-Identifier: GPL-2.0-or-later
"""The layout of device memory from block records, against a bitmap that is painted record by record; and the map as text."""

import random
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from jmassif.analysis.device_memory import Layout, layout_at, layouts, over_time, position_of_peak
from tests.reporter.commands import assert_one_line_error, jm_print
from tests.reporter.traces import Trace

MIB = 1 << 20
BASE = 0x7F00_0000_0000


def new_trace(**manifest: str) -> Tuple[Trace, int, int]:
    """With the accounts of a cache and of tensors."""
    trace = Trace(time_unit="ms", memory="unified", **manifest)
    cache = trace.account("device", "cache", ["grow (libc10_cuda.so)"])
    tensor = trace.account("device", "tensor", ["empty (libtorch.so)"])
    return trace, cache, tensor


def painted(layout: Layout, n_units: int, unit: int) -> str:
    """A character a unit of addresses: "." is nobody's, "-" a hole, else the account."""
    cells = ["."] * n_units
    for segment in layout.segments:
        for part in segment.parts:
            begin = (segment.address - BASE + part.offset) // unit
            cells[begin : begin + part.bytes // unit] = [str(part.account) if part.account else "-"] * (
                part.bytes // unit
            )
    return "".join(cells)


@pytest.mark.parametrize("seed", range(6))
def test_random_segments_and_blocks_lie_where_they_were_put(seed: int) -> None:
    random_ = random.Random(seed)
    trace, cache, tensor = new_trace()
    n_units, unit = 400, 512
    cells = ["."] * n_units
    segments: Dict[int, int] = {}  # unit: units
    tensors: Dict[int, int] = {}
    positions: List[int] = []
    expected: List[str] = []
    n_rows = 0

    def paint(begin: int, n: int, what: str) -> None:
        cells[begin : begin + n] = [what] * n

    for time in range(300):
        act = random_.choice(["segment", "tensor", "tensor", "tensor", "free", "free", "release"])
        if act == "segment":
            begin, n = random_.randrange(n_units - 20), random_.randrange(1, 20)
            if set(cells[begin : begin + n]) != {"."}:
                continue
            segments[begin] = n
            trace.block(time, BASE + begin * unit, n * unit, cache)
            paint(begin, n, "-")
        elif act == "tensor" and segments:
            start = random_.choice(sorted(segments))
            begin = start + random_.randrange(segments[start])
            n = random_.randrange(1, segments[start] - (begin - start) + 1)
            if set(cells[begin : begin + n]) != {"-"}:
                continue
            tensors[begin] = n
            trace.block(time, BASE + begin * unit, n * unit, tensor)
            paint(begin, n, str(tensor))
        elif act == "free" and tensors:
            begin = random_.choice(sorted(tensors))
            trace.block_end(time, BASE + begin * unit, tensor)
            paint(begin, tensors.pop(begin), "-")
        elif act == "release":
            empty = [begin for begin, n in segments.items() if set(cells[begin : begin + n]) == {"-"}]
            if not empty:
                continue
            begin = random_.choice(sorted(empty))
            trace.block_end(time, BASE + begin * unit, cache)
            paint(begin, segments.pop(begin), ".")
        else:
            continue
        n_rows += 1
        positions.append(n_rows)
        expected.append("".join(cells))
    assert n_rows > 100
    profile = trace.load()
    drawn = list(layouts(profile, positions))
    assert [painted(layout, n_units, unit) for layout in drawn] == expected
    for layout, picture in zip(drawn, expected):
        pieces = layout.fragmentation
        assert pieces.free == picture.count("-") * unit
        assert pieces.reserved == (picture.count("-") + picture.count(str(tensor))) * unit


def test_mappings_that_follow_each_other_are_one_segment_and_tensors_may_span_them() -> None:
    trace, _, _ = new_trace()
    cache = trace.account("vmm", "cache", ["map (libc10_cuda.so)"])
    tensor = trace.account("vmm", "tensor", ["empty (libtorch.so)"])
    for page in range(4):
        trace.block(1, 0x10 + page, 2 * MIB, cache)  # a handle
    for page in range(3):
        trace.lines.append(f"W 1 {BASE + 2 * page * MIB:x} {2 * MIB} {0x10 + page:x}")
    trace.block(2, BASE + MIB, 4 * MIB, tensor)
    trace.lines.append(f"w 3 {BASE + 4 * MIB:x} {2 * MIB}")
    profile = trace.load()
    layout = layout_at(profile, 5)
    assert layout.by_handle == 4 * MIB  # of one that never was mapped, and one that is no more
    # The mapping that ended after the tensor was made has ended in the layout that comes after it.
    (segment,) = layout.segments
    assert (segment.address, segment.bytes) == (BASE, 4 * MIB)
    before = layout_at(profile, 4)
    assert [(s.address, s.bytes, s.free) for s in before.segments] == [(BASE, 6 * MIB, 6 * MIB)]


def test_arrays_have_no_address() -> None:
    trace, _, _ = new_trace()
    array = trace.account("array", "app", ["cudaMallocArray (libcudart.so.12)"])
    trace.block(1, BASE, MIB, array)
    layout = layout_at(trace.load(), 1)
    assert (layout.segments, layout.by_handle) == ([], MIB)


def test_a_block_that_fills_its_segment_is_inside_of_it() -> None:
    trace, cache, tensor = new_trace()
    later = trace.account("device", "cache", ["grow (libc10_cuda.so)", "elsewhere (a.c:1)"])
    trace.block(1, BASE, MIB, later)
    trace.block(1, BASE, MIB, tensor)
    (segment,) = layout_at(trace.load(), 2).segments
    assert (segment.account, segment.free, [part.account for part in segment.parts]) == (later, 0, [tensor])


def test_without_addresses_the_map_says_so(tmp_path: Path) -> None:
    trace, cache, tensor = new_trace()
    trace.block(1, BASE, 8 * MIB, cache)
    trace.block(1, 0x1234, 6 * MIB, tensor)  # a number, as PyTorch up to 1.9 reports
    trace.snapshot(2, "time", {cache: (2 * MIB, 1), tensor: (6 * MIB, 1)})
    profile = trace.load()
    assert not layout_at(profile, 2).is_placed(profile.accounts, profile.composition(0))
    done = jm_print("--segments", "--snapshot=last", trace.save(tmp_path))
    assert "is not known" in done.out


def test_a_peak_is_found_among_blocks_of_its_time() -> None:
    trace, cache, _ = new_trace()
    trace.block(5, BASE, 4 * MIB, cache)
    trace.block(5, BASE + 8 * MIB, 3 * MIB, cache)
    trace.block_end(5, BASE, cache)
    trace.snapshot(6, "time", {cache: (3 * MIB, 1)}, {"device": (5, {cache: (7 * MIB, 2)})})
    assert position_of_peak(trace.load(), "device") == 2


def test_a_peak_is_found_among_blocks_of_one_segment() -> None:
    trace, cache, tensor = new_trace()
    other = trace.account("device", "tensor", ["other (a.c:2)"])
    trace.block(5, BASE, 8 * MIB, cache)
    trace.block(5, BASE, 4 * MIB, tensor)
    trace.block(5, BASE + 4 * MIB, 3 * MIB, other)
    trace.block_end(5, BASE, tensor)
    peak = {cache: (MIB, 1), tensor: (4 * MIB, 1), other: (3 * MIB, 1)}
    trace.snapshot(6, "time", {cache: (5 * MIB, 1), other: (3 * MIB, 1)}, {"total": (5, peak)})
    assert position_of_peak(trace.load(), "total") == 3


@pytest.mark.parametrize("time", [5, 6])
def test_a_peak_is_behind_the_tensor_that_fills_its_segment(time: int) -> None:
    """Its row may be written in the next millisecond."""
    trace, cache, tensor = new_trace()
    trace.block(5, BASE, 4 * MIB, cache)
    trace.block(time, BASE, 4 * MIB, tensor)
    trace.block_end(7, BASE, tensor)
    trace.snapshot(8, "time", {cache: (4 * MIB, 1)}, {"device": (5, {cache: (0, 0), tensor: (4 * MIB, 1)})})
    profile = trace.load()
    assert position_of_peak(profile, "device") == 2


# ---- as text ---------------------------------------------------------------------------------


def small_map() -> Trace:
    trace, cache, tensor = new_trace()
    context = trace.account("device", "tensorrt", ["build (libnvinfer.so.8)"])
    trace.block(1, BASE, 46 * MIB, cache)
    trace.block(1, BASE, 10 * MIB, tensor)
    trace.block(1, BASE + 20 * MIB, 10 * MIB + MIB // 2, tensor)
    trace.block(1, BASE + 100 * MIB, 10 * MIB, context)
    held = {cache: (46 * MIB - 20 * MIB - MIB // 2, 1), tensor: (20 * MIB + MIB // 2, 2), context: (10 * MIB, 1)}
    trace.snapshot(1, "time", held, {"device": (1, {}), "total": (1, {})})
    trace.block_end(2, BASE, tensor)
    held[tensor] = (10 * MIB + MIB // 2, 1)
    held[cache] = (46 * MIB - 10 * MIB - MIB // 2, 1)
    trace.snapshot(2, "exit", held)
    trace.lines.append("Z 2 exit 0")
    return trace


@pytest.mark.parametrize(
    "options, bar, figures",
    [
        (
            [],
            "T" * 10 + "-" * 10 + "T" * 10 + "t" + "-" * 15,
            ("20.5 MiB used", "25.5 MiB free in 2 holes", "15.5 MiB"),
        ),
        (
            ["--snapshot=last"],
            "-" * 20 + "T" * 10 + "t" + "-" * 15,
            ("10.5 MiB used", "35.5 MiB free in 2 holes", "20.0 MiB"),
        ),
    ],
)
def test_the_map_is_drawn_to_scale(options: List[str], bar: str, figures: Tuple[str, ...], tmp_path: Path) -> None:
    done = jm_print("--segments", *options, small_map().save(tmp_path))
    assert done.status == 0, done.err
    lines = [line.split() for line in done.out.splitlines() if line.strip().startswith("7f0")]
    assert [line[-1] for line in lines] == [bar, "E" * 10]
    assert all(figure in done.out for figure in figures)
    assert "T tensor" in done.out and "E tensorrt" in done.out


def test_fragmentation_over_time() -> None:
    found = over_time(small_map().load(), 10)
    assert [(time, pieces.holes, f"{pieces.share:.3f}") for time, pieces in found] == [(1, 2, "0.392"), (2, 2, "0.437")]


@pytest.mark.parametrize("number", ["1", "x", "-1"])
def test_a_failure_that_was_not_is_one_line(number: str, tmp_path: Path) -> None:
    done = jm_print(f"--segments={number}", small_map().save(tmp_path))
    assert_one_line_error("jm_print", done, "--segments=N needs a failed allocation; this trace has none")


def test_a_run_without_a_device_has_no_map(tmp_path: Path) -> None:
    trace = Trace(time_unit="ms")
    heap = trace.account("heap", "app", ["main (a.c:1)"])
    trace.snapshot(1, "exit", {heap: (5, 1)})
    done = jm_print("--segments", trace.save(tmp_path))
    assert done.status == 0 and "No map" in done.out


def test_the_map_is_for_terminals_alone(tmp_path: Path) -> None:
    done = jm_print("--segments", "--format=json", small_map().save(tmp_path))
    assert_one_line_error("jm_print", done, "--segments is not supported by --format=json")
