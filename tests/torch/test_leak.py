# SPDX-License-Identifier: GPL-2.0-or-later
"""A script that leaks: its line comes first, although `import torch` holds twenty times as much."""


from tests.tool.programs import print_report
from tests.torch.finished import SCRIPTS, finished

LEAKED = 60 * 64 * 200 * 4  # the script's steps, and its batches' bytes


def test_the_leaking_line_comes_first() -> None:
    leak = finished("leak.py")
    table = print_report(leak.trace, "--by=python-line", "--snapshot=end").stdout.splitlines()
    (number,) = (i for i, line in enumerate((SCRIPTS / "leak.py").read_text().splitlines(), 1) if "# leak" in line)
    assert any(line.startswith(f"Still growing at the end: leak.py:{number} (<module>) (tensor), ") for line in table)
    rows = [line for line in table if line.startswith("leak.py:")]
    assert rows[0].startswith(f"leak.py:{number} ") and rows[1].endswith("import torch")
    end = next(i for i, snapshot in enumerate(leak.profile.snapshots) if snapshot.reason == "end")
    held = leak.tensors(leak.profile.composition(end), lambda account: leak.names.frame(leak.names.charged(account)))
    assert held[f"leak.py:{number} (<module>)"] == LEAKED
