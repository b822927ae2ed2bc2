# SPDX-License-Identifier: GPL-2.0-or-later
"""Builders of a run that goes on: with sums by owner and by line, or of totals alone.

A balance that changes adds its difference to two sums: its owner's, and that of its *line*, which is the Python line to
charge or, without one, the frame to blame. So the present sums are known without a walk through accounts.
"""

from array import array
from collections import deque
from typing import Callable, Deque, Dict, List, Set, Tuple

from jmassif.analysis.aggregate import Usage, UsageRow
from jmassif.attribution.blame import NO_SYMBOLS, Innermost, Sites, base_name
from jmassif.attribution.names import describe
from jmassif.attribution.packages import INSTALLED, OWN
from jmassif.model.records import Changes, Differences, Peak, Snapshot, side_of
from jmassif.model.run import Profile
from jmassif.reader.builder import Builder, require
from jmassif.reader.tokens import Handler
from jmassif.units import printable

# Two sums a name, host and device side by side; the first pair is for accounts that are in no sum.
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
        # By account: the places of its two sums.
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

    def snapshot_end(self, id_: int) -> None:
        group, profile = self._open_group(), self.profile
        require(id_ == group.id, f"snapshot {group.id} is closed as {id_}")
        index = len(profile.snapshots)
        profile.snapshots.append(
            Snapshot(id_, group.time, group.reason, {}, group.changes, group.pages, group.position)
        )
        for peak in group.peaks:
            found = Peak(peak.which, peak.time, peak.host, peak.device, index, {}, Differences())
            before = self.earlier_peaks.get(peak.which)
            if before is None or found.bytes > before.bytes:
                profile.peaks[peak.which] = found
        self.group = None

    def stage(self, time: int) -> None:
        self.earlier_peaks = dict(self.profile.peaks)

    def owners(self) -> List[UsageRow]:
        return []

    def line_of(self, account: int) -> str:
        return ""
