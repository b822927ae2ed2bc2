# SPDX-License-Identifier: GPL-2.0-or-later
"""One program on two simulated JetPacks: jm_diff finds what was planted, at its owner and its call, and nothing else.

What the newer release spends otherwise is in tests/sim/jetpacks/5.1.2.h, and once more below.
"""

import json
from pathlib import Path
from typing import Any, Dict, NamedTuple, Tuple

import pytest

from jmassif.model.run_info import fact
from tests.harness import Recording, record
from tests.records import records
from tests.reporter.commands import Done, jm_diff, jmassif
from tests.tool.cuda_ledger import points, run_sim

MIB = 1 << 20
RELEASES = ("4.6.1", "5.1.2")

# Bytes of heap that so many more blocks are, of the five sizes of tests/sim/costs.h in turn; and what Valgrind's allocator
# and --heap-admin put around them.
HEAP_SIZES = (56, 240, 1000, 8188, 65536)


def heap(n_blocks: int) -> int:
    assert n_blocks % len(HEAP_SIZES) == 0
    return n_blocks // len(HEAP_SIZES) * sum(HEAP_SIZES)


CONTEXT, MODULE, CUDNN_HANDLE = heap(745 - 600), heap(35 - 20), heap(240 - 150)
N_MODULES = 4  # the program's, cuBLAS's, cuDNN's, and the kernels of the first convolution
CUDNN_DEVICE, CUBLAS_DEVICE = 3 * MIB - 1536 * 1024, 8 * MIB - 4 * MIB

Change = Tuple[int, int]  # host and device, in bytes


class Pair(NamedTuple):
    old: Recording
    new: Recording

    def diff(self, *arguments: str) -> Done:
        done = jm_diff(*arguments, self.old.trace, self.new.trace)
        assert done.status == 0, done.err
        return done

    def view(self, by: str, *arguments: str) -> Dict[str, Any]:
        (view,) = json.loads(self.diff("--format=json", f"--by={by}", *arguments).out)["views"]
        assert view["by"] == by and view["rounding"] is None and view["other"] is None
        return dict(view)

    def changes(self, by: str, *arguments: str) -> Dict[str, Change]:
        """By name, the names of the calls around it before it: what changed. What did not is left out."""
        view = self.view(by, *arguments)
        found = {}
        for row in view["rows"]:
            change = row["cells"][1]["change"]
            if change["host"] or change["device"]:
                found[" > ".join(row["inside"] + [row["name"]])] = (change["host"], change["device"])
        total = view["total"]["cells"][1]["change"]
        counted = [row["cells"][1]["change"] for row in view["rows"] if row["in_total"]]
        for side in ("host", "device", "number"):
            assert sum(change[side] for change in counted) == total[side]
        return found


@pytest.fixture(scope="module")
def pair(sim: Path) -> Pair:
    def recorded(release: str) -> Recording:
        root = sim / f"jetpack-{release}" / "root"
        return run_sim(sim, f"../jetpack-{release}/jetpack", options=[f"--board-root={root}"], marks=True)

    return Pair(*map(recorded, RELEASES))


def overhead(recording: Recording) -> Dict[str, int]:
    """By owner, as the records of the trace have it at its end: what stands around heap blocks."""
    owners: Dict[str, str] = {}
    live: Dict[str, int] = {}
    n_accounts = 0
    for fields in records(recording.trace):
        if fields[0] == "a":
            n_accounts += 1
            if fields[2] == "heap-overhead":
                owners[str(n_accounts)] = fields[3]
        elif fields[0] == "c" and fields[1] in owners:
            live[owners[fields[1]]] = int(fields[2])
    return live


def test_each_difference_is_its_owners(pair: Pair) -> None:
    planted = {
        "context": (CONTEXT, 0),
        "module": (N_MODULES * MODULE, 0),
        "cudnn": (CUDNN_HANDLE, CUDNN_DEVICE),
        "cublas": (0, CUBLAS_DEVICE),
    }
    before, now = overhead(pair.old), overhead(pair.new)
    expected = {}
    for owner in set(planted) | set(before) | set(now):
        host, device = planted.get(owner, (0, 0))
        change = (host + now.get(owner, 0) - before.get(owner, 0), device)
        if change != (0, 0):
            expected[owner] = change
    for at in ("peak", "convolved", "done", "last"):
        assert pair.changes("owner", f"--at={at}") == expected


def test_what_stands_around_the_blocks_follows_from_them(pair: Pair) -> None:
    """8 bytes of header and up to the next 16; where the allocator could not split a block, another 16."""
    around = sum(8 + -size % 16 for size in HEAP_SIZES)
    before, now = overhead(pair.old), overhead(pair.new)
    for owner, n_blocks in (
        ("context", 145),
        ("module", 4 * 15),
        ("cudnn", 90),
        ("cublas", 0),
        ("app", 0),
        ("cudart", 0),
    ):
        slop = now[owner] - before[owner] - n_blocks // len(HEAP_SIZES) * around
        assert slop in (-16, 0, 16), owner


