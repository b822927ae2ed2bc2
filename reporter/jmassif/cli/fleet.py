# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif fleet`: recorded runs by the thousand in a database. Its actions are subcommands, each with options of its own."""

import argparse
import os
import time
from typing import Any, Dict, List, Tuple

from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.options import non_empty, number, views
from jmassif.cli.terminal import StatusLine, Working, bar
from jmassif.fleet import POOLS, VIEWS, FleetError
from jmassif.render.view import FormatError
from jmassif.units import count

_EPILOG = """\
examples:
  jmassif fleet load fleet.db traces/
  jmassif fleet diff fleet.db --group-by=jetpack --where 'board=*Orin*'"""


def build_parser(prog: str) -> Parser:
    about = "Keep recorded runs in a database, and compare groups of them."
    parser = Parser(prog, about, _EPILOG, "ACTION [OPTION]... DB")
    actions = parser.add_subparsers(
        title="actions, each with --help", dest="action", metavar="ACTION", parser_class=Parser
    )
    actions.required = True

    def add(name: str, description: str) -> Any:
        about = f"{description.capitalize()}."
        action = actions.add_parser(name, prog=f"{prog} {name}", help=description, description=about)
        action.add_argument("database", metavar="DB", help="a file, for SQLite, or postgresql://HOST/NAME")
        return action.add_argument

    def add_choice_and_output(option: Any, *formats: str) -> None:
        where = "only runs with a KEY that matches (!=: does not match) the PATTERN; all conditions must hold"
        option("--where", action="append", default=[], metavar="KEY=PATTERN", help=where)
        option("-o", "--output", type=non_empty, metavar="FILE", help="write to FILE [a page: jmassif.fleet.html]")
        choices = f"{', '.join(formats)} [{formats[0]}]"
        option("--format", choices=formats, default=formats[0], metavar="NAME", help=choices)

    option = add("load", "add runs from traces, and from directories of traces")
    option("traces", metavar="TRACE", nargs="+", help="a trace, or a directory to search for traces")
    jobs = number(1, 1000, is_whole=True)
    option("--jobs", type=jobs, metavar="N", help="processes that read traces [one a processor]")

    option = add("diff", "compare groups of runs")
    keys = "jetpack, l4t, board, pytorch, cuda, or any key of the manifest"
    option("--group-by", type=non_empty, required=True, metavar="KEY", help=keys)
    option("--base", metavar="VALUE", help="the group to compare with [the oldest version]")
    option("--by", type=views(VIEWS), default=list(VIEWS), metavar="VIEW,...", help=f"any of {', '.join(VIEWS)} [all]")
    pools = "bytes (host and device), host, device [device where a GPU has its own memory, else bytes]"
    option("--pool", choices=POOLS, default="", metavar="POOL", help=pools)
    level = number(0.0001, 50, "%")
    option("--level", type=level, default=1.0, metavar="PERCENT", help="significance level (family-wise) [1%%]")
    option("--incomplete", action="store_true", help="count runs that were killed, or still run, too")
    option("--all", action="store_true", help="show unchanged rows too")
    add_choice_and_output(option, "text", "markdown", "json", "html")

    option = add("runs", "list the runs, or write them as CSV or JSON lines")
    option("--figures", action="store_true", help="the figures of each run [as CSV]")
    add_choice_and_output(option, "text", "csv", "jsonl")
    return parser


# ---- actions -----------------------------------------------------------------------------------------


def _paths(names: List[str], database: str) -> Tuple[List[str], List[Tuple[str, str]]]:
    """The named traces and all files in directories but the database, each once; and the directories that cannot be read, with a reason.

    A large tree may have directories that are not for everybody (lost+found); the others are loaded all the same.
    """
    found: Dict[str, None] = {}
    refused: List[Tuple[str, str]] = []

    def refuse(error: OSError) -> None:
        refused.append((os.path.abspath(error.filename), f"cannot be read: {error.strerror}"))

    # SQLite keeps files beside a database while it is written to.
    own = {os.path.realpath(database) + end for end in ("", "-journal", "-wal", "-shm")}
    for name in names:
        paths = [name]
        if os.path.isdir(name):
            walked = sorted(os.walk(name, onerror=refuse))
            inner = (os.path.join(directory, file) for directory, _, files in walked for file in sorted(files))
            paths = [path for path in inner if os.path.isfile(path) and os.path.realpath(path) not in own]
        found.update(dict.fromkeys((os.path.abspath(path) for path in paths)))
    return list(found), refused


def _load(arguments: argparse.Namespace) -> int:
    from jmassif.fleet import database, load

    paths, refused = _paths(arguments.traces, arguments.database)
    begin = time.monotonic()
    with database.opened(arguments.database, may_be_new=True) as connection, StatusLine() as line:

        def progress(n_done: int) -> None:
            if line.is_due():
                line.show(f"{bar(n_done / len(paths))} {n_done:,} of {count(len(paths), 'trace')}")

        n_workers = arguments.jobs or os.cpu_count() or 1
        n_new, n_known, unreadable = load.load(connection, paths, n_workers, progress)
    refused += unreadable
    for path, reason in refused:
        common.warn(f"{path}: {reason}")
    seconds = time.monotonic() - begin
    common.warn(
        f"{count(n_new, 'trace')} added in {seconds:.1f} s, {n_known:,} there already, {len(refused):,} refused"
    )
    return 1 if refused else 0


def _diff(arguments: argparse.Namespace) -> int:
    from jmassif.fleet import compare, database, tables

    with database.opened(arguments.database) as connection, Working("comparing"):
        runs = compare.read_runs(connection, arguments.where)
        kept = runs if arguments.incomplete else runs[runs["is_complete"] == 1]
        options = arguments.base, arguments.by, arguments.pool, arguments.level / 100
        found = compare.compare(connection, kept, arguments.group_by, *options, len(runs) - len(kept))
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
        if arguments.format == "text" and not arguments.figures:
            lines = tables.write_list(runs)
        else:
            lines = tables.write_runs(connection, runs, arguments.format != "jsonl", arguments.figures)
        common.write(lines, arguments.output)
    return 0


_ACTIONS = {"load": _load, "diff": _diff, "runs": _runs}


def run(arguments: argparse.Namespace) -> int:
    common.check_not_input(getattr(arguments, "output", None), [arguments.database])
    try:
        return _ACTIONS[arguments.action](arguments)
    except (FleetError, FormatError) as error:
        raise Problem(str(error))
    except ImportError as error:
        raise Problem(f"needs {error.name}: apt install python3-sqlalchemy python3-pandas python3-scipy")
