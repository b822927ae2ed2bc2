# SPDX-License-Identifier: GPL-2.0-or-later
"""A massif file, for ms_print and massif-visualizer.

massif-visualizer has the stricter grammar: fixed order of lines, one `desc:` line, separators of one exact form, no
comments and no blank lines. ms_print takes everything from a `#` on for a comment, wants snapshots numbered from 0, at least
one of them, and no node above the snapshot's total. What is written here keeps both.

massif knows one pool of memory and three sums of it. `mem_heap_B` is all recorded memory, host and device, of every
kind but two: `heap-overhead` is `mem_heap_extra_B`, `stack` is `mem_stacks_B`. As in massif's own files a tree is that of
`mem_heap_B`; its first levels are kinds and owners, then come the stacks. Imported memory is left out. So are resident
pages, unless they are asked for: massif does not know them, and figures that massif has too must be its.
"""

from functools import lru_cache
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from jmassif.analysis.calltree import ROOT, BottomUp, Shape
from jmassif.analysis.moments import select
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.records import ALLOCATED, DEVICE_KINDS, HOST_KINDS
from jmassif.model.run import Profile
from jmassif.render.view import View
from jmassif.units import printable


_EXTRA_KIND = "heap-overhead"
_STACK_KIND = "stack"

_ROOT = "(jmassif) all memory by kind, owner and stack"

# Perl warns of deep recursion at 100 levels, and ms_print recurses by level: the root and two levels above the stacks
# are three of them.
_MAX_FRAMES = 96

# As massif has them.
_DEFAULT_MAX_SNAPSHOTS = 100
_DETAILED_FREQ = 10

_MOST_SNAPSHOTS = 1000  # as the recorder takes


class _Entry(NamedTuple):
    """A snapshot as massif has it."""

    time: int
    by_kind: Dict[str, int]
    snapshot: Optional[int]  # index; None: the peak, or nothing at all was recorded

    @property
    def total(self) -> int:
        return sum(self.by_kind.values())


def _safe(text: str) -> str:
    """`text` without what either reader gives a meaning to."""
    return printable(text).replace("#", "$")


def _label(profile: Profile, names: Names, frame_id: int) -> str:
    """ "0x4005D0: main (a.c:5)", or "train.py:87 (train)". massif-visualizer takes the last parentheses for the place."""
    frame = profile.frame(frame_id)
    if frame.type == "p":
        return _safe(names.frame(frame_id))
    if frame.file:
        name = frame.file.rpartition("/")[2]
        place = f"{name}:{frame.line}" if frame.line else name
    else:
        place = f"in {frame.object or '???'}"
    place = place.replace("(", "[").replace(")", "]")
    return _safe(f"0x{frame.address:X}: {frame.function or '???'} ({place})")


# ---- which snapshots -------------------------------------------------------------------------


def _entries(profile: Profile, which: str, kinds: Set[str]) -> Tuple[List[_Entry], int]:
    """All snapshots with the peak put in its place, in order of time; and the peak's index among them."""

    def entry(time: int, by_kind: Dict[str, int], snapshot: Optional[int]) -> _Entry:
        return _Entry(time, {kind: n_bytes for kind, n_bytes in by_kind.items() if kind in kinds}, snapshot)

    entries = [entry(snapshot.time, snapshot.by_kind, index) for index, snapshot in enumerate(profile.snapshots)]
    peak = profile.peaks.get(which)
    if not peak:
        entries = entries or [_Entry(0, {}, None)]
        totals = [each.total for each in entries]
        return entries, totals.index(max(totals))
    if not peak.differences and peak.time == entries[peak.snapshot].time:
        return entries, peak.snapshot
    place = 0
    while place < peak.snapshot and entries[place].time <= peak.time:
        place += 1
    entries.insert(place, entry(peak.time, peak.by_kind, None))
    return entries, place


