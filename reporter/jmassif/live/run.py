# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs that are followed while they go on: their present memory, states and events, and their children's traces.

A child's trace lies beside its parent's, under a name with another number in the place of the parent's. The manifest of a
new file of such a name says whether it is a child's; others are closed again.

Sums by owner and by line are kept up to date record by record: a balance that changes adds its difference to its owner's, and
to that of its *line*, the Python line to charge or, without one, the frame to blame. Nothing walks through accounts.
"""

import heapq
import os
import re
import time
from array import array
from collections import deque
from operator import add, sub
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from jmassif.analysis.aggregate import Usage, UsageRow
from jmassif.analysis.moments import main_peak
from jmassif.analysis.oom import call_of
from jmassif.attribution.blame import NO_SYMBOLS, Innermost, Sites, base_name
from jmassif.attribution.names import describe
from jmassif.attribution.packages import INSTALLED, OWN
from jmassif.model.records import Changes, side_of
from jmassif.model.run import Profile
from jmassif.reader.builder import Builder
from jmassif.reader.follow import Follower
from jmassif.reader.input import STDIN, is_of_this_machine, process_is_there
from jmassif.reader.tokens import Handler, TraceError
from jmassif.units import printable, size

# ---- builders ---------------------------------------------------------------------------------

# Two sums a name, host and device side by side; the first pair is for accounts that do not count.
_NOWHERE = 0
# A line's growth is that of the run's last so many milliseconds, of sums that are kept once a second.
GROWTH_MS = 10000
_STEP_MS = 1000


# Labels of lines that are several frames.
MAPPED_FILES = "mapped files"

_READ = ("m", "t", "S", "P", "E", "A", "Z")  # by Totals


class TailBuilder(Builder):
    """A builder that can undo a tail: a snapshot, a row of totals, and the balances and peaks in it."""

    def checkpoint(self) -> Callable[[], None]:
        """A function that goes back to this state."""
        profile = self.profile
        n_snapshots, n_rows = len(profile.snapshots), len(profile.timeline.time)
        kept = (dict(self.by_kind), self.live_bytes[:], self.clock, dict(profile.peaks), set(self.snapshot_ids))

        def undo() -> None:
            self.by_kind, self.live_bytes, self.clock = kept[:3]
            self.group = None
            profile.peaks = kept[3]
            for id_ in set(self.snapshot_ids) - kept[4]:
                del self.snapshot_ids[id_]
            del profile.snapshots[n_snapshots:]
            for column in profile.timeline:
                del column[n_rows:]
            profile.forget(n_snapshots)

        return undo


class Sums(TailBuilder):
    """Builds a profile as every reader does, with sums beside it."""

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self.by_owner = array("q", [0, 0])
        self.by_line = array("q", [0, 0])
        self._history: Deque[Tuple[int, "array[int]"]] = deque()  # times, and `by_line` then
        self._owners: List[str] = [""]
        self._lines: List[Tuple[str, int]] = [("", 0)]  # a label, or a frame
        self._labels: Dict[int, str] = {}
        self._owner_places: Dict[Tuple[str, str], int] = {}  # by kind and owner
        self._line_places: Dict[Tuple[str, int], int] = {}
        # The places of the two sums of each account.
        self._owner_of = array("I", [_NOWHERE])
        self._line_of = array("I", [_NOWHERE])
        self._own: Set[int] = set()
        self._installed: Set[int] = set()
        self._innermost = (Innermost(profile, self._own), Innermost(profile, self._installed))
        self._sites = Sites(profile)

    def frame(self, id_: int, type_: str, function: int, object_: int, file: int, line: int, address: int) -> None:
        super().frame(id_, type_, function, object_, file, line, address)
        if type_ == "p":
            rank = self._sites.folding.internal(id_).rank
            if rank in (OWN, INSTALLED):
                (self._own if rank == OWN else self._installed).add(id_)

    def checkpoint(self) -> Callable[[], None]:
        undo_records = super().checkpoint()
        self._place_new()
        by_owner, by_line, history = self.by_owner[:], self.by_line[:], self._history.copy()

        def undo() -> None:
            undo_records()
            self.by_owner, self.by_line, self._history = by_owner, by_line, history

        return undo

    def changes(self, rows: "array[int]") -> None:
        self._place_new()
        live, n_known = self.live_bytes, len(self._owner_of)
        for account, n_bytes in zip(rows[0 :: Changes.WIDTH], rows[1 :: Changes.WIDTH]):
            if account < n_known and n_bytes != live[account]:
                more = n_bytes - live[account]
                self.by_owner[self._owner_of[account]] += more
                self.by_line[self._line_of[account]] += more
        super().changes(rows)

    def snapshot_end(self, id_: int) -> None:
        super().snapshot_end(id_)
        history, time = self._history, self.clock
        if self.profile.time_unit == "ms" and (not history or time >= history[-1][0] + _STEP_MS):
            while len(history) > 1 and history[1][0] <= time - GROWTH_MS:
                history.popleft()
            history.append((time, self.by_line[:]))

    def _place_new(self) -> None:
        accounts = self.profile.accounts
        if len(self._owner_of) == len(accounts):
            return
        for innermost in self._innermost:
            innermost.extend()
        for account in range(len(self._owner_of), len(accounts)):
            node, kind, owner = accounts[account]
            side = side_of(kind)
            if side is None:
                self._owner_of.append(_NOWHERE)
                self._line_of.append(_NOWHERE)
                continue
            place = self._owner_places.get((kind, owner))
            if place is None:
                place = self._owner_places[kind, owner] = self._owner_place(owner, side)
            self._owner_of.append(place)
            self._line_of.append(self._line_place(node, kind, side))

    def _owner_place(self, owner: str, side: str) -> int:
        if owner not in self._owners[1:]:
            self._owners.append(owner)
            self.by_owner.extend((0, 0))
        return 2 * self._owners.index(owner, 1) + (side == "device")

    def _line_place(self, node: int, kind: str, side: str) -> int:
        own, installed = self._innermost
        frame = own(node) or installed(node)
        if not frame and node:
            frame = self.profile.node_frame[self._sites.find_site(node, side)]
        key = self._line_key(frame, kind)
        place = self._line_places.get(key)
        if place is None:
            place = self._line_places[key] = 2 * len(self._lines)
            self._lines.append(key)
            self.by_line.extend((0, 0))
        return place + (side == "device")

    def _line_key(self, frame: int, kind: str) -> Tuple[str, int]:
        """Mapped files are one line, and so are the functions without names of each object file."""
        if not frame:
            return f"({kind or 'listed only'}, without a stack)", 0
        fields = self.profile.frame(frame)
        if fields.type == "m":
            return MAPPED_FILES, 0
        if fields.type != "p" and not fields.function and fields.object:
            return printable(f"{NO_SYMBOLS} ({base_name(fields.object)})"), 0
        return "", frame

    # ---- present state ---------------------------------------------------------------------------

    def owners(self) -> List[UsageRow]:
        sums = self.by_owner
        return [UsageRow(name, Usage(sums[2 * i], 0, sums[2 * i + 1])) for i, name in enumerate(self._owners) if i]

    def lines_before(self, time: int) -> "array[int]":
        """`by_line` so many milliseconds before, or as early as it is known."""
        before: "array[int]" = array("q")
        for known, sums in self._history:
            if before and known > time - GROWTH_MS:
                break
            before = sums
        return before + array("q", bytes(8 * (len(self.by_line) - len(before))))

    def line_of(self, account: int) -> str:
        self._place_new()
        return self.line(self._line_of[account] // 2)

    def line(self, place: int) -> str:
        """The name of a line; a place is half of that in the sums. Safe to show."""
        text = self._labels.get(place)
        if text is None:
            label, frame = self._lines[place]
            text = self._labels[place] = describe(self.profile.frame(frame)) if frame else label
        return text


class Totals(TailBuilder):
    """Reads the records that state totals and peaks, a tenth of the work, and passes definitions and balances over."""

    def handlers(self) -> Dict[str, Handler]:
        return {letter: handler if letter in _READ else None for letter, handler in super().handlers().items()}

    def check_sums(self, *_: Any) -> None:
        """There are no balances to check."""

    def stage(self, time: int) -> None:
        self.earlier_peaks = dict(self.profile.peaks)

    def owners(self) -> List[UsageRow]:
        return []

    def line_of(self, account: int) -> str:
        return ""


# ---- runs -------------------------------------------------------------------------------------

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


MOST_RUNS = 64
# Traces are kept in memory: bytes.
_MOST_BYTES = 2 << 30
_LOOK_SECONDS = 0.5


class Family:
    """Raises TraceError for a name that cannot be followed from the beginning."""

    def __init__(self, names: Sequence[str], now: Callable[[], float] = time.monotonic, has_sums: bool = True) -> None:
        """`has_sums`: see LiveRun."""
        self._has_sums = has_sums
        self.runs = [LiveRun(name, has_sums) for name in names]
        self.lost: List[str] = []  # runs that cannot be followed any further, with the reason
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
        n_runs = -1
        while n_runs != len(self.runs) or not all(candidate.follower.is_all for candidate in self._candidates):
            n_runs = len(self.runs)
            self._next_look = 0.0
            self.poll(1e9)

    def _poll(self, run: LiveRun, among: List[LiveRun]) -> bool:
        try:
            return run.poll()
        except TraceError as error:
            self.lost.append(f"{run.name}: {error}")
            if len(among) > 1 or among is self._candidates:
                run.follower.close()
                among.remove(run)
                return True
            raise

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
