# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs that are followed while they go on: their present memory, states and events, and their children's traces.

A child's trace lies beside its parent's, under a name with another number in the place of the parent's. The manifest of a
new file of such a name says whether it is a child's; others are closed again.

Sums by type of account and by line are kept up to date record by record, as a walk through all accounts takes long. A *line* is the
Python line to charge or, without one, the frame to blame.
"""

import heapq
import os
import re
import time
from array import array
from collections import deque
from contextlib import suppress
from copy import copy
from operator import add, sub
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from jmassif.analysis.aggregate import Usage, UsageRow
from jmassif.analysis.ladder import Ladder, ladders
from jmassif.analysis.moments import Moment, main_peak
from jmassif.analysis.oom import call_of
from jmassif.attribution.blame import NO_SYMBOLS, Innermost, Sites, base_name
from jmassif.attribution.names import describe
from jmassif.attribution.packages import INSTALLED, OWN
from jmassif.model.records import Changes, side_of
from jmassif.model.run import Profile
from jmassif.model.run_info import ending_of, is_pytorch
from jmassif.reader.builder import Builder
from jmassif.reader.follow import Follower
from jmassif.reader.input import is_of_this_machine, process_is_there
from jmassif.reader.tokens import Handler, TraceError
from jmassif.units import printable, size

# ---- builders ---------------------------------------------------------------------------------


class TailBuilder(Builder):
    """A builder that can undo a tail: a snapshot, a row of totals, and the balances and peaks in it.

    Native functions whose lines are still to be found are a frame each, for stacks that have been shown stay as they are.
    """

    CHANGED: Tuple[str, ...] = ("by_kind", "live_bytes", "clock", "snapshot_ids")  # fields that a tail changes

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self._of_function: Dict[Tuple[Any, ...], int] = {}  # the first frame of each
        self._instead: Dict[int, int] = {}  # it, by further ones

    def frame(self, id_: int, *fields: Any) -> None:
        super().frame(id_, *fields)
        if id_ in self.profile.line_places:
            _, function, object_, _, _, address = self.profile.frames[id_]
            first = self._of_function.setdefault((function, object_, 0 if function else address), id_)
            if first != id_:
                self._instead[id_] = first

    def nodes(self, rows: "array[int]") -> None:
        instead = self._instead
        super().nodes(array(rows.typecode, [instead.get(number, number) for number in rows]) if instead else rows)

    def checkpoint(self) -> Callable[[], None]:
        """A function that goes back to this state."""
        profile = self.profile
        n_snapshots, n_rows, peaks = len(profile.snapshots), len(profile.timeline.time), dict(profile.peaks)
        kept = {name: copy(getattr(self, name)) for name in self.CHANGED}

        def undo() -> None:
            vars(self).update(kept)
            self.group = None
            profile.peaks = peaks
            del profile.snapshots[n_snapshots:]
            for column in profile.timeline:
                del column[n_rows:]
            profile.forget(n_snapshots)

        return undo


# A line's growth is that of the run's last so many milliseconds, of sums that are kept once a second.
GROWTH_MS = 10000
_STEP_MS = 1000


class Sums(TailBuilder):
    """Builds a profile as every reader does, with sums beside it."""

    CHANGED = TailBuilder.CHANGED + ("by_type", "by_line", "_history")

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self.by_type = array("q", [0])  # of accounts
        # Two sums a line, host and device; the first pair is for accounts that do not count.
        self.by_line = array("q", [0, 0])
        self._history: Deque[Tuple[int, "array[int]"]] = deque()  # times, and `by_line` then
        self._lines: Dict[Tuple[str, int], int] = {("", 0): 0}  # the place of each label or frame in `by_line`
        self._line_of = array("I", [0])  # likewise of each account
        self._own: Set[int] = set()
        self._installed: Set[int] = set()
        self._innermost = (Innermost(profile, self._own), Innermost(profile, self._installed))
        self._sites = Sites(profile)

    def frame(self, id_: int, *fields: Any) -> None:
        super().frame(id_, *fields)
        if fields[0] == "p":
            rank = self._sites.folding.internal(id_).rank
            if rank in (OWN, INSTALLED):
                (self._own if rank == OWN else self._installed).add(id_)

    def account_type(self, id_: int, kind: str, owner: str) -> None:
        super().account_type(id_, kind, owner)
        self.by_type.append(0)

    def accounts(self, rows: "array[int]") -> None:
        super().accounts(rows)
        for innermost in self._innermost:
            innermost.extend()
        accounts = self.profile.accounts
        for account in range(len(self._line_of), len(accounts)):
            node, kind, _ = accounts[account]
            side = side_of(kind)
            place = self._lines.setdefault(self._line(node, kind), len(self.by_line)) if side else 0
            if place == len(self.by_line):
                self.by_line.extend((0, 0))
            self._line_of.append(place + (side == "device"))

    def changes(self, rows: "array[int]") -> None:
        accounts = rows[0 :: Changes.WIDTH]
        self.check_defined(accounts)
        live, types = self.live_bytes, self.profile.accounts.type_numbers
        for account, n_bytes in zip(accounts, rows[1 :: Changes.WIDTH]):
            more = n_bytes - live[account]
            if more:
                self.by_type[types[account]] += more
                self.by_line[self._line_of[account]] += more
        super().changes(rows)

    def snapshot_end(self, id_: int) -> None:
        super().snapshot_end(id_)
        history, time = self._history, self.clock
        if self.profile.time_unit == "ms" and (not history or time >= history[-1][0] + _STEP_MS):
            while len(history) > 1 and history[1][0] <= time - GROWTH_MS:
                history.popleft()
            history.append((time, self.by_line[:]))

    def _line(self, node: int, kind: str) -> Tuple[str, int]:
        """A label, or a frame. Mapped files are one line, and so are the functions without names of each object file."""
        own, installed = self._innermost
        frame = own(node) or installed(node)
        if not frame and node:
            frame = self.profile.node_frame[self._sites.find_site(node, kind)]
        if not frame:
            return f"({kind}, without a stack)", 0
        fields = self.profile.frame(frame)
        if fields.type == "m":
            return "mapped files", 0
        if fields.type != "p" and not fields.function and fields.object:
            frame = self._sites.backward(node)
            return ("" if frame else printable(f"{base_name(fields.object)} {NO_SYMBOLS}")), frame
        return "", frame

    # ---- present state ---------------------------------------------------------------------------

    def owners(self) -> List[UsageRow]:
        """Those that hold anything, the largest first."""
        sums: Dict[str, Usage] = {}
        for (kind, owner), n_bytes in zip(self.profile.accounts.types, self.by_type):
            usage = Usage(device_bytes=n_bytes) if side_of(kind) == "device" else Usage(n_bytes)
            if side_of(kind) and n_bytes:
                sums[owner] = sums.get(owner, Usage()) + usage
        return sorted((UsageRow(*row) for row in sums.items()), key=lambda row: -row.bytes)

    def lines(self, order: str, n: int) -> "List[LineUsage]":
        """The first `n` in one of ORDERS, of those that hold anything or have freed it in the last seconds."""
        before: "array[int]" = array("q")
        for known, sums in self._history:
            if before and known > self.clock - GROWTH_MS:
                break
            before = sums
        before = before + array("q", bytes(8 * (len(self.by_line) - len(before))))
        hosts, devices = self.by_line[0::2], self.by_line[1::2]
        held = list(map(add, hosts, devices))
        grown = list(map(sub, held, map(add, before[0::2], before[1::2])))
        column = {"held": held, "grown": grown, "device": devices, "host": hosts}[order]
        names = list(self._lines)
        # A run of PyTorch has tens of thousands of lines, and is looked at twice a second.
        first = heapq.nlargest(n, range(1, len(held)), key=column.__getitem__)
        shown = [at for at in first if held[at] or grown[at]]
        return [LineUsage(self._name(names[at]), Usage(hosts[at], 0, devices[at]), grown[at]) for at in shown]

    def line_of(self, account: int) -> str:
        return self._name(list(self._lines)[self._line_of[account] // 2])

    def _name(self, line: Tuple[str, int]) -> str:
        label, frame = line
        return label or describe(self.profile.frame(frame))


class Totals(TailBuilder):
    """Reads the records that state totals and peaks, a tenth of the work, and passes definitions and balances over."""

    def handlers(self) -> Dict[str, Handler]:
        return {letter: handler if letter in "mtSPEAZ" else None for letter, handler in super().handlers().items()}

    def check_sums(self, *_: Any) -> None:
        """There are no balances to check."""

    def stage(self, time: int) -> None:
        self.earlier_peaks = dict(self.profile.peaks)


# ---- runs -------------------------------------------------------------------------------------

_MOST_EVENTS = 20
ORDERS = ("held", "grown", "device", "host")  # of lines


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
        if self._tail and not self._undo:
            undo = self.model.checkpoint()
            try:
                self.follower.lay(self._tail)
                self._undo = undo
            except TraceError:  # it will be gone, or refused when it stays
                undo()
        return True


class Event(NamedTuple):
    time: int  # of the run
    text: str  # safe to show
    is_warning: bool = False


class LineUsage(NamedTuple):
    name: str  # safe to show
    usage: Usage  # bytes alone
    grown: int  # bytes in the last seconds


class Pool(NamedTuple):
    """Bytes of a memory."""

    name: str
    host: int
    device: int
    others: int  # in use by everything else
    capacity: int  # 0: not known


def _pool(name: str, host: int, device: int, capacity: Optional[int], available: Optional[int]) -> Pool:
    used = 0 if available is None else (capacity or 0) - available
    return Pool(name, host, device, max(0, used - host - device), capacity or 0)


def _available() -> Optional[int]:
    """Available memory of this machine in bytes."""
    with suppress(OSError), open("/proc/meminfo", encoding="ascii") as file:
        found = re.search(r"MemAvailable: *(\d+) kB", file.read())
        return int(found[1]) * 1024 if found else None
    return None


class Now(NamedTuple):
    """Present memory, as of the last record."""

    time: int
    host: int
    device: int
    peak: int
    peak_time: int


class LiveReport(NamedTuple):
    """The present state of a run, as of the last record."""

    command: str  # safe to show
    pid: int
    state: str  # in words
    is_running: bool
    is_pytorch: bool
    unit: str  # of times
    now: Now
    pools: Sequence[Pool]
    owners: Sequence[UsageRow]  # the largest first
    ladders: Sequence[Ladder]
    lines: Sequence[LineUsage]  # in their order
    events: Sequence[Event]  # the newest last


class LiveRun(Followed):
    def __init__(self, name: str, has_sums: bool = True) -> None:
        """Without sums only totals, peaks and the state are known, at a tenth of the cost."""
        self._has_sums = has_sums
        super().__init__(name)

    def new_model(self, profile: Profile) -> TailBuilder:
        if not self._has_sums:
            return Totals(profile)
        self.sums = Sums(profile)
        return self.sums

    # ---- what it is ----------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        return self.profile.number("pid") or 0

    @property
    def state(self) -> str:
        """In words."""
        profile = self.profile
        if profile.is_complete:
            return ending_of(profile)
        if not self.follower.has_begun:
            return "waiting for the trace"
        if not self.follower.is_all:
            return f"reading, {100 * self.follower.share_read:.0f} %"
        is_here = is_of_this_machine(profile.manifest) and "process" in profile.manifest
        return "killed (no end record)" if is_here and not process_is_there(profile.manifest) else "running"

    @property
    def is_running(self) -> bool:
        return self.state in ("running", "waiting for the trace")

    @property
    def command(self) -> str:
        return printable(self.profile.manifest.get("command", "") or self.name)

    # ---- present memory ------------------------------------------------------------------------------

    def now(self) -> Now:
        profile = self.profile
        last = profile.timeline
        time, host, device = (last.time[-1], last.host[-1], last.device[-1]) if last.time else (0, 0, 0)
        peak = profile.peaks.get(main_peak(profile))
        return Now(time, host, device, peak.host + peak.device if peak else 0, peak.time if peak else 0)

    def report(self, order: str, n_lines: int) -> LiveReport:
        """`n_lines` are the most lines, in one of ORDERS."""
        profile, now, owners = self.profile, self.now(), self.sums.owners()
        at = Moment("now", now.time, {}, len(profile.snapshots) - 1)
        return LiveReport(
            command=self.command,
            pid=self.pid,
            state=self.state,
            is_running=self.is_running,
            is_pytorch=is_pytorch(profile),
            unit=profile.time_unit,
            now=now,
            pools=self._pools(now),
            owners=owners,
            ladders=ladders(profile, at, owners),
            lines=self.sums.lines(order, n_lines),
            events=self._events(now),
        )

    def _pools(self, now: Now) -> List[Pool]:
        """The machine's memory, and that of a discrete GPU before it."""
        profile = self.profile
        total, available, device_total, device_free = (
            profile.system_at(name, now.time) for name in ("mem-total", "mem-available", "device-total", "device-free")
        )
        total = total or profile.number("mem-total-bytes")
        available = _available() if self.is_running and is_of_this_machine(profile.manifest) else available
        if not profile.is_discrete:
            return [_pool("memory", now.host, now.device, total, available)]
        device = [_pool("device", 0, now.device, device_total, device_free)] if now.device or device_total else []
        return device + [_pool("memory", now.host, 0, total, available)]

    def _events(self, now: Now) -> List[Event]:
        profile = self.profile
        found = [Event(mark.time, f"mark: {printable(mark.text)}") for mark in profile.marks[-_MOST_EVENTS:]]
        for failure in list(profile.exhaustions.values())[-_MOST_EVENTS:]:
            asked = f", {size(failure.bytes)} asked for" if failure.bytes else ""
            text = f"out of memory: {call_of(profile, failure)}{asked}, at {self.sums.line_of(failure.account)}"
            found.append(Event(failure.time, printable(text), True))
        for snapshot in profile.snapshots:
            if snapshot.reason == "low-memory":
                found.append(Event(snapshot.time, "the machine's memory is nearly full", True))
        if now.peak:
            found.append(Event(now.peak_time, f"peak: {size(now.peak)}"))
        if profile.end is not None:
            found.append(Event(profile.end.time, self.state))
        return sorted(found, key=lambda event: event.time)[-_MOST_EVENTS:]


