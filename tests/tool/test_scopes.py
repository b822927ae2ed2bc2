# SPDX-License-Identifier: GPL-2.0-or-later
"""Scopes: each call that start-up is made of leaves a record of its name, its span and what it cost, nested as it was.

Costs are held against the simulation's tables: tests/sim/costs.h for the driver, tests/sim/libraries for handles.
"""

import re
import shutil
from pathlib import Path
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

import pytest

from jmassif.model.records import Scope
from jmassif.model.run import Profile
from tests import harness
from tests.harness import Recording
from tests.tool import programs
from tests.tool.cuda_ledger import assert_totals_are_sums, figures, run_sim

KIB, MIB = 1 << 10, 1 << 20
HEAP_SIZES = (56, 240, 1000, 8188, 65536)

Cost = Dict[str, Tuple[int, int]]  # kind: (bytes, blocks)


def heap(n_blocks: int) -> Tuple[int, int]:
    return sum(HEAP_SIZES[i % len(HEAP_SIZES)] for i in range(n_blocks)), n_blocks


INIT, CONTEXT, MODULE, STREAM, EVENT, RUNTIME = heap(60), heap(600), heap(20), heap(4), heap(1), heap(10)
HANDLE = (104, 1)  # what library.h keeps of one


def cost(heap_parts: Iterable[Tuple[int, int]], device: Iterable[int] = (), pinned: Optional[int] = None) -> Cost:
    parts, blocks = list(heap_parts), list(device)
    costs = {"heap": (sum(part[0] for part in parts), sum(part[1] for part in parts))}
    if blocks:
        costs["device"] = (sum(blocks), len(blocks))
    if pinned is not None:
        costs["pinned"] = (pinned, 1)
    return {kind: held for kind, held in costs.items() if held != (0, 0)}


NCCL = cost([heap(80), STREAM, EVENT, MODULE, HANDLE], [8 * MIB, 128 * KIB], MIB)
CUFFT_PLAN = [heap(35), MODULE, HANDLE]

# The program's calls in order. The first runtime call also starts the runtime.
CALLS: List[Tuple[str, Cost]] = [
    ("cuInit", cost([INIT])),
    ("cuCtxCreate_v2", cost([CONTEXT])),
    ("cuDevicePrimaryCtxRetain", cost([CONTEXT])),
    ("cuModuleLoadData", cost([MODULE])),
    ("cuModuleLoad", cost([MODULE])),
    ("cuLibraryLoadData", cost([MODULE])),
    ("cuStreamCreate", cost([STREAM])),
    ("cudaStreamCreateWithFlags", cost([STREAM, RUNTIME])),
    ("cuEventCreate", cost([EVENT])),
    ("cudaEventCreate", cost([EVENT])),
    (
        "cudnnCreate",
        cost([heap(150), STREAM, EVENT, EVENT, MODULE, HANDLE], [1536 * KIB, 64 * KIB, 4096], 8 * KIB),
    ),
    ("cublasCreate_v2", cost([heap(60), EVENT, EVENT, MODULE, HANDLE], [4 * MIB, 64 * KIB], 4 * KIB)),
    ("cublasLtCreate", cost([heap(25), HANDLE], [64 * KIB])),
    ("cufftPlan1d", cost(CUFFT_PLAN, [32 * KIB, 4096 * 16 * 8])),
    ("cufftCreate", cost(CUFFT_PLAN, [32 * KIB])),
    ("cufftMakePlan1d", cost([], [1024 * 8])),
    ("cusparseCreate", cost([heap(30), MODULE, HANDLE], [512 * KIB, 2048])),
    ("cusolverDnCreate", cost([heap(40), EVENT, MODULE, HANDLE], [2 * MIB, 16 * KIB], 4096)),
    ("curandCreateGenerator", cost([heap(15), HANDLE], [768 * KIB])),
    ("ncclCommInitRank", NCCL),
    ("ncclCommInitAll", NCCL),
    ("createInferRuntime_INTERNAL", cost([heap(120), MODULE, HANDLE], [256 * KIB], 64 * KIB)),
]
DLOPEN = "dlopen libm.so.6"  # the program's last call


class Told(NamedTuple):
    scope: Scope
    children: List[Scope]


@pytest.fixture(scope="module")
def started(sim: Path) -> Recording:
    recording = run_sim(sim, "scopes")
    assert recording.returncode == 0, recording.stderr
    return recording


def growth(scope: Scope) -> Cost:
    return {kind: (n_bytes, n_blocks) for kind, n_bytes, n_blocks in scope.growths}


def outermost(profile: Profile) -> List[Scope]:
    return sorted((scope for scope in profile.scopes if scope.parent == 0), key=lambda scope: scope.id)


