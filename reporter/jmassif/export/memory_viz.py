# SPDX-License-Identifier: GPL-2.0-or-later
"""Device memory at a moment, and each step up to it, as torch.cuda.memory._snapshot() returns them: for PyTorch's memory_viz.

A pickle of dictionaries, lists, strings and numbers alone. Fields of that structure that a trace does not have are
left out or, where memory_viz needs them, have the value that it does not show: docs/reference.md says which.
"""

import pickle
from functools import lru_cache
from typing import Any, Dict, Iterator, List

from jmassif.analysis.device_history import Step, device_history
from jmassif.analysis.device_memory import CACHE, Segment
from jmassif.model.run import Profile
from jmassif.render.view import FormatError, View
from jmassif.units import unicode_text
from jmassif.version import __version__


# The newest that memory_viz reads; Python 3.4 reads it.
_PROTOCOL = 4
# PyTorch's allocator deals allocations of up to 1 MiB out of segments of 2 MiB, which it calls small.
_SMALL_BLOCK = 1 << 20
_SMALL_SEGMENT = 2 << 20

_Dict = Dict[str, Any]


class _Dictionaries:
    """Lists of frames that are equal are one object, which a pickle writes once."""

    def __init__(self, profile: Profile, by: str) -> None:
        @lru_cache(maxsize=None)
        def frame(id_: int) -> _Dict:
            fields = profile.frame(id_)
            name = fields.function or ("?" if fields.type == "p" else f"0x{fields.address:x}")
            file = unicode_text(fields.file or fields.object) or "??"
            return {"filename": file, "line": fields.line, "name": unicode_text(name)}

        @lru_cache(maxsize=None)
        def stack(node: int) -> List[_Dict]:
            """The innermost frame first."""
            return list(map(frame, profile.stack(node)))

        self._profile = profile
        self._by = by
        self._stack_of = stack
        self._start = profile.number("start-unix-ms") or 0

    def _stack(self, account: int) -> List[_Dict]:
        return self._stack_of(self._profile.accounts[account].node)

    def _block(self, address: int, n_bytes: int, account: int) -> _Dict:
        return {
            "address": address,
            "size": n_bytes,
            "requested_size": n_bytes if account else 0,
            "state": "active_allocated" if account else "inactive",
            "frames": self._stack(account) if account else [],
        }

    def segment(self, segment: Segment) -> _Dict:
        of = self._profile.accounts[segment.account]
        used = segment.bytes - segment.free
        small = _SMALL_SEGMENT if of.owner == CACHE else _SMALL_BLOCK
        return {
            "device": 0,
            "address": segment.address,
            "total_size": segment.bytes,
            "allocated_size": used,
            "active_size": used,
            "requested_size": used,
            "stream": 0,
            "segment_type": "small" if max(n_bytes for _, n_bytes in segment.made) <= small else "large",
            "is_expandable": of.kind == "vmm",
            "frames": self._stack(segment.account),
            "blocks": [self._block(segment.address + at, n_bytes, account) for at, n_bytes, account in segment.parts],
        }

    def entry(self, step: Step) -> _Dict:
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


def write(profile: Profile, view: View) -> Iterator[bytes]:
    """The pickle. Raises moments.SelectionError, FormatError."""
    history = device_history(profile, view.segments or "", view.selector)
    if not history.is_placed:
        raise FormatError(
            f"it is not known where tensors lie in segments at {history.at.name}: record with PyTorch 1.10 or later,"
            " and its native allocator"
        )
    if not (history.layout.segments or history.steps):
        raise FormatError(
            f"no device memory has an address at {history.at.name}; name another moment, or the trace of the process that"
            " uses CUDA"
        )
    made = _Dictionaries(profile, view.by)
    snapshot = {
        "segments": [made.segment(segment) for segment in history.layout.segments],
        "device_traces": [[made.entry(step) for step in history.steps]],
        "jmassif": {"version": __version__, "moment": unicode_text(history.at.name)},
    }
    yield pickle.dumps(snapshot, _PROTOCOL)
