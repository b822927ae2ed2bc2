# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorder's own unwinder: frame by frame what the core's finds.

On this machine, and on an emulated arm64 one.
"""

import functools
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Tuple

import pytest

from tests.harness import (
    ARCH,
    PYTHON,
    Recording,
    compile_arm64,
    compile_c,
    recorded,
    recorded_arm64,
    written,
)
from tests.tool.programs import heap_stacks


class Machine(NamedTuple):
    compile: Callable[..., Path]
    record: Callable[..., Recording]


HERE = Machine(compile_c, functools.partial(recorded, status=None))
ARM64 = Machine(compile_arm64, functools.partial(recorded_arm64, status=None))
EACH_MACHINE = pytest.mark.parametrize("machine", [HERE, ARM64], ids=["here", "arm64"])

FLAGS = ["-O0", "-O2", "-fomit-frame-pointer -O1", "-fno-omit-frame-pointer -O1"]
WITHOUT_TABLES = "-fno-asynchronous-unwind-tables -fno-unwind-tables"
# As distributions compile that sign return addresses.
SIGNED = "-mbranch-protection=standard -O2"

# Frames that come and go in the middle of a stack, of sizes that only the frame pointer knows, at the same places.
SHAPES = """
#include <alloca.h>
#include <stdlib.h>
#include <string.h>
static __attribute__((noinline)) void deep(int n, unsigned shape);
static __attribute__((noinline)) void plain(int n, unsigned shape)
{
    volatile char room[48];
    room[0] = n;
    deep(n - 1, shape / 3);
    __asm__ volatile("");
}
static __attribute__((noinline)) void sized(int n, unsigned shape)
{
    volatile char *room = alloca(16 + shape % 200);
    room[0] = n;
    deep(n - 1, shape / 3);
    __asm__ volatile("");
}
static __attribute__((noinline)) void deep(int n, unsigned shape)
{
    if (n == 0)
        free(malloc(100));
    else if (shape % 3 == 0)
        plain(n, shape);
    else if (shape % 3 == 1)
        sized(n, shape);
    else {
        volatile char room[400];
        memset((char *)room, 0x11, sizeof room);
        deep(n - 1, shape / 3);
        __asm__ volatile("");
    }
}
int main(void)
{
    unsigned state = 1;
    for (int i = 0; i < 20000; i++) {
        state = state * 1103515245 + 12345;
        deep(1 + i % 12, state >> 8);
    }
    return 0;
}
"""

# Threads whose stacks end and begin anew, handlers on stacks of their own, and a library that goes and comes back.
WAYS = """
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>
static void allocate(int n) { if (n > 0) allocate(n - 1); else free(malloc(64)); __asm__ volatile(""); }
static void handler(int number) { allocate(number % 5); }
static void *thread(void *n) { for (int i = 0; i < 50; i++) allocate((long)n % 7); return n; }
static ucontext_t here, there;
static void coroutine(void) { for (int i = 0; i < 20; i++) { allocate(i % 4); swapcontext(&there, &here); } }
int main(void)
{
    static char stack[65536], other[65536];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_ONSTACK}, NULL);
    sigaction(SIGUSR2, &(struct sigaction){.sa_handler = handler}, NULL);
    getcontext(&there);
    there.uc_stack.ss_sp = other;
    there.uc_stack.ss_size = sizeof other;
    there.uc_link = &here;
    makecontext(&there, coroutine, 0);
    for (int i = 0; i < 20; i++) {
        pthread_t threads[3];
        for (long t = 0; t < 3; t++)
            pthread_create(&threads[t], NULL, thread, (void *)(t + i));
        raise(SIGUSR1);
        raise(SIGUSR2);
        swapcontext(&here, &there);
        for (int t = 0; t < 3; t++)
            pthread_join(threads[t], NULL);
    }
    return 0;
}
"""

# Frames of the C library between the program's own, and a function that returns to another place than it was called from.
CALLS_BACK = """
#include <search.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
static void allocate(int n) { if (n > 0) allocate(n - 1); else free(malloc(64)); __asm__ volatile(""); }
static int compare(const void *a, const void *b)
{
    int room[1 + (*(const int *)a & 31)];
    memset(room, 0, sizeof room);
    allocate(*(const int *)a % 5);
    return *(const int *)a - *(const int *)b + room[0];
}
static void visit(const void *node, VISIT order, int depth) { if (order == leaf) allocate(depth % 4); }
static jmp_buf back;
static void leave(int n) { allocate(n); if (n == 0) longjmp(back, 1); leave(n - 1); __asm__ volatile(""); }
int main(void)
{
    static int numbers[300];
    void *root = NULL;
    unsigned state = 1;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 300; i++)
            numbers[i] = (state = state * 1103515245 + 12345) >> 20;
        qsort(numbers, 300, sizeof *numbers, compare);
        for (int i = 0; i < 20; i++)
            tsearch(&numbers[i], &root, compare);
        twalk(root, visit);
        if (!setjmp(back))
            leave(round + 5);
    }
    return 0;
}
"""

# A function that calls none and keeps nothing, whose caller's address is in a register where there is one for it.
LEAF = """
#include <valgrind/valgrind.h>
static char room[64];
static __attribute__((noinline)) int leaf(void)
{
    VALGRIND_MALLOCLIKE_BLOCK(room, sizeof room, 0, 0);
    VALGRIND_FREELIKE_BLOCK(room, 0);
    return room[0];
}
static __attribute__((noinline)) int deep(int n)
{
    int result = n ? deep(n - 1) : leaf();
    __asm__ volatile("");
    return result;
}
int main(void)
{
    int result = 0;
    for (int i = 0; i < 1000; i++)
        result += deep(i % 9);
    return result;
}
"""

THROWS = """
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
struct Level {
    virtual ~Level() = default;
    virtual int go(int n) { std::vector<int> kept(n + 1); return n ? go(n - 1) + kept[n] : throw std::runtime_error("x"); }
};
int main()
{
    Level level;
    std::map<std::string, std::vector<int>> all;
    std::function<void(int)> fill = [&](int n) { if (n) fill(n - 1); else all[std::to_string(all.size())].resize(10); };
    for (int i = 0; i < 500; i++) {
        fill(i % 30);
        try { level.go(i % 20); } catch (const std::exception &) {}
    }
    return all.size() != 500;
}
"""

SCRIPT = """
import re, sys, threading
def make(n):
    return make(n - 1) if n else bytearray(2000)
