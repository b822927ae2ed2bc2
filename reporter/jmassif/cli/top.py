# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif top`: follows runs on the terminal while they are recorded."""

import argparse
import locale
import os
import select
import shutil
import signal
import sys
import termios
import time
from contextlib import suppress
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set

from jmassif.analysis.ladder import ladders
from jmassif.analysis.moments import Moment
from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.options import add_traces, number, shown_name, traces_of
from jmassif.cli.terminal import coloured, is_terminal, wants_colour
from jmassif.live.run import EXECED, ORDERS, Family, LiveRun
from jmassif.model.run_info import is_pytorch
from jmassif.reader.input import STDIN
from jmassif.reader.tokens import TraceError
from jmassif.render import layout as roles
from jmassif.render.graph import Point
from jmassif.render.ladder import rows_of
from jmassif.render.layout import Line
from jmassif.render.top import Pool, Process, Screen, draw, frame
from jmassif.units import printable, size

try:
    import curses
except ImportError:  # not every Python has it
    curses = None  # type: ignore[assignment]

# Enough to scroll through.
_MOST_LINES = 200
_PAGE = 5


def _available() -> Optional[int]:
    """Available memory of this machine in bytes."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file)
        return int(rows["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError, IndexError):
        return None


def _pools(run: LiveRun) -> List[Pool]:
    now, profile = run.now(), run.profile

    def figure(name: str) -> Optional[int]:
        return profile.system_at(name, now.time)

    total = figure("mem-total") or profile.number("mem-total-bytes") or 0
    available = _available() if run.is_here and run.is_running else figure("mem-available")
    used = max(0, total - available) if available is not None else 0
    if not profile.is_discrete:
        return [Pool("memory", now.host, now.device, max(0, used - now.host - now.device), total)]
    device_total, free = figure("device-total") or 0, figure("device-free")
    device_used = max(0, device_total - free) if free is not None else 0
    pools = [Pool("memory", now.host, 0, max(0, used - now.host), total)]
    if now.device or device_total:
        pools.insert(0, Pool("device", 0, now.device, max(0, device_used - now.device), device_total))
    return pools


def _points(run: LiveRun) -> List[Point]:
    points = [Point(*row) for row in zip(*run.profile.timeline)]
    now = run.now()
    # The peak is exact, and may lie between two rows.
    if points and now.peak:
        points.append(Point(now.peak_time, 0, 0, now.peak))
        points.sort(key=lambda point: point.time)
    return points


def _command(run: LiveRun) -> str:
    return printable(run.profile.manifest.get("command", "") or run.name)


def _process(run: LiveRun) -> Process:
    manifest = run.profile.manifest
    words = _command(run)
    if "forked-from" in manifest:
        words = f"forked from {printable(manifest['forked-from'])}, which had {size(run.inherited)}"
    now = run.now()
    return Process(run.pid, words, now.host + now.device, run.state)


class Watching:
    """The runs, and the reader's choices."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.chosen = 0
        self.order = ORDERS[0]
        self.offset = 0
        self.is_paused = False
        self.is_help = False
        self._states: List[str] = []
        self._left: Set[int] = set()  # runs that became another program
        self._drawn: Optional[Screen] = None

    @property
    def run(self) -> LiveRun:
        return self.family.runs[min(self.chosen, len(self.family.runs) - 1)]

    def poll(self, seconds: float) -> bool:
        """Reads on; whether there is anything new to show."""
        is_news = self.family.poll(seconds)
        # A process may end without a record.
        states = [each.state for each in self.family.runs]
        is_news = is_news or states != self._states
        self._states = states
        return is_news

    def _follow_exec(self) -> None:
        """Shows the last program of a process in the place of an earlier one, unless the reader goes back to that."""
        run, runs = self.run, self.family.runs
        process = run.profile.manifest.get("process", "")
        if run.state != EXECED or id(run) in self._left or not process:
            return
        same = [number for number, each in enumerate(runs) if each.profile.manifest.get("process") == process]
        self._left.update(id(runs[number]) for number in same if runs[number].state == EXECED)
        self.chosen = max(same, key=lambda number: runs[number].profile.number("start-unix-ms") or 0)
        self.offset = 0

    # ---- keys ----------------------------------------------------------------------------------------

    def press(self, key: str) -> bool:
        """Takes a key by its name; returns False to quit."""
        if key in ("q", "Q"):
            return False
        if key in ("p", " "):
            self.is_paused = not self.is_paused
        elif key == "s":
            self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
            self.offset = 0
        elif key == "tab":
            self.chosen = (min(self.chosen, len(self.family.runs) - 1) + 1) % len(self.family.runs)
            self.offset = 0
        elif key in ("h", "?"):
            self.is_help = not self.is_help
        else:
            step = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -_PAGE, "page down": _PAGE}.get(key, 0)
            self.offset = max(0, min(self.offset + step, _MOST_LINES - 1))
        return True

    # ---- what is shown -------------------------------------------------------------------------------

    def screen(self) -> Screen:
        """The present; of a paused one the past, with the reader's present choices."""
        if self.is_paused and self._drawn is not None:
            self._drawn = self._drawn._replace(is_paused=True, is_help=self.is_help, offset=self._offset(self._drawn))
        else:
            self._follow_exec()
            self._drawn = self._screen()
        return self._drawn

    def _offset(self, screen: Screen) -> int:
        self.offset = max(0, min(self.offset, len(screen.lines) - 1))
        return self.offset

    def _screen(self) -> Screen:
        run = self.run
        runs = self.family.runs
        now = run.now()
        rows = sorted(run.owners(), key=lambda row: -row.bytes)
        chosen = Moment("now", now.time, {}, len(run.profile.snapshots) - 1)
        screen = Screen(
            command=_command(run),
            pid=run.pid,
            state=run.state,
            is_running=run.is_running,
            unit=run.profile.time_unit,
            time=now.time,
            pools=_pools(run),
            peak=(now.peak, now.peak_time),
            ladders=[rows_of(is_pytorch(run.profile), each) for each in ladders(run.profile, chosen, rows)],
            owners=rows,
            lines=run.lines(self.order, _MOST_LINES),
            points=_points(run),
            events=list(run.events),
            processes=[_process(each) for each in runs] if len(runs) > 1 else [],
            chosen=min(self.chosen, len(runs) - 1),
            n_left_out=self.family.n_left_out,
            order=self.order,
            is_paused=self.is_paused,
            is_help=self.is_help,
            note=printable("".join(self.family.lost[-1:])),
        )
        return screen._replace(offset=self._offset(screen))


