# SPDX-License-Identifier: GPL-2.0-or-later
"""The simulated Jetson behaves as CUDA's documentation says, and its own figures are right.

Tests of the recorder lean on those figures, so here they are held against sums made by hand.
"""

import shutil
from pathlib import Path
from typing import Dict, List, Mapping, Optional

import pytest

from tests.harness import PYTHON, ROOT, Run, check_run, run, sim_build_arm64

MIB = 1 << 20
KINDS = ("device", "array", "managed", "pinned", "pool", "vmm", "imported")
EACH = ("cuda_each", "cuda_each_11", "cuda_each_12", "cuda_each_13", "cuda_each_hashed")

# How costs.h spends a block of host heap, five sizes in turn.
HEAP_OF_5_BLOCKS = 56 + 240 + 1000 + 8188 + 65536
INIT_HEAP = 60 // 5 * HEAP_OF_5_BLOCKS
CONTEXT_HEAP = 600 // 5 * HEAP_OF_5_BLOCKS
CONTEXT_DEVICE = 48 * MIB


def program(sim: Path, *arguments: str, env: Optional[Mapping[str, str]] = None) -> Run:
    return run([sim / "programs" / arguments[0], *arguments[1:]], env=env)


def points(printed: str) -> Dict[str, Dict[str, int]]:
    """The figures by point, of a program that prints "point NAME" and then lines "KEY VALUE"."""
    found: Dict[str, Dict[str, int]] = {}
    for line in printed.splitlines():
        key, value = line.split()
        if key == "point":
            found[value] = {}
        else:
            list(found.values())[-1][key] = int(value)
    return found


def story(sim: Path, name: str) -> Dict[str, Dict[str, int]]:
    done = program(sim, "cuda_lifetime", name)
    assert done.returncode == 0, done.stderr
    return points(done.stdout)


def live(figures: Mapping[str, int]) -> Dict[str, int]:
    return {kind: figures[kind] for kind in KINDS if figures[kind]}


PRELUDE = """
import ctypes, threading
from ctypes import byref, c_int, c_size_t, c_ulonglong, c_void_p
cuda = ctypes.CDLL({libcuda!r})
class Stats(ctypes.Structure):
    _fields_ = [(k + s, c_ulonglong) for k in {kinds!r} for s in ("", "_blocks")] + [(k, c_ulonglong) for k in (
        "pool_used", "pool_reserved", "context_device", "slab_reserved", "board_used", "board", "heap", "heap_blocks")]
def stats():
    now = Stats()
    cuda.jmsim_stats(byref(now))
    return now
def alloc(n):
    p = c_ulonglong()
    return cuda.cuMemAlloc_v2(byref(p), c_size_t(n)), p
def begin():
    assert cuda.cuInit(0) == 0
    assert cuda.cuCtxCreate_v2(byref(c_void_p()), 0, 0) == 0
def proc(name, version, flags=0):
    p, status = c_void_p(), c_int(-1)
    assert cuda.cuGetProcAddress_v2(name, byref(p), version, c_ulonglong(flags), byref(status)) == 0
    return status.value, p.value
def exported(name):
    return ctypes.cast(getattr(cuda, name), c_void_p).value
"""


def python_on_sim(sim: Path, code: str, env: Optional[Mapping[str, str]] = None) -> None:
    """Runs code, which asserts, with the driver library at hand. It must end well."""
    prelude = PRELUDE.format(libcuda=str(sim / "libcuda.so.1"), kinds=KINDS)
    done = run([PYTHON, "-c", prelude + code], env=env)
    assert done.returncode == 0, done.stderr


