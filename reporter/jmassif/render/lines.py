# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory by line, by thread, by size of block, and by call stack."""

from functools import partial
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from jmassif.analysis.aggregate import NamedUsage, by_name
from jmassif.analysis.calltree import ROOT, BottomUp, Shape
from jmassif.analysis.leaks import Growth, find_growth
from jmassif.analysis.lines import LineRow, LineUsage, line_rows, places, spaces_of, total, with_totals
from jmassif.analysis.moments import Moment, select
from jmassif.analysis.sizes import Class, Sizes, class_of, least_of, ranked, sizes_by
from jmassif.analysis.summary import Report
from jmassif.attribution.names import Names
from jmassif.attribution.views import LINE_VIEWS, NO_THREAD, Threads, charges, naming, totals
from jmassif.model.records import LiveBytesByAccount, side_of
from jmassif.model.run import Profile
from jmassif.model.run_info import used_sides
from jmassif.render.layout import PYTHON, SHARE, SUM, Column, Extent, Line, Lines, Table, heading, paragraph
from jmassif.render.sources import Sources, sources_of
from jmassif.render.summary import growth_text, where_arenas_are, whole_percent
from jmassif.render.view import View
from jmassif.units import count, growth, moment, percent, size


# ---- lines ----
# The table of Python lines, functions or modules: what each held at the peak, and what it has left behind.
#
# Sorted by what a row held at the peak or, where a moment is asked for, by its growth up to that: --snapshot=end has on
# top what the program never let go of.

_MAX_LABEL = 44


class _Cell(NamedTuple):
    """A column of a table by line."""

    head: str
    text: Callable[[LineRow], str]


def _cells(profile: Profile, sum_: LineRow) -> List[_Cell]:
    spaces, sides = spaces_of(profile), used_sides(profile)

    def held(space: str, row: LineRow) -> str:
        return size(row.held.on(space)) if row.held.on(space) or row.held.blocks_on(space) else "-"

    def share(space: str, row: LineRow) -> str:
        return percent(row.held.on(space), sum_.held.on(space))

    def each(head: str, text: Callable[[str, LineRow], str]) -> List[_Cell]:
        return [_Cell(f"{space} {head}" if len(spaces) > 1 else head, partial(text, space)) for space in spaces]

    cells: List[_Cell] = []
    for side in sides:
        cells.append(_Cell(f"self {side}" if len(sides) > 1 else "self", partial(held, side)))
        if side == sides[-1] or len(spaces) > 1:
            cells.append(_Cell("share", partial(share, side if len(spaces) > 1 else spaces[0])))
    cells += each("total", lambda space, row: size(row.total.on(space)))
    cells.append(_Cell("blocks", lambda row: f"{row.held.blocks:,}"))
    cells += each("growth", lambda space, row: growth(row.growth.on(space)))
    return cells + each("allocated", lambda space, row: size(row.allocated.on(space)))


def _explanation(profile: Profile, view: View, peak: Moment, chosen: Moment) -> str:
    noun = LINE_VIEWS[view.by]
    unit = profile.time_unit
    if view.fold == "none":
        what = (
            f"Self: allocated by each Python {noun} itself, internal ones too; total: with everything that it called."
        )
    else:
        what = (
            f"Self: caused by each {noun} of your code, also in packages that it called; total: with all {noun}s of your code"
            " that it called."
        )
    order = (
        "Sorted by growth, lines that still grew at the end first."
        if view.selector
        else "Sorted by self; --snapshot=end sorts by growth."
    )
    texts = [
        what,
        f"Both at {peak.name} ({moment(peak.time, unit)}); growth: the part of self that is left at {chosen.name}",
        f"({moment(chosen.time, unit)});",
        f"allocated: in the whole run. {order}",
    ]
    if not any(frame[0] == "p" for frame in profile.frames.values()):
        texts.append("This trace has no Python frames: not a Python program, or recorded with --python=no.")
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


def _table_of(
    profile: Profile, cells: Sequence[_Cell], shown: Sequence[LineRow], sources: Optional[Sources], sum_: LineRow
) -> Lines:
    """A row a place, with its text unless `sources` is None."""
    width = min(_MAX_LABEL, max(len(row.charged.label) for row in shown))
    columns = (Column(cell.head, max(10, len(cell.head) + 1)) for cell in cells)
    table = Table(Column("", width, align="<"), *columns, Column("", gap=2))
    lines = [table.head.rstrip()]
    for row in shown:
        source = ""
        if row.charged.frame and sources is not None:
            frame = profile.frame(row.charged.frame)
            source = sources.line(frame.file, frame.line)
        text = table.row(row.charged.label, *(cell.text(row) for cell in cells), source).rstrip()
        lines.append(Line((text, SUM)) if row is sum_ else text)
    return lines


