# SPDX-License-Identifier: GPL-2.0-or-later
"""The records of a run as they are kept: plain tuples. Sizes are bytes; times are in the run's own unit."""

import sys
from array import array
from itertools import compress
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple, TypeVar


# ---- kinds ----
# Words of traces and reports for memory: kinds, groups, roles, peaks.

HOST_KINDS = ("heap", "heap-overhead", "stack", "anon", "file", "pinned", "driver-host")
DEVICE_KINDS = ("device", "array", "managed", "pool", "vmm", "driver")
# Kinds that count by resident pages, which the recorder samples.
PAGE_KINDS = ("anon", "file", "stack")
# Memory that GPU drivers commit below the CUDA API.
DRIVER_KINDS = ("driver", "driver-host")
# Kinds with handles in the place of addresses.
HANDLE_KINDS = ("array", "vmm", "driver")
LISTED_KINDS = ("imported",)  # never part of a sum
KINDS = HOST_KINDS + DEVICE_KINDS + LISTED_KINDS
GROUPS = ("yours", "cached", "libraries", "runtime")
# The group of owners without one in the trace.
OTHER = "other"
PEAKS = ("total", "host", "device")
# The peak of what was allocated: of everything but sampled pages. Only a trace with pages has it.
ALLOCATED = "allocated"
# Roles of tensors in training, in the order of reports. An owner rule may name further ones.
ROLES = ("parameter", "gradient", "optimizer", "activation", "input", "temporary", "other")
# The owner of accounts with roles.
TENSOR = "tensor"


def side_of(kind: str) -> Optional[str]:
    """ "host", "device", or None for kinds that are only listed."""
    return "host" if kind in HOST_KINDS else "device" if kind in DEVICE_KINDS else None


def counted_blocks(kind: str, blocks: int) -> int:
    """How many of an account's blocks count in a sum: a heap block's overhead is no block of its own."""
    return 0 if kind == "heap-overhead" else blocks


# ---- rows ----
# Rows of a few numbers each, packed in arrays, with names for the columns.
#
# A run has balances by the million: an object for each would take ten times the memory. What a trace has most of, the changes of
# a snapshot, lies in a column each, as narrow as its largest number; of all else rows lie end to end, and a column is a slice.

if TYPE_CHECKING:
    _Numbers = array[int]
else:
    _Numbers = array


def _column(place: int) -> Any:
    """The numbers in that place of each row."""
    return property(lambda rows: rows[place :: rows.WIDTH])


class _Rows(_Numbers):
    WIDTH = 0

    def __new__(cls) -> Any:
        return array.__new__(cls, "Q")  # type: ignore[call-arg]

    @property
    def n_rows(self) -> int:
        return len(self) // self.WIDTH


class Differences(_Rows):
    """Accounts with other balances at a peak: the fields of `d` records."""

    WIDTH = 3
    account, bytes, blocks = _column(0), _column(1), _column(2)


class PageChanges(_Rows):
    """Accounts' mappings from a snapshot on: the fields of `v` records."""

    WIDTH = 4
    account, virtual, shared, swapped = _column(0), _column(1), _column(2), _column(3)


class BlockEvents(_Rows):
    """Blocks that came (`+` records) and went (`-`, of size 0)."""

    WIDTH = 4
    time, address, size, account = _column(0), _column(1), _column(2), _column(3)


# Type of a number: that of half of its bytes.
_HALF = {"Q": "I", "I": "H", "H": "B"}
# The places of two halves, which come in the order of the machine's bytes.
_LOW, _HIGH = (0, 1) if sys.byteorder == "little" else (1, 0)