def told(profile: Profile, name: str) -> Told:
    found = [scope for scope in outermost(profile) if scope.name == name]
    assert len(found) == 1, f"{name}: {len(found)} times"
    return Told(found[0], [scope for scope in profile.scopes if scope.parent == found[0].id])


def test_each_call_has_a_scope_in_the_order_of_the_program(started: Recording) -> None:
    names = [scope.name for scope in outermost(started.profile)]
    assert names == [name for name, _ in CALLS] + [DLOPEN]
    printed = re.findall(r"^(\w+) 0$", started.stdout.split("point")[0], re.MULTILINE)
    without_scope = ("cuCtxSetCurrent", "ncclGetUniqueId")
    assert [name for name in printed if name not in without_scope] == [name for name, _ in CALLS] + ["dlopen"]


@pytest.mark.parametrize("name, expected", CALLS, ids=[name for name, _ in CALLS])
def test_a_scope_has_the_cost_of_its_call_by_kind(started: Recording, name: str, expected: Cost) -> None:
    measured = growth(told(started.profile, name).scope)
    if name == "cudaStreamCreateWithFlags":
        # It loads the driver, which is loaded: the loader's own few bytes, told apart as a scope of their own.
        (loading,) = [scope for scope in told(started.profile, name).children if scope.name == "dlopen libcuda.so.1"]
        loader = growth(loading).get("heap", (0, 0))
        measured["heap"] = (measured["heap"][0] - loader[0], measured["heap"][1] - loader[1])
    assert measured == expected


def test_outermost_scopes_add_up_to_what_is_live_at_the_end(started: Recording) -> None:
    live = figures(started.stdout)
    sums: Cost = {}
    for name, _ in CALLS:
        for kind, (n_bytes, n_blocks) in growth(told(started.profile, name).scope).items():
            before = sums.get(kind, (0, 0))
            sums[kind] = (before[0] + n_bytes, before[1] + n_blocks)
    for kind in ("device", "pinned"):
        assert sums[kind] == (live[kind], live[f"{kind}_blocks"])
    loader = [scope for scope in started.profile.scopes if scope.name == "dlopen libcuda.so.1"]
    loader_bytes = sum(growth(scope)["heap"][0] for scope in loader)
    assert sums["heap"][0] - loader_bytes == live["heap"]


def test_a_scope_lies_inside_the_one_around_it(started: Recording) -> None:
    by_id = {scope.id: scope for scope in started.profile.scopes}
    nested = [scope for scope in started.profile.scopes if scope.parent]
    assert nested
    for scope in nested:
        outer = by_id[scope.parent]
        assert outer.begin <= scope.begin <= scope.end <= outer.end
        assert scope.thread == outer.thread
    spans = [(scope.begin, scope.end) for scope in outermost(started.profile)]
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:]))


def test_scopes_of_a_handle_are_what_it_is_made_of(started: Recording) -> None:
    inside = [scope.name for scope in told(started.profile, "cudnnCreate").children]
    made_of = ["cudaStreamCreateWithFlags", "cudaEventCreateWithFlags", "cudaEventCreateWithFlags", "cuModuleLoadData"]
    assert inside == made_of
    stream = next(s for s in started.profile.scopes if s.parent == told(started.profile, "cudnnCreate").scope.id)
    (driver,) = [scope for scope in started.profile.scopes if scope.parent == stream.id]
    assert driver.name == "cuStreamCreateWithPriority" and growth(driver) == growth(stream)


def test_a_scope_has_the_stack_of_its_call(started: Recording) -> None:
    stack = programs.functions(started.profile, told(started.profile, "cublasCreate_v2").scope.node)
    assert stack[-1] == "main" and len(stack) <= 2
    nested = told(started.profile, "cublasCreate_v2").children[-1]
    stack = programs.functions(started.profile, nested.node)
    assert ["handle_new", "cublasCreate_v2"] == [name for name in stack if name in ("handle_new", "cublasCreate_v2")][
        :2
    ]
    assert stack[-1] == "main"


def test_an_allocation_is_no_scope_but_what_it_starts_is(sim: Path) -> None:
    profile = run_sim(sim, "cuda_static").profile
    names = [scope.name for scope in outermost(profile)]
    assert names == ["dlopen libcuda.so.1", "cuInit", "cuDevicePrimaryCtxRetain"]
    assert growth(told(profile, "cuInit").scope) == cost([INIT])
    assert growth(told(profile, "cuDevicePrimaryCtxRetain").scope) == cost([CONTEXT])
    assert not {scope.name for scope in profile.scopes} & {"cudaMalloc", "cuMemAlloc_v2", "cudaFree"}
    assert set(profile.scope_sums) == set()


# ---- many calls --------------------------------------------------------------------------------


