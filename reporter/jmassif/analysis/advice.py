# SPDX-License-Identifier: GPL-2.0-or-later
"""Actions for a run that did not fail, and why the cache of its allocator is large.

An allocator reserves a segment when none of its free pieces is large enough. If as much was free in smaller pieces, the request
has *outgrown* them, and they stay in the cache. Other cached memory was in use before. Sizes are bytes.
"""

import re
from bisect import bisect_left
from typing import Dict, List, NamedTuple, Optional

from jmassif.analysis.aggregate import Ledger, Usage
from jmassif.analysis.balance import balance_at, memory_balance, sampled, unused_besides
from jmassif.analysis.blocks import heap_steps
from jmassif.analysis.device_memory import Layout, layout_at, layouts
from jmassif.analysis.moments import Moment, main_peak
from jmassif.analysis.oom import Hint, expand_segments, lazy_loading_is_off, line_of, position_of, whole_pages
from jmassif.attribution.names import Names
from jmassif.model.run import Profile
from jmassif.model.run_info import is_pytorch, recorder

# A smaller saving, or a smaller share of the program, is not worth a change.
_LEAST_BYTES = 16 << 20
_LEAST_SHARE = 0.1
# Share of the empty segments: a line that returns less is not named.
_MOST_OF_IT = 0.75
# Share of the cache: less does not explain it.
_LEAST_EXPLAINED = 0.5
# A few seconds' work.
_MOST_SEGMENTS = 2000


def _is_worth(n_bytes: int, whole: int) -> bool:
    return n_bytes >= _LEAST_BYTES and n_bytes >= _LEAST_SHARE * whole


# ---- emptying the cache ----------------------------------------------------------------------


def _empty(layout: Layout) -> Dict[int, int]:
    """Bytes by address of segments that hold no block."""
    return {segment.address: segment.bytes for segment in layout.reserving if segment.free == segment.bytes}


def _held_before(run: Profile, row: int) -> int:
    """At least so much was held at some time before a row of blocks: of a discrete GPU, on the device."""
    timeline = run.timeline
    column = timeline.device if run.is_discrete else timeline.maximum
    # A row of the timeline counts up to its own time, at which other blocks may have come already.
    known = max(column[: bisect_left(timeline.time, run.blocks.time[row])], default=0)
    layout = layout_at(run, row)
    return max(known, layout.by_handle + sum(segment.bytes for segment in layout.segments))


def _emptied_before(run: Profile, names: Names, position: int, layout: Layout) -> Hint:
    """Emptying the cache returns the segments that were empty before a line and still are.

    The line is the one that reserved the newest segment or, if most were empty later only, that of the latest allocation. In a
    Python program it is a Python line: PyTorch's own threads have none, and nobody can change a library's code.
    """
    accounts, charged = run.blocks.account, names.charges()
    has_python = any(charged)
    still = _empty(layout)
    newest = max(made[0] for segment in layout.reserving for made in segment.made)
    frees = set(run.frees)
    fit = (row for row in range(position - 1, 0, -1) if row not in frees and (charged[accounts[row]] or not has_python))
    for row in (newest, next(fit, newest)):
        if has_python and not charged[accounts[row]]:
            continue
        earlier = _empty(layout_at(run, row))
        n_bytes = sum(size for address, size in still.items() if earlier.get(address) == size)
        if n_bytes >= _MOST_OF_IT * sum(still.values()):
            line = line_of(run, names, accounts[row])
            first = next(each for each in range(row + 1) if line_of(run, names, accounts[each]) == line)
            return Hint("empty-cache", n_bytes, line, held_before=_held_before(run, first))
    return Hint("empty-cache", sum(still.values()))


# ---- memory that is free inside malloc -----------------------------------------------------------

_LARGE = 128 << 10  # glibc's first threshold for a mapping of its own
_GLIBC = re.compile(r"/libc(\.so\.6|-2\.\d+\.so)$")
_OTHER_MALLOC = re.compile(r"/lib(jemalloc|tcmalloc|mimalloc)[^/]*$")
# Each of them fixes the thresholds, of which glibc else raises both with each larger block from mmap that is freed, up to 32 and
# 64 MiB (mallopt(3)): blocks up to that size then lie in its heaps, and leave holes there.
_FIXES_THRESHOLDS = ("TRIM_THRESHOLD_", "MMAP_THRESHOLD_", "MMAP_MAX_", "TOP_PAD_")
_TUNABLE = re.compile(r"glibc\.malloc\.(trim_threshold|mmap_threshold|mmap_max|top_pad)=")


def _raises_thresholds(run: Profile) -> bool:
    """The program's own malloc is glibc's, which Valgrind replaces, and nothing in its environment fixes the thresholds."""
    variables = run.manifest.get
    is_fixed = any(variables(f"env.MALLOC_{name}") for name in _FIXES_THRESHOLDS)
    paths = [loaded.path for loaded in run.objects]
    return (
        recorder(run) == "native"
        and any(map(_GLIBC.search, paths))
        and not any(map(_OTHER_MALLOC.search, paths))
        and not (is_fixed or _TUNABLE.search(variables("env.GLIBC_TUNABLES", "")))
    )


