# SPDX-License-Identifier: GPL-2.0-or-later
"""jm_print --format=memory-viz, read by a reader written from PyTorch's documentation; what is in it, by an allocator that
notes what it does. tests/torch-cuda/check_memory_viz.py compares with the file that PyTorch itself writes."""

import gzip
import io
import random
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from jmassif.model.records import DEVICE_KINDS
from jmassif.reader.builder import load
from tests.reporter.commands import assert_one_line_error, jm_print
from tests.reporter.snapshot_reader import read, sums
from tests.reporter.test_segments import BASE, MIB, new_trace
from tests.reporter.traces import ROOT, Trace

Actions = List[Tuple[str, int, int]]


def exported(trace: Trace, directory: Path, *options: str) -> Dict[str, Any]:
    out = directory / "snapshot.pickle"
    done = jm_print("--format=memory-viz", "--snapshot=last", *options, "-o", out, trace.save(directory))
    assert done.status == 0, done.err
    return read(out.read_bytes())


def actions(snapshot: Dict[str, Any]) -> Actions:
    return [(e["action"], e.get("addr", 0), e["size"]) for e in snapshot["device_traces"][0]]


def freed(address: int, size: int) -> Actions:
    return [("free_requested", address, size), ("free_completed", address, size)]


class Allocator:
    """Deals out segments of 16 units at random, tells the trace, and notes what it did."""

    UNIT = 512

    def __init__(self, trace: Trace, cache: int, tensor: int, seed: int) -> None:
        self._trace, self._cache, self._tensor = trace, cache, tensor
        self._random = random.Random(seed)
        self.did: Actions = []
        self.segments: Dict[int, int] = {}
        self.blocks: Dict[int, int] = {}

    def act(self, time: int) -> None:
        getattr(self, self._random.choice(["grow", "hand_out", "hand_out", "hand_out", "take_back", "release"]))(time)

    def grow(self, time: int) -> None:
        address = BASE + 16 * self.UNIT * self._random.randrange(40)
        if address not in self.segments:
            self.segments[address] = 16 * self.UNIT
            self._trace.block(time, address, 16 * self.UNIT, self._cache)
            self.did.append(("segment_alloc", address, 16 * self.UNIT))

    def hand_out(self, time: int) -> None:
        if not self.segments:
            return
        address = self._random.choice(sorted(self.segments)) + self.UNIT * self._random.randrange(16)
        size = self.UNIT * self._random.randrange(1, 5)
        end = max(begin + n for begin, n in self.segments.items() if begin <= address)
        if address + size <= end and not any(a < address + size and address < a + n for a, n in self.blocks.items()):
            self.blocks[address] = size
            self._trace.block(time, address, size, self._tensor)
            self.did.append(("alloc", address, size))

    def take_back(self, time: int) -> None:
        if self.blocks:
            address = self._random.choice(sorted(self.blocks))
            self._trace.block_end(time, address, self._tensor)
            self.did += freed(address, self.blocks.pop(address))

    def release(self, time: int) -> None:
        empty = [a for a, n in self.segments.items() if not any(a <= block < a + n for block in self.blocks)]
        if empty:
            address = self._random.choice(sorted(empty))
            self._trace.block_end(time, address, self._cache)
            self.did.append(("segment_free", address, self.segments.pop(address)))


@pytest.mark.parametrize("seed", range(4))
def test_the_steps_are_what_an_allocator_did_and_the_segments_where_they_lead(seed: int, tmp_path: Path) -> None:
    trace, cache, tensor = new_trace()
    allocator = Allocator(trace, cache, tensor, seed)
    for time in range(400):
        allocator.act(time)
    assert len(allocator.did) > 200 and allocator.blocks
    reserved, used = sum(allocator.segments.values()), sum(allocator.blocks.values())
    trace.snapshot(
        400, "exit", {cache: (reserved - used, len(allocator.segments)), tensor: (used, len(allocator.blocks))}
    )
    snapshot = exported(trace, tmp_path)
    assert actions(snapshot) == allocator.did
    assert sums(snapshot) == (reserved, used)
    assert {s["address"]: s["total_size"] for s in snapshot["segments"]} == allocator.segments
    where = {e["action"]: e["frames"][0]["name"] for e in snapshot["device_traces"][0] if "frames" in e}
    # Where something was freed a trace does not tell.
    assert where == {"segment_alloc": "grow", "alloc": "empty"}


def test_a_file_has_the_moment_and_nothing_after_it(tmp_path: Path) -> None:
    trace, cache, tensor = new_trace()
    trace.block(1, BASE, 2 * MIB, cache)
    trace.block(2, BASE, MIB, tensor)
    trace.snapshot(2, "time", {cache: (MIB, 1), tensor: (MIB, 1)})
    trace.block_end(3, BASE, tensor)
    trace.snapshot(4, "exit", {cache: (2 * MIB, 1), tensor: (0, 0)})
    assert actions(exported(trace, tmp_path, "--snapshot=1")) == [
        ("segment_alloc", BASE, 2 * MIB),
        ("alloc", BASE, MIB),
    ]
    assert actions(exported(trace, tmp_path))[2:] == freed(BASE, MIB)


