# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of Python lines, functions or modules: what each held at the peak, and what it has left behind.

Sorted by what a row held at the peak or, where a moment is asked for, by its growth up to that: --snapshot=end has on
top what the program never let go of.
"""

from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Set

from jmassif.model.profile import Profile
from jmassif.questions.about import used_sides, where_arenas_are
from jmassif.questions.growth import Growth, find_growth
from jmassif.questions.leaks import growth_sentence
from jmassif.questions.lines import LineRow, Pick, both_sides, line_rows, on_side, places, pools_of, total, with_totals
from jmassif.questions.moments import Moment, select
from jmassif.units import count, growth, moment, percent, size
from jmassif.whose.lines import LINE_VIEWS, charges, totals
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

    def with_calls(pick: Pick) -> Callable[[LineRow], str]:
        return lambda row: size(pick(row).total)

    def grown(pick: Pick) -> Callable[[LineRow], str]:
        return lambda row: growth(pick(row).growth)

    def allocated(pick: Pick) -> Callable[[LineRow], str]:
        return lambda row: size(pick(row).allocated)

    figures = []
    for side in sides:
        figures.append(_Figure(f"own {side}" if len(sides) > 1 else "own", held(on_side(side))))
        if len(pools) > 1:
            figures.append(_Figure("share", share(on_side(side))))
    if len(pools) == 1:
        figures.append(_Figure("share", share(pools[0][1])))
    prefixes = [f"{name} " if len(pools) > 1 else "" for name, _ in pools]
    figures += [_Figure(f"{prefix}total", with_calls(pick)) for prefix, (_, pick) in zip(prefixes, pools)]
    figures.append(_Figure("blocks", lambda row: f"{both_sides(row).blocks:,}"))
    figures += [_Figure(f"{prefix}growth", grown(pick)) for prefix, (_, pick) in zip(prefixes, pools)]
    figures += [_Figure(f"{prefix}allocated", allocated(pick)) for prefix, (_, pick) in zip(prefixes, pools)]
    return figures


def _explanation(profile: Profile, view: View, peak: Moment, chosen: Moment) -> str:
    noun = LINE_VIEWS[view.by]
    unit = profile.time_unit
    if view.fold == "none":
        what = f"Own: what each Python {noun} allocated itself, internal ones too; total: with all that it called."
    else:
        what = (
            f"Own: what each {noun} of the program's own caused, in packages that it called too; total: with all the {noun}s"
            " of the program's own that it called."
        )
    order = (
        "Sorted by growth, what still grew at the end first."
        if view.selector
        else "Sorted by own; --snapshot=end sorts by growth."
    )
    texts = [
        what,
        f"Both at {peak.name} ({moment(peak.time, unit)}); growth: what is left of own at {chosen.name}",
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
    paths = {profile.frame(row.charged.frame).file: row.charged.frame for row in rows if row.charged.frame}

    def files(among: Set[str]) -> str:
        return ", ".join(sorted({names.file(frame) for path, frame in paths.items() if path in among}))

    lines: Lines = []
    if sources.changed & set(paths):
        lines += paragraph(f"Changed since the run, so the text may be another line's: {files(sources.changed)}.")
    if sources.left_out & set(paths):
        mend = "--source=DIRECTORY shows the text as it is now"
        lines += paragraph(f"Changed since the run, and left out: {files(sources.left_out)}; {mend}.")
    return lines


def _sources(profile: Profile, view: View) -> Optional[Sources]:
    """None: no text is to be shown."""
    return None if view.source is None else Sources(profile, view.source)


def _table_of(
    profile: Profile, figures: Sequence[_Figure], shown: Sequence[LineRow], sources: Optional[Sources], sum_: LineRow
) -> Lines:
    """A row a place, with its text unless `sources` is None."""
    width = min(_MAX_LABEL, max(len(row.charged.label) for row in shown))
    columns = (Column(figure.head, max(10, len(figure.head) + 1)) for figure in figures)
    table = Table(Column("", width, align="<"), *columns, Column("", gap=2))
    lines = [table.head.rstrip()]
    for row in shown:
        source = ""
        if row.charged.frame and sources is not None:
            frame = profile.frame(row.charged.frame)
            source = sources.line(frame.file, frame.line)
        text = table.row(row.charged.label, *(figure.text(row) for figure in figures), source).rstrip()
        lines.append(Line((text, SUM)) if row is sum_ else text)
    return lines


# What the summary of a report has of them.
_BRIEF_FIGURES = ("own", "share", "total")
_LEAST_SHARE = 0.01


def largest_lines(profile: Profile, names: Names, chosen: Moment, view: View, n: int) -> Lines:
    """The section on the lines that hold most by themselves at a moment; empty where none of Python does."""
    charged = charges(profile, names, "python-line", True)
    own = line_rows(profile, charged, chosen.composition, {})
    through = totals(profile, names, "python-line", True)
    rows = with_totals(profile, own, through, chosen.composition)
    sum_ = total(rows)
    worth = [row for row in rows if both_sides(row).held >= _LEAST_SHARE * both_sides(sum_).held]
    shown = places(profile, worth, sum_, 0.0, [], False)[0][:n]
    if not shown:
        return []
    figures = [figure for figure in _figures(profile, sum_) if any(word in figure.head for word in _BRIEF_FIGURES)]
    lines = heading(f"Lines that hold most, at {chosen.name}: --by=python-line")
    return lines + _table_of(profile, figures, shown, _sources(profile, view), sum_)


def write_lines(profile: Profile, names: Names, view: View) -> Lines:
    """The section for a view of LINE_VIEWS. Raises moments.SelectionError."""
    peak, chosen = select(profile, "peak"), select(profile, view.selector or "end")
    charged = charges(profile, names, view.by, view.fold != "none")
    through = totals(profile, names, view.by, view.fold != "none")
    own = line_rows(profile, charged, peak.composition, chosen.composition)
    rows = with_totals(profile, own, through, peak.composition)
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

    lines = heading(f"Memory by {view.by.replace('python-', 'Python ')}")
    lines += (
        paragraph(_explanation(profile, view, peak, chosen))
        + paragraph(where_arenas_are(profile))
        + (paragraph(growth_sentence(profile, grown)) if profile.kept is None else [])
        + [""]
    )
    sources = _sources(profile, view)
    lines += _table_of(profile, _figures(profile, sum_), shown, sources, sum_)
    return lines + (_changed(profile, names, shown, sources) if sources else [])
