# SPDX-License-Identifier: GPL-2.0-or-later
"""A reader of PyTorch's memory snapshots, written from the documentation of torch.cuda.memory._snapshot().

It holds a file to what that says of it: what lies where adds up, and the steps lead there.
"""

import io
import pickle
import pickletools
from typing import Any, Dict, List, NamedTuple, Tuple

# What stands for numbers, strings, lists, dictionaries and None: nothing that is called or imported when it is read.
_PLAIN = (
    "PROTO FRAME MARK STOP MEMOIZE BINGET LONG_BINGET NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 SHORT_BINUNICODE"
    " BINUNICODE EMPTY_LIST APPEND APPENDS EMPTY_DICT SETITEM SETITEMS"
).split()
_BLOCK_STATES = ("active_allocated", "active_awaiting_free", "inactive")


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise AssertionError(f"{module}.{name} is no plain data")


def read(content: bytes) -> Dict[str, Any]:
    codes = {code.name for code, _, _ in pickletools.genops(content)}
    assert codes <= set(_PLAIN), codes - set(_PLAIN)
    snapshot: Dict[str, Any] = _Reader(io.BytesIO(content)).load()
    check_segments(snapshot)
    check_steps(snapshot)
    return snapshot


class Sums(NamedTuple):
    reserved: int
    allocated: int


def sums(snapshot: Dict[str, Any]) -> Sums:
    segments = snapshot["segments"]
    return Sums(sum(s["total_size"] for s in segments), sum(s["allocated_size"] for s in segments))


def _check_frames(frames: List[Dict[str, Any]]) -> None:
    for frame in frames:
        assert set(frame) == {"filename", "line", "name"}
        assert isinstance(frame["filename"], str) and isinstance(frame["name"], str) and isinstance(frame["line"], int)


def check_segments(snapshot: Dict[str, Any]) -> None:
    end = 0
    for segment in sorted(snapshot["segments"], key=lambda each: int(each["address"])):
        assert segment["address"] >= end, "segments overlap"
        at = segment["address"]
        used = 0
        for block in segment["blocks"]:
            assert block["address"] == at and block["size"] > 0, "blocks do not tile their segment"
            assert block["state"] in _BLOCK_STATES and 0 <= block["requested_size"] <= block["size"]
            _check_frames(block["frames"])
            used += block["size"] if block["state"] == "active_allocated" else 0
            at += block["size"]
        end = at
        assert at == segment["address"] + segment["total_size"]
        assert segment["allocated_size"] == segment["active_size"] == used
        assert segment["segment_type"] in ("small", "large") and isinstance(segment["stream"], int)


class _Memory:
    """What the steps of one device come to."""

    def __init__(self) -> None:
        self.reserved: Dict[int, int] = {}  # by address
        self.blocks: Dict[int, int] = {}
        self.asked_back: Dict[int, int] = {}

    def step(self, entry: Dict[str, Any]) -> None:
        action, address, size = entry["action"], entry.get("addr", 0), entry["size"]
        if action in ("segment_alloc", "segment_map"):
            assert not self._within(self.reserved, address, size), "reserved twice"
            self.reserved[address] = size
        elif action in ("segment_free", "segment_unmap"):
            assert not self._within(self.blocks, address, size), "released while in use"
            self._release(address, address + size)
        elif action == "alloc":
            assert not self._within(self.blocks, address, size), "handed out twice"
            covered = [each for each in self._pieces() if each[0] <= address and address + size <= each[1]]
            assert covered, "in no segment"
            self.blocks[address] = size
        elif action == "free_requested":
            self.asked_back[address] = self.blocks.pop(address)
        elif action == "free_completed":
            assert self.asked_back.pop(address) == size
        else:
            assert action in ("oom", "snapshot")

    def _release(self, begin: int, end: int) -> None:
        """What is mapped in pieces may be unmapped in others."""
        inside = [piece for piece in self._pieces() if piece[0] <= begin and end <= piece[1]]
        assert inside, "released and not reserved"
        (whole,) = inside
        self.reserved = {at: n for at, n in self.reserved.items() if not whole[0] <= at < whole[1]}
        for rest in ((whole[0], begin), (end, whole[1])):
            if rest[0] < rest[1]:
                self.reserved[rest[0]] = rest[1] - rest[0]

    @staticmethod
    def _within(ranges: Dict[int, int], address: int, size: int) -> bool:
        return any(begin < address + size and address < begin + n for begin, n in ranges.items())

    def _pieces(self) -> List[Tuple[int, int]]:
        """Of what is reserved, with pieces that follow each other as one: (begin, end)."""
        found: List[Tuple[int, int]] = []
        for begin, size in sorted(self.reserved.items()):
            if found and found[-1][1] == begin:
                found[-1] = (found[-1][0], begin + size)
            else:
                found.append((begin, begin + size))
        return found


def check_steps(snapshot: Dict[str, Any]) -> None:
    """The steps are all there were, so they must lead from nothing to what the segments say."""
    (entries,) = snapshot["device_traces"]
    memory = _Memory()
    for entry in entries:
        _check_frames(entry.get("frames", []))
        memory.step(entry)
    blocks = {b["address"]: b["size"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] != "inactive"}
    assert memory.blocks == blocks and not memory.asked_back
    whole = sorted((s["address"], s["address"] + s["total_size"]) for s in snapshot["segments"])
    assert sum(memory.reserved.values()) == sum(end - begin for begin, end in whole)
    assert all(
        any(a <= begin and end <= b for a, b in whole)
        for begin, end in memory._pieces()
        if not _joins(begin, end, whole)
    )


def _joins(begin: int, end: int, whole: List[Tuple[int, int]]) -> bool:
    """Segments that lie side by side are one piece of addresses."""
    inside = [(a, b) for a, b in whole if begin <= a and b <= end]
    return sum(b - a for a, b in inside) == end - begin
