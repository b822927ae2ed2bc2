# SPDX-License-Identifier: GPL-2.0-or-later
"""A run as it is served: its memory at any moment, by branch and by block."""

from typing import Dict, Optional, Tuple

from jmassif.analysis.calltree import Held, StackTree
from jmassif.live.run import Followed
from jmassif.live.sums import TailBuilder
from jmassif.model.records import Composition
from jmassif.model.run import Profile

_MOMENTS_KEPT = 3
PEAK = "peak-"


class ServedRun(Followed):
    """Raises TraceError when it is made, and from poll()."""

    def new_model(self, profile: Profile) -> TailBuilder:
        self._branches: Optional[StackTree] = None
        self._held: Dict[Tuple[str, int], Held] = {}
        return super().new_model(profile)

    def poll(self) -> bool:
        """Reads all that there is; whether anything is new."""
        is_news = super().poll()
        while not self.follower.is_all:
            is_news = super().poll() or is_news
        if is_news:
            self._held.clear()
            self.profile.forget(0)  # of accounts that are new, too
        return is_news

    @property
    def branches(self) -> StackTree:
        if self._branches is None or self._branches.n_nodes != len(self.profile.node_parent):
            self._branches = StackTree(self.profile)
            self._held.clear()
        return self._branches

    def _moment(self, at: str) -> Tuple[Composition, int, int]:
        """The composition, the number of block records, and the time. Raises KeyError."""
        profile = self.profile
        if at.startswith(PEAK):
            peak = profile.peaks[at[len(PEAK) :]]
            return profile.peak_composition(peak.which), profile.snapshots[peak.snapshot].position, peak.time
        for index, snapshot in enumerate(profile.snapshots):
            if str(snapshot.id) == at:
                return profile.composition(index), snapshot.position, snapshot.time
        raise KeyError(at)

    def held(self, at: str) -> Held:
        """At a moment: "peak-total", or the id of a snapshot. Raises KeyError."""
        branches = self.branches
        key = (at, len(self.profile.snapshots))
        if key not in self._held:
            while len(self._held) >= _MOMENTS_KEPT:
                del self._held[next(iter(self._held))]
            self._held[key] = branches.at(self._moment(at)[0])
        return self._held[key]

    def position(self, at: str) -> Tuple[int, int]:
        """The number of records of blocks before a moment, and its time. Raises KeyError."""
        _, position, time = self._moment(at)
        return position, time
