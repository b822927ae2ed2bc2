# SPDX-License-Identifier: GPL-2.0-or-later
"""The subcommands of `jmassif`. Only the chosen one is imported.

The module of a command has two functions: `build_parser(prog)`, and `run(arguments)`, which returns the exit status. That of report
is export's too. Bad input is one line on standard error and exit status 2.
"""

import gc
import signal
import sys
from importlib import import_module
from typing import Any, List, NoReturn, Optional

from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.launcher import record_by_wheel

COMMANDS = {
    "report": "show where a recorded program's memory went",
    "export": "write a trace in a format of another program",
    "diff": "compare recorded runs",
    "check": "check recorded runs against memory budgets",
    "fit": "say whether a training fits with another batch or other settings",
    "top": "follow runs while they are recorded",
    "serve": "serve the page of runs to a browser on this machine",
    "fleet": "keep many runs in a database, and compare groups of them",
    "doctor": "find obstacles to recording on this machine",
}


def _module(command: str) -> Any:
    return import_module(f"jmassif.cli.{'report' if command == 'export' else command}")


def build_parser(command: str, prog: str = "") -> Parser:
    """The parser of a subcommand; `prog` is its name in messages, by default `jmassif COMMAND`."""
    module = _module(command)
    build = module.build_export_parser if command == "export" else module.build_parser
    parser: Parser = build(prog or f"jmassif {command}")
    return parser


def main(arguments: Optional[List[str]] = None, prog: str = "") -> int:
    """Run the subcommand that `arguments` begin with (by default those of the process); the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    command = words[0] if words else ""
    common.program = prog or f"jmassif {command}".rstrip()
    try:
        if command in ("-h", "--help", "--version"):
            rows = "\n".join(f"  {name:<8}  {text}" for name, text in COMMANDS.items())
            about = 'Heap and CUDA memory profiler. "python3 -m jmassif SCRIPT" records a script.'
            Parser("jmassif", about, f"commands (each has --help):\n{rows}", "COMMAND [OPTION]...").parse_args(
                words[:1]
            )
        if command not in COMMANDS:
            common.program = "jmassif"
            raise Problem(f'unknown command "{command}"; there are {", ".join(COMMANDS)}')
        parsed = build_parser(command, prog).parse_args(words[1:])
        status: int = _module(command).run(parsed)
        return status
    except Problem as problem:
        common.warn(str(problem))
        return 2


def run(command: str = "", prog: str = "") -> NoReturn:
    """The process `jmassif`, or a short name of one `command`. Like any filter it ends quietly when its reader is gone."""
    # A trace becomes a million small objects without a cycle; searching them for cycles takes a tenth of the time.
    gc.disable()
    for number in (signal.SIGPIPE, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    if not command and sys.argv[1:] and (sys.argv[1] not in COMMANDS or sys.argv[1] == "doctor"):
        record_by_wheel(sys.argv[1:])
    sys.exit(main([command] * bool(command) + sys.argv[1:], prog))


def jm_print() -> NoReturn:
    run("report", "jm_print")


def jm_diff() -> NoReturn:
    run("diff", "jm_diff")
