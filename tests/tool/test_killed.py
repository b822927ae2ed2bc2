# SPDX-License-Identifier: GPL-2.0-or-later
"""SIGKILL at any moment leaves a true trace: all that happened up to the last flush, the peak included.

The program walks through allocations that are a function of their number alone, and counts them where we can see it after
its death. So the number of blocks that a trace tells of says how many bytes must have been live then, and what the
largest sum up to then was, without asking the recorder.
"""

import os
import random
import signal
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import List, NamedTuple, Tuple

from jmassif.model.profile import Profile
from jmassif.trace.builder import load_file
from tests.harness import BUILD, VALGRIND, compile_c
from tests.tool.programs import functions, print_report

WALKS = """
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile uint64_t *count;
static char *slots[64];

static void *walk(size_t n) { return malloc(n); }

int main(int argc, char **argv)
{
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (ftruncate(fd, 4096))
        return 1;
    count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    uint64_t state = 1;
    for (uint64_t k = 1;; k++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t slot = (size_t)(state >> 33) % 64;
        free(slots[slot]);
        slots[slot] = walk((size_t)(state >> 40) % 2000 + k);
        *count = k;
        usleep(100);
    }
}
"""

N_RUNS = 20
# Two of them at a time, on machines of two processors. Half of the moments are early, where a run changes most.
N_AT_ONCE = 2


class Step(NamedTuple):
    """After the k-th allocation, and after the free that follows it."""

    live_bytes: int
    live_blocks: int
    bytes_after_free: int
    blocks_after_free: int


def steps(n: int) -> List[Step]:
    """The walk, from the program's text alone. Step 0 is before it."""
    slots = [0] * 64
    state = 1
    draws: List[Tuple[int, int]] = []
    for k in range(1, n + 2):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        draws.append(((state >> 33) % 64, (state >> 40) % 2000 + k))
    found: List[Step] = []
    live_bytes, live_blocks = 0, 0
    for k in range(n + 1):
        if k:
            slot, size = draws[k - 1]
            slots[slot] = size
            live_bytes += size
            live_blocks += 1
        slot = draws[k][0]
        after = (live_bytes - slots[slot], live_blocks - (slots[slot] > 0))
        found.append(Step(live_bytes, live_blocks, *after))
        live_bytes, live_blocks = after
        slots[slot] = 0
    return found


def kill_after(seconds: float, directory: Path) -> int:
    """Runs the walk, kills it, and returns how many allocations it had done."""
    counter = directory / "count"
    command = [
        VALGRIND,
        "--tool=jmassif",
        "-q",
        f"--jmassif-out-file={directory}/trace",
        "--heap-admin=0",
        "--pages=no",
    ]
    process = subprocess.Popen(
        [*command, str(compile_c(WALKS, "-fno-builtin")), str(counter)],
        env={**os.environ, "VALGRIND_LIB": str(BUILD / ".in_place")},
    )
    time.sleep(seconds)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    if not counter.exists() or counter.stat().st_size < 8:
        return 0
    return int(struct.unpack("Q", counter.read_bytes()[:8])[0])


def walked(profile: Profile) -> Tuple[int, int, int]:
    """What the trace's last snapshot says of the walk: blocks ever, live blocks, live bytes."""
    if not profile.snapshots:
        return 0, 0, 0
    live = profile.composition(len(profile.snapshots) - 1)
    for account, counts in profile.counts().items():
        kept = profile.accounts[account]
        if kept.kind == "heap" and functions(profile, kept.node)[0] == "walk":
            n_bytes, n_blocks = live.get(account, (0, 0))
            return counts.blocks, n_blocks, n_bytes
    return 0, 0, 0


def check(trace: Path, n_done: int) -> int:
    """Returns how many allocations the trace tells of."""
    report = print_report(trace)
    assert report.returncode == 0, report.stderr
    profile = load_file(str(trace))
    n_blocks, live_blocks, live_bytes = walked(profile)
    # The program may have died between an allocation and its count.
    assert n_blocks <= n_done + 1
    true = steps(n_blocks)
    last = true[-1]
    assert (live_bytes, live_blocks) in (last[:2], last[2:])
    if n_blocks:
        # Which of two nearly equal sums is the larger one depends on the rounding of sizes, at most 31 bytes a block.
        largest = max(step.live_bytes for step in true)
        assert largest - 64 * 31 <= profile.peaks["total"].by_kind["heap"] <= largest
    return n_blocks


def test_killed_at_any_moment_the_trace_is_true(tmp_path: Path) -> None:
    compile_c(WALKS, "-fno-builtin")  # not while a moment is running
    chosen = random.Random(4)
    moments = [chosen.uniform(0, 0.8 if run % 2 else 3) for run in range(N_RUNS)]
    directories = [tmp_path / str(run) for run in range(N_RUNS)]
    for directory in directories:
        directory.mkdir()
    with ThreadPoolExecutor(N_AT_ONCE) as pool:
        n_done = list(pool.map(kill_after, moments, directories))
    told: List[int] = []
    for directory, n in zip(directories, n_done):
        if (directory / "trace").exists():
            told.append(check(directory / "trace", n))
    # The moments are worth something: some before the first allocation, some long after.
    assert len(told) >= N_RUNS // 2
    assert max(told) > 500
    # No more is lost than what a snapshot's interval holds.
    assert max(told) > 0.8 * max(n_done)
