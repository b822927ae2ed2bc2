# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorder's own unwinder: frame by frame what the core's finds, which DHAT shows, and what the source says.

On this machine, and on an emulated arm64 one.
"""

import functools
import json
import re
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Tuple

import pytest

from jmassif.model.run import Profile
from tests.harness import (
    ARCH,
    VALGRIND,
    Recording,
    compile_arm64,
    compile_c,
    recorded,
    recorded_arm64,
    run,
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


def stacks_of_dhat(program: Path, out_file: Path) -> Dict[Tuple[str, ...], int]:
    """By stack (function names, innermost first): the bytes it allocated in all, with the core's unwinder."""
    command = [VALGRIND, "--tool=dhat", "--num-callers=500", "--read-inline-info=no", f"--dhat-out-file={out_file}"]
    assert run([*command, program]).returncode == 0
    profile = json.loads(out_file.read_text())
    names = [re.sub(r"^0x\w+: (.*) \(\S+( \S+)?\)$", r"\1", frame).replace("???", "") for frame in profile["ftbl"]]
    sums: Dict[Tuple[str, ...], int] = {}
    for place in profile["pps"]:
        stack = tuple(names[frame] for frame in place["fs"][1:])  # without malloc or operator new
        sums[stack] = sums.get(stack, 0) + place["tb"]
    return sums


@pytest.mark.parametrize(
    "source, suffix, flags",
    [
        *((SHAPES, ".c", flags) for flags in FLAGS),
        (CALLS_BACK, ".c", "-O1"),
        (CALLS_BACK, ".c", "-O1 -fomit-frame-pointer"),
        (THROWS, ".cc", "-O0"),
    ],
    ids=[*(f"shapes {flags}" for flags in FLAGS), "callbacks", "callbacks -fomit-frame-pointer", "C++"],
)
def test_stacks_are_those_that_the_core_finds(tmp_path: Path, source: str, suffix: str, flags: str) -> None:
    program = compile_c(source, "-fno-builtin", *flags.split(), suffix=suffix)
    recording = HERE.record([program], ["--read-inline-info=no"])
    assert recording.returncode == 0, recording.stderr
    assert heap_stacks(recording.profile) == stacks_of_dhat(program, tmp_path / "dhat")


def own_stacks(profile: Profile, *functions: str) -> Dict[Tuple[str, ...], int]:
    """heap_stacks() with these functions alone."""
    sums: Dict[Tuple[str, ...], int] = {}
    for stack, count in heap_stacks(profile).items():
        own = tuple(function for function in stack if function in functions)
        sums[own] = sums.get(own, 0) + count
    return sums


@pytest.mark.parametrize(
    "machine, flags",
    [(HERE if ARCH == "arm64" else ARM64, flags) for flags in (*FLAGS, SIGNED)],
)
def test_frames_of_all_shapes_are_found_on_the_other_machine_too(machine: Machine, flags: str) -> None:
    shapes = ("deep", "plain", "sized", "main")
    # A jump in place of a last call leaves no frame.
    whole = ("-fno-builtin", "-fno-optimize-sibling-calls")
    found = machine.record([machine.compile(SHAPES, *whole, *flags.split())]).profile
    here = HERE.record([HERE.compile(SHAPES, "-fno-builtin", "-O0")]).profile
    assert own_stacks(found, *shapes) == own_stacks(here, *shapes)


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


@pytest.mark.parametrize("flags", ["-O0", "-O1 -fno-omit-frame-pointer"])
@EACH_MACHINE
def test_frames_without_a_table_are_left_by_their_frame_pointers(machine: Machine, flags: str) -> None:
    with_tables = machine.compile(SHAPES, "-fno-builtin", *flags.split())
    without = machine.compile(SHAPES, "-fno-builtin", *flags.split(), *WITHOUT_TABLES.split(), "-g0")
    assert heap_stacks(machine.record([without]).profile) == heap_stacks(machine.record([with_tables]).profile)


@EACH_MACHINE
def test_without_tables_and_frame_pointers_at_least_the_innermost_frame_is_known(machine: Machine) -> None:
    program = machine.compile(SHAPES, "-fno-builtin", "-O1", "-fomit-frame-pointer", *WITHOUT_TABLES.split(), "-g0")
    assert {stack[0] for stack in heap_stacks(machine.record([program]).profile)} == {"deep"}


@EACH_MACHINE
def test_threads_handlers_and_coroutines_have_their_own_stacks(machine: Machine) -> None:
    profile = machine.record([machine.compile(WAYS, "-fno-builtin", "-pthread")]).profile
    found = own_stacks(profile, "allocate", "handler", "thread", "coroutine", "main")

    def ways(*outer: str) -> List[int]:
        """The bytes below these functions, by the number of calls of allocate."""
        return [found.get((*("allocate",) * n, *outer), 0) for n in range(8)]

    assert ways("coroutine") == [0, *(64 * 5,) * 4, 0, 0, 0]
    assert sum(ways("handler", "main")) == 64 * 40
    assert sum(ways("thread")) == 64 * 60 * 50 and 0 not in ways("thread")[1:]


@EACH_MACHINE
def test_a_function_that_calls_none_is_found(machine: Machine) -> None:
    profile = machine.record([machine.compile(LEAF, "-O2", "-idirafter", "/usr/include")]).profile
    times = [112, *(111,) * 8]
    assert own_stacks(profile, "leaf", "deep", "main") == {
        ("leaf", *("deep",) * (n + 1), "main"): 64 * times[n] for n in range(9)
    }