# ---- the command ------------------------------------------------------------------------------

_EPILOG = """\
Traces of children that appear beside a TRACE are followed too, and a pipe to its
end. A finished trace is shown as it was at its end.

keys: q quit, p pause, s sort, tab next process, up and down scroll, ? help

examples:
  jmassif top jmassif.out.4711
  ssh board cat jmassif.fifo | jmassif top -"""


def build_parser(prog: str) -> Parser:
    parser = Parser(prog, "Follow runs while they are recorded.", _EPILOG, "[OPTION]... [TRACE]...")
    option = parser.add_argument
    add_traces(parser, "traces that are being written; - is standard input [the newest]")
    option("--once", action="store_true", help="print one frame and end")
    option("--sort", choices=ORDERS, default="held", metavar="ORDER", help=f"of the lines: {', '.join(ORDERS)} [held]")
    option("--interval", type=number(0.1, 3600), default=0.5, metavar="SECONDS", help="time between two looks [0.5]")
    return parser


_BITE_SECONDS = 0.2  # the longest that keys wait for reading


def _read_all(watching: Watching) -> None:
    """Read all that there is; of a pipe until its end."""
    runs = watching.family.runs
    while True:
        watching.family.poll(_BITE_SECONDS)
        if all(run.follower.is_all and (run.follower.fileno() is None or run.follower.is_over) for run in runs):
            return
        time.sleep(0 if any(not run.follower.is_all for run in runs) else 0.05)


