# SPDX-License-Identifier: GPL-2.0-or-later
"""A table for spreadsheets, as RFC 4180 has it: one row a name, or with --snapshot=all one a name and snapshot.

There are no rows of sums, so that columns can be added up.
"""

import csv
import io
from typing import Iterable, Iterator, List

from jmassif.analysis.aggregate import VALUES, by_name, series
from jmassif.analysis.moments import select
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.run import Profile
from jmassif.render.view import View
from jmassif.units import printable


_FORMULA = ("=", "+", "-", "@")


def _cell(value: object) -> object:
    """Control characters are escaped, so that a line is a row; what a spreadsheet would take for a formula gets an apostrophe."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return "'" + text if text.startswith(_FORMULA) else text


def line(cells: Iterable[object]) -> str:
    """The cells of a row, texts and numbers; None is an empty one. As RFC 4180 has it but for the end, which is the writer's."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(map(_cell, cells))
    return out.getvalue()


_SIDES = ("host", "device")


def _rows(profile: Profile, view: View) -> Iterator[List[object]]:
    name_of = naming(profile, Names(profile), view.by, view.fold != "none")

    def named(name: str) -> List[object]:
        return [name, profile.group_of.get(name, "other")] if view.by == "owner" else [name]

    head: List[object] = ["owner", "group"] if view.by == "owner" else [view.by]
    if view.selector == "all":
        figures = [f"{side}_live_{name}" for side in _SIDES for name in ("bytes", "blocks")]
        yield ["snapshot", f"time_{profile.time_unit}", "reason", *head, *figures]
        for snapshot, usages in series(profile, name_of):
            for name, usage in usages.items():
                if any(usage):
                    yield [snapshot.id, snapshot.time, snapshot.reason, *named(name), *usage]
        return
    live = select(profile, view.selector or "peak").composition
    yield [*head, *(f"{side}_{name.replace('-', '_')}" for side in _SIDES for name in VALUES)]
    for row in by_name(profile, live, name_of):
        yield [*named(row.name), *row.figures("host"), *row.figures("device")]


def write(profile: Profile, view: View) -> Iterator[str]:
    """The lines, which RFC 4180 ends with CR and LF. Raises moments.SelectionError."""
    yield from (line(row) + "\r" for row in _rows(profile, view))
