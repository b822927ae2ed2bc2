# SPDX-License-Identifier: GPL-2.0-or-later
"""Live memory summed by a key: the ledger of groups and owners, tensors by role, and the five figures of formats with stacks.

`Usage` is the one sum of bytes and blocks. Imported memory is listed and not counted; the overhead of heap blocks has
bytes and is no block.
"""

from typing import Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar

from jmassif.model.records import GROUPS, KINDS, OTHER, ROLES, LiveBytesByAccount, Snapshot, side_of
from jmassif.model.run import Profile

_Key = TypeVar("_Key")


class Usage(NamedTuple):
    host_bytes: int = 0
    host_blocks: int = 0
    device_bytes: int = 0
    device_blocks: int = 0

    @property
    def bytes(self) -> int:
        return self.host_bytes + self.device_bytes

    @property
    def blocks(self) -> int:
        return self.host_blocks + self.device_blocks

    def __add__(self, other: "Usage") -> "Usage":  # type: ignore[override]
        return Usage(*(mine + theirs for mine, theirs in zip(self, other)))

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(*(mine - theirs for mine, theirs in zip(self, other)))

    def on(self, space: str) -> int:
        """Bytes on "host" or "device", of both with ""."""
        return self.bytes if not space else self.host_bytes if space == "host" else self.device_bytes

    def blocks_on(self, space: str) -> int:
        return self.blocks if not space else self.host_blocks if space == "host" else self.device_blocks


def sum_of(usages: Iterable[Usage]) -> Usage:
    return sum(usages, Usage())


class UsageRow(NamedTuple):
    name: str  # of an owner, a group, a role, …
    usage: Usage = Usage()

    @property
    def bytes(self) -> int:
        return self.usage.bytes


# The place of the bytes of each kind in Usage. Kinds that are only listed have none.
_PLACE = {kind: 0 if side_of(kind) == "host" else 2 for kind in KINDS if side_of(kind)}


def aggregate(run: Profile, live: LiveBytesByAccount, key: Callable[[int], Optional[_Key]]) -> Dict[_Key, Usage]:
    """The usage of each key; accounts without a key, or of a kind that is only listed, are left out."""
    # One NamedTuple for each of a hundred thousand accounts would be slow.
    sums: Dict[_Key, List[int]] = {}
    numbers, types = run.accounts.type_numbers, run.accounts.types
    places = [_PLACE.get(type_.kind) for type_ in types]
    has_blocks = [type_.kind != "heap-overhead" for type_ in types]
    for account, (n_bytes, blocks) in live.items():
        number = numbers[account]
        place = places[number]
        name = None if place is None else key(account)
        if place is None or name is None:
            continue
        found = sums.get(name)
        if found is None:
            found = sums[name] = [0, 0, 0, 0]
        found[place] += n_bytes
        if has_blocks[number]:
            found[place + 1] += blocks
    return {name: Usage(*found) for name, found in sums.items()}


def columns_by(
    run: Profile, lives: Sequence[LiveBytesByAccount], key: Callable[[int], Optional[_Key]]
) -> Dict[_Key, List[Usage]]:
    """The same in several compositions: a usage for each of them."""
    columns = [aggregate(run, live, key) for live in lives]
    names = dict.fromkeys(name for column in columns for name in column)
    return {name: [column.get(name, Usage()) for column in columns] for name in names}


# ---- groups and owners -----------------------------------------------------------------------


class Group(NamedTuple):
    name: str
    usage: Usage
    owners: List[UsageRow]  # the largest first

    @property
    def bytes(self) -> int:
        return self.usage.bytes


class Ledger(NamedTuple):
    groups: List[Group]  # in the order of GROUPS
    total: Usage
    imported_bytes: int  # listed, not counted
    imported_blocks: int

    @property
    def owners(self) -> List[UsageRow]:
        return [owner for group in self.groups for owner in group.owners]


def ledger_of_rows(rows: Iterable[UsageRow], group_of: Mapping[str, str], imported: Tuple[int, int] = (0, 0)) -> Ledger:
    """From a row for each owner."""
    members: Dict[str, List[UsageRow]] = {}
    for row in rows:
        members.setdefault(group_of.get(row.name, OTHER), []).append(row)
    groups = []
    for name in GROUPS + (OTHER,):
        owners = sorted(members.get(name, []), key=lambda row: (-row.bytes, row.name))
        if owners:
            groups.append(Group(name, sum_of(row.usage for row in owners), owners))
    return Ledger(groups, sum_of(group.usage for group in groups), *imported)


