# SPDX-License-Identifier: GPL-2.0-or-later
"""What would make a run smaller that did not run out of memory: only what its own figures say that it would.

What would have helped an allocation that failed is in remedies.py.
"""

from typing import List, Optional

from jmassif.model.profile import Profile
from jmassif.questions.ledger import Ledger
from jmassif.questions.moments import Moment, main_peak
from jmassif.questions.remedies import can_expand_segments, is_pytorch, lazy_loading_is_off, whole_pages
from jmassif.questions.segments import Layout, is_placed, layout_at, position_of_peak
from jmassif.units import percent, size

# What is less, or a smaller part of the pool, is not worth a change.
_LEAST_BYTES = 16 << 20
_LEAST_SHARE = 0.1


def _position(profile: Profile, chosen: Moment) -> Optional[int]:
    """Of a moment among the rows of Profile.blocks."""
    if chosen.snapshot is not None:
        return profile.snapshots[chosen.snapshot].position
    which = main_peak(profile)
    return position_of_peak(profile, which) if which in profile.peaks and profile.blocks.n_rows else None


def _is_worth(n_bytes: int, whole: int) -> bool:
    return n_bytes >= _LEAST_BYTES and n_bytes >= _LEAST_SHARE * whole


def _from_cache(profile: Profile, layout: Layout, whole: int) -> str:
    """A sentence on how a caching allocator would hold less; "" if no way is known that helps."""
    pieces = layout.fragmentation
    if _is_worth(pieces.returnable, whole):
        how = "torch.cuda.empty_cache() before" if is_pytorch(profile) else "its allocator, asked in time,"
        return f"{how} would have given {size(pieces.returnable)} of it back: segments that hold nothing."
    pages = whole_pages(layout)
    if is_pytorch(profile) and can_expand_segments(profile) and _is_worth(pages, whole):
        return f"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True could give {size(pages)} of it back: whole pages in holes."
    return ""


def savings(profile: Profile, chosen: Moment, table: Ledger) -> List[str]:
    """Sentences, of what would save most first. `table` is the ledger of the moment."""
    found: List[str] = []
    whole = table.total.device.bytes if profile.is_discrete else table.total.bytes
    cached = sum(group.device.bytes for group, _ in table.groups if group.name == "cached")
    if _is_worth(cached, whole):
        position = _position(profile, chosen)
        layout = None if position is None else layout_at(profile, position)
        is_known = layout is not None and is_placed(profile, layout, chosen.composition)
        way = _from_cache(profile, layout, whole) if layout is not None and is_known else ""
        if way:
            of = "its device memory" if profile.is_discrete else "all it held"
            found.append(f"{size(cached)} ({percent(cached, whole)} of {of}) are cached and not in use; {way}")
    module = sum(row.bytes for _, owners in table.groups for row in owners if row.name == "module")
    if _is_worth(module, table.total.bytes) and lazy_loading_is_off(profile):
        found.append(f"CUDA_MODULE_LOADING=LAZY: the code of kernels holds {size(module)}, and most is seldom used.")
    return found
