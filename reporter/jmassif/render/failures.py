# SPDX-License-Identifier: GPL-2.0-or-later
"""Out of memory and device memory as text: the reason, its arithmetic, and the map, a row a segment, a letter an owner, dashes for holes.

    7f2a10000000   20.0 MiB  75 %  TTTTTTTTTTTTTTTTTT-----TTTTttttttt------
"""

from collections import Counter
from itertools import groupby
from string import ascii_uppercase
from textwrap import wrap
from typing import Dict, List, Optional, Tuple

from jmassif.analysis.device_memory import Layout, Segment
from jmassif.analysis.oom import FRAGMENTATION, Incident, Situation
from jmassif.analysis.summary import Report
from jmassif.attribution.names import Names
from jmassif.model.records import LiveBytesByAccount
from jmassif.model.run import Profile
from jmassif.render.layout import PAGE, Column, Lines, Table, cut, heading, paragraph
from jmassif.render.summary import action
from jmassif.render.view import View
from jmassif.units import count, moment, percent, printable, size


# ---- allocations that failed: the verdict, its arithmetic, actions, and the stack --------------

_SHOWN = 3
_FRAMES_SHOWN = 8
_INNERMOST_SHOWN = 2  # where there are Python frames as well
_SEGMENTS_SHOWN = 8
_OWNERS_SHOWN = 5
_LINES_SHOWN = 10
_FEW_HOLES = 0.1  # share of the reserved memory

_ARITHMETIC = Table(Column("", 32, gap=2, align="<"), Column("", 10), Column("", gap=2))


def _full(s: Situation, is_discrete: bool) -> str:
    is_of_gpu = s.side == "device" and is_discrete
    outside = (
        "other programs and the driver" if is_of_gpu else "other programs, the system, the driver and the profiler"
    )
    free = f"{size(s.free or 0)} was free" if s.granted is None else f"The driver reported {size(s.reported or 0)} free"
    if s.gathered:
        free = f"{size(s.gathered)} was allocated in chunks; then {free}"
    if s.cached + s.pool_unused:
        free += f" and {size(s.cached + s.pool_unused)} in caches"
    missing = f"{size(s.missing)} was missing" if s.missing is not None else "the request has no size"
    own = f"This program holds {size(s.own)}" if s.own is not None else ""
    others = f"; page cache: {size(s.page_cache)}" if s.page_cache else ""
    others += f"; {outside}: {size(s.others)}" if s.others is not None else ""
    return f"{free}; {missing}. {own}{others}."


def _nearly_full(s: Situation) -> str:
    """Few holes that would have held the block, but not another one, are not what the program suffers from."""
    asked = (s.asked or 0) - s.gathered
    spare = (s.free or 0) + s.cached + s.pool_unused - asked
    if spare >= asked or s.cached > s.reserved * _FEW_HOLES:
        return ""
    return f" In one piece they would have held it and left {size(spare)}: the memory was nearly full."


def _nvmap(s: Situation) -> str:
    """NvMap's own limit, which is below the request."""
    cma = f" minus {size(s.cma_free)} of free CMA" if s.cma_free else ""
    found = f"NvMap grants at most {size(s.granted or 0)} here: {size(s.available or 0)} available{cma}"
    return f"{found}; {size((s.asked or 0) - s.gathered)} were requested."


