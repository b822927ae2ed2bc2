# SPDX-License-Identifier: GPL-2.0-or-later
"""The command jm_print: reads the options, and turns whatever goes wrong into one line and exit status 2."""

import argparse
import gc
import os
import signal
import sys
from typing import Callable, Dict, Iterator, List, NoReturn, Optional

from jmassif import __version__
from jmassif.load import load_file
from jmassif.output import write_file, write_stream
from jmassif.profile import Profile
from jmassif.summary import SelectionError
from jmassif.trace import TraceError
from jmassif.units import printable
from jmassif.writers import BY, FOLDS, View, massif, text

_WRITERS: Dict[str, Callable[[Profile, View], Iterator[str]]] = {
    "text": text.write,
    "massif": massif.write,
}

# What recorder and reporter take for granted when nobody says otherwise, as massif does.
_DEFAULT_THRESHOLD = 1.0

_EPILOG = """\
Without options jm_print answers where the memory went at the peak: the ledger by owner, what the
start cost, and the stacks. With --format=massif the output opens in ms_print and massif-visualizer."""


class _Problem(Exception):
    """One line for the user."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Problem(f"{message} (jm_print --help lists the options)")


def _percent(text: str) -> float:
    try:
        value = float(text[:-1] if text.endswith("%") else text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f'"{text}" is no percentage from 0 to 100')
    return value


def _extent(text: str) -> int:
    value = int(text) if text.isdigit() and len(text) < 5 else 0
    if not 4 <= value <= 1000:
        raise argparse.ArgumentTypeError(f'"{text}" is no number from 4 to 1000')
    return value


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="jm_print",
        description="Shows what valgrind --tool=jmassif recorded.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    option = parser.add_argument
    option("file", metavar="FILE", help="the trace, as a rule jmassif.out.PID")
    option("--format", choices=sorted(_WRITERS), default="text", help="what to write [text]")
    option("-o", "--output", metavar="FILE", help="write to FILE [standard output]")
    option(
        "--snapshot",
        metavar="WHICH",
        help="the moment to explain: a snapshot's number, peak, peak-host, peak-device, end or last [peak]",
    )
    option(
        "--threshold",
        type=_percent,
        metavar="PERCENT",
        help="fold places below this share of the total [the recorder's --threshold, else 1]",
    )
    option(
        "--by",
        choices=BY,
        default="stack",
        help="what the trees begin with; python-line, python-function and module are tables [stack]",
    )
    option(
        "--fold",
        choices=FOLDS,
        help="make runs of frames inside Python, PyTorch and other packages one [internal in tables, none in trees]",
    )
    option("--no-source", action="store_true", help="leave the text of source lines out")
    option("--x", type=_extent, default=70, metavar="4..1000", help="the graph's width [70]")
    option("--y", type=_extent, metavar="4..1000", help="the graph's height [what fits a screen]")
    option("--version", action="version", version=f"jm_print {__version__}")
    return parser


def _view(arguments: argparse.Namespace, profile: Profile) -> View:
    threshold = arguments.threshold
    if threshold is None:
        threshold = min(profile.option("threshold", _DEFAULT_THRESHOLD), 100.0)
    return View(
        arguments.snapshot,
        threshold,
        arguments.by,
        arguments.x,
        arguments.y,
        arguments.fold,
        not arguments.no_source,
    )


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _say(text: str) -> None:
    """One line on standard error, whatever the text holds."""
    if sys.stderr:
        sys.stderr.write(f"jm_print: {printable(text)}\n")


def _print(arguments: argparse.Namespace) -> None:
    name = arguments.file
    try:
        profile = load_file(name)
    except TraceError as error:
        raise _Problem(f"{name}: {error}")
    if not profile.is_complete:
        where = profile.truncation or "no end on record, the program was killed or still runs"
        _say(f"{name}: truncated: {where}; showing what came before")
    if arguments.output and _is_same_file(name, arguments.output):
        raise _Problem(f"{arguments.output}: is the input too: name another file with -o")
    try:
        lines = _WRITERS[arguments.format](profile, _view(arguments, profile))
        if arguments.output:
            write_file(arguments.output, lines)
        else:
            write_stream(sys.stdout, lines)
    except SelectionError as error:
        raise _Problem(f"{name}: {error}")
    except OSError as error:
        raise _Problem(f"{arguments.output or 'standard output'}: cannot be written: {error.strerror}")


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs jm_print with `arguments` (those of the process by default); the exit status."""
    try:
        _print(_parser().parse_args(arguments))
    except _Problem as problem:
        _say(str(problem))
        return 2
    return 0


def run() -> NoReturn:
    """The program: like any other filter it dies quietly when its reader has gone, or at Ctrl-C."""
    # A profile is a million small objects without a cycle: to search them for some takes a tenth of the time.
    gc.disable()
    for number in (signal.SIGPIPE, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    sys.exit(main())
