# SPDX-License-Identifier: GPL-2.0-or-later
"""A comparison of groups as one HTML page: what --format=json tells, and what each run held of each part.

The figures of the runs are columns, so that the page draws distributions itself and leads from them to the runs.
"""

from array import array
from html import escape
from typing import Any, Dict, Iterator, List

from jmassif.fleet.compare import FleetDifference
from jmassif.fleet.data import as_json
from jmassif.fleet.headline import fleet_headline, left_out, method
from jmassif.writers.page.columns import MAX_EXACT, Columns, TooLarge, fold
from jmassif.writers.page.data import RunData
from jmassif.writers.page.html import fill_page, pack
from jmassif.writers.page.texts import shown

SCRIPT = "fleet.js"


def _safe(value: Any) -> Any:
    """What JSON can hold, with every text fit to be shown. Raises TooLarge."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        return {shown(key): _safe(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_safe(inner) for inner in value]
    if isinstance(value, int) and abs(value) >= MAX_EXACT:
        raise TooLarge("a figure is beyond 8 PiB, which a page cannot show exactly")
    return value


def _runs(found: FleetDifference) -> List[Dict[str, List[str]]]:
    """By group, in columns: who the runs are."""
    names = ("id", "host", "board", "file", "start")
    return [
        {name: [shown(str(run.fields[name] or "")) for run in group.runs] for name in names} for group in found.groups
    ]


def _columns(found: FleetDifference) -> Columns:
    packed = Columns()
    for number, row in enumerate(found.rows):
        for group, values in enumerate(row.values):
            packed.add(f"{number}.{group}", array("Q", map(fold, values)), "signed")
    return packed


def write(found: FleetDifference) -> Iterator[str]:
    """Raises FormatError."""
    told = _safe(as_json(found))
    told["runs"] = _runs(found)
    packed = _columns(found)
    title = shown(" → ".join(group.label for group in found.groups))
    statements = [*fleet_headline(found), *filter(None, (left_out(found),))]
    first = "".join(f'<p class="statement">{escape(text)}</p>' for text in statements)
    first += f'<p class="quiet">{escape(method(found))}</p>'
    data = pack([RunData({"columns": packed.specs}, packed.bytes())], title, fleet=told)
    yield from fill_page(title, first, data, script=SCRIPT)
