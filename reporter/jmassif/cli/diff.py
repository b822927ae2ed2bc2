# SPDX-License-Identifier: GPL-2.0-or-later
"""The command jm_diff: its options, and which traces make which column."""

import argparse
import difflib
import os
import re
from collections import OrderedDict
from typing import Callable, Dict, Iterator, List, NamedTuple, NoReturn, Optional, Sequence, Tuple

from jmassif.analysis.compare import PROCESS, SCOPE, VIEWS, Column, Difference, Run, Stacks, compare, measure, total
from jmassif.analysis.moments import SelectionError
from jmassif.analysis.range_diff import At, moments_of
from jmassif.analysis.run_info import label, version_order
from jmassif.attribution.redact import anonymize
from jmassif.attribution.views import WITHOUT_THREADS
from jmassif.cli import common
from jmassif.cli.common import Parser, Problem, filled
from jmassif.cli.pages import write_page
from jmassif.export import compare as difference_data
from jmassif.html import compare as difference_html, page as html
from jmassif.model.run import Profile
from jmassif.reader.input import open_input
from jmassif.reader.tokens import MAGIC
from jmassif.render import compare as difference
from jmassif.render.view import FormatError
from jmassif.units import QuantityError, count, parse_bytes, printable


_NAME = "jm_diff"

_HTML = "html"
_WRITERS: Dict[str, Callable[[Difference, bool], Iterator[str]]] = {
    "text": difference.write_text,
    "markdown": difference.write_markdown,
    "json": lambda found, _: difference_data.write_json(found),
    "csv": lambda found, _: difference_data.write_csv(found),
}
_FOR_PEOPLE = ("text", "markdown")

_DEFAULT_VIEWS = ["owner", "library", SCOPE]
_DEFAULT_VIEWS_OF_PAGE = _DEFAULT_VIEWS + ["kind", "role", "function", "python-line"]
# A page is read by a browser, which gets slow.
_MAX_ROWS_OF_PAGE = 20000
# Of the largest total; people need no more.
_DEFAULT_MIN_SHARE = 1000

_EPILOG = """\
examples:
  jm_diff old.jmassif new.jmassif
  jm_diff --by=python-line --at=end before.jmassif after.jmassif
  jm_diff --from=40% --to=end a.jmassif                 what one run held at both moments
  jm_diff old1 old2 old3 --vs new1 new2 new3      repeated runs: medians, and what is beyond their spread
  jm_diff --group-by=jetpack *.jmassif            a column for each JetPack
  jm_diff --format=html --open old.jmassif new.jmassif    what grew and shrank, as a page"""


def _size(text: str) -> int:
    try:
        return parse_bytes(text)
    except QuantityError as error:
        raise argparse.ArgumentTypeError(str(error))


def _views(text: str) -> List[str]:
    views = text.split(",")
    for view in views:
        if view not in VIEWS:
            raise argparse.ArgumentTypeError(f'"{view}" is none of {", ".join(VIEWS)}')
    return views


def _parser() -> argparse.ArgumentParser:
    parser = Parser(_NAME, "Shows how the memory of two or more recorded runs differs.", _EPILOG)
    option = parser.add_argument
    option("traces", nargs="+", metavar="TRACE", help="a trace, or a directory: repeated runs of one thing")
    option(
        "--vs",
        nargs="+",
        action="append",
        default=[],
        metavar="TRACE",
        help="the traces before this are repeated runs of one side, those after it of the other",
    )
    option(
        "--group-by",
        metavar="KEY",
        help="a column for each value: jetpack, cuda, cudnn, pytorch, board, or a key of the manifest",
    )
    option(
        "--by",
        type=_views,
        metavar="VIEW[,VIEW]...",
        help=f"any of {', '.join(VIEWS)} [{','.join(_DEFAULT_VIEWS)}; html: more]",
    )
    option(
        "--at",
        type=filled,
        metavar="WHEN",
        help="the moment to compare: peak, peak-host, peak-device, start, end, last, a mark, a snapshot's number, or a time"
        " such as 12.5s or 40%% [peak]",
    )
    option(
        "--from",
        type=filled,
        metavar="WHEN",
        help="instead, compare what is new at --to since then; of one trace alone, what it held at both moments [start]",
    )
    option("--to", type=filled, metavar="WHEN", help="likewise, the moment at which it is still held [end]")
    option(
        "--min", type=_size, metavar="SIZE", help="fold what differs by less [text: a thousandth of the total; data: 0]"
    )
    option("--format", choices=sorted([*_WRITERS, _HTML]), default="text", help="what to write [text]")
    option("--anonymous", action="store_true", help="leave out user, host, arguments, and paths but within packages")
    option("--bytes", action="store_true", help="exact figures in text and markdown")
    option(
        "-o", "--output", type=filled, metavar="FILE", help="write to FILE [standard output; html: jmassif.diff.html]"
    )
    option("--open", action="store_true", help="of --format=html: show the page in the browser")
    return parser


