# SPDX-License-Identifier: GPL-2.0-or-later
"""The command jm_fleet: its actions and their options."""

import argparse
import os
import sys
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, NoReturn, Optional, Tuple

from jmassif.cli import common
from jmassif.cli.common import Parser, Problem, filled
from jmassif.cli.pages import write_page
from jmassif.cli.terminal import is_terminal
from jmassif.fleet import tables, tables as export, tables as page
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
from jmassif.fleet.database import VIEWS, Database, FleetError, open_database
from jmassif.fleet.load import Loader, Progress, Refused
from jmassif.fleet.tables import write_json
from jmassif.html import page as html
from jmassif.render.layout import Column, Table
from jmassif.render.view import FormatError
from jmassif.units import count, moment, printable, size


_NAME = "jm_fleet"
_HTML = "html"
_DIFF_FORMATS: Dict[str, Callable[[FleetDifference, bool], Iterator[str]]] = {
    "text": tables.write_text,
    "markdown": tables.write_markdown,
    "json": lambda found, _: write_json(found),
}
_EXPORTS = {"csv": export.write_csv, "jsonl": export.write_jsonl}
_TABLES = ("runs", "figures")

_EPILOG = """\
DB is a file, for SQLite, or postgresql://HOST/NAME. The actions:

  load DB TRACE...     adds runs; directories are searched for traces. What is there already is passed over
  diff DB              what differs between groups of runs, and by how much
  runs DB              lists the runs
  export DB            runs, or what each held, as CSV or JSON lines

examples:
  jm_fleet load fleet.db traces/
  jm_fleet diff fleet.db --group-by=jetpack --where 'board=*Orin*'
  jm_fleet diff fleet.db --group-by=jetpack --format=html -o fleet.html
  jm_fleet runs fleet.db --where is_complete=0
  jm_fleet export fleet.db --table=figures --format=csv -o figures.csv"""


def _views(text: str) -> List[str]:
    views = text.split(",")
    for view in views:
        if view not in VIEWS:
            raise argparse.ArgumentTypeError(f'"{view}" is none of {", ".join(VIEWS)}')
    return list(dict.fromkeys(views))


def _level(text: str) -> float:
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = 0.0
    if not 1e-9 <= value <= 0.5:
        raise argparse.ArgumentTypeError(f'"{text}" is no chance of an error from 0.0000001 % to 50 %')
    return value


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:5]) <= 1000:
        raise argparse.ArgumentTypeError(f'"{text}" is no number from 1 to 1000')
    return int(text)


class _Action(NamedTuple):
    options: Tuple[str, ...]
    formats: Tuple[str, ...]  # the default first
    do: Callable[[argparse.Namespace], int]


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        _NAME, "Keeps recorded runs by the thousand in a database, and tells what differs between them.", _EPILOG
    )
    option = parser.add_argument
    option("action", choices=list(_ACTIONS), help="what to do; see below")
    option("database", metavar="DB", help="a file, or postgresql://HOST/NAME")
    option("traces", metavar="TRACE", nargs="*", help="of load: traces, and directories of traces")
    option("--jobs", type=_jobs, metavar="N", help="of load: processes that read traces [one a processor]")
    option(
        "--group-by",
        type=filled,
        metavar="KEY",
        help="of diff: jetpack, l4t, board, pytorch, cuda, or any key of the manifest",
    )
    option("--base", metavar="VALUE", help="of diff: the group that others are compared with [the oldest version]")
    option(
        "--where",
        action="append",
        metavar="KEY=PATTERN",
        help="only runs whose KEY fits the shell's PATTERN, or with != does not; of several conditions all",
    )
    option("--by", type=_views, metavar="VIEW[,VIEW]...", help=f"of diff: any of {', '.join(VIEWS)} [all]")
    option("--pool", choices=list(POOLS), help="of diff: which memory [bytes: both; of discrete GPUs device]")
    option("--level", type=_level, metavar="CHANCE", help="of diff: that anything is called a change and is none [1%%]")
    option("--incomplete", action="store_true", help="of diff: count runs that were killed, or still run, too")
    option("--all", action="store_true", help="of diff: show rows that have not changed too")
    option("--table", choices=_TABLES, help="of export: what to write [runs]")
    option("--format", choices=sorted({f for a in _ACTIONS.values() for f in a.formats}), help="what to write")
    option(
        "-o", "--output", type=filled, metavar="FILE", help="write to FILE [standard output; html: jmassif.fleet.html]"
    )
    option("--open", action="store_true", help="of diff --format=html: show the page in the browser")
    return parser