_LINES_SHOWN = 5
_LEAST_SHARE = 0.01
_WIDTH = 100
_MAX_PLACE = 44


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[:width - 1]}…"


def lines_section(report: Report, sources: Optional[Sources]) -> Lines:
    """The largest lines with their tensors, cache and total; empty where no memory has a stack."""
    space, whole = report.wholes[0].space, report.wholes[0].bytes
    shown = [row for row in report.lines[:_LINES_SHOWN] if row.usage.on(space) >= _LEAST_SHARE * whole]
    if not shown:
        return []
    figures: Dict[str, Callable[[LineUsage], int]] = {
        "tensors": lambda row: row.tensors,
        "cache": lambda row: row.cache,
    }
    figures = {head: of for head, of in figures.items() if any(map(of, shown))}
    if len(report.wholes) > 1:
        figures["host"] = lambda row: row.usage.host_bytes
    figures[space or "total"] = lambda row: row.usage.on(space)
    room = _WIDTH - 10 * len(figures) - 7
    width = min(_MAX_PLACE, max(len(row.label) for row in shown))
    texts = [sources.line(row.path, row.number) if sources and row.path else "" for row in shown]
    longest = min(max(map(len, texts)), room - width - 2)
    has_source = longest > 0
    columns = [Column("", width if has_source else max(width, 20), align="<")]
    columns += [Column("", longest, gap=2, align="<")] if has_source else []
    table = Table(*columns, *(Column(head, 9, gap=1) for head in figures), Column("", 7))
    lines = heading(f"Largest lines, at {report.moment.name}") + [table.head.rstrip()]
    for row, text in zip(shown, texts):
        cells = [cut(row.label, width)] + ([cut(text, longest)] if has_source else [])
        cells += [size(of(row)) if of(row) else "-" for of in figures.values()]
        lines.append(table.row(*cells, whole_percent(row.usage.on(space), whole)).rstrip())
    return lines


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
        + (paragraph(growth_text(grown, profile.time_unit)) if grown.lines and profile.kept is None else [])
        + [""]
    )
    sources = sources_of(profile, view.source)
    lines += _table_of(profile, _cells(profile, sum_), shown, sources, sum_)
    return lines + (_changed(profile, names, shown, sources) if sources else [])


# ---- threads ----

# The meaning of NO_THREAD.
_OF_NONE = "what was mapped before the program began, and what malloc's blocks take beside what was asked for"


def threads_section(profile: Profile, names: Names, chosen: Moment, extent: Extent, is_together: bool) -> Lines:
    """A row a name, or unless `is_together` a row a thread. Empty without threads in the trace, or if one alone did everything."""
    if not profile.has_threads:
        return []
    threads = Threads(profile)
    rows = by_name(profile, chosen.composition, naming(profile, names, "thread", is_together))
    if not rows:
        return []
    sides = used_sides(profile)
    total = sum(row.held.bytes for row in rows)
    shown = rows[: extent.rows] if len(rows) > extent.rows + 1 else rows
    width = max(len(row.name) for row in shown) + 1
    table = Table(
        Column("", max(width, 20), align="<"),
        Column("threads", 8),
        *(column for side in sides for column in (Column(side, 10), Column("blocks", 11))),
        Column("bytes" if len(sides) == 1 else "total (bytes)", 17),
        Column("share", 9),
        Column("allocated in all", 18),
    )

    def line(row: NamedUsage) -> str:
        many = threads.sharing[row.name] if is_together else 0
        cells = [row.name, f"{many:,}" if many > 1 else ""]
        for side in sides:
            n_bytes, blocks = row.held.on(side), row.held.blocks_on(side)
            cells += [size(n_bytes) if n_bytes else "-", f"{blocks:,}" if blocks else ""]
        figures = f"{row.held.bytes:,}", percent(row.held.bytes, total), f"{row.allocated.bytes:,}"
        return table.row(*cells, *figures).rstrip()

    lines = heading(f"By thread, at {chosen.name}") + [table.head] + [line(row) for row in shown]
    if len(rows) > len(shown):
        rest = sum(row.held.bytes for row in rows[len(shown) :])
        lines.append(f"and {len(rows) - len(shown):,} more that hold {size(rest)}{extent.hint}")
    if any(row.name == NO_THREAD for row in shown):
        lines += paragraph(f"{NO_THREAD}: {_OF_NONE}.")
    return lines


