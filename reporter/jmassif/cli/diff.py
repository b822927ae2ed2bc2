# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif diff`, also as jm_diff: its options, and the traces of each column."""

import argparse
import os
from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from jmassif.analysis.compare import SCOPE, TWICE, VIEWS, Column, Difference, Run, Stacks, compare, measure
from jmassif.analysis.moments import SelectionError
from jmassif.attribution.blame import base_name
from jmassif.attribution.redact import anonymize
from jmassif.attribution.views import WITHOUT_THREADS
from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.options import checked, is_trace, non_empty, views
from jmassif.cli.terminal import Working
from jmassif.model.run import Profile
from jmassif.model.run_info import short_command
from jmassif.render.view import FormatError
from jmassif.units import QuantityError, count, parse_bytes, printable

_HTML = "html"
_FORMATS = ("text", "markdown", "json", _HTML)
_FOR_PEOPLE = ("text", "markdown")

_DEFAULT_VIEWS = ["owner", "library", TWICE, SCOPE]
_DEFAULT_VIEWS_OF_PAGE = _DEFAULT_VIEWS + ["kind", "role", "function", "python-line"]
_MAX_ROWS_OF_PAGE = 20000  # more make a browser slow
_DEFAULT_MIN_SHARE = 1000  # of the largest total, in reports for people

_EPILOG = """\
examples:
  jmassif diff old.jmassif new.jmassif
  jmassif diff --html --open old.jmassif new.jmassif
  jmassif diff old1 old2 old3 --vs new1 new2 new3   medians of repeated runs"""


def build_parser(prog: str) -> Parser:
    parser = Parser(prog, "Compare the memory of recorded runs.", _EPILOG, "[OPTION]... TRACE... [--vs TRACE...]")
    option = parser.add_argument
    option("traces", nargs="+", metavar="TRACE", help="a trace, or a directory with repeated runs")
    vs_help = "compare repeated runs: one side before this, the other after it"
    option("--vs", nargs="+", action="append", default=[], metavar="TRACE", help=vs_help)
    group_help = "a column for each value: jetpack, cuda, cudnn, pytorch, board, or a key of the manifest"
    option("--group-by", metavar="KEY", help=group_help)
    by_help = f"rows: any of {', '.join(VIEWS)} [{','.join(_DEFAULT_VIEWS)}]"
    option("--by", type=views(tuple(VIEWS)), metavar="VIEW,...", help=by_help)
    at_help = "the moment: peak, start, end, a mark, a number, 12.5s or 40%% [peak]"
    option("--at", type=non_empty, metavar="WHEN", help=at_help)
    size = checked(parse_bytes, QuantityError)
    option("--min", type=size, metavar="SIZE", help="fold smaller differences [0.1%% of the total]")
    option("--anonymous", action="store_true", help="remove user, host, paths and arguments")
    option("-o", "--output", type=non_empty, metavar="FILE", help="write to FILE [a page: jmassif.diff.html]")
    option("--format", choices=_FORMATS, default="text", metavar="NAME", help=f"{', '.join(_FORMATS)} [text]")
    option("--html", action="store_const", dest="format", const=_HTML, help="a page: short for --format=html")
    option("--open", action="store_true", help="open the page in the browser")
    return parser


# ---- the traces -------------------------------------------------------------------------------------


def _traces_in(directory: str) -> List[str]:
    """Their paths. Raises Problem if there are none."""
    try:
        entries = sorted(os.listdir(directory), key=lambda entry: (len(entry), entry))  # .9 before .10
    except OSError as error:
        raise Problem(f"{directory}: cannot be read: {error.strerror}")
    paths = [os.path.join(directory, entry) for entry in entries]
    found = [path for path in paths if os.path.isfile(path) and is_trace(path)]
    if not found:
        raise Problem(f"{directory}: has no traces in it")
    return found


class _Process(NamedTuple):
    """A process that another one may have started. Pids come again on other machines and at other times."""

    own: Tuple[str, str]  # host and pid
    parent: Tuple[str, str]
    start: int  # milliseconds
    end: int


def _process(profile: Profile) -> _Process:
    manifest, start = profile.manifest, profile.number("start-unix-ms") or 0
    host, parent = manifest.get("host", ""), manifest.get("forked-from", manifest.get("ppid", ""))
    # Times of another unit give no end; the last snapshot of a truncated trace is a time at which it still ran.
    last = profile.snapshots[-1].time if profile.snapshots and profile.time_unit == "ms" else 0
    return _Process((host, manifest.get("pid", "?")), (host, parent), start, start + last)


class _Script(NamedTuple):
    name: str  # safe to show
    functions: Set[str]
    files: Set[str]  # names of all Python files


def _script(profile: Profile) -> _Script:
    name = short_command(profile.manifest.get("command", "")).partition(" ")[0]
    frames = [profile.frame(id_) for id_ in profile.python_frames]
    functions = {frame.function for frame in frames if base_name(frame.file) == name}
    return _Script(name, functions, {base_name(frame.file) for frame in frames})


def _match_script(old: _Script, profile: Profile) -> None:
    """Give a renamed script the name of the first run's: names of lines and stacks have that of their file.

    It was renamed if neither run has the other's script, and half of the functions are common.
    """
    new = _script(profile)
    if new.name in old.files or old.name in new.files or not old.functions or not new.functions:
        return
    if 2 * len(old.functions & new.functions) < min(len(old.functions), len(new.functions)):
        common.warn(f"{old.name} and {new.name} have few functions in common: their lines are not compared")
        return
    for id_, text in profile.strings.items():
        if base_name(text) == new.name:
            profile.strings[id_] = text[: -len(new.name)] + old.name
    common.warn(f"{new.name} is compared as {old.name}: a renamed script, with functions of the same names")