def _trim_heap(run: Profile, at: Moment, total: Usage) -> List[Hint]:
    """Small blocks leave holes as well, which no threshold closes."""
    made = balance_at(run, at)
    unused = unused_besides(run, made, total.host_bytes if run.is_discrete else total.bytes) if made else 0
    if not _is_worth(unused, total.bytes) or not _raises_thresholds(run):
        return []
    # Blocks that would have been mappings of their own, and were freed.
    freed = -sum(n_bytes for _, n_bytes in heap_steps(run) if n_bytes <= -_LARGE)
    hint = Hint("trim-heap", unused, variable="MALLOC_TRIM_THRESHOLD_", value="131072", is_trial=True)
    return [hint] if freed >= unused else []


class ResidentLater(NamedTuple):
    """Resident memory was largest at another time than the ledger: what was freed can stay in malloc's heaps."""

    time: int  # of the first reading after it
    bytes: int
    more: int  # than at the peak
    unused: int  # free inside malloc, at the sample of pages nearest to that time; 0 if that explains little


def resident_later(run: Profile, shown: int) -> Optional[ResidentLater]:
    """None if it was never much more than `shown`."""
    times, values = run.system.get("process-highest", ((), ()))
    most = max(values, default=0)
    made = sampled(run)
    # Below Valgrind much of it is Valgrind's.
    if not made or recorder(run) != "native" or not _is_worth(most - shown, shown):
        return None
    time = times[list(values).index(most)]
    near = min(made, key=lambda index: abs(run.snapshots[index].time - time))
    unused = memory_balance(run, near).allocators
    return ResidentLater(time, most, most - shown, unused if _is_worth(unused, shown) else 0)


# ---- all actions -------------------------------------------------------------------------------


def hints_at(run: Profile, names: Names, at: Moment, table: Ledger) -> List[Hint]:
    """Actions that return much at a moment, the largest first. `table` is the ledger of the moment."""
    found: List[Hint] = []
    whole = table.total.device_bytes if run.is_discrete else table.total.bytes
    cached = sum(group.usage.device_bytes for group in table.groups if group.name == "cached")
    position = position_of(run, at, main_peak(run)) if _is_worth(cached, whole) else 0
    layout = layout_at(run, position) if position else Layout([], 0)
    if position and layout.is_placed(run.accounts, at.composition):
        pages = whole_pages(layout) if is_pytorch(run) else 0
        if _is_worth(layout.fragmentation.returnable, whole):
            found.append(_emptied_before(run, names, position, layout))
        elif _is_worth(pages, whole):
            found += expand_segments(run, pages)
    module = sum(owner.bytes for owner in table.owners if owner.name == "module")
    if _is_worth(module, table.total.bytes) and lazy_loading_is_off(run):
        found.append(Hint("lazy-loading", module))
    found += _trim_heap(run, at, table.total)
    return sorted(found, key=lambda hint: -hint.bytes)


# ---- the cause of a cache --------------------------------------------------------------------


class CacheCause(NamedTuple):
    """Either memory that requests have outgrown, or memory that was in use: the fields of the other are 0."""

    outgrown: int  # in segments that were reserved while as much was free in smaller pieces
    most: int  # bytes of the largest of these
    line: str  # that reserved most of them; safe to show
    used: int  # in use in segments, at some time before
    used_at: int  # time
    used_now: int


def cause_of_cache(run: Profile, names: Names, at: Moment) -> Optional[CacheCause]:
    """None if the trace does not prove why most of the cache is there."""
    layout = layout_at(run, position_of(run, at, main_peak(run)))
    now = layout.fragmentation
    rows = sorted({row for segment in layout.reserving for row, _ in segment.made})[-_MOST_SEGMENTS:]
    outgrown: Dict[str, List[int]] = {}
    used, used_at = 0, 0
    for row, before in zip(rows, layouts(run, rows)):
        time, _, size, account = run.blocks[4 * row : 4 * row + 4]
        pieces = before.fragmentation
        if pieces.reserved - pieces.free > used:
            used, used_at = pieces.reserved - pieces.free, time
        if pieces.largest_hole < size <= pieces.free:
            outgrown.setdefault(line_of(run, names, account), []).append(size)
    worth = _LEAST_EXPLAINED * now.free
    sizes = [size for of_line in outgrown.values() for size in of_line]
    if sizes and sum(sizes) >= worth:
        line = max(outgrown, key=lambda line: (sum(outgrown[line]), line))
        return CacheCause(sum(sizes), max(sizes), line, 0, 0, 0)
    used_now = now.reserved - now.free
    if used - used_now >= worth > 0:
        return CacheCause(0, 0, "", used, used_at, used_now)
    return None
