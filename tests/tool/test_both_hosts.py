# SPDX-License-Identifier: GPL-2.0-or-later
"""One ledger, two hosts: under Valgrind and preloaded, the recorder writes the same of a program that does the same.

Compared to the byte: bytes and blocks by kind, owner and stack, native functions and Python's lines, at each peak and over
the whole run. What must differ is named in DIFFERENCES, and nothing else is forgiven. massif is a third opinion of the heap.
"""

import os
import re
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple, Union

import pytest

from jmassif.model.run import Profile
from tests.harness import HOST, PYTHON, Argument, Recording, massif, recorded
from tests.python.noted import SCRIPTS, native_library
from tests.tool.programs import at_peak, program

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
    Case("slabs.c", NO_BUILTIN),
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
