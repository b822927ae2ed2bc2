# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs that are followed: those that were named, and those of the children that they start meanwhile.

A child's trace lies beside its parent's, under a name with another number in the place of the parent's. Whether a new file of
such a name is a child's it says itself, in its manifest; others' are let go of.
"""

import os
import re
import time
from typing import Callable, List, NamedTuple, Optional, Sequence, Set

from jmassif.live.run import LiveRun
from jmassif.trace.grammar import TraceError
from jmassif.trace.inputs import STDIN

MOST_RUNS = 64
# Bytes of traces: what is read of them is kept in memory.
_MOST_BYTES = 2 << 30
_LOOK_SECONDS = 0.5


class Lost(NamedTuple):
    name: str
    why: str


class Family:
    """Raises TraceError for a name that cannot be followed from the beginning."""

    def __init__(self, names: Sequence[str], now: Callable[[], float] = time.monotonic, has_sums: bool = True) -> None:
        """`has_sums`: see LiveRun."""
        self._has_sums = has_sums
        self.runs = [LiveRun(name, has_sums) for name in names]
        self.lost: List[Lost] = []  # that cannot be followed any further
        self.n_left_out = 0
        self._candidates: List[LiveRun] = []
        self._known: Set[str] = {os.path.realpath(name) for name in names if name != STDIN}
        self._now = now
        self._next_look = 0.0

    def poll(self, seconds: float) -> bool:
        """Reads what there is, for about so long; whether there is anything new."""
        end = self._now() + seconds
        is_news = self._look() if self._now() >= self._next_look else False
        reading = list(self.runs)
        while reading and self._now() < end:
            for run in list(reading):
                is_news = self._poll(run, self.runs) or is_news
                if run.follower.is_all or run not in self.runs:
                    reading.remove(run)
        return is_news

    def settle(self) -> None:
        """Looks for children's traces that are there, and reads them, until there are no more."""
        self.poll(1e9)
        while True:
            n_runs = len(self.runs)
            self._next_look = 0.0
            self.poll(1e9)
            if not self._candidates and len(self.runs) == n_runs:
                return
            if all(candidate.follower.is_all for candidate in self._candidates) and len(self.runs) == n_runs:
                return

    def _poll(self, run: LiveRun, among: List[LiveRun]) -> bool:
        try:
            return run.poll()
        except TraceError as error:
            self.lost.append(Lost(run.name, str(error)))
            if len(among) > 1 or among is self._candidates:
                run.follower.close()
                among.remove(run)
                return True
            raise

    def lose(self, run: LiveRun, why: str) -> None:
        """Somebody else has found that it cannot be followed."""
        self.lost.append(Lost(run.name, why))
        if run in self.runs:
            self.runs.remove(run)

    # ---- children ------------------------------------------------------------------------------------

    def _look(self) -> bool:
        self._next_look = self._now() + _LOOK_SECONDS
        for run in list(self.runs):
            for path in self._beside(run):
                self._known.add(os.path.realpath(path))
                n_bytes = sum(each.follower.n_read for each in self.runs)
                if len(self.runs) + len(self._candidates) >= MOST_RUNS or n_bytes > _MOST_BYTES:
                    self.n_left_out += 1
                    continue
                try:
                    self._candidates.append(LiveRun(path, self._has_sums))
                except TraceError:
                    continue
        is_news = False
        for candidate in list(self._candidates):
            before = len(self.lost)
            self._poll(candidate, self._candidates)
            del self.lost[before:]  # nobody has asked for it
            if candidate in self._candidates:
                is_news = self._judge(candidate) or is_news
        return is_news

    def _beside(self, run: LiveRun) -> List[str]:
        """Files that may be of children of a run, and are new."""
        directory, name = os.path.split(run.name)
        if run.name == STDIN or not run.pid or str(run.pid) not in name:
            return []
        first, last = name.split(str(run.pid), 1)
        pattern = re.compile(rf"{re.escape(first)}\d+{re.escape(last)}(\.\d+)*")
        start_ms = run.profile.number("start-unix-ms") or 0
        found = []
        try:
            with os.scandir(directory or ".") as entries:
                for entry in entries:
                    if not pattern.fullmatch(entry.name) or os.path.realpath(entry.path) in self._known:
                        continue
                    # A file system may keep whole seconds.
                    if entry.is_file() and entry.stat().st_mtime * 1000 >= start_ms - 2000:
                        found.append(os.path.join(directory, entry.name))
        except OSError:
            return []
        return sorted(found)

    def _judge(self, candidate: LiveRun) -> bool:
        """Takes it in, lets go of it, or waits until it tells. Whether it was taken in."""
        manifest = candidate.profile.manifest
        own = manifest.get("process", "").partition(".")[0]
        # What a forked child has copied of its parent's comes first.
        if not own or manifest.get("pid") != own or "ppid" not in manifest:
            return False
        if not candidate.profile.snapshots and candidate.is_running:
            return False
        self._candidates.remove(candidate)
        if self._parent(candidate) is None:
            candidate.follower.close()
            return False
        self.runs.append(candidate)
        return True

    def _parent(self, child: LiveRun) -> Optional[LiveRun]:
        manifest = child.profile.manifest
        wanted = {manifest.get("ppid"), manifest.get("forked-from"), manifest.get("pid")}
        for run in self.runs:
            is_near = run.profile.manifest.get("host") == manifest.get("host")
            if is_near and run.profile.manifest.get("pid") in wanted:
                return run
        return None
