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

import pytest

from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from tests.harness import Argument, compile_c, record
from tests.tool.programs import functions, print_report, start

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

N_RUNS = 12
# Two of them at a time, on machines of two processors. Half of the moments are early, where a run changes most; the others
# come after so many allocations, however long these take.
N_AT_ONCE = 2
EARLY_SECONDS, MOST_ALLOCATIONS = 0.8, 1500


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


def start_all(directory: Path, *words: Argument) -> "subprocess.Popen[bytes]":
    """Starts it in a session of its own; its traces go to the directory."""
    return start(directory / "trace.%p", "-q", "--pages=no", *words, start_new_session=True)


def allocated(profile: Profile, function: str) -> int:
    """Bytes that a function of the program has allocated in all."""
    total = 0
    for account, counts in profile.counts().items():
        kept = profile.accounts[account]
        if kept.kind == "heap" and functions(profile, kept.node)[:1] == [function]:
            total += counts.bytes
    return total


def counted(counter: Path) -> int:
    """How many allocations the walk has done."""
    if not counter.exists() or counter.stat().st_size < 8:
        return 0
    return int(struct.unpack("Q", counter.read_bytes()[:8])[0])


def kill_after(seconds: float, n_allocations: int, directory: Path) -> int:
    """Runs the walk, kills it when so many seconds are over and it has done so much, and returns how many it had done."""
    counter = directory / "count"
    walks = compile_c(WALKS, "-fno-builtin")
    process = start(directory / "trace", "-q", "--heap-admin=0", "--pages=no", walks, counter)
    time.sleep(seconds)
    while counted(counter) < n_allocations and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    return counted(counter)


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
    seconds = [chosen.uniform(0, EARLY_SECONDS) if run % 2 else 0 for run in range(N_RUNS)]
    n_allocations = [0 if run % 2 else chosen.randrange(MOST_ALLOCATIONS) for run in range(N_RUNS)]
    directories = [tmp_path / str(run) for run in range(N_RUNS)]
    for directory in directories:
        directory.mkdir()
    with ThreadPoolExecutor(N_AT_ONCE) as pool:
        n_done = list(pool.map(kill_after, seconds, n_allocations, directories))
    told: List[int] = []
    for directory, n in zip(directories, n_done):
        if (directory / "trace").exists():
            told.append(check(directory / "trace", n))
    # The moments are worth something: some before the first allocation, some long after.
    assert len(told) >= N_RUNS // 2
    assert max(told) > 500
    # No more is lost than what a snapshot's interval holds.
    assert max(told) > 0.8 * max(n_done)


# ---- while it waits ------------------------------------------------------------------------------

WAITS = """
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *volatile held;

static void *before_it_waits(size_t n) { return malloc(n); }

static int empty_pipe(void)
{
    int ends[2];
    return pipe(ends) == 0 ? ends[0] : -1;
}

static void *sleeps(void *unused)
{
    for (;;)
        pause();
    return unused;
}

int main(void)
{
    int in = empty_pipe(), polled = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    struct pollfd one = {in, POLLIN, 0};
    fd_set set;
    char byte;
    pthread_t thread;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    epoll_ctl(polled, EPOLL_CTL_ADD, in, &event);
    FD_ZERO(&set);
    FD_SET(in, &set);
    /* So many that the next snapshot is not due. */
    for (int i = 0; i < 2000; i++)
        free(malloc(100));
    WAY
    return 0;
}
"""

ALLOCATES = 'held = before_it_waits(7654321); puts("waits"); fflush(stdout);'
WAYS = {
    "sleep": f"{ALLOCATES} sleep(60);",
    "pause": f"{ALLOCATES} pause();",
    "read": f"{ALLOCATES} read(in, &byte, 1);",
    "poll": f"{ALLOCATES} poll(&one, 1, -1);",
    "select": f"{ALLOCATES} select(in + 1, &set, NULL, NULL, NULL);",
    "epoll": f"{ALLOCATES} epoll_wait(polled, &event, 1, 60000);",
    "condition": f"pthread_mutex_lock(&mutex); {ALLOCATES} pthread_cond_wait(&never, &mutex);",
    "join": f"pthread_create(&thread, NULL, sleeps, NULL); {ALLOCATES} pthread_join(thread, NULL);",
    "child": f"if (fork() == 0) {{ sleep(60); _exit(0); }} {ALLOCATES} wait(NULL);",
    "in-child": f"if (fork() == 0) {{ {ALLOCATES} read(in, &byte, 1); _exit(0); }} wait(NULL);",
}


