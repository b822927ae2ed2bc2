# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif report`, also as jm_print: a report on a terminal, a page, and with --format any export; `jmassif export`."""

import argparse
import sys
from importlib import import_module
from shlex import quote
from typing import Any, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.aggregate import VALUES
from jmassif.analysis.moments import SelectionError
from jmassif.attribution.views import WITHOUT_THREADS
from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.options import Suppressions, add_filters, add_suppressions, add_traces
from jmassif.cli.options import filter_runs, non_empty, number, shown_name, traces_of
from jmassif.cli.terminal import is_terminal
from jmassif.model.process_tree import Process, newest_run, twice
from jmassif.model.run import Profile
from jmassif.reader.input import STDIN
from jmassif.render.view import BY, FOLDS, FormatError, View

_DEFAULT_THRESHOLD = 1.0  # the recorder's, as massif's
_DEFAULT_WIDTH = 70
_LEAST_WIDTH = 20
_GRAPH_MARGIN = 10  # columns beside a graph
_PAGE_COLUMNS = 100

# ---- formats ----------------------------------------------------------------------------------------

TEXT = "text"
BINARY = "binary"
LARGE = "large"  # text that programs read
PAGE = "page"  # for a browser

_RANGE = ("from", "to")
_TREE = ("snapshot", "threshold", "by", "fold")
_TABLE = ("include", "exclude", "snapshot", "by", "fold")
_FLAMES = ("threshold", *_TABLE, "value")
_PAGE = ("include", "exclude", "source", "no-source")
_REPORT = ("threshold", *_TABLE, *_RANGE, "source", "no-source", "segments", "held-twice")
# Options that choose what is shown. The others work with every format.
_CHOICES = (*_REPORT, "value", "pages")

_TABLES = tuple(view for view in BY if view != "stack")
_BLOCKS = ("stack", "owner", "role")


class Format(NamedTuple):
    """An output format, and the options that it supports."""

    help: str  # a line: the programs that open it
    content: str  # one of those above
    options: Tuple[str, ...]
    by: Tuple[str, ...] = ()  # the values of --by, the default first
    threshold: Optional[float] = None  # percent; None: the recorder's
    fold: Optional[str] = None  # None: "internal" in views by line, and "none" in trees


FORMATS = {
    "text": Format("a report for a terminal", TEXT, _REPORT, BY, fold="internal"),
    "html": Format("a browser: one page", PAGE, _PAGE),
    "massif": Format("ms_print, massif-visualizer", TEXT, (*_TREE, "pages"), BY),
    "json": Format("programs: the whole run, with a schema", LARGE, _TABLE, _TABLES),
    "csv": Format("spreadsheets: a table, also over time", TEXT, _TABLE, _TABLES),
    # A flame graph as wide as a screen shows nothing smaller than 0.01 %.
    "folded": Format("flamegraph.pl, speedscope", TEXT, _FLAMES, BY, 0.01),
    "pprof": Format("go tool pprof, Pyroscope, Parca", BINARY, ("include", "exclude", "snapshot")),
    "perfetto": Format("ui.perfetto.dev, chrome://tracing", LARGE, ("threshold", "by", "fold"), _TABLES),
    "memory-viz": Format(
        "PyTorch's memory_viz: the device's memory over time", BINARY, ("snapshot", "segments", "by"), _BLOCKS
    ),
}
EXPORTS = tuple(name for name in FORMATS if name not in ("text", "html"))

# The functions below jmassif that write one process in a format, and several, where they are not export.FORMAT.write and none.
_WRITERS = {
    "text": ("render.text.write", "render.job.write"),
    "html": ("html.page.write", "html.page.write_several"),
    "json": ("export.json.write", "export.json.write_job"),
}


def writer(format_: str, is_of_several: bool = False) -> Any:
    """The function that writes a format, None if the format has one process alone. Imports its module, and no other's."""
    functions = _WRITERS.get(format_, (f"export.{format_.replace('-', '_')}.write", ""))
    module, _, name = functions[is_of_several].rpartition(".")
    return getattr(import_module(f"jmassif.{module}"), name) if name else None


