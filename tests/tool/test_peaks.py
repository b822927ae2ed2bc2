# SPDX-License-Identifier: GPL-2.0-or-later
"""The three peaks are exact: totals, and who held what, against a replay by brute force of a program's own log.

peaks.c walks up and down at random and logs every event. The replay keeps the whole composition, and copies it whenever a
total is larger than ever, which is what a peak is.
"""

import struct
import tempfile
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

import pytest

from jmassif.model.records import PEAKS, LiveBytesByAccount, side_of
from jmassif.model.run import Profile
from tests import harness
from tests.tool import programs
from tests.tool.cuda_ledger import assert_totals_are_sums, at_marks

N_EVENTS = 100_000
HEAP_ADMIN = 8  # the recorder's default

OBTAIN, RESIZE, RELEASE = range(3)
HEAP_SITES = [("heap_%d" % i, "heap") for i in range(5)]
SITES = HEAP_SITES + [("device_%d" % i, "device") for i in range(3)] + [("managed_0", "managed")]
SITES += [("pinned_%d" % i, "pinned") for i in range(2)]
_EVENT = struct.Struct("BBH4xQQ")

Key = Tuple[str, str, str]  # function of the program, kind, owner
Held = Dict[Key, Tuple[int, int]]  # bytes and blocks

OVERHEAD = ("", "heap-overhead", "app")


class Step(NamedTuple):
    """Bytes and blocks that come or go together."""

    key: Key
    bytes: int
    blocks: int


class Maximum:
    """Of one total: what it was at its largest, and who held it when it came to be."""

    def __init__(self, side: str) -> None:
        self.sides = ("host", "device") if side == "total" else (side,)
        self.bytes = -1
        self.totals: Dict[str, int] = {}
        self.held: Held = {}

    def after(self, totals: Dict[str, int], held: Held) -> None:
        total = sum(totals[side] for side in self.sides)
        if total > self.bytes:
            self.bytes, self.totals, self.held = total, dict(totals), dict(held)


class Replay:
    def __init__(self, held: Held) -> None:
        self.held = dict(held)
        self.totals = {"host": 0, "device": 0}
        for (_, kind, _), (n_bytes, _) in held.items():
            self.totals[str(side_of(kind))] += n_bytes
        self.maxima = {which: Maximum(which) for which in PEAKS}
        self.slots: Dict[int, Tuple[Key, int, int]] = {}  # key, bytes, overhead

    def change(self, *steps: Step) -> None:
        """Steps that are one event of the ledger: what they come to is what the total sees."""
        for key, n_bytes, n_blocks in steps:
            before = self.held.get(key, (0, 0))
            self.held[key] = (before[0] + n_bytes, before[1] + n_blocks)
            self.totals[str(side_of(key[1]))] += n_bytes
        for maximum in self.maxima.values():
            maximum.after(self.totals, self.held)

    def event(self, operation: int, site: int, slot: int, n_bytes: int, usable: int) -> None:
        key: Key = SITES[site] + ("app",)
        overhead = usable - n_bytes + HEAP_ADMIN if key[1] == "heap" else 0
        if operation == OBTAIN:
            self.change(Step(key, n_bytes, 1))
            if key[1] == "heap":
                self.change(Step(OVERHEAD, overhead, 1))
            self.slots[slot] = (key, n_bytes, overhead)
            return
        old_key, old_bytes, old_overhead = self.slots.pop(slot)
        if operation == RELEASE:
            self.change(Step(old_key, -old_bytes, -1))
            if old_key[1] == "heap":
                self.change(Step(OVERHEAD, -old_overhead, -1))
            return
        # The block changes hands; of its bytes and its overhead, what shrinks does so first.
        block = [Step(old_key, -old_bytes, -1), Step(key, n_bytes, 1)]
        extra = [Step(OVERHEAD, overhead - old_overhead, 0)]
        for steps in (block, extra) if n_bytes < old_bytes else (extra, block):
            self.change(*steps)
        self.slots[slot] = (key, n_bytes, overhead)


def by_key(profile: Profile, program: Path, composition: LiveBytesByAccount) -> Held:
    sums: Held = {}
    for account_id, (n_bytes, n_blocks) in composition.items():
        node, kind, owner = profile.accounts[account_id]
        key = (harness.user_function(profile, node, program), kind, owner)
        before = sums.get(key, (0, 0))
        sums[key] = (before[0] + n_bytes, before[1] + n_blocks)
    return sums


def without_zeros(held: Held) -> Held:
    return {key: value for key, value in held.items() if value != (0, 0)}


def read_log(path: Path) -> List[Tuple[int, int, int, int, int]]:
    return list(_EVENT.iter_unpack(path.read_bytes()))  # type: ignore[arg-type]


def record_walk(
    sim: Path, seed: int, *options: str
) -> Tuple[Path, harness.Recording, List[Tuple[int, int, int, int, int]]]:
    """The program, its run, its log."""
    headers = f"-I{harness.ROOT / 'jmassif'}"
    program = programs.program("peaks.c", "-O1", headers, str(sim / "libcuda.so.1"), f"-Wl,-rpath,{sim}")
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "log"
        recording = harness.record([program, str(N_EVENTS), str(seed), log], options, status=0)
        events = read_log(log)
    assert len(events) == N_EVENTS
    return program, recording, events


@pytest.mark.parametrize("seed", range(1, 7))
def test_peaks_are_those_of_a_replay_of_every_event(sim: Path, seed: int) -> None:
    program, recording, events = record_walk(sim, seed)
    profile = recording.profile

    begin, *_ = at_marks(profile)
    replay = Replay(by_key(profile, program, begin))
    for event in events:
        replay.event(*event)

    assert by_key(profile, program, profile.composition(len(profile.snapshots) - 1)) == without_zeros(replay.held)
    for which, maximum in replay.maxima.items():
        peak = profile.peaks[which]
        assert {"host": peak.host, "device": peak.device} == maximum.totals, which
        assert by_key(profile, program, profile.peak_composition(which)) == without_zeros(maximum.held), which
    assert assert_totals_are_sums(recording.trace) > 20


@pytest.mark.parametrize("seed", range(7, 9))
def test_with_pages_the_peak_of_what_was_allocated_is_as_exact(sim: Path, seed: int) -> None:
    program, recording, events = record_walk(sim, seed, "--pages=yes")
    profile = recording.profile

    def allocated(composition: LiveBytesByAccount) -> Held:
        kind = {account: profile.accounts[account].kind for account in composition}
        exact = {account: held for account, held in composition.items() if not profile.is_sampled(kind[account])}
        return by_key(profile, program, exact)

    begin, *_ = at_marks(profile)
    replay = Replay(allocated(begin))
    for event in events:
        replay.event(*event)

    maximum = replay.maxima["total"]
    peak = profile.peaks["allocated"]
    assert profile.allocated_bytes(peak.by_kind) == maximum.bytes < peak.host + peak.device
    assert allocated(profile.peak_composition("allocated")) == without_zeros(maximum.held)
    device = profile.peaks["device"]
    assert allocated(profile.peak_composition("device")) == without_zeros(replay.maxima["device"].held)
    assert device.device == replay.maxima["device"].bytes
    total = profile.peaks["total"]
    assert total.host + total.device >= peak.host + peak.device
    assert assert_totals_are_sums(recording.trace) > 20
