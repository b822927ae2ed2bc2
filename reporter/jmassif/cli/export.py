# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif export`: a trace in the format of another program."""

import argparse

from jmassif.cli import report
from jmassif.cli.common import Parser
from jmassif.cli.formats import EXPORTS, FORMATS
from jmassif.cli.options import add_traces

_EPILOG = f"""\
formats:
{''.join(f'  {name:<12}{FORMATS[name].help}' + chr(10) for name in EXPORTS)}examples:
  jmassif export --format=massif -o massif.out.4711 jmassif.out.4711
  jmassif export --format=json jmassif.out.4711 | jq .ledger"""


def build_parser(prog: str) -> Parser:
    parser = Parser(prog, "Write a trace in a format of another program.", _EPILOG, "--format=NAME [OPTION]... [TRACE]")
    add_traces(parser)
    report.add_output(parser, EXPORTS, "see below")
    report.add_selection(parser)
    report.add_value(parser, "figure of a stack in folded and speedscope", "count resident pages in massif, too")
    parser.set_defaults(stacks=False, all=False, each=False, suppressions=[], source=None, no_source=False)
    parser.set_defaults(width=None, height=None, color="never", pager=False, open=False)
    return parser


def run(arguments: argparse.Namespace) -> int:
    return report.run(arguments)
