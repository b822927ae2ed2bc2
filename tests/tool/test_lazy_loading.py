# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel code that the driver loads at the first call that needs it, not with its module, is `module`'s."""

from pathlib import Path
from typing import Dict

import pytest

from tests.tool import board, cuda_ledger, programs

WAYS = ("launch", "launch-ex", "function", "module", "graph", "graph-launch")
LAZY = {"CUDA_MODULE_LOADING": "LAZY", "LD_PRELOAD": str(board.harness.BUILD / "jmassif" / "libjmassif.so")}
CODE = 2 << 20  # of a module, tests/sim/costs.h


def driver_by_owner(profile: board.Profile, held: board.LiveBytesByAccount) -> Dict[str, int]:
    sums: Dict[str, int] = {}
    for account, (n_bytes, _) in held.items():
        if profile.accounts[account].kind.startswith("driver"):
            owner = profile.accounts[account].owner
            sums[owner] = sums.get(owner, 0) + n_bytes
    return sums


@pytest.mark.parametrize("functions", ["exported", "twin"])
@pytest.mark.parametrize("tables", [".", "nounwind"])
@pytest.mark.parametrize("way", WAYS)
def test_code_that_is_loaded_late_belongs_to_module(sim: Path, way: str, tables: str, functions: str) -> None:
    board.require_board(sim)
    env = {**LAZY, "LD_LIBRARY_PATH": f"{sim / tables}:{sim}", "JMSIM_PROC_ADDRESS": functions}
    recording = board.harness.record(
        [sim / "programs" / "cuda_lazy", way], env=env, launcher=board.launcher(sim, "rm580"), status=0
    )
    profile = recording.profile
    loaded, used = (driver_by_owner(profile, held) for held in cuda_ledger.at_marks(profile))
    committed = [figures["committed"] for _, figures in cuda_ledger.points(recording.stdout)]
    assert committed[1] - committed[0] >= CODE
    assert used == {**loaded, "module": loaded.get("module", 0) + committed[1] - committed[0]}
    for account in cuda_ledger.at_marks(profile)[1]:
        if profile.accounts[account].owner == "module" and profile.accounts[account].kind == "driver":
            assert programs.functions(profile, profile.accounts[account].node)[-2:] == ["use_kernel", "main"]
