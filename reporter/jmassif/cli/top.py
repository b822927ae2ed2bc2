# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif top`: follows runs on the terminal while they are recorded."""

import argparse
import locale
import os
import select
import shutil
import signal
import sys
from contextlib import suppress
from typing import Any, Dict, List, Optional, Sequence

from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.options import add_traces, number, traces_of
from jmassif.cli.terminal import coloured, is_terminal, wants_colour
from jmassif.live.run import ORDERS, Family, LiveRun
from jmassif.reader.tokens import TraceError
from jmassif.render import layout as roles
from jmassif.render.graph import timeline_points
from jmassif.render.layout import Line
from jmassif.render.top import Process, Screen, draw, frame
from jmassif.units import printable

try:
    import curses
except ImportError:  # not every Python has it
    curses = None  # type: ignore[assignment]

_MOST_LINES = 200  # to scroll through
_STEPS = {"up": -1, "down": 1, "page up": -5, "page down": 5}


def _process(run: LiveRun) -> Process:
    parent = run.profile.manifest.get("forked-from")
    what = f"forked from {printable(parent)}" if parent else run.command
    now = run.now()
    return Process(run.pid, now.host + now.device, f"{run.state}: {what}")


class Watching:
    """The runs, and the reader's choices."""

    def __init__(self, family: Family, order: str = ORDERS[0]) -> None:
        self.family = family
        self.order = order
        self.chosen = 0
        self.offset = 0
        self.is_paused = False
        self._n_programs: Dict[str, int] = {}  # that each process was seen to have run
        self._drawn: Optional[Screen] = None

    @property
    def run(self) -> LiveRun:
        return self.family.runs[min(self.chosen, len(self.family.runs) - 1)]

    def _follow_exec(self) -> None:
        """Show the last program of a process in the place of an earlier one, unless the reader goes back to that."""
        process = self.run.profile.manifest.get("process", "")
        programs = [run for run in self.family.runs if run.profile.manifest.get("process") == process]
        if process and len(programs) > self._n_programs.get(process, 1):
            last = max(programs, key=lambda run: run.profile.number("start-unix-ms") or 0)
            self.chosen, self.offset = self.family.runs.index(last), 0
        self._n_programs[process] = len(programs)

    def press(self, key: str) -> bool:
        """Take a key by its name; False to quit."""
        if key == "p":
            self.is_paused = not self.is_paused
        elif key == "s":
            self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
            self.offset = 0
        elif key == "tab":
            self.chosen = (self.family.runs.index(self.run) + 1) % len(self.family.runs)
            self.offset = 0
        self.offset += _STEPS.get(key, 0)
        return key != "q"

    def screen(self) -> Screen:
        """The present; of a paused one the past, with the reader's present choices."""
        if self._drawn is None or not self.is_paused:
            self._follow_exec()
            self._drawn = self._present()
        self.offset = max(0, min(self.offset, len(self._drawn.report.lines) - 1))
        return self._drawn._replace(offset=self.offset, is_paused=self.is_paused)

    def _present(self) -> Screen:
        run, runs = self.run, self.family.runs
        return Screen(
            report=run.report(self.order, _MOST_LINES),
            points=timeline_points(run.profile),
            processes=[_process(each) for each in runs] if len(runs) > 1 else [],
            chosen=runs.index(run),
            n_left_out=self.family.n_left_out,
            order=self.order,
            note=printable("".join(self.family.lost[-1:])),
        )


# ---- the command ------------------------------------------------------------------------------

_EPILOG = """\
Traces of children that appear beside a TRACE are followed too. A finished trace
is shown as it was at its end.

keys: q quit, p pause, s sort, tab next process, up and down scroll

examples:
  jmassif top jmassif.out.4711
  ssh -t board jmassif top jmassif.out.4711"""


