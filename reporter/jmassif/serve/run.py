# SPDX-License-Identifier: GPL-2.0-or-later
"""A run as it is served: the whole model of what its trace tells at this moment, the tail included.

A tail goes again, so what it adds to the model is taken back before the trace is read on: a snapshot, a row of totals, and
the balances and peaks in it.
"""

from typing import Any, Callable, Dict, Optional, Tuple

from jmassif.analysis.calltree import Branches, Held
from jmassif.model.records import Composition
from jmassif.model.run import Profile
from jmassif.reader.builder import Builder
from jmassif.reader.follow import Follower
from jmassif.reader.tokens import TraceError

_MOMENTS_KEPT = 3
PEAK = "peak-"


class _Model(Builder):
    """A builder that can go back to where it was before a tail."""

    def checkpoint(self) -> Callable[[], None]:
        """A function that goes back."""
        profile = self.profile
        n_snapshots, n_rows = len(profile.snapshots), len(profile.timeline.time)
        kept = (dict(self.by_kind), self.live_bytes[:], self.clock, dict(profile.peaks), set(self.snapshot_ids))

        def back() -> None:
            self.by_kind, self.live_bytes, self.clock = kept[:3]
            self.group = None
            profile.peaks = kept[3]
            for id_ in set(self.snapshot_ids) - kept[4]:
                del self.snapshot_ids[id_]
            del profile.snapshots[n_snapshots:]
            for column in profile.timeline:
                del column[n_rows:]
            profile.forget(n_snapshots)

        return back


class ServedRun:
    """Raises TraceError when it is made, and from poll()."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.profile = Profile()
        self._model = _Model(self.profile)
        self._back: Optional[Callable[[], None]] = None
        self._branches: Optional[Branches] = None
        self._held: Dict[Tuple[str, int], Held] = {}
        self._follower = Follower(name, self._begin)

    def _begin(self) -> Any:
        self.profile = Profile()
        self._model = _Model(self.profile)
        self._back, self._branches = None, None
        self._held.clear()
        return self._model.handlers()

    def poll(self) -> bool:
        """Reads all that there is; whether anything is new."""
        is_news = False
        while True:
            tail = self._follower.tail
            if self._back:
                self._back()
                self._back = None
            is_news = self._follower.poll() or is_news
            if self._follower.tail or tail:
                self._lay_tail()
            if self._follower.is_all:
                break
        if is_news:
            self._held.clear()
            # Accounts have come since, too.
            self.profile.forget(0)
        return is_news

    def _lay_tail(self) -> None:
        """One that does not fit will be gone, or refused when it stays."""
        if not self._follower.tail:
            return
        back = self._model.checkpoint()
        try:
            self._follower.lay(self._follower.tail)
            self._back = back
        except TraceError:
            back()

    def close(self) -> None:
        self._follower.close()

    # ---- what is asked for ---------------------------------------------------------------------------

    @property
    def branches(self) -> Branches:
        if self._branches is None or self._branches.n_nodes != len(self.profile.node_parent):
            self._branches = Branches(self.profile)
            self._held.clear()
        return self._branches

    def _moment(self, at: str) -> Tuple[Composition, int, int]:
        """What was held, how many records of blocks there were, and when. Raises KeyError."""
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
        """Of a moment. Raises KeyError."""
        _, position, time = self._moment(at)
        return position, time
