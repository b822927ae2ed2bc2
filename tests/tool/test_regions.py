# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions and marks that a program sets: by NVTX in both its forms, and by the Python package jmassif."""

import math
import os
from pathlib import Path
from typing import Dict, List

import pytest

from jmassif.analysis.regions import regions_by_name
from jmassif.model.records import RegionFigures
from jmassif.model.records import Region
from jmassif.model.run import Profile
from tests.harness import PYTHON, ROOT, Recording, compile_c, record, recorded, run
from tests.tool.programs import assert_readable, program

MIB = 1 << 20


def figures(profile: Profile) -> Dict[str, RegionFigures]:
    """By name of the region, which comes once."""
    assert len({region.text for region in profile.regions}) == len(profile.regions)
    return {region.text: profile.region_figures(region) for region in profile.regions}


def region(profile: Profile, text: str) -> Region:
    return next(region for region in profile.regions if region.text == text)


# ---- NVTX ------------------------------------------------------------------------------------


@pytest.fixture(scope="module", name="nvtx_program")
def fixture_nvtx_program() -> Path:
    headers = Path("/usr/local/cuda/include")
    if not (headers / "nvtx3" / "nvToolsExt.h").exists():
        pytest.skip("no CUDA toolkit with NVTX's headers in /usr/local/cuda")
    return program("nvtx.c", "-fno-builtin", "-pthread", f"-isystem{headers}", "-ldl")


def test_nvtx_ranges_are_regions_with_exact_figures(nvtx_program: Path) -> None:
    recording = record([nvtx_program])
    assert_readable(recording.trace)
    profile = recording.profile
    assert [r.text for r in profile.regions] == [
        "outer",
        "größer 🧠",
        "(no message)",
        "lib: registered",
        "lib: by attributes",
        "crossing",
        "worker",
    ]
    held = figures(profile)
    # Rounding and headers of the heap are a few kilobytes at most.
    assert all(r.end is not None for r in profile.regions)
    assert [region(profile, "outer").depth, region(profile, "größer 🧠").depth] == [0, 1]
    assert held["outer"].most // MIB == held["größer 🧠"].most // MIB == 3
    assert held["outer"].host // MIB == held["größer 🧠"].host // MIB == 1
    assert held["lib: registered"].most // MIB == 1 and -2 * MIB < held["lib: registered"].host <= -MIB
    assert held["worker"].most // MIB == held["crossing"].most // MIB == 4
    assert held["worker"].host == 0
    assert region(profile, "worker").thread != region(profile, "crossing").thread
    assert region(profile, "crossing").end == pytest.approx(region(profile, "worker").end, abs=1000)


def test_nvtx_marks_are_marks(nvtx_program: Path) -> None:
    marks = [mark.text for mark in record([nvtx_program]).profile.marks]
    assert marks == ["bytes", "lib: registered", "(no message)"]


def test_nvtx_finds_a_tool_only_where_there_is_one(nvtx_program: Path) -> None:
    """Its levels say so; and the program finds the environment that it was started with."""
    without = run([nvtx_program])
    assert "PATH: yes" in without.stdout and "levels from 1;" not in without.stdout
    assert "levels from 1; tool: yes; PATH: yes" in record([nvtx_program]).stdout
    off = record([nvtx_program], ["--nvtx=no"])
    assert off.stdout == without.stdout
    assert off.profile.regions == [] and off.profile.marks == []


def test_another_tool_that_the_user_named_is_left_in_charge(nvtx_program: Path) -> None:
    recording = record([nvtx_program], env={"NVTX_INJECTION64_PATH": "/nowhere/tool.so"})
    assert recording.returncode == 0 and recording.profile.regions == []


def test_ranges_of_one_name_are_told_more_and_more_seldom(nvtx_program: Path) -> None:
    n_steps = 20000
    profile = record([nvtx_program, str(n_steps)]).profile
    told = [r for r in profile.regions if r.text == "step"]
    assert (
        256 + 128 * math.floor(math.log2(n_steps / 256)) <= len(told) <= 256 + 128 * math.ceil(math.log2(n_steps / 256))
    )
    assert all(r.end is not None for r in told)
    row = next(row for row in regions_by_name(profile) if row.text == "step")
    assert (row.calls, row.recorded) == (n_steps, len(told))


