# SPDX-License-Identifier: GPL-2.0-or-later
"""A program with something of everything: the ledger adds up to the simulation's own figures, and the reports show it.

cuda_mixed writes its figures without stdio, so that all heap that is live is either the program's own, which it counts, or
the simulated libraries', which the simulation counts.
"""

import re
import shutil
from pathlib import Path
from typing import Dict, Mapping, Optional, Tuple

import pytest

from jmassif.model.records import DEVICE_KINDS, HOST_KINDS
from jmassif.model.run import Profile
from tests import harness
from tests.harness import Recording
from tests.tool import programs
from tests.tool.cuda_ledger import API_KINDS, Kinds, held_by, held_by_kind, last, library_heap, run_sim

KIB, MIB = 1 << 10, 1 << 20

# What load_model() allocates, and what a handle of each library costs on the device (tests/sim/libraries).
OWN = {
    "device": (12345678 + 54321, 2),
    "managed": (1234567, 1),
    "pinned": (393216, 1),
    "pool": (2222222, 1),
    "array": (256 * 256 * 4, 1),
    "vmm": (2 * MIB, 1),
}
CUDNN = {"device": (1536 * KIB + 64 * KIB + 4096, 3), "pinned": (8 * KIB, 1)}
CUBLAS = {"device": (4 * MIB + 64 * KIB, 2), "pinned": (4 * KIB, 1)}
# Host heap of a handle, a context, two modules, a stream and four events, in costs.h's sizes.
HEAP_SIZES = (56, 240, 1000, 8188, 65536)


def heap_cost(n_blocks: int) -> Tuple[int, int]:
    return sum(HEAP_SIZES[i % len(HEAP_SIZES)] for i in range(n_blocks)), n_blocks


def simulated(figures: str) -> Kinds:
    """What cuda_mixed printed, as held_by_kind() would have it."""
    lines = re.findall(r"^(\w+) (\d+)(?: (\d+))?$", figures, re.MULTILINE)
    kinds = {key: (int(n_bytes), int(n_blocks or 0)) for key, n_bytes, n_blocks in lines}
    kinds["pool"] = (kinds.pop("pool_reserved")[0], kinds["pool"][1])
    return {kind: held for kind, held in kinds.items() if held != (0, 0)}


def held_of(profile: Profile, owner: str, kinds: Tuple[str, ...] = API_KINDS) -> Kinds:
    def kind_of(account: int) -> Optional[str]:
        _, kind, its_owner = profile.accounts[account]
        return kind if its_owner == owner and kind in kinds else None

    return held_by(profile, last(profile), kind_of)


def assert_adds_up(profile: Profile, figures: str) -> None:
    expected = simulated(figures)
    ours, libraries = expected.pop("ours", (0, 0)), expected.pop("heap")
    assert held_by_kind(profile, last(profile)) == expected
    assert library_heap(profile, last(profile)) == libraries

    host = held_by_kind(profile, last(profile), ("heap", "heap-overhead"))
    loader = held_of(profile, "loader", ("heap",)).get("heap", (0, 0))
    assert host["heap"] == tuple(sum(held[column] for held in (ours, libraries, loader)) for column in (0, 1))
    assert host["heap-overhead"][1] == host["heap"][1]
    sides = profile.snapshots[-1]
    assert sides.host == host["heap"][0] + host["heap-overhead"][0] + expected.get("pinned", (0, 0))[0]
    assert sides.device == sum(n_bytes for kind, (n_bytes, _) in expected.items() if kind in DEVICE_KINDS)
    assert set(held_by_kind(profile, last(profile), HOST_KINDS + DEVICE_KINDS)) == set(expected) | set(host)


@pytest.fixture(scope="module")
def mixed(sim: Path) -> Recording:
    recording = run_sim(sim, "cuda_mixed", "_exit")
    assert recording.returncode == 7, recording.stderr
    return recording


@pytest.mark.parametrize("end", ["_exit", "exit", "return"])
def test_the_ledger_adds_up_to_the_simulations_figures_however_the_program_ends(sim: Path, end: str) -> None:
    recording = run_sim(sim, "cuda_mixed", end)
    assert recording.returncode == 7
    assert_adds_up(recording.profile, recording.stdout)
    # Only what comes through exit() has the C library let go of what it keeps for itself.
    assert ("heap" in held_of(recording.profile, "loader", ("heap",))) == (end == "_exit")