def reason(incident: Incident, is_discrete: bool) -> str:
    """The verdict in a sentence or two, with its numbers."""
    s, verdict = incident.situation, incident.verdict
    free = "" if s.free is None else size(s.free)
    if incident.outcome == "retried" and s.side == "device":
        return f"Retry succeeded after {size(incident.freed)} was freed." if incident.freed else "Retry succeeded."
    if s.granted is not None and verdict == "limit":
        return _nvmap(s)
    if verdict == "too large":
        where = "machine" if s.side == "host" else "GPU" if is_discrete else "board"
        return f"{size(s.asked or 0)} is more than the {where} has ({size(s.total or 0)})."
    if verdict == "limit" and s.side == "host":
        known = f"{free} of memory and swap was available, but the" if free else "The"
        return f"{known} address space is limited to {size(s.limit or 0)} (ulimit -v), the profiler included."
    if verdict == "limit":
        known = f" The driver had {free} free." if free else ""
        return f"The framework keeps to a limit of its own (a fraction of the memory).{known}"
    if verdict == "refused" and s.side == "host":
        return f"{free} of memory and swap was available: a limit, or the system's rules for overcommitment."
    if verdict == "refused":
        return f"The driver reported {free} free and refused: no pages for it, or a limit."
    if verdict == "unknown" or s.asked is None:
        return f"The size of the request is unknown; {free} was free." if free else "Free memory is not on record."
    if verdict == "cache":
        return f"{size(s.returnable + s.pool_unused)} of the cache was empty and could be returned; {free or 'unknown'} was free."
    if verdict == FRAGMENTATION:
        holes = f"{count(s.holes, 'hole')}, the largest {size(s.largest_hole)}"
        besides = f", and {free} outside" if free else ""
        kept = f"{size(s.cached)} of the reserved memory was free{besides}, but in {holes}."
        return f"{kept} {size(s.returnable)} of it can be returned.{_nearly_full(s)}"
    return f"{_nvmap(s)} {_full(s, is_discrete)}" if s.granted is not None else _full(s, is_discrete)


def arithmetic(s: Situation) -> List[Tuple[str, int, str]]:
    """The figures behind a verdict: label, indented as a part of the one above, bytes, and a remark."""
    where = "on the device" if s.side == "device" else "in memory and swap"
    of_total = f"of {size(s.total)}" if s.total else ""
    rows: List[Tuple[str, Optional[int], str]] = [("requested", s.asked, ""), (f"free {where}", s.reported, of_total)]
    if s.granted is not None:
        rows.insert(1, ("NvMap grants at most", s.granted, ""))
    if s.reserved:
        rows.append(("reserved in segments", s.reserved, ""))
        rows.append(("  free in them", s.cached, f"in {count(s.holes, 'hole')}" if s.holes else ""))
        rows.append(("    largest hole", s.largest_hole, ""))
        rows.append(("    in empty segments", s.returnable, ""))
    if s.gathered:
        rows.insert(1, ("allocated already, in chunks", s.gathered, ""))
    if s.pool_unused:
        rows.append(("unused in stream-ordered pools", s.pool_unused, ""))
    if s.missing and s.missing != s.asked:
        rows.append(("missing", s.missing, ""))
    if s.page_cache:
        rows.append(("page cache", s.page_cache, "the kernel can drop it"))
    rows += [("this program", s.own, ""), ("everything else", s.others, "")]
    return [(label, n_bytes, remark) for label, n_bytes, remark in rows if n_bytes is not None]


def _failed(incident: Incident) -> str:
    event, asked = incident.tries[0], incident.situation.asked
    of = size(asked) if asked else "an unknown size"
    if not event.error:
        return f"The framework gave up on {of}"
    times = {1: "", 2: " twice"}.get(len(incident.tries), f" {len(incident.tries)} times")
    if incident.situation.gathered and event.bytes:
        of = f"{size(event.bytes)}, of {of} in all,"
    return f"{printable(incident.call)} of {of} failed{times} (error {event.error})"


def _outcome(profile: Profile, incident: Incident) -> str:
    if incident.outcome == "retried":
        return ""
    freed = f" {size(incident.freed)} was freed in between, too little." if incident.freed else ""
    if incident.outcome == "raised":
        return f"{freed} The framework reported that to the program."
    is_last = incident.last.id == max(profile.exhaustions)
    died = is_last and (profile.end is None or profile.end.reason == "signal")
    return f"{freed} The program has no regular end on record." if died else freed


def sentence(report: Report, incident: Incident) -> str:
    """The request that failed, why, and what became of it."""
    what, why = _failed(incident), reason(incident, report.run.is_discrete)
    return f"{what}. {why}{_outcome(report.profile, incident)}"


