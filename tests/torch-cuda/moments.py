# SPDX-License-Identifier: GPL-2.0-or-later
"""What a trace says at each mark that the program set: device bytes by owner, kind and role, and the counters so far."""

import collections
from pathlib import Path
from typing import Counter, Dict, List, NamedTuple

from jmassif.model.records import DEVICE_KINDS
from jmassif.model.run import Profile


class Moment(NamedTuple):
    mark: str
    by_owner: Counter[str]  # bytes on the device, as all below
    by_role: Counter[str]
    counters: Dict[str, int]

    @property
    def handed_out(self) -> int:
        """By PyTorch's allocator, to tensors and to libraries that compute."""
        return self.by_owner["tensor"] + self.by_owner["workspace"]

    @property
    def reserved(self) -> int:
        return self.handed_out + self.by_owner["cache"]


def counters_at_marks(trace: Path) -> List[Dict[str, int]]:
    """Counters are written before the snapshot that a mark causes. A profile has only the last ones."""
    found: List[Dict[str, int]] = []
    counters: Dict[str, int] = {}
    with trace.open(errors="replace") as lines:
        for line in lines:
            if line.startswith("k "):
                _, key, count = line.split()
                counters[key] = int(count)
            elif line.startswith("S ") and line.split()[3] == "mark":
                found.append(dict(counters))
    return found


def moment(profile: Profile, mark: str, snapshot: int, counters: Dict[str, int]) -> Moment:
    by_owner: Counter[str] = collections.Counter()
    by_role: Counter[str] = collections.Counter()
    for account, (n_bytes, _) in profile.composition(snapshot).items():
        kind, owner = profile.accounts[account].kind, profile.accounts[account].owner
        if kind in DEVICE_KINDS:
            by_owner[owner] += n_bytes
            role = profile.role(account)
            if role is not None:
                by_role[role] += n_bytes
    return Moment(mark, by_owner, by_role, counters)


def moments(trace: Path, profile: Profile) -> List[Moment]:
    """In the order in which the marks were set; each has a snapshot of its own. `profile` is what the trace tells."""
    snapshots = [i for i, snapshot in enumerate(profile.snapshots) if snapshot.reason == "mark"]
    counters = counters_at_marks(trace)
    assert len(profile.marks) == len(snapshots) == len(counters), "marks and snapshots are not one to one"
    return [moment(profile, mark.text, i, so_far) for mark, i, so_far in zip(profile.marks, snapshots, counters)]
