# SPDX-License-Identifier: GPL-2.0-or-later
"""Tensors inside a caching allocator's segments: what the ledger holds at each point is what the allocator itself says.

The allocator is a small one of ours that reports as each range of PyTorch releases does; the simulation gives it memory.
"""
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from tests.harness import MADE, Recording, check_run, record

SOURCES = Path(__file__).parent / "programs" / "c10"


def build(form: int, sim: Path) -> Path:
    directory = MADE / f"c10-{form}"
    directory.mkdir(parents=True, exist_ok=True)
    common = ["g++", "-g", "-O1", "-Wall", "-Wextra", "-Werror", f"-DFORM={form}", "-shared", "-fpic"]
    check_run([*common, "-Wl,-soname,libc10.so", "-o", directory / "libc10.so", SOURCES / "c10.cc"])
    libraries = [directory / "libc10.so", sim / "libcudart.so.10.2"]
    rpath = f"-Wl,-rpath,{directory}:{sim}"
    allocator, program = directory / "libc10_cuda.so", directory / "tensors"
    check_run([*common, "-Wl,-soname,libc10_cuda.so", "-o", allocator, SOURCES / "c10_cuda.cc", *libraries, rpath])
    warnings = ["-Wall", "-Wextra", "-Werror"]
    check_run(["gcc", "-g", *warnings, "-o", program, SOURCES / "tensors.c", allocator, *libraries, rpath])
    return program


def device_bytes_at_marks(recording: Recording) -> Dict[str, Tuple[int, int]]:
    """By mark: bytes of tensors, bytes of the cache; both of the kind `device`. Read from the records themselves."""
    owners: Dict[str, str] = {}
    strings: Dict[str, str] = {}
    live: Dict[str, int] = {}
    mark = ""
    found: Dict[str, Tuple[int, int]] = {}
    for line in recording.trace.read_text(errors="replace").splitlines():
        fields = line.split(" ")
        if fields[0] == "a" and fields[3] == "device":
            owners[fields[1]] = fields[4]
        elif fields[0] == "s":
            strings[fields[1]] = fields[2]
        elif fields[0] == "c" and fields[1] in owners:
            live[fields[1]] = int(fields[2])
        elif fields[0] == "M":
            mark = strings[fields[2]]
        elif fields[0] == "E" and mark:
            sums = {"tensor": 0, "cache": 0}
            for account, value in live.items():
                sums[owners[account]] += value
            found[mark] = (sums["tensor"], sums["cache"])
            mark = ""
    return found


@pytest.mark.parametrize("form", [16, 110, 20], ids=["up-to-1.9", "from-1.10", "unsigned-totals"])
def test_tensors_and_cache_add_up_to_the_segments(form: int, sim: Path) -> None:
    program = build(form, sim)
    recording = record([program])
    assert recording.returncode == 0, recording.stderr
    told = {}
    for line in recording.stdout.splitlines():
        point, allocated, reserved = line.split()
        told[point] = (int(allocated), int(reserved) - int(allocated))
    assert len(told) == 5
    assert device_bytes_at_marks(recording) == told
    # The allocator's own totals came with every report and were the ledger's.
    counters = [
        line for line in recording.trace.read_text(errors="replace").splitlines() if line.startswith("k tensor")
    ]
    assert counters == []


def test_a_tensor_has_the_stack_of_the_code_that_made_it(sim: Path) -> None:
    recording = record([build(20, sim)])
    profile = recording.profile
    assert profile is not None
    text = recording.trace.read_text(errors="replace").splitlines()
    strings = {f[1]: f[2] for f in (line.split(" ", 2) for line in text if line.startswith("s "))}
    frames = {f[1]: strings.get(f[3], "?") for f in (line.split() for line in text if line.startswith("f "))}
    nodes = {f[1]: (f[2], f[3]) for f in (line.split() for line in text if line.startswith("n "))}
    stacks = set()
    for line in text:
        fields = line.split()
        if line.startswith("a ") and fields[4] == "tensor":
            names, node = [], fields[2]
            while node != "0":
                names.append(frames[nodes[node][1]])
                node = nodes[node][0]
            stacks.add(tuple(names[-2:]))
    assert stacks == {("make_weights", "main"), ("make_activation", "main")}


@pytest.mark.parametrize("namespace", ["tensorflow", "tsl"])
def test_what_tensorflow_hands_out_of_a_region_is_a_tensor(namespace: str, sim: Path) -> None:
    directory = MADE / f"bfc-{namespace}"
    directory.mkdir(parents=True, exist_ok=True)
    sources = Path(__file__).parent / "programs" / "bfc"
    compiler = ["g++", "-g", "-O1", "-Wall", "-Wextra", "-Werror", f"-DNAMESPACE={namespace}"]
    driver = sim / "libcuda.so.1"
    library, program = directory / "libtensorflow_framework.so.2", directory / "tensors"
    shared = ["-shared", "-fpic", f"-Wl,-soname,{library.name}"]
    check_run([*compiler, *shared, "-o", library, sources / "bfc_allocator.cc", driver])
    rpath = f"-Wl,-rpath,{directory}:{sim}"
    check_run([*compiler, "-o", program, sources / "tensors.cc", library, driver, rpath])

    recording = record([program])
    assert (recording.stdout, recording.returncode) == ("1\n", 0), recording.stderr
    profile = recording.profile
    held: List[Dict[Tuple[str, str], int]] = []
    for index, snapshot in enumerate(profile.snapshots):
        if snapshot.reason == "mark":
            sums: Dict[Tuple[str, str], int] = {}
            for account, (n_bytes, _) in profile.composition(index).items():
                _, kind, owner = profile.accounts[account]
                if owner in ("tensor", "cache"):
                    sums[(kind, owner)] = sums.get((kind, owner), 0) + n_bytes
            held.append({key: n_bytes for key, n_bytes in sums.items() if n_bytes})
    mib = 1 << 20
    reserved = {("device", "cache"): 64 * mib, ("pinned", "cache"): 8 * mib}
    assert held == [
        reserved,
        {
            ("device", "tensor"): 1000 + 40 * mib,
            ("device", "cache"): 24 * mib - 1000,
            ("pinned", "tensor"): 2 * mib,
            ("pinned", "cache"): 6 * mib,
        },
        {
            ("device", "tensor"): 1000,
            ("device", "cache"): 64 * mib - 1000,
            ("pinned", "tensor"): 2 * mib,
            ("pinned", "cache"): 6 * mib,
        },
        {("pinned", "cache"): 8 * mib},
    ]
    assert not [key for key in profile.counters if key.startswith("tensor")]