# More runs have no line named: each line of each of them takes a quarter of the time, and memory.
_MOST_WITH_LINES = 100


class _Reader(NamedTuple):
    """Reads traces and keeps of each only figures: the traces of a directory may be larger than the memory."""

    views: Sequence[str]
    at: str
    stacks: Optional[Stacks]
    is_anonymous: bool
    files: List[str]
    first: List[_Script]  # none or one

    def _read(self, name: str) -> Tuple[_Process, Run]:
        self.files.append(name)
        profile = common.read(name, "comparing what came before")
        if "thread" in self.views and not profile.has_threads:
            raise Problem(f"{name}: {WITHOUT_THREADS}")
        if self.first:
            _match_script(self.first[0], profile)
        else:
            self.first.append(_script(profile))
        shown, with_lines = name, len(self.files) <= _MOST_WITH_LINES
        if self.is_anonymous:  # the file's name may be its owner's
            anonymize(profile)
            shown = f"trace {len(self.files)}"
        try:
            with Working(f"comparing {printable(shown)}"):
                return _process(profile), measure(shown, profile, self.views, self.at, self.stacks, with_lines)
        except SelectionError as error:
            raise Problem(f"{name}: {error}")

    def found(self, names: Sequence[str]) -> List[Run]:
        """The runs in files that were not named one by one, without the processes that another one started."""
        read = [self._read(name) for name in names]
        spans: Dict[Tuple[str, str], List[Tuple[int, int]]] = {}
        for process, _ in read:
            spans.setdefault(process.own, []).append((process.start, process.end))
        runs = [
            run
            for process, run in read
            if not any(start <= process.start <= end for start, end in spans.get(process.parent, []))
        ]
        if len(runs) < len(read):
            common.warn(f"left out {count(len(read) - len(runs), 'trace')} of child processes")
        return runs

    def runs(self, names: Sequence[str]) -> List[Run]:
        """The runs that names of files and directories stand for. Raises Problem."""
        runs = []
        for name in names:
            runs += self.found(_traces_in(name)) if os.path.isdir(name) else [self._read(name)[1]]
        return runs


# ---- the columns -------------------------------------------------------------------------------


def _columns(arguments: argparse.Namespace, reader: _Reader) -> List[Column]:
    """Raises Problem."""
    traces = arguments.traces
    if arguments.group_by is not None:
        if arguments.vs:
            raise Problem("--group-by and --vs cannot be combined: leave one out")
        files = [path for name in traces for path in (_traces_in(name) if os.path.isdir(name) else [name])]
        try:
            return Column.by_fact(arguments.group_by, reader.found(files))
        except SelectionError as error:
            raise Problem(str(error))
    if arguments.vs:
        sides = [reader.runs(side) for side in [traces] + arguments.vs]
    elif len(traces) < 2:
        raise Problem("diff needs two traces, or --group-by")
    else:
        sides = [reader.runs([name]) for name in traces]
    names = ["old", "new"] if len(sides) == 2 else [f"run {number + 1}" for number in range(len(sides))]
    return [Column(name, side) for name, side in zip(names, sides)]


def _compare(arguments: argparse.Namespace, columns: Sequence[Column], views: Sequence[str]) -> Difference:
    least: int = arguments.min or 0
    if arguments.min is None and arguments.format in _FOR_PEOPLE:
        least = max(1, max(run.largest for column in columns for run in column.runs) // _DEFAULT_MIN_SHARE)
    found = compare(columns, views, least)
    while arguments.format == _HTML and sum(len(view.rows) for view in found.views) > _MAX_ROWS_OF_PAGE:
        least = max(1024, 4 * least)
        found = compare(columns, views, least)
    return found


def _write(arguments: argparse.Namespace, found: Difference, stacks: Optional[Stacks], inputs: Sequence[str]) -> None:
    if stacks is not None:
        from jmassif.html import diff_page

        common.write_page(diff_page.write(found, stacks), inputs, arguments.output, "jmassif.diff.html", arguments.open)
    elif arguments.format in _FOR_PEOPLE:
        from jmassif.render import diff_tables

        write = diff_tables.write_text if arguments.format == "text" else diff_tables.write_markdown
        common.write(write(found), arguments.output)
    else:
        from jmassif.export import diff_data

        common.write(diff_data.write_json(found), arguments.output)


def run(arguments: argparse.Namespace) -> int:
    is_page = arguments.format == _HTML
    if arguments.open and not is_page:
        raise Problem("--open shows a page: add --html")
    chosen = arguments.by or (_DEFAULT_VIEWS_OF_PAGE if is_page else _DEFAULT_VIEWS)
    if arguments.at and chosen == [SCOPE]:
        raise Problem("--at is not supported by --by=scope: calls have one cost over the whole run")
    try:
        if is_page:
            from jmassif.html.page import read_assets

            read_assets()
        stacks = Stacks() if is_page else None
        reader = _Reader(chosen, arguments.at or "peak", stacks, arguments.anonymous, [], [])
        columns = _columns(arguments, reader)
        common.check_not_input(arguments.output, reader.files)
        with Working("comparing"):
            found = _compare(arguments, columns, chosen)
        _write(arguments, found, stacks, reader.files)
    except FormatError as error:
        raise Problem(str(error))
    return 0
