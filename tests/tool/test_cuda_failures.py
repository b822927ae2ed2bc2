# SPDX-License-Identifier: GPL-2.0-or-later
"""CUDA calls that fail, a storm of calls that succeed, and the real runtime on a machine without a driver."""

import re
from collections import Counter
from pathlib import Path
from typing import Tuple

import pytest

from tests import harness
from tests.harness import Recording
from tests.tool.cuda_ledger import Kinds, assert_totals_are_sums, figures, held_by_kind, last, run_sim

# What cuda_mixed has in use when it asks for its first handle. The pool has reserved a chunk.
MODEL: Kinds = {
    "device": (12345678 + 54321, 2),
    "managed": (1234567, 1),
    "pinned": (393216, 1),
    "pool": (32 << 20, 1),
    "array": (256 * 256 * 4, 1),
    "vmm": (2 << 20, 1),
}

# Calls of cuda_fail that nobody wraps: they neither make nor free memory.
NOT_WRAPPED = ("cudaSetDevice", "cudaStreamDestroy", "cuModuleUnload")


@pytest.fixture(scope="module")
def failing(sim: Path) -> Recording:
    return run_sim(sim, "cuda_fail")


def test_failures_are_counted_by_function_and_result_code(failing: Recording) -> None:
    calls = re.findall(r"^(\w+) (\d+)$", failing.stdout, re.MULTILINE)
    told = Counter((name, int(code)) for name, code in calls if name not in NOT_WRAPPED)
    failures = failing.profile.failures
    by_runtime = {call: n for call, n in failures.items() if call[0].startswith("cuda")}
    assert by_runtime == {call: n for call, n in told.items() if call[0].startswith("cuda")}
    # The driver's are those that the program made itself, and those inside the runtime's.
    by_driver = {call: n for call, n in failures.items() if call not in by_runtime}
    inside = Counter(by_driver)
    inside.subtract({call: n for call, n in told.items() if call not in by_runtime})
    assert {call: n for call, n in inside.items() if n} == {
        ("cuMemAlloc_v2", 2): 1,
        ("cuMemAllocPitch_v2", 2): 1,
        ("cuMemAllocManaged", 2): 1,
        ("cuMemAllocManaged", 1): 1,
        ("cuMemHostAlloc", 2): 2,
        ("cuMemAllocAsync", 2): 1,
        ("cuArray3DCreate_v2", 2): 1,
        ("cuMemFree_v2", 1): 2,
        ("cuMemFreeHost", 1): 1,
        ("cuArrayDestroy", 400): 1,
        ("cuMipmappedArrayDestroy", 400): 1,
        ("cuMemHostUnregister", 713): 1,
        ("cuMemHostRegister_v2", 712): 1,
        ("cuMemFreeAsync", 1): 1,
        ("cuMemPoolDestroy", 1): 1,
        ("cuIpcCloseMemHandle", 1): 1,
        ("cuDestroyExternalMemory", 400): 1,
    }


def test_a_call_that_fails_records_nothing(failing: Recording) -> None:
    profile = failing.profile
    assert held_by_kind(profile, last(profile)) == {}
    # Of the whole program two calls made something: a block of 4096 bytes, and the registration of a range.
    sizes = [
        profile.blocks[row + 2]
        for row in range(0, len(profile.blocks), 4)
        if profile.accounts[profile.blocks[row + 3]].kind != "heap" and row // 4 not in profile.frees
    ]
    assert sizes == [4096]
    assert "cuda-free-of-unknown-pointer" not in profile.counters


