# SPDX-License-Identifier: GPL-2.0-or-later
"""System calls that a signal interrupts and the kernel then makes again (SA_RESTART): each counts once."""

from pathlib import Path

import pytest

from tests.tool import board, programs
from tests.harness import compile_c, record

STORM = """
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

/* linux/nvmap.h: NVMAP_IOC_CREATE, NVMAP_IOC_ALLOC, NVMAP_IOC_FREE */
struct create { uint32_t bytes, handle; };
struct alloc { uint32_t handle, heap_mask, flags, align; };

static volatile long n_signals;
static void count(int signal) { n_signals++; getppid(); }

int main(void)
{
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    int nvmap = open("/dev/nvmap", O_RDWR), n_failed = 0;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (int i = 0; i < 1000; i++) {
        struct create create = {1 << 16, 0};
        n_failed += ioctl(nvmap, _IOWR('N', 0, struct create), &create) != 0;
        struct alloc alloc = {create.handle, 1u << 30, 0, 4096};
        n_failed += ioctl(nvmap, _IOW('N', 3, struct alloc), &alloc) != 0;
        n_failed += ioctl(nvmap, _IO('N', 4), (unsigned long)create.handle) != 0;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%d failed, %s\\n", n_failed, n_signals > 50 ? "interrupted" : "in peace");
    return 0;
}
"""


@pytest.mark.parametrize("release", ["r32", "r35"])
def test_buffers_that_are_freed_under_signals_are_gone(sim: Path, release: str) -> None:
    board.require_board(sim)
    recording = record([compile_c(STORM, "-w")], launcher=board.launcher(sim, release))
    assert (recording.returncode, recording.stdout) == (0, "0 failed, interrupted\n"), recording.stderr
    assert programs.live_at(recording.profile, -1, "driver") == 0
    assert not board.odd(recording.trace)
