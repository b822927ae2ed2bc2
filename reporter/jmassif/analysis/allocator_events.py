# SPDX-License-Identifier: GPL-2.0-or-later
"""Events of the allocators of device memory, under the names of PyTorch's own record of them.

Each block of the device has records when it comes and when it goes, so the steps follow from these. An allocator's segment is
`segment_alloc` and `segment_free`, memory of one that is mapped in pieces `segment_map` and `segment_unmap`; what is handed out is
`alloc`, and what is taken back `free_requested` and `free_completed`. A block that lies in no segment is a segment by itself,
with all of it handed out. An allocation that failed for good is `oom`.

The record of a block may be replaced by another in the same place, when what a tensor is for, or what a block is dealt out in
parts, is known later than the block. No allocator did anything then, so that is no step.
"""

from bisect import bisect_right, insort
from typing import Dict, List, NamedTuple, Optional, Tuple

from jmassif.analysis.device_memory import CACHE
from jmassif.model.records import Account, Exhaustion, Mapped, side_of
from jmassif.model.run import Profile


# ---- steps ----

_WITHOUT_ADDRESSES = ("array", "driver")
# Memory that has handles, and no addresses until it is mapped.
_MAPPED_LATER = "vmm"


class Step(NamedTuple):
    action: str
    time: int
    address: int  # 0: of a failed allocation
    bytes: int
    account: int  # with the stack; 0: not known, as where something is freed
    free: int = 0  # of a failed allocation: what was free on the device then


class _Block(NamedTuple):
    bytes: int
    account: int
    steps: Tuple[int, ...]  # indices of those that made it
    is_alone: bool  # a segment by itself


