# SPDX-License-Identifier: GPL-2.0-or-later
"""What it costs to follow a run of PyTorch: it goes on beside the program, on a board with little memory."""

import os
import subprocess
import sys

from tests.harness import ROOT
from tests.torch.finished import finished


def test_a_run_of_pytorch_is_followed_in_little_memory_and_time() -> None:
    run = finished("train.py")
    command = [sys.executable, "-B", str(ROOT / "reporter/jm_top"), "--once", str(run.trace)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        shown = process.stdout.read().decode()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
    assert status == 0 and "OWNER" in shown
    assert used.ru_maxrss < 150 * 1024  # KiB
    # To read such a trace takes 2.8 s where nothing else runs, and a busy machine counts up to twice as much.
    assert used.ru_utime + used.ru_stime < 9