DEEP = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <jmassif.h>
static void walk(int depth)
{
    JMASSIF_REGION_BEGIN("walk");
    memset(malloc(1 << 20), 1, 1 << 20);
    usleep(20000);
    if (depth) walk(depth - 1);
    JMASSIF_REGION_END("walk");
}
int main(int argc, char **argv)
{
    for (int i = 0; i < atoi(argv[1]); i++) walk(4);
    return 0;
}
"""


@pytest.mark.parametrize("n", (2, 60))  # the second is more than are recorded one by one
def test_a_region_that_is_entered_again_inside_itself_counts_once(n: int) -> None:
    program = compile_c(
        DEEP.replace("20000", "0") if n > 2 else DEEP, "-w", f"-I{ROOT / 'jmassif'}", "-isystem/usr/include/valgrind"
    )
    profile = record([program, str(n)]).profile
    (row,) = regions_by_name(profile)
    assert row.calls == 5 * n and row.time <= profile.last_time
    if n == 2:
        assert 10 << 20 <= row.host < 11 << 20 and row.time >= 200


# ---- Python ----------------------------------------------------------------------------------

SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
import jmassif
brought = sorted(set(sys.modules) - before)
assert not {"ctypes", "array", "argparse"} & set(brought), brought

kept = []
@jmassif.region("grow")
def grow(n):
    "Grows."
    kept.append(bytearray(n << 20))
    return n

with jmassif.region("epoch \\u00e9") as epoch:
    assert grow(3) == 3 and grow.__name__ == "grow" and grow.__doc__ == "Grows."
    with jmassif.region("inner"):
        with epoch:
            bytearray(5 << 20)
    jmassif.mark("half\\0way")
    try:
        with jmassif.region("fails"):
            kept.clear()
            raise KeyError
    except KeyError:
        pass
jmassif.snapshot()
print("done", jmassif.is_recording() if len(sys.argv) > 2 else "")
"""


@pytest.fixture(name="python")
def fixture_python() -> Recording:
    recording = recorded([PYTHON, "-S", "-c", SCRIPT, str(ROOT / "reporter"), "tell"])
    assert recording.stdout == "done True\n", recording.stderr
    return recording


def test_python_regions_hold_what_was_allocated_in_them(python: Recording) -> None:
    profile = python.profile
    texts: List[str] = [r.text for r in profile.regions]
    assert texts == ["epoch é", "grow", "inner", "epoch é", "fails"]
    assert [r.depth for r in profile.regions] == [0, 1, 1, 2, 1]
    assert all(r.end is not None for r in profile.regions)
    grow, inner, fails = (profile.region_figures(region(profile, text)) for text in ("grow", "inner", "fails"))
    assert grow.host // MIB == 3
    assert inner.most - grow.most >= 5 * MIB - 65536 and inner.host < 65536
    assert -fails.host // MIB == 3 or -fails.host // MIB == 2


def test_python_marks_come_with_a_snapshot(python: Recording) -> None:
    profile = python.profile
    assert [mark.text for mark in profile.marks] == ["half�way"]
    reasons = [snapshot.reason for snapshot in profile.snapshots]
    assert reasons.count("mark") == 1 and reasons.count("request") == 1


@pytest.mark.parametrize("where", ["natively", "under another tool"])
def test_python_regions_do_nothing_elsewhere(where: str) -> None:
    command = [PYTHON, "-S", "-c", SCRIPT, str(ROOT / "reporter"), "tell"]
    tool = ["valgrind", "-q", "--tool=none"] if where == "under another tool" else []
    done = run([*tool, *command], env={**os.environ, "PYTHONWARNINGS": "error"})
    assert (done.stdout, done.returncode) == ("done False\n", 0), done.stderr
