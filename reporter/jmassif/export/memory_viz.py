# SPDX-License-Identifier: GPL-2.0-or-later
"""Device memory at a moment, and each step up to it, as torch.cuda.memory._snapshot() returns them: for PyTorch's memory_viz.

A pickle of dictionaries, lists, strings and numbers alone. Fields of that structure that a trace does not have are
left out or, where memory_viz needs them, have the value that it does not show: docs/formats.md says which.

Each block of the device has records when it comes and when it goes, so the steps follow from these. An allocator's segment is
`segment_alloc` and `segment_free`, memory of one that is mapped in pieces `segment_map` and `segment_unmap`; blocks of it are
`alloc`, `free_requested` and `free_completed`. A block that lies in no segment is a segment by itself, with all of it
handed out. An allocation that failed for good is `oom`.
"""

import pickle
from bisect import bisect_right, insort
from collections import deque
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from jmassif.analysis.device_memory import CACHE, Layout, Segment, layout_at
from jmassif.analysis.moments import Moment
from jmassif.analysis.oom import at_least, chains_of, select_device
from jmassif.attribution.names import Names
from jmassif.model.records import Account, Exhaustion, Mapped, side_of
from jmassif.model.run import Profile
from jmassif.render.view import FormatError, View
from jmassif.units import printable, size, unicode_text
from jmassif.version import __version__


# The newest that memory_viz reads; Python 3.4 reads it.
_PROTOCOL = 4
# PyTorch's allocator deals allocations of up to 1 MiB out of segments of 2 MiB, which it calls small.
_SMALL_BLOCK = 1 << 20
_SMALL_SEGMENT = 2 << 20

_Dict = Dict[str, Any]


# ---- steps -----------------------------------------------------------------------------------


class _Step(NamedTuple):
    action: str
    time: int
    address: int  # 0: of a failed allocation
    bytes: int
    account: int  # with the stack; 0: not known, as where something is freed
    free: int = 0  # of a failed allocation: free bytes of the device then


class _Block(NamedTuple):
    bytes: int
    steps: List[int]  # indices of those that made it
    is_alone: bool  # a segment by itself


