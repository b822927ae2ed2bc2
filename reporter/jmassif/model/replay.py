# SPDX-License-Identifier: GPL-2.0-or-later
"""Walks a run's snapshots, which have what has changed, and knows what every account holds on the way."""

from array import array
from typing import Iterator, Sequence, Tuple

from jmassif.model.records import Snapshot


class Replay:
    """Columns by account id, as of the last snapshot that was gone through."""

    def __init__(self, n_accounts: int, n_bytes: Sequence[int] = (), blocks: Sequence[int] = ()) -> None:
        """From what they held at some snapshot on; further accounts came later."""
        self.bytes, self.blocks = array("Q", n_bytes), array("Q", blocks)
        for column in (self.bytes, self.blocks):
            column.frombytes(bytes(8 * (n_accounts - len(column))))

    def advance(self, snapshot: Snapshot) -> None:
        """Goes on to the next snapshot."""
        changes = snapshot.changes
        live_bytes, live_blocks = self.bytes, self.blocks
        for account, n_bytes, blocks in zip(changes.account, changes.bytes, changes.blocks):
            live_bytes[account] = n_bytes
            live_blocks[account] = blocks

    def jump(self, snapshots: Sequence[Snapshot]) -> None:
        """Goes on to the last of the next snapshots. Of each account only its last change matters."""
        untold = bytearray(b"\1") * len(self.bytes)
        n_untold = len(untold)
        for snapshot in reversed(snapshots):
            changes = snapshot.changes
            for account, n_bytes, blocks in changes.backwards(untold, changes.bytes, changes.blocks):
                self.bytes[account] = n_bytes
                self.blocks[account] = blocks
                untold[account] = 0
                n_untold -= 1
            if n_untold <= 1:  # no account is 0
                break

    def growths(self, snapshot: Snapshot) -> Iterator[Tuple[int, int, int]]:
        """Likewise, with (account, bytes, blocks) of what each change adds; negative for what it takes away."""
        changes = snapshot.changes
        live_bytes, live_blocks = self.bytes, self.blocks
        for account, n_bytes, blocks in zip(changes.account, changes.bytes, changes.blocks):
            grown = account, n_bytes - live_bytes[account], blocks - live_blocks[account]
            live_bytes[account] = n_bytes
            live_blocks[account] = blocks
            yield grown
