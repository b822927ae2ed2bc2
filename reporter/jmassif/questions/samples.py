# SPDX-License-Identifier: GPL-2.0-or-later
"""What each account counts for at a chosen moment: the figures that formats with stacks attach to a stack.

Kinds that are only listed are in no sum and count for nothing; a heap block's overhead has bytes and is no block.
"""

from array import array
from typing import Callable, Dict, Iterator, List, NamedTuple, Tuple

from jmassif.model.kinds import side_of
from jmassif.model.profile import Profile
from jmassif.model.records import Composition

# By the name of the option --value: what it is, and its unit. In the order of Sample's fields.
VALUES = {
    "live-bytes": ("held at the moment that was chosen", "bytes"),
    "live-blocks": ("blocks held then", "count"),
    "allocated-bytes": ("allocated in the whole run", "bytes"),
    "allocated-blocks": ("blocks allocated in the whole run", "count"),
    "temporaries": ("blocks freed before their thread allocated anything else", "count"),
}

# Likewise of a range (between.py): a figure of flows.Flow, of bytes or of blocks.
RANGE_VALUES = {
    "new-bytes": ("allocated in the range, and held at its end", "bytes"),
    "new-blocks": ("blocks allocated in the range, and held at its end", "count"),
    "freed-bytes": ("held when the range begins, and freed in it", "bytes"),
    "freed-blocks": ("blocks held when the range begins, and freed in it", "count"),
    "passing-bytes": ("allocated in the range, and freed in it", "bytes"),
    "passing-blocks": ("blocks allocated in the range, and freed in it", "count"),
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
