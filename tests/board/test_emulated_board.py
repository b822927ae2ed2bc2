# SPDX-License-Identifier: GPL-2.0-or-later
"""What only a kernel of its own can show, on an emulated arm64 board of 1 GiB: devices' ioctls, pages, swap, the killer."""

import os
import re
from pathlib import Path
from typing import Dict

import pytest

from jmassif.analysis.system import machine
from tests import harness
from tests.arm64.test_arm64 import HEAP
from tests.board import emulator
from tests.board.emulator import Job, Outcome
from tests.harness import ARM64_VALGRIND, MADE, ROOT, Recording, allocated_by_function, compile_arm64, compile_c, record
from tests.tool import board, test_driver_random, test_pages
from tests.tool.programs import DIRECTORY, ends_for_lack_of_memory, held_below, live_at, print_report

MIB = 1 << 20
# Each takes 15 s: in short, one of each of the two drivers.
IS_LONG = os.environ.get("JMASSIF_LARGE") == "1"
OPERATIONS = 2000 if IS_LONG else 200
RELEASES = board.RELEASES if IS_LONG else ("r32", "r38")
FLAGS = ("-O0", "-pthread", "-fno-builtin", "-Wno-alloc-size-larger-than")

# Prints a dot for each 4 MiB that it holds.
HOG = r"""
#include <stdlib.h>
#include <unistd.h>
static void hog(void)
{
    volatile char *held = malloc(4 << 20);
    for (int i = 0; i < 4 << 20; i += 4096)
        held[i] = 1;
}
int main(void)
{
    for (;;) {
        hog();
        if (write(1, ".", 1) != 1)
            return 1;
    }
}
"""

FORKS = r"""
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
void *volatile kept;
void by_parent(void) { kept = malloc(1000); }
void by_child(void) { kept = malloc(300); }
int main(void)
{
    int status;
    by_parent();
    if (fork() == 0) {
        by_child();
        _exit(7);
    }
    wait(&status);
    return WEXITSTATUS(status);
}
"""

PYTHON_CODE = """
def lines():
    return [bytearray(100000) for _ in range(30)]
kept = lines()
print(sum(map(len, kept)))
"""

IN_A_GROUP = """mkdir /sys/fs/cgroup/small
echo {limit} >/sys/fs/cgroup/small/memory.max
echo 0 >/sys/fs/cgroup/small/memory.swap.max
echo $$ >/sys/fs/cgroup/small/cgroup.procs
"""
LIMIT = 160 * MIB
OTHERS = 450 * MIB  # in the temporary files of others: to touch a page takes an emulated program 0.1 ms

SWAP = """for module in zsmalloc lzo-rle zram; do insmod /modules/$module.ko 2>/dev/null; done
echo 64M >/sys/block/zram0/disksize && mkswap /dev/zram0 >/dev/null && swapon /dev/zram0 || exit 99
head -c 1048576 /dev/zero >mapped
"""


def _jobs(sim: Path) -> Dict[str, Job]:
    heap = {
        "heap": compile_arm64(HEAP, *FLAGS),
        "forks": compile_arm64(FORKS, *FLAGS),
        "hog": compile_arm64(HOG, *FLAGS),
    }
    headers = (f"-I{ROOT / 'jmassif'}", f"-I{ARM64_VALGRIND / 'usr/include'}", "-pthread")
    pages = compile_arm64(DIRECTORY / "pages.c", *headers)
    jobs = {
        "10-heap": Job("jm --pages=no /files/heap", heap),
        "20-forks": Job("jm --pages=no /files/forks"),
        "30-python": Job(f"jm --pages=no /usr/bin/python3.11 -S -c '{PYTHON_CODE}'"),
        "11-heap": Job("jm-native /files/heap"),
        "21-forks": Job("jm-native /files/forks"),
        "31-python": Job(f"jm-native /usr/bin/python3.11 -S -c '{PYTHON_CODE}'"),
        "50-pages": Job(SWAP + "jm --pages=yes /files/pages mapped", {"pages": pages}),
        "60-group": Job(IN_A_GROUP.format(limit=LIMIT) + "exec jm -q /files/hog"),
        "70-machine": Job(f"head -c {OTHERS} /dev/zero >/tmp/others; exec jm -q /files/hog"),
    }
    if not IS_LONG:
        del jobs["30-python"]
    for release in RELEASES:
        jobs[f"40-{release}"] = Job(
            f"LD_PRELOAD=/usr/lib/libjmassif.so /files/sim/jmsim-board --release={release} -- jm --pages=no "
            f"/files/sim/programs/driver_random {OPERATIONS} 7 --log=log --check",
            {"sim": sim} if release == RELEASES[0] else {},
        )
    return jobs


