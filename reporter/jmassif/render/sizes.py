# SPDX-License-Identifier: GPL-2.0-or-later
"""The report on sizes of blocks: a histogram, and a table by owner."""

from typing import Dict, List, Tuple

from jmassif.analysis.moments import Moment, select
from jmassif.analysis.sizes import Class, Sizes, class_of, least_of, ranked, sizes_by
from jmassif.attribution.names import Names
from jmassif.model.run import Profile
from jmassif.render.layout import SUM, Column, Line, Lines, Table, heading, paragraph
from jmassif.render.view import View
from jmassif.units import count, moment, percent, size


_BAR = 24
_MAX_LABEL = 40

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
    width = min(_MAX_LABEL, max([12] + [len(name) + 1 for name in shown]))
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
