# SPDX-License-Identifier: GPL-2.0-or-later
"""Tensors inside a caching allocator's segments: what the ledger holds at each point is what the allocator itself says.

The allocator is a small one of ours that reports as each range of PyTorch releases does; the simulation gives it memory.
"""
from pathlib import Path
from typing import Dict, List, Mapping, Sequence, Tuple

import pytest

from jmassif.model.records import LiveBytesByAccount
from tests.harness import MADE, ROOT, Argument, Recording, check_run, compile_c, lock, record
from tests.records import records
from tests.tool import board, cuda_ledger
from tests.tool.programs import DIRECTORY, functions, library, linked_to

SOURCES = Path(__file__).parent / "programs" / "c10"


def build(form: int, sim: Path) -> Path:
    """The directory of the libraries, and of the programs."""
    directory = MADE / f"c10-{form}"
    directory.mkdir(parents=True, exist_ok=True)
    warnings = ["-Wall", "-Wextra", "-Werror"]
    common = ["g++", "-g", "-O1", *warnings, f"-DFORM={form}", "-shared", "-fpic"]
    rpath = f"-Wl,-rpath,{directory}:{sim}"
    libraries = [sim / "libcudart.so.10.2", sim / "libcuda.so.1"]
    with lock(f"c10-{form}"):
        newest = max(source.stat().st_mtime for source in SOURCES.iterdir())
        done = directory / "done"
        if done.exists() and done.stat().st_mtime > newest:
            return directory
        for soname, *names in (("c10", "c10"), ("c10_cuda", "c10_cuda", "caching"), ("torch_cuda", "torch")):
            made = directory / f"lib{soname}.so"
            soname_flag = f"-Wl,-soname,{made.name}"
            files = [SOURCES / f"{name}.cc" for name in names]
            check_run([*common, soname_flag, "-o", made, *files, *libraries, rpath])
            libraries.insert(0, made)
        for program in ("tensors", "allocators") + (("exhaust", "probe") if form == 20 else ()):
            check_run(["gcc", "-g", *warnings, "-o", directory / program, SOURCES / f"{program}.c", *libraries, rpath])
        done.touch()
    return directory


def device_bytes_at_marks(recording: Recording) -> Dict[str, Tuple[int, int]]:
    """By mark: bytes of tensors, bytes of the cache; both of the kind `device`. Read from the records themselves."""
    owners: Dict[str, str] = {}
    strings: Dict[str, str] = {}
    live: Dict[str, int] = {}
    mark = ""
    n_accounts = 0
    found: Dict[str, Tuple[int, int]] = {}
    for fields in records(recording.trace):
        if fields[0] == "a":
            n_accounts += 1
            if fields[2] == "device":
                owners[str(n_accounts)] = fields[3]
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
    recording = record([build(form, sim) / "tensors"], status=0)
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
    recording = record([build(20, sim) / "tensors"])
    profile = recording.profile
    stacks = set()
    for account in profile.accounts:
        if account.owner == "tensor":
            names = [profile.strings[profile.frames[frame][1]] for frame in profile.stack(account.node)]
            stacks.add(tuple(names[-2:]))
    assert stacks == {("make_weights", "main"), ("make_activation", "main")}


@pytest.mark.parametrize("namespace", ["tensorflow", "tsl"])
def test_what_tensorflow_hands_out_of_a_region_is_a_tensor(namespace: str, sim: Path) -> None:
    flags = ("-O1", "-Wall", "-Wextra", "-Werror", f"-DNAMESPACE={namespace}")
    driver = linked_to(sim / "libcuda.so.1")
    framework = library(SOURCES.parent / "bfc" / "bfc_allocator.cc", "libtensorflow_framework.so.2", *flags, *driver)
    program = compile_c(SOURCES.parent / "bfc" / "tensors.cc", *flags, *linked_to(framework), *driver)

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


