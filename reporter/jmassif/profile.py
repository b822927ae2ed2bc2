# SPDX-License-Identifier: GPL-2.0-or-later
"""The model of one recorded run: what the records of a trace add up to.

Snapshots are kept as the recorder wrote them, as changes against the snapshot before, packed into arrays of 64-bit
numbers; `composition` replays them, so any snapshot, and the program's peaks, can be had in full without keeping them
all. Sizes are bytes; times are in the unit that `time_unit` names, as in the trace.
"""

import os
from array import array
from bisect import bisect_right
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from jmassif.trace import Growth
from jmassif.units import printable

HOST_KINDS = ("heap", "heap-overhead", "stack", "anon", "file", "pinned", "driver-host")
DEVICE_KINDS = ("device", "array", "managed", "pool", "vmm", "driver")
# Of these the resident pages count, which the recorder samples. Stacks too, where --stacks did not measure them.
PAGE_KINDS = ("anon", "file", "stack")
# What GPU drivers commit below the CUDA API.
DRIVER_KINDS = ("driver", "driver-host")
LISTED_KINDS = ("imported",)  # never part of a sum
KINDS = HOST_KINDS + DEVICE_KINDS + LISTED_KINDS

GROUPS = ("yours", "cached", "libraries", "runtime")
PEAKS = ("total", "host", "device")
# The peak of what was allocated: of everything but sampled pages. Only a trace with pages has it.
ALLOCATED = "allocated"
# What tensors are for in training, in the order in which reports list them. An owner rule may name further ones.
ROLES = ("parameter", "gradient", "optimizer", "activation", "input", "temporary", "other")
# The owner whose accounts have roles.
TENSOR = "tensor"
TIME_UNITS = ("ms", "i", "B")

# Account id: (live bytes, live blocks). Accounts that hold nothing are left out.
Composition = Dict[int, Tuple[int, int]]


def side_of(kind: str) -> Optional[str]:
    """ "host", "device", or None for kinds that are only listed."""
    return "host" if kind in HOST_KINDS else "device" if kind in DEVICE_KINDS else None


def counted_blocks(kind: str, blocks: int) -> int:
    """How many of an account's blocks count in a sum: a heap block's overhead is no block of its own."""
    return 0 if kind == "heap-overhead" else blocks


class Frame(NamedTuple):
    type: str  # "n" native, "i" inlined, "p" Python, "m" a mapped file
    function: str  # "" where not known, as for object and file
    object: str
    file: str
    line: int  # 0: not known
    address: int


class Account(NamedTuple):
    node: int  # of the stack trie; 0: memory without a stack
    kind: str
    owner: str


# In the place of ids that no account has.
NO_ACCOUNT = Account(0, "", "")


class Snapshot(NamedTuple):
    id: int
    time: int
    reason: str
    by_kind: Dict[str, int]  # live bytes; every kind that ever occurred
    changes: "array[int]"  # rows of six: the fields of a `c` record
    pages: "array[int]" = array("Q")  # rows of four: the fields of a `v` record
    position: int = 0  # rows of Profile.blocks before it

    @property
    def host(self) -> int:
        return sum(self.by_kind.get(kind, 0) for kind in HOST_KINDS)

    @property
    def device(self) -> int:
        return sum(self.by_kind.get(kind, 0) for kind in DEVICE_KINDS)


class Peak(NamedTuple):
    which: str  # one of PEAKS, or ALLOCATED
    time: int
    host: int
    device: int
    snapshot: int  # index of the snapshot that its composition is told against
    by_kind: Dict[str, int]
    differences: "array[int]"  # rows of three: the fields of a `d` record


class Pages(NamedTuple):
    """What is known of an account's mappings besides their resident bytes."""

    virtual: int  # bytes of the mappings
    shared: int  # resident bytes, each divided by the number of processes that share it
    swapped: int  # likewise, of what is swapped out


class Counts(NamedTuple):
    """What an account saw in its whole life."""

    bytes: int
    blocks: int
    temporaries: int


class Lifetime(NamedTuple):
    """Counts of all accounts, in columns by account id."""

    bytes: "array[int]"
    blocks: "array[int]"
    temporaries: "array[int]"


class Timeline(NamedTuple):
    """Columns of one length: the totals over time, and the largest host + device since the row before."""

    time: "array[int]"
    host: "array[int]"
    device: "array[int]"
    maximum: "array[int]"


class Scope(NamedTuple):
    id: int
    parent: int  # 0, or the id of the scope around it, which is missing if it never ended
    thread: int
    begin: int
    end: int
    node: int
    name: str
    growths: Tuple[Growth, ...]


