# SPDX-License-Identifier: GPL-2.0-or-later
"""The model of one recorded run: what the records of a trace add up to.

Snapshots are kept as the recorder wrote them, as changes against the snapshot before, packed into arrays of 64-bit
numbers; `composition` replays them, so any snapshot, and the program's peaks, can be had in full without keeping them
all. Sizes are bytes; times are in the unit that `time_unit` names, as in the trace.
"""

from array import array
from bisect import bisect_right
from itertools import compress
from operator import or_
from typing import Dict, Iterable, Iterator, List, Optional, Set, Tuple

from jmassif.model import records
from jmassif.model.records import DEVICE_KINDS, HOST_KINDS, PAGE_KINDS, TENSOR, Counts, Frame, Lifetime, Pages


_REPLAYS_KEPT = 6
_TIME_UNITS = ("ms", "i", "B")


class PythonStacks:
    """The Python frames of all stacks, by their nodes: few, where the whole trie has a million."""

    def __init__(self) -> None:
        self.innermost = array("I", [0])  # by node of the trie: the Python node nearest to it, 0: none
        self.nodes = array("I", [0])  # in order, so callers come first
        self.callers = array("I", [0])  # of these: the next Python node outwards

    def extend(self, parents: "array[int]", frames: "array[int]", python: Set[int]) -> None:
        """To the nodes that have come since."""
        innermost, n_known = self.innermost, len(self.innermost)
        for node, (parent, frame) in enumerate(zip(parents[n_known:], frames[n_known:]), n_known):
            if frame in python:
                self.nodes.append(node)
                self.callers.append(innermost[parent])
                innermost.append(node)
            else:
                innermost.append(innermost[parent])


