# SPDX-License-Identifier: GPL-2.0-or-later
"""A terminal that is drawn on by curses, which not every Python has: only `jmassif top` imports this."""

import curses
import locale
import os
import select
import signal
import sys
import termios
from typing import Any, Callable, Dict, List, Optional, Sequence

from jmassif.render import layout as roles
from jmassif.render.layout import Line

# Key codes, and their names for `press`.
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


def _is_terminal_there() -> bool:
    """One that went away without a signal can be read at any time, and has nothing."""
    try:
        termios.tcgetattr(0)
    except termios.error:
        return False
    return True


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
            ready = select.select([0] + also(), [], [], seconds)[0]
            is_news = self._poll()
            key = self.key()
            if 0 in ready and key is None and not _is_terminal_there():
                return
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
    """Draws until `press`, called with the names of keys, returns False, or the terminal goes away.

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
    except curses.error:
        if _is_terminal_there():
            raise
    finally:
        for number, handler in before:
            signal.signal(number, handler)