def ledger(run: Profile, live: LiveBytesByAccount) -> Ledger:
    """Usage by owner and group."""
    accounts = run.accounts
    is_listed = [type_.kind not in _PLACE for type_ in accounts.types]
    listed = [live[account] for account in live if is_listed[accounts.type_numbers[account]]]
    imported = sum(n_bytes for n_bytes, _ in listed), sum(blocks for _, blocks in listed)
    of_owners: Dict[str, Usage] = {}
    for number, usage in aggregate(run, live, accounts.type_numbers.__getitem__).items():
        owner = accounts.types[number].owner
        of_owners[owner] = of_owners.get(owner, Usage()) + usage
    rows = [UsageRow(owner, usage) for owner, usage in of_owners.items()]
    return ledger_of_rows(rows, run.group_of, imported)


def roles(run: Profile, live: LiveBytesByAccount) -> List[UsageRow]:
    """Tensors by role, in the order of ROLES; empty for a trace without roles."""

    def rank(row: UsageRow) -> Tuple[int, str]:
        return (ROLES.index(row.name) if row.name in ROLES else len(ROLES), row.name)

    return sorted((UsageRow(*row) for row in aggregate(run, live, run.role).items()), key=rank) if run.roles else []


# ---- over time --------------------------------------------------------------------------------


def series(run: Profile, name_of: Callable[[int], _Key]) -> Iterator[Tuple[Snapshot, Dict[_Key, Usage]]]:
    """Each snapshot with the usage of every name that has come up so far. Kinds that are only listed are left out."""
    sums: Dict[_Key, List[int]] = {}  # in the order of Usage's fields
    of: Dict[int, List[int]] = {}  # by account
    places = list(run.accounts.by_type(lambda type_: _PLACE.get(type_.kind)))
    has_blocks = bytearray(run.accounts.by_type(lambda type_: type_.kind != "heap-overhead"))
    for snapshot, growths in run.growths():
        for account, n_bytes, blocks in growths:
            place = places[account]
            if place is None:
                continue
            figures = of.get(account)
            if figures is None:
                figures = of[account] = sums.setdefault(name_of(account), [0, 0, 0, 0])
            figures[place] += n_bytes
            if has_blocks[account]:
                figures[place + 1] += blocks
        yield snapshot, {name: Usage(*each) for name, each in sums.items()}


# ---- the five figures of formats with stacks -------------------------------------------------

# The unit of each value of --value, in the order of SampleFigures. What is allocated is of the whole run.
VALUES = {
    "live-bytes": "bytes",
    "live-blocks": "count",
    "allocated-bytes": "bytes",
    "allocated-blocks": "count",
    "temporaries": "count",
}

# In the order of VALUES.
SampleFigures = Tuple[int, int, int, int, int]


def samples(profile: Profile, live: LiveBytesByAccount) -> Iterator[Tuple[int, SampleFigures]]:
    """(account, its figures) of the accounts that have any."""
    for account, (of, n_bytes, blocks, at_once) in enumerate(zip(profile.accounts, *profile.lifetime())):
        held, held_blocks = live.get(account, (0, 0))
        figures = (held, held_blocks, n_bytes, blocks, at_once)
        if of.kind == "heap-overhead":
            figures = (held, 0, n_bytes, 0, 0)
        if of.kind in _PLACE and any(figures):
            yield account, figures


class NamedUsage(NamedTuple):
    name: str
    held: Usage  # at the moment
    allocated: Usage  # in the whole run
    temporaries: Usage  # blocks

    def figures(self, space: str) -> SampleFigures:
        held, allocated = self.held, self.allocated
        blocks = allocated.blocks_on(space), self.temporaries.blocks_on(space)
        return (held.on(space), held.blocks_on(space), allocated.on(space), *blocks)


def by_name(profile: Profile, live: LiveBytesByAccount, name_of: Callable[[int], str]) -> List[NamedUsage]:
    """A row a name, sorted by what is held, the largest first."""
    lifetime = profile.lifetime()
    allocated = {account: pair for account, pair in enumerate(zip(lifetime.bytes, lifetime.blocks)) if any(pair)}
    temporaries = {account: (0, n) for account, n in enumerate(lifetime.temporaries) if n}
    columns = columns_by(profile, (live, allocated, temporaries), name_of)
    rows = [NamedUsage(name, *usages) for name, usages in columns.items()]
    return sorted(rows, key=lambda row: (-row.held.bytes, row.name))
