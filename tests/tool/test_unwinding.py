# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorder's own unwinder: frame by frame what the core's finds, and the core's for what it leaves to it."""

import platform
from pathlib import Path
from typing import Dict

import pytest

from tests.harness import PYTHON, Recording, compile_c, record

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="elsewhere the core unwinds")

OPTIONS = ["--check-unwinding=yes"]

WITHOUT_TABLES = "-fno-asynchronous-unwind-tables -fno-unwind-tables"

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
import re, sys, threading, ctypes
def make(n):
    return make(n - 1) if n else bytearray(2000)
class Node:
    def __init__(self, n):
        self.kept = make(n % 9)
    def __lt__(self, other):
        return bool(bytearray(700)) and id(self) < id(other)
kept = []
for i in range(3000):
    kept = sorted(kept[-10:] + [Node(i)])
    re.sub("a+", lambda m: "b" * 600, "caaat" * 30)
threads = [threading.Thread(target=lambda: [make(i % 5) for i in range(300)]) for _ in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda a, b: len(make(2)) and 0)
ctypes.CDLL(None).qsort((ctypes.c_int * 50)(), 50, 4, compare)
"""


def counters(recording: Recording) -> Dict[str, int]:
    assert recording.returncode == 0, recording.stderr
    return dict(recording.profile.counters)


@pytest.mark.parametrize("flags", ["-O0", "-O2", "-fomit-frame-pointer -O1", "-fno-omit-frame-pointer -O1"])
def test_frames_of_all_shapes_are_those_that_the_core_finds(flags: str) -> None:
    found = counters(record([compile_c(SHAPES, "-fno-builtin", *flags.split())], OPTIONS))
    assert found["unwound"] >= 20000 and found["unwound-differently"] == 0
    assert found["unwound-by-core"] < 100


@pytest.mark.parametrize("debug", ["-g0", "-g"])
def test_frames_without_an_unwind_table_are_left_to_the_core(debug: str) -> None:
    found = counters(record([compile_c(SHAPES, "-fno-builtin", "-O1", *WITHOUT_TABLES.split(), debug)], OPTIONS))
    assert found["unwound"] == found["unwound-by-core"] >= 20000


def test_threads_handlers_and_coroutines_are_unwound_as_by_the_core() -> None:
    found = counters(record([compile_c(WAYS, "-fno-builtin", "-pthread")], OPTIONS))
    assert found["unwound"] > 3000 and found["unwound-differently"] == 0


def test_cpp_is_unwound_as_by_the_core() -> None:
    found = counters(record([compile_c(THROWS, compiler="g++", suffix=".cc")], OPTIONS))
    assert found["unwound"] > 3000 and found["unwound-differently"] == 0
    assert found["unwound-by-core"] < 0.05 * found["unwound"]


def test_python_is_unwound_as_by_the_core(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    found = counters(record([PYTHON, script], OPTIONS))
    assert found["unwound"] > 10000 and found["unwound-differently"] == 0
    assert found["unwound-by-core"] < 0.05 * found["unwound"]