def narrowed(column: "array[int]") -> "array[int]":
    """The same numbers in as few bytes each as the largest needs. By bytes, for looking at each number would take ten times as long."""
    while column.typecode in _HALF and column:
        halves = array(_HALF[column.typecode], column.tobytes())
        if halves[_HIGH::2].tobytes() != bytes(column.itemsize // 2 * len(column)):
            break
        column = halves[_LOW::2]
    return column


def _joined(first: "array[int]", second: "array[int]") -> "array[int]":
    """The second behind the first, which may be changed."""
    if not first:
        return second
    if second.itemsize > first.itemsize:
        first = array(second.typecode, first)
    first.extend(second if second.typecode == first.typecode else array(first.typecode, second))
    return first


class Changes:
    """Balances of accounts at a snapshot, and their totals so far: the fields of `c` records, a column each."""

    WIDTH = 6
    __slots__ = ("account", "bytes", "blocks", "all_bytes", "all_blocks", "temporaries")

    def __init__(self) -> None:
        self.account: "array[int]" = array("B")
        self.bytes: "array[int]" = array("B")
        self.blocks: "array[int]" = array("B")
        self.all_bytes: "array[int]" = array("B")
        self.all_blocks: "array[int]" = array("B")
        self.temporaries: "array[int]" = array("B")

    def extend(self, rows: "array[int]") -> None:
        """Append rows that lie end to end, of 64-bit numbers."""
        for place, name in enumerate(self.__slots__):
            setattr(self, name, _joined(getattr(self, name), narrowed(rows[place :: self.WIDTH])))

    @property
    def n_rows(self) -> int:
        return len(self.account)

    def backwards(self, wanted: bytearray, *columns: "array[int]") -> Iterator[Tuple[int, ...]]:
        """(account, number of each column) of the accounts that are not 0 in `wanted` when their turn comes, the last row first."""
        accounts = self.account
        rows = zip(reversed(accounts), *[reversed(column) for column in columns])
        return compress(rows, map(wanted.__getitem__, reversed(accounts)))


# ---- records ----

# Account id: (live bytes, live blocks). Accounts that hold nothing are left out.
LiveBytesByAccount = Dict[int, Tuple[int, int]]


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


_Of = TypeVar("_Of")


class AccountType(NamedTuple):
    kind: str
    owner: str


class Accounts:
    """The accounts of a run by id, in columns: a PyTorch run has half a million. Number 0 is none: of no kind and owner."""

    def __init__(self) -> None:
        self.nodes = array("I", [0])
        self.type_numbers = array("H", [0])
        self.types: List[AccountType] = [AccountType("", "")]

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, account: int) -> Account:
        return Account._make((self.nodes[account], *self.types[self.type_numbers[account]]))

    def __iter__(self) -> Iterator[Account]:
        kinds, owners = self.by_type(lambda type_: type_.kind), self.by_type(lambda type_: type_.owner)
        return map(Account, self.nodes, kinds, owners)

    def kind(self, account: int) -> str:
        return self.types[self.type_numbers[account]].kind

    def owner(self, account: int) -> str:
        return self.types[self.type_numbers[account]].owner

    def by_type(self, of: Callable[[AccountType], _Of]) -> Iterator[_Of]:
        """For each account what `of` gives for its type, of which there are few."""
        return map([of(type_) for type_ in self.types].__getitem__, self.type_numbers)


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
    snapshot: int  # index of the snapshot that its differences are against
    by_kind: Dict[str, int]
    differences: Differences

    @property
    def bytes(self) -> int:
        """Bytes in the memory space that it is a peak of, or in both."""
        return (self.host if self.which != "device" else 0) + (self.device if self.which != "host" else 0)


class Stage(NamedTuple):
    """From a mark on that the program set as a stage, up to the next one: peaks of its own."""

    text: str
    snapshot: int  # index of the one that it begins with
    peaks: Dict[str, Peak]  # as Profile.peaks


class Pages(NamedTuple):
    """Figures of an account's mappings besides their resident bytes."""

    virtual: int  # bytes of the mappings
    shared: int  # resident bytes, each divided by the number of processes that share it
    swapped: int  # likewise, of what is swapped out


class Counts(NamedTuple):
    """All that an account ever allocated."""

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
    """Memory of one kind that a scope added or, negative, freed."""

    kind: str
    bytes: int
    blocks: int


def growth_by_side(growths: Tuple[Growth, ...]) -> Tuple[int, int]:
    """(host, device) bytes."""
    host, device = (
        sum(growth.bytes for growth in growths if side_of(growth.kind) == side) for side in ("host", "device")
    )
    return host, device


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
    # Rows of Profile.blocks before its beginning and its end.
    position: int = 0
    end_position: int = 0


class RegionFigures(NamedTuple):
    most: int  # bytes: the largest host + device inside it
    host: int  # bytes: growth from its beginning to its end; negative if it shrank
    device: int


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


class Container(NamedTuple):
    """A large container that a variable of a Python program kept at its end."""

    account: int  # of the memory of its elements
    elements: int
    of_type: int  # elements of `type`
    container: str  # "list"
    type: str  # of most elements
    variable: str
    sort: str  # of the holder: "module", "class", "instance" or "function"
    holder: str  # its name, of an instance that of its class


class Copy(NamedTuple):
    """Bytes of host memory that were copied to device memory, while both sides were alive and the source unchanged."""

    begin: int
    host: int  # accounts
    device: int
    copied_by: int  # an account with the stack of the copy
    pinned_by: int  # one with the stack that registered the host memory; 0: none did
    bytes: int
    source: int  # addresses
    to: int
    until: Optional[int] = None  # None: as long as Profile.copies_until


class End(NamedTuple):
    time: int
    reason: str  # "exit", "signal" or "end"
    code: int