def _check_options(arguments: argparse.Namespace, action: _Action) -> None:
    for name, value in vars(arguments).items():
        option = name.replace("_", "-")
        if name not in ("action", "database", "traces", "format") and value not in (None, False):
            if option not in action.options:
                raise Problem(f"--{option} means nothing to jm_fleet {arguments.action}")
    if arguments.traces and arguments.action != "load":
        raise Problem(f"jm_fleet {arguments.action} takes no traces: jm_fleet load adds them")
    if arguments.format is None:
        arguments.format = action.formats[0] if action.formats else None
    elif arguments.format not in action.formats:
        raise Problem(f"jm_fleet {arguments.action} has no --format={arguments.format}")
    if arguments.open and arguments.format != _HTML:
        raise Problem("--open shows a page in the browser: it needs --format=html")


# ---- load --------------------------------------------------------------------------------------------


# What SQLite keeps beside a database while it is written to.
_BESIDE = ("", "-journal", "-wal", "-shm")


def _paths(names: List[str], database: str) -> Tuple[List[str], List[Refused]]:
    """Of the traces that are named, and of all files in directories but the database, each once; and the directories
    that cannot be read: not all that lies in a large tree is for everybody (lost+found), and the rest is wanted."""
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


class _Bar:
    """How far a load is, how fast, and for how long still: on standard error, where that is a terminal."""

    def __init__(self) -> None:
        self._is_on = is_terminal(sys.stderr)
        self._next = time.monotonic() + 1.0
        self._first: Optional[Progress] = None

    def __call__(self, now: Progress) -> None:
        self._first = self._first or now
        if not self._is_on or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + 0.2
        sys.stderr.write(f"\r\x1b[K{self.text(now)}")
        sys.stderr.flush()

    def text(self, now: Progress) -> str:
        first = self._first or now
        seconds = now.seconds - first.seconds
        rate = (now.n_done - first.n_done) / seconds if seconds > 0 else 0.0
        left = f", {moment(1000 * int((now.n_all - now.n_done) / rate), 'ms')} left" if rate else ""
        refused = f", {now.n_refused:,} refused" if now.n_refused else ""
        done = int(30 * now.n_done / max(1, now.n_all))
        return f"[{'#' * done:<30}] {now.n_done:,} of {now.n_all:,} traces, {rate:.0f} a second{left}{refused}"

    def end(self) -> None:
        if self._is_on:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _load(arguments: argparse.Namespace) -> int:
    if not arguments.traces:
        raise Problem("jm_fleet load needs traces: name them, or their directory")
    paths, unreadable = _paths(arguments.traces, arguments.database)
    database = open_database(arguments.database, may_be_new=True)
    try:
        database.prepare()
        bar = _Bar()
        begin = time.monotonic()
        try:
            done = Loader(database).load(paths, arguments.jobs or os.cpu_count() or 1, bar)
        finally:
            bar.end()
        ((n_runs,),) = database.rows("SELECT count(*) FROM run")
    finally:
        database.close()
    all_refused = unreadable + done.refused
    for refused in all_refused:
        common.say(_NAME, f"{refused.path}: {refused.reason}")
    told = f"{count(done.n_new, 'trace')} added in {time.monotonic() - begin:.1f} s"
    if done.n_known:
        told += f", {done.n_known:,} there already"
    if all_refused:
        told += f", {len(all_refused):,} refused (above)"
    common.say(_NAME, f"{told}; {database.name} has {count(n_runs, 'run')}")
    return 1 if all_refused else 0