# ---- options ----------------------------------------------------------------------------------------

_EPILOG = """\
examples:
  jmassif report --by=python-line jmassif.out.4711
  jmassif report --html --open jmassif.out.*"""

_EXPORT_EPILOG = f"""\
formats:
{''.join(f'  {name:<12}{FORMATS[name].help}' + chr(10) for name in EXPORTS)}examples:
  jmassif export --format=massif -o massif.out.4711 jmassif.out.4711
  jmassif export --format=json jmassif.out.4711 | jq .ledger"""


def build_parser(prog: str) -> Parser:
    about = "Show where a recorded program's memory went, at its peak or at --snapshot."
    parser = Parser(prog, about, _EPILOG, "[OPTION]... [TRACE]...")
    option = parser.add_argument
    option("-o", "--output", type=non_empty, metavar="FILE", help="write to FILE [a page: jmassif.PID.html]")
    option(
        "--format", choices=list(FORMATS), default="text", metavar="NAME", help="text, html, or one of jmassif export"
    )
    option("--html", action="store_const", dest="format", const="html", help="a page: short for --format=html")
    option("--open", action="store_true", help="open the page in the browser")
    _add_selection(parser, is_export=False)
    option("--stacks", action="store_true", help="end the report with call stacks")
    option("--all", action="store_true", help="all sections in full, and call stacks")
    option("--each", action="store_true", help="report on each process, not on the largest only")
    add_suppressions(parser)
    option("--source", type=non_empty, metavar="DIR", action="append", help="show source text below DIR too")
    option("--no-source", action="store_true", help="show no source text")
    option("--color", choices=("auto", "always", "never"), default="auto", metavar="WHEN", help="auto, always, never")
    option("--no-pager", action="store_false", dest="pager", help="do not page the text on a terminal")
    return parser


def build_export_parser(prog: str) -> Parser:
    about = "Write a trace in a format of another program."
    parser = Parser(prog, about, _EXPORT_EPILOG, "--format=NAME [OPTION]... [TRACE]")
    option = parser.add_argument
    option("-o", "--output", type=non_empty, metavar="FILE", help="write to FILE [standard output]")
    option("--format", choices=EXPORTS, required=True, metavar="NAME", help="see below")
    _add_selection(parser, is_export=True)
    parser.set_defaults(stacks=False, all=False, each=False, suppressions=[], source=None, no_source=False, open=False)
    return parser


def _add_selection(parser: Parser, is_export: bool) -> None:
    """The traces, and the options of reports and exports that choose what is shown."""
    add_traces(parser)
    option = parser.add_argument
    when = "peak, start, end, a mark, a number, 12.5s or 40%% [peak]"
    option("--snapshot", type=non_empty, metavar="WHEN", help=when)
    option("--from", dest="begin", type=non_empty, metavar="WHEN", help="compare two moments: this one [start]")
    option("--to", dest="end", type=non_empty, metavar="WHEN", help="with this one [end]")
    option("--by", choices=BY, metavar="WHAT", help=f"group by {', '.join(BY)}")
    option("--segments", metavar="[=N]", help="map device memory; =N: at the Nth failed allocation")
    parser.optional_values = ("--segments",)
    twice = "show host memory that is in device copies too, and copies by line"
    option("--held-twice", action="store_true", help=argparse.SUPPRESS if is_export else twice)
    add_filters(parser)
    share = "fold stacks below this share [the recorder's]"
    option("--threshold", type=number(0, 100, "%"), metavar="PERCENT", help=share)
    option("--fold", choices=FOLDS, metavar="WHICH", help="internal: one row for frames inside a package; or none")
    option("--anonymous", action="store_true", help="remove user, host, paths, arguments, environment, source")
    # jm_print writes exports as well, and leaves these out of its help.
    figure, pages = "figure of a stack in folded", "count resident pages in massif, too"
    option("--value", choices=list(VALUES), metavar="WHAT", help=figure if is_export else argparse.SUPPRESS)
    option("--pages", action="store_true", help=pages if is_export else argparse.SUPPRESS)