def _stack(profile: Profile, names: Names, account: int) -> Lines:
    """The innermost frames, and those of Python: between them lies what every call of a framework passes through."""
    stack = list(profile.stack(profile.accounts[account].node))
    python = [place for place, frame in enumerate(stack) if frame in profile.python_frames][:_FRAMES_SHOWN]
    shown = {*range(_INNERMOST_SHOWN if python else _FRAMES_SHOWN), *python}
    lines: Lines = []
    for is_shown, frames in groupby(enumerate(stack), lambda row: row[0] in shown):
        texts = [names.frame(frame) for _, frame in frames]
        if not is_shown:
            texts = [f"… {count(len(texts), 'frame')}"]
        lines += [f"    {cut(text, PAGE - 4)}" for text in texts]
    return lines


def _section(report: Report, view: View, number: int, incident: Incident) -> Lines:
    profile, s, last = report.profile, incident.situation, incident.last
    nth = "" if len(report.out_of_memory) == 1 else f" (failed allocation {number})"
    lines = heading(f"Out of memory at {moment(last.time, profile.time_unit)}{nth}: {incident.verdict}")
    lines += paragraph(sentence(report, incident)) + [""]
    lines += [_ARITHMETIC.row(label, size(n_bytes), remark) for label, n_bytes, remark in arithmetic(s)]
    owners = sorted(s.by_owner.items(), key=lambda item: (-item[1], item[0]))
    held = ", ".join(f"{owner} {size(n_bytes)}" for owner, n_bytes in owners[:_OWNERS_SHOWN] if n_bytes)
    if held and last.snapshot is not None:
        more = f" (all of it: --snapshot={profile.snapshots[last.snapshot].id})"
        lines += [""] + paragraph(f"Largest owners: {held}{', …' if len(owners) > _OWNERS_SHOWN else ''}{more}.")
    if incident.hints and not (view.is_brief and incident is report.failure):  # the first screen has these
        lines += ["", "Actions that these figures prove:"]
        for hint in incident.hints:
            text = action(hint, report.run.is_pytorch, incident)
            lines += wrap(text, PAGE, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
    if incident.verdict == FRAGMENTATION:
        lines += [""] + _map(profile, report.device_layout(last.position), {}, view.most(_SEGMENTS_SHOWN))
        lines.append(f"All segments: --segments={number}")
    asked_at = f"Requested at {incident.line}:" if incident.line else "Requested at:"
    return lines + ["", asked_at] + _stack(profile, report.names, last.account)


def out_of_memory(report: Report, view: View) -> Lines:
    """A section for each of the last failures that no retry resolved; a line for each of the others."""
    numbered = list(enumerate(report.out_of_memory, 1))
    if not numbered:
        return []
    failed = [row for row in numbered if not row[1].is_resolved][-1 if view.is_brief else -_SHOWN :]
    lines = [line for row in failed for line in _section(report, view, *row)]
    others = [row for row in numbered if row not in failed]
    n_counted = report.profile.counters.get("out-of-memory", 0) - sum(len(each.tries) for _, each in numbered)
    if not others and n_counted <= 0:
        return lines
    lines += heading("Earlier failed allocations (recovered)" if failed else "Failed allocations (recovered)")
    most = 1 if view.is_brief else _LINES_SHOWN
    for number, incident in others[-most:]:
        when = moment(incident.last.time, report.run.time_unit)
        text = f"({number}) at {when}: {sentence(report, incident)}"
        lines += wrap(text, PAGE, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    if len(others) > most:
        lines.append(f"and {len(others) - most:,} before these{view.hint}")
    if n_counted > 0:
        lines.append(f"and {count(n_counted, 'more call')} that the trace only counts")
    return lines


# ---- segments --------------------------------------------------------------------------------

HOLE = "-"
_BAR = 46
_ROWS_SHOWN = 40

_MAP = Table(Column("", 12), Column("", 9, gap=1), Column("", 7, gap=1), Column("", gap=2))


def _owners(profile: Profile, segment: Segment, begin: int, end: int) -> "Counter[str]":
    """Bytes between two offsets by the owner of the blocks there."""
    held: "Counter[str]" = Counter()
    for part in segment.parts:
        overlap = min(end, part.offset + part.bytes) - max(begin, part.offset)
        if overlap > 0 and part.account:
            held[profile.accounts.owner(part.account)] += overlap
    return held


def _letters(profile: Profile, layout: Layout) -> Dict[str, str]:
    """A letter by owner, the one with most first: a capital letter, of the owner's name if that is left."""
    held: "Counter[str]" = Counter()
    for segment in layout.segments:
        held.update(_owners(profile, segment, 0, segment.bytes))
    found: Dict[str, str] = {}
    for owner in sorted(held, key=lambda name: (-held[name], name)):
        wanted = [c for c in owner.upper() if c in ascii_uppercase] + list(ascii_uppercase)
        found[owner] = next((c for c in wanted if c not in found.values()), "#")
    return found


def _cell(profile: Profile, segment: Segment, begin: int, end: int, letter_of: Dict[str, str]) -> str:
    """The letter of the owner with most of these bytes; small where a part is free."""
    held = _owners(profile, segment, begin, end)
    if not held:
        return HOLE
    letter = letter_of[max(held, key=lambda owner: (held[owner], owner))]
    return letter if sum(held.values()) == end - begin else letter.lower()


def _bar(profile: Profile, segment: Segment, widest: int, letter_of: Dict[str, str]) -> str:
    n_cells = max(1, segment.bytes * _BAR // widest)
    edges = [segment.bytes * cell // n_cells for cell in range(n_cells + 1)]
    return "".join(_cell(profile, segment, begin, end, letter_of) for begin, end in zip(edges, edges[1:]))


def _sum(layout: Layout) -> str:
    pieces = layout.fragmentation
    n = len(layout.reserving)
    text = f"{count(n, 'segment')} of {size(pieces.reserved)}: {size(pieces.reserved - pieces.free)} used"
    if not pieces.free:
        return f"{text}, no holes."
    holes = f"{size(pieces.free)} free in {count(pieces.holes, 'hole')}, the largest {size(pieces.largest_hole)}"
    return f"{text}, {holes}; fragmentation {percent(round(1000 * pieces.share), 1000)}."


def _map(profile: Profile, layout: Layout, composition: LiveBytesByAccount, limit: int = _ROWS_SHOWN) -> Lines:
    """Reserved and free bytes, the map, and its legend. `composition` is the ledger then, empty if it is not known."""
    if not layout.segments:
        held = f"{size(layout.by_handle)} in arrays and memory without addresses" if layout.by_handle else "nothing"
        return [f"No map: of device memory, this program had {held} then."]
    alone = "No allocator has reserved segments: each block is by itself."
    lines = paragraph(_sum(layout) if layout.reserving else alone)
    if composition and not layout.is_placed(profile.accounts, composition):
        unknown = "Where in the segments blocks lie is not known"
        lines += paragraph(f"{unknown}: PyTorch reports their addresses from 1.10 on.")
    letter_of = _letters(profile, layout)
    shown = sorted(layout.segments, key=lambda segment: (-segment.bytes, segment.address))[:limit]
    widest = shown[0].bytes
    lines.append("")
    for segment in sorted(shown, key=lambda segment: segment.address):
        used = percent(segment.bytes - segment.free, segment.bytes).replace(".0", "") if segment.is_segment else ""
        bar = _bar(profile, segment, widest, letter_of)
        lines.append(_MAP.row(f"{segment.address:x}", size(segment.bytes), used, bar).rstrip())
    if len(layout.segments) > len(shown):
        left_out = sum(segment.bytes for segment in layout.segments) - sum(segment.bytes for segment in shown)
        lines.append(f"and {count(len(layout.segments) - len(shown), 'smaller one')}, {size(left_out)} in all")
    if layout.by_handle:
        lines.append(f"and {size(layout.by_handle)} in arrays and memory without addresses")
    legend = [f"{letter} {owner}" for owner, letter in letter_of.items()]
    has_holes = any(segment.free for segment in layout.segments)
    legend += [f"{HOLE} free", "small letters: partly free"] if has_holes else []
    return lines + [""] + paragraph("   ".join(legend))


def write_segments(report: Report, view: View) -> Lines:
    """The map at the moment that --snapshot names, or at the failed allocation with this number. Raises SelectionError."""
    chosen, position = report.device_moment(view.segments or "", view.selector)
    lines = heading(f"Device memory, at {chosen.name} ({moment(chosen.time, report.run.time_unit)})")
    return lines + _map(report.profile, report.device_layout(position), chosen.composition)
