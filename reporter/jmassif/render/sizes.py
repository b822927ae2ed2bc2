# SPDX-License-Identifier: GPL-2.0-or-later
"""The report on sizes of blocks: a histogram, and a table by owner."""

from typing import Callable, Dict, List, NamedTuple, Tuple

from jmassif.analysis.moments import Moment, select
from jmassif.analysis.sizes import Class, Sizes, account_sizes, by_name, class_of, least_of, total
from jmassif.attribution.names import Names
from jmassif.model.run import Profile
from jmassif.render.layout import SUM, Column, Line, Lines, Table, heading, paragraph
from jmassif.render.view import View
from jmassif.units import count, moment, percent, size


_BAR = 24
_ROWS = 12
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


class _Row(NamedTuple):
    name: str
    sizes: Sizes


def _ranked(sizes: Dict[int, Sizes], name_of: Callable[[int], str], most: int) -> List[_Row]:
    rows = [_Row(name, of) for name, of in by_name(sizes, name_of).items()]
    rows.sort(key=lambda row: (-row.sizes.n_blocks, row.name))
    if len(rows) > most + 1:
        rest = _Row(f"{len(rows) - most:,} more", Sizes())
        for row in rows[most:]:
            rest.sizes.join(row.sizes)
        rows = rows[:most] + [rest]
    return rows


def _matrix(rows: List[_Row], sum_: Sizes) -> Lines:
    width = min(_MAX_LABEL, max([12] + [len(row.name) + 1 for row in rows]))
    columns = [Column(head, 11) for head, _ in _STEPS] + [Column("larger", 9), Column("blocks", 12), Column("mean", 11)]
    table = Table(Column("", width, align="<"), *columns)

    def line(row: _Row) -> str:
        return table.row(row.name, *_counts(row.sizes), f"{row.sizes.n_blocks:,}", size(row.sizes.mean))

    return [table.head] + [line(row) for row in rows] + [Line((line(_Row("all", sum_)), SUM))]


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
    found = account_sizes(profile, at)
    held, asked = total(found.held), total(found.asked)
    accounts = profile.accounts
    most = _ROWS if view.is_brief else 1 << 30
    when = f"{at.name} ({moment(at.time, profile.time_unit)})"

    lines = heading(f"Sizes of blocks: held at {when}, and in the whole run")
    lines += paragraph(_how_exact(profile, held, asked)) + [""] + _histogram(held, asked)
    for what, sizes, sum_ in ((f"held at {at.name}", found.held, held), ("in the whole run", found.asked, asked)):
        if sum_.n_blocks:
            ranked = _ranked(sizes, lambda account: accounts[account].owner, most)
            lines += heading(f"Blocks by size and owner, {what}") + _matrix(ranked, sum_)
    return lines