# ---- contradictions ---------------------------------------------------------------------------------

# Options that cannot be combined.
_EXCLUSIVE = (
    (_RANGE, ("snapshot", "segments")),
    (("segments", "held-twice"), ("include", "exclude")),
    (("held-twice",), (*_RANGE, "segments")),
    (("anonymous",), ("source",)),
)
_OPTION_OF = {"begin": "from", "end": "to", "no_source": "no-source", "held_twice": "held-twice"}


def _check_options(arguments: argparse.Namespace) -> None:
    """Raises Problem for options that the format does not support, or that cannot be combined."""
    name, format_ = arguments.format, FORMATS[arguments.format]

    def check(option: str, is_known: bool, supported: Iterable[str]) -> None:
        if not is_known:
            raise Problem(f"--{option} is not supported by --format={name} (supported: {', '.join(supported)})")

    given = [_OPTION_OF.get(key, key) for key, value in vars(arguments).items() if value not in (None, False, [])]
    for option in filter(_CHOICES.__contains__, given):
        formats = [other for other in FORMATS if option in FORMATS[other].options]
        check(option, name in formats, formats)
    for these, those in _EXCLUSIVE:
        one, other = next(filter(given.__contains__, these), ""), next(filter(given.__contains__, those), "")
        if one and other:
            raise Problem(f"--{one} and --{other} cannot be combined: leave one out")
    check(f"by={arguments.by}", arguments.by in (None, *format_.by), format_.by)
    if arguments.by == "role" and _range(arguments):
        raise Problem("--by=role is not supported with --from and --to: the role of a tensor may change between them")
    if format_.content in (BINARY, LARGE) and not arguments.output and is_terminal(sys.stdout):
        content = "binary data" if format_.content == BINARY else name
        raise Problem(f"refusing to write {content} to a terminal; use -o FILE")
    if arguments.open and format_.content != PAGE:
        raise Problem("--open shows a page: add --html")


def _check_number(arguments: argparse.Namespace, n_traces: int) -> None:
    """Raises Problem if there are several traces, and the format is of one process."""
    if n_traces > 1 and not writer(arguments.format, True):
        raise Problem(f"--format={arguments.format} is for one process: name one trace ({n_traces} are named)")


# ---- the view ---------------------------------------------------------------------------------------


def _range(arguments: argparse.Namespace) -> Optional[Tuple[str, str]]:
    begin, end = arguments.begin, arguments.end
    return (begin or "start", end or "end") if begin or end else None


def _columns(arguments: argparse.Namespace) -> int:
    """The width of a line: that of the terminal; elsewhere of a page for the report, and without a limit for stacks."""
    if not arguments.output and is_terminal(sys.stdout):
        import shutil

        return shutil.get_terminal_size().columns
    is_report = arguments.segments is None and not _range(arguments)
    return _PAGE_COLUMNS if is_report and not (arguments.all or arguments.stacks or arguments.by) else 0


def _view(arguments: argparse.Namespace, name: str) -> View:
    format_, columns = FORMATS[arguments.format], _columns(arguments)
    default = _DEFAULT_THRESHOLD if format_.threshold is None else format_.threshold
    with_stacks = arguments.stacks or arguments.all or arguments.by or arguments.fold or arguments.threshold is not None
    return View(
        selector=arguments.snapshot,
        threshold=default if arguments.threshold is None else arguments.threshold,
        by=arguments.by or (format_.by or BY)[0],
        width=max(_LEAST_WIDTH, min(_DEFAULT_WIDTH, (columns or _PAGE_COLUMNS) - _GRAPH_MARGIN)),
        fold=arguments.fold or format_.fold,
        source=None if arguments.no_source or arguments.anonymous else tuple(arguments.source or ()),
        value=arguments.value or next(iter(VALUES)),
        range=_range(arguments),
        segments=arguments.segments,
        held_twice=arguments.held_twice,
        with_pages=arguments.pages,
        is_brief=not arguments.all,
        with_stacks=bool(with_stacks),
        columns=columns,
        file="" if name == STDIN or arguments.anonymous else name,
    )


