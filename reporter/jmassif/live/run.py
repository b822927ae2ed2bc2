# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs that are followed while they go on: their present memory, states and events, and their children's traces.

A child's trace lies beside its parent's, under a name with another number in the place of the parent's. The manifest of a
new file of such a name says whether it is a child's; others are closed again.
"""

import heapq
import os
import re
import time
from operator import add, sub
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Union

from jmassif.analysis.aggregate import UsageRow
from jmassif.analysis.moments import main_peak
from jmassif.analysis.oom import call_of
from jmassif.live.sums import Sums, TailBuilder, Totals
from jmassif.model.run import Profile
from jmassif.reader.follow import Follower
from jmassif.reader.input import STDIN, is_of_this_machine, process_is_there
from jmassif.reader.tokens import TraceError
from jmassif.units import moment, printable, size


# A peak is an event if it is so much higher than the last one; as long as the program goes on to rise, it is one event.
_HIGHER = 0.05
_ONE_RISE_MS = 5000
_MOST_EVENTS = 100

# The orders of lines.
ORDERS = ("held", "grown", "device", "host")

MEMORY, PEAK, MARK, END = "memory", "peak", "mark", "end"
EXECED = "became another program"


class Followed:
    """A trace that is followed, with the model of all its records. Raises TraceError when it is made, and from poll().

    The next records replace a tail: its part of the model is undone before more is read.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._undo: Optional[Callable[[], None]] = None
        self._tail = b""
        self.follower = Follower(name, self._begin, self._drop_tail)

    def new_model(self, profile: Profile) -> TailBuilder:
        return TailBuilder(profile)

    def _begin(self) -> Any:
        self.profile = Profile()
        self.model = self.new_model(self.profile)
        self._undo, self._tail = None, b""
        return self.model.handlers()

    def _drop_tail(self) -> None:
        if self._undo:
            self._undo()
        self._undo, self._tail = None, b""

    def poll(self) -> bool:
        """Reads on, a bite at most; whether anything is new."""
        if not self.follower.poll():
            return False
        if self.follower.tail is not self._tail:
            self._drop_tail()
            self._tail = self.follower.tail
        if not self._undo:
            self.settled()
            if self._tail:
                self._lay_tail()
        return True

    def settled(self) -> None:
        """Called with records that stay, before the tail is added to them."""

    def _lay_tail(self) -> None:
        """One that does not fit will be gone, or refused when it stays."""
        undo = self.model.checkpoint()
        try:
            self.follower.lay(self._tail)
            self._undo = undo
        except TraceError:
            undo()


class Event(NamedTuple):
    time: int  # of the run
    kind: str
    text: str  # safe to show


class LineUsage(NamedTuple):
    name: str  # safe to show
    host: int  # bytes, as are the others
    device: int
    grown: int  # in the last seconds

    @property
    def bytes(self) -> int:
        return self.host + self.device


class Now(NamedTuple):
    """Present memory, as of the last record."""

    time: int
    host: int
    device: int
    peak: int
    peak_time: int


