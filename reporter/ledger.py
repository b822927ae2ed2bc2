# SPDX-License-Identifier: GPL-2.0-or-later
"""The ledger: a composition as a table of owners by side, and the few facts that a reader wants first."""

from typing import Dict, List, NamedTuple, Tuple

from reporter.profile import GROUPS, Composition, Profile, counted_blocks, side_of

# Owners whose group the trace does not tell.
OTHER = "other"


class Held(NamedTuple):
    bytes: int = 0
    blocks: int = 0

    def plus(self, n_bytes: int, blocks: int) -> "Held":
        return Held(self.bytes + n_bytes, self.blocks + blocks)


class Row(NamedTuple):
    name: str  # an owner or a group
    host: Held = Held()
    device: Held = Held()

    @property
    def bytes(self) -> int:
        return self.host.bytes + self.device.bytes

    def plus(self, side: str, n_bytes: int, blocks: int) -> "Row":
        if side == "host":
            return self._replace(host=self.host.plus(n_bytes, blocks))
        return self._replace(device=self.device.plus(n_bytes, blocks))


class Ledger(NamedTuple):
    groups: List[Tuple[Row, List[Row]]]  # the group's sum and its owners; both the largest first
    total: Row
    imported: Held  # listed, in no sum


def ledger(profile: Profile, composition: Composition) -> Ledger:
    """Who holds what."""
    owners: Dict[str, Row] = {}
    imported = Held()
    for account, (n_bytes, blocks) in composition.items():
        _, kind, owner = profile.accounts[account]
        side = side_of(kind)
        if side is None:
            imported = imported.plus(n_bytes, blocks)
            continue
        row = owners.get(owner, Row(owner))
        owners[owner] = row.plus(side, n_bytes, counted_blocks(kind, blocks))

    total = Row("total")
    members: Dict[str, List[Row]] = {}
    for row in owners.values():
        members.setdefault(profile.group_of.get(row.name, OTHER), []).append(row)
        total = _sum(total, row)
    groups = []
    for name in GROUPS + (OTHER,):
        rows = sorted(members.get(name, []), key=lambda row: (-row.bytes, row.name))
        if rows:
            group = Row(name)
            for row in rows:
                group = _sum(group, row)
            groups.append((group, rows))
    return Ledger(groups, total, imported)


def _sum(sum_: Row, row: Row) -> Row:
    return sum_.plus("host", *row.host).plus("device", *row.device)


class Churn(NamedTuple):
    """An account whose blocks mostly die at once."""

    account: int
    temporaries: int
    blocks: int  # all it ever made
    bytes: int


# Below this, churn costs nothing that a person would notice.
_MIN_TEMPORARIES = 1000


def hottest_temporaries(profile: Profile, limit: int) -> List[Churn]:
    """Accounts that made at least a thousand temporaries, and little else; most first."""
    churns = [
        Churn(account, counts.temporaries, counts.blocks, counts.bytes)
        for account, counts in profile.counts(_MIN_TEMPORARIES).items()
        if 2 * counts.temporaries >= counts.blocks
    ]
    churns.sort(key=lambda churn: (-churn.temporaries, churn.account))
    return churns[:limit]
