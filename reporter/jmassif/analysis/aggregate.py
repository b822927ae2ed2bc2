# SPDX-License-Identifier: GPL-2.0-or-later
"""What each account counts for at a chosen moment: the figures that formats with stacks attach to a stack.

Kinds that are only listed are in no sum and count for nothing; a heap block's overhead has bytes and is no block.
"""

from array import array
from typing import Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from jmassif.model.records import GROUPS, OTHER, ROLES, Composition, counted_blocks, side_of
from jmassif.model.run import Profile


# ---- ledger ----
# The ledger: a composition as a table of owners by side, and the few facts that a reader wants first.


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


# ---- samples ----

# By the name of the option --value: what it is, and its unit. In the order of Sample's fields.
VALUES = {
    "live-bytes": ("held at the moment that was chosen", "bytes"),
    "live-blocks": ("blocks held then", "count"),
    "allocated-bytes": ("allocated in the whole run", "bytes"),
    "allocated-blocks": ("blocks allocated in the whole run", "count"),
    "temporaries": ("blocks freed before their thread allocated anything else", "count"),
}

# Likewise of a range (range_diff.py): a figure of Change, of bytes or of blocks.
RANGE_VALUES = {
    "new-bytes": ("held at the end of the range beyond what was held at its beginning", "bytes"),
    "new-blocks": ("blocks held at the end of the range beyond those at its beginning", "count"),
    "gone-bytes": ("held at the beginning of the range beyond what was held at its end", "bytes"),
    "gone-blocks": ("blocks held at the beginning of the range beyond those at its end", "count"),
    "allocated-bytes": ("allocated in the range", "bytes"),
    "allocated-blocks": ("blocks allocated in the range", "count"),
    "freed-bytes": ("freed in the range", "bytes"),
    "freed-blocks": ("blocks freed in the range", "count"),
    "temporaries": ("blocks of the range freed before their thread allocated anything else", "count"),
}

# In the order of VALUES.
SampleFigures = Tuple[int, int, int, int, int]
NOTHING: SampleFigures = (0, 0, 0, 0, 0)


class Samples(NamedTuple):
    """Columns by account id, in the order of VALUES."""

    live_bytes: "array[int]"
    live_blocks: "array[int]"
    allocated_bytes: "array[int]"
    allocated_blocks: "array[int]"
    temporaries: "array[int]"

    def rows(self) -> Iterator[Tuple[int, SampleFigures]]:
        """(account, its figures) of the accounts that have any."""
        for account, figures in enumerate(zip(*self)):
            if figures != NOTHING:
                yield account, figures

    def column(self, value: str) -> "array[int]":
        return self[list(VALUES).index(value)]


def samples(profile: Profile, composition: Composition) -> Samples:
    """The figures of all accounts, with what they hold in `composition`."""
    columns = Samples(*(array("Q", bytes(8 * len(profile.accounts))) for _ in VALUES))
    for account, (n_bytes, blocks) in composition.items():
        columns.live_bytes[account] = n_bytes
        columns.live_blocks[account] = blocks
    lifetime = profile.lifetime()
    columns = columns._replace(
        allocated_bytes=lifetime.bytes, allocated_blocks=lifetime.blocks, temporaries=lifetime.temporaries
    )
    for account, (_, kind, _) in enumerate(profile.accounts):
        if side_of(kind) is None:
            for column in columns:
                column[account] = 0
        elif kind == "heap-overhead":
            for column in (columns.live_blocks, columns.allocated_blocks, columns.temporaries):
                column[account] = 0
    return columns


class SampleRow(NamedTuple):
    """What goes under one name, by side."""

    name: str
    host: SampleFigures
    device: SampleFigures


def by_name(profile: Profile, columns: Samples, name_of: Callable[[int], str]) -> List[SampleRow]:
    """A row a name, sorted by what is held, the largest first."""
    sums: Dict[str, Dict[str, List[int]]] = {}
    for account, figures in columns.rows():
        row = sums.setdefault(name_of(account), {"host": list(NOTHING), "device": list(NOTHING)})
        side = row[side_of(profile.accounts[account].kind) or "host"]
        for index, figure in enumerate(figures):
            side[index] += figure
    rows = [SampleRow(name, tuple(row["host"]), tuple(row["device"])) for name, row in sums.items()]  # type: ignore[arg-type]
    return sorted(rows, key=lambda row: (-row.host[0] - row.device[0], row.name))
