# SPDX-License-Identifier: GPL-2.0-or-later
"""The ladder's ends, against the kernel's figures as the program reads them and against what the program has allocated."""

import re
from pathlib import Path
from typing import Dict, List, NamedTuple

import pytest

from jmassif.analysis.ladder import LESS, Ladder, ladders
from jmassif.analysis.summary import moment_of
from jmassif.attribution.names import Names
from tests.harness import PYTHON, ROOT, Argument, Recording, compile_c, record
from tests.reporter.commands import jm_print
from tests.tool import board
from tests.tool.test_others import program, requested

MIB = 1 << 20
GIB = 1 << 30


def ladder_of(recording: Recording, moment: str) -> Ladder:
    """At a moment; "": at the one that a report is of."""
    profile = recording.profile
    return ladders(profile, moment_of(profile, Names(profile), moment))[0]


def rungs(ladder: Ladder) -> Dict[str, int]:
    """By key: bytes, negative where they are taken away."""
    return {rung.key: -rung.bytes if rung.role == LESS else rung.bytes for rung in ladder.rungs}


def test_on_a_board_it_begins_with_what_the_kernel_says_is_in_use(sim: Path) -> None:
    board.require_board(sim)
    launcher = board.launcher(sim, "r32", f"--memory={4 * GIB}", "--machine")
    recording = record([program()], ["--pages=yes"], launcher=launcher, status=0)
    said = {name: int(n) * 1024 for name, n in re.findall(r"^(\w+):\s+(\d+) kB$", recording.stdout, re.MULTILINE)}
    ladder = ladder_of(recording, requested(recording))
    found = rungs(ladder)
    used = said["MemTotal"] - sum(said[name] for name in ("MemFree", "Buffers", "Cached", "SReclaimable"))
    assert found["jtop"] == pytest.approx(used, abs=2 * MIB)
    assert found["program"] == pytest.approx(230 * MIB, abs=70 * MIB) and found["own-code"] >= 230 * MIB
    # What nothing explains is the profiler and the driver's own.
    assert -MIB < -found["others"] < 150 * MIB


def test_elsewhere_it_begins_with_the_resident_memory_and_ends_with_the_programs_own() -> None:
    kept = compile_c(
        """
        #include <stdlib.h>
        #include <string.h>
        int main(void)
        {
            memset(malloc(50 << 20), 1, 50 << 20);
            malloc(30 << 20); /* never written to */
            return 0;
        }
        """,
        "-fno-builtin",
    )
    found = rungs(ladder_of(record([kept], ["--pages=yes"]), "end"))
    assert found["own-code"] == pytest.approx(80 * MIB, abs=MIB)
    assert found["unwritten"] == pytest.approx(30 * MIB, abs=MIB)
    assert found["htop"] + found["profiler"] == pytest.approx(50 * MIB, abs=8 * MIB)
    assert abs(found["unexplained"]) < 4 * MIB


def test_pages_that_are_written_to_after_the_last_block_has_made_the_peak_count() -> None:
    brief = compile_c(
        """
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        int main(void)
        {
            memset(malloc(60 << 20), 1, 60 << 20);
            usleep(300000);
            char *block = malloc(40 << 20), line[200];
            memset(block, 1, 40 << 20);
            free(block);
            FILE *status = fopen("/proc/self/status", "r");
            while (fgets(line, sizeof line, status))
                if (!strncmp(line, "VmHWM:", 6))
                    puts(line);
            return 0;
        }
        """,
        "-fno-builtin",
    )
    recording = record([brief], ["--pages=yes"])
    found = rungs(ladder_of(recording, "peak"))
    highest = int(re.findall(r"VmHWM:\s+(\d+) kB", recording.stdout)[0]) * 1024
    assert found.get("highest", found.get("htop")) == pytest.approx(highest, abs=MIB)
    assert found["own-code"] == pytest.approx(100 * MIB, abs=MIB) and found.get("unwritten", 0) < MIB