# ---- reading and writing ----------------------------------------------------------------------------


def _read(arguments: argparse.Namespace, names: List[str], known: Suppressions) -> List[Profile]:
    """The runs, narrowed as the options say. Raises Problem."""
    runs = [common.read(name, "showing what came before") for name in names]
    for name, run_ in zip(names, runs):
        if arguments.by == "thread" and not run_.has_threads:
            raise Problem(f"{name}: {WITHOUT_THREADS}")
    filter_runs(arguments, names, runs, arguments.format == "html")
    for run_ in runs:
        known.apply(run_)
        if arguments.anonymous:
            from jmassif.attribution.redact import anonymize

            anonymize(run_)
    common.check_not_input(arguments.output, names)
    copies = twice(list(zip(names, runs)))
    if copies:
        raise Problem(f"{copies[1]}: is of the same process as {copies[0]}: name one of them")
    return runs


_MOST_TYPED = 8  # files


def _warn_of_earlier(members: Sequence[Process], format_: str) -> None:
    """A sum of runs that have nothing to do with each other, as of jmassif.out.*, is of no use."""
    newest = newest_run(members) if format_ in ("text", "html") else members
    n = len(members) - len(newest)
    if n:
        names = " ".join(quote(process.name) for process in newest)
        alone = f": {common.program} {names}" if len(newest) <= _MOST_TYPED else ""
        of = f"{n} of these {len(members)} traces {'is of an earlier run' if n == 1 else 'are of earlier runs'}"
        common.warn(f"{of}, unrelated to the newest, and in the sum all the same; the newest alone{alone}")


def _write(arguments: argparse.Namespace, names: List[str], runs: List[Profile]) -> None:
    name_of = {id(run_): name for name, run_ in zip(names, runs)}

    def view(run_: Profile) -> View:
        return _view(arguments, name_of[id(run_)])

    write = writer(arguments.format, len(runs) > 1)
    if len(runs) > 1:
        from jmassif.analysis.processes import join

        # Files may be called as their owner is.
        shown = [f"trace {number}" for number in range(1, len(names) + 1)] if arguments.anonymous else names
        job = join(list(zip(shown, runs)))
        _warn_of_earlier(job.members, "" if job.no_clock or arguments.anonymous else arguments.format)
        lines = write(job, view, arguments.each)
    else:
        lines = write(runs[0], view(runs[0]))
    if arguments.format == "html":
        pid = runs[0].manifest.get("pid", "")
        name = f"jmassif.{pid}.html" if pid.isdecimal() and len(pid) <= 20 else "jmassif.html"
        common.write_page(lines, names, arguments.output, name, arguments.open)
    elif arguments.format == "text":
        from jmassif.render.layout import fitted

        common.show(fitted(lines, _columns(arguments)), arguments.output, arguments.color, arguments.pager)
    else:
        common.write(lines, arguments.output)


def run(arguments: argparse.Namespace) -> int:
    _check_options(arguments)
    names = traces_of(arguments)
    _check_number(arguments, len(names))
    known = Suppressions(arguments.suppressions)
    try:
        if arguments.format == "html":
            from jmassif.html.page import read_assets

            read_assets()
        _write(arguments, names, _read(arguments, names, known))
    except SelectionError as error:
        raise Problem(f"{names[0]}: {error}" if len(names) == 1 or not _range(arguments) else str(error))
    except FormatError as error:
        raise Problem(f"{shown_name(names[0])}: {error}")
    except OverflowError:
        raise Problem(f"{shown_name(names[0])}: a sum is beyond 64 bits")
    known.warn_unused()
    return 0
