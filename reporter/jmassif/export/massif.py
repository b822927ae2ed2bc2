# SPDX-License-Identifier: GPL-2.0-or-later
"""A massif file, for ms_print and massif-visualizer.

massif-visualizer has the stricter grammar: fixed order of lines, one `desc:` line, separators of one exact form, no
comments and no blank lines, and every node with its count of children, its bytes and a label. ms_print in turn takes
everything from a `#` on for a comment, wants snapshots numbered from 0, at least one of them, and no node above the
snapshot's total. What is written here keeps both.

massif knows one pool of memory and three sums of it. `mem_heap_B` is all recorded memory, host and device, of every
kind but two: `heap-overhead` is `mem_heap_extra_B`, `stack` is `mem_stacks_B`. As in massif's own files a tree is that of
`mem_heap_B`; its first levels are kinds and owners, then come the stacks. Imported memory is not counted and left out. So
are resident pages, unless they are asked for: massif does not know them, and figures that massif has too must be its.
"""

from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.calltree import ROOT, BottomUp, Shape
from jmassif.analysis.moments import select
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.records import ALLOCATED, KINDS, LISTED_KINDS, LiveBytesByAccount
from jmassif.model.run import Profile
from jmassif.render.view import View
from jmassif.units import printable


_EXTRA_KIND = "heap-overhead"
_STACK_KIND = "stack"
_OUTSIDE_TREE = (_EXTRA_KIND, _STACK_KIND) + LISTED_KINDS

_ROOT = "(jmassif) all memory by kind, owner and stack"

# Perl warns of deep recursion at 100 levels, and ms_print recurses by level: the root and two levels above the stacks
# are three of them.
_MAX_FRAMES = 96

# As massif has them.
_DEFAULT_MAX_SNAPSHOTS = 100
_DEFAULT_DETAILED_FREQ = 10

# Bounds for the options that a trace states: the recorder takes no more snapshots, and each tree looks at every account.
_MOST_SNAPSHOTS = 1000
_MOST_LOOKS = 1 << 20
_LEAST_TREES = 10


class _Entry(NamedTuple):
    """A snapshot as massif has it; `peak` is set for the one that is not among the trace's snapshots."""

    time: int
    by_kind: Dict[str, int]
    snapshot: Optional[int]  # index; None: the peak, or nothing at all was recorded

    @property
    def total(self) -> int:
        return sum(n_bytes for kind, n_bytes in self.by_kind.items() if kind not in LISTED_KINDS)


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


def _is_shown(profile: Profile, view: View, kind: str) -> bool:
    return view.with_pages or not profile.is_sampled(kind)


def _peak(profile: Profile, view: View) -> str:
    return ALLOCATED if profile.has_pages and not view.with_pages else "total"


def _entries(profile: Profile, view: View) -> Tuple[List[_Entry], int]:
    """All snapshots with the peak put in its place, in order of time; and the peak's index among them."""

    def shown(by_kind: Dict[str, int]) -> Dict[str, int]:
        return {kind: n_bytes for kind, n_bytes in by_kind.items() if _is_shown(profile, view, kind)}

    entries = [
        _Entry(snapshot.time, shown(snapshot.by_kind), index) for index, snapshot in enumerate(profile.snapshots)
    ]
    peak = profile.peaks.get(_peak(profile, view))
    if not peak:
        if not entries:
            return [_Entry(0, {}, None)], 0
        totals = [entry.total for entry in entries]
        return entries, totals.index(max(totals))
    if not peak.differences and peak.time == entries[peak.snapshot].time:
        return entries, peak.snapshot
    place = 0
    while place < peak.snapshot and entries[place].time <= peak.time:
        place += 1
    entries.insert(place, _Entry(peak.time, shown(peak.by_kind), None))
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


def _composition(profile: Profile, view: View, entry: _Entry) -> LiveBytesByAccount:
    if entry.snapshot is not None:
        composition = profile.composition(entry.snapshot)
    else:
        composition = profile.peak_composition(_peak(profile, view))
    kinds = {kind for kind in KINDS if kind not in _OUTSIDE_TREE and _is_shown(profile, view, kind)}
    return {account: held for account, held in composition.items() if profile.accounts[account].kind in kinds}


# ---- writing ---------------------------------------------------------------------------------


def _header(profile: Profile) -> Iterator[str]:
    options = [
        f"--{key[len('option.'):]}={value}"
        for key, value in sorted(profile.manifest.items())
        if key.startswith("option.")
    ]
    yield _safe(" ".join(["desc: --tool=jmassif"] + options))
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
    def kind(account: int) -> str:
        return profile.accounts[account].kind

    def owner(account: int) -> str:
        return profile.accounts[account].owner

    if view.by == "stack":
        return [kind, owner]
    name = naming(profile, names, view.by, view.fold != "none")
    return [lambda account: _safe(name(account)), owner if view.by == "kind" else kind]


def _detailed_every(profile: Profile, n_snapshots: int) -> int:
    """One of so many snapshots has its tree: as the option says, fewer where that would take minutes."""
    n_trees = max(_LEAST_TREES, _MOST_LOOKS // len(profile.accounts))
    return max(1, int(profile.option("detailed-freq", _DEFAULT_DETAILED_FREQ)), -(-n_snapshots // n_trees))


def write(profile: Profile, view: View) -> Iterator[str]:
    """The file's lines.

    Every so many snapshots one has its tree, and the peak always; with view.selector the one snapshot that it names
    has its tree instead. Raises moments.SelectionError.
    """
    entries, peak = _entries(profile, view)
    wanted = [peak]
    if view.selector:
        chosen = select(profile, view.selector).snapshot
        wanted += [index for index, entry in enumerate(entries) if entry.snapshot == chosen]
    limit = min(max(1, int(profile.option("max-snapshots", _DEFAULT_MAX_SNAPSHOTS))), _MOST_SNAPSHOTS)
    indices = _thin_out(entries, wanted + [len(entries) - 1, 0], limit)
    frequency = _detailed_every(profile, len(indices))

    names = Names(profile)
    labels: Dict[int, str] = {}

    def label(frame: int) -> str:
        if frame not in labels:
            labels[frame] = _label(profile, names, frame)
        return labels[frame]

    levels = _levels(profile, names, view)
    shape = Shape(levels, label, names.folding, view.threshold, view.fold == "internal", _MAX_FRAMES)
    yield from _header(profile)
    for number, index in enumerate(indices):
        entry = entries[index]
        extra = entry.by_kind.get(_EXTRA_KIND, 0)
        stacks = entry.by_kind.get(_STACK_KIND, 0)
        is_regular = not view.selector and number % frequency == frequency - 1
        yield "#-----------"
        yield f"snapshot={number}"
        yield "#-----------"
        yield f"time={entry.time}"
        yield f"mem_heap_B={entry.total - extra - stacks}"
        yield f"mem_heap_extra_B={extra}"
        yield f"mem_stacks_B={stacks}"
        if entry.total and (index in wanted or is_regular):
            yield "heap_tree=peak" if index == peak else "heap_tree=detailed"
            yield from _tree(BottomUp(profile, _composition(profile, view, entry), shape, _ROOT), view.threshold)
        else:
            yield "heap_tree=empty"
