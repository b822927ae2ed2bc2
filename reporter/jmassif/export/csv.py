# SPDX-License-Identifier: GPL-2.0-or-later
"""A table for spreadsheets, as RFC 4180 has it: one row a name, or with --snapshot=all one a name and snapshot.

There are no rows of sums, so that columns can be added up.
"""

from typing import Iterable, Iterator

from jmassif.analysis.aggregate import VALUES, by_name, samples, series
from jmassif.analysis.moments import select
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.run import Profile
from jmassif.render.view import View
from jmassif.units import printable


# ---- spreadsheets ----
# Rows for spreadsheets, as RFC 4180 has them but for the ends of lines, which are the writer's.
#
# Texts of a trace are untrusted: control characters are escaped, so that a line is a row, and a name that a spreadsheet would
# take for a formula gets an apostrophe before it.

_FORMULA = ("=", "+", "-", "@")


def _cell(value: object) -> str:
    text = printable(str(value))
    if isinstance(value, str) and text.startswith(_FORMULA):
        text = "'" + text
    if any(special in text for special in ',"'):
        return '"' + text.replace('"', '""') + '"'
    return text


def line(cells: Iterable[object]) -> str:
    """The cells of a row, texts and numbers; None is an empty one."""
    return ",".join("" if cell is None else _cell(cell) for cell in cells)


# ---- csv ----

ALL = "all"

_SIDES = ("host", "device")


def _line(cells: Iterable[object]) -> str:
    # RFC 4180 ends lines with CR and LF.
    return line(cells) + "\r"


def _group(profile: Profile, view: View, name: str) -> "list[str]":
    return [profile.group_of.get(name, "other")] if view.by == "owner" else []


def _over_time(profile: Profile, view: View, names: Names) -> Iterator[str]:
    figures = [f"{side}_live_{what}" for side in _SIDES for what in ("bytes", "blocks")]
    group = ["group"] if view.by == "owner" else []
    yield _line(["snapshot", "time_" + profile.time_unit, "reason", view.by] + group + figures)
    for snapshot, usages in series(profile, naming(profile, names, view.by, view.fold != "none")):
        for name, usage in usages.items():
            if any(usage):
                about = [snapshot.id, snapshot.time, snapshot.reason, name] + _group(profile, view, name)
                yield _line([*about, *usage])


def write(profile: Profile, view: View) -> Iterator[str]:
    """The lines. Raises moments.SelectionError."""
    names = Names(profile)
    if view.selector == ALL:
        yield from _over_time(profile, view, names)
        return
    columns = samples(profile, select(profile, view.selector or "peak").composition)
    group = ["group"] if view.by == "owner" else []
    yield _line([view.by] + group + [f"{side}_{name.replace('-', '_')}" for side in _SIDES for name in VALUES])
    for row in by_name(profile, columns, naming(profile, names, view.by, view.fold != "none")):
        yield _line([row.name] + _group(profile, view, row.name) + list(row.host + row.device))