# ---- the others --------------------------------------------------------------------------------------


@contextmanager
def _loaded(name: str) -> Iterator[Database]:
    """A database that has a fleet in it; closed in the end."""
    database = open_database(name)
    try:
        database.need()
        yield database
    finally:
        database.close()


def _wanted(arguments: argparse.Namespace, database: Database) -> List[FleetRun]:
    """The runs that the conditions leave. Raises Problem if there are none at all."""
    runs = read_runs(database)
    if not runs:
        raise Problem(f"{database.name}: has no runs in it")
    return chosen(runs, [condition(text) for text in arguments.where or []])


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
    # A machine whose runs have used no GPU has one pool only, whatever it might have had.
    is_discrete = any(run.fields["is_discrete"] and run.fields["peak_device"] for run in kept)
    pool = arguments.pool or ("device" if is_discrete else "bytes")
    if is_discrete and pool == "bytes":
        raise Problem("host and device are two pools on some of the machines: --pool=host, --pool=device, or --where")
    views = arguments.by or list(VIEWS)
    level = arguments.level or 0.01
    return compare(database, groups, arguments.group_by, views, pool, level, base, len(runs) - len(kept))


def _diff(arguments: argparse.Namespace) -> int:
    if arguments.group_by is None:
        raise Problem("jm_fleet diff needs --group-by: jetpack, board, pytorch, …")
    if arguments.format == _HTML:
        html.read_assets(script=page.SCRIPT)
    with _loaded(arguments.database) as database:
        found = _difference(arguments, database)
    inputs = [arguments.database]
    if arguments.format == _HTML:
        write_page(_NAME, page.write(found), inputs, arguments.output, "jmassif.fleet.html", arguments.open)
        return 0
    common.keep_inputs(arguments.output, inputs)
    common.write(_DIFF_FORMATS[arguments.format](found, arguments.all), arguments.output)
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
    if arguments.format == "text":
        lines = _run_lines(runs)
    else:
        lines = _EXPORTS[arguments.format](export.RUN_FIELDS, export.run_rows(runs))
    common.keep_inputs(arguments.output, [arguments.database])
    common.write(lines, arguments.output)
    return 0


def _export(arguments: argparse.Namespace) -> int:
    with _loaded(arguments.database) as database:
        runs = _wanted(arguments, database)
        write: Any = _EXPORTS[arguments.format]
        if arguments.table == "figures":
            lines = write(export.FIGURE_FIELDS, export.figures(database, runs))
        else:
            lines = write(export.RUN_FIELDS, export.run_rows(runs))
        common.keep_inputs(arguments.output, [arguments.database])
        common.write(lines, arguments.output)
    return 0


_ACTIONS: Dict[str, _Action] = {
    "load": _Action(("jobs",), (), _load),
    "diff": _Action(
        ("group-by", "base", "where", "by", "pool", "level", "incomplete", "all", "output", "open"),
        ("text", "markdown", "json", _HTML),
        _diff,
    ),
    "runs": _Action(("where", "output"), ("text", "csv", "jsonl"), _runs),
    "export": _Action(("where", "table", "output"), ("csv", "jsonl"), _export),
}


def _fleet(given: Optional[List[str]]) -> int:
    parser = _parser()
    # Options may stand between the traces, where Python is new enough to know how.
    parse = getattr(parser, "parse_intermixed_args", parser.parse_args)
    arguments = parse(given)
    action = _ACTIONS[arguments.action]
    _check_options(arguments, action)
    try:
        return action.do(arguments)
    except (FleetError, FormatError) as error:
        raise Problem(str(error))


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs jm_fleet with `arguments` (those of the process by default); the exit status."""
    return common.main(_NAME, _fleet, arguments)


def run() -> NoReturn:
    common.run(main)