class _Steps:
    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._frees = set(profile.frees)
        self.found: List[Optional[Step]] = []
        self._live: Dict[Tuple[int, int], _Block] = {}  # by address, account
        self._starts: List[int] = []  # of segments and mappings, in order
        self._bytes: Dict[int, int] = {}  # by those
        self._handles: Dict[int, int] = {}  # account of memory that may be mapped
        self._mapped: Dict[int, Tuple[int, int]] = {}  # by address: bytes, account
        self._first: Dict[Account, int] = {}  # of accounts that differ in their role, the first
        for account, fields in enumerate(profile.accounts):
            self._first.setdefault(fields, account)

    def _add(self, action: str, time: int, address: int, n_bytes: int, account: int = 0) -> int:
        self.found.append(Step(action, time, address, n_bytes, account))
        return len(self.found) - 1

    def _reserve(self, address: int, n_bytes: int) -> None:
        if address not in self._bytes:
            insort(self._starts, address)
        self._bytes[address] = n_bytes

    def _release(self, address: int) -> None:
        if self._bytes.pop(address, None) is not None:
            del self._starts[bisect_right(self._starts, address) - 1]

    def _is_inside(self, address: int) -> bool:
        at = bisect_right(self._starts, address) - 1
        return at >= 0 and address < self._starts[at] + self._bytes[self._starts[at]]

    # ---- blocks ------------------------------------------------------------------------------

    def block(self, row: int) -> int:
        """The records from this one on that belong together; how many these were."""
        blocks = self._profile.blocks
        time, address, n_bytes, account = blocks[4 * row : 4 * row + 4]
        kind = self._profile.accounts[account].kind
        if side_of(kind) != "device" or kind in _WITHOUT_ADDRESSES:
            return 1
        if row in self._frees:
            if self._is_moved(row):
                self._move((address, account), blocks[4 * row + 7])
                return 2
            self._went(time, address, account)
        elif kind == _MAPPED_LATER and not self._is_inside(address):
            self._handles[address] = account
        else:
            self._came(time, address, n_bytes, account)
        return 1

    def _came(self, time: int, address: int, n_bytes: int, account: int) -> None:
        if self._profile.accounts[account].owner == CACHE:
            steps: Tuple[int, ...] = (self._add("segment_alloc", time, address, n_bytes, account),)
            self._reserve(address, n_bytes)
            is_alone = False
        else:
            is_alone = not self._is_inside(address)
            steps = (self._add("segment_alloc", time, address, n_bytes, account),) if is_alone else ()
            if is_alone:
                self._reserve(address, n_bytes)
            steps += (self._add("alloc", time, address, n_bytes, account),)
        self._live[address, account] = _Block(n_bytes, account, steps, is_alone)

    def _went(self, time: int, address: int, account: int) -> None:
        # A handle that is unknown, or one's end, is no step: its mapping has ended before.
        block = self._live.pop((address, account), None)
        if block is None:
            if self._handles.get(address) == account:
                del self._handles[address]
            return
        if self._profile.accounts[account].owner == CACHE:
            self._release(address)
            self._add("segment_free", time, address, block.bytes)
            return
        self._hand_back(time, address, block.bytes)
        if block.is_alone:
            self._release(address)
            self._add("segment_free", time, address, block.bytes)

    def _hand_back(self, time: int, address: int, n_bytes: int) -> None:
        for action in ("free_requested", "free_completed"):
            self._add(action, time, address, n_bytes)

    # ---- records that are replaced -----------------------------------------------------------

    def _is_moved(self, row: int) -> bool:
        """True if the end of a block and the next record move it to another account.

        What is really freed and allocated again by the same stack begins in the first of the accounts that differ in role.
        """
        blocks, accounts = self._profile.blocks, self._profile.accounts
        if 4 * row + 7 >= len(blocks) or row + 1 in self._frees:
            return False
        (_, address, _, before), (_, there, n_bytes, now) = (
            blocks[4 * row : 4 * row + 4],
            blocks[4 * row + 4 : 4 * row + 8],
        )
        block = self._live.get((address, before))
        if block is None or there != address or n_bytes != block.bytes or now == before:
            return False
        if accounts[now].owner == CACHE:
            return block.is_alone
        return accounts[now] == accounts[before] and now != self._first[accounts[now]]

    def _move(self, key: Tuple[int, int], account: int) -> None:
        block = self._live.pop(key)
        steps = block.steps
        is_segment = self._profile.accounts[account].owner == CACHE
        if is_segment:
            # It never was handed out as a whole.
            self.found[steps[-1]] = None
            steps = steps[:-1]
        for index in steps:
            step = self.found[index]
            if step is not None:
                self.found[index] = step._replace(account=account)
        self._live[key[0], account] = _Block(block.bytes, account, steps, block.is_alone and not is_segment)

    # ---- mappings, and what failed -----------------------------------------------------------

    def mapping(self, mapping: Mapped, time: int) -> None:
        if mapping.handle is not None:
            account = self._handles.get(mapping.handle, 0)
            if not account:
                return
            self._mapped[mapping.address] = mapping.size, account
            self._reserve(mapping.address, mapping.size)
            self._add_piece("segment_map", time, mapping.address, mapping.size, account)
            if self._profile.accounts[account].owner != CACHE:
                self._add("alloc", time, mapping.address, mapping.size, account)
        elif mapping.address in self._mapped:
            n_bytes, account = self._mapped.pop(mapping.address)
            if self._profile.accounts[account].owner != CACHE:
                self._hand_back(time, mapping.address, n_bytes)
            self._release(mapping.address)
            self._add_piece("segment_unmap", time, mapping.address, n_bytes, 0)

    def _add_piece(self, action: str, time: int, address: int, n_bytes: int, account: int) -> None:
        """Pieces that come right after each other, in time and by their addresses, are of one step."""
        last = self.found[-1] if self.found else None
        if last and (last.action, last.account, last.address + last.bytes) == (action, account, address):
            self.found[-1] = last._replace(bytes=last.bytes + n_bytes)
        else:
            self._add(action, time, address, n_bytes, account)

    def failure(self, event: Exhaustion) -> None:
        free = event.figures.get("device-free", 0)
        asked = event.figures.get("framework-request", event.bytes)
        time = event.outcome_time if event.outcome else event.time
        self.found.append(Step("oom", time, 0, asked, event.account, free))


def _failures(profile: Profile) -> List[Tuple[int, Exhaustion]]:
    """(rows of Profile.blocks before it, the last try) of allocations that failed for good."""
    tried_again = {event.again for event in profile.exhaustions.values()}
    found = []
    for event in profile.exhaustions.values():
        is_of_device = side_of(profile.accounts[event.account].kind) == "device"
        if is_of_device and event.outcome != "retried" and event.id not in tried_again:
            found.append((event.outcome_position if event.outcome else event.position, event))
    return sorted(found, key=lambda pair: (pair[0], pair[1].id))


def steps(profile: Profile, position: int) -> List[Step]:
    """Up to before the row `position` of Profile.blocks."""
    doing = _Steps(profile)
    times = profile.blocks.time
    mappings = [mapping for mapping in profile.mappings if mapping.position <= position]
    failures = [(at, event) for at, event in _failures(profile) if at <= position]
    n_mappings = n_failures = row = 0
    while True:
        while n_mappings < len(mappings) and mappings[n_mappings].position <= row:
            # Mappings have no time of their own: that of the record before.
            doing.mapping(mappings[n_mappings], times[row - 1] if row else 0)
            n_mappings += 1
        while n_failures < len(failures) and failures[n_failures][0] <= row:
            doing.failure(failures[n_failures][1])
            n_failures += 1
        if row >= position:
            break
        row += doing.block(row)
    return [step for step in doing.found if step is not None]