@pytest.fixture(name="outcome", scope="module")
def fixture_outcome() -> Outcome:
    emulator.require()
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    return emulator.run_jobs(_jobs(harness.sim_build_arm64()), MADE / "board" / run)


@pytest.mark.parametrize("job", ["10-heap", "11-heap"])
def test_the_heap_is_that_of_a_native_run(job: str, outcome: Outcome) -> None:
    native, there = compile_c(HEAP, *FLAGS), outcome.jobs[job]
    assert there.returncode == 5, there.stderr
    assert there.profile.manifest["arch"] == "arm64"
    host = there.profile.manifest["recorder"]
    expected = allocated_by_function(record([native], host=host).profile, native)
    assert len(expected) >= 3 and host == ("valgrind" if job == "10-heap" else "native")
    assert allocated_by_function(there.profile, Path("heap")) == expected


def test_the_board_is_named(outcome: Outcome) -> None:
    assert outcome.jobs["10-heap"].profile.manifest["board"] == emulator.MODEL


@pytest.mark.parametrize("job", ["20-forks", "21-forks"])
def test_parent_and_child_have_a_trace_each(job: str, outcome: Outcome) -> None:
    done = outcome.jobs[job]
    assert done.returncode == 7 and len(done.traces) == 2, done.stderr
    parent, child = (allocated_by_function(done.load(trace), Path("forks")) for trace in done.traces)
    assert parent == {"by_parent": (1000, 1)}
    assert child["by_child"] == (300, 1)


@pytest.mark.parametrize("job", ["30-python", "31-python"] if IS_LONG else ["31-python"])
def test_a_python_line_has_its_bytes(job: str, outcome: Outcome) -> None:
    done = outcome.jobs[job]
    assert (done.returncode, done.stdout) == (0, "3000000\n"), done.stderr
    assert 3000000 <= held_below(done.profile, "lines") <= 3000000 + 30 * 100


@pytest.mark.parametrize("release", RELEASES)
def test_the_ledger_is_what_a_boards_kernel_has_committed(release: str, outcome: Outcome) -> None:
    done = outcome.jobs[f"40-{release}"]
    assert done.returncode == 0, done.stderr
    (trace,) = [trace for trace in done.traces if "\nm forked-from" not in trace.read_text("utf-8", "replace")]
    steps = test_driver_random.steps_of(done.directory / "log")
    totals = test_driver_random.totals_at_regions(trace)
    assert len(steps) == len(totals) == OPERATIONS
    others = totals[0] - steps[0].committed
    assert [total - others for total in totals] == [step.committed for step in steps]
    assert max(step.committed for step in steps) > MIB
    assert board.odd(trace) == {}


def test_resident_and_swapped_pages_are_the_kernels(outcome: Outcome) -> None:
    done = outcome.jobs["50-pages"]
    assert done.returncode == 0, done.stderr
    test_pages.assert_as_said(done)
    # There is swap here. What of the rest is resident depends on whether the kernel has made a huge page of it.
    assert test_pages.swapped_at_last(done.profile) == MIB


def assert_killed_with_its_memory_told(done: Recording) -> int:
    """What it really held."""
    assert done.returncode == 128 + 9, done.stderr
    really = done.stdout.count(".") * 4 * MIB
    profile = done.profile
    assert ends_for_lack_of_memory(profile)
    assert 0.95 * really <= live_at(profile, -1) <= 1.02 * really + 8 * MIB
    report = print_report(done.trace).stdout
    first = " ".join(report[: report.index("\n--- By owner")].split())
    assert "probably killed" in first and "hog" in first
    return really


def test_who_held_the_memory_when_the_groups_limit_killed(outcome: Outcome) -> None:
    assert assert_killed_with_its_memory_told(outcome.jobs["60-group"]) > LIMIT / 2
    assert re.search(r"Memory cgroup out of memory: Killed process \d+ \((memcheck|jmassif|hog)", outcome.dmesg)


def test_who_held_the_memory_when_the_kernel_had_no_more(outcome: Outcome) -> None:
    done = outcome.jobs["70-machine"]
    assert assert_killed_with_its_memory_told(done) > emulator.MEMORY_MIB * MIB / 3
    assert re.search(r"Out of memory: Killed process", outcome.dmesg)
    rows = {figure.label: figure for figure in machine(done.profile, 0)}
    assert any("available" in label for label in rows)