def test_calls_that_come_too_often_are_summed(sim: Path) -> None:
    libraries = [str(sim / "libcudart.so.10.2"), str(sim / "libcuda.so.1"), f"-Wl,-rpath,{sim}"]
    program = programs.program("cuda_many.c", *libraries)
    recording = programs.run_both([program])
    assert recording.returncode == 0 and recording.stdout == "failed 0, no module: 301\n"
    assert_totals_are_sums(recording.trace)
    profile = recording.profile

    for name, n_calls, each in (
        ("cuEventCreate", 300, EVENT),
        ("cudaStreamCreateWithFlags", 200, STREAM),
        ("cuStreamCreateWithPriority", 200, STREAM),
    ):
        records = [scope for scope in profile.scopes if scope.name == name]
        rest = profile.scope_sums[name]
        assert 10 <= len(records) <= 100
        assert rest.calls == n_calls - len(records)
        assert {(g.kind, g.bytes, g.blocks) for g in rest.growths} == {
            ("heap", rest.calls * each[0], rest.calls * each[1])
        }
        assert all(growth(scope) == {"heap": each} for scope in records[1:])  # the first starts the runtime
    assert profile.failures == {("cuModuleLoad", 301): 1}
    failed = told(profile, "cuModuleLoad").scope
    assert growth(failed) == {}


# ---- dlopen ------------------------------------------------------------------------------------


@pytest.fixture
def outer_library(tmp_path: Path) -> Path:
    """A library that alone knows where another one lies: in `inner` beside it."""
    source = programs.DIRECTORY / "cuda_origin.c"
    inner = tmp_path / "inner" / "liborigin_inner.so"
    inner.parent.mkdir()
    shutil.copy(str(harness.compile_c(source, "-shared", "-fpic", "-DINNER")), str(inner))
    outer = tmp_path / "liborigin_outer.so"
    flags = ("-shared", "-fpic", "-DOUTER", "-ldl", "-Wl,-rpath,$ORIGIN/inner")
    shutil.copy(str(harness.compile_c(source, *flags)), str(outer))
    return outer


def test_dlopen_still_looks_where_its_caller_would(outer_library: Path) -> None:
    recording = programs.run_both([programs.program("cuda_origin.c", "-ldl"), outer_library])
    assert recording.returncode == 0, recording.stderr
    assert "by search path: 42\nby $ORIGIN: 42\n" in recording.stdout
    assert "not found from here: 1\n" in recording.stdout


def test_a_dlopen_is_named_by_its_file(outer_library: Path) -> None:
    recording = programs.run_both([programs.program("cuda_origin.c", "-ldl"), outer_library])
    profile = recording.profile
    names = [scope.name for scope in profile.scopes]
    assert names == [f"dlopen liborigin_{which}.so" for which in ("outer", "inner", "inner", "outer")]
    # The dlopen that found nothing was left by a jump: nothing is inside it, and it is no failed call.
    assert [scope.parent for scope in profile.scopes] == [0, 0, 0, 0]
    assert not profile.failures
    assert "stack-completed-from-api-call" not in profile.counters


# Until glibc 2.27 the loader looks who calls the function behind dlopen, and refuses all but its own libraries.
CHECKING_LOADER = r"""
struct work { const char *file; long caller; };
static long begin, end;
void loader_trusts(long from, long to) { begin = from, end = to; }
__attribute__((noinline)) void dl_open_worker(void *work) { ((struct work *)work)->caller = 0; }
static void (*volatile worker)(void *) = dl_open_worker;
__attribute__((noinline)) int _dl_open(const char *file)
{
    long caller = (long)__builtin_return_address(0);
    struct work work = {file, caller};
    if (caller < begin || caller >= end)
        return 0;
    worker(&work);
    return 1;
}
"""
CALLS_LOADER = r"""
#include <stdio.h>
extern char __executable_start, etext;
void loader_trusts(long, long);
int _dl_open(const char *);
int main(void)
{
    loader_trusts((long)&__executable_start, (long)&etext);
    puts(_dl_open("/somewhere/libtrusted.so") ? "trusted" : "invalid caller");
    return 0;
}
"""


def test_a_loader_that_looks_who_calls_it_is_not_called_by_a_wrapper() -> None:
    flags = ("-shared", "-fpic", "-Wl,-soname,ld-linux-of-tests.so.2")
    library = harness.compile_c(CHECKING_LOADER, *flags)
    program = harness.compile_c(CALLS_LOADER, str(library), f"-L{library.parent}")
    (library.parent / "ld-linux-of-tests.so.2").write_bytes(library.read_bytes())
    search = {"LD_LIBRARY_PATH": str(library.parent)}
    assert harness.run([program], env=search).stdout == "trusted\n"
    recording = harness.record([program], env=search)
    assert recording.stdout == "trusted\n", recording.stderr
    assert [scope.name for scope in recording.profile.scopes] == ["dlopen libtrusted.so"]