# ---- sizes ----
# A histogram of the sizes of blocks, and a table by owner.

_BAR = 24
_MAX_OWNER = 40

# The columns of a table by owner or line: up to which size.
_STEPS: Tuple[Tuple[str, int], ...] = (
    ("< 64 B", 63),
    ("< 512 B", 511),
    ("< 4 KiB", (4 << 10) - 1),
    ("< 32 KiB", (32 << 10) - 1),
    ("< 256 KiB", (256 << 10) - 1),
    ("< 2 MiB", (2 << 20) - 1),
    ("< 16 MiB", (16 << 20) - 1),
)


def _label(class_: Class) -> str:
    least = least_of(class_)
    return "0 B" if not class_ else "1 B" if class_ == 1 else f"{size(least)} to {size(2 * least)}"


_HISTOGRAM = Table(
    Column("", 22, align="<"),
    Column("held", 10),
    Column("bytes", 11),
    Column("", gap=2, width=_BAR, align="<"),
    Column("in all", 12),
    Column("bytes", 11),
    Column("", gap=2),
)


def _histogram(held: Sizes, asked: Sizes) -> Lines:
    most_held, most_asked = max(held.blocks.values(), default=1), max(asked.blocks.values(), default=1)

    def bar(n: int, most: int) -> str:
        return "#" * max(1, round(_BAR * n / most)) if n else ""

    lines = [_HISTOGRAM.head.rstrip()]
    classes = range(max(asked.blocks.keys() | held.blocks.keys(), default=0) + 1)
    first = min(asked.blocks.keys() | held.blocks.keys(), default=0)
    for class_ in classes[first:]:
        now, ever = held.blocks[class_], asked.blocks[class_]
        cells = [_label(class_), f"{now:,}", size(held.bytes[class_]), bar(now, most_held)]
        cells += [f"{ever:,}", size(asked.bytes[class_]), bar(ever, most_asked)]
        lines.append(_HISTOGRAM.row(*cells).rstrip())
    cells = ["all", f"{held.n_blocks:,}", size(held.n_bytes), "", f"{asked.n_blocks:,}", size(asked.n_bytes), ""]
    return lines + [Line((_HISTOGRAM.row(*cells).rstrip(), SUM))]


def _counts(of: Sizes) -> List[str]:
    """Blocks by step, as the columns of a table."""
    found = [0] * (len(_STEPS) + 1)
    for class_, blocks in of.blocks.items():
        step = next((i for i, (_, most) in enumerate(_STEPS) if class_ <= class_of(most)), len(_STEPS))
        found[step] += blocks
    return [f"{n:,}" if n else "-" for n in found]


def _matrix(rows: Dict[str, Sizes], sum_: Sizes) -> Lines:
    shown = {name: sizes for name, sizes in rows.items() if sizes.n_blocks}
    width = min(_MAX_OWNER, max([12] + [len(name) + 1 for name in shown]))
    columns = [Column(head, 11) for head, _ in _STEPS] + [Column("larger", 9), Column("blocks", 12), Column("mean", 11)]
    table = Table(Column("", width, align="<"), *columns)

    def line(name: str, sizes: Sizes) -> str:
        return table.row(name, *_counts(sizes), f"{sizes.n_blocks:,}", size(sizes.mean))

    return [table.head, *(line(*row) for row in shown.items()), Line((line("all", sum_), SUM))]


def _how_exact(profile: Profile, held: Sizes, asked: Sizes) -> str:
    if not held.by_mean and not asked.by_mean:
        return "The size of each block is on record."
    text = (
        f"Of {count(held.n_blocks, 'block')} held then {percent(held.by_mean, held.n_blocks)}, and of {asked.n_blocks:,} in all"
        f" {percent(asked.by_mean, asked.n_blocks)} count with the mean size of their place (a stack): they have no records."
    )
    return text + ("" if profile.manifest.get("option.large") == "0" else " Recorded with --large=0 all have.")


