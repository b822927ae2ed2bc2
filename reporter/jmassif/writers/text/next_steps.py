# SPDX-License-Identifier: GPL-2.0-or-later
"""The end of a text report: the commands that answer what a reader asks next, ready to be run."""

from shlex import quote
from typing import List, Tuple

from jmassif.model.profile import Profile
from jmassif.units import printable
from jmassif.writers.text.layout import Lines
from jmassif.writers.text.roles import COMMAND, Line
from jmassif.writers.view import View

# Where a name is longer the commands have a line for themselves.
_REMARKS_UP_TO = 100


def _steps(profile: Profile, name: str) -> List[Tuple[str, str]]:
    is_python = any(frame[0] == "p" for frame in profile.frames.values())
    steps = [(f"jm_print --by=python-line {name}", "what each line of the script held")] if is_python else []
    return steps + [
        (f"jm_print --stacks {name}", "the call stacks"),
        (f"jm_diff {name} OTHER", "what another run holds more"),
        (f"jm_print --format=html --open {name}", "all of it, as a page to click through"),
    ]


def next_steps(profile: Profile, view: View) -> Lines:
    """Empty where the trace has no name, as when it came through a pipe."""
    if not view.file:
        return []
    steps = _steps(profile, quote(printable(view.file)))
    width = max(len(command) for command, _ in steps)
    has_remarks = width + max(len(remark) for _, remark in steps) + 8 <= (view.columns or _REMARKS_UP_TO)
    lines: Lines = [""]
    for command, remark in steps:
        start = "Next: " if len(lines) == 1 else "      "
        rest = f"{' ' * (width - len(command))}  {remark}" if has_remarks else ""
        lines.append(Line(start, (command, COMMAND), rest))
    return lines