def test_it_adds_up_when_all_is_freed(sim: Path) -> None:
    recording = run_sim(sim, "cuda_mixed", "free")
    assert recording.returncode == 0
    before, at_end = recording.stdout.split("\ndevice 0 0\n")
    assert "\nours " in before
    assert_adds_up(recording.profile, at_end)
    assert held_by_kind(recording.profile, last(recording.profile)) == {}


def test_each_owner_holds_what_it_asked_for(mixed: Recording) -> None:
    profile = mixed.profile
    assert held_of(profile, "app") == OWN
    assert held_of(profile, "cudnn") == CUDNN
    assert held_of(profile, "cublas") == CUBLAS
    used = OWN["pool"][0]
    reserved = simulated(mixed.stdout)["pool"][0]
    assert held_of(profile, "cache") == {"pool": (reserved - used, 0)}


def test_what_libraries_keep_on_the_heap_is_theirs_by_cause(mixed: Recording) -> None:
    def heap(owner: str) -> Tuple[int, int]:
        return held_of(mixed.profile, owner, ("heap",))["heap"]

    def total(*parts: Tuple[int, int]) -> Tuple[int, int]:
        return sum(part[0] for part in parts), sum(part[1] for part in parts)

    init, primary, stream, event = heap_cost(60), heap_cost(600), heap_cost(4), heap_cost(1)
    assert heap("context") == total(init, primary, stream, event, event, event, event)
    assert heap("module") == total(heap_cost(20), heap_cost(20))
    assert heap("cudart") == heap_cost(10)
    assert heap("cudnn")[1] == 150 + 1 and heap("cublas")[1] == 60 + 1  # and a block for the handle itself


# ---- reports ---------------------------------------------------------------------------------


def rows(report: str, heading: str) -> Dict[str, str]:
    """The lines of a section by their first word."""
    section = re.split(r"^--- ", report, flags=re.MULTILINE)
    text = next(part for part in section if part.startswith(heading))
    return {line.split()[0]: line for line in text.split("\n") if line.strip()}


def sums_by(profile: Profile, which: str) -> Mapping[str, int]:
    held: Dict[str, int] = {}
    for account, (n_bytes, _) in profile.peak_composition(which).items():
        owner = profile.accounts[account].owner
        held[owner] = held.get(owner, 0) + n_bytes
    return held


def test_the_report_has_the_ledger_at_the_peak_to_the_byte(mixed: Recording) -> None:
    done = programs.print_report(mixed.trace, "--all")
    assert done.returncode == 0, done.stderr
    ledger = rows(done.stdout, "By owner")
    by_owner = sums_by(mixed.profile, "total")
    assert {"app", "cache", "cudnn", "cublas", "context", "module", "cudart"} <= set(by_owner)
    for owner, n_bytes in by_owner.items():
        assert f" {n_bytes:,} " in ledger[owner]
    peak = mixed.profile.peaks["total"]
    assert f" {peak.host + peak.device:,} " in ledger["total"]
    assert f"{sum(by_owner.values()):,}" in ledger["total"]


def test_the_report_has_the_start_up_waterfall(mixed: Recording) -> None:
    # In full: which calls cost most, and are shown in short, depends on how busy the machine is.
    done = programs.print_report(mixed.trace, "--all")
    section = next(part for part in done.stdout.split("\n--- ") if part.startswith("Start-up cost"))
    lines = [line for line in section.split("\n") if ":" in line]
    calls = [re.split(r"\s{2,}", line.split(":")[0])[-1] for line in lines]
    order = [call for call in calls if call in ("cuInit", "cuDevicePrimaryCtxRetain", "cudnnCreate", "cublasCreate_v2")]
    assert order == ["cuInit", "cuDevicePrimaryCtxRetain", "cudnnCreate", "cublasCreate_v2"]


def test_ms_print_takes_the_massif_output(mixed: Recording, tmp_path: Path) -> None:
    if not shutil.which("ms_print"):
        pytest.skip("ms_print is not installed")
    converted = tmp_path / "massif.out"
    done = programs.print_report(mixed.trace, "--format=massif", "-o", str(converted))
    assert done.returncode == 0, done.stderr
    shown = harness.run(["ms_print", converted])
    assert shown.returncode == 0 and not shown.stderr
    peak = mixed.profile.peaks["total"]
    assert sum(harness.massif_peak(converted.read_text())) == peak.host + peak.device
    assert f"{peak.host + peak.device:,}" in shown.stdout
