# SPDX-License-Identifier: GPL-2.0-or-later
"""The records of a run as they are kept: plain tuples. Sizes are bytes; times are in the run's own unit."""

from array import array
from typing import Dict, List, NamedTuple, Optional, Tuple

from jmassif.model.rows import Changes, Differences, PageChanges

from jmassif.model.kinds import DEVICE_KINDS, HOST_KINDS

# Account id: (live bytes, live blocks). Accounts that hold nothing are left out.
Composition = Dict[int, Tuple[int, int]]


class Frame(NamedTuple):
    type: str  # "n" native, "i" inlined, "p" Python, "m" a mapped file, "t" a thread
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
    changes: Changes
    pages: PageChanges = PageChanges()
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
    differences: Differences

    @property
    def bytes(self) -> int:
        """Of the side, or both, that it is a peak of."""
        return (self.host if self.which != "device" else 0) + (self.device if self.which != "host" else 0)


class Stage(NamedTuple):
    """From a mark on that the program set as a stage, up to the next one: peaks of its own."""

    text: str
    snapshot: int  # index of the one that it begins with
    peaks: Dict[str, Peak]  # as Profile.peaks


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


class Growth(NamedTuple):
    """What a scope added (or, negative, gave back) of one kind."""

    kind: str
    bytes: int
    blocks: int


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


class Overlay(NamedTuple):
    """What another tool showed during the run: its log, on the trace's clock."""

    tool: str
    is_of_device: bool  # of a GPU's own memory
    times: List[int]  # in order, within the run
    values: List[int]  # bytes in use, likewise