class _Steps:
    """What the allocators did, from the records of blocks and mappings, as they go by.

    The record of a block may be replaced by another in the same place, when a tensor's role, or a block's parts, are known
    later than the block. No allocator did anything then, so that is no step.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._is_cache = [account.owner == CACHE for account in profile.accounts]
        self._frees = set(profile.frees)
        self.found: List[Optional[_Step]] = []
        self._live: Dict[Tuple[int, int], _Block] = {}  # by address, account
        self._starts: List[int] = []  # of segments and mappings, in order
        self._bytes: Dict[int, int] = {}  # by those
        self._handles: Dict[int, int] = {}  # account of memory that may be mapped
        self._mapped: Dict[int, Tuple[int, int]] = {}  # by address: bytes, account
        self._first: Dict[Account, int] = {}  # of accounts that differ in their role, the first
        for account, fields in enumerate(profile.accounts):
            self._first.setdefault(fields, account)

    def _add(self, action: str, time: int, address: int, n_bytes: int, account: int = 0) -> int:
        self.found.append(_Step(action, time, address, n_bytes, account))
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

    def block(self, row: int) -> int:
        """The records from this one on that belong together; how many these were."""
        blocks = self._profile.blocks
        time, address, n_bytes, account = blocks[4 * row : 4 * row + 4]
        kind = self._profile.accounts[account].kind
        if side_of(kind) != "device" or kind in ("array", "driver"):  # without addresses
            return 1
        if row in self._frees:
            if self._is_moved(row):
                self._move((address, account), blocks[4 * row + 7])
                return 2
            self._went(time, address, account)
        elif kind == "vmm" and not self._is_inside(address):
            # Memory that has handles, and no addresses until it is mapped.
            self._handles[address] = account
        else:
            self._came(time, address, n_bytes, account)
        return 1

    def _came(self, time: int, address: int, n_bytes: int, account: int) -> None:
        is_cache = self._is_cache[account]
        is_alone = not is_cache and not self._is_inside(address)
        made = []
        if is_cache or is_alone:
            made.append(self._add("segment_alloc", time, address, n_bytes, account))
            self._reserve(address, n_bytes)
        if not is_cache:
            made.append(self._add("alloc", time, address, n_bytes, account))
        self._live[address, account] = _Block(n_bytes, made, is_alone)

    def _went(self, time: int, address: int, account: int) -> None:
        block = self._live.pop((address, account), None)
        if block is None:
            # A handle that is unknown, or one's end, is no step: its mapping has ended before.
            if self._handles.get(address) == account:
                del self._handles[address]
            return
        if not self._is_cache[account]:
            self._hand_back(time, address, block.bytes)
        if self._is_cache[account] or block.is_alone:
            self._release(address)
            self._add("segment_free", time, address, block.bytes)

    def _hand_back(self, time: int, address: int, n_bytes: int) -> None:
        for action in ("free_requested", "free_completed"):
            self._add(action, time, address, n_bytes)

    def _is_moved(self, row: int) -> bool:
        """True if the end of a block and the next record move it to another account.

        A block that is really freed and allocated again by the same stack begins in the first of the accounts that differ in role.
        """
        blocks, accounts = self._profile.blocks, self._profile.accounts
        if 4 * row + 7 >= len(blocks) or row + 1 in self._frees:
            return False
        _, address, _, before, _, there, n_bytes, now = blocks[4 * row : 4 * row + 8]
        block = self._live.get((address, before))
        if block is None or there != address or n_bytes != block.bytes or now == before:
            return False
        if self._is_cache[now]:
            return block.is_alone
        return accounts[now] == accounts[before] and now != self._first[accounts[now]]

    def _move(self, key: Tuple[int, int], account: int) -> None:
        block = self._live.pop(key)
        if self._is_cache[account]:
            # It never was handed out as a whole.
            self.found[block.steps.pop()] = None
        for index in block.steps:
            step = self.found[index]
            if step is not None:
                self.found[index] = step._replace(account=account)
        self._live[key[0], account] = block._replace(is_alone=block.is_alone and not self._is_cache[account])

    def mapping(self, mapping: Mapped, time: int) -> None:
        if mapping.handle is not None:
            account = self._handles.get(mapping.handle, 0)
            if not account:
                return
            self._mapped[mapping.address] = mapping.size, account
            self._reserve(mapping.address, mapping.size)
            self._add_piece("segment_map", time, mapping.address, mapping.size, account)
            if not self._is_cache[account]:
                self._add("alloc", time, mapping.address, mapping.size, account)
        elif mapping.address in self._mapped:
            n_bytes, account = self._mapped.pop(mapping.address)
            if not self._is_cache[account]:
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
        asked = event.figures.get("framework-request", event.bytes)
        time = event.outcome_time if event.outcome else event.time
        self.found.append(_Step("oom", time, 0, asked, event.account, event.figures.get("device-free", 0)))


def _failures(profile: Profile) -> List[Tuple[int, Exhaustion]]:
    """(rows of Profile.blocks before it, the last try) of allocations that failed for good."""
    found = []
    for *_, event in chains_of(profile):
        if side_of(profile.accounts[event.account].kind) == "device" and event.outcome != "retried":
            found.append((event.outcome_position if event.outcome else event.position, event))
    return sorted(found, key=lambda pair: (pair[0], pair[1].id))


def _steps(profile: Profile, position: int) -> List[_Step]:
    """Up to before the row `position` of Profile.blocks."""
    doing = _Steps(profile)
    times = profile.blocks.time
    mappings = deque(profile.mappings)
    failures = deque(_failures(profile))
    row = 0
    while True:
        while mappings and mappings[0].position <= min(row, position):
            # Mappings have no time of their own: that of the record before.
            doing.mapping(mappings.popleft(), times[row - 1] if row else 0)
        while failures and failures[0][0] <= min(row, position):
            doing.failure(failures.popleft()[1])
        if row >= position:
            return [step for step in doing.found if step is not None]
        row += doing.block(row)


# ---- PyTorch's dictionaries ------------------------------------------------------------------


class _Dictionaries:
    """Lists of frames that are equal are one object, which a pickle writes once."""

    def __init__(self, profile: Profile, by: str) -> None:
        self._profile = profile
        self._by = by
        self._frames: Dict[int, _Dict] = {}
        self._stacks: Dict[int, List[_Dict]] = {}  # by node
        self._start = profile.number("start-unix-ms") or 0

    def _frame(self, id_: int) -> _Dict:
        if id_ not in self._frames:
            frame = self._profile.frame(id_)
            name = frame.function or ("?" if frame.type == "p" else f"0x{frame.address:x}")
            file = unicode_text(frame.file or frame.object) or "??"
            self._frames[id_] = {"filename": file, "line": frame.line, "name": unicode_text(name)}
        return self._frames[id_]

    def _stack(self, account: int) -> List[_Dict]:
        """Innermost frame first."""
        node = self._profile.accounts[account].node
        if node not in self._stacks:
            self._stacks[node] = [self._frame(id_) for id_ in self._profile.stack(node)]
        return self._stacks[node]

    def _block(self, address: int, n_bytes: int, account: int) -> _Dict:
        return {
            "address": address,
            "size": n_bytes,
            "requested_size": n_bytes if account else 0,
            "state": "active_allocated" if account else "inactive",
            "frames": self._stack(account) if account else [],
        }

    def _blocks(self, segment: Segment) -> Iterator[_Dict]:
        if segment.is_segment:
            for part in segment.parts:
                yield self._block(segment.address + part.offset, part.bytes, part.account)
            return
        # Mappings that follow each other, each of its own call.
        address = segment.address
        for row, n_bytes in segment.made:
            yield self._block(address, n_bytes, self._profile.blocks[4 * row + 3])
            address += n_bytes

    def segment(self, segment: Segment) -> _Dict:
        account = self._profile.accounts[segment.account]
        used = segment.bytes - segment.free
        small = _SMALL_SEGMENT if account.owner == CACHE else _SMALL_BLOCK
        return {
            "device": 0,
            "address": segment.address,
            "total_size": segment.bytes,
            "allocated_size": used,
            "active_size": used,
            "requested_size": used,
            "stream": 0,
            "segment_type": "small" if max(n_bytes for _, n_bytes in segment.made) <= small else "large",
            "is_expandable": account.kind == "vmm",
            "frames": self._stack(segment.account),
            "blocks": list(self._blocks(segment)),
        }

    def entry(self, step: _Step) -> _Dict:
        """A step, of a device's trace. With --by, blocks have a category, by which memory_viz colours."""
        is_failure = step.action == "oom"
        entry: _Dict = {"action": step.action, "size": step.bytes, "stream": 0}
        entry["device_free" if is_failure else "addr"] = step.free if is_failure else step.address
        if self._profile.time_unit == "ms":
            entry["time_us"] = (self._start + step.time) * 1000
        if step.account:
            entry["frames"] = self._stack(step.account)
            if self._by != "stack":
                role = self._profile.role(step.account) if self._by == "role" else None
                category = unicode_text(role or self._profile.accounts[step.account].owner)
                # memory_viz fails on a file that has categories and not this one.
                entry["category"] = category if step.action == "alloc" else "unknown"
        return entry