# Scripts, by what they show, and the boards that some need.
SCRIPTS: Dict[str, str] = {
    "the_board_is_full_when_its_bytes_are_taken": """
begin()
free, total = c_size_t(), c_size_t()
assert cuda.cuMemGetInfo_v2(byref(free), byref(total)) == 0
assert (free.value, total.value) == (16 << 20, 64 << 20)
assert alloc(16 << 20)[0] == 0
assert alloc(2 << 20)[0] == 2
assert alloc(1)[0] == 2
now = stats()
assert (now.device, now.device_blocks, now.board_used, now.board) == (16 << 20, 1, 64 << 20, 64 << 20)
""",
    "a_context_that_does_not_fit_is_not_made": """
assert cuda.cuInit(0) == 0
assert cuda.cuCtxCreate_v2(byref(c_void_p()), 0, 0) == 2
assert (stats().context_device, stats().board_used) == (0, 0)
""",
    "small_blocks_share_slabs_and_large_ones_do_not": """
begin()
base = stats().board_used
blocks = [alloc(1000)[1] for _ in range(2048)]
assert (stats().device, stats().slab_reserved) == (2048 * 1000, 2 << 20)
assert len({b.value % 512 for b in blocks}) == 1
blocks.append(alloc(1)[1])
assert stats().slab_reserved == 4 << 20
large = alloc((1 << 20) + 1)[1]
assert stats().slab_reserved == 4 << 20
assert stats().board_used - base == (4 << 20) + (1 << 20) + (64 << 10)
for b in blocks + [large]:
    assert cuda.cuMemFree_v2(b) == 0
assert (stats().device, stats().device_blocks) == (0, 0)
assert stats().slab_reserved == 2 << 20
""",
    "threads_may_allocate_and_free_at_once": """
assert cuda.cuInit(0) == 0
context = c_void_p()
assert cuda.cuDevicePrimaryCtxRetain(byref(context), 0) == 0
wrong = []
def work(seed):
    wrong.append(cuda.cuCtxSetCurrent(context))
    kept = []
    for i in range(300):
        code, p = alloc(1 + (seed * 7919 + i * 104729) % 3000000)
        wrong.append(code)
        kept.append(p)
        if i % 3:
            wrong.append(cuda.cuMemFree_v2(kept.pop(i % len(kept))))
    wrong.extend(cuda.cuMemFree_v2(p) for p in kept)
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert not any(wrong)
assert (stats().device, stats().device_blocks, stats().slab_reserved) == (0, 0, 2 << 20)
""",
    "cugetprocaddress_gives_the_form_of_the_asked_version": """
assert proc(b"cuMemAlloc", 2000) == (0, exported("cuMemAlloc"))
assert proc(b"cuMemAlloc", 12000) == (0, exported("cuMemAlloc_v2"))
assert proc(b"cuMemAllocAsync", 11020) == (0, exported("cuMemAllocAsync"))
assert proc(b"cuMemAllocAsync", 11020, 2) == (0, exported("cuMemAllocAsync_ptsz"))
assert proc(b"cuMemFree", 12000, 2) == (0, exported("cuMemFree_v2"))
assert proc(b"cuMemAllocAsync", 10020) == (2, None)
assert proc(b"cuMemAllocTwice", 12000) == (1, None)
""",
    "twins_are_other_functions_that_do_the_same": """
begin()
status, address = proc(b"cuMemAlloc", 12000)
assert status == 0 and address != exported("cuMemAlloc_v2")
twin = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t)(address)
p = c_ulonglong()
assert twin(ctypes.addressof(p), 12345) == 0
assert stats().device == 12345
assert cuda.cuMemFree_v2(p) == 0 and stats().device == 0
assert proc(b"cuInit", 12000) == (0, exported("cuInit"))
""",
    "a_kernel_is_linked_loaded_and_launched_and_costs_its_module": """
begin()
before = stats().context_device
link, made, size = c_void_p(), c_void_p(), c_size_t()
assert cuda.cuLinkCreate_v2(0, None, None, byref(link)) == 0
assert cuda.cuLinkAddData_v2(link, 1, b"ptx", c_size_t(3), b"name", 0, None, None) == 0
assert cuda.cuLinkComplete(link, byref(made), byref(size)) == 0 and size.value > 0
assert stats().context_device == before
module, function = c_void_p(), c_void_p()
assert cuda.cuModuleLoadData(byref(module), made) == 0
assert cuda.cuLinkDestroy(link) == 0
assert stats().context_device > before
assert cuda.cuModuleGetFunction(byref(function), module, b"kernel") == 0
assert cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None) == 0
assert cuda.cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, None, None, None) == 1
assert cuda.cuModuleUnload(module) == 0
assert cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None) == 400
""",
    "copies_and_fills_in_a_stream_are_done_at_once": """
begin()
stream, p = c_void_p(), alloc(4096)[1]
assert cuda.cuStreamCreate(byref(stream), 0) == 0
here, back = (ctypes.c_char * 4096)(*([7] * 4096)), (ctypes.c_char * 4096)()
assert cuda.cuMemcpyHtoDAsync_v2(p, here, c_size_t(4096), stream) == 0
assert cuda.cuMemsetD32Async(p, 0x04030201, c_size_t(2), stream) == 0
assert cuda.cuMemsetD16Async(c_ulonglong(p.value + 8), 0x0605, c_size_t(1), stream) == 0
assert cuda.cuMemcpyDtoHAsync_v2(back, p, c_size_t(4096), stream) == 0
assert back.raw == bytes((1, 2, 3, 4, 1, 2, 3, 4, 5, 6)) + bytes([7]) * 4086
assert cuda.cuMemsetD32Async(p, 0, c_size_t(1025), stream) == 1
assert cuda.cuMemcpyHtoDAsync_v2(p, here, c_size_t(4096), c_void_p(12345)) == 400
""",
}
BOARDS = {
    "the_board_is_full_when_its_bytes_are_taken": {"JMSIM_BOARD_BYTES": str(64 * MIB)},
    "a_context_that_does_not_fit_is_not_made": {"JMSIM_BOARD_BYTES": str(MIB)},
    "twins_are_other_functions_that_do_the_same": {"JMSIM_PROC_ADDRESS": "twin"},
}