def _print_once(watching: Watching) -> None:
    _read_all(watching)
    watching.family.settle()
    size = shutil.get_terminal_size()
    lines = frame(watching.screen(), size.columns, size.lines)
    common.write(coloured(lines) if wants_colour("auto", sys.stdout) else lines, None)


# ---- the terminal -----------------------------------------------------------------------------


def _take_keys() -> None:
    """Has keys come from the terminal where standard input is something else, such as the trace."""
    if os.isatty(0):
        return
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        raise Problem("there is no terminal to take keys from: --once prints one frame")
    os.dup2(terminal, 0)
    os.close(terminal)


def _attributes() -> Dict[str, int]:
    found = {role: curses.A_BOLD for role in (roles.HEADING, roles.SUM, roles.LABEL, roles.SHARE)}
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


def _keys(window: Any) -> Iterator[str]:
    """The names of pressed keys; "": one without a name, or the terminal has another size."""
    named = {curses.KEY_UP: "up", curses.KEY_DOWN: "down", curses.KEY_PPAGE: "page up", curses.KEY_NPAGE: "page down"}
    named[ord("\t")] = "tab"
    for code in iter(window.getch, curses.ERR):
        yield named.get(code) or (chr(code) if 0x20 <= code < 0x7F else "")


def _is_terminal_there() -> bool:
    """One that went away without a signal can be read at any time, and has nothing."""
    try:
        termios.tcgetattr(0)
    except termios.error:
        return False
    return True


def _follow(window: Any, watching: Watching, seconds: float) -> None:
    """Draws until a key quits or the terminal goes away; looks every so many seconds, and when a pipe has something."""
    attributes = _attributes()
    window.timeout(0)
    window.keypad(True)
    with suppress(curses.error):  # a terminal that cannot hide it
        curses.curs_set(0)
    is_news = True
    while True:
        if is_news:
            height, width = window.getmaxyx()
            _put(window, draw(watching.screen(), width, height), attributes)
        pipes = [run.follower.fileno() for run in watching.family.runs]
        ready = select.select([0] + [pipe for pipe in pipes if pipe is not None], [], [], seconds)[0]
        is_news = watching.poll(_BITE_SECONDS)
        keys = list(_keys(window))
        if 0 in ready and not keys and not _is_terminal_there():
            return
        for key in keys:
            is_news = True
            if not watching.press(key):
                return


def _leave(*_: Any) -> None:
    sys.exit(0)


def _show(watching: Watching, seconds: float) -> None:
    if not is_terminal(sys.stdout):
        raise Problem("standard output is not a terminal to draw on: --once prints one frame")
    if not curses:
        raise Problem("this Python has no curses: --once prints one frame")
    locale.setlocale(locale.LC_ALL, "")
    _take_keys()
    lack = "is not known here"
    with suppress(curses.error):
        curses.setupterm()
        lack = "" if curses.tigetstr("cup") else "cannot be drawn on"
    if lack:
        raise Problem(f"the terminal {os.environ.get('TERM', '')!r} {lack}: --once prints one frame")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        curses.wrapper(_follow, watching, seconds)
    except SystemExit:
        pass
    except curses.error:
        if _is_terminal_there():
            raise


def run(arguments: argparse.Namespace) -> int:
    names = traces_of(arguments)
    if STDIN in names and sys.stdin is not None and sys.stdin.isatty():
        raise Problem("standard input is the terminal: give it a trace, as in: ssh board cat FIFO | jmassif top -")
    try:
        watching = Watching(Family(names))
        watching.order = arguments.sort
        if arguments.once:
            _print_once(watching)
        else:
            _show(watching, arguments.interval)
    except TraceError as error:
        name = next((name for name in names if not os.path.exists(name) and name != STDIN), names[0])
        raise Problem(f"{shown_name(name)}: {error}")
    return 0