@pytest.mark.parametrize("releases", [(), ("--release=r32",)], ids=["api", "nvmap"])
def test_a_program_says_what_its_own_allocator_hands_out(releases: Tuple[str, ...], sim: Path) -> None:
    program = compile_c(
        DIRECTORY / "own_allocator.c", f"-I{ROOT}/jmassif", str(sim / "libcudart.so.10.2"), f"-Wl,-rpath,{sim}"
    )
    launcher: Sequence[Argument] = ()
    if releases:
        board.require_board(sim)
        launcher = [sim / "jmsim-board", *releases, "--"]
    recording = record([program], launcher=launcher, status=0)
    profile = recording.profile

    def device(held: LiveBytesByAccount) -> Dict[str, int]:
        sums = {"tensor": 0, "cache": 0, "app": 0}
        for account, (n_bytes, _) in held.items():
            _, kind, owner = profile.accounts[account]
            if kind == "device" and owner in sums:
                sums[owner] += n_bytes
        return sums

    marked = [index for index, snapshot in enumerate(profile.snapshots) if snapshot.reason == "mark"]
    for mark, index in zip(profile.marks, marked):
        assert list(device(profile.composition(index)).values()) == [int(word) for word in mark.text.split()], mark.text
    assert len(marked) == len(profile.marks) == 5
    # The peak is of the moment after both were allocated, and the segment was a cache's by then.
    at_peak = device(profile.peak_composition("device"))
    assert at_peak["cache"] + at_peak["tensor"] == 20 << 20 and at_peak["app"] == 3 << 20
    cuda_ledger.assert_totals_are_sums(recording.trace)
    stacks = {
        tuple(profile.frame(frame).function for frame in profile.stack(account.node))[-1:]
        for account in profile.accounts
        if account.owner == "tensor"
    }
    assert stacks == {("main",)}


def allocators(way: str, sim: Path, env: Mapping[str, str] = {}) -> Recording:
    recording = record([build(20, sim) / "allocators", way], env=env, status=0)
    return recording


def by_owner_and_kind(recording: Recording, held: LiveBytesByAccount) -> Dict[Tuple[str, str], Tuple[int, int]]:
    """Bytes and blocks on the device."""
    sums: Dict[Tuple[str, str], Tuple[int, int]] = {}
    for account, (n_bytes, n_blocks) in held.items():
        _, kind, owner = recording.profile.accounts[account]
        if kind in ("device", "pool"):
            before = sums.get((owner, kind), (0, 0))
            sums[owner, kind] = (before[0] + n_bytes, before[1] + n_blocks)
    return sums


def at_mark(recording: Recording) -> LiveBytesByAccount:
    (index,) = (i for i, snapshot in enumerate(recording.profile.snapshots) if snapshot.reason == "mark")
    return recording.profile.composition(index)


def test_what_libraries_compute_in_is_a_workspace_and_no_tensor(sim: Path) -> None:
    recording = allocators("workspace", sim)
    workspace = 8519680 + (1 << 20) + (2 << 20)
    held = by_owner_and_kind(recording, at_mark(recording))
    assert held["workspace", "device"] == (workspace, 3)
    assert held["tensor", "device"] == (4 << 20, 1)
    assert held["cache", "device"][0] == (40 << 20) - (4 << 20) - workspace


def test_where_the_drivers_pool_is_the_cache_its_blocks_are_tensors(sim: Path) -> None:
    recording = allocators("pool", sim)
    held = by_owner_and_kind(recording, at_mark(recording))
    assert held["tensor", "pool"] == (8 << 20, 2)
    assert held["cache", "pool"] == ((32 << 20) - (8 << 20), 0)  # the simulated pool reserves 32 MiB


def test_an_allocation_that_succeeds_after_the_cache_was_freed_is_a_retry(sim: Path) -> None:
    recording = allocators("retry", sim, {"JMSIM_BOARD_BYTES": str(120 << 20)})
    held = by_owner_and_kind(recording, at_mark(recording))
    assert recording.profile.counters["cuda-alloc-retries"] == 1
    assert recording.profile.failures[("cudaMalloc", 2)] == 1
    assert (held["tensor", "device"], held["cache", "device"]) == ((50 << 20, 1), (10 << 20, 1))
    assert "cuda-alloc-retries" not in allocators("workspace", sim).profile.counters


