# SPDX-License-Identifier: GPL-2.0-or-later
"""The preloaded recorder in programs that do what is rare: they print the same and end the same as without it."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

import pytest

from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from tests.harness import PYTHON, Argument, Run, compile_c, recorder, run, user_function, written

HEAD = """
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void *volatile sink;
"""


class Recorded:
    def __init__(self, done: Run, alone: Run, directory: "tempfile.TemporaryDirectory[str]") -> None:
        self.done, self.alone, self._directory = done, alone, directory
        self.directory = Path(directory.name)

    def traces(self) -> List[Path]:
        return sorted(self.directory.glob("trace.*"), key=lambda path: path.stat().st_mtime)

    def profile(self) -> Profile:
        (trace,) = self.traces()
        return load_file(str(trace))


def same(
    program: Sequence[Argument],
    *options: str,
    env: Optional[Mapping[str, str]] = None,
    launcher: Sequence[Argument] = (),
    timeout: float = 60,
) -> Recorded:
    """Runs a program without and with the recorder, and compares what it prints and how it ends."""
    directory: "tempfile.TemporaryDirectory[str]" = tempfile.TemporaryDirectory(prefix="jmassif-test-")
    place = Path(directory.name)
    alone = run([*launcher, "env", *(f"{k}={v}" for k, v in (env or {}).items()), *program], cwd=place, timeout=timeout)
    command, environment = recorder(
        place / "trace.%p", ["-q", "--pages=no", *options], env=env, host="native"
    )
    done = run([*launcher, *command, *program], env=environment, cwd=place, timeout=timeout)
    assert done == alone
    return Recorded(done, alone, directory)


def c(text: str, *flags: str, suffix: str = ".c") -> Path:
    return compile_c(HEAD + text, "-w", "-pthread", *flags, suffix=suffix)


def held(profile: Profile, program: Path) -> Dict[str, Tuple[int, int]]:
    """By function of the program: the bytes and blocks of the heap at the end."""
    sums: Dict[str, Tuple[int, int]] = {}
    for account_id, (n_bytes, n_blocks) in profile.composition(len(profile.snapshots) - 1).items():
        account = profile.accounts[account_id]
        function = user_function(profile, account.node, program)
        if account.kind == "heap" and function:
            before = sums.get(function, (0, 0))
            sums[function] = (before[0] + n_bytes, before[1] + n_blocks)
    return sums


# ---- signals ---------------------------------------------------------------------------------

TIMER = """
static void every(int microseconds) {
    struct itimerval t = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &t, 0);
}
static void *held_blocks[4000];
static volatile int n;
__attribute__((noinline)) static void *hold(int bytes) { return malloc(bytes); }
__attribute__((noinline)) static void *map(void) { return mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
"""


def test_a_signal_handler_may_allocate_while_an_event_is_recorded() -> None:
    program = c(
        TIMER
        + """
static void tick(int s) { int e = errno; if (n < 3000) { free(held_blocks[n / 2]); held_blocks[n / 2] = 0; held_blocks[n] = hold(n + 1); n++; } errno = e; }
int main(void) {
    struct sigaction a = {.sa_handler = tick}, was;
    sigaction(SIGALRM, &a, 0);
    sigaction(SIGALRM, 0, &was);
    long bytes = 0, blocks = 0;
    every(100);
    while (n < 3000) munmap(map(), 4096);
    every(0);
    for (int i = 0; i < 3000; i++) if (held_blocks[i]) bytes += i + 1, blocks++;
    printf("%ld %ld %d %x\\n", bytes, blocks, was.sa_handler == tick, was.sa_flags & SA_SIGINFO);
}
""",
        "-O1",
    )
    ran = same([program])
    n_bytes, n_blocks, *_ = map(int, ran.done.stdout.split())
    assert held(ran.profile(), program)["hold"] == (n_bytes, n_blocks)


@pytest.mark.parametrize("stack", ["", "-DOTHER_STACK"])
@pytest.mark.parametrize("way", ["", "-DBY_SIGNAL", "-DRAW"])
def test_a_signal_handler_may_jump_away_while_an_event_is_recorded(way: str, stack: str) -> None:
    program = c(
        TIMER
        + """
static sigjmp_buf back;
static void tick(int s) { if (++n % 2) siglongjmp(back, 1); }
#if defined(RAW) && defined(__x86_64__)
void restorer(void);
__asm__("restorer: mov $15, %eax\\nsyscall\\n");
struct { void *handler; unsigned long flags; void *restorer; unsigned long mask; } raw = {tick, 0x04000000, restorer};
#endif
static void *other(void *x) { for (int i = 0; i < 1000; i++) free(malloc(i)); return 0; }
int main(void) {
    int flags = 0;
    pthread_t t;
#ifdef OTHER_STACK
    stack_t s = {malloc(65536), 0, 65536};
    sigaltstack(&s, 0);
    flags = SA_ONSTACK;
#endif
#ifdef BY_SIGNAL
    signal(SIGALRM, tick);
#elif defined(RAW) && defined(__x86_64__)
    raw.flags |= flags;
    syscall(SYS_rt_sigaction, SIGALRM, &raw, 0, 8);
#else
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = tick, .sa_flags = flags}, 0);
#endif
    every(150);
    if (sigsetjmp(back, 1) == 0 || n < 2000) while (n < 2000) munmap(map(), 4096);
    every(0);
    pthread_create(&t, 0, other, 0);
    pthread_join(t, 0);
    for (int i = 0; i < 100; i++) held_blocks[i] = hold(100);
    puts("done");
    return 3;
}
""",
        "-O1",
        *filter(None, [way, stack]),
    )
    if way == "-DRAW":  # a handler that no hook sees: nothing hangs
        done = record_one([program])
        assert (done.returncode, done.stdout) == (3, "done\n")
        assert done.stderr in ("", LEFT)
        return
    ran = same([program])
    assert held(ran.profile(), program)["hold"] == (10000, 100)


LEFT = "jmassif: a thread has left the recorder by a jump or by its end: the recording ends here\n"


def record_one(program: Sequence[Argument], *options: str, timeout: float = 60) -> Run:
    with tempfile.TemporaryDirectory(prefix="jmassif-test-") as directory:
        command, environment = recorder(f"{directory}/trace.%p", ["-q", *options], host="native")
        return run([*command, *program], env=environment, cwd=Path(directory), timeout=timeout)
