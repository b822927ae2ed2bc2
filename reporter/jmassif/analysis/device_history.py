# SPDX-License-Identifier: GPL-2.0-or-later
"""Device memory at a moment, and each step of the allocators up to it.

Each block of the device has records when it comes and when it goes, so the steps follow from these. An allocator's segment is
`segment_alloc` and `segment_free`, memory of one that is mapped in pieces `segment_map` and `segment_unmap`; blocks of it are
`alloc`, `free_requested` and `free_completed`. A block that lies in no segment is a segment by itself, with all of it
handed out. An allocation that failed for good is `oom`.
"""

from bisect import bisect_right, insort
from collections import deque
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from jmassif.analysis.device_memory import CACHE, Layout, layout_at
from jmassif.analysis.moments import Moment
from jmassif.analysis.oom import chains_of, select_device
from jmassif.attribution.names import Names
from jmassif.model.records import HANDLE_KINDS, Account, Mapped, side_of
from jmassif.model.run import Profile


class Step(NamedTuple):
    action: str
    time: int
    address: int  # 0: of a failed allocation
    bytes: int
    account: int = 0  # with the stack; 0: not known, as where something is freed
    free: int = 0  # of a failed allocation: free bytes of the device then


class DeviceHistory(NamedTuple):
    at: Moment
    layout: Layout
    is_placed: bool  # it is known where blocks lie in segments
    steps: List[Step]


def device_history(run: Profile, number: str, selector: Optional[str]) -> DeviceHistory:
    """Up to the failed allocation with this number, or the selector's moment; by default the device's peak. Raises SelectionError."""
    at, position = select_device(run, Names(run), number, selector)
    layout = layout_at(run, position)
    is_known = not at.composition or layout.is_placed(run.accounts, at.composition)
    return DeviceHistory(at, layout, is_known, _steps(run, position))


class Ranges:
    """Addresses of segments and mappings."""

    def __init__(self) -> None:
        self._starts: List[int] = []  # in order
        self.bytes: Dict[int, int] = {}

    def add(self, address: int, n_bytes: int) -> None:
        if address not in self.bytes:
            insort(self._starts, address)
        self.bytes[address] = n_bytes

    def remove(self, address: int) -> int:
        """Its bytes; 0 if it is not there."""
        n_bytes = self.bytes.pop(address, None)
        if n_bytes is not None:
            del self._starts[bisect_right(self._starts, address) - 1]
        return n_bytes or 0

    def __contains__(self, address: int) -> bool:
        at = bisect_right(self._starts, address) - 1
        return at >= 0 and address < self._starts[at] + self.bytes[self._starts[at]]


def replaced(run: Profile, position: int) -> Tuple[Dict[int, int], Set[int]]:
    """The last account of each block with several records, by the row of its first, and the rows of all others.

    A record is replaced by another in the same place when a tensor's role, or a block's parts, are known later than the block.
    No allocator did anything then. A block that is really freed and allocated again by the same stack begins in the first
    of the accounts that differ in role.
    """
    blocks, accounts, frees = run.blocks, run.accounts, set(run.frees)
    first: Dict[Account, int] = {}
    for account, fields in enumerate(accounts):
        first.setdefault(fields, account)
    live: Dict[Tuple[int, int], int] = {}  # the row of the first record, by address and account
    last: Dict[int, int] = {}
    others: Set[int] = set()
    for row in range(position):
        _, address, _, account = blocks[4 * row : 4 * row + 4]
        if row not in frees:
            if row not in others:
                live[address, account] = row
            continue
        begun = live.pop((address, account), None)
        if begun is None or row + 1 == position or row + 1 in frees:
            continue
        _, there, n_bytes, now = blocks[4 * row + 4 : 4 * row + 8]
        has_role = accounts[now] == accounts[account] and now not in (account, first[accounts[now]])
        is_cache = accounts.owner(now) == CACHE and now != account
        if (there, n_bytes) == (address, blocks[4 * begun + 2]) and (is_cache or has_role):
            others |= {row, row + 1}
            live[address, now] = begun
            last[begun] = now
    return last, others


# Memory of cuMemCreate gets addresses when it is mapped.
_WITHOUT_ADDRESSES = set(HANDLE_KINDS) - {"vmm"}
_OPPOSITE = {"segment_alloc": "segment_free", "segment_map": "segment_unmap"}


