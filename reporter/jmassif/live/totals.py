# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run holds now in all, and its peaks: what a trace says outright, so that it is read without knowing whose anything is.

Most of a trace are definitions and balances. They are passed over, and whether they are right is for others to find.
"""

from array import array
from typing import Dict, List, Tuple

from jmassif.live.sums import Held
from jmassif.model.records import Peak, Snapshot
from jmassif.model.rows import Differences
from jmassif.trace.builder import Builder
from jmassif.trace.definitions import require
from jmassif.trace.grammar import Handler

_READ = ("m", "t", "S", "P", "E", "A", "Z")


class Totals(Builder):
    """In the place of Sums."""

    def handlers(self) -> Dict[str, Handler]:
        return {letter: handler if letter in _READ else None for letter, handler in super().handlers().items()}

    def snapshot_end(self, id_: int) -> None:
        group, profile = self._open_group(), self.profile
        require(id_ == group.id, f"snapshot {group.id} is closed as {id_}")
        index = len(profile.snapshots)
        profile.snapshots.append(
            Snapshot(id_, group.time, group.reason, {}, group.changes, group.pages, group.position)
        )
        for peak in group.peaks:
            told = Peak(peak.which, peak.time, peak.host, peak.device, index, {}, Differences())
            before = self.earlier_peaks.get(peak.which)
            if before is None or told.bytes > before.bytes:
                profile.peaks[peak.which] = told
        self.group = None

    def stage(self, time: int) -> None:
        self.earlier_peaks = dict(self.profile.peaks)

    # ---- what is told ----------------------------------------------------------------------------

    def laid_over(self, rows: "array[int]") -> "Tuple[array[int], array[int]]":
        return array("q"), array("q")

    def owners(self, sums: "array[int]") -> List[Held]:
        return []

    def line_of(self, account: int) -> str:
        return ""

    def line(self, place: int) -> str:
        return ""
