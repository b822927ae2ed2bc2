# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report is when a person looks at it in a terminal: coloured, paged, and with a sign of life while it is read.

Colours are put on finished lines, so that writers know nothing of them. There are few, from the terminal's own palette and
those that show on dark and on light: bold for headings and what they are about, cyan for the host's memory, magenta for the
device's, green for lines of Python.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from typing import Callable, IO, Iterable, Iterator, Optional, Tuple

from jmassif.units import printable, size

_BOLD, _RED, _GREEN, _MAGENTA, _CYAN, _PLAIN = "1", "31", "32", "35", "36", "0"


def _in(colour: str, text: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[{_PLAIN}m" if text else ""


# ---- colours ---------------------------------------------------------------------------------

_BARS = re.compile(r":+|@+")


def _graph(line: "re.Match[str]") -> str:
    bars = _BARS.sub(lambda run: _in(_CYAN if run.group()[0] == ":" else _MAGENTA, run.group()), line.group(2))
    return line.group(1) + bars


# (a line's pattern, its colours); the first that matches counts.
_RULES: Tuple[Tuple["re.Pattern[str]", Callable[["re.Match[str]"], str]], ...] = (
    (re.compile(r"-{3} .* -{3,}"), lambda line: _in(_BOLD, line.group())),
    (re.compile(r"={80}|Process \S+, th.*"), lambda line: _in(_BOLD, line.group())),
    (re.compile(r"(.{9}[|^])([ :@']*)"), _graph),
    (re.compile(r"( {10})((?:: host|@ device).*)"), _graph),
    (re.compile(r"((?:Truncated|Stopped): +)(.*)"), lambda line: _in(_BOLD, line.group(1)) + _in(_RED, line.group(2))),
    (re.compile(r"((?:Environment|[A-Z][a-z]+(?=: {2})): +)(.*)"), lambda line: _in(_BOLD, line.group(1)) + line.group(2)),
    (re.compile(r"((?:yours|cached|libraries|runtime|other|total) .*\d.*)"), lambda line: _in(_BOLD, line.group())),
    (re.compile(r"( *)(\d+\.\d %)( [\d,]+ B\b.*)"), lambda line: line[1] + _in(_BOLD, line[2]) + line[3]),
    (re.compile(r"( {8,})(\S+\.py:\d+ \(.*\))"), lambda line: line.group(1) + _in(_GREEN, line.group(2))),
)


def coloured(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a text report with colours."""
    for line in lines:
        for pattern, colours in _RULES:
            match = pattern.fullmatch(line)
            if match:
                line = colours(match)
                break
        yield line


def is_terminal(stream: Optional[IO[str]]) -> bool:
    """Whether a person reads what is written there, on something that understands colours and moves."""
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    except ValueError:  # closed
        return False


def wants_colour(choice: str, stream: Optional[IO[str]]) -> bool:
    """`choice` is always, never or auto. NO_COLOR is https://no-color.org."""
    return choice == "always" or (choice == "auto" and is_terminal(stream) and not os.environ.get("NO_COLOR"))


# ---- paging ----------------------------------------------------------------------------------


def pager() -> str:
    """The user's pager."""
    return os.environ.get("JMASSIF_PAGER") or os.environ.get("PAGER") or "less"


def page(lines: Iterable[str], command: str) -> None:
    """Shows the lines with a pager, until the user has seen enough. Raises OSError where it cannot be run."""
    # As less is best for this: it ends by itself where all fits the screen, and lets colours through.
    environment = {"LESS": "FRX", **os.environ}
    process = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env=environment)
    assert process.stdin
    # The terminal is the pager's: an interrupt is for it, and when it ends there is nothing left to write.
    before = [(number, signal.signal(number, signal.SIG_IGN)) for number in (signal.SIGINT, signal.SIGPIPE)]
    try:
        with contextlib.suppress(BrokenPipeError):
            for line in lines:
                process.stdin.write((line + "\n").encode("utf-8", "backslashreplace"))
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        status = process.wait()
    finally:
        for number, handler in before:
            signal.signal(number, handler)
    if status == 127:
        raise OSError(2, f"no pager {command}")


# ---- a sign of life --------------------------------------------------------------------------

_QUIET_SECONDS = 1.0
_BETWEEN_SECONDS = 0.1
_BAR = 30


class ProgressBar:
    """On standard error, after a second, and only where that is a terminal."""

    def __init__(self, name: str, now: Callable[[], float] = time.monotonic) -> None:
        self._name = printable(name)[-40:]
        self._now = now
        self._next = now() + _QUIET_SECONDS
        self._is_on = is_terminal(sys.stderr)
        self._is_shown = False

    def __call__(self, n_bytes: int, n_all: Optional[int]) -> None:
        """Called often; see inputs.Progress."""
        if not self._is_on or self._now() < self._next:
            return
        self._next = self._now() + _BETWEEN_SECONDS
        if n_all:
            part = min(1.0, n_bytes / n_all)
            bar = "#" * int(part * _BAR)
            state = f"[{bar:<{_BAR}}] {100 * part:3.0f} % of {size(n_all)}"
        else:
            state = size(n_bytes)
        sys.stderr.write(f"\r\x1b[Kreading {self._name} {state}")
        sys.stderr.flush()
        self._is_shown = True

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
