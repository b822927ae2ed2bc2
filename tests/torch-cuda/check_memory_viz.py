# SPDX-License-Identifier: GPL-2.0-or-later
"""jm_print --format=memory-viz against the snapshots that PyTorch itself takes in the same run, and PyTorch's own readers of them.

`run` starts this beside check_counters.py. What PyTorch's allocator has not made (cuBLAS asks CUDA for memory of its own) is in
our file alone.
"""

import pickle
from typing import Any, Dict, List, NamedTuple, Tuple

import pytest

from check_counters import DEFAULT, EXPANDABLE, HOSTS, ROOT, SCRIPTS, Program, record, run_inside
from jmassif.analysis.aggregate import ledger
from jmassif.analysis.moments import mark_snapshots
from jmassif.export.memory_viz import write
from jmassif.model.records import DEVICE_KINDS
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from jmassif.render.view import FormatError, View
from tests.reporter.snapshot_reader import read

Snapshot = Dict[str, Any]

PROGRAMS = (
    Program("history", ("history.py",), DEFAULT),
    Program("history-expandable", ("history.py",), EXPANDABLE),
)
MARKS = ("0 forward", "0 step", "1 step", "trained", "holes", "a part of it cached", "out of memory", "empty")
# Rounds up to these, of small and large blocks.
ROUNDING = 512
# What memory_viz's commands have in common.
READERS = """
import contextlib, io, json, pickle, sys
from torch.cuda import _memory_viz as viz
told = {}
for name in ("ours", "theirs"):
    with open(f"{sys.argv[1]}/{name}.pickle", "rb") as file:
        snapshot = pickle.load(file)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        compared = viz.compare(snapshot["segments"], snapshot["segments"], str)
    told[name] = {
        "segsum": [line for line in viz.segsum(snapshot).splitlines() if line.startswith(("segments", "total_reserved"))],
        "trace": viz.trace(snapshot).count("\\n"),
        "memory": sum(int(line.rsplit(" ", 1)[1]) for line in viz.memory(snapshot, str).splitlines()),
        "segments": sum(int(line.rsplit(" ", 1)[1]) for line in viz.segments(snapshot, str).splitlines()),
        "segment_plot": viz.segment_plot(snapshot).count("<script"),
        "trace_plot": viz.trace_plot(snapshot).count("<script"),
        "compare": compared + out.getvalue(),
    }
print(json.dumps(told))
"""


class Pair(NamedTuple):
    mark: str
    ours: Snapshot
    theirs: Snapshot


class Compared(NamedTuple):
    profile: Profile
    pairs: List[Pair]


def ours_at(profile: Profile, mark: str) -> Snapshot:
    return read(b"".join(write(profile, View(mark, 0.0, "stack", 70))))


@pytest.fixture(
    scope="module",
    params=[(program, host) for program in PROGRAMS for host in HOSTS],
    ids=lambda param: f"{param[0].name}-{param[1]}",
    name="compared",
)
def fixture_compared(request: Any) -> Compared:
    program, host = request.param
    out = ROOT / "out" / program.name
    out.mkdir(parents=True, exist_ok=True)
    script = ["python3", f"{SCRIPTS}/{program.script[0]}", f"/out/{program.name}"]
    trace, told = record(program, host, script)
    profile = load_file(str(trace))
    pairs = []
    for number, line in enumerate(told):
        theirs = pickle.loads((out / f"{number}.pickle").read_bytes())
        if line["mark"] == "start":
            assert not theirs["segments"]
            with pytest.raises(FormatError, match="no device memory"):
                ours_at(profile, "start")
            continue
        pairs.append(Pair(line["mark"], ours_at(profile, line["mark"]), theirs))
    assert set(MARKS) <= {pair.mark for pair in pairs}
    return Compared(profile, pairs)


def lying(snapshot: Snapshot) -> Dict[int, Any]:
    return {
        segment["address"]: (
            segment["total_size"],
            segment["allocated_size"],
            segment["segment_type"],
            segment["is_expandable"],
            [(block["address"], block["size"], block["state"]) for block in segment["blocks"]],
        )
        for segment in snapshot["segments"]
    }


def ours_alone(pair: Pair) -> Dict[int, Any]:
    theirs = lying(pair.theirs)
    return {address: segment for address, segment in lying(pair.ours).items() if address not in theirs}


def test_segments_and_blocks_lie_where_pytorch_says(compared: Compared) -> None:
    for pair in compared.pairs:
        ours, theirs = lying(pair.ours), lying(pair.theirs)
        assert {address: ours.get(address) for address in theirs} == theirs, pair.mark
        # Of what others have asked CUDA for all is in use.
        assert all(segment[0] == segment[1] for segment in ours_alone(pair).values())
    assert sum(len(pair.theirs["segments"]) for pair in compared.pairs) > 20


