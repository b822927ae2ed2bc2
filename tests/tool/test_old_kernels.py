# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that lack system calls, as JetPack 4's 4.9 does, and containers that refuse them: what is recorded is the same."""

import errno
import platform
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from jmassif.analysis.system import machine
from tests.harness import HOST, PYTHON, Argument, Recording, allocated_by_function, compile_c, record, run
from tests.tool import board
from tests.tool.programs import held_below, program

# The first that 4.9 does not have: on x86-64 after pkey_free, elsewhere likewise (asm-generic/unistd.h).
AFTER_4_9 = {"x86_64": 332, "aarch64": 291}.get(platform.machine(), 0)

# By name, what programs, their C library, Python or the recorder ask newer kernels for: the numbers of x86-64, and from 424 on of all.
NEWER = {"statx": 332 if AFTER_4_9 == 332 else 291, "rseq": 334 if AFTER_4_9 == 332 else 293}
NEWER.update(
    {"pidfd_open": 434, "clone3": 435, "close_range": 436, "openat2": 437, "pidfd_getfd": 438, "faccessat2": 439}
)

USES = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept[4];
static void in_main(void) { kept[0] = malloc(1000000); }
static void in_thread(void) { kept[1] = memset(malloc(70000), 1, 70000); }
static void in_child(void) { kept[2] = malloc(300); }
static void *thread(void *unused) { in_thread(); return unused; }
int main(int argc, char **argv)
{
    struct stat st;
    pthread_t other;
    in_main();
    errno = 0;
    if (syscall(atoi(argv[1]), -1, "", 0, 0, 0) != -1 || stat(argv[0], &st) != 0)
        return 1;
    printf("%d\n", errno);
    fflush(stdout);
    if (pthread_create(&other, NULL, thread, NULL) != 0 || pthread_join(other, NULL) != 0)
        return 2;
    if (fork() == 0) {
        in_child();
        _exit(0);
    }
    wait(NULL);
    return 0;
}
"""


def on_a_kernel_without(calls: List[str], error: int = errno.ENOSYS) -> List[Argument]:
    if not AFTER_4_9:
        pytest.skip(f"the numbers of system calls of {platform.machine()} are not known here")
    launcher: List[Argument] = [program("old_kernel.c"), str(error), *calls, "--"]
    done = run([*launcher, "true"])
    if done.returncode == 77:
        pytest.skip(f"this kernel does not filter system calls: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return launcher


def assert_all_is_told(recording: Recording, uses: Path) -> None:
    parent, child = (allocated_by_function(recording.load(trace), uses) for trace in recording.traces)
    assert (parent["in_main"], parent["in_thread"]) == ((1000000, 1), (70000, 1))
    assert child["in_child"] == (300, 1) and "in_child" not in parent
    assert all(recording.load(trace).is_complete for trace in recording.traces)


# Valgrind takes an EPERM of statx for the program's, and does not start it.
@pytest.mark.parametrize(
    "name, error",
    [
        (name, error)
        for name in sorted(NEWER)
        for error in (errno.ENOSYS, errno.EPERM)
        if (name, error) != ("statx", errno.EPERM)
    ],
)
def test_a_newer_call_that_is_refused_is_not_missed(name: str, error: int) -> None:
    uses = compile_c(USES, "-O0", "-pthread", "-fno-builtin", "-w")
    launcher = on_a_kernel_without([str(NEWER[name])], error)
    if name != "clone3":  # whose refusal by a container ends threads, without a recorder too
        assert run([*launcher, uses, str(NEWER[name])]).stdout == f"{error}\n"
    recording = record([uses, str(NEWER[name])], ["--pages=yes"], launcher=launcher, status=0)
    assert_all_is_told(recording, uses)


def test_a_kernel_of_jetpack_4_has_all_that_is_asked_of_it(tmp_path: Path) -> None:
    uses = compile_c(USES, "-O0", "-pthread", "-fno-builtin", "-w")
    launcher = on_a_kernel_without([f"{AFTER_4_9}-"])
    recording = record(
        [uses, str(NEWER["statx"])],
        ["--pages=yes", "--code-cache=yes"],
        launcher=launcher,
        env={"XDG_CACHE_HOME": str(tmp_path)},
    )
    assert recording.returncode == 0 and recording.stdout == f"{errno.ENOSYS}\n", recording.stderr
    assert_all_is_told(recording, uses)
    # Pages and the machine's memory are there as well, and Valgrind's cache of translations.
    profile = recording.profile
    assert any(profile.accounts[account].kind == "file" for account in profile.peak_composition("total"))
    assert any("available" in figure.label for figure in machine(profile, len(profile.snapshots) - 1))
    assert HOST == "native" or list((tmp_path / "jmassif").iterdir())


def test_a_script_on_it_has_its_lines() -> None:
    script = "def keeps():\n    return [bytearray(100000) for _ in range(30)]\nkept = keeps()\nprint(len(kept))"
    recording = record([PYTHON, "-c", script], launcher=on_a_kernel_without([f"{AFTER_4_9}-"]))
    assert (recording.returncode, recording.stdout) == (0, "30\n"), recording.stderr
    assert 3000000 <= held_below(recording.profile, "keeps") <= 3000000 + 30 * 100


def test_a_boards_memory_on_it_is_what_its_driver_has_committed(sim: Path) -> None:
    board.require_board(sim)
    launcher = [*board.launcher(sim, "r32"), *on_a_kernel_without([f"{AFTER_4_9}-"])]
    recording = record([sim / "programs" / "cuda_driver"], launcher=launcher, status=0)
    usual = record([sim / "programs" / "cuda_driver"], launcher=board.launcher(sim, "r32"))
    here, there = (board.by_kind(p, p.peak_composition("device")) for p in (recording.profile, usual.profile))
    assert here == there
    assert here["driver"] > 0 and not board.odd(recording.trace)
