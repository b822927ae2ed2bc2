# SPDX-License-Identifier: GPL-2.0-or-later
"""One ledger, two hosts: under Valgrind and preloaded, the recorder writes the same of a program that does the same.

Compared to the byte: bytes and blocks by kind, owner and stack, native functions and Python's lines, at each peak and over
the whole run. What must differ is named in DIFFERENCES, and nothing else is forgiven. massif is a third opinion of the heap.
"""

import os
import re
import signal
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple, Union

import pytest

from jmassif.model.run import Profile
from jmassif.model.run_info import ending_of
from tests.harness import ARCH, HOST, PYTHON, Argument, Recording, compile_c, massif, recorded
from tests.python.noted import SCRIPTS, native_library
from tests.tool.programs import at_peak, functions, program

if HOST != "valgrind":
    pytest.skip("records with both hosts in any case", allow_module_level=True)

# A row of the ledger: kind, owner, and the stack's frames, innermost first.
Row = Tuple[str, str, Tuple[str, ...]]
Held = Dict[Row, Tuple[int, int]]  # bytes and blocks

# Function, and what is different of the rows whose stacks have it.
DIFFERENCES = {
    "allocate_dtv": "each thread's vector of thread-local storage has 16 bytes for the preloaded library's own",
    "__cxa_allocate_exception": "an operator new that fails throws and catches; Valgrind's gives nothing without",
}
SAME_FUNCTION = {"clone3": "clone", "clone": "clone"}  # Valgrind has no clone3: the C library then uses the older call

# Not of the ledger of useful bytes: what allocators add.
OVERHEAD = "heap-overhead"


def frame_name(profile: Profile, frame_id: int) -> str:
    frame = profile.frame(frame_id)
    if frame.type == "p":
        file = re.sub(r"^tmp\w{8}\.", "tmp.", os.path.basename(frame.file))
        return f"{frame.function} {file}:{frame.line}"
    if frame.function in SAME_FUNCTION:
        return f"{SAME_FUNCTION[frame.function]} in {os.path.basename(frame.object)}"
    line = f":{frame.line}" if frame.line else ""
    return f"{frame.function} in {os.path.basename(frame.object)}{line}"


def is_left_out(profile: Profile, frame_id: int) -> bool:
    """Inlined calls, with template arguments that each spells in its way; hooks of CUDA's functions, which natively bear their names."""
    frame = profile.frame(frame_id)
    return frame.type == "i" or os.path.basename(frame.object) == "libjmassif-native.so"


def rows(profile: Profile, live: Mapping[int, Tuple[int, int]]) -> Held:
    found: Held = {}
    for account_id, (n_bytes, n_blocks) in live.items():
        account = profile.accounts[account_id]
        if account.kind == OVERHEAD:
            continue
        frames = [frame for frame in profile.stack(account.node) if not is_left_out(profile, frame)]
        stack = tuple(frame_name(profile, frame) for frame in frames)
        key = (account.kind, account.owner, stack)
        before = found.get(key, (0, 0))
        found[key] = (before[0] + n_bytes, before[1] + n_blocks)
    return {row: held for row, held in found.items() if held != (0, 0)}


def ever_allocated(profile: Profile) -> Held:
    return rows(profile, {account: (counts.bytes, counts.blocks) for account, counts in profile.counts().items()})


def differs_by_nature(row: Row) -> bool:
    return any(frame.split(" in ")[0] in DIFFERENCES for frame in row[2])


def without_differences(held: Held) -> Held:
    return {row: sums for row, sums in held.items() if not differs_by_nature(row)}


def is_librarys(row: Row) -> bool:
    """Kept by the C library until the end: Valgrind makes it free that, natively it is held."""
    return bool(row[2]) and re.search(r" in (libc\.so|ld-linux)", row[2][0]) is not None


class Both(NamedTuple):
    valgrind: Recording
    native: Recording


def record_both(command: Sequence[Argument], options: Sequence[str] = (), env: Mapping[str, str] = {}) -> Both:
    runs = [recorded(command, options, env=env, host=host, status=None) for host in ("valgrind", "native")]
    both = Both(*runs)
    assert both.native.stdout == both.valgrind.stdout
    assert both.native.returncode == both.valgrind.returncode, both.native.stderr
    return both