class ScopeSum(NamedTuple):
    """Calls of one name that came too often to be recorded one by one."""

    name: str
    calls: int
    time: int
    growths: Tuple[Growth, ...]


class Mark(NamedTuple):
    time: int
    text: str
    snapshot: Optional[int] = None  # index of the one that was taken then


class Region(NamedTuple):
    begin: int
    end: Optional[int]  # None: still open when the trace ended
    thread: int
    depth: int  # regions of the same thread around it
    text: str
    # The rows of the timeline inside it: its own totals are those of the row before the first, and of the last.
    begin_row: int
    end_row: int


class RegionSum(NamedTuple):
    """All regions of a name that came too often to be recorded one by one."""

    text: str
    calls: int  # that have ended
    time: int


class LoadedObject(NamedTuple):
    begin: int
    end: Optional[int]  # None: never unmapped
    address: int
    size: int
    soname: str
    path: str


class Mapped(NamedTuple):
    """Memory of cuMemCreate got addresses, or lost them."""

    position: int  # rows of Profile.blocks before it
    address: int
    size: int
    handle: Optional[int]  # None: it lost them


class Exhaustion(NamedTuple):
    """An allocation failed for lack of memory."""

    id: int
    time: int
    thread: int
    account: int  # that would have had the memory
    api: str
    error: int
    bytes: int  # asked for; 0: not known
    again: int  # id of the event that this is a further try of; 0: none
    figures: Dict[str, int]  # as docs/trace-format.md names them
    position: int  # rows of Profile.blocks before it
    snapshot: Optional[int] = None  # index of the one that was taken then
    outcome: str = ""  # "retried", "raised"
    outcome_time: int = 0
    outcome_position: int = 0  # rows of Profile.blocks before it


class End(NamedTuple):
    time: int
    reason: str  # "exit" or "signal"
    code: int


