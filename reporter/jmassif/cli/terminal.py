# SPDX-License-Identifier: GPL-2.0-or-later
"""A report on a terminal: colours, a pager, and progress while it is made.

Writers mark the roles of a line's parts, and a role has a colour here. There are few, from the terminal's own palette and readable
on dark and light: bold for headings and their subjects, cyan for host memory, magenta for device memory, green for Python lines.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from typing import IO, Iterable, Iterator, Optional, TypeVar

from jmassif.render import layout as roles
from jmassif.units import printable, size


# ---- colours ---------------------------------------------------------------------------------

_COLOUR_OF = {
    roles.HEADING: "1",  # bold
    roles.LABEL: "1",
    roles.SUM: "1",
    roles.SHARE: "1",
    roles.WARNING: "31",  # red
    roles.PYTHON: "32",  # green
    roles.DEVICE: "35",  # magenta
    roles.HOST: "36",  # cyan
}


def _in_colour(text: str, role: str) -> str:
    return f"\x1b[{_COLOUR_OF[role]}m{text}\x1b[0m" if text and role in _COLOUR_OF else text


def coloured(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a text report with colours, by the roles that are marked in them."""
    for line in lines:
        if isinstance(line, roles.Line):
            line = "".join(_in_colour(text, role) for text, role in line.parts)
        yield line


def is_terminal(stream: Optional[IO[str]]) -> bool:
    """Whether a person reads the stream, on a terminal that understands colours and moves."""
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    except ValueError:  # closed
        return False


def wants_colour(choice: str, stream: Optional[IO[str]]) -> bool:
    """`choice` is always, never or auto. NO_COLOR is https://no-color.org."""
    return choice == "always" or (choice == "auto" and is_terminal(stream) and not os.environ.get("NO_COLOR"))


# ---- paging ----------------------------------------------------------------------------------


def pager() -> Optional[str]:
    """The user's pager; None where it is not installed."""
    import shutil

    command = os.environ.get("JMASSIF_PAGER") or os.environ.get("PAGER") or "less"
    return command if shutil.which((command.split() or [""])[0]) else None


def page(lines: Iterable[str], command: str) -> None:
    """Shows the lines with a pager, until the user has seen enough."""
    import subprocess

    # As less is best for this: it ends by itself where all fits the screen, and lets colours through.
    environment = {"LESS": "FRX", **os.environ}
    process = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env=environment)
    assert process.stdin
    # The terminal is the pager's: an interrupt is for it, and when it ends there is nothing left to write.
    before = [(number, signal.signal(number, signal.SIG_IGN)) for number in (signal.SIGINT, signal.SIGPIPE)]
    try:
        with contextlib.suppress(BrokenPipeError), process.stdin as stream:
            for line in lines:
                stream.write((line + "\n").encode("utf-8", "backslashreplace"))
        process.wait()
    finally:
        for number, handler in before:
            signal.signal(number, handler)


# ---- a sign of life --------------------------------------------------------------------------

_QUIET_SECONDS = 1.0
_BETWEEN_SECONDS = 0.1
_Self = TypeVar("_Self", bound="StatusLine")
_Piece = TypeVar("_Piece")


class StatusLine:
    """A line on standard error, after a second, if that is a terminal; gone in the end."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _QUIET_SECONDS
        self.is_on = is_terminal(sys.stderr)
        self._is_shown = False

    def is_due(self) -> bool:
        return self.is_on and time.monotonic() >= self._next

    def show(self, text: str) -> None:
        self._next = time.monotonic() + _BETWEEN_SECONDS
        self._is_shown = bool(text)
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._is_shown:
            self.show("")


def bar(part: float) -> str:
    return f"[{'#' * int(part * 30):<30}]"


class ProgressBar(StatusLine):
    """Progress of reading."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = printable(name)[-40:]

    def __call__(self, n_bytes: int, n_all: Optional[int]) -> None:
        """Called often; see Progress of reader/input.py."""
        if self.is_due():
            part = min(1.0, n_bytes / n_all) if n_all else 0.0
            state = f"{bar(part)} {100 * part:3.0f} % of {size(n_all)}" if n_all else size(n_bytes)
            self.show(f"reading {self._name} {state}")


class Working(StatusLine):
    """The line says what is going on, where nothing counts it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._timer = threading.Timer(_QUIET_SECONDS, self.show, [text])
        self._timer.daemon = True

    def __enter__(self) -> "Working":
        if self.is_on:
            self._timer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._timer.cancel()
        if self._timer.is_alive():
            self._timer.join()
        super().__exit__()


def while_working(pieces: Iterable[_Piece], what: str, is_shown: bool) -> Iterator[_Piece]:
    """The pieces of a report. If they take long, a line on standard error says so; until the first, where they are shown on the terminal."""
    with Working(f"making {what}") as line:
        for piece in pieces:
            if is_shown:
                line.__exit__()
            yield piece
