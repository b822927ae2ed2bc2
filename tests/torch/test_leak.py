# SPDX-License-Identifier: GPL-2.0-or-later
"""Scripts that leak: the line comes first, although `import torch` holds far more, in text, to the page and by
jmassif check.
"""

import re

from tests.reporter.page_tables import page_rows
from tests.tool.programs import check, print_report
from tests.torch.finished import SCRIPTS, finished

STEPS = 30
LEAKED = STEPS * 64 * 200 * 4  # its batches' bytes
# Of the script that keeps losses: a step's images and what the layers give for these are kept by the graph.
IMAGES = 64 * 200 * 4
HIDDEN = 64 * 300 * 4


def test_losses_that_keep_their_graph_are_over_a_budget_of_no_tensors() -> None:
    losses = finished("losses.py")
    checked = check(losses.trace, "peak.total=3GiB", "end.leak.tensor=0")
    assert checked.returncode == 1
    assert "ok    peak.total" in checked.stdout and "OVER  end.leak.tensor" in checked.stdout
    growing = page_rows(losses.profile, "Growing")
    lines = (SCRIPTS / "losses.py").read_text().splitlines()
    held = {row["line"]: row["at exit"] for row in growing if row["owner"] == "tensor"}
    for code, n_bytes in (("images =", IMAGES), ("loss =", HIDDEN)):
        (number,) = (i for i, line in enumerate(lines, 1) if line.strip().startswith(code))
        assert STEPS * n_bytes <= held[f"losses.py:{number} (<module>)"] <= 1.1 * STEPS * n_bytes
    text = print_report(losses.trace).stdout
    assert re.search(r"Leak: losses\.py:\d+ \S+ keeps what it allocates: ", " ".join(text.split()))


def test_the_leaking_line_comes_first() -> None:
    leak = finished("leak.py")
    table = print_report(leak.trace, "--by=python-line", "--snapshot=end").stdout.splitlines()
    (number,) = (i for i, line in enumerate((SCRIPTS / "leak.py").read_text().splitlines(), 1) if "# leak" in line)
    text = " ".join(" ".join(table).split())
    assert f"Leak: leak.py:{number} (<module>) keeps what it allocates: " in text
    rows = [line for line in table if line.startswith("leak.py:")]
    assert rows[0].startswith(f"leak.py:{number} ") and rows[1].endswith("import torch")
    end = next(i for i, snapshot in enumerate(leak.profile.snapshots) if snapshot.reason == "end")
    held = leak.tensors(leak.profile.composition(end), lambda account: leak.names.frame(leak.names.charged(account)))
    assert held[f"leak.py:{number} (<module>)"] == LEAKED
    assert page_rows(leak.profile, "Growing")[0]["line"] == f"leak.py:{number} (<module>)"
    checked = check(leak.trace, "growth=0", "end.leak.tensor=0")
    assert checked.returncode == 1
    over = checked.stdout.split("OVER")[1:]
    assert len(over) == 2 and all(f"leak.py:{number} (<module>) (tensor), " in said for said in over), checked.stdout
