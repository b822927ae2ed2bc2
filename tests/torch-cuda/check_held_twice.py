# SPDX-License-Identifier: GPL-2.0-or-later
"""Weights that PyTorch keeps beside their copies on the GPU are held twice, to the byte."""

from check_counters import DEFAULT, ROOT, SCRIPTS, Program, run_inside
from jmassif.analysis.moments import select
from jmassif.analysis.summary import build_report
from jmassif.reader.builder import load_file

# UCX, which this build of PyTorch loads, patches mmap.
WITHOUT_HOOKS = ["env", "UCX_MEM_MMAP_HOOK_MODE=none", "UCX_MEM_EVENTS=no"]


def test_four_ways_of_loading_are_held_twice() -> None:
    trace = ROOT / "out" / "held-twice.jmassif"
    trace.parent.mkdir(exist_ok=True)
    if trace.exists():
        trace.unlink()
    command = ["jmassif", f"--jmassif-out-file=/out/{trace.name}", "python3", f"{SCRIPTS}/held_twice.py"]
    (said,) = run_inside(Program("held-twice", (), DEFAULT), WITHOUT_HOOKS + command)
    profile = load_file(str(trace))
    twice = build_report(profile, select(profile, "peak-device")).held_twice
    assert twice and sorted(row.bytes for row in twice.rows) == sorted(said.values())
    assert {(row.bytes, row.kind, row.is_pinned) for row in twice.rows} == {
        (said["load"], "heap", False),
        (said["numpy"], "heap", False),
        (said["mmap"], "file", False),
        (said["pinned"], "pinned", True),
    }
