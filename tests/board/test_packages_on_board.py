# SPDX-License-Identifier: GPL-2.0-or-later
"""The bundle unpacked and the package installed on emulated boards that have Python and nothing of ours: Debian 11 and 12.

Two boards are booted, with what make release has made; make check-board fetches their packages.
"""

import json
import os
import re
from pathlib import Path
from typing import Dict

import pytest

from jmassif.units import size
from tests import harness
from tests.board import emulator
from tests.board.emulator import BARE, Job, Outcome
from tests.board.test_emulated_board import IN_A_GROUP, LIMIT, assert_killed_with_its_memory_told
from tests.harness import MADE, ROOT, allocated_by_function, compile_arm64, released
from tests.tool import board, test_driver_random
from tests.tool.programs import held_below
from tests.tool.test_example import at_peak


# A program for any C library: nothing of this machine's is in it.
KEEPS = ROOT / "tests/packaging/keeps.c"
FLAGS = ("-O0", "-fno-builtin", "-ffreestanding", "-nostartfiles", "-Wl,-e,start")

SCRIPT = """
def lines():
    return [bytearray(100000) for _ in range(30)]
kept = lines()
print(sum(map(len, kept)))
"""

HOG = """
import os
kept = []
def hog():
    kept.append(b"x" * (4 << 20))
while True:
    hog()
    os.write(1, b".")
"""

UNPACK = """busybox tar -xJf /files/bundle.tar.xz -C /root && ln -s /root/jmassif-*/bin /bundle || exit 99
"""
INSTALL = """mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/dpkg/triggers
: >/var/lib/dpkg/status
/usr/bin/dpkg --force-bad-path --force-depends -i /files/jmassif.deb >&2 || exit 99
"""
OURS = "find / -xdev -name '*jmassif*' ! -path '/files/*' ! -path '/root*' ! -path '/results/*' ! -path '/jobs/*'"
# The simulation is linked to this machine's C library, which is Debian 12's or newer.
SIMULATED = """export JMSIM_LIB=/files/sim
LD_PRELOAD=$(echo /root/jmassif-*/lib/libjmassif.so) /files/sim/jmsim-board --release=r32 -- /bundle/jmassif --pages=no \\
    /files/sim/programs/driver_random 200 7 --log=log --check
"""
EXAMPLE = """export JMSIM_LIB=/files/sim
/files/sim/jmsim-board --release=r32 --memory=$((4 << 30)) --machine -- /bundle/jmassif --owners=/files/sim/jmsim.rules \\
    /usr/bin/python3 /files/train.py --device=sim
"""


def jobs(suite: str) -> Dict[str, Job]:
    files = {
        "bundle.tar.xz": released("jmassif-*-aarch64.tar.xz")[-1],
        "jmassif.deb": released("jmassif_*_arm64.deb")[-1],
        "keeps": compile_arm64(KEEPS, *FLAGS),
        "train.py": ROOT / "docs/examples/train.py",
    }
    found = {
        "10-bundle": Job(UNPACK + "exec /bundle/jmassif --pages=no /files/keeps", files),
        "20-python": Job(f"exec /bundle/jmassif --pages=no /usr/bin/python3 -S -c '{SCRIPT}'"),
        "30-report": Job("/bundle/jm_print --by=python-line ../20-python/jmassif.out.*"),
        "40-page": Job("/bundle/jm_print --format=html -o page.html ../20-python/jmassif.out.*"),
        "50-doctor": Job("/bundle/jmassif doctor --json"),
        "60-alarm": Job(IN_A_GROUP.format(limit=LIMIT) + f"exec /bundle/jmassif -q /usr/bin/python3 -S -c '{HOG}'"),
        "70-package": Job(INSTALL + "exec jmassif --pages=no /files/keeps"),
        "80-purge": Job(f"/usr/bin/dpkg --force-bad-path -P jmassif >&2 && {OURS}"),
    }
    if suite == "bookworm":
        found["55-driver"] = Job(SIMULATED, {"sim": harness.sim_build_arm64()})
        found["56-example"] = Job(EXAMPLE)
    return found


@pytest.fixture(name="outcome", scope="module", params=sorted(BARE))
def fixture_outcome(request: pytest.FixtureRequest) -> Outcome:
    suite = str(request.param)
    emulator.require(BARE[suite], "make check-board fetches them")
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    return emulator.run_jobs(jobs(suite), MADE / f"board-{suite}" / run, BARE[suite])


@pytest.mark.parametrize("name", ["10-bundle", "70-package"])
def test_a_program_is_recorded(outcome: Outcome, name: str) -> None:
    there = outcome.jobs[name]
    assert there.returncode == 0, there.stderr
    assert allocated_by_function(there.profile, Path("keeps")) == {"keeps": (5000000, 1)}
    assert there.profile.manifest["valgrind"].startswith("3.27")


def test_a_script_has_its_line_there_and_its_report_is_made_there(outcome: Outcome) -> None:
    done = outcome.jobs["20-python"]
    assert (done.returncode, done.stdout) == (0, "3000000\n"), done.stderr
    assert 3000000 <= held_below(done.profile, "lines") <= 3000000 + 30 * 100
    report = outcome.jobs["30-report"]
    assert report.returncode == 0 and re.search(r"<string>:3 .* 2\.86 MiB", report.stdout), report.stdout
    page = outcome.jobs["40-page"]
    assert page.returncode == 0, page.stderr
    assert (page.directory / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_the_doctor_knows_the_board(outcome: Outcome) -> None:
    said = json.loads(outcome.jobs["50-doctor"].stdout)
    assert said["works"] and said["findings"][0]["text"].startswith("3.27.1, /root/jmassif-")
    assert outcome.jobs["50-doctor"].returncode == 0


def test_who_held_the_memory_when_little_was_left(outcome: Outcome) -> None:
    assert assert_killed_with_its_memory_told(outcome.jobs["60-alarm"]) > LIMIT / 3


def test_the_package_leaves_nothing(outcome: Outcome) -> None:
    done = outcome.jobs["80-purge"]
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_ledger_is_what_the_boards_kernel_has_committed(outcome: Outcome) -> None:
    if "55-driver" not in outcome.jobs:
        pytest.skip("the simulation needs a newer C library than Debian 11's")
    done = outcome.jobs["55-driver"]
    assert done.returncode == 0, done.stderr
    (trace,) = [trace for trace in done.traces if "\nm forked-from" not in trace.read_text("utf-8", "replace")]
    steps, totals = test_driver_random.steps_of(done.directory / "log"), test_driver_random.totals_at_regions(trace)
    assert len(steps) == len(totals) == 200
    others = totals[0] - steps[0].committed
    assert [total - others for total in totals] == [step.committed for step in steps]
    assert board.odd(trace) == {}


def test_the_example_has_the_tensors_that_it_prints(outcome: Outcome) -> None:
    if "56-example" not in outcome.jobs:
        pytest.skip("the simulation needs a newer C library than Debian 11's")
    done = outcome.jobs["56-example"]
    assert done.returncode == 0, done.stdout + done.stderr
    printed = re.search(r"^tensors (.*), at most (.*); reserved by the allocator (.*)$", done.stdout, re.MULTILINE)
    assert printed
    owners = at_peak(done.profile)
    assert (size(owners["tensor"]), size(owners["tensor"] + owners["cache"])) == (printed.group(1), printed.group(3))
