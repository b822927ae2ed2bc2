# SPDX-License-Identifier: GPL-2.0-or-later
"""What tensors are for, against PyTorch's own arithmetic at every mark of scripts/train.py, to the byte."""

import collections
from typing import Counter, Dict, List, Tuple

import pytest

from tests.torch.finished import Finished, finished

ROLES = ("parameter", "gradient", "optimizer", "activation", "input", "temporary")
# The state that an optimizer keeps: so many times the parameters. Adam counts its steps, too, in a tensor per parameter.
STATE = {"sgd": 0, "momentum": 1, "foreach": 1, "adam": 2}
N_PARAMETERS = 10
STEP_BYTES = 4
# Buffers of the one batch norm: mean and variance of 8 channels, and a count of batches.
BUFFER_BYTES = 8 * 4 + 8 * 4 + 8


@pytest.fixture(scope="module")
def train() -> Finished:
    return finished("train.py")


def at_marks(run: Finished) -> Dict[str, Counter[str]]:
    """By mark: bytes by role. In one walk over the snapshots."""
    kinds = [account.kind for account in run.profile.accounts]
    role_of = [run.profile.role(account) if kind == "heap" else None for account, kind in enumerate(kinds)]
    live: Dict[int, int] = {}
    sums: Counter[str] = collections.Counter()
    found = {}
    marks = iter(run.profile.marks)
    for snapshot in run.profile.snapshots:
        rows = snapshot.changes
        for account, n_bytes in zip(rows.account, rows.bytes):
            role = role_of[account]
            if role:
                sums[role] += n_bytes - live.get(account, 0)
                live[account] = n_bytes
        if snapshot.reason == "mark":
            found[next(marks).text] = collections.Counter(sums)
    return found


@pytest.mark.parametrize("role", ROLES)
def test_roles_are_what_pytorch_reckons(train: Finished, role: str) -> None:
    told = {line["mark"]: line[role] for line in train.told if role in line}
    assert len(told) > 30 and (role == "temporary" or any(told.values()))
    ours = at_marks(train)
    differences: Dict[str, Tuple[int, int]] = {
        mark: (ours[mark][role], theirs) for mark, theirs in told.items() if ours[mark][role] != theirs
    }
    assert differences == {}


@pytest.mark.parametrize("optimizer", sorted(STATE))
def test_an_optimizers_state_is_a_multiple_of_the_parameters(train: Finished, optimizer: str) -> None:
    found = at_marks(train)[f"{optimizer} 2 step"]
    parameters = found["parameter"] - BUFFER_BYTES
    assert found["gradient"] == parameters
    steps = N_PARAMETERS * STEP_BYTES if optimizer == "adam" else 0
    assert found["optimizer"] == STATE[optimizer] * parameters + steps


def test_gradients_at_a_peak_inside_the_backward_pass_are_those_that_outlived_it(train: Finished) -> None:
    (line,) = (line for line in train.told if line["mark"] == "peak")
    at_peak = train.tensors(train.profile.peak_composition("total"), lambda account: train.profile.role(account) or "")
    assert 0 < line["gradient"] < line["parameter"]
    assert {role: at_peak[role] for role in ("parameter", "gradient", "optimizer")} == {
        role: line[role] for role in ("parameter", "gradient", "optimizer")
    }
    # What the hook allocated to make this the peak, and what the pass needs on its way.
    assert at_peak["temporary"] > 40_000_000
    # A mark inside the pass hears from the parameters themselves which have their gradients by then.
    at_mark = at_marks(train)["peak"]
    assert at_mark["gradient"] == line["gradient"]
    assert at_mark["temporary"] == at_peak["temporary"]


def test_blocks_that_change_their_role_end_and_begin_anew(train: Finished) -> None:
    live: Dict[int, int] = {}
    ends: List[int] = []
    for line in train.trace.read_text(errors="replace").splitlines():
        fields = line.split(" ")
        if fields[0] == "+":
            assert int(fields[2], 16) not in live
            live[int(fields[2], 16)] = int(fields[4])
        elif fields[0] == "-":
            assert live.pop(int(fields[2], 16)) == int(fields[3])
            ends.append(int(fields[3]))
    assert {train.profile.role(account) for account in ends} >= {"temporary", "gradient"}
