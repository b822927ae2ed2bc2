# SPDX-License-Identifier: GPL-2.0-or-later
"""The command jm_top: follows runs while they go on, on the terminal."""

import argparse
import curses
import locale
import os
import select
import shutil
import signal
import sys
import time
from typing import Any, Callable, Dict, List, NoReturn, Optional, Sequence

from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.terminal import coloured, is_terminal, wants_colour
from jmassif.live.run import LEAK, MEMORY, ORDERS, Family, LiveRun
from jmassif.live.sums import Slopes
from jmassif.reader.input import STDIN, expand
from jmassif.reader.tokens import TraceError
from jmassif.render import layout as roles
from jmassif.render.graph import Point
from jmassif.render.layout import Line
from jmassif.render.top import Pool, Process, Row, Screen, draw, frame
from jmassif.units import printable, size


# ---- curses screen ----
# A terminal that is drawn on, for as long as the reader looks: by curses, which nobody else imports.

# Key codes, and the names under which they are told.
_KEYS = {
    curses.KEY_UP: "up",
    curses.KEY_DOWN: "down",
    curses.KEY_PPAGE: "page up",
    curses.KEY_NPAGE: "page down",
    ord("\t"): "tab",
}
_COLOURS = {
    roles.HOST: curses.COLOR_CYAN,
    roles.DEVICE: curses.COLOR_MAGENTA,
    roles.WARNING: curses.COLOR_RED,
    roles.PYTHON: curses.COLOR_GREEN,
}
_BOLD = (roles.HEADING, roles.SUM, roles.LABEL, roles.SHARE)


class NoTerminal(Exception):
    """The message is one line."""


def _take_keys() -> None:
    """Has keys come from the terminal where standard input is something else, such as the trace."""
    if os.isatty(0):
        return
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        raise NoTerminal("there is no terminal to take keys from")
    os.dup2(terminal, 0)
    os.close(terminal)


def _attributes() -> Dict[str, int]:
    found = {role: curses.A_BOLD for role in _BOLD}
    if not curses.has_colors() or os.environ.get("NO_COLOR"):
        found[roles.WARNING] = curses.A_REVERSE
        return found
    curses.use_default_colors()
    for number, (role, colour) in enumerate(_COLOURS.items(), 1):
        curses.init_pair(number, colour, -1)
        found[role] = curses.color_pair(number)
    found[roles.WARNING] |= curses.A_BOLD
    return found


def _put(window: Any, lines: Sequence[Line], attributes: Dict[str, int]) -> None:
    window.erase()
    for row, line in enumerate(lines):
        try:
            window.move(row, 0)
            for text, role in line.parts:
                window.addstr(text, attributes.get(role, 0))
        except curses.error:  # beyond the last column of the last row, or a terminal that has just become smaller
            pass
    window.refresh()


class _Loop:
    def __init__(self, window: Any, poll: Callable[[], bool], draw: Callable[[int, int], List[Line]]) -> None:
        self._window, self._poll, self._draw = window, poll, draw
        self._attributes = _attributes()
        window.timeout(0)
        window.keypad(True)
        try:
            curses.curs_set(0)
        except curses.error:  # a terminal that cannot hide it
            pass

    def show(self) -> None:
        height, width = self._window.getmaxyx()
        _put(self._window, self._draw(width, height), self._attributes)

    def key(self) -> Optional[str]:
        """None: no key was pressed; "": one without a name, or the terminal has another size."""
        code = self._window.getch()
        if code == curses.ERR:
            return None
        if code in _KEYS:
            return _KEYS[code]
        return chr(code) if 0x20 <= code < 0x7F else ""

    def run(self, press: Callable[[str], bool], seconds: float, also: Callable[[], List[int]]) -> None:
        self.show()
        while True:
            select.select([0] + also(), [], [], seconds)
            is_news = self._poll()
            key = self.key()
            while key is not None:
                is_news = True
                if not press(key):
                    return
                key = self.key()
            if is_news:
                self.show()


def _leave(*_: Any) -> None:
    sys.exit(0)