class Profile:
    """One run. Filled by reader/builder.py, read-only for everybody else."""

    def __init__(self) -> None:
        self.manifest: Dict[str, str] = {}
        self.group_of: Dict[str, str] = {}  # by owner
        self.strings: Dict[int, str] = {0: ""}
        # (type, function, object, file, line, address), strings by id: see frame().
        self.frames: Dict[int, Tuple[str, int, int, int, int, int]] = {}
        self.python_frames: Set[int] = set()
        # Frames whose lines are still to be found: the version of the object's file, a string id, and the address in it.
        self.line_places: Dict[int, Tuple[int, int]] = {}
        self.without_lines = ""  # why native code has none, if any could have
        self.thread_names: Dict[int, str] = {}  # by number, of those that have one
        self.source_hashes: Dict[str, str] = {}  # by path of a source file of the program's own: CRC-32 of what ran
        # The stack trie by node id, in columns: a PyTorch run has half a million nodes. 0: no parent.
        self.node_parent = array("I", [0])
        self.node_frame = array("I", [0])
        self.accounts = records.Accounts()
        self.roles: Dict[int, str] = {}  # by account; tensors without one are "other"
        self.timeline = records.Timeline(array("Q"), array("Q"), array("Q"), array("Q"))
        self.snapshots: List[records.Snapshot] = []
        self.peaks: Dict[str, records.Peak] = {}
        self.blocks = records.BlockEvents()  # in the order of the trace
        self.frees = array("Q")  # indices of those of them that went
        self.mappings: List[records.Mapped] = []  # of device memory
        self.exhaustions: Dict[int, records.Exhaustion] = {}  # by id
        self.block_thresholds: List[Tuple[int, int]] = []  # (time, bytes)
        self.containers: List[records.Container] = []
        self.copies: Dict[int, records.Copy] = {}  # by id: bytes that were held twice
        self.copies_until = 0  # when those without an end were last looked at
        self.copied: Dict[int, Tuple[int, int]] = {}  # by account with the stack: copies to the device, and their bytes
        self.scopes: List[records.Scope] = []
        self.scope_sums: Dict[str, records.ScopeSum] = {}
        self.failures: Dict[Tuple[str, int], int] = {}  # (API, error code): calls
        self.counters: Dict[str, int] = {}
        # Times and bytes of each figure of the machine (docs/trace-format.md).
        self.system: Dict[str, Tuple["array[int]", "array[int]"]] = {}
        self.marks: List[records.Mark] = []
        self.stages: List[records.Stage] = []
        self.regions: List[records.Region] = []
        self.region_sums: Dict[str, records.RegionSum] = {}
        self.objects: List[records.LoadedObject] = []
        self.end: Optional[records.End] = None
        self.is_running = False  # known of the process while its trace is followed
        self.was_dismissed = False  # its parent is known (model/process_tree.py), had it end, and went on well
        # 1 for each account that is to be seen; None: all. Compositions are of these alone, totals are not.
        self.kept: Optional[bytearray] = None
        self.chosen: Optional[bytearray] = None  # likewise what a page shows first of all that is in it
        self.chosen_by = ""  # the options that say so of either
        self.suppressed: Optional[bytearray] = None  # 1 for each account of a known leak
        self.truncation: Optional[str] = None  # where the trace was cut, if it was
        self._python_stacks = PythonStacks()
        # Results of earlier replays: by index of the snapshot, and up to so many snapshots.
        self._replays: Dict[int, Tuple["array[int]", "array[int]"]] = {}
        self._lifetime: Optional[Tuple[int, Lifetime]] = None

    @property
    def time_unit(self) -> str:
        unit = self.manifest.get("time-unit", "ms")
        return unit if unit in _TIME_UNITS else "ms"

    @property
    def is_complete(self) -> bool:
        """The trace goes on to where the program ended, or became another one."""
        became_another = bool(self.snapshots) and self.snapshots[-1].reason == "exec"
        return self.truncation is None and (self.end is not None or became_another)

    @property
    def is_discrete(self) -> bool:
        """Host and device are two pools, which must not be added up."""
        return self.manifest.get("memory") == "discrete"

    @property
    def last_time(self) -> int:
        """When the program ended or, where that is not on record, the last that is known of it."""
        return max(self.timeline.time[-1:].tolist() + ([self.end.time] if self.end else [0]))

    def number(self, key: str) -> Optional[int]:
        """A number from the manifest; None where it is missing or none of 64 bits."""
        text = self.manifest.get(key, "")
        return int(text) if text.isdecimal() and len(text) <= 20 else None

    def option(self, name: str, default: float) -> float:
        """A number among the recorder's options; `default` where it is missing or none."""
        try:
            value = float(self.manifest.get(f"option.{name}", default))
        except ValueError:
            return default
        return value if 0 <= value < float("inf") else default

    def role(self, account: int) -> Optional[str]:
        """The role of an account's tensors; None if it holds none."""
        if self.accounts.types[self.accounts.type_numbers[account]].owner != TENSOR:
            return None
        return self.roles.get(account, "other")

    @property
    def has_threads(self) -> bool:
        """Stacks begin with the thread that allocated."""
        return self.manifest.get("option.threads") == "yes"

    def thread(self, number: int) -> str:
        """The name of a thread; threads have numbers from 1, and 0 is all of those that share it."""
        unnamed = f"thread {number}" if number > 1 else "main thread" if number else "further threads"
        return self.thread_names.get(number, unnamed)

    def frame(self, frame: int) -> Frame:
        type_, function, object_, file, line, address = self.frames[frame]
        if type_ == "t":
            name = self.thread(line)
            return Frame(type_, f"thread {name}" if line in self.thread_names else name, "", "", 0, 0)
        text = self.strings
        return Frame(type_, text[function], text[object_], text[file], line, address)

    def stack(self, node: int) -> Iterator[int]:
        """The ids of the frames of a stack, innermost first."""
        while node:
            yield self.node_frame[node]
            node = self.node_parent[node]

    def python_stacks(self) -> PythonStacks:
        self._python_stacks.extend(self.node_parent, self.node_frame, self.python_frames)
        return self._python_stacks

    def composition(self, snapshot: int) -> records.LiveBytesByAccount:
        """Live memory by account at the snapshot with this index."""
        return self._seen(*self._held(snapshot))

    def peak_composition(self, which: str) -> records.LiveBytesByAccount:
        """Live memory by account when `which` of PEAKS was at its largest."""
        return self.composition_at(self.peaks[which])

    def composition_at(self, peak: records.Peak) -> records.LiveBytesByAccount:
        """Likewise at a peak of the run's or of one of its stages."""
        held, held_blocks = self._held(peak.snapshot)
        rows = peak.differences
        for account, n_bytes, blocks in zip(rows.account, rows.bytes, rows.blocks):
            held[account] = n_bytes
            held_blocks[account] = blocks
        return self._seen(held, held_blocks)

    def _seen(self, held: "array[int]", blocks: "array[int]") -> records.LiveBytesByAccount:
        accounts = list(compress(range(len(held)), map(or_, held, blocks)))
        rows = zip(accounts, zip(map(held.__getitem__, accounts), map(blocks.__getitem__, accounts)))
        kept = self.kept
        return dict(rows) if kept is None else {account: row for account, row in rows if kept[account]}

    def narrow(self, kept: bytearray) -> None:
        """From now on only accounts that have 1 are seen."""
        self.kept = kept
        self._lifetime = None

    @property
    def has_pages(self) -> bool:
        return self.manifest.get("option.pages") == "yes"

    def is_sampled(self, kind: str) -> bool:
        """True if accounts of the kind hold resident pages."""
        return self.has_pages and kind in PAGE_KINDS

    def allocated_bytes(self, by_kind: Dict[str, int]) -> int:
        """Bytes in both memory spaces, without sampled pages."""
        kinds = [kind for kind in HOST_KINDS + DEVICE_KINDS if not self.is_sampled(kind)]
        return sum(by_kind.get(kind, 0) for kind in kinds)

    def region_figures(self, region: records.Region) -> records.RegionFigures:
        """Exact, for the recorder writes the totals at both ends of a region."""
        timeline = self.timeline
        last = (len(timeline.time) if region.end is None else region.end_row) - 1
        first = region.begin_row - 1
        before, after = ((timeline.host[row], timeline.device[row]) if row >= 0 else (0, 0) for row in (first, last))
        most = max(timeline.maximum[first + 1 : last + 1], default=0)
        return records.RegionFigures(max(most, sum(before)), after[0] - before[0], after[1] - before[1])

    def copied_file(self, account: int) -> str:
        """Path of the file of data whose pages, copied by a private mapping, the account holds; "" for other accounts."""
        node, kind, _ = self.accounts[account]
        frame = self.frame(next(iter(self.stack(node)))) if kind == "anon" and node else None
        # Shared memory is anonymous although it has a name.
        is_file = (
            frame and frame.function == "mapped-data" and not frame.object.startswith(("/dev/", "/memfd:", "/SYSV"))
        )
        return frame.object if frame and is_file else ""

    def pages(self, snapshot: int) -> Dict[int, Pages]:
        """The mappings of each account at the snapshot with this index."""
        found: Dict[int, Pages] = {}
        for earlier in self.snapshots[: snapshot + 1]:
            rows = earlier.pages
            for account, *numbers in zip(rows.account, rows.virtual, rows.shared, rows.swapped):
                found[account] = Pages(*numbers)
        return {account: pages for account, pages in found.items() if any(pages)}

    def counts(self, least_temporaries: int = 0) -> Dict[int, Counts]:
        """All that each account ever allocated, up to the last snapshot, without accounts with fewer temporaries."""
        lifetime = self.lifetime()
        found = [account for account, n in enumerate(lifetime.temporaries) if n >= least_temporaries]
        counts = ((account, Counts(*(column[account] for column in lifetime))) for account in found)
        return {account: row for account, row in counts if any(row)}

    def lifetime(self, snapshot: Optional[int] = None) -> Lifetime:
        """All that each account ever allocated up to the snapshot with this index, by default the last; -1: before the first.

        The columns are everybody's, and not to be changed: it takes a walk through all snapshots to make them.
        """
        n_snapshots = len(self.snapshots) if snapshot is None else snapshot + 1
        if self._lifetime is None or self._lifetime[0] != n_snapshots:
            all_bytes, blocks, temporaries = self._column(), self._column(), self._column()
            unseen = bytearray(b"\1") * len(self.accounts) if self.kept is None else self.kept[:]
            for earlier in reversed(self.snapshots[:n_snapshots]):
                rows = earlier.changes
                columns = (rows.all_bytes, rows.all_blocks, rows.temporaries)
                for account, n_bytes, n_blocks, n_temporaries in rows.backwards(unseen, *columns):
                    all_bytes[account], blocks[account], temporaries[account] = n_bytes, n_blocks, n_temporaries
                    unseen[account] = 0
            self._lifetime = n_snapshots, Lifetime(all_bytes, blocks, temporaries)
        return self._lifetime[1]

    def _column(self, numbers: Iterable[int] = ()) -> "array[int]":
        """These numbers by account id, 0 for those that came later."""
        column = array("Q", numbers)
        column.frombytes(bytes(8 * (len(self.accounts) - len(column))))
        return column

    def forget(self, n_snapshots: int) -> None:
        """Drop results from snapshots beyond the first so many, which are gone."""
        self._lifetime = None
        self._replays = {index: replay for index, replay in self._replays.items() if index < n_snapshots}

    def system_at(self, figure: str, time: int) -> Optional[int]:
        """The kernel's last value of a figure of the machine, in bytes; None before the first."""
        times, values = self.system.get(figure, ((), ()))
        at = bisect_right(times, time)
        return values[at - 1] if at else None

    def _held(self, snapshot: int) -> Tuple["array[int]", "array[int]"]:
        """Bytes and blocks by account id at the snapshot with this index.

        Reports ask for the same few again and again: from the last before it on. Of each account only its last change matters.
        """
        begin = max((index for index in self._replays if index <= snapshot), default=-1)
        held, held_blocks = map(self._column, self._replays.get(begin, ((), ())))
        unseen = bytearray(b"\1") * len(self.accounts)
        n_unseen = len(unseen)
        for earlier in reversed(self.snapshots[begin + 1 : snapshot + 1]):
            rows = earlier.changes
            for account, n_bytes, blocks in rows.backwards(unseen, rows.bytes, rows.blocks):
                held[account] = n_bytes
                held_blocks[account] = blocks
                unseen[account] = 0
                n_unseen -= 1
            if n_unseen <= 1:  # no account is 0
                break
        if begin < snapshot:
            if len(self._replays) == _REPLAYS_KEPT:
                del self._replays[next(iter(self._replays))]
            self._replays[snapshot] = records.narrowed(held), records.narrowed(held_blocks)
        return held, held_blocks

    def growths(self) -> Iterator[Tuple[records.Snapshot, Iterator[Tuple[int, int, int]]]]:
        """Each snapshot with (account, bytes, blocks) of what its changes add, negative for what they take away.

        These must be gone through before the next snapshot.
        """
        held, held_blocks = self._column(), self._column()

        def grown(changes: records.Changes) -> Iterator[Tuple[int, int, int]]:
            for account, n_bytes, blocks in zip(changes.account, changes.bytes, changes.blocks):
                yield account, n_bytes - held[account], blocks - held_blocks[account]
                held[account] = n_bytes
                held_blocks[account] = blocks

        for snapshot in self.snapshots:
            yield snapshot, grown(snapshot.changes)
