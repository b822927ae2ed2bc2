# SPDX-License-Identifier: GPL-2.0-or-later
"""The command jm_top: follows runs while they go on, on the terminal."""

import argparse
import os
import shutil
import sys
import time
from typing import List, NoReturn, Optional

from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.terminal import coloured, is_terminal, wants_colour
from jmassif.live.run import ORDERS, Family
from jmassif.cli.watch import Watching
from jmassif.reader.input import STDIN, expand
from jmassif.reader.tokens import TraceError
from jmassif.render.top import draw, frame

_NAME = "jm_top"

_EPILOG = """\
TRACE is what a run is writing, as a rule jmassif.out.PID; a finished one is shown as it was at its end. Traces
of children that appear beside it are followed too. A pipe is one as well, and - is standard input.

keys: q quit, p pause, s sort, tab next process, up and down scroll, ? help

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
        from jmassif.cli import screen
    except ImportError:
        raise Problem("this Python has no curses: --once prints one frame")

    def also() -> List[int]:
        found = (run.follower.fileno() for run in watching.family.runs)
        return [descriptor for descriptor in found if descriptor is not None]

    try:
        screen.show(
            lambda: watching.poll(_BITE_SECONDS),
            lambda width, height: draw(watching.screen(), width, height),
            watching.press,
            seconds,
            also,
        )
    except screen.NoTerminal as problem:
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
