# SPDX-License-Identifier: GPL-2.0-or-later
"""The map of device memory as text: a row a segment, a letter an owner, dashes for holes.

    7f2a10000000   20.0 MiB  75 %  TTTTTTTTTTTTTTTTTT-----TTTTttttttt------
"""

from typing import Dict, Iterator, List, Optional, Tuple

from jmassif.model.profile import Profile
from jmassif.model.records import Composition
from jmassif.questions.device_moments import select_device
from jmassif.questions.segments import Layout, Segment, is_placed, layout_at, layouts
from jmassif.units import count, moment, percent, size
from jmassif.writers.text.layout import Lines, heading, paragraph
from jmassif.writers.text.table import Column, Table

HOLE = "-"
_BAR = 46
_ROWS_SHOWN = 40
_MOMENTS_SHOWN = 12

_MAP = Table(Column("", 12), Column("", 9, gap=1), Column("", 7, gap=1), Column("", gap=2))
_OVER_TIME = Table(
    Column("at", 12),
    Column("reserved", 10, gap=1),
    Column("used", 10, gap=1),
    Column("free", 10, gap=1),
    Column("holes", 7, gap=1),
    Column("largest hole", 12, gap=1),
    Column("fragmentation", 13, gap=1),
)


# ---- letters ---------------------------------------------------------------------------------


def letters(profile: Profile, layout: Layout) -> Dict[str, str]:
    """By owner, the one with most first: a capital letter, of the owner's name if that is left."""
    held: Dict[str, int] = {}
    for segment in layout.segments:
        for part in segment.parts:
            if part.account:
                owner = profile.accounts[part.account].owner
                held[owner] = held.get(owner, 0) + part.bytes
    found: Dict[str, str] = {}
    for owner in sorted(held, key=lambda name: (-held[name], name)):
        wanted = [c for c in owner.upper() if "A" <= c <= "Z"] + [chr(c) for c in range(ord("A"), ord("Z") + 1)]
        found[owner] = next((c for c in wanted if c not in found.values()), "#")
    return found


def _cell(profile: Profile, segment: Segment, begin: int, end: int, letter_of: Dict[str, str]) -> str:
    """What stands for these bytes: the owner with most of them; small where a part is free."""
    held: Dict[str, int] = {}
    for part in segment.parts:
        overlap = min(end, part.offset + part.bytes) - max(begin, part.offset)
        if overlap > 0 and part.account:
            owner = profile.accounts[part.account].owner
            held[owner] = held.get(owner, 0) + overlap
    if not held:
        return HOLE
    letter = letter_of[max(held, key=lambda owner: (held[owner], owner))]
    return letter if sum(held.values()) == end - begin else letter.lower()


def _bar(profile: Profile, segment: Segment, widest: int, letter_of: Dict[str, str]) -> str:
    n_cells = max(1, segment.bytes * _BAR // widest)
    edges = [segment.bytes * cell // n_cells for cell in range(n_cells + 1)]
    return "".join(_cell(profile, segment, edges[i], edges[i + 1], letter_of) for i in range(n_cells))


# ---- the map ---------------------------------------------------------------------------------


def _sum(layout: Layout) -> str:
    pieces = layout.fragmentation
    n = len(layout.reserving)
    text = f"{count(n, 'segment')} of {size(pieces.reserved)}: {size(pieces.reserved - pieces.free)} used"
    if not pieces.free:
        return f"{text}, no holes."
    holes = f"{size(pieces.free)} free in {count(pieces.holes, 'hole')}, the largest {size(pieces.largest_hole)}"
    return f"{text}, {holes}; fragmentation {percent(round(1000 * pieces.share), 1000)}."


def map_lines(profile: Profile, layout: Layout, composition: Optional[Composition], limit: int = _ROWS_SHOWN) -> Lines:
    """What is reserved and free in numbers, the map, and its legend. `composition` is the ledger then, if it is known."""
    if not layout.segments:
        held = f"{size(layout.by_handle)} in arrays and memory without addresses" if layout.by_handle else "nothing"
        return [f"No map: of device memory, this program had {held} then."]
    lines: Lines = []
    if layout.reserving:
        lines += paragraph(_sum(layout))
    else:
        lines.append("No allocator has reserved segments: each block is by itself.")
    if composition is not None and not is_placed(profile, layout, composition):
        lines += paragraph(
            "Where in the segments blocks lie is not known: this PyTorch does not report their addresses."
        )
    letter_of = letters(profile, layout)
    shown = sorted(layout.segments, key=lambda segment: (-segment.bytes, segment.address))[:limit]
    widest = shown[0].bytes
    lines.append("")
    for segment in sorted(shown, key=lambda segment: segment.address):
        used = percent(segment.bytes - segment.free, segment.bytes).replace(".0", "") if segment.is_segment else ""
        bar = _bar(profile, segment, widest, letter_of)
        lines.append(_MAP.row(f"{segment.address:x}", size(segment.bytes), used, bar).rstrip())
    rest = len(layout.segments) - len(shown)
    if rest:
        left_out = sum(segment.bytes for segment in layout.segments) - sum(segment.bytes for segment in shown)
        lines.append(f"and {count(rest, 'smaller one')}, {size(left_out)} in all")
    if layout.by_handle:
        lines.append(f"and {size(layout.by_handle)} in arrays and memory without addresses")
    legend = [f"{letter} {owner}" for owner, letter in letter_of.items()]
    has_holes = any(segment.free for segment in layout.segments)
    legend += [f"{HOLE} free", "small letters: partly free"] if has_holes else []
    return lines + [""] + paragraph("   ".join(legend))


# ---- over time -------------------------------------------------------------------------------


def _moments(profile: Profile) -> List[Tuple[int, int]]:
    """(time, position): snapshots, evenly spread."""
    rows = [(snapshot.time, snapshot.position) for snapshot in profile.snapshots]
    rows = [row for row, before in zip(rows, [(0, -1)] + rows) if row[1] != before[1]]
    step = max(1, -(-len(rows) // _MOMENTS_SHOWN))
    return rows[::-1][::step][::-1]


def _over_time(profile: Profile) -> Lines:
    rows = _moments(profile)
    lines: List[str] = []
    for (time, _), layout in zip(rows, layouts(profile, [position for _, position in rows])):
        pieces = layout.fragmentation
        if not pieces.reserved:
            continue
        figures = [pieces.reserved, pieces.reserved - pieces.free, pieces.free]
        row = [moment(time, profile.time_unit)] + [size(n) for n in figures]
        share = percent(round(1000 * pieces.share), 1000) if pieces.free else "-"
        lines.append(_OVER_TIME.row(*row, f"{pieces.holes:,}", size(pieces.largest_hole), share))
    if not lines:
        return []
    return heading("Segments over time") + [_OVER_TIME.head] + lines


def write_segments(profile: Profile, number: str, selector: Optional[str]) -> Iterator[str]:
    """The map at the moment that `selector` names, or at the failed allocation with this number, and figures over time.

    Raises SelectionError.
    """
    chosen = select_device(profile, number, selector)
    yield from heading(f"Device memory, at {chosen.name} ({moment(chosen.time, profile.time_unit)})")
    yield from map_lines(profile, layout_at(profile, chosen.position), chosen.composition)
    yield from _over_time(profile)
