# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by the subcommands: reading a trace, writing a report, and one line on standard error for bad input.

A file is written under a temporary name and moved into place, so a full disk never leaves half a report, nor removes an older one.
A pipe or a device cannot be replaced, and is written to directly.
"""

import argparse
import os
import stat
import sys
from typing import TYPE_CHECKING, Any, Iterable, NoReturn, Optional, Sequence, TextIO, Tuple, Union

from jmassif.units import printable
from jmassif.version import __version__

if TYPE_CHECKING:
    from jmassif.model.run import Profile

Piece = Union[str, bytes]

# The command's name in messages.
program = "jmassif"


class Problem(Exception):
    """One line for the user."""


def warn(text: str) -> None:
    """Write one line to standard error, whatever the text holds."""
    if sys.stderr:
        sys.stderr.write(f"{program}: {printable(text)}\n")


# ---- options ----------------------------------------------------------------------------------------


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Options in a column of 24, lines of 80; `-o, --output FILE` names its value once."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=24, width=80)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        gap = "" if str(action.metavar).startswith("[") else " "
        return f"{', '.join(action.option_strings)}{gap}{action.metavar}"


class Parser(argparse.ArgumentParser):
    # Options with a value that may be left out, and then is "". argparse would take the trace after them for it.
    optional_values: Tuple[str, ...] = ()

    def __init__(self, prog: str, description: str = "", epilog: str = "", usage: str = "", **more: Any) -> None:
        """`usage` goes without the name, and `epilog` is shown as it is broken into lines."""
        super().__init__(
            prog=prog,
            usage=f"%(prog)s {usage}" if usage else None,
            description=description,
            epilog=epilog,
            formatter_class=_HelpFormatter,
            allow_abbrev=False,
            **more,
        )
        self.add_argument("--version", action="version", version=f"{prog} {__version__}", help=argparse.SUPPRESS)

    def error(self, message: str) -> NoReturn:
        raise Problem(f"{message} ({self.prog} --help lists the options)")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        words = [f"{word}=" if word in self.optional_values else word for word in args]
        return super().parse_known_args(words, namespace)


# ---- input ------------------------------------------------------------------------------------------


def read(name: str, consequence: str) -> "Profile":
    """The trace in a file. Warns if it is truncated, with the consequence. Raises Problem."""
    from jmassif.cli.terminal import ProgressBar
    from jmassif.reader.builder import load_file
    from jmassif.reader.input import STDIN, process_is_there
    from jmassif.reader.tokens import TraceError

    shown = "standard input" if name == STDIN else name
    try:
        with ProgressBar(shown) as progress:
            run = load_file(name, progress)
    except TraceError as error:
        raise Problem(f"{shown}: {error}")
    if not run.is_complete:
        run.is_running = not run.truncation and process_is_there(run.manifest)
        unknown = "the program still runs" if run.is_running else "no end record, the program was killed or still runs"
        warn(f"{shown}: truncated: {run.truncation or unknown}; {consequence}")
    if run.without_lines:
        warn(f"{shown}: {run.without_lines}")
    return run


def check_not_input(output: Optional[str], inputs: Sequence[str]) -> None:
    """Raises Problem if the output would replace an input."""
    for name in inputs if output and os.path.exists(output) else ():
        if os.path.exists(name) and os.path.samefile(name, output or ""):
            raise Problem(f"{output}: is the input too: name another file with -o")


# ---- output -----------------------------------------------------------------------------------------


def write_stream(stream: Optional[TextIO], pieces: Iterable[Piece]) -> None:
    """Write lines in the encoding of the stream, escaping what it lacks, and bytes as they are. Raises OSError."""
    if stream is None:  # closed before the program started
        raise OSError(9, os.strerror(9))
    encoding = stream.encoding or "utf-8"
    binary = stream.buffer
    for piece in pieces:
        binary.write(piece if isinstance(piece, bytes) else (piece + "\n").encode(encoding, "backslashreplace"))
    binary.flush()


def write_file(path: str, pieces: Iterable[Piece]) -> None:
    """Write lines as UTF-8, and bytes as they are, to the file at `path`, replacing it. Raises OSError."""
    place = os.path.realpath(path)
    try:
        mode: Optional[int] = os.stat(place).st_mode
    except FileNotFoundError:
        mode = None
    if mode and not stat.S_ISREG(mode):
        with open(place, "w", encoding="utf-8", errors="backslashreplace") as stream:
            write_stream(stream, pieces)
        return
    beside = os.path.join(os.path.dirname(place), f".jmassif.{os.getpid()}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if mode else 0o666)  # less the mask
    try:
        with open(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
            write_stream(stream, pieces)
        if mode:
            os.chmod(beside, stat.S_IMODE(mode))
        os.replace(beside, place)
    except BaseException:
        os.unlink(beside)
        raise


def write(lines: Iterable[Piece], output: Optional[str], what: str = "the report") -> None:
    """Write to the file, or to standard output if there is none. `what` names it to a waiting user. Raises Problem."""
    from jmassif.cli.terminal import is_terminal, while_working

    lines = while_working(lines, what, not output and is_terminal(sys.stdout))
    try:
        if output:
            write_file(output, lines)
        else:
            write_stream(sys.stdout, lines)
    except OSError as error:
        raise Problem(f"{output or 'standard output'}: cannot be written: {error.strerror}")


def show(lines: Iterable[str], output: Optional[str], colour: str, is_paged: bool) -> None:
    """Write a report for people: with colours if `colour` (auto, always or never) says so, and on a terminal paged.

    Raises Problem.
    """
    from jmassif.cli import terminal

    # All of it is made before any is shown: an error leaves no half report.
    lines = list(terminal.while_working(lines, "the report", False))
    if terminal.wants_colour(colour, None if output else sys.stdout):
        lines = terminal.coloured(lines)
    pager = terminal.pager() if is_paged and not output and terminal.is_terminal(sys.stdout) else None
    if pager:
        terminal.page(lines, pager)
    else:
        write(lines, output)


# ---- pages ------------------------------------------------------------------------------------------


def _open_page(path: str) -> None:
    """Show the file in the user's browser. Raises Problem."""
    import webbrowser
    from pathlib import Path

    address = Path(os.path.abspath(path)).as_uri()
    has_screen = sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    try:
        is_opened = has_screen and webbrowser.open(address)
    except webbrowser.Error:
        is_opened = False
    if not is_opened:
        raise Problem(f"no browser to open {path} with: open {address}, or copy the file to where there is one")


def write_page(
    lines: Iterable[str], inputs: Sequence[str], given: Optional[str], default: str, is_opened: bool
) -> None:
    """Write a page to the file `given` by the user, "-" being standard output, and open it. Raises Problem.

    Without a name it goes to standard output, if that is a file, or else to `default`, which a warning names.
    """
    output = given if given != "-" else None
    if not given:
        try:
            is_redirected = sys.stdout is not None and stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
        except (OSError, ValueError):  # closed, or none of the system's
            is_redirected = False
        output = None if is_redirected and not is_opened else default
    check_not_input(output, inputs)
    write(lines, output, "the page")
    if output and not given:
        warn(f"wrote {output} ({os.path.getsize(output) / 1e6:.1f} MB): open it in a browser")
    if output and is_opened:
        _open_page(output)