def names(entry: Snapshot) -> Tuple[str, int]:
    return entry["action"], entry.get("addr", 0)


def steps_of(pair: Pair) -> Tuple[List[Snapshot], List[Snapshot]]:
    """Ours and theirs. What PyTorch's allocator has not done is left out of ours: what cuBLAS has asked CUDA for itself."""
    theirs = [e for e in pair.theirs["device_traces"][0] if e["action"] != "snapshot"]
    ours = []
    others: Dict[int, int] = {}
    for entry in pair.ours["device_traces"][0]:
        address = entry.get("addr", 0)
        if entry["action"] in ("segment_alloc", "alloc") and any(
            f["name"] == "cublasCreate_v2" for f in entry["frames"]
        ):
            others[address] = entry["size"]
        elif address not in others:
            ours.append(entry)
        elif entry["action"] == "segment_free":
            del others[address]
    return ours, theirs


def test_steps_are_those_that_pytorch_recorded(compared: Compared) -> None:
    ours, theirs = steps_of(compared.pairs[-1])
    assert [names(entry) for entry in ours] == [names(entry) for entry in theirs]
    assert {entry["action"] for entry in ours} >= {"alloc", "free_requested", "free_completed", "oom"}
    for our, their in zip(ours, theirs):
        if our["action"] == "alloc":
            # Ours is the block's: rounded, and not split where the rest would be too small.
            assert their["size"] <= our["size"] and our["size"] % ROUNDING == 0
        elif not our["action"].startswith("free"):
            assert our["size"] == their["size"]
        if our["action"] == "oom":
            # With pieces that are mapped PyTorch asks later, when it has given back those that it had got so far.
            has_pieces = any(entry["action"] == "segment_map" for entry in theirs)
            free, later = our["device_free"], their["device_free"]
            assert free < later if has_pieces else free == later


def python_lines(entry: Snapshot) -> List[Tuple[str, int]]:
    return [(f["filename"], f["line"]) for f in entry.get("frames", []) if f["filename"].endswith(".py")]


def test_python_frames_are_those_that_pytorch_saw(compared: Compared) -> None:
    allocating = ("alloc", "segment_alloc", "segment_map", "oom")
    ours, theirs = [
        [python_lines(entry) for entry in entries if entry["action"] in allocating]
        for entries in steps_of(compared.pairs[-1])
    ]
    assert ours == theirs and sum(map(len, ours)) > 100


@pytest.mark.parametrize("mark", ["0 forward", "holes", "out of memory"])
def test_totals_are_those_of_the_report(compared: Compared, mark: str) -> None:
    """What text and page say of the device at that moment."""
    pair = next(pair for pair in compared.pairs if pair.mark == mark)
    profile = compared.profile
    held = profile.composition(mark_snapshots(profile)[mark])
    made = ledger(profile, held)
    device = {row.name: row.usage.device_bytes for row in made.owners}
    addressed = sum(
        n_bytes
        for account, (n_bytes, _) in held.items()
        if profile.accounts[account].kind in DEVICE_KINDS and profile.accounts[account].kind != "driver"
    )
    reserved = sum(segment["total_size"] for segment in pair.ours["segments"])
    assert reserved == addressed
    assert reserved - sum(segment["allocated_size"] for segment in pair.ours["segments"]) == device["cache"]


@pytest.mark.parametrize("mark", ["0 step", "holes", "out of memory"])
def test_pytorchs_own_readers_open_it(compared: Compared, mark: str) -> None:
    pair = next(pair for pair in compared.pairs if pair.mark == mark)
    out = ROOT / "out" / "opened"
    out.mkdir(parents=True, exist_ok=True)
    (out / "ours.pickle").write_bytes(pickle.dumps(pair.ours, 4))
    (out / "theirs.pickle").write_bytes(pickle.dumps(pair.theirs, 4))
    (out / "readers.py").write_text(READERS)
    (told,) = run_inside(Program("readers", (), DEFAULT), ["python3", "/out/opened/readers.py", "/out/opened"])
    ours, theirs = told["ours"], told["theirs"]
    alone = sum(segment[0] for segment in ours_alone(pair).values())
    assert ours["memory"] - alone == theirs["memory"] == sum(s["total_size"] for s in pair.theirs["segments"])
    assert ours["segments"] - alone == theirs["segments"]
    assert ours["segment_plot"] == theirs["segment_plot"] and ours["trace_plot"] == theirs["trace_plot"]
    assert ours["compare"] == theirs["compare"] == "only_before = []\nonly_after = []\n"
    assert ours["trace"] > 0 and len(ours["segsum"]) == 2