def test_what_a_block_is_found_to_be_for_is_no_step_and_the_same_block_again_is_two(tmp_path: Path) -> None:
    trace, cache, _ = new_trace()
    first = trace.account("device", "tensor", ["fill (libtorch.so)"], "temporary")
    kept = trace.account("device", "tensor", ["fill (libtorch.so)"], "gradient")
    trace.block(1, BASE, 2 * MIB, cache)
    trace.block(1, BASE, MIB, first)
    trace.block_end(2, BASE, first)
    trace.block(2, BASE, MIB, kept)
    # A gradient is let go, and the same line asks for the next one.
    trace.block_end(3, BASE, kept)
    trace.block(3, BASE, MIB, first)
    trace.snapshot(4, "exit", {cache: (MIB, 1), first: (MIB, 1)})
    snapshot = exported(trace, tmp_path, "--by=role")
    block = ("alloc", BASE, MIB)
    assert actions(snapshot) == [("segment_alloc", BASE, 2 * MIB), block, *freed(BASE, MIB), block]
    categories = [e.get("category") for e in snapshot["device_traces"][0]]
    # memory_viz colours by these, and fails on a file that has some and no "unknown".
    assert categories == ["unknown", "gradient", None, None, "temporary"]


def test_a_block_that_turns_out_to_be_dealt_out_in_parts_was_a_segment_from_the_start(tmp_path: Path) -> None:
    trace = Trace(time_unit="ms", memory="unified")
    app = trace.account("device", "app", ["main (a.c:5)"])
    cache = trace.account("device", "cache", ["main (a.c:5)"])
    tensor = trace.account("device", "tensor", ["deal (a.c:9)"])
    trace.block(1, BASE, 8 * MIB, app)
    trace.block_end(2, BASE, app)
    trace.block(2, BASE, 8 * MIB, cache)
    trace.block(2, BASE + MIB, MIB, tensor)
    trace.snapshot(3, "exit", {cache: (7 * MIB, 1), tensor: (MIB, 1)})
    assert actions(exported(trace, tmp_path)) == [("segment_alloc", BASE, 8 * MIB), ("alloc", BASE + MIB, MIB)]


def test_a_block_in_no_segment_is_one_by_itself(tmp_path: Path) -> None:
    trace = Trace(time_unit="ms", memory="discrete", start_unix_ms="1767323045000")
    app = trace.account("device", "cublas", ["cublasCreate (libcublas.so)"])
    trace.block(1, BASE, 65536, app)
    trace.block(2, BASE + MIB, 3 * MIB, app)
    trace.block_end(3, BASE, app)
    trace.snapshot(4, "exit", {app: (3 * MIB, 1)})
    snapshot = exported(trace, tmp_path)
    assert actions(snapshot) == [
        ("segment_alloc", BASE, 65536),
        ("alloc", BASE, 65536),
        ("segment_alloc", BASE + MIB, 3 * MIB),
        ("alloc", BASE + MIB, 3 * MIB),
        *freed(BASE, 65536),
        ("segment_free", BASE, 65536),
    ]
    assert [(s["segment_type"], s["allocated_size"]) for s in snapshot["segments"]] == [("large", 3 * MIB)]
    assert {e["time_us"] for e in snapshot["device_traces"][0][:2]} == {1767323045001000}


def test_memory_that_is_mapped_grows_and_shrinks_by_pieces(tmp_path: Path) -> None:
    trace, _, _ = new_trace()
    cache = trace.account("vmm", "cache", ["map (libc10_cuda.so)"])
    tensor = trace.account("vmm", "tensor", ["empty (libtorch.so)"])
    piece = 20 * MIB
    for number in range(3):
        trace.block(1, 0x10 + number, piece, cache)  # a handle
        trace.lines.append(f"W 1 {BASE + number * piece:x} {piece} {0x10 + number:x}")
    trace.block(2, BASE + MIB, piece, tensor)
    trace.lines.append(f"w 3 {BASE + 2 * piece:x} {piece}")
    trace.block_end(3, 0x12, cache)
    trace.block_end(4, BASE + MIB, tensor)
    # Of an array there is no address.
    array = trace.account("array", "app", ["main (a.c:5)"])
    trace.block(4, 0x99, 7 * MIB, array)
    trace.snapshot(5, "exit", {cache: (2 * piece, 2), array: (7 * MIB, 1)})
    snapshot = exported(trace, tmp_path)
    assert actions(snapshot) == [
        ("segment_map", BASE, 3 * piece),
        ("alloc", BASE + MIB, piece),
        ("segment_unmap", BASE + 2 * piece, piece),
        *freed(BASE + MIB, piece),
    ]
    (segment,) = snapshot["segments"]
    assert (segment["total_size"], segment["is_expandable"], segment["segment_type"]) == (2 * piece, True, "large")
    assert snapshot["jmassif"]["moment"] == "the last snapshot"