def test_each_difference_is_its_calls(pair: Pair) -> None:
    assert pair.changes("scope") == {
        "cuDevicePrimaryCtxRetain": (CONTEXT, 0),
        "cublasCreate": (MODULE, CUBLAS_DEVICE),
        "cublasCreate > cuModuleLoadData": (MODULE, 0),
        "cudnnCreate": (CUDNN_HANDLE + MODULE, CUDNN_DEVICE),
        "cudnnCreate > cuModuleLoadData": (MODULE, 0),
        "cuModuleLoadData": (2 * MODULE, 0),
    }
    calls = {(tuple(row["inside"]), row["name"]): row for row in pair.view("scope")["rows"]}
    assert [cell["host"] for cell in calls[(), "cuInit"]["cells"]] == [heap(60)] * 2
    assert all(row["cells"][1]["change"]["number"] == 0 for row in calls.values())


def test_each_difference_is_its_librarys(pair: Pair) -> None:
    """Under the name that both releases have for it."""
    changes = pair.changes("library")
    around = changes.pop("(memory without a stack)")
    assert changes == {
        "libcuda.so": (CONTEXT + N_MODULES * MODULE, 0),
        "libcudnn.so": (CUDNN_HANDLE, CUDNN_DEVICE),
        "libcublas.so": (0, CUBLAS_DEVICE),
    }
    all_heap = CONTEXT + N_MODULES * MODULE + CUDNN_HANDLE
    assert pair.changes("kind") == {
        "heap": (all_heap, 0),
        "device": (0, CUDNN_DEVICE + CUBLAS_DEVICE),
        "heap-overhead": around,
    }


def test_the_differences_are_the_simulations_own(pair: Pair) -> None:
    by_point = [dict(points(recording.stdout)) for recording in pair]
    changes = pair.changes("kind", "--at=convolved")
    old, new = (each["convolved"] for each in by_point)
    assert changes["heap"] == (new["heap"] - old["heap"], 0)
    assert changes["device"] == (0, new["device"] - old["device"])
    assert new["pinned"] == old["pinned"] and "pinned" not in changes


def test_the_head_names_both_releases(pair: Pair, sim: Path) -> None:
    found = json.loads(pair.diff("--format=json").out)
    facts = {fact["key"]: tuple(fact["values"]) for fact in found["facts"]}
    assert facts.pop("command") == tuple(str(sim / f"programs/../jetpack-{release}/jetpack") for release in RELEASES)
    assert {key: values for key, values in facts.items() if not key.startswith("package.")} == {
        "jetpack": RELEASES,
        "l4t": ("32.7.1", "35.4.1"),
        "cuda": ("10.2.300", "11.4.298"),
        "cudnn": ("8.2.1", "8.6.0"),
        "cublas": ("10.2.3.300", "11.6.6.84"),
        "board": ("Simulated Jetson Nano", "Simulated Jetson Xavier"),
    }
    boards = [run["facts"]["board"] for column in found["columns"] for run in column["runs"]]
    assert boards == ["Simulated Jetson Nano", "Simulated Jetson Xavier"]
    text = pair.diff().out
    assert "JetPack: 4.6.1 → 5.1.2\n" in text and "cuDNN:   8.2.1 → 8.6.0\n" in text


def test_traces_are_grouped_by_jetpack(pair: Pair) -> None:
    found = json.loads(jm_diff("--group-by=jetpack", "--format=json", pair.new.trace, pair.old.trace).out)
    assert [column["label"] for column in found["columns"]] == [f"JetPack {release}" for release in RELEASES]


def test_a_budget_notices_the_newer_release(pair: Pair) -> None:
    arguments = ["--baseline", pair.old.trace, pair.new.trace]
    assert jmassif("check", *arguments, "--max=peak.cublas=+4194303B", "--max=peak.cudart").status == 1
    assert jmassif("check", *arguments, "--max=peak.cublas.device=+4MiB", "--max=peak.cudart").status == 0
    assert jmassif("check", *arguments, "--max=peak.cublas.device=+4194303B").status == 1
    done = jmassif("check", *arguments)
    assert done.status == 1 and done.out.count("OVER") == 3


# ---- where the board's files are -----------------------------------------------------------------


@pytest.mark.parametrize("board", ["Orin", "Thor"])
def test_a_report_names_jetpack_7_2_on_both_boards(sim: Path, board: str) -> None:
    recording = record(["true"], [f"--board-root={sim}/jetpack-7.2/{board}"])
    head = f"NVIDIA Jetson AGX {board} Developer Kit, JetPack 7.2, L4T 39.2.0, "
    assert head in " ".join(jmassif("report", "--all", recording.trace).out.split())
    facts = [fact(recording.profile, key) for key in ("jetpack", "cuda", "cudnn", "tensorrt")]
    assert facts == ["7.2", "13.2.0", "9.20.0", "10.16.0"]


def test_board_root_is_where_the_boards_files_are(sim: Path) -> None:
    found = record(["true"], [f"--board-root={sim}/jetpack-5.1.2/root"]).profile.manifest
    assert (found["l4t"], found["board"], found["memory"]) == ("35.4.1", "Simulated Jetson Xavier", "unified")
    assert found["package.libcudnn8"] == "8.6.0.166-1+cuda11.4"
    own = record(["true"]).profile.manifest
    assert found["package.libc6"] == own["package.libc6"]  # the container's own
    assert record(["true"], ["--board-root=/nowhere"]).profile.manifest["package.libc6"] == own["package.libc6"]