def _thin_out(entries: Sequence[_Entry], keep: Sequence[int], limit: int) -> List[int]:
    """Indices of at most `limit` entries: of `keep` as they come, then the fullest of each run of neighbours."""
    kept: List[int] = []
    for index in keep:
        if index not in kept and len(kept) < limit:
            kept.append(index)
    others = [index for index in range(len(entries)) if index not in kept]
    n_runs = min(limit - len(kept), len(others))
    for run in range(n_runs):
        members = others[run * len(others) // n_runs : (run + 1) * len(others) // n_runs]
        kept.append(max(members, key=lambda index: entries[index].total))
    return sorted(kept)


# ---- writing ---------------------------------------------------------------------------------


def _header(profile: Profile) -> Iterator[str]:
    options = sorted(
        (key[len("option.") :], text) for key, text in profile.manifest.items() if key.startswith("option.")
    )
    yield _safe(" ".join(["desc: --tool=jmassif"] + [f"--{name}={text}" for name, text in options]))
    yield _safe(f"cmd: {profile.manifest.get('command') or '???'}")
    yield f"time_unit: {profile.time_unit}"


def _tree(tree: BottomUp, threshold: float) -> Iterator[str]:
    totals, children = tree.totals()[0], tree.children()
    pending = [(ROOT, 0)]
    while pending:
        node, depth = pending.pop()
        label, places = tree.text(node), tree.places.get(node)
        if places:
            one = "in 1 place, below"
            many = f"in {places} places, all below"
            label = f"{one if places == 1 else many} massif's threshold ({threshold:05.2f}%)"
        yield f"{' ' * depth}n{len(children[node])}: {totals[node]} {label}"
        pending.extend((child, depth + 1) for child in reversed(children[node]))


def _levels(profile: Profile, names: Names, view: View) -> List[Callable[[int], str]]:
    kind, owner = profile.accounts.kind, profile.accounts.owner
    if view.by == "stack":
        return [kind, owner]
    name = naming(profile, names, view.by, view.fold != "none")
    return [lambda account: _safe(name(account)), owner if view.by == "kind" else kind]


def write(profile: Profile, view: View) -> Iterator[str]:
    """The file's lines.

    Every so many snapshots one has its tree, and the peak always; with view.selector the one snapshot that it names
    has its tree instead. Raises moments.SelectionError.
    """
    which = ALLOCATED if profile.has_pages and not view.with_pages else "total"
    kinds = {kind for kind in HOST_KINDS + DEVICE_KINDS if view.with_pages or not profile.is_sampled(kind)}
    in_tree = kinds - {_EXTRA_KIND, _STACK_KIND}
    entries, peak = _entries(profile, which, kinds)
    wanted = [peak]
    if view.selector:
        chosen = select(profile, view.selector).snapshot
        wanted += [index for index, entry in enumerate(entries) if entry.snapshot == chosen]
    limit = min(max(1, int(profile.option("max-snapshots", _DEFAULT_MAX_SNAPSHOTS))), _MOST_SNAPSHOTS)
    indices = _thin_out(entries, wanted + [len(entries) - 1, 0], limit)
    names = Names(profile)

    @lru_cache(maxsize=None)
    def label(frame: int) -> str:
        return _label(profile, names, frame)

    levels = _levels(profile, names, view)
    shape = Shape(levels, label, names.folding, view.threshold, view.fold == "internal", _MAX_FRAMES)
    yield from _header(profile)
    for number, index in enumerate(indices):
        entry = entries[index]
        extra = entry.by_kind.get(_EXTRA_KIND, 0)
        stacks = entry.by_kind.get(_STACK_KIND, 0)
        is_regular = not view.selector and number % _DETAILED_FREQ == _DETAILED_FREQ - 1
        yield "#-----------"
        yield f"snapshot={number}"
        yield "#-----------"
        yield f"time={entry.time}"
        yield f"mem_heap_B={entry.total - extra - stacks}"
        yield f"mem_heap_extra_B={extra}"
        yield f"mem_stacks_B={stacks}"
        if entry.total and (index in wanted or is_regular):
            yield "heap_tree=peak" if index == peak else "heap_tree=detailed"
            of = entry.snapshot
            composition = profile.peak_composition(which) if of is None else profile.composition(of)
            heap = {each: held for each, held in composition.items() if profile.accounts.kind(each) in in_tree}
            yield from _tree(BottomUp(profile, heap, shape, _ROOT), view.threshold)
        else:
            yield "heap_tree=empty"