@pytest.mark.parametrize("script", list(SCRIPTS))
def test_the_driver_is_as_documented(sim: Path, script: str) -> None:
    python_on_sim(sim, SCRIPTS[script], BOARDS.get(script))


# ---- every function --------------------------------------------------------------------------


def names(sim: Path) -> List[str]:
    return program(sim, "cuda_each", "--list").stdout.split()


def test_the_list_of_functions_is_complete(sim: Path) -> None:
    listed = names(sim)
    assert len(listed) == len(set(listed)) >= 42
    for name in ("cudaMalloc", "cuMemAlloc_v2", "cuMemAllocAsync_ptsz", "cuMemMap", "cuIpcOpenMemHandle_v2"):
        assert name in listed


@pytest.mark.parametrize("each", EACH)
def test_what_is_allocated_shows_and_what_is_freed_does_not(sim: Path, each: str) -> None:
    done = program(sim, each, "--in-turn")
    assert done.returncode == 0, done.stderr
    _, *said = done.stdout.split("point ")
    assert [part.split("\n")[0] for part in said] == [name for name in names(sim) for _ in range(2)]
    for freed in said[1::2]:
        name, *lines = freed.splitlines()
        assert lines and all(line.split()[2] == "0" for line in lines), (name, lines)


def test_sizes_are_what_the_documentation_says(sim: Path) -> None:
    wanted = {
        "cudaMalloc": "expect device 1000003",
        "cudaMallocPitch": f"expect device {1024 * 37}",
        "cudaMalloc3D": f"expect device {1024 * 37 * 3}",
        "cudaMalloc3DArray": f"expect array {64 * 32 * 4 * 8}",
        "cudaMallocMipmappedArray": f"expect array {(64 * 32 + 32 * 16 + 16 * 8 + 8 * 4) * 8}",
        "cuArrayCreate_v2": f"expect array {64 * 32 * 4 * 2}",
        "cudaHostRegister": "expect pinned 0",
        "cuMemCreate": f"expect vmm {4 * MIB}",
    }
    for name, line in wanted.items():
        assert program(sim, "cuda_each", name).stdout.splitlines()[0] == line