def build_parser(prog: str) -> Parser:
    parser = Parser(prog, "Follow runs while they are recorded.", _EPILOG, "[OPTION]... [TRACE]...")
    option = parser.add_argument
    add_traces(parser, "traces that are being written [the newest]")
    option("--once", action="store_true", help="print one frame and end")
    option("--sort", choices=ORDERS, default="held", metavar="ORDER", help=f"of the lines: {', '.join(ORDERS)} [held]")
    option("--interval", type=number(0.1, 3600), default=0.5, metavar="SECONDS", help="time between two looks [0.5]")
    return parser


def _print_once(watching: Watching) -> None:
    watching.family.settle()
    lines = frame(watching.screen(), *shutil.get_terminal_size())
    common.write(coloured(lines) if wants_colour("auto", sys.stdout) else lines, None)


# ---- the terminal -----------------------------------------------------------------------------


def _attributes() -> Dict[str, int]:
    found = {role: curses.A_BOLD for role in (roles.HEADING, roles.SUM)}
    if not curses.has_colors() or os.environ.get("NO_COLOR"):
        return {**found, roles.WARNING: curses.A_REVERSE}
    curses.use_default_colors()
    colours = {roles.HOST: "CYAN", roles.DEVICE: "MAGENTA", roles.WARNING: "RED", roles.PYTHON: "GREEN"}
    for number, (role, colour) in enumerate(colours.items(), 1):
        curses.init_pair(number, getattr(curses, f"COLOR_{colour}"), -1)
        found[role] = curses.color_pair(number)
    found[roles.WARNING] |= curses.A_BOLD
    return found


def _put(window: Any, lines: Sequence[Line], attributes: Dict[str, int]) -> None:
    window.erase()
    for row, line in enumerate(lines):
        with suppress(curses.error):  # beyond the last column of the last row, or the terminal has just become smaller
            window.move(row, 0)
            for text, role in line.parts:
                window.addstr(text, attributes.get(role, 0))
    window.refresh()


def _keys(window: Any) -> List[str]:
    """Keys that were pressed. One without a name has another letter; a terminal of another size is such a key, too."""
    named = {curses.KEY_UP: "up", curses.KEY_DOWN: "down", curses.KEY_PPAGE: "page up", curses.KEY_NPAGE: "page down"}
    return [named.get(code, "tab" if code == 9 else chr(code)) for code in iter(window.getch, curses.ERR)]


_BITE_SECONDS = 0.2  # the longest that keys wait for reading


def _follow(window: Any, watching: Watching, seconds: float) -> None:
    """Draw until a key quits or the terminal goes away; look every so many seconds."""
    attributes = _attributes()
    window.timeout(0)
    window.keypad(True)
    with suppress(curses.error):  # a terminal that cannot hide it
        curses.curs_set(0)
    while True:
        height, width = window.getmaxyx()
        _put(window, draw(watching.screen(), width, height), attributes)
        ready = select.select([0], [], [], seconds)[0]
        watching.family.poll(_BITE_SECONDS)
        keys = _keys(window)
        is_gone = ready and not keys and not os.isatty(0)
        if is_gone or not all(map(watching.press, keys)):
            return


def _show(watching: Watching, seconds: float) -> None:
    if not is_terminal(sys.stdout):
        raise Problem("standard output is not a terminal to draw on: --once prints one frame")
    if not curses:
        raise Problem("this Python has no curses: --once prints one frame")
    if not os.isatty(0):
        raise Problem("there is no terminal to take keys from: --once prints one frame")
    locale.setlocale(locale.LC_ALL, "")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        curses.wrapper(_follow, watching, seconds)
    except curses.error as error:
        if os.isatty(0):
            name = os.environ.get("TERM", "")
            raise Problem(f"the terminal {name!r} cannot be drawn on ({error}): --once prints one frame")


def run(arguments: argparse.Namespace) -> int:
    names = traces_of(arguments)
    try:
        watching = Watching(Family(names), arguments.sort)
        if arguments.once:
            _print_once(watching)
        else:
            _show(watching, arguments.interval)
    except TraceError as error:
        name = next((name for name in names if not os.path.isfile(name)), names[0])
        raise Problem(f"{name}: {error}")
    return 0
