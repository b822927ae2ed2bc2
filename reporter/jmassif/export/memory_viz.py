# SPDX-License-Identifier: GPL-2.0-or-later
"""Device memory at a moment, and each step up to it, as torch.cuda.memory._snapshot() returns them: for PyTorch's memory_viz.

A pickle of dictionaries, lists, strings and numbers alone. Fields of that structure that a trace does not have are
either left out, or, where memory_viz cannot do without it, has the value that it does not show: docs/formats.md says which.
"""

import pickle
from typing import Any, Dict, Iterator, List

from jmassif.analysis.allocator_events import Step, steps
from jmassif.analysis.device_memory import CACHE, Layout, Segment, is_placed, layout_at
from jmassif.analysis.oom import DeviceMoment, at_least, select_device
from jmassif.model.records import DEVICE_KINDS, Frame
from jmassif.model.run import Profile
from jmassif.render.view import FormatError, View
from jmassif.units import printable, size, unicode_text
from jmassif.version import __version__


# The newest that memory_viz reads; Python 3.4 reads it.
_PROTOCOL = 4
# PyTorch's allocator deals allocations of up to 1 MiB out of segments of 2 MiB, which it calls small.
_SMALL_BLOCK = 1 << 20
_SMALL_SEGMENT = 2 << 20
_WITH_ADDRESSES = (1, 10)  # release of PyTorch

_ACTIVE, _INACTIVE = "active_allocated", "inactive"
_Dict = Dict[str, Any]


class _Stacks:
    """Lists of frames by account, innermost first. Equal ones are one object, which a pickle writes once."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._frames: Dict[int, _Dict] = {}
        self._lists: Dict[int, List[_Dict]] = {}

    def _frame(self, id_: int) -> _Dict:
        known = self._frames.get(id_)
        if known is None:
            frame = self._profile.frame(id_)
            known = self._frames[id_] = {
                "filename": unicode_text(frame.file or frame.object) or "??",
                "line": frame.line,
                "name": unicode_text(_function(frame)),
            }
        return known

    def of(self, account: int) -> List[_Dict]:
        node = self._profile.accounts[account].node
        if node not in self._lists:
            self._lists[node] = [self._frame(id_) for id_ in self._profile.stack(node)]
        return self._lists[node]


def _function(frame: Frame) -> str:
    return frame.function or ("?" if frame.type == "p" else f"0x{frame.address:x}")


# ---- what lies where -------------------------------------------------------------------------


def _block(address: int, n_bytes: int, account: int, stacks: _Stacks) -> _Dict:
    return {
        "address": address,
        "size": n_bytes,
        "requested_size": n_bytes if account else 0,
        "state": _ACTIVE if account else _INACTIVE,
        "frames": stacks.of(account) if account else [],
    }


def _blocks(profile: Profile, segment: Segment, stacks: _Stacks) -> List[_Dict]:
    if not segment.is_segment:
        # Mappings that follow each other, each of its own call.
        found = []
        address = segment.address
        for row, n_bytes in segment.made:
            found.append(_block(address, n_bytes, profile.blocks[4 * row + 3], stacks))
            address += n_bytes
        return found
    return [_block(segment.address + part.offset, part.bytes, part.account, stacks) for part in segment.parts]


def _is_small(profile: Profile, segment: Segment) -> bool:
    largest = max(n_bytes for _, n_bytes in segment.made)
    return largest <= (_SMALL_SEGMENT if profile.accounts[segment.account].owner == CACHE else _SMALL_BLOCK)


def _segment(profile: Profile, segment: Segment, stacks: _Stacks) -> _Dict:
    blocks = _blocks(profile, segment, stacks)
    used = sum(block["size"] for block in blocks if block["state"] == _ACTIVE)
    return {
        "device": 0,
        "address": segment.address,
        "total_size": segment.bytes,
        "allocated_size": used,
        "active_size": used,
        "requested_size": used,
        "stream": 0,
        "segment_type": "small" if _is_small(profile, segment) else "large",
        "is_expandable": profile.accounts[segment.account].kind == "vmm",
        "frames": stacks.of(segment.account),
        "blocks": blocks,
    }


# ---- what was done ---------------------------------------------------------------------------


class _Entries:
    """Steps as entries of a device's trace. With --by, what is handed out has a category, by which memory_viz colours."""

    def __init__(self, profile: Profile, view: View, stacks: _Stacks) -> None:
        self._profile = profile
        self._by = view.by
        self._stacks = stacks
        start = profile.number("start-unix-ms")
        self._start = start if start is not None and profile.time_unit == "ms" else 0

    def _category(self, account: int) -> str:
        owner = self._profile.accounts[account].owner
        return unicode_text((self._profile.role(account) or owner) if self._by == "role" else owner)

    def entry(self, step: Step) -> _Dict:
        entry: _Dict = {"action": step.action, "size": step.bytes, "stream": 0}
        if step.action == "oom":
            entry["device_free"] = step.free
        else:
            entry["addr"] = step.address
        if self._profile.time_unit == "ms":
            entry["time_us"] = (self._start + step.time) * 1000
        if step.account:
            entry["frames"] = self._stacks.of(step.account)
            if self._by != "stack":
                # memory_viz fails on a file that has categories and not this one.
                entry["category"] = self._category(step.account) if step.action == "alloc" else "unknown"
        return entry