# ---- runs and their children ----------------------------------------------------------------------

MOST_RUNS = 64
_LOOK_SECONDS = 0.5


class Family:
    """Raises TraceError for a name that cannot be followed from the beginning."""

    def __init__(self, names: Sequence[str], has_sums: bool = True) -> None:
        self._has_sums = has_sums
        self.runs = [LiveRun(name, has_sums) for name in names]
        self.lost: List[str] = []  # runs that cannot be followed any further, with the reason
        self.n_left_out = 0
        self._candidates: List[LiveRun] = []
        self._known: Set[str] = {os.path.realpath(name) for name in names}
        self._next_look = 0.0

    def poll(self, seconds: float) -> None:
        """Read for about so long."""
        begin = time.monotonic()
        if begin >= self._next_look:
            self._next_look = begin + _LOOK_SECONDS
            self._look()
        reading = list(self.runs)
        while reading and time.monotonic() < begin + seconds:
            for run in reading:
                try:
                    run.poll()
                except TraceError as error:
                    if len(self.runs) == 1:
                        raise
                    self.lost.append(f"{run.name}: {error}")
                    run.follower.close()
                    self.runs.remove(run)
            reading = [run for run in reading if run in self.runs and not run.follower.is_all]

    def settle(self) -> None:
        """Find and read children's traces until there are no more."""
        n_runs = -1
        while n_runs != len(self.runs) or not all(candidate.follower.is_all for candidate in self._candidates):
            n_runs = len(self.runs)
            self.poll(1e9)
            self._look()

    # ---- children ------------------------------------------------------------------------------------

    def _look(self) -> None:
        for run in list(self.runs):
            for path in self._beside(run):
                self._known.add(os.path.realpath(path))
                if len(self.runs) + len(self._candidates) >= MOST_RUNS:
                    self.n_left_out += 1
                    continue
                with suppress(TraceError):
                    self._candidates.append(LiveRun(path, self._has_sums))
        for candidate in list(self._candidates):
            try:
                candidate.poll()
                is_child = self._is_child(candidate)
            except TraceError:
                is_child = False
            if is_child is None:
                continue
            self._candidates.remove(candidate)
            if is_child:
                self.runs.append(candidate)
            else:
                candidate.follower.close()

    def _beside(self, run: LiveRun) -> List[str]:
        """New files that may be traces of a run's children."""
        directory, name = os.path.split(run.name)
        if not run.pid or str(run.pid) not in name:
            return []
        first, last = name.split(str(run.pid), 1)
        pattern = re.compile(rf"{re.escape(first)}\d+{re.escape(last)}(\.\d+)*")
        start = (run.profile.number("start-unix-ms") or 0) / 1000 - 2  # a file system may keep whole seconds
        try:
            names = sorted(filter(pattern.fullmatch, os.listdir(directory or ".")))
            paths = [os.path.join(directory, name) for name in names]
            new = [path for path in paths if os.path.realpath(path) not in self._known]
            return [path for path in new if os.path.isfile(path) and os.path.getmtime(path) >= start]
        except OSError:
            return []

    def _is_child(self, candidate: LiveRun) -> Optional[bool]:
        """Whether it is a child of a run that is followed; None: its manifest is not complete."""
        manifest = candidate.profile.manifest
        own = manifest.get("process", "").partition(".")[0]
        # A forked child's trace begins with a copy of its parent's manifest.
        is_own = own and manifest.get("pid") == own and "ppid" in manifest
        if not is_own or (not candidate.profile.snapshots and candidate.is_running):
            return None
        near = [run.profile.manifest for run in self.runs if run.profile.manifest.get("host") == manifest.get("host")]
        wanted = {manifest.get("ppid"), manifest.get("forked-from"), manifest.get("pid")}
        return any(parent.get("pid") in wanted for parent in near)