def show(
    poll: Callable[[], bool],
    draw: Callable[[int, int], List[Line]],
    press: Callable[[str], bool],
    seconds: float,
    also: Callable[[], List[int]],
) -> None:
    """Draws until `press`, which is told the names of keys, says that it is enough.

    In between `poll` is called every so many seconds, and when one of the descriptors of `also` has something. Raises NoTerminal.
    """
    locale.setlocale(locale.LC_ALL, "")
    _take_keys()
    try:
        curses.setupterm()
    except curses.error:
        raise NoTerminal(f"the terminal {os.environ.get('TERM', '')!r} is not known here")
    if not curses.tigetstr("cup"):
        raise NoTerminal(f"the terminal {os.environ.get('TERM', '')!r} cannot be drawn on")
    before = [(number, signal.signal(number, _leave)) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    try:
        curses.wrapper(lambda window: _Loop(window, poll, draw).run(press, seconds, also))
    except SystemExit:
        pass
    finally:
        for number, handler in before:
            signal.signal(number, handler)


# ---- watching ----
# What jm_top shows of the runs that it follows, and how the reader's keys change that. Knows nothing of terminals.

# As many lines as anybody scrolls through.
_MOST_LINES = 200
_PAGE = 5


def _available() -> Optional[int]:
    """Of this machine's memory, in bytes."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file)
        return int(rows["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError, IndexError):
        return None


def _pools(run: LiveRun) -> List[Pool]:
    now = run.now()
    total = run.figure("mem-total") or run.profile.number("mem-total-bytes") or 0
    available = run.figure("mem-available")
    if run.is_here and run.is_running:
        available = _available()
    used = max(0, total - available) if available is not None else 0
    if not run.profile.is_discrete:
        return [Pool("memory", now.host, now.device, max(0, used - now.host - now.device), total)]
    device_total, free = run.figure("device-total") or 0, run.figure("device-free")
    device_used = max(0, device_total - free) if free is not None else 0
    pools = [Pool("memory", now.host, 0, max(0, used - now.host), total)]
    if now.device or device_total:
        pools.insert(0, Pool("device", 0, now.device, max(0, device_used - now.device), device_total))
    return pools


def _points(run: LiveRun) -> List[Point]:
    points = [Point(*row) for row in zip(*run.timeline())]
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

    def __init__(self, family: Family, now: Callable[[], float] = time.monotonic) -> None:
        self.family = family
        self.chosen = 0
        self.order = ORDERS[0]
        self.offset = 0
        self.is_frozen = False
        self.is_help = False
        self._now = now
        self._slopes: Dict[int, Slopes] = {}
        self._states: List[str] = []
        self._drawn: Optional[Screen] = None

    @property
    def run(self) -> LiveRun:
        return self.family.runs[min(self.chosen, len(self.family.runs) - 1)]

    def poll(self, seconds: float) -> bool:
        """Reads on; whether there is anything new to be seen."""
        is_news = self.family.poll(seconds)
        run = self.run
        slopes = self._slopes.setdefault(id(run), Slopes())
        found = slopes.answer()
        if found is not None:
            run.tell_slopes(found)
            is_news = True
        if run.follower.is_all:
            slopes.ask(run.profile)
        # A process may go without a word.
        states = [each.state for each in self.family.runs]
        is_news = is_news or states != self._states
        self._states = states
        return is_news

    # ---- keys ----------------------------------------------------------------------------------------

    def press(self, key: str) -> bool:
        """By its name; whether the reader wants to see more."""
        if key in ("q", "Q"):
            return False
        if key in ("f", " "):
            self.is_frozen = not self.is_frozen
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
        """As it is now; of a frozen one as it was, with the choices of now."""
        if self.is_frozen and self._drawn is not None:
            self._drawn = self._drawn._replace(is_frozen=True, is_help=self.is_help, offset=self._offset(self._drawn))
        else:
            self._drawn = self._screen()
        return self._drawn

    def _offset(self, screen: Screen) -> int:
        self.offset = max(0, min(self.offset, len(screen.lines) - 1))
        return self.offset

    def _screen(self) -> Screen:
        run = self.run
        runs = self.family.runs
        now = run.now()
        lost = self.family.lost[-1] if self.family.lost else None
        owners = sorted((Row(printable(o.name), o.host, o.device) for o in now.owners), key=lambda row: -row.bytes)
        lines = [Row(*line) for line in run.lines(self._now(), self.order, _MOST_LINES)]
        screen = Screen(
            command=_command(run),
            pid=run.pid,
            state=run.state,
            is_running=run.is_running,
            unit=run.profile.time_unit,
            time=now.time,
            pools=_pools(run),
            peak=(now.peak, now.peak_time),
            owners=owners,
            lines=lines,
            points=_points(run),
            events=[(event.time, event.text, event.kind in (MEMORY, LEAK)) for event in run.events],
            processes=[_process(each) for each in runs] if len(runs) > 1 else [],
            chosen=min(self.chosen, len(runs) - 1),
            n_left_out=self.family.n_left_out,
            order=self.order,
            is_frozen=self.is_frozen,
            is_help=self.is_help,
            note=printable(f"{lost.name}: {lost.why}") if lost else "",
        )
        return screen._replace(offset=self._offset(screen))


# ---- jm top ----

_NAME = "jm_top"

_EPILOG = """\
TRACE is what a run is writing, as a rule jmassif.out.PID; a finished one is shown as it was at its end. Traces
of children that appear beside it are followed too. A pipe is one as well, and - is standard input.

keys: q quits, f freezes, s sorts, tab shows the next process, up and down scroll, h helps

examples:
  jm_top jmassif.out.4711                    while it runs
  jm_top --once jmassif.out.4711             one frame, as text
  ssh board cat jmassif.fifo | jm_top -      of a board whose recorder writes into a FIFO
  ssh -t board jm_top jmassif.out.4711       on the board itself

exit status: 0, or 2 for bad input"""

# So long it reads at a time, that keys may wait for.
_BITE_SECONDS = 0.2


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.1 <= value <= 3600:
        raise argparse.ArgumentTypeError(f'"{text}" is no number of seconds from 0.1 to 3600')
    return value


def _parser() -> argparse.ArgumentParser:
    parser = Parser(_NAME, "Follows what valgrind --tool=jmassif is recording.", _EPILOG)
    option = parser.add_argument
    option("files", metavar="TRACE", nargs="+", help="a trace that is being written; several; - for standard input")
    option("--once", action="store_true", help="print one frame of all that is there now, and end")
    option("--sort", choices=ORDERS, default="held", help="what the lines are put in order by [held]")
    option("--interval", type=_seconds, default=0.5, metavar="SECONDS", help="how often to look [0.5]")
    option(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="of --once: colour it [auto: on a terminal]",
    )
    return parser


def _read_all(watching: Watching) -> None:
    """All that there is; of a pipe all that comes."""
    runs = watching.family.runs
    while True:
        watching.family.poll(_BITE_SECONDS)
        if all(run.follower.is_all and (run.follower.fileno() is None or run.follower.is_over) for run in runs):
            return
        time.sleep(0 if any(not run.follower.is_all for run in runs) else 0.05)


def _print_once(watching: Watching, colour: str) -> None:
    _read_all(watching)
    watching.family.settle()
    size = shutil.get_terminal_size()
    lines = frame(watching.screen(), size.columns, size.lines)
    common.write(coloured(lines) if wants_colour(colour, sys.stdout) else lines, None)


def _show(watching: Watching, seconds: float) -> None:
    no_terminal = "standard output is no terminal that can be drawn on: --once prints one frame"
    if not is_terminal(sys.stdout):
        raise Problem(no_terminal)
    try:
        from jmassif.cli import top as curses_screen
    except ImportError:
        raise Problem("this Python has no curses: --once prints one frame")

    def also() -> List[int]:
        found = (run.follower.fileno() for run in watching.family.runs)
        return [descriptor for descriptor in found if descriptor is not None]

    try:
        curses_screen.show(
            lambda: watching.poll(_BITE_SECONDS),
            lambda width, height: draw(watching.screen(), width, height),
            watching.press,
            seconds,
            also,
        )
    except curses_screen.NoTerminal as problem:
        raise Problem(f"{problem}: --once prints one frame")


def _top(given: Optional[List[str]]) -> int:
    arguments = _parser().parse_args(given)
    names = expand(arguments.files)
    if STDIN in names and sys.stdin is not None and sys.stdin.isatty():
        raise Problem("standard input is the terminal: give it a trace, as in: ssh board cat FIFO | jm_top -")
    try:
        watching = Watching(Family(names))
        watching.order = arguments.sort
        if arguments.once:
            _print_once(watching, arguments.color)
        else:
            _show(watching, arguments.interval)
    except TraceError as error:
        name = next((name for name in names if not os.path.exists(name) and name != STDIN), names[0])
        raise Problem(f"{'standard input' if name == STDIN else name}: {error}")
    return 0


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs jm_top with `arguments` (those of the process by default); the exit status."""
    return common.main(_NAME, _top, arguments)


def run() -> NoReturn:
    """The program."""
    common.run(main)