# ---- all of it -------------------------------------------------------------------------------


def _about(profile: Profile, at: DeviceMoment, layout: Layout) -> _Dict:
    """Beside what memory_viz knows: which moment it is, and what of the device has no addresses."""
    shown = sum(segment.bytes for segment in layout.segments)
    about: _Dict = {"version": __version__, "moment": unicode_text(at.name), "time": at.time, "shown_bytes": shown}
    about["time_unit"] = profile.time_unit
    if at.composition is not None:
        accounts = profile.accounts
        device = sum(held for id_, (held, _) in at.composition.items() if accounts[id_].kind in DEVICE_KINDS)
        about["device_bytes"] = device
        about["without_address_bytes"] = max(0, device - shown)
    return about


def _check_addresses(profile: Profile) -> None:
    """Raises FormatError for a PyTorch that reports numbers in the place of addresses."""
    version = profile.manifest.get("pytorch", "")
    if version and not at_least(version, *_WITH_ADDRESSES):
        raise FormatError(
            f"PyTorch {printable(version)} does not report where tensors lie in segments: record with PyTorch 1.10 or later"
        )


def _unplaced(profile: Profile, at: DeviceMoment, layout: Layout) -> FormatError:
    if "cudaMallocAsync" in profile.manifest.get("env.PYTORCH_CUDA_ALLOC_CONF", ""):
        return FormatError("PyTorch's allocator has no segments with cudaMallocAsync: record with backend:native")
    free = size(layout.fragmentation.free)
    return FormatError(
        f"it is not known where tensors lie in segments at {at.name}, where the map has {free} free, more than the allocator"
        " cache: PyTorch reports their addresses from 1.10 on"
    )


def snapshot(profile: Profile, view: View) -> _Dict:
    """The data of the pickle. Raises moments.SelectionError, FormatError."""
    _check_addresses(profile)
    at = select_device(profile, view.segments or "", view.selector)
    layout = layout_at(profile, at.position)
    if at.composition is not None and not is_placed(profile, layout, at.composition):
        raise _unplaced(profile, at, layout)
    stacks = _Stacks(profile)
    entries = _Entries(profile, view, stacks)
    return {
        "segments": [_segment(profile, segment, stacks) for segment in layout.segments],
        "device_traces": [[entries.entry(step) for step in steps(profile, at.position)]],
        "jmassif": _about(profile, at, layout),
    }


def write(profile: Profile, view: View) -> Iterator[bytes]:
    """The pickle. Raises moments.SelectionError, FormatError."""
    yield pickle.dumps(snapshot(profile, view), _PROTOCOL)


def remark(profile: Profile, view: View) -> str:
    """A warning if there is nothing in the file; "" else. Raises moments.SelectionError."""
    at = select_device(profile, view.segments or "", view.selector)
    if layout_at(profile, at.position).segments or steps(profile, at.position):
        return ""
    return f"the file is empty: no device memory has an address at {at.name}; name another moment, or the trace of the process that uses CUDA"