class _Steps:
    """Actions of the allocators, from the records of blocks and mappings, as they go by."""

    def __init__(self, run: Profile) -> None:
        self.found: List[Step] = []
        self._accounts = run.accounts
        self._reserved = Ranges()
        # By address and account: bytes, and the action that reserved them; "": they lie in a segment.
        self._live: Dict[Tuple[int, int], Tuple[int, str]] = {}
        self._handles: Dict[int, int] = {}  # account of memory that may be mapped
        self._mapped: Dict[int, int] = {}  # account by address

    def _add(self, action: str, time: int, address: int, n_bytes: int, account: int = 0) -> None:
        last = self.found[-1] if self.found else Step("", 0, 0, 0)
        is_piece = (last.action, last.account, last.address + last.bytes) == (action, account, address)
        if is_piece and action in ("segment_map", "segment_unmap"):
            self.found[-1] = last._replace(bytes=last.bytes + n_bytes)
        else:
            self.found.append(Step(action, time, address, n_bytes, account))

    def _begin(self, time: int, address: int, n_bytes: int, account: int, action: str) -> None:
        if action:
            self._add(action, time, address, n_bytes, account)
            self._reserved.add(address, n_bytes)
        if self._accounts.owner(account) != CACHE:
            self._add("alloc", time, address, n_bytes, account)
        self._live[address, account] = n_bytes, action

    def _end(self, time: int, address: int, account: int) -> None:
        n_bytes, action = self._live.pop((address, account))
        if self._accounts.owner(account) != CACHE:
            self._add("free_requested", time, address, n_bytes)
            self._add("free_completed", time, address, n_bytes)
        if action:
            self._reserved.remove(address)
            self._add(_OPPOSITE[action], time, address, n_bytes)

    def came(self, time: int, address: int, n_bytes: int, account: int) -> None:
        is_inside = address in self._reserved
        if self._accounts.kind(account) == "vmm" and not is_inside:
            # Memory that has handles, and no addresses until it is mapped.
            self._handles[address] = account
        else:
            is_segment = self._accounts.owner(account) == CACHE or not is_inside
            self._begin(time, address, n_bytes, account, "segment_alloc" if is_segment else "")

    def went(self, time: int, address: int, account: int) -> None:
        if (address, account) in self._live:  # else a handle: its mapping has ended before
            self._end(time, address, account)

    def mapping(self, mapping: Mapped, time: int) -> None:
        if mapping.handle is None:
            if mapping.address in self._mapped:
                self._end(time, mapping.address, self._mapped.pop(mapping.address))
        elif mapping.handle in self._handles:
            account = self._mapped[mapping.address] = self._handles[mapping.handle]
            self._begin(time, mapping.address, mapping.size, account, "segment_map")


def _failures(run: Profile) -> List[Tuple[int, int, Step]]:
    """Allocations that failed for good: rows of Profile.blocks before it, the id, and the step."""
    found = []
    for *_, event in chains_of(run):
        if side_of(run.accounts.kind(event.account)) == "device" and event.outcome != "retried":
            last = (event.outcome_position, event.outcome_time) if event.outcome else (event.position, event.time)
            asked, free = event.figures.get("framework-request", event.bytes), event.figures.get("device-free", 0)
            found.append((last[0], event.id, Step("oom", last[1], 0, asked, event.account, free)))
    return sorted(found)


def _steps(run: Profile, position: int) -> List[Step]:
    """Up to before the row `position` of Profile.blocks."""
    steps, frees = _Steps(run), set(run.frees)
    last, others = replaced(run, position)
    mappings, failures = deque(run.mappings), deque(_failures(run))
    time = 0
    for row in range(position + 1):
        while mappings and mappings[0].position <= row:
            steps.mapping(mappings.popleft(), time)  # has no time of its own
        while failures and failures[0][0] <= row:
            steps.found.append(failures.popleft()[-1])
        if row < position:
            time, address, n_bytes, account = run.blocks[4 * row : 4 * row + 4]
            kind = run.accounts.kind(account)
            if row in others or side_of(kind) != "device" or kind in _WITHOUT_ADDRESSES:
                continue
            if row in frees:
                steps.went(time, address, account)
            else:
                steps.came(time, address, n_bytes, last.get(row, account))
    return steps.found