def most_allocated(directory: Path) -> int:
    return max((allocated(load_file(str(trace)), "before_it_waits") for trace in directory.iterdir()), default=0)


@pytest.mark.parametrize("way", WAYS)
def test_killed_while_it_waits_the_trace_has_what_came_before(way: str, tmp_path: Path) -> None:
    process = start_all(tmp_path, compile_c(WAITS.replace("WAY", WAYS[way]), "-pthread"))
    try:
        assert process.stdout and process.stdout.readline() == b"waits\n"
        until = time.monotonic() + 30
        while most_allocated(tmp_path) != 7654321 and time.monotonic() < until:
            time.sleep(0.1)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert most_allocated(tmp_path) == 7654321


# Waits often and shortly, and then for long, in turn.
IN_TURN = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void *volatile held;

static void *before_it_waits(size_t n) { return malloc(n); }

static void sleep_until(long ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

int main(void)
{
    int ends[2];
    char byte = 0;
    if (pipe(ends))
        return 1;
    if (PIPE && fork() == 0)
        for (int i = 1;; i++) {
            usleep(i % 150 ? 5000 : 3000000);
            if (write(ends[1], &byte, 1) != 1)
                return 1;
        }
    for (int i = 1;; i++) {
        free(held);
        held = before_it_waits(1000);
        if (i % 150 == 0)
            puts("waits");
        fflush(stdout);
        if (PIPE && read(ends[0], &byte, 1) != 1)
            return 1;
        if (!PIPE)
            sleep_until(i % 150 ? 2 : 3000);
    }
}
"""


@pytest.mark.parametrize("how", ["PIPE=0", "PIPE=1"])
def test_short_waits_leave_the_long_one_its_turn(how: str, tmp_path: Path) -> None:
    process = start_all(tmp_path, "--interval=3600000", compile_c(IN_TURN, "-fno-builtin", f"-D{how}"))
    try:
        for turn in range(1, 4):
            assert process.stdout and process.stdout.readline() == b"waits\n"
            trace = tmp_path / f"trace.{process.pid}"
            until = time.monotonic() + 2.7
            found = 0
            while found != turn * 150 * 1000 and time.monotonic() < until:
                time.sleep(0.1)
                found = allocated(load_file(str(trace)), "before_it_waits")
            assert found == turn * 150 * 1000
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


ANSWERS = """
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
    int there[2], back[2];
    char byte = 0;
    void *kept[4] = {NULL};
    if (pipe(there) || pipe(back))
        return 1;
    if (fork() == 0) {
        close(there[1]);
        while (read(there[0], &byte, 1) == 1)
            if (write(back[1], &byte, 1) != 1)
                return 1;
        return 0;
    }
    for (int i = 0; i < 2000; i++) {
        free(kept[i % 4]);
        kept[i % 4] = malloc(1000);
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            return 1;
    }
    return 0;
}
"""


def test_a_program_that_waits_often_has_no_more_snapshots() -> None:
    recording = record([compile_c(ANSWERS)], options=["--interval=3600000"], status=0)
    ids = [line.split()[1] for line in recording.trace.read_text().splitlines() if line.startswith("S ")]
    assert len(ids) == len(set(ids)) and len(ids) < 100  # those of the first events, and a few


BUSY = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *volatile held;

static void *walk(size_t n) { return malloc(n); }

int main(void)
{
    struct timespec now;
    for (unsigned long k = 1;; k++) {
        free(held);
        held = walk(1000);
        if (k % 20000)
            continue;
        clock_gettime(CLOCK_MONOTONIC, &now);
        printf("%lu %lu\\n", (unsigned long)now.tv_sec * 1000 + (unsigned long)now.tv_nsec / 1000000, k);
        fflush(stdout);
    }
}
"""


def test_killed_while_it_computes_the_trace_has_what_happened_a_second_before(tmp_path: Path) -> None:
    """Also where snapshots are far apart, as in a long run."""
    process = start_all(tmp_path, "--interval=3600000", compile_c(BUSY, "-fno-builtin"))
    assert process.stdout and process.stdout.readline()
    time.sleep(2.5)
    killed = time.monotonic() * 1000
    process.kill()
    lines = [line.split() for line in process.communicate()[0].decode().splitlines()[:-1]]
    (trace,) = tmp_path.iterdir()
    n_in_time = max(int(count) for at, count in lines if int(at) <= killed - 1000)
    assert allocated(load_file(str(trace)), "walk") >= n_in_time * 1000 > 0