# Trainings on the simulated board. Each prints the kernel's figures and its allocator's counter at its mark, or where it fails.
SCRIPT = """
import gc, os, sys
import jmassif
sys.path.insert(0, os.path.join(os.environ["JMSIM_LIB"], "site-packages"))
import jmsim

case = sys.argv[1]
device = jmsim.Device(os.environ["JMSIM_LIB"])
allocator = device.allocator
layers = [jmsim.Layer("conv", 896, 32, 1, (32, 3)), jmsim.Layer("linear", 4 << 20, 1000, 0, None)]
net = jmsim.Network(device, layers)
optimizer = jmsim.SGD(net)
numbers = bytearray(40 << 20)
kept = []

def show():
    print(open("/proc/meminfo").read())
    print("allocated: %d" % allocator.allocated)

def step(batch, side):
    outputs = net.forward(device.upload(bytearray(12 * side * side * batch)), batch, side)
    net.backward(outputs)
    optimizer.step()

try:
    for side in {"cache": (64, 96, 128, 160, 192), "memory": (64, 1024)}.get(case, (64, 64, 64)):
        step(32, side)
        if case == "leak":
            kept.append(allocator.malloc(31 << 20))
except jmsim.CudaError:
    show()
    sys.exit(1)
jmassif.mark("done")
show()
"""


class SimulatedRun(NamedTuple):
    case: str
    release: str  # of the driver's interface
    jetpack: str  # what the board's files say
    moment: str = "done"
    status: int = 0


RUNS = {
    "fits": SimulatedRun("fits", "r32", "4.6.1"),
    "cache too large": SimulatedRun("cache", "r32", "4.6.1"),
    "out of memory": SimulatedRun("memory", "r32", "4.6.1", "", 1),
    "leak": SimulatedRun("leak", "r32", "4.6.1"),
    "the same on a newer JetPack": SimulatedRun("fits", "r35", "5.1.2"),
}
# A row of the ladder: "- ", "+ " or "= " but in the first, words, a number of MiB.
_ROW = re.compile(r"^  ([-+=]?) ?(\w.*?) {2,}([\d,]+)(?: |$)", re.MULTILINE)


@pytest.mark.parametrize("name", RUNS)
def test_of_a_training_it_adds_up_from_the_kernels_figures_to_the_allocators_own(
    sim: Path, name: str, tmp_path: Path
) -> None:
    board.require_board(sim)
    run = RUNS[name]
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    command: List[Argument] = [PYTHON, script, run.case]
    recording = record(
        command,
        options=["--pages=yes", f"--board-root={sim}/jetpack-{run.jetpack}/root", f"--owners={sim}/jmsim.rules"],
        env={"JMSIM_LIB": str(sim), "PYTHONPATH": str(ROOT / "reporter"), "JMSIM_BOARD_BYTES": str(2 * GIB)},
        launcher=board.launcher(sim, run.release, f"--memory={2 * GIB}", "--machine"),
        timeout=300,
        status=run.status,
    )
    printed = jm_print(*([f"--snapshot={run.moment}"] if run.moment else []), recording.trace).out
    rows = [(sign, words, int(number.replace(",", ""))) for sign, words, number in _ROW.findall(printed)]
    rows = rows[: 1 + next(index for index, (_, words, _) in enumerate(rows) if words.startswith("its allocator"))]
    level = 0
    for number, (sign, words, mib) in enumerate(rows):
        if sign in ("", "="):
            assert number == 0 or mib == level, f"{words} is {mib}, not {level}: {rows}"
            level = mib
        else:
            level += mib if sign == "+" else -mib
    found = rungs(ladder_of(recording, run.moment))
    said = {key: int(n) for key, n in re.findall(r"^(\w+): +(\d+)", recording.stdout, re.MULTILINE)}
    assert found["allocated"] == said["allocated"]
    used = said["MemTotal"] - sum(said[figure] for figure in ("MemFree", "Buffers", "Cached", "SReclaimable"))
    assert found["jtop"] == pytest.approx(used * 1024, abs=2 * MIB)
    assert rows[0][2] == pytest.approx(found["jtop"] / MIB, abs=1)
