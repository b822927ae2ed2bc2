# SPDX-License-Identifier: GPL-2.0-or-later
"""The data of a difference's page: its tables, and the call stacks of every column.

The stacks look like a run's (html/data.py), with a moment for each column, so that the page draws them with the same code.
Those of repeated runs are the typical run's, as medians of places do not add up.
"""

from typing import Iterator, List

from jmassif.analysis.compare import Column, Difference, Stacks
from jmassif.attribution.names import Names
from jmassif.attribution.packages import CORE, Folding, Internal
from jmassif.export.json import data
from jmassif.html.cells import NO_LINE, Columns, all_shown, cells, shown
from jmassif.html.data import RunData
from jmassif.html.first import sentence
from jmassif.html.head import About, ChosenMoments, Events, Figures, Identity, Moments, Packed, ReadyTable, TableCell
from jmassif.html.head import run_head
from jmassif.html.names import SharedNames, cells_data
from jmassif.html.page import fill_page, pack
from jmassif.model.run_info import label
from jmassif.render.diff_tables import figure_tables, ladder_table, notes, sentences
from jmassif.render.words import OWNERS


def write(difference: Difference, stacks: Stacks) -> Iterator[str]:
    """The runs must have been measured with `stacks`. Raises FormatError."""
    title = shown(" → ".join(column.label for column in difference.columns))
    packed = pack(
        [stacks_data(difference, stacks)], title, difference=[shown(column.label) for column in difference.columns]
    )
    yield from fill_page(
        title, "".join(f'<p class="statement">{sentence(text)}</p>' for text in _texts(difference)), packed
    )


def _texts(difference: Difference) -> List[str]:
    return [" ".join(map(shown, sentences(difference, finding))) for finding in difference.findings]


class _Names(Names):
    """Names that the runs have in common."""

    def __init__(self, stacks: Stacks) -> None:
        super().__init__(stacks)
        self._stacks = stacks
        self.folding = _Folding(stacks)

    def frame(self, frame: int) -> str:
        return self._stacks.labels[frame]

    def library(self, account: int) -> str:
        return self._stacks.libraries[account]

    def charged(self, account: int, is_folded: bool = True) -> int:
        return NO_LINE


class _Folding(Folding):
    def __init__(self, stacks: Stacks) -> None:
        super().__init__(stacks)
        self.internal = lambda frame: Internal(CORE, stacks.packages[frame])


def _runs(column: Column) -> str:
    return ", ".join(run.name if run.is_complete else f"{run.name} (truncated)" for run in column.runs)


def _sides(difference: Difference) -> Iterator[ReadyTable]:
    """The traces, and facts in which they differ or not."""
    columns = difference.columns
    heads = [("fact", ""), *((column.label, "long") for column in columns)]
    details = [fact for fact in difference.facts if fact.is_redundant or "." in fact.key]
    rows: List[List[List[TableCell]]] = [
        [[fact.label, *(value or "?" for value in fact.values)] for fact in facts]
        for facts in ([fact for fact in difference.facts if fact not in details], details)
    ]
    rows[0].insert(0, ["traces", *map(_runs, columns)])
    repeated = [f"{column.label}: {column.typical.name}" for column in columns if len(column.runs) > 1]
    said = notes(difference)
    if repeated:
        said.append(f"Call trees of repeated runs are of the median run ({'; '.join(repeated)}).")
    yield ReadyTable("sides", "Differences", " ".join(said), 40, heads, rows[0], [])
    if details:
        yield ReadyTable("sides", "Options, environment and packages", "", 10, heads, rows[1], [])
    first, *others = [run.facts for column in columns for run in column.runs]
    common: List[List[TableCell]] = [
        [label(key), value]
        for key, value in first.items()
        if value and "." not in key and all(facts.get(key, "") == value for facts in others)
    ]
    if common:
        yield ReadyTable("sides", "The same in all runs", "", 10, [("fact", ""), ("all", "long")], common, [])


def _tables(difference: Difference) -> Iterator[ReadyTable]:
    for sides in difference.ladders:
        title, labels, texts = ladder_table(difference, sides)
        columns = [("step", ""), *((label, "figure") for label in labels)]
        yield ReadyTable("changes", title, "", 25, columns, [list(row) for row in texts], [])
    for table in figure_tables(difference):
        all_: List[List[TableCell]] = [[name, *values] for name, values in table.rows]
        *rows, total = all_
        # Without tensors, or Python, the rows say just that.
        if any(not str(row[0]).startswith("(") for row in rows):
            columns = [(table.by.replace("-", " "), ""), *table.heads]
            yield ReadyTable(f"by-{table.by}", table.title, "", 25, columns, rows, total)
    names = [row.key.name for view in difference.views if view.by == "owner" for row in view.rows]
    known: List[List[TableCell]] = [[name, OWNERS[name]] for name in names if name in OWNERS]
    if known:
        heads = [("owner", ""), ("description", "long")]
        yield ReadyTable("by-owner", "Owner descriptions", "", 25, heads, known, [])
    yield from _sides(difference)


def stacks_data(difference: Difference, stacks: Stacks) -> RunData:
    """A moment for each column; its run must have been measured with `stacks`. Raises TooLarge."""
    stacks.show([column.typical.held for column in difference.columns if column.typical.held])
    names, packed = _Names(stacks), Columns()
    found = cells(stacks, names)
    shared = SharedNames()
    cells_data(stacks, names, found, None, packed, shared)
    packed.add("moment.rows", [moment.n_rows for moment in found.moments])
    for name in ("time", "id", "reason"):
        packed.add(f"moment.{name}", [0] * len(found.moments))
    last = len(found.moments) - 1
    moments = Moments(["column"], {}, ChosenMoments(last, last))
    run = Identity("ms", difference.is_discrete)
    head = run_head(run, Figures(), shared.cell_names(), moments, Events(), About(), Packed(packed.specs))
    tables = all_shown(data(list(_tables(difference))))
    return RunData({**head, "tables": tables}, packed.bytes())