@pytest.mark.parametrize(
    "mib, call, live",
    [
        (40, "cuDevicePrimaryCtxRetain", {}),
        (60, "cuMemAlloc_v2", {"device": (12345678, 1)}),
        (100, "cudnnCreate", MODEL),
    ],
)
def test_a_full_board_leaves_in_the_ledger_what_was_had_before(sim: Path, mib: int, call: str, live: Kinds) -> None:
    recording = run_sim(sim, "cuda_mixed", "_exit", env={"JMSIM_BOARD_BYTES": str(mib << 20)})
    assert recording.returncode == 1 and "error 2" in recording.stderr
    profile = recording.profile
    assert profile.failures[call, 2] == 1
    assert held_by_kind(profile, last(profile)) == live


# ---- many calls --------------------------------------------------------------------------------


def test_a_storm_of_allocations_ends_where_it_began(sim: Path) -> None:
    recording = run_sim(sim, "cuda_storm", "60000", "7")
    profile = recording.profile
    told = figures(recording.stdout)
    program = sim / "programs" / "cuda_storm"

    def seen(kind: str, function: str) -> Tuple[int, int]:
        return harness.allocated_by_function(profile, program, kind)[function]

    assert seen("device", "take_device")[1] == told["device_allocations"] == told["device_frees"] > 10_000
    assert seen("heap", "take_host")[1] == told["host_allocations"] == told["host_frees"] > 10_000
    assert held_by_kind(profile, last(profile)) == {}
    assert profile.peaks["device"].device == told["device_peak"]
    composition = profile.peak_composition("host")
    at_peak = sum(
        n_bytes
        for account, (n_bytes, _) in composition.items()
        if harness.user_function(profile, profile.accounts[account].node, program) == "take_host"
    )
    assert at_peak <= told["host_peak"]  # overhead moves the peak a little
    assert at_peak >= 0.99 * told["host_peak"]
    assert not profile.failures and not profile.counters


def test_the_programs_output_is_its_own_with_the_simulated_runtime_too(sim: Path) -> None:
    recording = run_sim(sim, "cuda_real")
    assert "devices 1\n" in recording.stdout and "pointers 4\n" in recording.stdout
    assert not recording.profile.failures
    assert {
        kind for kind, (_, blocks) in held_by_kind(recording.profile, last(recording.profile)).items() if blocks
    } == set()


# ---- the real runtime --------------------------------------------------------------------------

CUDA = Path("/usr/local/cuda")


@pytest.mark.parametrize("linked", ["shared", "static"])
def test_calls_of_the_real_runtime_without_a_driver_fail_as_they_do_without_us(linked: str) -> None:
    places = [CUDA / "lib64", *sorted(Path("/usr/local").glob("cuda-*/lib*"))]
    places = [
        place for place in places if (place / "libcudart.so").exists() and (place / "libcudart_static.a").exists()
    ]
    if not places:
        pytest.skip("no CUDA toolkit with libcudart.so and libcudart_static.a in /usr/local/cuda*")
    if Path("/dev/nvidiactl").exists() or Path("/dev/nvmap").exists():
        pytest.skip("this machine has a driver, so the calls would not fail")
    runtime = places[0]
    flags = {
        "shared": (str(runtime / "libcudart.so"), f"-Wl,-rpath,{runtime}"),
        "static": (str(runtime / "libcudart_static.a"), "-ldl", "-lrt", "-pthread"),
    }
    source = harness.ROOT / "tests" / "sim" / "programs" / "cuda_real.c"
    program = harness.compile_c(source, *flags[linked])

    recording = harness.record([program])
    native = harness.run([program])
    assert (recording.stdout, recording.returncode) == (native.stdout, native.returncode), recording.stderr
    assert_totals_are_sums(recording.trace)

    calls = re.findall(r"^(cuda\w+): (\d+) ", native.stdout, re.MULTILINE)
    failed = Counter((name, int(code)) for name, code in calls if code != "0" and "Get" not in name)
    assert ("cudaMalloc", 35) in failed or ("cudaMalloc", 100) in failed
    assert {call: n for call, n in recording.profile.failures.items() if call[0].startswith("cuda")} == failed
    assert held_by_kind(recording.profile, last(recording.profile)) == {}