# ---- which traces ------------------------------------------------------------------------------


def _is_trace(path: str) -> bool:
    try:
        with open_input(path) as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _natural(name: str) -> List[Tuple[int, str]]:
    return [(int(digits or 0), words) for digits, words in re.findall(r"(\d+)|(\D+)", name)]


def _traces_in(directory: str) -> List[str]:
    """Their paths. Raises Problem if there are none."""
    try:
        paths = [os.path.join(directory, entry) for entry in sorted(os.listdir(directory), key=_natural)]
    except OSError as error:
        raise Problem(f"{directory}: cannot be read: {error.strerror}")
    found = [path for path in paths if os.path.isfile(path) and _is_trace(path)]
    if not found:
        raise Problem(f"{directory}: has no traces in it")
    return found


class _Process(NamedTuple):
    """What tells a process that another one has started from a run of its own."""

    host: str
    pid: str
    parent: str
    start: int  # milliseconds
    end: int

    def is_child_of(self, other: "_Process") -> bool:
        """Pids come again on other machines, in other containers, and at other times."""
        is_within = other.start <= self.start <= other.end
        return self.parent == other.pid and self.host == other.host and is_within


def _process(profile: Profile) -> _Process:
    manifest = profile.manifest
    start = profile.number("start-unix-ms") or 0
    # Times of another unit do not tell when it ended; the snapshots of a truncated trace tell when it still ran.
    times = [snapshot.time for snapshot in profile.snapshots[-1:]] if profile.time_unit == "ms" else []
    parent = manifest.get("forked-from", manifest.get("ppid", ""))
    return _Process(manifest.get("host", ""), manifest.get("pid", "?"), parent, start, start + max(times, default=0))


# With more runs than this no line is named: to know each line of each of them takes a quarter of the time, and memory.
_MOST_WITH_LINES = 100


class _Reader:
    """Reads traces and keeps of each what is compared: those of a directory may be larger than the memory."""

    def __init__(self, views: Sequence[str], at: At, stacks: Optional[Stacks], is_anonymous: bool) -> None:
        self._views = views
        self._at = at
        self._stacks = stacks
        self._is_anonymous = is_anonymous
        self.files: List[str] = []

    def _profile(self, name: str) -> Tuple[str, Profile]:
        """With what the trace is called, which may be as its owner is."""
        self.files.append(name)
        profile = common.read(_NAME, name, "comparing what came before")
        if "thread" in self._views and not profile.has_threads:
            raise Problem(f"{name}: {WITHOUT_THREADS}")
        if not self._is_anonymous:
            return name, profile
        anonymize(profile)
        return f"trace {len(self.files)}", profile

    def _measure(self, shown: str, profile: Profile, at: At) -> Run:
        return measure(shown, profile, self._views, at, self._stacks, len(self.files) <= _MOST_WITH_LINES)

    def _read(self, name: str) -> Tuple[_Process, Run]:
        shown, profile = self._profile(name)
        try:
            return _process(profile), self._measure(shown, profile, self._at)
        except SelectionError as error:
            raise Problem(f"{name}: {error}")

    def moments(self, name: str) -> List[Column]:
        """A column of each end of the range, of one run. Raises Problem."""
        shown, profile = self._profile(name)
        assert not isinstance(self._at, str)
        try:
            moments_of(profile, *self._at)
            runs = [self._measure(shown, profile, at) for at in self._at]
        except SelectionError as error:
            raise Problem(f"{name}: {error}")
        return [Column(printable(run.moment), [run]) for run in runs]

    @property
    def is_of_range(self) -> bool:
        return not isinstance(self._at, str)

    def found(self, names: Sequence[str]) -> List[Run]:
        """The runs in files that nobody chose one by one: processes that another one has started are parts of a run."""
        read = [self._read(name) for name in names]
        parents: Dict[Tuple[str, str], List[_Process]] = {}  # that it may be, by host and pid
        for process, _ in read:
            parents.setdefault((process.host, process.pid), []).append(process)

        def is_child(process: _Process) -> bool:
            return any(map(process.is_child_of, parents.get((process.host, process.parent), [])))

        runs = [run for process, run in read if not is_child(process)]
        if len(runs) < len(read):
            common.say(_NAME, f"left out {count(len(read) - len(runs), 'trace')} of child processes")
        return runs

    def runs(self, names: Sequence[str]) -> List[Run]:
        """The runs that names of files and directories stand for. Raises Problem."""
        runs = []
        for name in names:
            runs += self.found(_traces_in(name)) if os.path.isdir(name) else [self._read(name)[1]]
        return runs


# ---- which columns -----------------------------------------------------------------------------


# Facts whose values say nothing without the fact's name.
_VERSIONS = ("jetpack", "l4t", "cuda", "cudnn", "cublas", "tensorrt", "pytorch", "python", "jmassif", "valgrind")