def assert_same_ledger(both: Both) -> None:
    valgrind, native = both.valgrind.profile, both.native.profile
    assert set(native.peaks) == set(valgrind.peaks)
    for which in valgrind.peaks:
        expected = rows(valgrind, valgrind.peak_composition(which))
        assert without_differences(rows(native, native.peak_composition(which))) == without_differences(expected), which
    assert without_differences(ever_allocated(native)) == without_differences(ever_allocated(valgrind))
    at_end = [rows(profile, profile.composition(len(profile.snapshots) - 1)) for profile in (valgrind, native)]
    expected, found = map(without_differences, at_end)
    more = {row: sums for row, sums in found.items() if row not in expected}
    assert {row: sums for row, sums in found.items() if row in expected} == expected
    assert [row for row in more if not is_librarys(row)] == []


class Case(NamedTuple):
    source: str
    flags: List[str] = []
    arguments: List[str] = []


NO_BUILTIN = ["-fno-builtin"]
CASES = [
    Case("absurd_sizes.c", NO_BUILTIN),
    Case("aligned.c", NO_BUILTIN),
    Case("calloc_zeroes.c", NO_BUILTIN),
    Case("containers.cc", ["-std=c++17"]),
    Case("indirect.c"),
    Case("libc_allocates.c"),
    Case("malloc_sizes.c", NO_BUILTIN),
    Case("never_frees.c", NO_BUILTIN),
    Case("new_delete.cc", ["-std=c++17", "-fsized-deallocation"]),
    Case("passes.c"),
    Case("random_walk.c"),
    Case("random_walk.c", ["-DNEVER_SHRINKS"]),
    Case("realloc_all_ways.c", ["-fno-builtin", "-Wno-use-after-free"]),
    Case("slabs.c", ["-fno-builtin", "-DN=25000"]),
    Case("threads.c", ["-pthread"]),
    Case("tree.c"),
    Case("unwind_signals.c"),
]


@pytest.mark.parametrize("case", CASES, ids=[case.source for case in CASES])
def test_c_programs(case: Case) -> None:
    both = record_both([program(case.source, *case.flags), *case.arguments])
    assert ever_allocated(both.valgrind.profile)
    assert_same_ledger(both)
    assert both.native.profile.counters == both.valgrind.profile.counters


@pytest.mark.parametrize("name", ["cuda_driver"])
def test_cuda_programs(sim: Path, name: str) -> None:
    both = record_both([sim / "programs" / name])
    assert "device" in both.valgrind.profile.peaks
    assert_same_ledger(both)


# Where massif counts what we do: not what a realloc that shrinks a block gives back.
LIKE_MASSIF = [
    case
    for case in CASES
    if case.source not in ("realloc_all_ways.c", "slabs.c", "threads.c") and case != Case("random_walk.c")
]


@pytest.mark.parametrize("case", LIKE_MASSIF, ids=[case.source for case in LIKE_MASSIF])
def test_the_native_peak_is_massifs(case: Case) -> None:
    command: List[Union[str, Path]] = [program(case.source, *case.flags), *case.arguments]
    expected = massif(command, ["--peak-inaccuracy=0.0", "--depth=1"])
    assert at_peak(recorded(command, host="native", status=None).profile, "heap") == expected.heap


PYTHON_SCRIPTS = ["calls", "classes", "comprehensions", "executed", "generators", "lines", "modules", "recursion"]


@pytest.mark.parametrize("name", PYTHON_SCRIPTS)
def test_python_programs(name: str, tmp_path: Path) -> None:
    script = SCRIPTS / f"{name}.py"
    env = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "WITNESS": str(tmp_path)}
    env["WITNESS_LIBRARY"] = str(native_library())
    both = record_both([PYTHON, "-S", script], env=env)
    assert both.native.returncode == 0, both.native.stderr
    assert any(f" {name}.py:" in frame for row in ever_allocated(both.native.profile) for frame in row[2])
    assert_same_ledger(both)


# ---- what differs (docs/guide.md, "Two recorders") ----------------------------------------------


