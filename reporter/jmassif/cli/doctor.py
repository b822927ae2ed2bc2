# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif doctor`: what stands in the way of recording on this machine.

The script `jmassif` runs it, and tells it where the recorder is. Before a recording it runs the quick part, which says one line or
nothing and imports little.
"""

import argparse
import signal
import sys
from typing import Iterator, List, NoReturn, Optional, Sequence

from jmassif.doctor.checks import all_findings, urgent_findings
from jmassif.doctor.machine import FAILS, Finding, Machine
from jmassif.units import printable
from jmassif.version import __version__


_NAME = "jmassif doctor"

_EPILOG = """\
Each line says ok; what is lost, and how to mend it; or FAILS, and then nothing useful would be recorded.

examples:
  jmassif doctor
  jmassif doctor python3 train.py      for this script: the memory that it will need, the interpreter that runs it

exit status: 0 if a program can be recorded, 1 if not, 2 bad input"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{_NAME}: {printable(message)} ({_NAME} --help lists the options)\n")
        sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=_NAME,
        usage="%(prog)s [--json] [--root DIR] [PROGRAM ...]",
        description="Tells what stands in the way of recording on this machine.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    option = parser.add_argument
    option("program", nargs=argparse.REMAINDER, metavar="PROGRAM", help="what will be recorded, with its arguments")
    option("--json", action="store_true", help="write the findings as JSON")
    option("--root", default="", metavar="DIR", help="where the board's own /proc, /sys, /dev and /etc are [/]")
    for name in ("--tools", "--valgrind"):  # from the script
        option(name, default="", help=argparse.SUPPRESS)
    option("--quick", action="store_true", help=argparse.SUPPRESS)
    return parser


def _text(findings: Sequence[Finding]) -> Iterator[str]:
    for state, name, text, mend in ((finding.state, finding.name, finding.text, finding.mend) for finding in findings):
        yield f"{state:<6} {name:<12} {printable(text)}\n"
        if mend:
            yield f"{'':<19} → {printable(mend)}\n"


def _json(findings: Sequence[Finding]) -> str:
    import json

    rows = [{"name": f.name, "state": f.state.lower(), "text": f.text, "mend": f.mend} for f in findings]
    works = all(finding.state != FAILS for finding in findings)
    return json.dumps({"jmassif": __version__, "works": works, "findings": rows}, indent=2) + "\n"


def _without_options(words: Sequence[str]) -> List[str]:
    """What is left of Valgrind's command line: the program."""
    words = list(words)
    while words and words[0].startswith("-"):
        words.pop(0)
    return words


def _quick(machine: Machine) -> None:
    """At most one line."""
    found = urgent_findings(machine)
    if found:
        first, more = found[0], len(found) - 1
        others = f"; {more} more" if more else ""
        sys.stderr.write(
            f"jmassif: {printable(first.name)}: {printable(first.text)} (jmassif doctor says how to mend it{others})\n"
        )


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command with `arguments` (those of the process by default); the exit status."""
    given = _parser().parse_args(arguments)
    words = given.program[1:] if given.program[:1] == ["--"] else given.program
    program = _without_options(words)
    traces = [word for word in words[: len(words) - len(program)] if word.startswith("--jmassif-out-file=")]
    trace = traces[-1].partition("=")[2] if traces else ""
    machine = Machine(given.root, given.tools, given.valgrind, program, trace=trace)
    if given.quick:
        _quick(machine)
        return 0
    if program and not machine.which(program[0]):
        sys.stderr.write(f"{_NAME}: {printable(program[0])}: there is no such program\n")
        return 2
    findings = all_findings(machine)
    sys.stdout.write(_json(findings) if given.json else "".join(_text(findings)))
    return 1 if any(finding.state == FAILS for finding in findings) else 0


def run() -> NoReturn:
    """The program."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
