# SPDX-License-Identifier: GPL-2.0-or-later
"""A test that hangs costs a run ten minutes, and not its end."""

import re
import sys
from pathlib import Path

from tests.harness import ROOT, run

HANGS = """
import ctypes, signal, subprocess, threading

def test_one_that_waits():
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    subprocess.run("(setsid sleep 101 &); sleep 102 & sleep 103", shell=True)

def test_the_next():
    pass

def test_one_that_no_signal_wakes():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    ctypes.CDLL(None).sleep(100)

def test_the_last():
    pass
"""


def test_a_test_that_hangs_is_named_fails_and_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "test_hangs.py"
    file.write_text(HANGS)
    command = [sys.executable, "-m", "pytest", "-p", "tests.running", "-p", "no:cacheprovider", "-q", "-n1", f"{file}"]
    done = run(command, {"JMASSIF_TEST_LIMIT": "3", "PYTHONPATH": f"{ROOT}"}, cwd=tmp_path, timeout=100)
    assert "2 failed, 2 passed" in done.stdout, done
    waits, wakes = "test_hangs.py::test_one_that_waits", "test_hangs.py::test_one_that_no_signal_wakes"
    assert set(re.findall(r"^FAILED (\S+)", done.stdout, re.MULTILINE)) == {waits, wakes}
    # As it goes: the name, then the stacks of both threads, and what was killed: a child, its child, and one without a parent.
    assert re.search(rf"^\d s so far: {waits}$", done.stderr, re.MULTILINE)
    assert re.search(rf"^\d+ s in all: {waits}$", done.stderr, re.MULTILINE)
    stacks, _, killed = done.stderr.partition("killed")
    assert "in test_one_that_waits" in stacks and "threading.py" in stacks
    sleepers = dict(re.findall(r"(\d+), sleep (10\d) : " + waits, killed))
    assert sorted(sleepers.values()) == ["101", "102", "103"]
    for process in sleepers:
        words = Path(f"/proc/{process}/cmdline")
        assert not words.exists() or words.read_bytes() == b""  # of one whose parent has not asked for it
    assert "in test_one_that_no_signal_wakes" in done.stderr.partition("Timeout")[2]
