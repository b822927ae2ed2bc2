# SPDX-License-Identifier: GPL-2.0-or-later
"""Each wrapped allocation function, called once: exact bytes, kind, owner and first frame, and nothing after the free.

One run of cuda_each calls them all in turn. It says what it expects, and has checked that against the simulation. The list
of functions is read from its source, since tests are collected before anything is built.
"""

import functools
import re
from pathlib import Path
from typing import Dict, List, NamedTuple

import pytest

from tests import harness
from tests.tool.cuda_ledger import Made, at_marks, held_by_kind, made_in, run_sim

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


class Call(NamedTuple):
    """The blocks that one function made, and the live bytes by kind after the call and after the free, as recorded and as
    expected."""

    made: Dict[str, Made]
    recorded: List[Dict[str, int]]
    expected: List[Dict[str, int]]
    printed: str


@functools.lru_cache(maxsize=None)
def in_turn(sim: Path, program: str, *functions: str) -> Dict[str, Call]:
    recording = run_sim(sim, program, "--in-turn", *functions, marks=True)
    assert recording.returncode == 0, recording.stderr
    profile = recording.profile
    assert not profile.failures
    _, *printed = recording.stdout.split("point ")
    live = [{kind: n_bytes for kind, (n_bytes, _) in held_by_kind(profile, held).items()} for held in at_marks(profile)]
    names = functions or FUNCTIONS
    assert len(live) == len(printed) == 2 * len(names)
    calls = {}
    for i, name in enumerate(names):
        here = slice(2 * i, 2 * i + 2)
        made = made_in(profile, sim / "programs" / program, f"use_{name}")
        calls[name] = Call(made, live[here], [expectations(said) for said in printed[here]], printed[2 * i])
    return calls


def check(call: Call, function: str) -> None:
    assert call.recorded == call.expected
    assert call.recorded[1] == {}
    expected = re.findall(r"^expect (\w+) ([1-9]\d*)$", call.printed, re.MULTILINE)
    if function in MAKES_NOTHING:
        expected = []
    assert call.made == {kind: Made("app", int(n_bytes), 1) for kind, n_bytes in expected}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_allocation_is_recorded_with_its_bytes_kind_owner_and_caller(sim: Path, function: str) -> None:
    check(in_turn(sim, "cuda_each")[function], function)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("function", CONVENTIONS)
def test_a_runtime_is_seen_whatever_its_file_is_called(sim: Path, runtime: str, function: str) -> None:
    check(in_turn(sim, f"cuda_each_{runtime}", *CONVENTIONS)[function], function)


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


@pytest.mark.parametrize(
    "function", ["cudaHostRegister", "cuMemHostRegister", "cuMemHostRegister_v2", "cuMemAddressReserve"]
)
def test_registered_memory_and_reserved_addresses_are_no_memory(sim: Path, function: str) -> None:
    profile = run_sim(sim, "cuda_each", function).profile
    assert {profile.accounts[account].kind for account in profile.counts()} <= {"heap", "heap-overhead"}