# ---- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("libraries", [".", "nounwind"])
def test_calls_fail_with_the_documented_codes(sim: Path, libraries: str) -> None:
    done = program(sim, "cuda_fail", env={"LD_LIBRARY_PATH": str(sim / libraries)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:3] == ["cuMemAlloc_v2 3", "cuMemAlloc_v2 201", "cuMemFree_v2 201"]


PINNED_AGAINST_THE_BOARD = """
begin()
before = stats().board_used
integrated, p = c_int(-1), c_void_p()
assert cuda.cuDeviceGetAttribute(byref(integrated), 18, 0) == 0
assert integrated.value == {integrated}
assert cuda.cuMemHostAlloc(byref(p), c_size_t(1 << 20), 0) == 0
assert stats().board_used - before == {taken}
"""


@pytest.mark.parametrize("discrete, integrated, taken", [("0", 1, MIB), ("1", 0, 0)])
def test_pinned_memory_is_the_boards_only_where_memory_is_shared(
    sim: Path, discrete: str, integrated: int, taken: int
) -> None:
    code = PINNED_AGAINST_THE_BOARD.format(integrated=integrated, taken=taken)
    python_on_sim(sim, code, {"JMSIM_DISCRETE": discrete})


# ---- lifetimes -------------------------------------------------------------------------------


def test_cumemcreate_memory_lives_until_its_last_handle_and_mapping(sim: Path) -> None:
    by_point = {name: live(at) for name, at in story(sim, "vmm_release_before_unmap").items()}
    assert by_point == {"mapped": {"vmm": 4 * MIB}, "released": {"vmm": 4 * MIB}, "unmapped": {}}
    by_point = {name: live(at) for name, at in story(sim, "vmm_two_mappings").items()}
    assert by_point == {"two_mappings": {"vmm": 2 * MIB}, "one_mapping": {"vmm": 2 * MIB}, "no_mapping": {}}
    by_point = {name: live(at) for name, at in story(sim, "vmm_retained_handle").items()}
    assert by_point == {"retained": {"vmm": 2 * MIB}, "mapped_again": {"vmm": 2 * MIB}, "gone": {}}


@pytest.mark.parametrize(
    "name, expected",
    [
        # It reserves chunks and gives them back when synchronized,
        ("pool_used_and_reserved", [[20, 20, 32], [40, 40, 64], [20, 20, 64], [0, 0, 64], [0, 0, 0]]),
        # keeps what its threshold says until it is trimmed,
        ("pool_threshold", [[0, 0, 64], [0, 0, 64], [0, 0, 0]]),
        # and, destroyed, goes with its last block.
        ("pool_destroy", [[3, 3, 32], [0, 0, 0]]),
    ],
)
def test_a_pool_holds_what_is_used_and_what_is_reserved(sim: Path, name: str, expected: List[List[int]]) -> None:
    keys = ("pool", "pool_used", "pool_reserved")
    assert [[at[key] // MIB for key in keys] for at in story(sim, name).values()] == expected


def test_pools_outlive_a_device_reset(sim: Path) -> None:
    at = story(sim, "pool_survives_device_reset")
    assert live(at["both"]) == {"device": MIB, "pool": MIB}
    assert live(at["reset"]) == {"pool": MIB}
    assert live(at["freed"]) == {}


ONE_OF_EACH = {"device": 1000 + 5 * MIB, "managed": 2000, "pinned": 3000, "array": 64 * 64 * 4}


def test_a_destroyed_context_takes_its_memory_along(sim: Path) -> None:
    at = story(sim, "context_destroy")
    assert at["started"]["heap"] == INIT_HEAP
    assert live(at["one_context"]) == ONE_OF_EACH
    assert live(at["two_contexts"]) == {kind: 2 * n for kind, n in ONE_OF_EACH.items()}
    assert live(at["first_destroyed"]) == ONE_OF_EACH
    assert {key: n for key, n in at["first_destroyed"].items() if n} == {
        key: n for key, n in at["one_context"].items() if n
    }
    assert {key: n for key, n in at["both_destroyed"].items() if n} == {"heap": INIT_HEAP, "heap_blocks": 60}


def test_a_context_costs_host_heap_and_device_memory(sim: Path) -> None:
    at = story(sim, "context_destroy")["one_context"]
    in_it = 24 * 15004 + 56 + 16  # not exact: the stream, event and module made in it
    assert CONTEXT_HEAP < at["heap"] - INIT_HEAP < CONTEXT_HEAP + in_it
    assert CONTEXT_DEVICE < at["context_device"] < CONTEXT_DEVICE + 3 * MIB


@pytest.mark.parametrize("name, last", [("device_reset", "reset_again"), ("primary_reset", "released")])
def test_a_reset_ends_the_primary_context(sim: Path, name: str, last: str) -> None:
    at = story(sim, name)
    assert live(at["in_use"]) == ONE_OF_EACH
    for point in ("reset", last):
        assert live(at[point]) == {}
        assert at[point]["board_used"] == 0


def test_the_primary_context_ends_with_its_last_release(sim: Path) -> None:
    at = story(sim, "primary_release")
    assert live(at["retained_once"]) == ONE_OF_EACH
    assert live(at["released"]) == {} and at["released"]["context_device"] == 0


def test_a_block_may_be_freed_by_another_thread_and_only_once(sim: Path) -> None:
    assert live(story(sim, "freed_by_another_thread")["freed"]) == {}
    assert live(story(sim, "freed_twice")["freed_twice"]) == {"device": 7777}
    assert live(story(sim, "unknown_pointer")["nothing_freed"]) == {"device": 5555}


def test_an_ipc_handle_is_open_until_it_is_closed_as_often(sim: Path) -> None:
    at = story(sim, "ipc_open_close")
    assert [live(figures) for figures in at.values()] == [{"imported": 654321}, {"imported": 654321}, {}]
    assert len({figures["board_used"] for figures in at.values()}) == 1


def test_registering_host_memory_takes_none(sim: Path) -> None:
    at = story(sim, "host_register")
    assert at["before"] == at["registered"] == at["unregistered"]


# ---- below the API ---------------------------------------------------------------------------


def test_a_storm_ends_with_as_many_frees_as_allocations(sim: Path) -> None:
    counts = dict(line.split() for line in program(sim, "cuda_storm", "20000").stdout.splitlines())
    assert counts["host_allocations"] == counts["host_frees"]
    assert counts["device_allocations"] == counts["device_frees"]
    assert int(counts["device_peak"]) > MIB


def test_a_run_is_like_every_other(sim: Path) -> None:
    first = program(sim, "cuda_mixed", "exit")
    assert first.returncode == 7 and first == program(sim, "cuda_mixed", "exit")


@pytest.mark.parametrize("end, status", [("exit", 7), ("_exit", 7), ("return", 7), ("free", 0)])
def test_the_mixed_program_ends_as_told(sim: Path, end: str, status: int) -> None:
    done = program(sim, "cuda_mixed", end)
    assert done.returncode == status, done.stderr
    assert "managed 1234567 1\n" in done.stdout


# ---- how functions are reached ---------------------------------------------------------------


@pytest.mark.parametrize("way", ["runtime", "driver", "proc", "proc_v2"])
@pytest.mark.parametrize("mode", ["exported", "twin"])
def test_a_program_reaches_everything_at_run_time(sim: Path, way: str, mode: str) -> None:
    done = program(sim, "cuda_dlsym", way, env={"JMSIM_PROC_ADDRESS": mode, "JMSIM_CUDART_PROC_ADDRESS": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout == "expect device 1000003\nexpect pinned 300007\nexpect pool 700001\n"


@pytest.mark.parametrize("name", ["cuda_static", "cuda_static_library"])
def test_the_static_runtime_works_and_exports_nothing(sim: Path, name: str) -> None:
    assert program(sim, name).returncode == 0
    for file in (sim / "programs" / name, sim / "libcuda_user.so"):
        assert "cudaMalloc" not in check_run(["nm", "-D", file])


@pytest.mark.parametrize(
    "library, version",
    [
        ("libcudart.so.10.2", 10020),
        ("libcudart.so.11.0", 11080),
        ("libcudart-9335f6a2.so.11.0", 11030),
        ("libcudart.so.12", 12060),
        ("libcudart.so.13", 13000),
    ],
)
def test_each_runtime_says_its_version(sim: Path, library: str, version: int) -> None:
    code = f"""
runtime, version = ctypes.CDLL({str(sim / library)!r}), c_int()
assert runtime.cudaRuntimeGetVersion(byref(version)) == 0 and version.value == {version}
"""
    python_on_sim(sim, code)


def test_without_a_driver_the_runtime_says_so(sim: Path, tmp_path: Path) -> None:
    shutil.copy(str(sim / "libcudart.so.10.2"), str(tmp_path))
    (tmp_path / "programs").mkdir()
    shutil.copy(str(sim / "programs" / "cuda_real"), str(tmp_path / "programs"))
    done = run([tmp_path / "programs" / "cuda_real"])
    if "devices 1" in done.stdout:
        pytest.skip("this machine has a driver")
    assert "cudaMalloc: 35 cudaErrorInsufficientDriver" in done.stdout
    assert "pointers 0" in done.stdout


def test_every_scope_is_entered(sim: Path) -> None:
    done = program(sim, "scopes")
    calls = [line.split() for line in done.stdout.split("point end")[0].splitlines()]
    assert done.returncode == 0 and len(calls) == 25
    assert [call for call in calls if call[1] != "0"] == []


def test_the_bare_driver_has_no_unwind_tables(sim: Path) -> None:
    sections = check_run(["readelf", "-SW", sim / "nounwind" / "libcuda.so.1"])
    sizes = [int(line.split()[-6], 16) for line in sections.splitlines() if " .eh_frame " in line]
    assert all(size <= 8 for size in sizes), sections
    assert ".debug_frame" not in sections


# ---- the example, and another machine --------------------------------------------------------


TRAIN = ROOT / "docs" / "examples" / "train.py"


def test_the_example_trains_and_prints_the_same_every_time(sim: Path) -> None:
    first = run([PYTHON, TRAIN, "--device=sim"], env={"JMSIM_LIB": str(sim)})
    assert first.returncode == 0, first.stderr
    losses = [float(line.split()[-1]) for line in first.stdout.splitlines() if line.startswith("step")]
    assert len(losses) == 6 and losses == sorted(losses, reverse=True)
    assert first == run([PYTHON, TRAIN, "--device=sim"], env={"JMSIM_LIB": str(sim)})


def test_the_example_says_in_one_line_what_it_lacks(tmp_path: Path) -> None:
    done = run([PYTHON, TRAIN, "--device=sim"], env={"JMSIM_LIB": str(tmp_path)})
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "tests/sim/build.sh" in done.stderr


def test_the_example_runs_out_of_memory_on_a_small_board(sim: Path) -> None:
    done = run([PYTHON, TRAIN, "--device=sim"], env={"JMSIM_LIB": str(sim), "JMSIM_BOARD_BYTES": "1500000000"})
    assert done.returncode == 1
    assert done.stderr == "train.py: out of memory: cudaMalloc of 20971520 bytes\n"


def test_arm64_behaves_alike(sim: Path) -> None:
    if shutil.which("aarch64-linux-gnu-gcc") is None or shutil.which("qemu-aarch64-static") is None:
        pytest.skip("no arm64 cross compiler or emulator")
    arm64 = sim_build_arm64()
    emulator = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]
    for command in ("cuda_mixed free", "cuda_fail", "cuda_driver", "cuda_static", "cuda_storm 3000", "scopes"):
        name, *arguments = command.split()
        there = run([*emulator, arm64 / "programs" / name, *arguments])
        assert there == program(sim, name, *arguments), command