class Profile:
    """One run. Filled by jmassif.load, read-only for everybody else."""

    @staticmethod
    def load(path: "Union[str, os.PathLike[str]]") -> "Profile":
        """Reads the trace at `path`, which may be compressed with gzip or zstd; "-" is standard input.

        A trace that ends early, because the program was killed or still runs, is read as far as it goes: `is_complete` and
        `truncation` tell. Raises jmassif.TraceError, whose text is one line, for what is no trace, damaged or not readable.
        """
        from jmassif.load import load_file  # which needs this module
        from jmassif.trace import TraceError

        name = os.fspath(path)
        try:
            return load_file(name)
        except TraceError as error:
            raise TraceError(f"{printable(name)}: {error}") from None

    def __init__(self) -> None:
        self.manifest: Dict[str, str] = {}
        self.group_of: Dict[str, str] = {}  # by owner
        self.strings: Dict[int, str] = {0: ""}
        # (type, function, object, file, line, address), strings by id: see frame().
        self.frames: Dict[int, Tuple[str, int, int, int, int, int]] = {}
        # The stack trie by node id, in columns: a PyTorch run has half a million nodes. 0: no parent.
        self.node_parent = array("Q", [0])
        self.node_frame = array("Q", [0])
        self.accounts: List[Account] = [NO_ACCOUNT]  # by id
        self.roles: Dict[int, str] = {}  # by account; tensors without one are "other"
        self.timeline = Timeline(array("Q"), array("Q"), array("Q"), array("Q"))
        self.snapshots: List[Snapshot] = []
        self.peaks: Dict[str, Peak] = {}
        # Rows of four, in the order of the trace: time, address, size, account. A freed block has size 0 and is in
        # `frees`, which holds the indices of such rows.
        self.blocks = array("Q")
        self.frees = array("Q")
        self.mappings: List[Mapped] = []  # of device memory
        self.exhaustions: Dict[int, Exhaustion] = {}  # by id
        self.block_thresholds: List[Tuple[int, int]] = []  # (time, bytes)
        self.scopes: List[Scope] = []
        self.scope_sums: Dict[str, ScopeSum] = {}
        self.failures: Dict[Tuple[str, int], int] = {}  # (API, error code): calls
        self.counters: Dict[str, int] = {}
        # By figure of the machine, as docs/trace-format.md names them: times, and bytes from then on.
        self.system: Dict[str, Tuple["array[int]", "array[int]"]] = {}
        self.marks: List[Mark] = []
        self.regions: List[Region] = []
        self.region_sums: Dict[str, RegionSum] = {}
        self.objects: List[LoadedObject] = []
        self.end: Optional[End] = None
        self.truncation: Optional[str] = None  # where the trace was cut, if it was

    @property
    def time_unit(self) -> str:
        unit = self.manifest.get("time-unit", "ms")
        return unit if unit in TIME_UNITS else "ms"

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
        """What the tensors of an account are for; None if it holds none."""
        if self.accounts[account].owner != TENSOR:
            return None
        return self.roles.get(account, "other")

    def frame(self, frame: int) -> Frame:
        type_, function, object_, file, line, address = self.frames[frame]
        text = self.strings
        return Frame(type_, text[function], text[object_], text[file], line, address)

    def stack(self, node: int) -> Iterator[int]:
        """The ids of the frames of a stack, innermost first."""
        while node:
            yield self.node_frame[node]
            node = self.node_parent[node]

    def composition(self, snapshot: int) -> Composition:
        """Who held what at the snapshot with this index."""
        return _without_zeros(*self._replay(snapshot))

    def peak_composition(self, which: str) -> Composition:
        """Who held what when `which` of PEAKS was at its largest."""
        peak = self.peaks[which]
        live_bytes, live_blocks = self._replay(peak.snapshot)
        rows = peak.differences
        for account, n_bytes, blocks in zip(rows[0::3], rows[1::3], rows[2::3]):
            live_bytes[account] = n_bytes
            live_blocks[account] = blocks
        return _without_zeros(live_bytes, live_blocks)

    @property
    def has_pages(self) -> bool:
        return self.manifest.get("option.pages") == "yes"

    def is_sampled(self, kind: str) -> bool:
        """Whether accounts of the kind hold resident pages."""
        is_exact = kind == "stack" and self.manifest.get("option.stacks") == "yes"
        return self.has_pages and kind in PAGE_KINDS and not is_exact

    def allocated_bytes(self, by_kind: Dict[str, int]) -> int:
        """Of both sides, without sampled pages."""
        kinds = [kind for kind in HOST_KINDS + DEVICE_KINDS if not self.is_sampled(kind)]
        return sum(by_kind.get(kind, 0) for kind in kinds)

    def pages(self, snapshot: int) -> Dict[int, Pages]:
        """By account: its mappings at the snapshot with this index."""
        found: Dict[int, Pages] = {}
        for earlier in self.snapshots[: snapshot + 1]:
            rows = earlier.pages
            for account, *numbers in zip(rows[0::4], rows[1::4], rows[2::4], rows[3::4]):
                found[account] = Pages(*numbers)
        return {account: pages for account, pages in found.items() if any(pages)}

    def counts(self, least_temporaries: int = 0) -> Dict[int, Counts]:
        """By account: everything it ever allocated, up to the last snapshot. Leaves out accounts with fewer temporaries."""
        found: Dict[int, Counts] = {}
        for snapshot in self.snapshots:
            rows = snapshot.changes
            for account, *numbers in zip(rows[0::6], rows[3::6], rows[4::6], rows[5::6]):
                if numbers[2] >= least_temporaries:
                    found[account] = Counts(*numbers)
        return found

    def lifetime(self) -> Lifetime:
        """Columns by account id: everything that it ever allocated, up to the last snapshot."""
        columns = [array("Q", bytes(8 * len(self.accounts))) for _ in Lifetime._fields]
        for snapshot in self.snapshots:
            rows = snapshot.changes
            for account, *numbers in zip(rows[0::6], rows[3::6], rows[4::6], rows[5::6]):
                for column, number in zip(columns, numbers):
                    column[account] = number
        return Lifetime(*columns)

    def allocated(self) -> "array[int]":
        """By account id: all bytes that it ever allocated, up to the last snapshot."""
        total_bytes = array("Q", bytes(8 * len(self.accounts)))
        for snapshot in self.snapshots:
            rows = snapshot.changes
            for account, n_bytes in zip(rows[0::6], rows[3::6]):
                total_bytes[account] = n_bytes
        return total_bytes

    def system_at(self, figure: str, time: int) -> Optional[int]:
        """What the kernel said last of a figure of the machine, in bytes; None where it said nothing."""
        times, values = self.system.get(figure, ((), ()))
        at = bisect_right(times, time)
        return values[at - 1] if at else None

    def _replay(self, snapshot: int) -> Tuple["array[int]", "array[int]"]:
        """Columns by account id: bytes and blocks."""
        live_bytes = array("Q", bytes(8 * len(self.accounts)))
        live_blocks = array("Q", live_bytes)
        for earlier in self.snapshots[: snapshot + 1]:
            rows = earlier.changes
            for account, n_bytes, blocks in zip(rows[0::6], rows[1::6], rows[2::6]):
                live_bytes[account] = n_bytes
                live_blocks[account] = blocks
        return live_bytes, live_blocks


def _without_zeros(live_bytes: "array[int]", live_blocks: "array[int]") -> Composition:
    return {
        account: (n_bytes, blocks)
        for account, (n_bytes, blocks) in enumerate(zip(live_bytes, live_blocks))
        if n_bytes or blocks
    }
