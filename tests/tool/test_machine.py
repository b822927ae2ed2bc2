# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine around the program: the kernel's figures in the trace, and what is left when it kills for want of memory."""

import os
import re
import signal
import time
from pathlib import Path
from typing import Dict, Iterator, List

import pytest

from jmassif.analysis.system import machine
from jmassif.model.run import Profile
from jmassif.model.run_info import was_short
from jmassif.reader.builder import load_file
from tests.harness import PYTHON, compile_c, record
from tests.tool.programs import ends_for_lack_of_memory, finish, functions, live_at, print_report, start

MIB = 1 << 20


def meminfo() -> Dict[str, int]:
    rows = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows}


GROWS = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 10; i++) {
        memset(malloc(20 << 20), 1, 20 << 20);
        usleep(30000);
    }
    return 0;
}
"""


def test_figures_are_the_kernels() -> None:
    before = meminfo()
    profile = record([compile_c(GROWS, "-fno-builtin", "-w")]).profile
    last = profile.snapshots[-1].time
    assert profile.system_at("mem-total", last) == before["MemTotal"]
    assert profile.system_at("swap-total", last) == before["SwapTotal"]
    available = profile.system["mem-available"][1][0]
    assert abs(available - before["MemAvailable"]) < 1024 * MIB  # other programs come and go
    blocks = {2**order * os.sysconf("SC_PAGE_SIZE") for order in range(16)}
    assert profile.system_at("largest-free", last) in blocks
    assert was_short(profile) is None


# As root sees it: a line a client, and their sum.
NVMAP_CLIENTS = """CLIENT                        PROCESS      PID        SIZE
user                           python3     4711     123456K
user                              Xorg      812       7890K
total                                               131346K
"""


def test_nvmaps_use_is_read_where_the_kernel_lists_it(tmp_path: Path) -> None:
    clients = tmp_path / "sys/kernel/debug/nvmap/iovmm/clients"
    clients.parent.mkdir(parents=True)
    clients.write_text(NVMAP_CLIENTS)
    profile = record([compile_c(GROWS, "-fno-builtin", "-w")], [f"--board-root={tmp_path}"]).profile
    assert profile.system_at("nvmap-used", profile.snapshots[0].time) == 131346 * 1024


def test_what_the_program_touches_becomes_resident() -> None:
    profile = record([compile_c(GROWS, "-fno-builtin", "-w")]).profile
    rows = {figure.label: figure for figure in machine(profile, 0)}
    process = rows["this process, with profiler"]
    assert process.first is not None and process.worst - process.first >= 190 * MIB
    values = profile.system["process-resident"][1]
    assert max(values) - min(values) < 400 * MIB


def test_a_share_that_is_never_left_makes_snapshots_at_once_and_not_too_many() -> None:
    program = compile_c(GROWS, "-fno-builtin", "-w")
    profile = record([program], ["--low-memory=100"]).profile
    reasons = [snapshot.reason for snapshot in profile.snapshots]
    assert 1 <= reasons.count("low-memory") <= 5
    profile = record([program], ["--low-memory=0"]).profile
    assert "low-memory" not in [snapshot.reason for snapshot in profile.snapshots]


# ---- killed --------------------------------------------------------------------------------------

LIMIT = 600 * MIB

HOG = """
import os, sys
kept = []
def hog():
    kept.append(bytearray(4 << 20))
while True:
    hog()
    os.write(1, b".")
"""


@pytest.fixture(name="group")
def fixture_group() -> Iterator[Path]:
    """A control group with a limit, as its directory."""
    name = f"jmassif-test-{os.getpid()}"
    for root, limit in (
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup"), "memory.max"),
    ):
        group = root / name
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text(str(LIMIT))
            for swap in ("memory.memsw.limit_in_bytes", "memory.swap.max"):
                if (group / swap).exists():
                    (group / swap).write_text(str(LIMIT) if "memsw" in swap else "0")
        except OSError:
            group.rmdir()
            continue
        yield group
        for _ in range(50):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.1)
        return
    pytest.skip("no control group with a memory limit can be made here")


def held_by(profile: Profile, function: str) -> int:
    held = profile.composition(len(profile.snapshots) - 1)
    accounts: List[int] = [a for a in held if function in functions(profile, profile.accounts[a].node)]
    return sum(held[account][0] for account in accounts)


def test_a_program_that_the_kernel_kills_leaves_what_it_held(group: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"

    def join() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))

    done = finish(start(trace, "-q", PYTHON, "-S", "-c", HOG, preexec_fn=join))
    assert done.returncode == -signal.SIGKILL, "the kernel did not kill it"
    really = len(done.stdout) * 4 * MIB
    profile = load_file(str(trace))
    assert really > 300 * MIB
    assert 0.95 * really <= held_by(profile, "hog") <= 1.02 * really + 4 * MIB
    assert ends_for_lack_of_memory(profile)
    assert live_at(profile, -1) >= 0.95 * really

    report = print_report(trace)
    assert report.returncode == 0
    assert "Memory ran short" in report.stdout and "probably killed" in report.stdout
    assert re.search(r"left of the control group's limit +\S+ MiB", report.stdout)
    place = re.search(r"^<string>:\d+ +(\S+) MiB +\d+ %$", report.stdout, re.MULTILINE)
    assert place and float(place.group(1)) * MIB >= 0.95 * really, report.stdout