class LiveRun(Followed):
    def __init__(self, name: str, has_sums: bool = True) -> None:
        """Without sums only totals, peaks and the state are known, at a tenth of the cost."""
        self._has_sums = has_sums
        super().__init__(name)

    def new_model(self, profile: Profile) -> TailBuilder:
        self.events: List[Event] = []
        self._seen: Dict[str, int] = {}  # so many of each have been made events of
        self._last_peak = 0
        self._sums: Union[Sums, Totals] = Sums(profile) if self._has_sums else Totals(profile)
        return self._sums

    def settled(self) -> None:
        self._make_events()

    # ---- what it is ----------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        return self.profile.number("pid") or 0

    @property
    def is_here(self) -> bool:
        """The process runs, or ran, on this machine."""
        return is_of_this_machine(self.profile.manifest)

    @property
    def state(self) -> str:
        """In words."""
        profile = self.profile
        if profile.end is not None:
            if profile.end.reason == "signal":
                return f"ended by signal {profile.end.code}" if profile.end.code else "ended by a signal"
            return f"ended, status {profile.end.code}"
        if not self.follower.has_begun:
            return "waiting for the trace"
        if not self.follower.is_all:
            return f"reading, {100 * self.follower.share_read:.0f} %" if self.follower.fileno() is None else "reading"
        if profile.snapshots and profile.snapshots[-1].reason == "exec":
            return EXECED
        if self.is_here and "process" in profile.manifest and not process_is_there(profile.manifest):
            return "killed (no end record)"
        if self.follower.is_over:
            return "cut off: the pipe has ended"
        return "running"

    @property
    def is_running(self) -> bool:
        return self.state in ("running", "reading", "waiting for the trace")

    @property
    def inherited(self) -> int:
        """Bytes that its parent had allocated before the fork."""
        first = self.profile.snapshots[0] if "forked-from" in self.profile.manifest and self.profile.snapshots else None
        return first.host + first.device if first else 0

    # ---- present memory ------------------------------------------------------------------------------

    def now(self) -> Now:
        profile = self.profile
        last = profile.timeline
        time, host, device = (last.time[-1], last.host[-1], last.device[-1]) if last.time else (0, 0, 0)
        peak = profile.peaks.get(main_peak(profile))
        return Now(time, host, device, peak.host + peak.device if peak else 0, peak.time if peak else 0)

    def owners(self) -> List[UsageRow]:
        """Those that hold anything."""
        return [row for row in self._sums.owners() if row.bytes]

    def lines(self, order: str, n: int) -> List[LineUsage]:
        """The first `n` in one of ORDERS, of those that hold anything or have given it back in the last seconds."""
        if not isinstance(self._sums, Sums):
            return []
        now, before = self._sums.by_line, self._sums.lines_before(self.now().time)
        hosts, devices = now[0::2], now[1::2]
        held = list(map(add, hosts, devices))
        grown = list(map(sub, held, map(add, before[0::2], before[1::2])))
        column = {"held": held, "grown": grown, "device": devices, "host": hosts}[order]
        # A run of PyTorch has tens of thousands of lines, and is looked at twice a second.
        first = heapq.nlargest(n, range(1, len(held)), key=column.__getitem__)
        shown = [place for place in first if held[place] or grown[place]]
        return [LineUsage(self._sums.line(place), hosts[place], devices[place], grown[place]) for place in shown]

    # ---- events ---------------------------------------------------------------------------

    def _fresh(self, what: str, rows: Any) -> Any:
        """Rows that are new since the last call."""
        begin = self._seen.get(what, 0)
        self._seen[what] = len(rows)
        return rows[begin:]

    def _add(self, time: int, kind: str, text: str) -> None:
        self.events.append(Event(time, kind, printable(text)))
        del self.events[:-_MOST_EVENTS]

    def _make_events(self) -> None:
        profile = self.profile
        for mark in self._fresh("marks", profile.marks):
            self._add(mark.time, MARK, f"mark: {mark.text}")
        for event in self._fresh("failures", list(profile.exhaustions.values())):
            asked = f", {size(event.bytes)} asked for" if event.bytes else ""
            place = self._sums.line_of(event.account)
            self._add(event.time, MEMORY, f"out of memory: {call_of(profile, event)}{asked}, at {place}")
        for snapshot in self._fresh("snapshots", profile.snapshots):
            if snapshot.reason == "low-memory":
                self._add(snapshot.time, MEMORY, "the machine's memory is nearly full")
        peak = profile.peaks.get(main_peak(profile))
        if peak and peak.host + peak.device > self._last_peak * (1 + _HIGHER):
            held = peak.host + peak.device
            last = self.events[-1] if self.events else None
            if last and last.kind == PEAK and profile.time_unit == "ms" and peak.time - last.time < _ONE_RISE_MS:
                self.events.pop()
            self._add(peak.time, PEAK, f"new peak: {size(held)}")
            self._last_peak = held
        if profile.end is not None and not self._seen.get("end"):
            self._seen["end"] = 1
            self._add(profile.end.time, END, self.state)

    def when(self, time: int) -> str:
        return moment(time, self.profile.time_unit)


MOST_RUNS = 64
# Traces are kept in memory: bytes.
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
        """Reads for about so long; returns whether anything is new."""
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
        """Finds and reads children's traces until there are no more."""
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
        """Another reader found that it cannot be followed."""
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
            del self.lost[before:]  # it was not named by the user
            if candidate in self._candidates:
                is_news = self._judge(candidate) or is_news
        return is_news

    def _beside(self, run: LiveRun) -> List[str]:
        """New files that may be traces of a run's children."""
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
        """Takes it in, closes it, or waits for its manifest. Returns whether it was taken in."""
        manifest = candidate.profile.manifest
        own = manifest.get("process", "").partition(".")[0]
        # A forked child's trace begins with a copy of its parent's manifest.
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
