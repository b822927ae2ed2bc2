# SPDX-License-Identifier: GPL-2.0-or-later
"""Real programs: the interpreter, and a network that is trained with PyTorch. They must not notice the recorder."""

from typing import List

from tests.harness import PYTHON, Argument, Recording, massif, need_module, record, recorded, run
from tests.tool.programs import assert_readable, at_peak, host_total, live_at
from tests.torch.finished import LENET, trained

SCRIPT = """
import contextlib, json, subprocess, sys, tempfile, threading

results = []

def work(n):
    table = {str(i): list(range(i)) for i in range(n)}
    results.append(sum(map(len, table.values())))

threads = [threading.Thread(target=work, args=(50 * n,)) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(results))

child = subprocess.run(["/bin/cat"], input=b"through a child", stdout=subprocess.PIPE)
print(child.stdout.decode(), child.returncode)
failing = subprocess.run([sys.executable, "-S", "-c", "import sys; sys.exit(41)"])
print(failing.returncode)

with tempfile.TemporaryFile("w+") as file:
    json.dump({"numbers": list(range(1000)), "text": "ä" * 100}, file)
    file.seek(0)
    print(len(json.load(file)["numbers"]))

def depth(n):
    return 1 + depth(n + 1)

with contextlib.suppress(RecursionError):
    depth(0)

def fails():
    raise ValueError("as it should")

fails()
"""


def test_a_script_with_threads_children_and_an_exception() -> None:
    command = [PYTHON, "-c", SCRIPT]
    native = run(command)
    recording = record(command, ["-q"])
    assert native.returncode == recording.returncode == 1
    assert recording.stdout == native.stdout
    assert recording.stderr == native.stderr
    assert "ValueError: as it should" in recording.stderr
    assert len(recording.traces) == 1
    assert_readable(recording.trace)
    profile = recording.profile
    # The interpreter gives back nearly all of it when it ends.
    assert at_peak(profile, "heap") > 1_000_000
    assert live_at(profile, -1) < at_peak(profile, "heap")
    assert profile.peaks["host"].host >= max(host_total(profile, i) for i in range(len(profile.snapshots)))


def assert_peak_is_massifs(recording: Recording, command: List[Argument]) -> None:
    """massif's peak is within one percent of the true one."""
    expected = massif(command, ["--depth=1"], timeout=1200)
    assert abs(at_peak(recording.profile, "heap") - expected.heap) <= 0.015 * expected.heap, (
        at_peak(recording.profile, "heap"),
        expected.heap,
    )
    assert expected.heap > 1_000_000


def test_training_a_network_goes_as_without_us() -> None:
    recording = trained(1, "--pages=yes")
    native = run([PYTHON, LENET, "1"])
    assert native.returncode == 0 and native.stdout.count("loss") == 1
    assert recording.stdout == native.stdout
    assert_readable(recording.trace)
    assert at_peak(recording.profile, "heap") > 50_000_000


def test_the_peak_of_an_interpreter_is_massifs() -> None:
    command: List[Argument] = [PYTHON, "-S", "-c", "import json\nprint(len([str(n) * 50 for n in range(20000)]))"]
    assert_peak_is_massifs(recorded(command), command)


def test_the_peak_of_a_training_is_massifs_at_length() -> None:
    """massif takes a minute to import PyTorch. Below Valgrind the processor has no AVX-512, for which oneDNN takes other
    buffers.
    """
    need_module("torch")
    command: List[Argument] = [PYTHON, LENET, "4"]
    assert_peak_is_massifs(recorded(command, env={"DNNL_MAX_CPU_ISA": "AVX2"}, timeout=1200), command)