def _groups(runs: Sequence[Run], key: str) -> List[Column]:
    """A column for each value of a fact, in the order of versions. Raises Problem."""
    if not any(run.facts.get(key) for run in runs):
        known = sorted({name for run in runs for name, value in run.facts.items() if value})
        raise Problem(f'no trace tells "{key}": {_choice(key, known)}')
    found: Dict[str, List[Run]] = {}
    for run in runs:
        found.setdefault(run.facts.get(key, ""), []).append(run)
    name = f"{label(key)} " if key in _VERSIONS else ""
    values = sorted(found, key=lambda value: (value != "", version_order(value)))
    return [Column(printable(f"{name}{value}") if value else "unknown", found[value]) for value in values]


_MAX_CHOICES = 12


def _choice(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, 5, 0.5) or known[:_MAX_CHOICES]
    return f"there is {', '.join(near)}" if near else "they tell nothing of the kind"


def _labelled(sides: Sequence[List[Run]]) -> List[Column]:
    if len(sides) == 1:
        return [Column("run", sides[0])]
    names = ["old", "new"] if len(sides) == 2 else [f"run {number + 1}" for number in range(len(sides))]
    return [Column(name, side) for name, side in zip(names, sides)]


def _columns(arguments: argparse.Namespace, reader: _Reader) -> List[Column]:
    if arguments.group_by is not None:
        if arguments.vs:
            raise Problem("--group-by and --vs both say which traces go together: leave one out")
        files = [path for name in arguments.traces for path in (_traces_in(name) if os.path.isdir(name) else [name])]
        return _groups(reader.found(files), arguments.group_by)
    if arguments.vs:
        return _labelled([reader.runs(names) for names in [arguments.traces] + arguments.vs])
    if len(arguments.traces) < 2 and reader.is_of_range and not os.path.isdir(arguments.traces[0]):
        return reader.moments(arguments.traces[0])
    if len(arguments.traces) < 2:
        raise Problem("one side alone has nothing to be compared with: name another, or use --group-by")
    return _labelled([reader.runs([name]) for name in arguments.traces])


# What is told of the whole run, or of what was sampled at a moment, is none of a range.
_NOT_OF_RANGES = (SCOPE, PROCESS, "role")


def _views_and_moment(arguments: argparse.Namespace) -> Tuple[List[str], At]:
    default = _DEFAULT_VIEWS_OF_PAGE if arguments.format == _HTML else _DEFAULT_VIEWS
    views = list(OrderedDict.fromkeys(arguments.by or default))
    begin, end = getattr(arguments, "from"), arguments.to
    if begin or end:
        if arguments.at is not None:
            raise Problem("--at is a moment, and --from and --to are a range: leave one out")
        stranger = next((view for view in arguments.by or () if view in _NOT_OF_RANGES), None)
        if stranger:
            raise Problem(f"--by={stranger} has no meaning for a range")
        return [view for view in views if view not in _NOT_OF_RANGES], (begin or "start", end or "end")
    if arguments.at is not None and views == [SCOPE]:
        raise Problem("--at has no meaning for --by=scope: calls are told with what they cost, whenever that was")
    return views, arguments.at or "peak"


def _min_bytes(arguments: argparse.Namespace, columns: Sequence[Column]) -> int:
    least: Optional[int] = arguments.min
    if least is not None:
        return least
    if arguments.format not in _FOR_PEOPLE:
        return 0
    totals = [total(parts).bytes for column in columns for run in column.runs for parts in run.views.values()]
    return max(1, max(totals, default=0) // _DEFAULT_MIN_SHARE)


def _compare(arguments: argparse.Namespace, columns: Sequence[Column], views: Sequence[str]) -> Difference:
    min_bytes = _min_bytes(arguments, columns)
    found = compare(columns, views, min_bytes)
    while arguments.format == _HTML and sum(len(view.rows) for view in found.views) > _MAX_ROWS_OF_PAGE:
        min_bytes = max(1024, 4 * min_bytes)
        found = compare(columns, views, min_bytes)
    return found


def _diff(given: Optional[List[str]]) -> int:
    arguments = _parser().parse_args(given)
    if arguments.open and arguments.format != _HTML:
        raise Problem("--open shows a page in the browser: it needs --format=html")
    views, at = _views_and_moment(arguments)
    stacks = Stacks() if arguments.format == _HTML else None
    try:
        if stacks is not None:
            html.read_assets()
        reader = _Reader(views, at, stacks, arguments.anonymous)
        columns = _columns(arguments, reader)
        common.keep_inputs(arguments.output, reader.files)
        found = _compare(arguments, columns, views)
        if stacks is not None:
            page = difference_html.write(found, stacks)
            write_page(_NAME, page, reader.files, arguments.output, "jmassif.diff.html", arguments.open)
        else:
            common.write(_WRITERS[arguments.format](found, arguments.bytes), arguments.output)
    except FormatError as error:
        raise Problem(str(error))
    return 0


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs jm_diff with `arguments` (those of the process by default); the exit status."""
    return common.main(_NAME, _diff, arguments)


def run() -> NoReturn:
    common.run(main)