def write_sizes(profile: Profile, names: Names, view: View) -> Lines:
    """The report's lines below its head. Raises moments.SelectionError."""
    at: Moment = select(profile, view.selector or "peak")
    by = sizes_by(profile, names, at)
    order = ranked(by.owners)
    lines = heading(f"Sizes of blocks: at {at.name} ({moment(at.time, profile.time_unit)}), and in the whole run")
    lines += paragraph(_how_exact(profile, by.all.held, by.all.asked)) + [""] + _histogram(by.all.held, by.all.asked)
    tables = [
        (f"at {at.name}", {name: by.owners[name].held for name in order}, by.all.held),
        ("in the whole run", {name: by.owners[name].asked for name in order}, by.all.asked),
    ]
    for what, rows, sum_ in tables:
        if sum_.n_blocks:
            lines += heading(f"Blocks by size and owner, {what}") + _matrix(rows, sum_)
    return lines


# ---- stacks ----
# Call stacks as trees, indented by how deep they branch.


def _tags(tree: BottomUp, node: int, parent: int) -> str:
    """Kind and owner of all memory in a branch, where the branch around it is of several."""
    tags = []
    for of in (tree.kind, tree.owner):
        name = of(node)
        if name and name != tree.text(node) and (parent < 0 or not of(parent)):
            tags.append(name)
    return f" of {', '.join(tags)}" if tags else ""


def _tree_lines(tree: BottomUp, n_levels: int, threshold: float) -> Iterator[str]:
    """A paragraph a branch, indented by how deep it branches; the first `n_levels` levels are no frames.

    Frames that pass all their memory on stand below each other without numbers of their own.
    """
    (n_bytes, n_blocks), children = tree.totals(), tree.children()
    pending: List[Tuple[int, int, str]] = [(ROOT, 0, "")]
    while pending:
        node, depth, indent = pending.pop()
        label = tree.text(node)
        share = percent(n_bytes[node], n_bytes[ROOT])
        head = Line(f"{indent}{' ' * (7 - len(share))}", (share, SHARE), f" {n_bytes[node]:,} B")
        head = Line(head, f" in {count(n_blocks[node], 'block')}" if n_blocks[node] else "")
        if node in tree.places:
            yield Line(head, f", in {count(tree.places[node], 'place')} below {threshold:g} %")
            yield ""
            continue
        tags = _tags(tree, node, tree.parent[node])
        if depth <= n_levels:
            yield Line(head, f"{tags}: {label}" if label else tags)
        else:
            yield Line(head, tags)
            yield Line(f"{indent}{' ' * 8}", label)
        while depth > n_levels and len(children[node]) == 1 and children[node][0] not in tree.places:
            node = children[node][0]
            yield Line(f"{indent}{' ' * 8}", tree.text(node))
        yield ""
        inner = indent + ("  " if depth else "")
        pending.extend((child, depth + 1, inner) for child in reversed(children[node]))


def trees(profile: Profile, names: Names, chosen: Moment, view: View) -> Lines:
    def side(account: int) -> Optional[str]:
        return side_of(profile.accounts[account].kind)

    def part(wanted: Tuple[str, ...]) -> LiveBytesByAccount:
        return {a: held for a, held in chosen.composition.items() if side(a) in wanted}

    def label(frame: int) -> str:
        text = names.frame(frame)
        fields = profile.frame(frame)
        return Line((text, PYTHON)) if fields.type == "p" and fields.file.endswith(".py") else text

    sides: List[Tuple[str, ...]] = [("device",), ("host",)] if profile.is_discrete else [("host", "device")]
    is_folded = view.fold == "internal"
    levels = (
        [] if view.by == "stack" else [naming(profile, names, view.by, view.fold != "none")]
    )  # what stands above the stacks
    shape = Shape(levels, label, names.folding, view.threshold, is_folded)
    lines: Lines = []
    for wanted in sides:
        composition = part(wanted)
        if not composition:
            continue
        what = f"{wanted[0]} memory" if len(wanted) == 1 else "all memory"
        by = f"by {view.by}, then call stack" if levels else "by call stack"
        folded = ", internal frames folded" if is_folded else ""
        lines += heading(f"{what.capitalize()} {by}, at {chosen.name}{folded}")
        tree = BottomUp(profile, composition, shape, "")
        lines += list(_tree_lines(tree, len(levels), view.threshold))[:-1]
    return lines
