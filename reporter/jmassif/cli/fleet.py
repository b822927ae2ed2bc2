# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif fleet`: recorded runs by the thousand in a database. Its actions are subcommands, each with options of its own."""

import argparse
import time
from contextlib import ExitStack
from typing import Any, Set

from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.options import non_empty, number
from jmassif.cli.terminal import StatusLine, Working
from jmassif.fleet import FleetError, needed
from jmassif.render.view import FormatError
from jmassif.units import count

_EPILOG = """\
examples:
  jmassif fleet load fleet.db traces/
  jmassif fleet diff fleet.db --group-by=jetpack --where 'board=*Orin*'"""


def build_parser(prog: str) -> Parser:
    about = "Keep recorded runs in a database, and compare groups of them."
    parser = Parser(prog, about, _EPILOG, "ACTION [OPTION]... DB")
    title = "actions, each with --help"
    actions = parser.add_subparsers(title=title, dest="action", metavar="ACTION", parser_class=Parser)
    actions.required = True

    def add(name: str, description: str) -> Any:
        action = actions.add_parser(name, prog=f"{prog} {name}", help=description, description=f"{description}.")
        action.add_argument("database", metavar="DB", help="a file, for SQLite, or postgresql://HOST/NAME")
        return action

    for name, what in (("load", "add runs from traces"), ("watch", "load traces as they arrive, until SIGTERM")):
        action = add(name, what)
        action.add_argument("traces", metavar="TRACE", nargs="+", help="a trace, or a directory to search for traces")
        readers = action.add_mutually_exclusive_group()
        jobs = number(1, 1000, is_whole=True)
        readers.add_argument("--jobs", type=jobs, metavar="N", help="processes that read traces [one a processor]")
        on = "read on a Dask cluster, by its scheduler's address, tcp://HOST:8786: all workers see the same files"
        readers.add_argument("--on", type=non_empty, metavar="ADDRESS", help=on)
    every = "seconds from scan to scan, and for which a file must have been left alone [30]"
    action.add_argument("--every", type=number(0.01, 86400), default=30.0, metavar="SECONDS", help=every)

    option = add("diff", "compare groups of runs").add_argument
    keys = "jetpack, l4t, board, pytorch, cuda, or any key of the manifest"
    option("--group-by", type=non_empty, required=True, metavar="KEY", help=keys)
    option("--base", metavar="VALUE", help="the group to compare with [the oldest version]")
    where = "only runs with a KEY that matches (!=: does not match) the PATTERN; all conditions must hold"
    option("--where", action="append", default=[], metavar="KEY=PATTERN", help=where)
    formats = ("text", "json", "html")
    option("--format", choices=formats, default="text", metavar="NAME", help=f"{', '.join(formats)} [text]")
    option("-o", "--output", type=non_empty, metavar="FILE", help="write to FILE [a page: jmassif.fleet.html]")
    return parser


# ---- actions -----------------------------------------------------------------------------------------


def _load(arguments: argparse.Namespace) -> int:
    from jmassif.fleet import database, load, reduce

    name, traces, is_watch = arguments.database, arguments.traces, arguments.action == "watch"
    refused: Set[str] = set()
    begin, n_loaded = time.monotonic(), [0, 0]  # before, and now
    with ExitStack() as stack:
        readers = stack.enter_context(load.cluster(arguments.on)) if arguments.on else load.Readers(arguments.jobs)
        line = stack.enter_context(StatusLine())
        if is_watch:
            outcomes = load.watch(name, traces, readers, arguments.every, common.warn)
        else:
            connection = stack.enter_context(database.opened(name, may_be_new=True))
            outcomes = load.load(connection, reduce.files(traces, name), readers)
        for path, reason, is_new in outcomes:
            n_loaded[is_new] += not reason
            text = f"{path}: {reason}"
            if reason and text not in refused and (is_new or not is_watch):
                refused.add(text)
                line.__exit__()
                common.warn(text)
            elif line.is_due():
                line.show(f"{count(n_loaded[1], 'trace')} added")
    more = f" in {time.monotonic() - begin:.1f} s, {n_loaded[0]:,} there already, {len(refused):,} refused"
    common.warn(f"{count(n_loaded[1], 'trace')} added{'' if is_watch else more}")
    return 1 if refused and not is_watch else 0


def _diff(arguments: argparse.Namespace) -> int:
    from jmassif.fleet import compare, database, tables

    with database.opened(arguments.database) as connection, Working("comparing"):
        runs = compare.Runs(connection, arguments.where)
        found = compare.compare(runs, arguments.group_by, arguments.base)
    if arguments.format == "html":
        page = tables.write_page(found)
        common.write_page(page, [arguments.database], arguments.output, "jmassif.fleet.html", False)
    else:
        write = tables.write_json if arguments.format == "json" else tables.write_text
        common.write(write(found), arguments.output)
    return 0


def run(arguments: argparse.Namespace) -> int:
    common.check_not_input(getattr(arguments, "output", None), [arguments.database])
    try:
        return _diff(arguments) if arguments.action == "diff" else _load(arguments)
    except (FleetError, FormatError) as error:
        raise Problem(str(error))
    except ImportError as error:
        raise Problem(needed(error))
