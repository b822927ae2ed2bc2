# SPDX-License-Identifier: GPL-2.0-or-later
"""What the commands share: whatever goes wrong becomes one line on standard error and exit status 2.

A command is a function from its arguments to an exit status, run by `main`; `run` makes a process of it.
"""

import argparse
import gc
import os
import signal
import stat
import sys
import tempfile
from typing import Callable, Iterable, List, NoReturn, Optional, Sequence, TextIO, Union

from jmassif.cli.terminal import ProgressBar, coloured, has_pager, is_terminal, page, pager, wants_colour, while_working
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from jmassif.reader.input import STDIN
from jmassif.reader.tokens import TraceError
from jmassif.units import printable
from jmassif.version import __version__


# ---- output ----
# Where a report goes, as lines of text or as pieces of a binary format: a stream, or a file that is there whole or not at all.
#
# A file is written beside its place and moved there at the end, so a full disk never leaves half a report, nor a missing
# one where an older one was. What is no regular file (a pipe, /dev/null) cannot be replaced and is written to directly.

Piece = Union[str, bytes]


def write_stream(stream: Optional[TextIO], pieces: Iterable[Piece]) -> None:
    """Writes lines in the stream's encoding, what that lacks escaped, and bytes as they are. Raises OSError."""
    if stream is None:  # closed before the program started
        raise OSError(9, os.strerror(9))
    encoding = stream.encoding or "utf-8"
    binary = stream.buffer
    for piece in pieces:
        binary.write(piece if isinstance(piece, bytes) else (piece + "\n").encode(encoding, "backslashreplace"))
    binary.flush()


def _new_file_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def write_file(path: str, pieces: Iterable[Piece]) -> None:
    """Writes lines as UTF-8, and bytes as they are, to the file at `path`, replacing what it held. Raises OSError."""
    place = os.path.realpath(path)
    try:
        mode = os.stat(place).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG | _new_file_mode()
    if not stat.S_ISREG(mode):
        with open(place, "w", encoding="utf-8", errors="backslashreplace") as stream:
            write_stream(stream, pieces)
        return
    handle, beside = tempfile.mkstemp(prefix=".jm_print.", dir=os.path.dirname(place))
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
            write_stream(stream, pieces)
        os.chmod(beside, stat.S_IMODE(mode))
        os.replace(beside, place)
    except BaseException:
        os.unlink(beside)
        raise


# ---- common ----


class Problem(Exception):
    """One line for the user."""


class Parser(argparse.ArgumentParser):
    def __init__(self, name: str, description: str, epilog: str) -> None:
        """`epilog` is shown as it is broken into lines."""
        super().__init__(
            prog=name,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.add_argument("--version", action="version", version=f"{name} {__version__}")

    def error(self, message: str) -> NoReturn:
        raise Problem(f"{message} ({self.prog} --help lists the options)")


def filled(text: str) -> str:
    """An argument's type: what a script's empty variable leaves is no value, and not as good as no option."""
    if not text:
        raise argparse.ArgumentTypeError('"" says nothing: leave the option out, or give it a value')
    return text


def say(command: str, text: str) -> None:
    """One line on standard error, whatever the text holds."""
    if sys.stderr:
        sys.stderr.write(f"{command}: {printable(text)}\n")


def read(command: str, name: str, consequence: Optional[str]) -> Profile:
    """The trace in a file. Says so if it is truncated, and what follows from that; None: that it is a problem.

    Raises Problem.
    """
    shown = "standard input" if name == STDIN else name
    try:
        with ProgressBar(shown) as progress:
            profile = load_file(name, progress)
    except TraceError as error:
        raise Problem(f"{shown}: {error}")
    if not profile.is_complete:
        where = profile.truncation or "no end on record, the program was killed or still runs"
        if consequence is None:
            raise Problem(f"{shown}: truncated: {where}")
        say(command, f"{shown}: truncated: {where}; {consequence}")
    return profile


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def keep_inputs(output: Optional[str], inputs: Sequence[str]) -> None:
    """Raises Problem if the output would replace an input."""
    if output and any(_is_same_file(name, output) for name in inputs):
        raise Problem(f"{output}: is the input too: name another file with -o")


def write(lines: Iterable[str], output: Optional[str], what: str = "the report") -> None:
    """Writes to the file, or to standard output if there is none. Raises Problem. `what` is it, in words for people who wait."""
    lines = while_working(lines, what, not output and is_terminal(sys.stdout))
    try:
        if output:
            write_file(output, lines)
        else:
            write_stream(sys.stdout, lines)
    except OSError as error:
        raise Problem(f"{output or 'standard output'}: cannot be written: {error.strerror}")


def show(lines: Iterable[str], output: Optional[str], colour: str, is_paged: Optional[bool]) -> None:
    """write() for a report that people read: with colours if `colour` (auto, always or never) says so, and on a terminal paged.

    `is_paged` is what the user asked for; None: nothing, so a pager that is missing is no problem. Raises Problem.
    """
    if wants_colour(colour, None if output else sys.stdout):
        lines = coloured(lines)
    if is_paged is None:
        is_paged = has_pager()
    if not is_paged or output or not is_terminal(sys.stdout):
        write(lines, output)
        return
    try:
        page(while_working(lines, "the report", True), pager())
    except OSError as error:
        raise Problem(f"the report cannot be paged: {error.strerror}: set PAGER, or use --no-pager")


def main(name: str, command: Callable[[Optional[List[str]]], int], arguments: Optional[List[str]]) -> int:
    """Runs a command with `arguments` (those of the process by default); the exit status."""
    try:
        return command(arguments)
    except Problem as problem:
        say(name, str(problem))
        return 2


def run(main_function: Callable[[], int]) -> NoReturn:
    """The program: like any other filter it dies quietly when its reader has gone, or at Ctrl-C."""
    # A profile is a million small objects without a cycle: to search them for some takes a tenth of the time.
    gc.disable()
    for number in (signal.SIGPIPE, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    sys.exit(main_function())
