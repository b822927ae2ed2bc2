# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of Python lines, functions or modules: what each held at the peak, and what it has left behind.

Sorted by what a row held at the peak or, where a moment is asked for, by its growth up to that: --snapshot=end has on
top what the program never let go of.
"""

from typing import Callable, Dict, List, NamedTuple, Sequence

from jmassif.model.profile import Profile
from jmassif.questions.about import used_sides, where_arenas_are
from jmassif.questions.growth import Growth, find_growth
from jmassif.questions.leaks import growth_sentence
from jmassif.questions.lines import LineRow, Pick, both_sides, line_rows, on_side, places, pools_of, total
from jmassif.questions.moments import Moment, select
from jmassif.units import count, growth, moment, percent, size
from jmassif.whose.lines import LINE_VIEWS, charges
from jmassif.whose.names import Names
from jmassif.writers.sources import Sources
from jmassif.writers.text.layout import Lines, heading, paragraph
from jmassif.writers.text.roles import SUM, Line
from jmassif.writers.text.table import Column, Table
from jmassif.writers.view import View

_MAX_LABEL = 44


class _Figure(NamedTuple):
    head: str
    text: Callable[[LineRow], str]


def _figures(profile: Profile, sum_: LineRow) -> List[_Figure]:
    pools = pools_of(profile)
    sides = used_sides(profile)

    def held(pick: Pick) -> Callable[[LineRow], str]:
        return lambda row: size(pick(row).held) if pick(row).held or pick(row).blocks else "-"

    def share(pick: Pick) -> Callable[[LineRow], str]:
        return lambda row: percent(pick(row).held, pick(sum_).held)

    def grown(pick: Pick) -> Callable[[LineRow], str]:
        return lambda row: growth(pick(row).growth)

    def allocated(pick: Pick) -> Callable[[LineRow], str]:
        return lambda row: size(pick(row).allocated)

    figures = []
    for side in sides:
        figures.append(_Figure(side if len(sides) > 1 else "held", held(on_side(side))))
        if len(pools) > 1:
            figures.append(_Figure("share", share(on_side(side))))
    if len(pools) == 1:
        figures.append(_Figure("share", share(pools[0][1])))
    figures.append(_Figure("blocks", lambda row: f"{both_sides(row).blocks:,}"))
    prefixes = [f"{name} " if len(pools) > 1 else "" for name, _ in pools]
    figures += [_Figure(f"{prefix}growth", grown(pick)) for prefix, (_, pick) in zip(prefixes, pools)]
    figures += [_Figure(f"{prefix}allocated", allocated(pick)) for prefix, (_, pick) in zip(prefixes, pools)]
    return figures


def _explanation(profile: Profile, view: View, peak: Moment, chosen: Moment) -> str:
    noun = LINE_VIEWS[view.by]
    unit = profile.time_unit
    if view.fold == "none":
        what = f"What each Python {noun} allocated itself, internal ones too."
    else:
        what = f"What each {noun} of the program's own caused, with all that it called in Python and in packages."
    order = (
        "Sorted by growth, what still grew at the end first."
        if view.selector
        else "Sorted by what was held; --snapshot=end sorts by growth."
    )
    texts = [
        what,
        f"Held: at {peak.name} ({moment(peak.time, unit)}); growth: what is left at {chosen.name}",
        f"({moment(chosen.time, unit)});",
        f"allocated: in the whole run. {order}",
    ]
    if not any(frame[0] == "p" for frame in profile.frames.values()):
        texts.append("This trace has no Python frames: it is of no Python program, or recorded with --python=no.")
    return " ".join(texts)


def _grown(profile: Profile, view: View, names: Names, grown: Growth) -> List[str]:
    """The labels of the places in `view` that still grew at the end, what grew most first."""
    charged = charges(profile, names, view.by, view.fold != "none")
    by_frame = {line.frame: rank for rank, line in reversed(list(enumerate(grown.lines)))}
    found: Dict[str, int] = {}
    for account in range(1, len(profile.accounts)):
        rank = by_frame.get(names.charged(account))
        to = charged(account)
        if rank is not None and to.is_place:
            found[to.label] = min(rank, found.get(to.label, rank))
    return sorted(found, key=lambda label: (found[label], label))


def _changed(profile: Profile, names: Names, rows: Sequence[LineRow], sources: Sources) -> Lines:
    frames = [row.charged.frame for row in rows if row.charged.frame]
    files = sorted({names.file(frame) for frame in frames if profile.frame(frame).file in sources.changed})
    if not files:
        return []
    return paragraph(f"Changed since the run, so the text may be another line's: {', '.join(files)}.")


def write_lines(profile: Profile, names: Names, view: View) -> Lines:
    """The section for a view of LINE_VIEWS. Raises moments.SelectionError."""
    peak, chosen = select(profile, "peak"), select(profile, view.selector or "end")
    charged = charges(profile, names, view.by, view.fold != "none")
    rows = line_rows(profile, charged, peak.composition, chosen.composition)
    sum_ = total(rows)
    grown = find_growth(profile, names)
    risen = _grown(profile, view, names, grown)
    shown, small = places(profile, rows, sum_, view.threshold, risen, bool(view.selector))
    if small:
        noun = LINE_VIEWS[view.by]
        label = f"{count(len(small), f'more {noun}')} below {view.threshold:g} %"
        shown.append(total(small)._replace(charged=sum_.charged._replace(label=label)))
    shown += sorted((row for row in rows if not row.charged.is_place), key=lambda row: row.charged.label)
    shown.append(sum_)

    figures = _figures(profile, sum_)
    width = min(_MAX_LABEL, max(len(row.charged.label) for row in shown))
    columns = (Column(figure.head, max(10, len(figure.head) + 1)) for figure in figures)
    table = Table(Column("", width, align="<"), *columns, Column("", gap=2))
    lines = heading(f"Memory by {view.by.replace('python-', 'Python ')}")
    lines += (
        paragraph(_explanation(profile, view, peak, chosen))
        + paragraph(where_arenas_are(profile))
        + paragraph(growth_sentence(profile, grown))
        + [""]
    )
    lines.append(table.head.rstrip())
    sources = Sources(profile)
    for row in shown:
        source = ""
        if row.charged.frame and view.with_source:
            frame = profile.frame(row.charged.frame)
            source = sources.line(frame.file, frame.line)
        text = table.row(row.charged.label, *(figure.text(row) for figure in figures), source).rstrip()
        lines.append(Line((text, SUM)) if row is sum_ else text)
    return lines + _changed(profile, names, shown, sources)
