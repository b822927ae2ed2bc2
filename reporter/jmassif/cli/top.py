# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif top`: follows runs on the terminal while they are recorded."""

import argparse
import os
import shutil
import sys
import time
from typing import List

from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.options import add_traces, number, shown_name, traces_of
from jmassif.cli.terminal import coloured, is_terminal, wants_colour
from jmassif.cli.watch import Watching
from jmassif.live.run import ORDERS, Family
from jmassif.reader.input import STDIN
from jmassif.reader.tokens import TraceError
from jmassif.render.top import draw, frame

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
    option(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        metavar="WHEN",
        help="with --once: auto, always, never [auto: on a terminal]",
    )
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


def _print_once(watching: Watching, colour: str) -> None:
    _read_all(watching)
    watching.family.settle()
    size = shutil.get_terminal_size()
    lines = frame(watching.screen(), size.columns, size.lines)
    common.write(coloured(lines) if wants_colour(colour, sys.stdout) else lines, None)


def _show(watching: Watching, seconds: float) -> None:
    if not is_terminal(sys.stdout):
        raise Problem("standard output is not a terminal to draw on: --once prints one frame")
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


def run(arguments: argparse.Namespace) -> int:
    names = traces_of(arguments)
    if STDIN in names and sys.stdin is not None and sys.stdin.isatty():
        raise Problem("standard input is the terminal: give it a trace, as in: ssh board cat FIFO | jmassif top -")
    try:
        watching = Watching(Family(names))
        watching.order = arguments.sort
        if arguments.once:
            _print_once(watching, arguments.color)
        else:
            _show(watching, arguments.interval)
    except TraceError as error:
        name = next((name for name in names if not os.path.exists(name) and name != STDIN), names[0])
        raise Problem(f"{shown_name(name)}: {error}")
    return 0