IN_C = """
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <valgrind.h>
void *volatile kept;
static char own[1000];
__attribute__((noinline)) void by_raw_call(void)
{
    void *p;
    register long flags __asm__("r10") = 0x22, fd __asm__("r8") = -1, offset __asm__("r9") = 0;
    __asm__ volatile("syscall" : "=a"(p) : "0"(SYS_mmap), "D"(0), "S"(1 << 20), "d"(3), "r"(flags), "r"(fd), "r"(offset) : "rcx", "r11", "memory");
    memset(p, 1, 1 << 20);
    kept = malloc(1);
}
__attribute__((noinline)) void by_request(void) { VALGRIND_MALLOCLIKE_BLOCK(own, sizeof own, 0, 0); }
__attribute__((noinline)) void by_malloc(void) { kept = malloc(1); }
int main(void)
{
    by_malloc();
    fprintf(stderr, "%zu\\n", malloc_usable_size(kept) + sizeof(size_t) - 1);
    by_request();
    by_raw_call();
    return 0;
}
"""
OF_A_FAILED_NEW = """
#include <new>
int main() { return ::operator new(~0ul >> 2, std::nothrow) != nullptr; }
"""
ABORTS = "#include <stdlib.h>\nint main(void) { free(malloc(10)); abort(); }"
FREES_NO_BLOCK = "#include <stdlib.h>\nlong block[4]; int main(void) { free(malloc(1)); free(block + 2); return 0; }"


def both_of(text: str, *flags: str, options: Sequence[str] = (), suffix: str = ".c") -> List[Recording]:
    command = [compile_c(text, "-w", "-fno-builtin", "-O1", *flags, suffix=suffix)]
    return [recorded(command, options, host=host, status=None) for host in ("valgrind", "native")]


def sum_of(held: Held, function: str, *kinds: str) -> int:
    """Bytes of the rows in whose stacks a function is."""
    return sum(
        n_bytes
        for (kind, _, stack), (n_bytes, _) in held.items()
        if kind in kinds and any(frame.startswith(f"{function} in ") for frame in stack)
    )


@pytest.mark.skipif(ARCH != "amd64", reason="the raw system call is of amd64")
def test_what_only_valgrind_sees_and_the_overhead_of_a_block() -> None:
    runs = both_of(IN_C, "-isystem/usr/include/valgrind", options=["--pages=yes"])
    ever = [ever_allocated(each.profile) for each in runs]
    assert [sum_of(held, "by_request", "heap", "custom") for held in ever] == [1000, 0]
    at_end = [rows(each.profile, each.profile.composition(len(each.profile.snapshots) - 1)) for each in runs]
    assert [sum_of(held, "by_raw_call", "anon") for held in at_end] == [1 << 20, 0]
    profile = runs[1].profile
    live = profile.composition(len(profile.snapshots) - 1).items()
    overhead, heap = (
        [held for account, held in live if profile.accounts[account].kind == kind] for kind in (OVERHEAD, "heap")
    )
    n_blocks = sum(n for _, n in heap)
    assert n_blocks == 2  # of one byte each
    assert sum(n_bytes for n_bytes, _ in overhead) == n_blocks * int(runs[1].stderr.split()[0])


def test_a_new_that_fails_throws_and_a_threads_vector_is_larger_natively() -> None:
    thrown = [
        sum_of(ever_allocated(each.profile), "__cxa_allocate_exception", "heap")
        for each in both_of(OF_A_FAILED_NEW, suffix=".cc")
    ]
    assert thrown[0] == 0 < thrown[1]
    vectors = []
    for host in ("valgrind", "native"):
        profile = recorded([program("threads.c", "-pthread")], host=host, status=None).profile
        counts = profile.counts()
        of_vectors = [
            (held.bytes, held.blocks)
            for account, held in counts.items()
            if profile.accounts[account].kind == "heap"
            and "allocate_dtv" in functions(profile, profile.accounts[account].node)
        ]
        vectors.append(tuple(map(sum, zip(*of_vectors))))
    (valgrind_bytes, n), (native_bytes, n_natively) = vectors
    assert n == n_natively > 0 and native_bytes - valgrind_bytes == 16 * n


def test_a_wild_free_and_death_by_a_signal() -> None:
    valgrind, native = both_of(FREES_NO_BLOCK)
    assert valgrind.returncode == 0 and sum(valgrind.profile.counters.values()) == 1
    end = native.profile.end
    assert native.returncode == -signal.SIGABRT and end is not None and (end.reason, end.code) == ("signal", 6)
    valgrind, native = both_of(ABORTS)
    assert valgrind.returncode == native.returncode == -signal.SIGABRT
    assert all("SIGABRT" in ending_of(each.profile) for each in (valgrind, native))
