# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif fleet`: recorded runs by the thousand in a database. Its actions are subcommands, each with options of its own."""

import argparse
import os
import time
from contextlib import contextmanager
from typing import Dict, Iterator, List, Optional, Tuple

from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.options import non_empty, number, views
from jmassif.cli.terminal import StatusLine, bar
from jmassif.fleet import tables
from jmassif.fleet.compare import (
    POOLS,
    FleetDifference,
    FleetRun,
    check_key,
    chosen,
    compare,
    condition,
    grouped,
    read_runs,
)
from jmassif.fleet.database import VIEWS, Database, FleetError, need, open_database, prepare
from jmassif.fleet.load import Loader, Refused
from jmassif.render.layout import Column, Table
from jmassif.render.view import FormatError
from jmassif.units import count, moment, printable, size

_HTML = "html"

_EPILOG = """\
DB is a file, for SQLite, or postgresql://HOST/NAME.

examples:
  jmassif fleet load fleet.db traces/
  jmassif fleet diff fleet.db --group-by=jetpack --where 'board=*Orin*'"""


def _add_where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="KEY=PATTERN",
        help="only runs with a KEY that matches (!=: does not match) the PATTERN; all conditions must hold",
    )


def _add_output(parser: argparse.ArgumentParser, *formats: str) -> None:
    option = parser.add_argument
    option("-o", "--output", type=non_empty, metavar="FILE", help="write to FILE [a page: jmassif.fleet.html]")
    help_ = f"{', '.join(formats)} [{formats[0]}]"
    option("--format", choices=formats, default=formats[0], metavar="NAME", help=help_)


def build_parser(prog: str) -> Parser:
    parser = Parser(
        prog, "Keep recorded runs in a database, and compare groups of them.", _EPILOG, "ACTION [OPTION]... DB"
    )
    actions = parser.add_subparsers(
        title="actions, each with --help", dest="action", metavar="ACTION", parser_class=Parser
    )
    actions.required = True

    def add(name: str, description: str, usage: str = "[OPTION]... DB") -> Parser:
        epilog = _EPILOG[: _EPILOG.index("\n")]
        action: Parser = actions.add_parser(
            name,
            prog=f"{prog} {name}",
            help=description,
            description=f"{description.capitalize()}.",
            epilog=epilog,
            usage=usage,
        )
        action.add_argument("database", metavar="DB", help="the database")
        return action

    load = add("load", "add runs from traces, and from directories of traces", "[OPTION]... DB TRACE...")
    load.add_argument("traces", metavar="TRACE", nargs="+", help="a trace, or a directory to search for traces")
    jobs = number(1, 1000, is_whole=True)
    load.add_argument("--jobs", type=jobs, metavar="N", help="processes that read traces [one a processor]")

    diff = add("diff", "compare groups of runs", "--group-by=KEY [OPTION]... DB")
    option = diff.add_argument
    keys = "jetpack, l4t, board, pytorch, cuda, or any key of the manifest"
    option("--group-by", type=non_empty, required=True, metavar="KEY", help=keys)
    option("--base", metavar="VALUE", help="the group to compare with [the oldest version]")
    _add_where(diff)
    option("--by", type=views(tuple(VIEWS)), metavar="VIEW,...", help=f"any of {', '.join(VIEWS)} [all]")
    option("--pool", choices=list(POOLS), metavar="POOL", help=f"{', '.join(POOLS)} [bytes: both]")
    option("--level", type=_level, default=0.01, metavar="CHANCE", help="significance level (family-wise) [1%%]")
    option("--incomplete", action="store_true", help="count runs that were killed, or still run, too")
    option("--all", action="store_true", help="show unchanged rows too")
    _add_output(diff, "text", "markdown", "json", _HTML)
    option("--open", action="store_true", help="with --format=html: open the page in the browser")

    runs = add("runs", "list the runs, or write them as CSV or JSON lines")
    _add_where(runs)
    runs.add_argument("--figures", action="store_true", help="the figures of each run [as CSV]")
    _add_output(runs, "text", "csv", "jsonl")

    return parser


def _level(text: str) -> float:
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = 0.0
    if not 1e-9 <= value <= 0.5:
        raise argparse.ArgumentTypeError(f'"{text}" is not a significance level from 0.0000001 % to 50 %')
    return value


# ---- load --------------------------------------------------------------------------------------------


# Files that SQLite keeps beside a database while it is written to.
_BESIDE = ("", "-journal", "-wal", "-shm")


def _paths(names: List[str], database: str) -> Tuple[List[str], List[Refused]]:
    """The named traces and all files in directories but the database, each once; and the directories that cannot be read.

    A large tree may have directories that are not for everybody (lost+found); the others are loaded all the same.
    """
    found: Dict[str, None] = {}
    refused: List[Refused] = []

    def refuse(error: OSError) -> None:
        refused.append(Refused(os.path.abspath(error.filename), f"cannot be read: {error.strerror}"))

    own = {os.path.realpath(database) + end for end in _BESIDE}
    for name in names:
        if not os.path.isdir(name):
            found[os.path.abspath(name)] = None
            continue
        for directory, inner, files in os.walk(name, onerror=refuse):
            inner.sort()
            paths = [os.path.abspath(os.path.join(directory, file)) for file in sorted(files) if file[:1] != "."]
            found.update((path, None) for path in paths if os.path.isfile(path) and os.path.realpath(path) not in own)
    return list(found), refused