def test_failures_for_good_are_steps_and_those_that_a_retry_mended_are_not(tmp_path: Path) -> None:
    trace, cache, tensor = new_trace()
    trace.block(1, BASE, 2 * MIB, cache)
    mended = trace.exhaustion(2, cache, 20 * MIB, figures={"device-free": MIB})
    trace.outcome(mended, 3, "retried")
    first = trace.exhaustion(4, cache, 40 * MIB, figures={"device-free": 3 * MIB})
    trace.block_end(5, BASE, cache)
    last = trace.exhaustion(6, cache, 40 * MIB, again=first, figures={"device-free": 5 * MIB})
    trace.outcome(last, 7, "raised")
    host = trace.account("heap", "app", ["main (a.c:5)"])
    trace.exhaustion(8, host, 99 * MIB, api="malloc", error=0)
    trace.snapshot(9, "exit", {tensor: (0, 0)})
    snapshot = exported(trace, tmp_path)
    assert [name for name, _, _ in actions(snapshot)] == ["segment_alloc", "segment_free", "oom"]
    failed = snapshot["device_traces"][0][-1]
    assert (failed["size"], failed["device_free"]) == (40 * MIB, 5 * MIB) and "addr" not in failed


def test_blocks_whose_addresses_are_not_known_are_one_line_of_error(tmp_path: Path) -> None:
    trace, cache, tensor = new_trace()
    trace.block(1, BASE, 20 * MIB, cache)
    trace.block(2, 0x5, 10 * MIB, tensor)  # PyTorch up to 1.9 reports a number
    trace.snapshot(3, "exit", {cache: (10 * MIB, 1), tensor: (10 * MIB, 1)})
    trace.lines.append("Z 3 exit 0")
    done = jm_print("--format=memory-viz", "--snapshot=last", "-o", tmp_path / "out", trace.save(tmp_path))
    assert_one_line_error("jm_print", done, "not known where tensors lie in segments", "PyTorch 1.10 or later")


def test_names_of_a_trace_are_text_whatever_they_hold(tmp_path: Path) -> None:
    trace = Trace(time_unit="ms")
    name = "a\n\x1b[2J<script>\udce9 é"
    app = trace.account("device", "app", [f"py {name} (/p/{name}.py:3)"])
    trace.block(1, BASE, MIB, app)
    trace.snapshot(2, "exit", {app: (MIB, 1)})
    (segment,) = exported(trace, tmp_path)["segments"]
    told = "a\n\x1b[2J<script>\\xe9 é"
    assert segment["blocks"][0]["frames"] == [{"filename": f"/p/{told}.py", "line": 3, "name": told}]


@pytest.mark.parametrize("moment", ["peak-device", "63", "last"])
def test_a_recorded_run_has_the_totals_of_its_snapshots(moment: str, tmp_path: Path) -> None:
    """docs/examples/train.py on the simulated Jetson: the totals are the recorder's."""
    content = gzip.decompress((ROOT / "tests" / "data" / "small.jmassif.gz").read_bytes())
    trace = tmp_path / "trace"
    trace.write_bytes(content)
    out = tmp_path / "snapshot.pickle"
    assert jm_print("--format=memory-viz", f"--snapshot={moment}", "-o", out, trace).status == 0
    snapshot = read(out.read_bytes())
    profile = load(io.BytesIO(content))
    if moment == "peak-device":
        held = profile.peak_composition("device")
    else:
        held = profile.composition(-1 + len(profile.snapshots) if moment == "last" else 62)
    by_owner: Dict[str, int] = {}
    for account, (n_bytes, _) in held.items():
        if profile.accounts[account].kind in set(DEVICE_KINDS) - {"driver", "array", "pool"}:
            owner = profile.accounts[account].owner
            by_owner[owner] = by_owner.get(owner, 0) + n_bytes
    assert sums(snapshot) == (sum(by_owner.values()), sum(by_owner.values()) - by_owner.get("cache", 0))


# ---- nothing to show -----------------------------------------------------------------------------


def test_nothing_to_show_is_one_line(tmp_path: Path) -> None:
    trace = Trace(time_unit="ms", memory="discrete")
    trace.snapshot(2, "time", {trace.account("heap", "app", ["main (a.c:5)"]): (MIB, 1)})
    array = trace.account("array", "app", ["main (a.c:5)"])
    trace.block(3, 0x99, 7 * MIB, array)
    trace.snapshot(4, "time", {array: (7 * MIB, 1)})
    trace.lines.append("Z 9 exit 0")
    done = jm_print("--format=memory-viz", "--snapshot=1", "-o", tmp_path / "out", trace.save(tmp_path))
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1) and not (tmp_path / "out").exists()
    assert "no device memory has an address at snapshot 1" in done.err
