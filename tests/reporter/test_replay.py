# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of a trace by the names of their columns, and what accounts hold from snapshot to snapshot."""

import random
from array import array

import pytest

from jmassif.model.records import Changes
from tests.reporter.traces import random_run


def test_columns_have_names() -> None:
    rows = Changes()
    rows.extend(array("Q", [7, 100, 2, 300, 6, 1, 8, 0, 0, 50, 5, 0]))
    assert rows.n_rows == 2
    assert (list(rows.account), list(rows.bytes), list(rows.blocks)) == ([7, 8], [100, 0], [2, 0])
    assert (list(rows.all_bytes), list(rows.all_blocks), list(rows.temporaries)) == ([300, 50], [6, 5], [1, 0])


@pytest.mark.parametrize("seed", range(4))
def test_a_column_is_as_narrow_as_its_largest_number_and_loses_nothing(seed: int) -> None:
    rng = random.Random(seed)
    rows, wanted = Changes(), []
    for most in (1 << 8, 1 << 16, 1 << 32, 1 << 64, 1 << 8):
        part = [rng.choice((0, most - 1, rng.randrange(most))) for _ in range(6 * rng.randrange(1, 50))]
        rows.extend(array("Q", part))
        wanted += part
        columns = [getattr(rows, name) for name in Changes.__slots__]
        assert [list(column) for column in columns] == [wanted[place::6] for place in range(6)]
        assert all(256 ** (column.itemsize // 2) <= max(column) for column in columns if column.itemsize > 1)


@pytest.mark.parametrize("seed", range(3))
def test_growths_add_up_to_what_each_snapshot_has(seed: int) -> None:
    profile = random_run(seed).load()
    sums = {account: [0, 0] for account in range(len(profile.accounts))}
    for index, (snapshot, growths) in enumerate(profile.growths()):
        assert snapshot is profile.snapshots[index]
        for account, n_bytes, blocks in growths:
            sums[account][0] += n_bytes
            sums[account][1] += blocks
        held = {account: (n_bytes, blocks) for account, (n_bytes, blocks) in sums.items() if n_bytes or blocks}
        assert held == profile.composition(index)
