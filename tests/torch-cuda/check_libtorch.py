# SPDX-License-Identifier: GPL-2.0-or-later
"""PyTorch in C++. Its own tests on CUDA find recorded what they find alone, and the ledger follows each report: the recorder
compares all of them (bytes allocated, reserved) with the ledger, and counts differences. These tests set no marks; allocator.cc
does, and at each of them the ledger is what the allocator counts.
"""

import json
import os
import re
from pathlib import Path
from typing import List, NamedTuple

import pytest

from jmassif.model.records import DEVICE_KINDS
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from check_counters import DISAGREEMENTS
from moments import moments
from tests import trixie_root

ROOT = Path(os.environ["JMASSIF_TORCH_ROOT"])
TESTS = "/usr/lib/libtorch-cuda-test"
# But the one that divides integers for minutes.
OWN_TESTS = sorted({path.name for path in (ROOT / TESTS[1:]).glob("*cuda_*")} - {"cuda_integer_divider_test"})
# PyTorch's granularity: the test's tensor lies in a segment of 2 MiB.
SEGMENT = 2 << 20
PROGRAM = "/opt/torch/allocator"
SEEDS = (1, 2, 3)
STEPS = 400
each_host = pytest.mark.parametrize("host", ["native", "valgrind"])


class Done(NamedTuple):
    status: int
    found: List[str]  # the test cases' results


def run(command: List[str]) -> Done:
    given = {"LD_LIBRARY_PATH": "/opt/cuda"}
    done = trixie_root.run_inside(ROOT, command, given, 600)
    # Without times.
    lines = re.findall(r"^\[ *(?:OK|FAILED|PASSED|SKIPPED) *\] .*?(?= \(\d+ ms\)|$)", done.stdout, re.M)
    return Done(done.returncode, lines)


@each_host
@pytest.mark.parametrize("name", OWN_TESTS)
def test_pytorchs_own_tests_find_the_same_and_the_ledger_follows(name: str, host: str) -> None:
    """Alone, too, comparisons fail: on the device nothing is computed here."""
    program = f"{TESTS}/{name}"
    trace = ROOT / "out" / f"{name}-{host}.jmassif"
    trace.parent.mkdir(exist_ok=True)
    alone = run([program])
    if not alone.found:
        pytest.skip(f"{name} does not start on the simulated driver")
    assert run(["jmassif", "-q", f"--{host}", f"--jmassif-out-file=/out/{trace.name}", program]) == alone
    profile = load_file(str(trace))
    assert not {key: profile.counters[key] for key in DISAGREEMENTS if profile.counters.get(key)}
    if name == "cuda_allocator_test":
        assert held(profile) >= SEGMENT


def held(profile: Profile) -> int:
    """Bytes of PyTorch's allocator on the device, at their peak."""
    rows = profile.peak_composition("device")
    types = {account: profile.accounts[account][1:] for account in rows}
    return sum(
        n_bytes
        for account, (n_bytes, _) in rows.items()
        if types[account][0] in DEVICE_KINDS and types[account][1] in ("tensor", "workspace", "cache")
    )


@each_host
@pytest.mark.parametrize("seed", SEEDS)
def test_at_each_mark_the_ledger_is_what_the_allocator_counts(seed: int, host: str) -> None:
    if not (ROOT / PROGRAM[1:]).exists():
        pytest.skip(f"{PROGRAM} could not be made when tests/torch-cuda/run made {ROOT}")
    trace = ROOT / "out" / f"allocator-{seed}-{host}.jmassif"
    trace.parent.mkdir(exist_ok=True)
    command = [PROGRAM, str(seed), str(STEPS)]
    recorder = ["jmassif", "-q", f"--{host}", f"--jmassif-out-file=/out/{trace.name}"]
    alone, done = (
        trixie_root.run_inside(ROOT, words, {"LD_LIBRARY_PATH": "/opt/cuda"}, 600)
        for words in (command, [*recorder, *command])
    )
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout) and alone.returncode == 0, done.stderr
    counted = [json.loads(line) for line in done.stdout.splitlines()]
    profile = load_file(str(trace))
    found = [
        {"mark": moment.mark, "allocated": moment.handed_out, "reserved": moment.reserved}
        for moment in moments(trace, profile)
    ]
    assert [{key: line[key] for key in ("mark", "allocated", "reserved")} for line in counted] == found
    assert len(found) == STEPS // 10 + 1 and max(line["segments"] for line in counted) > 5
    assert not {key: profile.counters[key] for key in DISAGREEMENTS if profile.counters.get(key)}
