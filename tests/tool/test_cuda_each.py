# SPDX-License-Identifier: GPL-2.0-or-later
"""Each wrapped allocation function, called once: exact bytes, kind, owner and first frame, and nothing after the free.

cuda_each says what it expects, and has checked that against the simulation. The list of functions is read from its source,
since tests are collected before anything is built.
"""

import re
from pathlib import Path
from typing import Dict

import pytest

from jmassif.model.profile import Profile
from tests import harness
from tests.tool.cuda_ledger import Made, held_by_kind, last, made_in, run_sim

_SOURCE = harness.ROOT / "tests" / "sim" / "programs" / "cuda_each.c"
FUNCTIONS = re.findall(r"^    ROW\((\w+),", _SOURCE.read_text(), re.MULTILINE)

# These make no memory: they map, name or promise what others made.
MAKES_NOTHING = (
    "cudaHostRegister",
    "cudaMemPoolCreate",
    "cudaExternalMemoryGetMappedBuffer",
    "cuMemHostRegister",
    "cuMemHostRegister_v2",
    "cuMemPoolCreate",
    "cuMemAddressReserve",
    "cuMemMap",
    "cuMemRetainAllocationHandle",
    "cuExternalMemoryGetMappedBuffer",
)
HOST_BYTES = 300007  # what cuda_each registers
VMM_BYTES = 4 << 20  # and the addresses it reserves

# Other names of the runtime: cuda_each, linked to it. Each gets a function of each calling convention.
RUNTIMES = ("11", "12", "13", "hashed")
CONVENTIONS = (
    "cudaMalloc",
    "cudaMalloc3D",
    "cudaMallocMipmappedArray",
    "cudaMallocFromPoolAsync",
    "cudaIpcOpenMemHandle",
)


def expectations(stdout: str) -> Dict[str, int]:
    """By kind: the bytes that are live at the API. What a pool holds in reserve counts as its kind's."""
    live = {kind: int(n_bytes) for kind, n_bytes in re.findall(r"^expect (\w+) (\d+)$", stdout, re.MULTILINE)}
    reserved = re.search(r"^reserved pool (\d+)$", stdout, re.MULTILINE)
    assert live and reserved
    live["pool"] = int(reserved.group(1))
    return {kind: n_bytes for kind, n_bytes in live.items() if n_bytes}


def live_bytes(profile: Profile) -> Dict[str, int]:
    return {kind: n_bytes for kind, (n_bytes, _) in held_by_kind(profile, last(profile)).items()}


def check_kept(sim: Path, program: str, function: str) -> Dict[str, Made]:
    kept = run_sim(sim, program, function)
    assert kept.returncode == 0, kept.stderr
    assert live_bytes(kept.profile) == expectations(kept.stdout)
    assert not kept.profile.failures

    made = made_in(kept.profile, sim / "programs" / program, f"use_{function}")
    expected = re.findall(r"^expect (\w+) ([1-9]\d*)$", kept.stdout, re.MULTILINE)
    if function in MAKES_NOTHING:
        expected = []
    assert made == {kind: Made("app", int(n_bytes), 1) for kind, n_bytes in expected}
    return made


def check_freed(sim: Path, program: str, function: str, made: Dict[str, Made]) -> None:
    freed = run_sim(sim, program, function, "free")
    assert freed.returncode == 0, freed.stderr
    assert live_bytes(freed.profile) == expectations(freed.stdout) == {}
    assert not freed.profile.failures
    assert made_in(freed.profile, sim / "programs" / program, f"use_{function}") == made


@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_allocation_is_recorded_with_its_bytes_kind_owner_and_caller(sim: Path, function: str) -> None:
    made = check_kept(sim, "cuda_each", function)
    check_freed(sim, "cuda_each", function, made)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("function", CONVENTIONS)
def test_a_runtime_is_seen_whatever_its_file_is_called(sim: Path, runtime: str, function: str) -> None:
    check_kept(sim, f"cuda_each_{runtime}", function)


def test_the_program_calls_every_allocation_function_that_is_wrapped(sim: Path) -> None:
    table = (harness.ROOT / "jmassif" / "preload" / "cuda_api.def").read_text()
    rows = re.findall(r"^API\(\w+, (\w+), \w+, \w+, (\w+),", table, re.MULTILINE)
    allocating = re.compile(
        "(ALLOC|RUNTIME_ARRAY|RUNTIME_MIPMAP|DRIVER_ARRAY|DRIVER_MIPMAP|IPC_OPEN|EXTERNAL_IMPORT|REGISTER"
        "|VMM_(CREATE|IMPORT|MAP|RETAIN)|VA_RESERVE|POOL_CREATE)"
    )
    wrapped = {name for name, action in rows if allocating.match(action)}
    assert harness.check_run([sim / "programs" / "cuda_each", "--list"]).split() == FUNCTIONS
    # The per-thread form of a mapping does what the plain one does and is in the same library.
    assert wrapped - set(FUNCTIONS) == {"cuMemMap_ptsz"}


@pytest.mark.parametrize("function", ["cudaHostRegister", "cuMemHostRegister", "cuMemHostRegister_v2"])
def test_registered_host_memory_is_counted_and_not_recorded(sim: Path, function: str) -> None:
    assert run_sim(sim, "cuda_each", function).profile.counters["host-registered-bytes"] == HOST_BYTES
    assert run_sim(sim, "cuda_each", function, "free").profile.counters.get("host-registered-bytes", 0) == 0


def test_reserved_addresses_are_counted_and_not_recorded(sim: Path) -> None:
    counter = "cuda-address-space-reserved-bytes"
    assert run_sim(sim, "cuda_each", "cuMemAddressReserve").profile.counters[counter] == VMM_BYTES
    assert run_sim(sim, "cuda_each", "cuMemAddressReserve", "free").profile.counters.get(counter, 0) == 0