def _refusal(profile: Profile, at: Moment, layout: Layout) -> str:
    """The reason why blocks are not where they seem to be; "": they are."""
    version = profile.manifest.get("pytorch", "")
    if version and not at_least(version, 1, 10):
        return f"PyTorch {printable(version)} does not report where tensors lie in segments: record with PyTorch 1.10 or later"
    if not at.composition or layout.is_placed(profile.accounts, at.composition):
        return ""
    if "cudaMallocAsync" in profile.manifest.get("env.PYTORCH_CUDA_ALLOC_CONF", ""):
        return "PyTorch's allocator has no segments with cudaMallocAsync: record with backend:native"
    return (
        f"it is not known where tensors lie in segments at {at.name}, where the map has {size(layout.fragmentation.free)}"
        " free, more than the allocator cache: PyTorch reports their addresses from 1.10 on"
    )


def snapshot(profile: Profile, view: View) -> _Dict:
    """The data of the pickle. Raises moments.SelectionError, FormatError."""
    at, position = select_device(profile, Names(profile), view.segments or "", view.selector)
    layout = layout_at(profile, position)
    refusal = _refusal(profile, at, layout)
    if refusal:
        raise FormatError(refusal)
    made = _Dictionaries(profile, view.by)
    return {
        "segments": [made.segment(segment) for segment in layout.segments],
        "device_traces": [[made.entry(step) for step in _steps(profile, position)]],
        "jmassif": {"version": __version__, "moment": unicode_text(at.name)},
    }


def write(profile: Profile, view: View) -> Iterator[bytes]:
    """The pickle. Raises moments.SelectionError, FormatError."""
    yield pickle.dumps(snapshot(profile, view), _PROTOCOL)


def remark(profile: Profile, view: View) -> str:
    """A warning if there is nothing in the file; "" else. Raises moments.SelectionError."""
    at, position = select_device(profile, Names(profile), view.segments or "", view.selector)
    if layout_at(profile, position).segments or _steps(profile, position):
        return ""
    return f"the file is empty: no device memory has an address at {at.name}; name another moment, or the trace of the process that uses CUDA"
