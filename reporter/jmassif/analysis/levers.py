# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes to a training, each with the bytes of it that its trace has at the peak of its tensors. Sizes are bytes.

They are not to be added up: half of what optimizer state has returns nothing once there is none.
"""

from bisect import bisect_left
from itertools import accumulate, compress
from typing import Dict, List, NamedTuple, Optional, Tuple

from jmassif.analysis.allocator_steps import Steps, any_steps
from jmassif.analysis.held_twice import held_twice
from jmassif.analysis.moments import Moment
from jmassif.analysis.oom import line_of
from jmassif.attribution.names import Names
from jmassif.model.run import Profile

# Share of the bytes at the peak: less is not worth a change.
_LEAST_SHARE = 0.01


class Lever(NamedTuple):
    # half-activations, inference, 8-bit-optimizer, smaller-workspace, no-pinned-buffers, free-copies, checkpointing
    action: str
    bytes: int
    line: str = ""  # to act at; safe to show
    is_float32: bool = False  # if these tensors are: a trace has no types


class Levers(NamedTuple):
    allocated: int  # by tensors and workspaces at their peak
    levers: List[Lever]  # the largest first


def levers_of(run: Profile, is_one_memory: bool = False, steps: Optional[Steps] = None) -> Levers:
    """`is_one_memory`: host and device will be one, whatever they were. `steps`: if known. Raises FitError."""
    steps, names = steps or any_steps(run), Names(run)
    at_peak = steps.held_at_peak()
    by_role: Dict[Optional[str], int] = {}
    workspaces: List[Tuple[int, int]] = []
    for number in at_peak:
        account = steps.accounts[number]
        role = run.role(account)
        by_role[role] = by_role.get(role, 0) + steps.sizes[number]
        if run.accounts.owner(account) in ("workspace", "cudnn"):
            workspaces.append((steps.sizes[number], account))
    state = by_role.get("optimizer", 0)
    found = [
        Lever("inference", state + by_role.get("gradient", 0)),
        Lever("8-bit-optimizer", state - state // 4, is_float32=True),
        _checkpointing(run, steps, at_peak),
    ]
    if not any("cached_cast" in text for text in run.strings.values()):
        found.append(Lever("half-activations", by_role.get("activation", 0) // 2, is_float32=True))
    if workspaces:
        n_bytes, account = max(workspaces)
        found.append(Lever("smaller-workspace", n_bytes, line_of(run, names, account)))
    if not steps.is_host and (is_one_memory or not run.is_discrete):
        position = steps.rows[at_peak[-1]] + 1
        twice = held_twice(run, names, Moment("the peak", run.blocks.time[position - 1], {}, None))
        found.append(Lever("free-copies", twice.bytes, twice.rows[0].allocated if twice.rows else ""))
        found.append(_pinned(run, names, position))
    levers = sorted(
        (lever for lever in found if lever.bytes > _LEAST_SHARE * steps.allocated),
        key=lambda lever: (-lever.bytes, lever.action),
    )
    return Levers(steps.allocated, levers)


def _pinned(run: Profile, names: Names, position: int) -> Lever:
    """Page-locked host memory, as a loader's that fetches batches ahead."""
    is_pinned = bytearray(kind == "pinned" for kind in run.accounts.by_type(lambda type_: type_.kind))
    live: Dict[int, Tuple[int, int]] = {}
    for row in compress(range(position), map(is_pinned.__getitem__, run.blocks.account)):
        _, address, size, account = run.blocks[4 * row : 4 * row + 4]
        live[address] = size, account  # no bytes where it ends
    line = line_of(run, names, max(live.values())[1]) if live else ""
    return Lever("no-pinned-buffers", sum(size for size, _ in live.values()), line)


def _checkpointing(run: Profile, steps: Steps, at_peak: List[int]) -> Lever:
    """The activations that regions made, of one depth, without the last of each: another region begins with that.

    Those of one region come back while its part of the backward pass runs: the largest is taken off.
    """
    best = Lever("checkpointing", 0)
    activations = [number for number in at_peak if run.role(steps.accounts[number]) == "activation"]
    rows = [steps.rows[number] for number in activations]
    sums = [0, *accumulate(steps.sizes[number] for number in activations)]
    for depth in sorted({region.depth for region in run.regions}):
        saved: List[Tuple[int, str]] = []
        for region in run.regions:
            if region.depth == depth and region.end is not None:
                first, after = bisect_left(rows, region.position), bisect_left(rows, region.end_position)
                saved.append((sums[max(first, after - 1)] - sums[first], region.text))
        saved = [row for row in saved if row[0]]
        n_bytes = sum(size for size, _ in saved) - max(saved, default=(0, ""))[0]
        if n_bytes > best.bytes:
            best = best._replace(bytes=n_bytes, line=", ".join(dict.fromkeys(text for _, text in saved)))
    return best
