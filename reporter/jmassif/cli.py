# SPDX-License-Identifier: GPL-2.0-or-later
"""The command jm_print: its options. What goes wrong is one line and exit status 2; see command.py."""

import argparse
from typing import Callable, Dict, Iterator, List, NoReturn, Optional

from jmassif import __version__, command
from jmassif.command import Parser, Problem
from jmassif.processes import join
from jmassif.profile import Profile
from jmassif.summary import SelectionError
from jmassif.writers import BY, FOLDS, View, massif, processes, text

_WRITERS: Dict[str, Callable[[Profile, View], Iterator[str]]] = {
    "text": text.write,
    "massif": massif.write,
}

# What recorder and reporter take for granted when nobody says otherwise, as massif does.
_DEFAULT_THRESHOLD = 1.0

_EPILOG = """\
Without options jm_print answers where the memory went at the peak: the ledger by owner, what the
start cost, and the stacks. With --format=massif the output opens in ms_print and massif-visualizer."""


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
    parser = Parser(
        prog="jm_print",
        description="Shows what valgrind --tool=jmassif recorded.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    option = parser.add_argument
    option("files", metavar="FILE", nargs="+", help="a trace, as a rule jmassif.out.PID; of several processes, several")
    option("--format", choices=sorted(_WRITERS), default="text", help="what to write [text]")
    option("-o", "--output", metavar="FILE", help="write to FILE [standard output]")
    option(
        "--snapshot",
        metavar="WHICH",
        help="the moment to explain: a snapshot's number, a mark, peak, peak-host, peak-device, start, end or last [peak]",
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
    option("--each", action="store_true", help="of several processes, report on each and not on the largest alone")
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


def _print(given: Optional[List[str]]) -> int:
    arguments = _parser().parse_args(given)
    names = command.inputs(arguments.files)
    if len(names) > 1 and arguments.format != "text":
        raise Problem(f"--format={arguments.format} shows one process: name one trace ({len(names)} are named)")
    profiles = [command.read("jm_print", name, "showing what came before") for name in names]
    command.keep_inputs(arguments.output, names)
    try:
        command.write(_lines(arguments, names, profiles), arguments.output)
    except SelectionError as error:
        raise Problem(f"{names[0]}: {error}")
    return 0


def _lines(arguments: argparse.Namespace, names: List[str], profiles: List[Profile]) -> Iterator[str]:
    if len(profiles) == 1:
        return _WRITERS[arguments.format](profiles[0], _view(arguments, profiles[0]))
    job = join(list(zip(names, profiles)))
    return processes.write(job, lambda profile: _view(arguments, profile), arguments.each)


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs jm_print with `arguments` (those of the process by default); the exit status."""
    return command.main("jm_print", _print, arguments)


def run() -> NoReturn:
    command.run(main)
