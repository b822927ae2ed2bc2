# SPDX-License-Identifier: GPL-2.0-or-later
"""A speedscope file: one profile of stacks weighted by bytes or counts.

It keeps the schema that speedscope publishes. JSON has its own escaping for control characters; bytes that were no UTF-8
have been written as \\xHH before, since JSON has nothing for them.
"""

import json
from typing import Callable, Dict, Iterable, Iterator

from jmassif.analysis.aggregate import RANGE_VALUES, VALUES
from jmassif.analysis.calltree import CallTree
from jmassif.analysis.moments import select
from jmassif.analysis.processes import Processes
from jmassif.analysis.range_diff import job_range, moments_of
from jmassif.export.folded import call_tree, call_tree_of_job
from jmassif.model.run import Profile
from jmassif.render.view import View
from jmassif.units import moment, printable
from jmassif.version import __version__


_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write(profile: Profile, view: View) -> Iterator[str]:
    """The file, a few lines a stack. Raises moments.SelectionError."""
    name = printable(profile.manifest.get("command", "")) or "(unknown command)"
    when = ""
    if view.range is not None:
        when = ", from {} to {}".format(*(at.name for at in moments_of(profile, *view.range)))
    elif view.value.startswith("live"):
        at = select(profile, view.selector or "peak")
        when = f", {at.name} ({moment(at.time, profile.time_unit)})"
    yield from _file(call_tree(profile, view), view, name, when)


def write_range(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    """The file of a range over several processes. Raises SelectionError."""
    view = view_of(job.members[0].profile)
    assert view.range is not None
    found = job_range(job, *view.range)
    when = f", from {found.first.name} to {found.second.name}"
    yield from _file(call_tree_of_job(found, view), view, f"{len(job.members)} processes", when)


def _file(tree: CallTree, view: View, name: str, when: str) -> Iterator[str]:
    # The node of what is below the threshold is a label too, from here on.
    total = sum(weight for _, weight in tree.stacks(view.threshold))
    frames = []
    for label in tree.labels:
        frame: Dict[str, object] = {"name": label.text}
        if label.names is not None:
            fields = label.names.profile.frame(label.frame)
            if fields.file or fields.object:
                frame["file"] = printable(fields.file or fields.object)
            if fields.line:
                frame["line"] = fields.line
        frames.append(frame)
    what, unit = {**VALUES, **RANGE_VALUES}[view.value]
    head = {
        "$schema": _SCHEMA,
        "exporter": f"jmassif {__version__}",
        "name": name,
        "activeProfileIndex": 0,
    }
    yield json.dumps(head)[:-1] + ', "shared": {"frames": ['
    yield from _members(frames)
    one = {
        "type": "sampled",
        "name": f"{what}{when}",
        "unit": "bytes" if unit == "bytes" else "none",
        "startValue": 0,
        "endValue": total,
    }
    yield ']}, "profiles": [' + json.dumps(one)[:-1] + ', "samples": ['
    yield from _members(path for path, _ in tree.stacks(view.threshold))
    yield '], "weights": ['
    yield from _members(weight for _, weight in tree.stacks(view.threshold))
    yield "]}]}"


def _members(values: Iterable[object]) -> Iterator[str]:
    comma = ""
    for value in values:
        yield comma + json.dumps(value)
        comma = ","
