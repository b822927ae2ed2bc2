# SPDX-License-Identifier: GPL-2.0-or-later
"""The ledger: a composition as a table of owners by side, and the few facts that a reader wants first."""

from typing import Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from jmassif.model.kinds import GROUPS, OTHER, ROLES, counted_blocks, side_of
from jmassif.model.profile import Profile
from jmassif.model.records import Composition


class Held(NamedTuple):
    bytes: int = 0
    blocks: int = 0

    def plus(self, n_bytes: int, blocks: int) -> "Held":
        return Held(self.bytes + n_bytes, self.blocks + blocks)


class LedgerRow(NamedTuple):
    name: str  # an owner or a group
    host: Held = Held()
    device: Held = Held()

    @property
    def bytes(self) -> int:
        return self.host.bytes + self.device.bytes

    def on(self, side: str) -> Held:
        return self.host if side == "host" else self.device

    def plus(self, side: str, n_bytes: int, blocks: int) -> "LedgerRow":
        if side == "host":
            return self._replace(host=self.host.plus(n_bytes, blocks))
        return self._replace(device=self.device.plus(n_bytes, blocks))


class Ledger(NamedTuple):
    groups: List[Tuple[LedgerRow, List[LedgerRow]]]  # the group's sum and its owners; both the largest first
    total: LedgerRow
    imported: Held  # listed, in no sum


def _sums(
    profile: Profile, composition: Composition, name_of: Callable[[int], Optional[str]]
) -> Dict[Tuple[str, str], Held]:
    """What is held by (name, kind). Accounts without a name are left out."""
    # A NamedTuple for each of a hundred thousand accounts would be slow.
    found: Dict[Tuple[str, str], List[int]] = {}
    for account, (n_bytes, blocks) in composition.items():
        name = name_of(account)
        if name is None:
            continue
        key = (name, profile.accounts[account].kind)
        sums = found.get(key)
        if sums is None:
            found[key] = [n_bytes, blocks]
        else:
            sums[0] += n_bytes
            sums[1] += blocks
    return {key: Held(*sums) for key, sums in found.items()}


def _rows(sums: Mapping[Tuple[str, str], Held]) -> List[LedgerRow]:
    """A row a name; kinds that are only listed are left out."""
    rows: Dict[str, LedgerRow] = {}
    for (name, kind), held in sums.items():
        side = side_of(kind)
        if side:
            rows[name] = rows.get(name, LedgerRow(name)).plus(side, held.bytes, counted_blocks(kind, held.blocks))
    return list(rows.values())


def rows_by(profile: Profile, composition: Composition, name_of: Callable[[int], Optional[str]]) -> List[LedgerRow]:
    """A row a name that `name_of` gives to accounts, in no order. Accounts without a name are left out."""
    return _rows(_sums(profile, composition, name_of))


def ledger_of_rows(rows: Iterable[LedgerRow], group_of: Mapping[str, str], imported: Held = Held()) -> Ledger:
    """From a row an owner."""
    members: Dict[str, List[LedgerRow]] = {}
    for row in rows:
        members.setdefault(group_of.get(row.name, OTHER), []).append(row)
    groups = []
    for name in GROUPS + (OTHER,):
        owners = sorted(members.get(name, []), key=lambda row: (-row.bytes, row.name))
        if owners:
            groups.append((_total(name, owners), owners))
    return Ledger(groups, _total("total", [group for group, _ in groups]), imported)


def ledger(profile: Profile, composition: Composition) -> Ledger:
    """Who holds what."""
    accounts = profile.accounts
    sums = _sums(profile, composition, lambda account: accounts[account].owner)
    imported = Held()
    for (_, kind), held in sums.items():
        if not side_of(kind):
            imported = imported.plus(*held)
    return ledger_of_rows(_rows(sums), profile.group_of, imported)


def roles(profile: Profile, composition: Composition) -> Tuple[List[LedgerRow], LedgerRow]:
    """What tensors are for: a row a role, in the order of ROLES, and their sum. None if the trace tells no roles."""
    if not profile.roles:
        return [], LedgerRow("all tensors")

    def rank(row: LedgerRow) -> Tuple[int, str]:
        return (ROLES.index(row.name) if row.name in ROLES else len(ROLES), row.name)

    rows = sorted(rows_by(profile, composition, profile.role), key=rank)
    return rows, _total("all tensors", rows)


def _total(name: str, rows: Sequence[LedgerRow]) -> LedgerRow:
    total = LedgerRow(name)
    for row in rows:
        total = total.plus("host", *row.host).plus("device", *row.device)
    return total


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
