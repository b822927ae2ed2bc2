# SPDX-License-Identifier: GPL-2.0-or-later
"""Which lines of a run grow, asked again and again while it goes on.

The question (analysis/leaks.py) takes a second for a run of PyTorch. So a process of its own answers it, and it is asked no
more often than makes half a hundredth of the time: whoever shows a run stays awake, and is cheap.
"""

import os
import pickle
import select
import time
from array import array
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from jmassif.analysis.leaks import find_growth
from jmassif.attribution.blame import Innermost, Sites
from jmassif.attribution.names import Names, describe
from jmassif.attribution.packages import INSTALLED, OWN
from jmassif.model.records import Changes, Differences, Peak, Snapshot, side_of
from jmassif.model.run import Profile
from jmassif.reader.builder import Builder, require
from jmassif.reader.tokens import Handler


# ---- sums ----
# What a run holds now, by owner and by line, kept up to date while its trace is read.
#
# A balance that changes adds its difference to two sums: that of its owner, and that of its *line*, which is the Python line
# that is charged with it or, without one, the frame to blame. So what is held now is known at any time without a walk through
# accounts. What a trace's tail tells is laid over the sums and forgotten.

# Of every name two sums lie side by side, and the first pair is for what is in no sum.
_SIDES = {"host": 0, "device": 1}
_NOWHERE = 0


class Held(NamedTuple):
    """Bytes."""

    name: str
    host: int
    device: int

    @property
    def bytes(self) -> int:
        return self.host + self.device


class Sums(Builder):
    """Builds a profile as every reader does, and keeps the sums beside it."""

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self.by_owner = array("q", [0, 0])
        self.by_line = array("q", [0, 0])
        self._owners: List[str] = [""]
        self._lines: List[Tuple[str, int]] = [("", 0)]  # kind of memory without a stack, frame
        self._labels: Dict[int, str] = {}
        self._owner_places: Dict[Tuple[str, str], int] = {}  # by kind and owner
        self._line_places: Dict[Tuple[str, int], int] = {}
        # By account: where its two sums are.
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

    def changes(self, rows: "array[int]") -> None:
        for account, more in self._grown(rows):
            self.by_owner[self._owner_of[account]] += more
            self.by_line[self._line_of[account]] += more
        super().changes(rows)

    def _grown(self, rows: "array[int]") -> Iterator[Tuple[int, int]]:
        """Of accounts that are defined: how much more they hold by these balances than by those before."""
        self._place_new()
        live, n_known = self.live_bytes, len(self._owner_of)
        for account, n_bytes in zip(rows[0 :: Changes.WIDTH], rows[1 :: Changes.WIDTH]):
            if account < n_known and n_bytes != live[account]:
                yield account, n_bytes - live[account]

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
        return 2 * self._owners.index(owner, 1) + _SIDES[side]

    def _line_place(self, node: int, kind: str, side: str) -> int:
        own, installed = self._innermost
        frame = own(node) or installed(node)
        if not frame and node:
            frame = self.profile.node_frame[self._sites.find_site(node, side)]
        key = ("" if frame else kind, frame)
        place = self._line_places.get(key)
        if place is None:
            place = self._line_places[key] = 2 * len(self._lines)
            self._lines.append(key)
            self.by_line.extend((0, 0))
        return place + _SIDES[side]

    # ---- what is told ----------------------------------------------------------------------------

    def laid_over(self, rows: "array[int]") -> "Tuple[array[int], array[int]]":
        """The sums by owner and by line with a tail's balances."""
        self._place_new()
        owners, lines = self.by_owner[:], self.by_line[:]
        for account, more in self._grown(rows):
            owners[self._owner_of[account]] += more
            lines[self._line_of[account]] += more
        return owners, lines

    def owners(self, sums: "array[int]") -> List[Held]:
        return [Held(name, sums[2 * i], sums[2 * i + 1]) for i, name in enumerate(self._owners) if i]

    def line_of(self, account: int) -> str:
        self._place_new()
        return self.line(self._line_of[account] // 2)

    def line(self, place: int) -> str:
        """What a line is called: a place is half of that in the sums."""
        text = self._labels.get(place)
        if text is None:
            kind, frame = self._lines[place]
            text = describe(self.profile.frame(frame)) if frame else f"({kind or 'listed only'}, without a stack)"
            self._labels[place] = text
        return text


# ---- totals ----
# What a run holds now in all, and its peaks: what a trace says outright, so that it is read without knowing whose anything is.
#
# Most of a trace are definitions and balances. They are passed over, and whether they are right is for others to find.

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


# ---- slopes ----

_SHARE = 0.005  # of the time
_LEAST_SECONDS = 2.0


class Slope(NamedTuple):
    label: str
    bytes: float  # by step or, where that is "", by unit of time
    step: str


def _answer(profile: Profile) -> List[Slope]:
    growth = find_growth(profile, Names(profile))
    return [Slope(line.label, line.bytes_per_step, growth.step) for line in growth.lines[:3]]


class Slopes:
    """Of one run after the other."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._next = now() + _LEAST_SECONDS
        self._child = 0
        self._pipe = -1

    def ask(self, profile: Profile) -> None:
        """Unless an answer is under way, or it is too early to ask."""
        if self._child or self._now() < self._next or not profile.snapshots:
            return
        reading, writing = os.pipe()
        child = os.fork()
        if child:
            os.close(writing)
            self._child, self._pipe = child, reading
            return
        # What is the parent's, its terminal above all, is none of the child's.
        try:
            os.nice(10)
            os.write(writing, pickle.dumps(_answer(profile)))
        finally:
            os._exit(0)

    def answer(self) -> Optional[List[Slope]]:
        """To what was asked; None: not yet."""
        if not self._child or not select.select([self._pipe], [], [], 0)[0]:
            return None
        told = os.read(self._pipe, 1 << 16)
        os.close(self._pipe)
        _, _, used = os.wait4(self._child, 0)
        self._child = 0
        self._next = self._now() + max(_LEAST_SECONDS, (used.ru_utime + used.ru_stime) / _SHARE)
        found: List[Slope] = pickle.loads(told) if told else []
        return found
