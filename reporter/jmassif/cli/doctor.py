# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif doctor`: obstacles to recording on this machine.

The script `jmassif` passes the recorder's place. Before a recording it runs the quick part, which writes one line or nothing and
imports little.
"""

import argparse
import sys
from itertools import dropwhile
from typing import Iterator, List, Tuple

from jmassif.cli.common import Parser, Problem, write
from jmassif.doctor.checks import FAILS, Machine, Verdict, urgent, verdicts
from jmassif.units import printable
from jmassif.version import __version__

_EPILOG = """\
Each line says ok, names what is lost and how to mend it, or says FAILS: then a
recording would be of no use.

examples:
  jmassif doctor
  jmassif doctor python3 train.py   also: memory and interpreter for this script

exit status: 0 if a program can be recorded, 1 if not, 2 bad input"""


def build_parser(prog: str) -> Parser:
    parser = Parser(
        prog, "Find obstacles to recording on this machine.", _EPILOG, "[OPTION]... [PROGRAM [ARGUMENT]...]"
    )
    option = parser.add_argument
    option("words", nargs=argparse.REMAINDER, metavar="PROGRAM", help="the program to record, with its arguments")
    option("--json", action="store_true", help="write the findings as JSON")
    option("--root", default="", metavar="DIR", help="the directory with the board's /proc, /sys, /dev and /etc [/]")
    for name in ("--tools", "--valgrind"):  # from the script
        option(name, default="", help=argparse.SUPPRESS, metavar="PATH")
    option("--quick", action="store_true", help=argparse.SUPPRESS)
    option("--recorder", choices=("native", "valgrind"), default="native", help=argparse.SUPPRESS)
    return parser


def _text(found: List[Tuple[str, Verdict]]) -> Iterator[str]:
    for name, (state, text, mend) in found:
        yield f"{state:<6} {name:<12} {printable(text)}"
        if mend:
            yield f"{'':<19} → {printable(mend)}"


def _json(found: List[Tuple[str, Verdict]], works: bool) -> str:
    import json

    rows = [{"name": name, "state": row.state.lower(), "text": row.text, "mend": row.mend} for name, row in found]
    return json.dumps({"jmassif": __version__, "works": works, "findings": rows}, indent=2)


def run(arguments: argparse.Namespace) -> int:
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    program = list(dropwhile(lambda word: word.startswith("-"), words))  # after Valgrind's options
    traces = [word for word in words[: len(words) - len(program)] if word.startswith("--jmassif-out-file=")]
    trace = traces[-1].partition("=")[2] if traces else ""
    machine = Machine(
        arguments.root, arguments.tools, arguments.valgrind, program, trace=trace, recorder=arguments.recorder
    )
    if arguments.quick:
        for name, verdict in urgent(machine)[:1]:
            sys.stderr.write(f"jmassif: {name}: {printable(verdict.text)} (jmassif doctor says how to mend it)\n")
        return 0
    if program and not machine.which(program[0]):
        raise Problem(f"{program[0]}: no such program")
    found = verdicts(machine)
    works = all(verdict.state != FAILS for _, verdict in found)
    write([_json(found, works)] if arguments.json else _text(found), None)
    return 0 if works else 1
