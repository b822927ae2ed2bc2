# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif fleet`: recorded runs by the thousand in a database. Its actions are subcommands, each with options of its own."""

import argparse
import os
import time
from contextlib import ExitStack
from typing import Any, List

from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.options import non_empty, number, views
from jmassif.cli.terminal import StatusLine, Working, bar
from jmassif.fleet import VIEWS, FleetError, needed
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
        about = f"{description.capitalize()}."
        action = actions.add_parser(name, prog=f"{prog} {name}", help=description, description=about)
        action.add_argument("database", metavar="DB", help="a file, for SQLite, or postgresql://HOST/NAME")
        return action.add_argument

    def add_jobs(option: Any) -> None:
        jobs = number(1, 1000, is_whole=True)
        option("--jobs", type=jobs, metavar="N", help="processes that read traces [one a processor]")

    def add_choice_and_output(option: Any, *formats: str) -> None:
        where = "only runs with a KEY that matches (!=: does not match) the PATTERN; all conditions must hold"
        option("--where", action="append", default=[], metavar="KEY=PATTERN", help=where)
        option("-o", "--output", type=non_empty, metavar="FILE", help="write to FILE [a page: jmassif.fleet.html]")
        choices = f"{', '.join(formats)} [{formats[0]}]"
        option("--format", choices=formats, default=formats[0], metavar="NAME", help=choices)

    option = add("load", "add runs from traces, and from directories of traces")
    option("traces", metavar="TRACE", nargs="+", help="a trace, or a directory to search for traces")
    add_jobs(option)
    on = "read on a Dask cluster: its scheduler, tcp://HOST:8786; a TRACE may be HOST:DIR, of workers on such hosts (*: all)"
    option("--on", type=non_empty, metavar="ADDRESS", help=on)

    option = add("watch", "load traces as they arrive, until SIGTERM")
    option("traces", metavar="DIR", nargs="+", help="a directory to search for traces")
    add_jobs(option)
    seconds = number(0.01, 86400)
    every, settle = "seconds between two scans [10]", "seconds that a trace without an end must be left alone for [60]"
    option("--every", type=seconds, default=10.0, metavar="SECONDS", help=every)
    option("--settle", type=seconds, default=60.0, metavar="SECONDS", help=settle)

    option = add("diff", "compare groups of runs")
    keys = "jetpack, l4t, board, pytorch, cuda, or any key of the manifest"
    option("--group-by", type=non_empty, required=True, metavar="KEY", help=keys)
    option("--base", metavar="VALUE", help="the group to compare with [the oldest version]")
    option("--by", type=views(VIEWS), default=list(VIEWS), metavar="VIEW,...", help=f"any of {', '.join(VIEWS)} [all]")
    level = number(0.0001, 50, "%")
    option("--level", type=level, default=1.0, metavar="PERCENT", help="significance level (family-wise) [1%%]")
    option("--incomplete", action="store_true", help="count runs that were killed, or still run, too")
    option("--all", action="store_true", help="show unchanged rows too")
    add_choice_and_output(option, "text", "markdown", "json", "html")

    add_choice_and_output(add("runs", "list the runs, or write them as CSV"), "text", "csv")
    return parser


# ---- actions -----------------------------------------------------------------------------------------


def _load(arguments: argparse.Namespace) -> int:
    from jmassif.fleet import database, load

    if arguments.on and arguments.jobs:
        raise Problem("--jobs is of this machine, and --on of a cluster: leave one of them out")
    refused: List[str] = []
    begin, n_loaded, on = time.monotonic(), [0, 0], arguments.on  # before, and now
    with ExitStack() as stack:
        readers = stack.enter_context(load.cluster(on)) if on else load.Readers(arguments.jobs)
        found = list(dict.fromkeys(readers.find_all(arguments.traces, arguments.database)))
        connection = stack.enter_context(database.opened(arguments.database, may_be_new=True))
        line = stack.enter_context(StatusLine())
        for n_done, (path, reason, is_new) in enumerate(load.load(connection, found, readers), 1):
            n_loaded[is_new] += not reason
            refused += [f"{path}: {reason}"] * bool(reason)
            if line.is_due():
                line.show(f"{bar(n_done / len(found))} {n_done:,} of {count(len(found), 'trace')}")
    for text in sorted(refused):
        common.warn(text)
    added = f"{count(n_loaded[1], 'trace')} added in {time.monotonic() - begin:.1f} s"
    common.warn(f"{added}, {n_loaded[0]:,} there already, {len(refused):,} refused")
    return 1 if refused else 0


def _watch(arguments: argparse.Namespace) -> int:
    from jmassif.fleet import load

    for name in arguments.traces:
        if not os.path.isdir(name):
            raise Problem(f"{name}: is not a directory")
    times = arguments.every, arguments.settle
    n = load.watch(arguments.database, arguments.traces, load.Readers(arguments.jobs), *times, common.warn)
    common.warn(f"{count(n, 'trace')} added")
    return 0


def _diff(arguments: argparse.Namespace) -> int:
    from jmassif.fleet import compare, database, tables

    with database.opened(arguments.database) as connection, Working("comparing"):
        runs = compare.Runs(connection, arguments.where, arguments.by, arguments.incomplete)
        found = compare.compare(runs, arguments.group_by, arguments.base, arguments.level / 100)
    if arguments.format == "html":
        page = tables.write_page(found)
        common.write_page(page, [arguments.database], arguments.output, "jmassif.fleet.html", False)
    elif arguments.format == "json":
        common.write(tables.write_json(found), arguments.output)
    else:
        common.write(tables.write_tables(found, arguments.all, arguments.format == "markdown"), arguments.output)
    return 0


def _runs(arguments: argparse.Namespace) -> int:
    from jmassif.fleet import compare, database, tables

    with database.opened(arguments.database) as connection:
        runs = compare.read_runs(connection, arguments.where)
        common.write(tables.write_runs(runs, arguments.format == "csv"), arguments.output)
    return 0


_ACTIONS = {"load": _load, "watch": _watch, "diff": _diff, "runs": _runs}


def run(arguments: argparse.Namespace) -> int:
    common.check_not_input(getattr(arguments, "output", None), [arguments.database])
    try:
        return _ACTIONS[arguments.action](arguments)
    except (FleetError, FormatError) as error:
        raise Problem(str(error))
    except ImportError as error:
        raise Problem(needed(error))
