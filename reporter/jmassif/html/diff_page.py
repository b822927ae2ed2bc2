# SPDX-License-Identifier: GPL-2.0-or-later
"""The data of a difference's page: the JSON format's object, and the call stacks of every column.

The stacks look like a run's (html/data.py), with a moment for each column, so that the page draws them with the same code.
Those of repeated runs are the typical run's, as medians of places do not add up.
"""

from html import escape
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from jmassif.analysis.compare import Column, Difference, Finding, Stacks
from jmassif.attribution.names import Names
from jmassif.attribution.packages import CORE, Folding, Internal
from jmassif.export.diff_data import DifferenceTable, LadderRow, rows_of, table_of
from jmassif.export.json import data
from jmassif.html.cells import NO_LINE, Columns, all_shown, cells, shown
from jmassif.html.data import RunData
from jmassif.html.head import About, ChosenMoments, Events, Figures, Identity, Moments, Packed, run_head
from jmassif.html.names import SharedNames, cells_data
from jmassif.html.page import fill_page, pack
from jmassif.model.run_info import label
from jmassif.render.diff_tables import ladder_table, sentences


def write(difference: Difference, stacks: Stacks) -> Iterator[str]:
    """The runs must have been measured with `stacks`. Raises FormatError."""
    title = shown(" → ".join(column.label for column in difference.columns))
    packed = pack([stacks_data(difference, stacks)], title, difference=comparison(difference))
    yield from fill_page(
        title, "".join(f'<p class="statement">{escape(text)}</p>' for text in _texts(difference)), packed
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
    return RunData(head, packed.bytes())


def _common(difference: Difference) -> List[Tuple[str, str]]:
    """Facts that are the same in all runs: names and texts, but for options, environment and packages."""
    first, *others = [run.facts for column in difference.columns for run in column.runs]
    return [
        (shown(label(key)), shown(value))
        for key, value in first.items()
        if value and "." not in key and all(facts.get(key, "") == value for facts in others)
    ]


class DifferenceRun(NamedTuple):
    file: str
    complete: bool


class DifferenceColumn(NamedTuple):
    label: str
    stacks_of: str  # the run whose call stacks are shown
    runs: List[DifferenceRun]


class DifferenceFact(NamedTuple):
    key: str
    label: str
    values: List[str]
    is_detail: bool


class DifferenceLadder(NamedTuple):
    """As the text report has it, and its rows' bytes."""

    pool: str
    title: str
    heads: List[str]
    rows: List[List[str]]
    data: List[LadderRow]


class Comparison(NamedTuple):
    """A difference. `common`: facts of all runs; `headline`: the findings in sentences."""

    headline: List[str]
    findings: List[Finding]
    moment: str
    discrete: bool
    min_bytes: int
    columns: List[DifferenceColumn]
    facts: List[DifferenceFact]
    common: List[Tuple[str, str]]
    ladders: List[DifferenceLadder]
    views: List[DifferenceTable]


def _column(column: Column) -> DifferenceColumn:
    runs = [DifferenceRun(run.name, run.is_complete) for run in column.runs]
    return DifferenceColumn(column.label, column.typical.name, runs)


def comparison(difference: Difference) -> Dict[str, Any]:
    """Raises TooLarge."""
    ladders = [
        DifferenceLadder(sides[0].pool, *ladder_table(difference, sides)[:3], data=rows_of(sides))
        for sides in difference.ladders
    ]
    found: Dict[str, Any] = all_shown(
        data(
            Comparison(
                _texts(difference),
                difference.findings,
                difference.moment,
                difference.is_discrete,
                difference.min_bytes,
                list(map(_column, difference.columns)),
                [
                    DifferenceFact(*fact[:3], is_detail=fact.is_redundant or "." in fact.key)
                    for fact in difference.facts
                ],
                _common(difference),
                ladders,
                list(map(table_of, difference.views)),
            )
        )
    )
    return found
