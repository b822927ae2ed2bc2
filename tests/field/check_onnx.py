# SPDX-License-Identifier: GPL-2.0-or-later
"""ONNX Runtime with its CUDA provider, as modules of npm have them: what the ledger says against what its arena counts.

`run` makes the root and starts this. The name keeps these tests out of `make check`.
"""

import json
from typing import Dict, List

import pytest

from jmassif.model.records import DEVICE_KINDS
from tests.field.inside import COMMITTED_KINDS, HOSTS, Recorded, alone, needs, recorded
from tests.field.onnx import WIDTHS

each = pytest.mark.parametrize("host", HOSTS)
COMMAND = ("/opt/field/onnx/onnx", "/opt/field/onnx/model.onnx")
BESIDE = {"session": (0, 0), "runs": (4, 1)}  # bytes and blocks that the first run allocates outside the arena


def run(host: str) -> Recorded:
    needs(COMMAND[0])
    made = recorded(host, COMMAND)
    assert made.ran.status == 0, made.ran.err[-4000:]
    return made


def arena(made: Recorded, when: str) -> Dict[str, int]:
    """Return what the arena says of itself after the session was made, or after the runs."""
    (line,) = [line for line in made.ran.out.splitlines() if line.startswith(f"{when}: ")]
    figures: Dict[str, int] = json.loads(line.partition(": ")[2])
    return figures


def cached(made: Recorded, when: str) -> List[int]:
    """Bytes and blocks of the device that belong to the arena's owner at the mark."""
    profile = made.profile
    (mark,) = [mark for mark in profile.marks if mark.text == when]
    rows = profile.composition(mark.snapshot or 0)
    pairs = [rows[each] for each in rows if profile.accounts[each][1:] == ("device", "cache")]
    return [sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)]


@each
def test_its_results_are_those_that_it_has_alone(host: str) -> None:
    needs(COMMAND[0])
    without = alone(COMMAND)
    assert without.status == 0 and without.out.count("result") == 4 and run(host).ran.out == without.out


@each
def test_its_arena_is_what_it_counts(host: str) -> None:
    made = run(host)
    counted = {when: arena(made, when) for when in ("session", "runs")}
    assert counted["runs"]["TotalAllocated"] > counted["session"]["TotalAllocated"]
    for when, figures in counted.items():
        n_bytes, n_blocks = BESIDE[when]
        assert cached(made, when) == [figures["TotalAllocated"] + n_bytes, figures["NumArenaExtensions"] + n_blocks]


@each
def test_weights_fill_the_arena_that_a_session_makes(host: str) -> None:
    """Each of them is a multiple of the arena's alignment."""
    weights = sum(4 * n_out * (n_in + 1) for n_in, n_out in zip(WIDTHS, WIDTHS[1:]))
    first = arena(run(host), "session")
    assert first["InUse"] == first["TotalAllocated"] == weights


@each
def test_device_memory_has_owners_and_is_what_the_boards_kernel_has_committed(host: str) -> None:
    made = run(host)
    held = made.at_peak()
    on_device = {owner for (kind, owner), n_bytes in held.items() if kind in DEVICE_KINDS and n_bytes}
    assert {"cache", "cublas", "context"} <= on_device and not on_device & {"app", "lib", "unknown"}
    assert sum(n_bytes for (kind, _), n_bytes in held.items() if kind in COMMITTED_KINDS) == made.committed


@each
def test_nothing_that_it_calls_is_left_out(host: str) -> None:
    assert run(host).unknown == {}