class Node:
    def __init__(self, n):
        self.kept = make(n % 9)
    def __lt__(self, other):
        return bool(bytearray(700)) and id(self) < id(other)
kept = []
for i in range(int(sys.argv[1])):
    kept = sorted(kept[-10:] + [Node(i)])
    re.sub("a+", lambda m: "b" * 600, "caaat" * 30)
threads = [threading.Thread(target=lambda: [make(i % 5) for i in range(300)]) for _ in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
"""

# Valgrind does not run in the emulator what makes a closure of libffi.
SCRIPT_OF_CLOSURES = """
import ctypes
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda a, b: len(make(2)) and 0)
ctypes.CDLL(None).qsort((ctypes.c_int * 50)(), 50, 4, compare)
"""


class Counts(NamedTuple):
    all: int
    by_core: int
    differing: int


def unwound(machine: Machine, command: List[object], **kwargs: Dict[str, str]) -> Counts:
    recording = machine.record(command, ["--check-unwinding=yes"], **kwargs)
    assert recording.returncode == 0, recording.stderr
    counters = dict(recording.profile.counters)
    return Counts(counters["unwound"], counters["unwound-by-core"], counters["unwound-differently"])


ON_EACH = [(machine, flags) for machine in (HERE, ARM64) for flags in FLAGS]


@pytest.mark.parametrize(
    "machine, flags",
    [*ON_EACH, (HERE if ARCH == "arm64" else ARM64, SIGNED)],
    ids=lambda value: value if isinstance(value, str) else "here" if value is HERE else "arm64",
)
def test_frames_of_all_shapes_are_those_that_the_core_finds(machine: Machine, flags: str) -> None:
    found = unwound(machine, [machine.compile(SHAPES, "-fno-builtin", *flags.split())])
    assert found.all >= 20000 and found.differing == 0
    assert found.by_core < 100


Place = Tuple[str, int]  # a function, and the line of it that called


def stacks_of_shapes(depth: int) -> Dict[Tuple[Place, ...], int]:
    """What SHAPES allocates by stack, innermost first, from what its source says. At most `depth` frames."""
    lines = SHAPES.split("\n")
    to_deep = [i + 1 for i, line in enumerate(lines) if "    deep(" in line]  # in plain, sized, deep and main
    plain, sized = (i + 1 for i, line in enumerate(lines) if line.strip() in ("plain(n, shape);", "sized(n, shape);"))
    chosen: List[List[Place]] = [
        [("deep", plain), ("plain", to_deep[0])],
        [("deep", sized), ("sized", to_deep[1])],
        [("deep", to_deep[2])],
    ]
    innermost: Place = ("deep", next(i + 1 for i, line in enumerate(lines) if "malloc(100)" in line))
    sums: Dict[Tuple[Place, ...], int] = {}
    state = 1
    for i in range(20000):
        state = (state * 1103515245 + 12345) & 0xFFFFFFFF
        shape = state >> 8
        stack: List[Place] = [("main", to_deep[3])]
        for _ in range(1 + i % 12):
            stack += chosen[shape % 3]
            shape //= 3
        shown = (innermost, *reversed(stack))[:depth]
        sums[shown] = sums.get(shown, 0) + 100
    return sums


@pytest.mark.parametrize("flags, depth", [("-O0", 100), ("-O0", 7), ("-O1", 100)])
@EACH_MACHINE
def test_stacks_are_those_that_the_source_says(machine: Machine, flags: str, depth: int) -> None:
    program = machine.compile(SHAPES, "-fno-builtin", flags)
    profile = machine.record([program], [f"--depth={depth}"]).profile
    found: Dict[Tuple[Place, ...], int] = {}
    for account_id, counts in profile.counts().items():
        frames = [profile.frame(frame) for frame in profile.stack(profile.accounts[account_id].node)]
        stack = [(frame.function, frame.line) for frame in frames]
        functions = [function for function, _ in stack]
        if profile.accounts[account_id].kind == "heap":
            down_to_main = tuple(stack[: functions.index("main") + 1] if "main" in functions else stack)
            found[down_to_main] = found.get(down_to_main, 0) + counts.bytes
    assert found == stacks_of_shapes(depth)


@EACH_MACHINE
def test_frames_whose_table_is_not_mapped_are_left_to_the_core(machine: Machine) -> None:
    program = machine.compile(SHAPES, "-fno-builtin", "-O1", *WITHOUT_TABLES.split(), "-g")
    found = unwound(machine, [program])
    assert found.all == found.by_core >= 20000 and found.differing == 0


@pytest.mark.parametrize("flags", ["-O0", "-O1 -fno-omit-frame-pointer"])
@EACH_MACHINE
def test_frames_without_a_table_are_left_by_their_frame_pointers(machine: Machine, flags: str) -> None:
    with_tables = machine.compile(SHAPES, "-fno-builtin", *flags.split())
    without = machine.compile(SHAPES, "-fno-builtin", *flags.split(), *WITHOUT_TABLES.split(), "-g0")
    recording = machine.record([without], ["--check-unwinding=yes"])
    assert heap_stacks(recording.profile) == heap_stacks(machine.record([with_tables]).profile)
    assert dict(recording.profile.counters)["unwound-differently"] == 0


@EACH_MACHINE
def test_without_tables_and_frame_pointers_at_least_the_innermost_frame_is_known(machine: Machine) -> None:
    program = machine.compile(SHAPES, "-fno-builtin", "-O1", "-fomit-frame-pointer", *WITHOUT_TABLES.split(), "-g0")
    recording = machine.record([program], ["--check-unwinding=yes"])
    assert {stack[0] for stack in heap_stacks(recording.profile)} == {"deep"}
    assert dict(recording.profile.counters)["unwound-differently"] == 0


@EACH_MACHINE
def test_threads_handlers_and_coroutines_are_unwound_as_by_the_core(machine: Machine) -> None:
    found = unwound(machine, [machine.compile(WAYS, "-fno-builtin", "-pthread")])
    assert found.all > 3000 and found.differing == 0
    assert found.by_core < 0.05 * found.all


@pytest.mark.parametrize("flags", ["-O1", "-O1 -fomit-frame-pointer"])
@EACH_MACHINE
def test_functions_that_the_c_library_calls_are_unwound_as_by_the_core(machine: Machine, flags: str) -> None:
    found = unwound(machine, [machine.compile(CALLS_BACK, "-fno-builtin", *flags.split())])
    assert found.all > 6000 and found.differing == 0
    assert found.by_core < 0.05 * found.all


@EACH_MACHINE
def test_a_function_that_calls_none_is_unwound_as_by_the_core(machine: Machine) -> None:
    found = unwound(machine, [machine.compile(LEAF, "-O2", "-idirafter", "/usr/include")])
    assert found.all == 1000 and found.differing == 0
    assert found.by_core < 100


@EACH_MACHINE
def test_cpp_is_unwound_as_by_the_core(machine: Machine) -> None:
    found = unwound(machine, [machine.compile(THROWS, suffix=".cc")])
    assert found.all > 3000 and found.differing == 0
    assert found.by_core < 0.05 * found.all


def test_python_is_unwound_as_by_the_core() -> None:
    script = written(SCRIPT + SCRIPT_OF_CLOSURES, "script.py")
    found = unwound(HERE, [PYTHON, script, "3000"])
    assert found.all > 10000 and found.differing == 0
    assert found.by_core < 0.05 * found.all
