# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of the simulated board's programs under jmassif, and what their traces say by kind of memory.

The simulation counts what it hands out by itself; a test holds the two against each other. Every run that is made here is
also checked for what must hold in any: the program prints and returns what it does without us, and in the trace the totals
of each snapshot and of each peak are the sums of the accounts.
"""

import os
import re
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from jmassif.model.records import LiveBytesByAccount, side_of
from jmassif.model.run import Profile
from tests import harness
from tests.harness import Recording
from tests.records import records

# What the API hands out, as both the simulation and the ledger call it.
API_KINDS = ("device", "array", "managed", "pinned", "pool", "vmm", "imported")

# The simulated libraries, whose own heap the simulation counts.
_SIMULATED = re.compile(r"lib(cuda|cudart|cudnn|cublas|cublasLt|cufft|cusparse|cusolver|curand|nccl|nvinfer)[-.]")

Kinds = Dict[str, Tuple[int, int]]  # kind: (bytes, blocks)


def run_sim(
    sim: Path,
    program: str,
    *arguments: str,
    env: Optional[Mapping[str, str]] = None,
    options: Sequence[str] = (),
    marks: bool = False,
) -> Recording:
    """Runs a program of the simulation under jmassif. With `marks` there is a mark at each of its points."""
    environment = dict(env or {})
    if marks:
        environment["LD_PRELOAD"] = str(harness.BUILD / "jmassif" / "libjmassif.so")
    command: List[harness.Argument] = [sim / "programs" / program, *arguments]
    recording = harness.recorded(command, env=environment, options=options, status=None)
    native = harness.run(command, env=environment)
    assert (recording.stdout, recording.returncode) == (native.stdout, native.returncode), recording.stderr
    assert recording.traces
    for trace in recording.traces:
        assert_totals_are_sums(trace)
    return recording


def assert_totals_are_sums(trace: Path) -> int:
    """Each snapshot's and each peak's totals are the sums of its accounts. Returns how many were compared."""
    kind_of: Dict[str, str] = {}
    live: Dict[str, int] = {}
    at_peak: Dict[str, int] = {}
    stated: List[Tuple[str, List[int], Dict[str, int]]] = []
    n_compared = 0
    for fields in records(trace):
        if fields[0] == "a":
            kind_of[str(len(kind_of) + 1)] = fields[2]
        elif fields[0] == "S":
            stated = [(" ".join(fields), [int(fields[4]), int(fields[5])], live)]
        elif fields[0] == "c":
            live[fields[1]] = int(fields[2])
        elif fields[0] == "P":
            at_peak = dict(live)
            stated.append((" ".join(fields), [int(fields[3]), int(fields[4])], at_peak))
        elif fields[0] == "d":
            at_peak[fields[1]] = int(fields[2])
        elif fields[0] == "E":
            for record, totals, accounts in stated:
                sums = {"host": 0, "device": 0}
                for account, n_bytes in accounts.items():
                    side = side_of(kind_of[account])
                    if side:
                        sums[side] += n_bytes
                assert totals == [sums["host"], sums["device"]], f"{trace}: {record}"
                n_compared += 1
    return n_compared


# ---- what the simulation says ----------------------------------------------------------------


def figures(lines: str) -> Dict[str, int]:
    """Of lines "KEY VALUE"."""
    return {key: int(value) for key, value in re.findall(r"^(\w+) (\d+)$", lines, re.MULTILINE)}


def points(stdout: str) -> Iterator[Tuple[str, Dict[str, int]]]:
    """The figures at each "point NAME"."""
    for part in re.split(r"^point ", stdout, flags=re.MULTILINE)[1:]:
        name, rest = part.split("\n", 1)
        yield name, figures(rest)


def simulated_kinds(at_point: Mapping[str, int]) -> Kinds:
    """The figures of a point, as held_by_kind() would have them. A pool's unused part is in no block."""
    kinds = {kind: (at_point[kind], at_point[f"{kind}_blocks"]) for kind in API_KINDS}
    kinds["pool"] = (at_point["pool_reserved"], at_point["pool_blocks"])
    return {kind: held for kind, held in kinds.items() if held != (0, 0)}


# ---- what the ledger says --------------------------------------------------------------------


def last(profile: Profile) -> LiveBytesByAccount:
    return profile.composition(len(profile.snapshots) - 1)


def at_marks(profile: Profile) -> List[LiveBytesByAccount]:
    return [profile.composition(i) for i, snapshot in enumerate(profile.snapshots) if snapshot.reason == "mark"]


def held_by(profile: Profile, composition: LiveBytesByAccount, key: Callable[[int], Optional[str]]) -> Kinds:
    """The sums of the accounts that `key` gives the same name; those it gives none are left out."""
    sums: Kinds = {}
    for account, (n_bytes, n_blocks) in composition.items():
        name = key(account)
        if name:
            before = sums.get(name, (0, 0))
            sums[name] = (before[0] + n_bytes, before[1] + n_blocks)
    return sums


def held_by_kind(profile: Profile, composition: LiveBytesByAccount, kinds: Sequence[str] = API_KINDS) -> Kinds:
    def kind_of(account: int) -> Optional[str]:
        kind = profile.accounts[account].kind
        return kind if kind in kinds else None

    return held_by(profile, composition, kind_of)


def held_by_owner(profile: Profile, composition: LiveBytesByAccount) -> Kinds:
    return held_by(profile, composition, lambda account: profile.accounts[account].owner)


def objects(profile: Profile, node: int) -> List[str]:
    return [os.path.basename(profile.frame(frame).object) for frame in profile.stack(node)]


def library_heap(profile: Profile, composition: LiveBytesByAccount) -> Tuple[int, int]:
    """Heap that the simulated libraries asked for themselves: the frame that called malloc is theirs."""
    n_bytes = n_blocks = 0
    for account, held in composition.items():
        node, kind, _ = profile.accounts[account]
        if kind == "heap" and _SIMULATED.match(next(iter(objects(profile, node)), "")):
            n_bytes, n_blocks = n_bytes + held[0], n_blocks + held[1]
    return n_bytes, n_blocks


class Made(NamedTuple):
    """All that one function of the program ever allocated of one kind."""

    owner: str
    bytes: int
    blocks: int


def made_in(profile: Profile, program: Path, function: str) -> Dict[str, Made]:
    """By kind: what was allocated at the API where `function` is the program's innermost frame."""
    found: Dict[str, Made] = {}
    for account_id, counts in profile.counts().items():
        account = profile.accounts[account_id]
        if account.kind in API_KINDS and harness.user_function(profile, account.node, program) == function:
            assert account.kind not in found, f"{account.kind} of {function} is in two accounts"
            found[account.kind] = Made(account.owner, counts.bytes, counts.blocks)
    return found