@pytest.mark.parametrize(
    "way, environment, is_cached",
    [
        ("uncached", {}, True),
        ("uncached", {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, False),
        ("sets-uncached", {}, False),
    ],
    ids=["cached", "uncached-by-the-user", "uncached-by-the-script"],
)
def test_without_a_cache_every_allocation_is_a_tensor(
    way: str, environment: Mapping[str, str], is_cached: bool, sim: Path
) -> None:
    recording = allocators(way, sim, environment)
    held = by_owner_and_kind(recording, at_mark(recording))
    assert held["cache" if is_cached else "tensor", "device"] == (8 << 20, 2)
    assert ("tensor" if is_cached else "cache", "device") not in held


def test_of_a_backward_pass_what_outlives_it_is_a_gradient(sim: Path) -> None:
    recording = allocators("backward", sim)
    profile = recording.profile

    def by_role(held: LiveBytesByAccount) -> Dict[str, Tuple[int, int]]:
        roles = {account: profile.role(account) for account in held}
        return {str(roles[account]): numbers for account, numbers in held.items() if roles[account]}

    assert by_role(at_mark(recording)) == {"gradient": (1 << 18, 1)}
    # The device's peak is the segment's first moment; in all there were three of each.
    allocated = {account: (count.bytes, count.blocks) for account, count in profile.counts().items()}
    assert by_role(allocated) == {"gradient": (3 << 18, 3), "temporary": (3 << 20, 3)}


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("interval", [[], ["--time-unit=B", "--max-snapshots=1000"]], ids=["ms", "many-snapshots"])
def test_the_devices_peak_is_the_first_moment_at_which_most_of_most_was_in_use(
    seed: int, interval: List[str], sim: Path
) -> None:
    """Whenever snapshots are taken: the program itself knows what was held then, on the host too."""
    libraries = [str(sim / "libcudart.so.10.2"), f"-Wl,-rpath,{sim}"]
    program = compile_c(DIRECTORY / "cache_peak.c", f"-I{ROOT}/jmassif", "-O1", "-fno-builtin", *libraries)
    recording = record([program, str(seed)], interval, status=0)
    profile = recording.profile
    held: Dict[str, int] = {}
    for account, (n_bytes, _) in profile.peak_composition("device").items():
        node, kind, owner = profile.accounts[account]
        name = owner if owner == "cache" else (functions(profile, node) or [""])[0]
        if kind in ("device", "heap"):
            held[name] = held.get(name, 0) + n_bytes
    told = [held.get(name, 0) for name in ("hand_out_here", "hand_out_there", "cache", "of_host")]
    assert told == [int(word) for word in recording.stdout.split()]


def test_a_cache_that_has_handed_out_all_is_none_at_the_peak(sim: Path) -> None:
    """A segment comes whole, a snapshot is taken, and then its tensors come; they are gone at the end."""
    text = """
    #include "jmassif.h"
    int cudaMalloc(void **address, unsigned long bytes);
    int main(void)
    {
        char *segment;
        unsigned long mib = 1 << 20;
        if (cudaMalloc((void **)&segment, 40 * mib))
            return 1;
        JMASSIF_TENSOR(segment, mib);
        JMASSIF_TENSOR_FREED(segment);
        JMASSIF_SNAPSHOT();
        JMASSIF_TENSOR(segment, 30 * mib);
        JMASSIF_TENSOR(segment + 30 * mib, 10 * mib);
        JMASSIF_SNAPSHOT();
        JMASSIF_TENSOR_FREED(segment);
        JMASSIF_TENSOR_FREED(segment + 30 * mib);
        return 0;
    }
    """
    libraries = [str(sim / "libcudart.so.10.2"), f"-Wl,-rpath,{sim}"]
    recording = record([compile_c(text, f"-I{ROOT}/jmassif", *libraries)], status=0)
    profile = recording.profile
    owners: Dict[str, int] = {}
    for account, (n_bytes, _) in profile.peak_composition("device").items():
        if profile.accounts[account].kind == "device":
            owner = profile.accounts[account].owner
            owners[owner] = owners.get(owner, 0) + n_bytes
    assert {owner: n_bytes for owner, n_bytes in owners.items() if n_bytes} == {"tensor": 40 << 20}
