# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory of a job of several processes, compared with the kernel's PSS of the same processes without jmassif."""

import subprocess
from pathlib import Path
from typing import List

import pytest

from jmassif.analysis.processes import adjustments, join, ledger_of
from tests import harness

# Each program calls peak() while all of its processes hold what they hold at most, for long enough to be sampled: natively each
# process does that as its time allows, and sees too little of forks, by up to 2 MiB each.
HOLD, TOLERANCE = ("60", 0.08) if harness.HOST == "native" else ("20", 0.05)
COMMON = """
import mmap, os, sys, time
def tree(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return [pid] + [each for child in children.read().split() for each in tree(int(child))]
def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup") as lines:
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
def hold():
    for _ in range(int(os.environ.get("HOLD", "0"))):
        time.sleep(0.1)
def peak():
    print(sum(map(pss, tree(os.getpid()))), flush=True)
    hold()
def forks(n, work):
    (ready, is_ready), (go, may_go) = os.pipe(), os.pipe()
    for _ in range(n):
        if not os.fork():
            kept = work()
            os.write(is_ready, b"x")
            os.read(go, 1)
            hold()
            os._exit(0)
    for _ in range(n):
        os.read(ready, 1)
    peak()
    os.write(may_go, b"x" * n)
    for _ in range(n):
        os.wait()
"""

COPY_ON_WRITE = """
data = bytearray(48 << 20)
for at in range(0, len(data), 4096):
    data[at] = 1
def work():
    for at in range(0, len(data) // 2, 4096):
        data[at] = 2
forks(2, work)
"""

MAPPED_FILE = """
with open(sys.argv[1], "rb") as stream:
    mapped = mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)
def work():
    return sum(mapped[at] for at in range(0, len(mapped), 4096))
work()
forks(2, work)
"""

# Processes of multiprocessing that hold what work() makes until all of them have.
WORKERS = """
import multiprocessing
def worker(barrier):
    made = work()
    barrier.wait()
    hold()
    barrier.wait()
def workers(method):
    context = multiprocessing.get_context(method)
    barrier = context.Barrier(3)
    found = [context.Process(target=worker, args=(barrier,)) for _ in range(2)]
    for each in found:
        each.start()
    barrier.wait()
    peak()
    barrier.wait()
    for each in found:
        each.join()
"""

POOL = f"""
{WORKERS}
import numpy
shared = numpy.ones(4 << 20)
def work():
    return shared * 2
if __name__ == "__main__":
    workers("fork")
"""

SPAWN = f"""
{WORKERS}
def work():
    return b"x" * (24 << 20)
if __name__ == "__main__":
    kept = b"x" * (24 << 20)
    workers("spawn")
"""

EXEC = """
kept = b"x" * ((24 if "again" in sys.argv else 32) << 20)
peak()
if "again" not in sys.argv:
    os.execv(sys.executable, [sys.executable, __file__, "again"])
"""


PROGRAMS = {"cow": COPY_ON_WRITE, "file": MAPPED_FILE, "numpy": POOL, "spawn": SPAWN, "exec": EXEC}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_the_peak_of_a_job_is_the_kernels_sum_of_proportional_shares(name: str, tmp_path: Path) -> None:
    data, program = tmp_path / "data", tmp_path / "program.py"
    data.write_bytes(b"x" * (48 << 20))
    program.write_text(COMMON + PROGRAMS[name])
    command: List[harness.Argument] = [harness.PYTHON, program, data]
    alone = harness.run(command)
    recording = harness.record(command, ["--pages=yes", "--trace-children=yes"], {"HOLD": HOLD})
    assert recording.returncode == 0, recording.stderr
    job = join([(str(trace), recording.load(trace)) for trace in recording.traces])
    at = job.peak()
    assert at.on("total") == pytest.approx(max(map(int, alone.stdout.split())), rel=TOLERANCE)
    assert ledger_of(at).total.bytes + sum(adjustments(at)) == at.on("total")


def test_a_process_that_is_not_recorded_is_no_part_of_the_job(tmp_path: Path) -> None:
    """Though it runs the same interpreter."""
    program = tmp_path / "program.py"
    program.write_text(f"{COMMON}\nforks(2, lambda: bytearray(8 << 20))")
    with subprocess.Popen([str(harness.PYTHON), "-c", "input()"], stdin=subprocess.PIPE) as other:
        recording = harness.record([harness.PYTHON, program], ["--pages=yes"], {"HOLD": "5"}, status=0)
        other.communicate(b"\n")
    profiles = [recording.load(trace) for trace in recording.traces]
    read = {name[len("pss.") :] for profile in profiles for name in profile.system if name.startswith("pss.")}
    assert len(read & {profile.manifest["pid"] for profile in profiles}) > 1 and str(other.pid) not in read