class _Bar(StatusLine):
    """The progress of a load."""

    _first: Optional[Tuple[float, int]] = None  # time, and number of traces done then

    def __call__(self, n_done: int, n_all: int, n_refused: int) -> None:
        now = time.monotonic()
        begin, n_before = self._first = self._first or (now, n_done)
        if self.is_due():
            rate = (n_done - n_before) / (now - begin) if now > begin else 0.0
            left = f", {moment(1000 * int((n_all - n_done) / rate), 'ms')} left" if rate else ""
            refused = f", {n_refused:,} refused" if n_refused else ""
            done = f"{n_done:,} of {n_all:,} traces"
            self.show(f"{bar(n_done / max(1, n_all))} {done}, {rate:.0f} a second{left}{refused}")


def _load(arguments: argparse.Namespace) -> int:
    paths, unreadable = _paths(arguments.traces, arguments.database)
    database = open_database(arguments.database, may_be_new=True)
    try:
        prepare(database)
        begin = time.monotonic()
        with _Bar() as progress:
            done = Loader(database).load(paths, arguments.jobs or os.cpu_count() or 1, progress)
        ((n_runs,),) = database.rows("SELECT count(*) FROM run")
    finally:
        database.close()
    all_refused = unreadable + done.refused
    for refused in all_refused:
        common.warn(f"{refused.path}: {refused.reason}")
    text = f"{count(done.n_new, 'trace')} added in {time.monotonic() - begin:.1f} s"
    if done.n_known:
        text += f", {done.n_known:,} there already"
    if all_refused:
        text += f", {len(all_refused):,} refused (above)"
    common.warn(f"{text}; {database.name} has {count(n_runs, 'run')}")
    return 1 if all_refused else 0


# ---- the others --------------------------------------------------------------------------------------


@contextmanager
def _loaded(name: str) -> Iterator[Database]:
    """A database that has a fleet in it; closed in the end."""
    database = open_database(name)
    try:
        need(database)
        yield database
    finally:
        database.close()


def _wanted(arguments: argparse.Namespace, database: Database) -> List[FleetRun]:
    """The runs that meet the conditions. Raises Problem if the database is empty."""
    runs = read_runs(database)
    if not runs:
        raise Problem(f"{database.name}: has no runs in it")
    return chosen(runs, [condition(text) for text in arguments.where])


def _difference(arguments: argparse.Namespace, database: Database) -> FleetDifference:
    runs = _wanted(arguments, database)
    if not runs:
        raise Problem("no run is left: see --where")
    check_key(runs, arguments.group_by)
    kept = runs if arguments.incomplete else [run for run in runs if run.is_complete]
    if not kept:
        raise Problem("no run came to an end: --incomplete counts those that did not")
    groups = grouped(kept, arguments.group_by)
    values = [group.value for group in groups]
    if arguments.base is not None and arguments.base not in values:
        raise Problem(f'no run has {arguments.group_by} "{arguments.base}": there is {", ".join(values)}')
    base = values.index(arguments.base) if arguments.base is not None else 0
    # Runs without a GPU have one pool, whatever the machine has.
    is_discrete = any(run.fields["is_discrete"] and run.fields["peak_device"] for run in kept)
    pool = arguments.pool or ("device" if is_discrete else "bytes")
    if is_discrete and pool == "bytes":
        raise Problem("host and device are two pools on some of the machines: --pool=host, --pool=device, or --where")
    shown = arguments.by or list(VIEWS)
    return compare(database, groups, arguments.group_by, shown, pool, arguments.level, base, len(runs) - len(kept))


def _diff(arguments: argparse.Namespace) -> int:
    if arguments.open and arguments.format != _HTML:
        raise Problem("--open shows a page: add --format=html")
    if arguments.format == _HTML:
        from jmassif.html.page import read_assets

        read_assets(script=tables.SCRIPT)
    with _loaded(arguments.database) as database:
        found = _difference(arguments, database)
    inputs = [arguments.database]
    if arguments.format == _HTML:
        common.write_page(tables.write(found), inputs, arguments.output, "jmassif.fleet.html", arguments.open)
        return 0
    common.check_not_input(arguments.output, inputs)
    if arguments.format == "json":
        lines = tables.write_json(found)
    else:
        write = tables.write_text if arguments.format == "text" else tables.write_markdown
        lines = write(found, arguments.all)
    common.write(lines, arguments.output)
    return 0


def _run_lines(runs: List[FleetRun]) -> Iterator[str]:
    heads = ["start", "host", "board", "JetPack", "PyTorch", "ended", "peak", "trace"]
    rows = []
    for run in runs:
        fields = run.fields
        texts = [fields[name] or "" for name in ("start", "host", "board", "jetpack", "pytorch", "ended")]
        peak = "" if fields["peak_total"] is None else size(fields["peak_total"])
        rows.append([printable(text)[:48] for text in texts] + [peak, printable(fields["file"] or "")])
    widths = [max(len(row[n]) for row in [heads, *rows]) for n in range(len(heads))]
    table = Table(*(Column("", width, gap=2 * (n > 0), align="<") for n, width in enumerate(widths)))
    for row in [heads, *rows]:
        yield table.row(*row).rstrip()


def _runs(arguments: argparse.Namespace) -> int:
    with _loaded(arguments.database) as database:
        runs = _wanted(arguments, database)
        write = tables.write_jsonl if arguments.format == "jsonl" else tables.write_csv
        if arguments.figures:
            lines = write(tables.FIGURE_FIELDS, tables.figures(database, runs))
        elif arguments.format == "text":
            lines = _run_lines(runs)
        else:
            lines = write(tables.RUN_FIELDS, tables.run_rows(runs))
        common.check_not_input(arguments.output, [arguments.database])
        common.write(lines, arguments.output)
    return 0


_ACTIONS = {"load": _load, "diff": _diff, "runs": _runs}


def run(arguments: argparse.Namespace) -> int:
    try:
        return _ACTIONS[arguments.action](arguments)
    except (FleetError, FormatError) as error:
        raise Problem(str(error))
