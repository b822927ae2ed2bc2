# SPDX-License-Identifier: GPL-2.0-or-later
"""What it costs to follow a run of PyTorch: it goes on beside the program, on a board with little memory."""

import sys

from tests.harness import ROOT, run
from tests.torch.finished import finished

# The kernel's figure of a child begins with what its parent had, so the process is asked for its own.
MEASURED = """
import re, resource, sys
sys.path.insert(0, sys.argv.pop(1))
from jmassif.cli.main import run
try:
    run()
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = re.search("VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read()).group(1)
    print(most, used.ru_utime + used.ru_stime, file=sys.stderr)
"""


def test_a_run_of_pytorch_is_followed_in_little_memory_and_time() -> None:
    trace = finished("train.py").trace
    shown = run([sys.executable, "-B", "-c", MEASURED, ROOT / "reporter", "top", "--once", trace])
    assert shown.returncode == 0 and "OWNER" in shown.stdout
    most_kib, seconds = shown.stderr.split()
    assert int(most_kib) < 150 * 1024
    # To read such a trace takes 2.8 s where nothing else runs, and a busy machine counts up to twice as much.
    assert float(seconds) < 9
