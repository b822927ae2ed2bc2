# SPDX-License-Identifier: GPL-2.0-or-later
"""The data of a difference's page: the JSON format's object, and the call stacks of every column.

The stacks look like a run's (html/data.py), with a moment for each column, so that the page draws them with the same code.
Those of repeated runs are the typical run's, as medians of places do not add up.
"""

from html import escape
from typing import Any, Dict, Iterator, List

from jmassif.analysis.compare import Difference, Stacks
from jmassif.attribution.names import Names
from jmassif.attribution.packages import CORE, Folding, Internal
from jmassif.export.diff_data import as_json
from jmassif.html.cells import NO_LINE, Columns, all_shown, cells, shown
from jmassif.html.data import RunData, cells_data
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
    head = cells_data(stacks, names, found, None, packed)
    packed.add("moment.rows", [moment.n_rows for moment in found.moments])
    for name in ("time", "id", "reason"):
        packed.add(f"moment.{name}", [0] * len(found.moments))
    last = len(found.moments) - 1
    head.update(unit="ms", is_discrete=difference.is_discrete, leaks=None, sizes=None, reasons=["column"], peaks={})
    head.update(at={"first": last, "peak": last, "end": -1}, columns=packed.specs)
    return RunData(head, packed.bytes())


def _common(difference: Difference) -> List[List[str]]:
    """Facts that are the same in all runs: names and texts, but for options, environment and packages."""
    first, *others = [run.facts for column in difference.columns for run in column.runs]
    return [
        [shown(label(key)), shown(value)]
        for key, value in first.items()
        if value and "." not in key and all(facts.get(key, "") == value for facts in others)
    ]


def comparison(difference: Difference) -> Dict[str, Any]:
    """The JSON format's object, with ladders as text has them, facts of all runs, and the runs of the stacks. Raises TooLarge."""
    data = as_json(difference)
    for column in data["columns"]:
        for run in column["runs"]:
            del run["facts"]
    for ladder, view in zip(data["ladders"], difference.ladders):
        ladder.update(ladder_table(difference, view)._asdict(), data=ladder["rows"])
    found: Dict[str, Any] = all_shown(data)
    for fact, row in zip(difference.facts, found["facts"]):
        row["is_detail"] = fact.is_redundant or "." in fact.key
    for column, row in zip(difference.columns, found["columns"]):
        row["stacks_of"] = shown(column.typical.name)
    found["common"], found["headline"] = _common(difference), _texts(difference)
    return found
