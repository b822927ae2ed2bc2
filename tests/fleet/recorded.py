# SPDX-License-Identifier: GPL-2.0-or-later
"""The few real runs that a simulated fleet is made of: one program, recorded in more and less detail."""

import os
from pathlib import Path
from typing import List, NamedTuple, Sequence

from tests import harness
from tests.harness import MADE, PYTHON, ROOT, lock


class Detail(NamedTuple):
    name: str
    steps: int
    snapshots: int
    depth: int
    share: int  # of 100 boards


# From 58 KB to 1.8 MB, the smallest first. Without callers a trace names no line of the script.
DETAILS = (
    Detail("shallow", 3, 10, 1, 10),
    Detail("short", 3, 10, 30, 40),
    Detail("middle", 40, 100, 30, 25),
    Detail("long", 300, 400, 30, 15),
    Detail("longest", 1700, 1000, 30, 10),
)


def recorded(sim: Path, details: Sequence[Detail] = DETAILS) -> List[Path]:
    """A trace of each; recorded once for a build tree."""
    directory = MADE / "fleet"
    program = ROOT / "tests" / "fleet" / "program.py"
    newest = max(path.stat().st_mtime for path in (program, ROOT / "jmassif" / "trace" / "trace.c"))
    with lock("fleet"):
        directory.mkdir(parents=True, exist_ok=True)
        found = [directory / f"{detail.name}.jmassif" for detail in details]
        for path, detail in zip(found, details):
            if not path.exists() or path.stat().st_mtime < newest:
                _record(sim, program, detail, path)
    return found


def _record(sim: Path, program: Path, detail: Detail, path: Path) -> None:
    options = [
        f"--max-snapshots={detail.snapshots}",
        f"--depth={detail.depth}",
        f"--board-root={sim}/jetpack-4.6.1/root",
        f"--owners={sim}/jmsim.rules",
    ]
    # As `python3` finds it, and not by the path on this machine.
    command: List[harness.Argument] = [PYTHON, "-I", "-S", "-B", program.name, sim, str(detail.steps)]
    recording = harness.record(command, options=options, cwd=program.parent)
    assert recording.returncode == 0, recording.stderr
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_bytes(recording.trace.read_bytes())
    beside.replace(path)
