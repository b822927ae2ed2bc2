# SPDX-License-Identifier: GPL-2.0-or-later
"""The example, as ./bootstrap demo runs it: on a simulated Jetson Nano, where the report has the figures that the script prints."""

import re
from pathlib import Path
from typing import Dict, List

import pytest

from jmassif.analysis import balance as reconciliation
from jmassif.analysis.aggregate import ledger
from jmassif.export import memory_viz
from jmassif.model import run_info as about
from jmassif.model.run import Profile
from jmassif.render.view import View
from jmassif.units import size
from tests import harness
from tests.harness import PYTHON, ROOT, Argument, Recording
from tests.reporter.snapshot_reader import read, sums
from tests.tool import board

MIB = 1 << 20
BOARD_BYTES = 4 << 30


@pytest.fixture(name="demo")
def fixture_demo(sim: Path) -> Recording:
    board.require_board(sim)
    command: List[Argument] = [PYTHON, ROOT / "docs/examples/train.py", "--device=sim"]
    return harness.recorded(
        command,
        options=["--pages=yes", f"--board-root={sim}/jetpack-4.6.1/root", f"--owners={sim}/jmsim.rules"],
        env={"JMSIM_LIB": str(sim)},
        launcher=board.launcher(sim, "r32", f"--memory={BOARD_BYTES}", "--machine"),
        timeout=300,
    )


def at_peak(profile: Profile) -> Dict[str, int]:
    """Bytes by owner."""
    made = ledger(profile, profile.peak_composition("total"))
    return {row.name: row.bytes for row in made.owners}


def test_the_report_has_the_scripts_own_figures(demo: Recording) -> None:
    printed = re.search(r"^tensors (.*), at most (.*); reserved by the allocator (.*)$", demo.stdout, re.MULTILINE)
    assert printed, demo.stdout
    tensors, at_most, reserved = printed.groups()
    owners = at_peak(demo.profile)
    assert (size(owners["tensor"]), size(owners["tensor"] + owners["cache"])) == (tensors, reserved)
    assert demo.profile.counters.get("cuda-alloc-retries", 0) == 0  # the cache was never emptied for lack of memory
    # What a person is to see: most of what is reserved is none of the tensors'.
    assert (tensors, at_most, reserved) == ("1.09 GiB", "1.70 GiB", "2.55 GiB")


def test_the_file_for_memory_viz_has_the_scripts_own_figures(demo: Recording) -> None:
    printed = re.search(r"^tensors (.*), at most .*; reserved by the allocator (.*)$", demo.stdout, re.MULTILINE)
    assert printed, demo.stdout
    snapshot = read(b"".join(memory_viz.write(demo.profile, View("peak", 0.0, "owner", 70))))
    handed_out: Dict[str, Dict[int, int]] = {}
    for entry in snapshot["device_traces"][0]:
        if entry["action"] == "alloc":
            handed_out.setdefault(entry["category"], {})[entry["addr"]] = entry["size"]
        elif entry["action"] == "free_completed":
            for blocks in handed_out.values():
                blocks.pop(entry["addr"], None)
    tensors = sum(handed_out.pop("tensor").values())
    # What libraries have asked CUDA for lies in no segment of the allocator's.
    reserved = sums(snapshot).reserved - sum(sum(blocks.values()) for blocks in handed_out.values())
    assert (size(tensors), size(reserved)) == printed.groups()


def test_tensors_have_roles(demo: Recording) -> None:
    profile = demo.profile
    roles: Dict[str, int] = {}
    for account, (n_bytes, _) in profile.peak_composition("total").items():
        role = profile.roles.get(account, "")
        if role and n_bytes:
            roles[role] = roles.get(role, 0) + n_bytes
    assert set(roles) == {"parameter", "gradient", "optimizer"}
    assert roles["parameter"] == roles["gradient"] == roles["optimizer"] == at_peak(profile)["tensor"] // 3


def test_the_machine_is_the_simulated_board(demo: Recording) -> None:
    facts = dict(about.about(demo.profile))
    assert "Simulated Jetson Nano" in facts["Machine"] and size(BOARD_BYTES) in facts["Machine"]
    made = reconciliation.memory_balance(demo.profile, reconciliation.sampled(demo.profile)[-1])
    assert made.board == BOARD_BYTES and abs(made.unaccounted) < MIB


def test_the_context_costs_what_the_boards_driver_commits_and_the_heap_beside_it(demo: Recording) -> None:
    assert size(at_peak(demo.profile)["context"]) == "57.6 MiB"
