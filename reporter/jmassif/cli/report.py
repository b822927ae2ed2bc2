# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif report`, also as jm_print: a report on a terminal, a page, and with --format any export; `jmassif export`."""

import argparse
import sys
from importlib import import_module
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.aggregate import RANGE_VALUES, VALUES
from jmassif.analysis.moments import SelectionError
from jmassif.attribution.views import WITHOUT_THREADS
from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.options import (
    Suppressions,
    add_filters,
    add_overlay,
    add_suppressions,
    add_traces,
    filter_runs,
    non_empty,
    number,
    overlay_runs,
    shown_name,
    traces_of,
)
from jmassif.cli.terminal import is_terminal
from jmassif.model.process_tree import twice
from jmassif.model.run import Profile
from jmassif.reader.input import STDIN
from jmassif.render.view import BY, FOLDS, FormatError, View

# The recorder's own default, as massif's.
_DEFAULT_THRESHOLD = 1.0

_DEFAULT_WIDTH = 70
_LEAST_WIDTH = 20
_GRAPH_MARGIN = 10  # columns beside a graph
_PAGE_COLUMNS = 100

# ---- formats ----------------------------------------------------------------------------------------

TEXT = "text"
BINARY = "binary"
LARGE = "large"  # text that programs read
PAGE = "page"  # for a browser

_TREE = ("snapshot", "threshold", "by", "fold")
_RANGE = ("from", "to")
_FILTERS = ("include", "exclude")
_SOURCE = ("source", "no-source")
# Options that choose what is shown. The others work with every format.
_CHOICES = _FILTERS + _TREE + _RANGE + _SOURCE + ("overlay", "width", "height", "segments", "sizes", "value", "pages")

_TABLES = tuple(view for view in BY if view != "stack")
_FLAMES = 0.01  # percent; a flame graph as wide as a screen shows nothing smaller


class Format(NamedTuple):
    """An output format: the function that writes it, imported when the format is chosen, and the options it supports."""

    name: str
    help: str  # a line: the programs that open it
    content: str  # one of those above
    module: str  # below jmassif; has `one`(run, view)
    options: Tuple[str, ...]
    by: Tuple[str, ...] = ()  # the values of --by, the default first
    threshold: Optional[float] = None  # percent; None: the recorder's
    fold: Optional[str] = None  # None: "internal" in views by line, and "none" in trees
    one: str = "write"
    # Functions that write several processes, and a range over several; "": the format has one process.
    several: str = ""
    several_in_range: str = ""

    def write(self, run: Any, view: Any) -> Any:
        """Lines, or bytes, of one run."""
        return self.function(self.one)(run, view)

    def function(self, name: str) -> Any:
        """A function of the format's module, or of another one as MODULE.NAME; None if there is none."""
        module, _, name = f"{self.module}.{name}".rpartition(".") if "." not in name else name.rpartition(".")
        return getattr(import_module(f"jmassif.{module}"), name, None)

    def check_option(self, option: str) -> None:
        """Raises Problem if the format does not support an option, named without dashes."""
        if option in _CHOICES and option not in self.options:
            supported = ", ".join(other.name for other in FORMATS.values() if option in other.options)
            raise Problem(f"--{option} is not supported by --format={self.name} (supported: {supported})")


def _flames(name: str, help_: str, content: str) -> Format:
    options = _FILTERS + _TREE + _RANGE + ("value",)
    writers = {"one": f"write_{name}", "several_in_range": f"write_{name}_range"}
    return Format(name, help_, content, "export.flames", options, BY, _FLAMES, **writers)


_TABLE = _FILTERS + ("snapshot", "by", "fold")
_REPORT = tuple(option for option in _CHOICES if option not in ("value", "pages"))
_ALL = (
    Format(
        "text",
        "a report for a terminal",
        TEXT,
        "render.text",
        _REPORT,
        BY,
        None,
        "internal",
        several="render.job.write",
        several_in_range="render.ranges.write",
    ),
    Format(
        "html", "a browser: one page", PAGE, "html.page", _FILTERS + _SOURCE + ("overlay",), several="write_several"
    ),
    Format("massif", "ms_print, massif-visualizer", TEXT, "export.massif", _TREE + ("pages",), BY),
    Format(
        "json",
        "programs: the whole run, with a schema",
        LARGE,
        "export.json",
        _TABLE + _RANGE + ("sizes", "overlay"),
        _TABLES,
        several="write_job",
        several_in_range="write_range",
    ),
    Format("csv", "spreadsheets: a table, also over time", TEXT, "export.csv", _TABLE, _TABLES),
    _flames("folded", "flamegraph.pl", TEXT),
    _flames("speedscope", "speedscope", LARGE),
    Format("pprof", "go tool pprof, Pyroscope, Parca", BINARY, "export.pprof", _FILTERS + ("snapshot",)),
    Format(
        "perfetto", "ui.perfetto.dev, chrome://tracing", LARGE, "export.perfetto", ("threshold", "by", "fold"), _TABLES
    ),
    Format(
        "memory-viz",
        "PyTorch's memory_viz: the device's memory over time",
        BINARY,
        "export.memory_viz",
        ("snapshot", "segments", "by"),
        ("stack", "owner", "role"),
    ),
    Format("plot", "PNG, SVG or PDF, as -o FILE ends (needs matplotlib)", BINARY, "export.plot", ()),
)
FORMATS = {format_.name: format_ for format_ in _ALL}
EXPORTS = tuple(name for name in FORMATS if name not in ("text", "html"))


# ---- options ----------------------------------------------------------------------------------------

_EPILOG = """\
examples:
  jmassif report --by=python-line jmassif.out.4711
  jmassif report --html --open jmassif.out.*"""


def add_selection(parser: Parser) -> None:
    """The options of reports and exports that choose what is shown."""
    option = parser.add_argument
    option(
        "--snapshot",
        type=non_empty,
        metavar="WHEN",
        help="peak, start, end, a mark, a number, 12.5s or 40%% [peak]",
    )
    option("--from", dest="begin", type=non_empty, metavar="WHEN", help="compare two moments: this one [start]")
    option("--to", dest="end", type=non_empty, metavar="WHEN", help="with this one [end]")
    option("--by", choices=BY, metavar="WHAT", help=f"group by {', '.join(BY)}")
    option("--sizes", action="store_true", help="sizes of blocks")
    option("--segments", metavar="[=N]", help="map device memory; =N: at the Nth failed allocation")
    add_filters(parser)
    option(
        "--threshold", type=number(0, 100, "%"), metavar="PERCENT", help="fold stacks below this share [the recorder's]"
    )
    option("--fold", choices=FOLDS, metavar="WHICH", help="internal: one row for frames inside a package; or none")
    add_overlay(parser)
    option("--anonymous", action="store_true", help="remove user, host, paths, arguments, environment, source")
    parser.optional_values = ("--segments",)


def add_value(parser: argparse.ArgumentParser, value: str, pages: str) -> None:
    """The options of exports alone, with their help."""
    values = list(dict.fromkeys([*VALUES, *RANGE_VALUES]))
    parser.add_argument("--value", choices=values, metavar="WHAT", help=value)
    parser.add_argument("--pages", action="store_true", help=pages)


def add_output(parser: argparse.ArgumentParser, formats: Sequence[str], text: str) -> None:
    option = parser.add_argument
    is_report = "text" in formats
    default = "a page: jmassif.PID.html" if is_report else "standard output"
    option("-o", "--output", type=non_empty, metavar="FILE", help=f"write to FILE [{default}]")
    option(
        "--format",
        choices=formats,
        default="text" if is_report else None,
        required=not is_report,
        metavar="NAME",
        help=text,
    )


def build_parser(prog: str) -> Parser:
    parser = Parser(
        prog,
        "Show where a recorded program's memory went, at its peak or at --snapshot.",
        _EPILOG,
        "[OPTION]... [TRACE]...",
    )
    option = parser.add_argument
    add_traces(parser)
    add_selection(parser)
    option("--stacks", action="store_true", help="end the report with call stacks")
    option("--all", action="store_true", help="all sections in full, and call stacks")
    option("--each", action="store_true", help="report on each process, not on the largest only")
    add_suppressions(parser)
    option("--source", type=non_empty, metavar="DIR", action="append", help="show source text below DIR too")
    option("--no-source", action="store_true", help="show no source text")
    option("--width", type=number(4, 1000, is_whole=True), metavar="N", help="width of the graph [70]")
    option("--height", type=number(4, 1000, is_whole=True), metavar="N", help="height of the graph")
    option("--color", choices=("auto", "always", "never"), default="auto", metavar="WHEN", help="auto, always, never")
    option("--pager", action="store_true", default=None, help=argparse.SUPPRESS)
    option("--no-pager", action="store_false", dest="pager", help="do not page the text on a terminal")
    add_output(parser, ("text", "html", *EXPORTS), "text, html, or one of jmassif export")
    option("--html", action="store_const", dest="format", const="html", help="a page: short for --format=html")
    option("--open", action="store_true", help="open the page in the browser")
    # Options of exports, which jm_print writes as well.
    add_value(parser, argparse.SUPPRESS, argparse.SUPPRESS)
    return parser


_EXPORT_EPILOG = f"""\
formats:
{''.join(f'  {name:<12}{FORMATS[name].help}' + chr(10) for name in EXPORTS)}examples:
  jmassif export --format=massif -o massif.out.4711 jmassif.out.4711
  jmassif export --format=json jmassif.out.4711 | jq .ledger"""


def build_export_parser(prog: str) -> Parser:
    parser = Parser(
        prog, "Write a trace in a format of another program.", _EXPORT_EPILOG, "--format=NAME [OPTION]... [TRACE]"
    )
    add_traces(parser)
    add_output(parser, EXPORTS, "see below")
    add_selection(parser)
    add_value(parser, "figure of a stack in folded and speedscope", "count resident pages in massif, too")
    parser.set_defaults(stacks=False, all=False, each=False, suppressions=[], source=None, no_source=False)
    parser.set_defaults(width=None, height=None, color="never", pager=False, open=False)
    return parser


# ---- contradictions ---------------------------------------------------------------------------------


# Options that cannot be combined, by their names in the parsed arguments.
_EXCLUSIVE = (
    (("begin", "end"), ("snapshot", "segments", "sizes")),
    (("segments",), ("sizes", "include", "exclude")),
    (("anonymous",), ("source",)),
)
_OPTION_OF = {"begin": "from", "end": "to"}


def _given(arguments: argparse.Namespace) -> List[str]:
    """The names of options with a value, as in the parsed arguments."""
    return [name for name, value in vars(arguments).items() if value not in (None, False, [])]


def _check_options(arguments: argparse.Namespace, format_: Format) -> None:
    """Raises Problem for options that the format does not support, or that cannot be combined."""
    given = _given(arguments)
    options = {name: _OPTION_OF.get(name, name.replace("_", "-")) for name in given}
    for option in options.values():
        format_.check_option(option)
    for these, those in _EXCLUSIVE:
        one, other = next(filter(options.get, these), ""), next(filter(options.get, those), "")
        if one and other:
            raise Problem(f"--{options[one]} and --{options[other]} cannot be combined: leave one out")
    if arguments.by and arguments.by not in format_.by:
        raise Problem(
            f"--by={arguments.by} is not supported by --format={format_.name} (supported: {', '.join(format_.by)})"
        )
    values = RANGE_VALUES if _range(arguments) else VALUES
    if arguments.value and arguments.value not in values:
        what = "with" if _range(arguments) else "without"
        raise Problem(
            f"--value={arguments.value} is not supported {what} --from and --to (supported: {', '.join(values)})"
        )
    if arguments.by == "role" and _range(arguments):
        raise Problem("--by=role is not supported with --from and --to: the role of a tensor may change between them")
    if format_.content in (BINARY, LARGE) and not arguments.output and is_terminal(sys.stdout):
        what = "binary data" if format_.content == BINARY else format_.name
        raise Problem(f"refusing to write {what} to a terminal; use -o FILE")
    if arguments.open and format_.content != PAGE:
        raise Problem("--open shows a page: add --html")


def _check_number(arguments: argparse.Namespace, format_: Format, n_traces: int) -> None:
    """Raises Problem if there are several traces, and what is asked for is of one process."""
    is_range = bool(_range(arguments))
    several = format_.several_in_range if is_range else format_.several
    option = "--sizes" if arguments.sizes else "" if several else f"--format={format_.name}"
    if n_traces > 1 and option:
        raise Problem(f"{option} is for one process: name one trace ({n_traces} are named)")


# ---- the view ---------------------------------------------------------------------------------------


def _range(arguments: argparse.Namespace) -> Optional[Tuple[str, str]]:
    begin, end = arguments.begin, arguments.end
    return (begin or "start", end or "end") if begin or end else None


def _columns(arguments: argparse.Namespace) -> int:
    """The width of a line: that of the terminal; elsewhere of a page for the report, and without a limit for stacks."""
    if not arguments.output and is_terminal(sys.stdout):
        import shutil

        return shutil.get_terminal_size().columns
    is_report = not (arguments.sizes or arguments.segments is not None or _range(arguments))
    return _PAGE_COLUMNS if is_report and not (arguments.all or arguments.stacks or arguments.by) else 0


def _view(arguments: argparse.Namespace, run_: Profile, format_: Format, name: str) -> View:
    threshold = arguments.threshold
    if threshold is None:
        threshold = format_.threshold
    if threshold is None:
        threshold = min(run_.option("threshold", _DEFAULT_THRESHOLD), 100.0)
    columns = _columns(arguments)
    width = max(_LEAST_WIDTH, min(_DEFAULT_WIDTH, (columns or _PAGE_COLUMNS) - _GRAPH_MARGIN))
    with_stacks = arguments.stacks or arguments.all or arguments.by or arguments.fold or arguments.threshold is not None
    return View(
        selector=arguments.snapshot,
        threshold=threshold,
        by=arguments.by or (format_.by or BY)[0],
        width=arguments.width or width,
        height=arguments.height,
        fold=arguments.fold or format_.fold,
        source=None if arguments.no_source or arguments.anonymous else tuple(arguments.source or ()),
        value=arguments.value or next(iter(RANGE_VALUES if _range(arguments) else VALUES)),
        range=_range(arguments),
        sizes=arguments.sizes,
        segments=arguments.segments,
        with_pages=arguments.pages,
        is_brief=not arguments.all,
        with_stacks=bool(with_stacks),
        columns=columns,
        output=arguments.output or "",
        file="" if name == STDIN or arguments.anonymous else name,
    )


# ---- reading and writing ----------------------------------------------------------------------------


def _read(arguments: argparse.Namespace, format_: Format, names: List[str], known: Suppressions) -> List[Profile]:
    """The runs, narrowed as the options say. Raises Problem."""
    runs = [common.read(name, "showing what came before") for name in names]
    for name, run_ in zip(names, runs):
        if arguments.by == "thread" and not run_.has_threads:
            raise Problem(f"{name}: {WITHOUT_THREADS}")
    overlay_runs(arguments.overlay, runs)
    filter_runs(arguments, names, runs, format_.content == PAGE)
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


def _write(arguments: argparse.Namespace, format_: Format, names: List[str], runs: List[Profile]) -> None:
    name_of = {id(run_): name for name, run_ in zip(names, runs)}

    def view(run_: Profile) -> View:
        return _view(arguments, run_, format_, name_of[id(run_)])

    if len(runs) > 1:
        # Files may be called as their owner is.
        shown = [f"trace {number}" for number in range(1, len(names) + 1)] if arguments.anonymous else names
        from jmassif.analysis.processes import join

        write = format_.function(format_.several_in_range if _range(arguments) else format_.several)
        lines = write(join(list(zip(shown, runs))), view, arguments.each)
    else:
        lines = format_.write(runs[0], view(runs[0]))
    if format_.content == PAGE:
        pid = runs[0].manifest.get("pid", "")
        name = f"jmassif.{pid}.html" if pid.isdecimal() and len(pid) <= 20 else "jmassif.html"
        common.write_page(lines, names, arguments.output, name, arguments.open)
    elif format_.name == "text":
        from jmassif.render.layout import fitted

        common.show(fitted(lines, _columns(arguments)), arguments.output, arguments.color, arguments.pager)
    else:
        common.write(lines, arguments.output)
        remark = format_.function("remark")
        text = remark(runs[0], view(runs[0])) if remark else ""
        if text:
            common.warn(f"{shown_name(names[0])}: {text}")


def run(arguments: argparse.Namespace) -> int:
    format_ = FORMATS[arguments.format]
    _check_options(arguments, format_)
    names = traces_of(arguments)
    _check_number(arguments, format_, len(names))
    known = Suppressions(arguments.suppressions)
    try:
        if format_.content == PAGE:
            format_.function("read_assets")()
        runs = _read(arguments, format_, names, known)
        _write(arguments, format_, names, runs)
    except SelectionError as error:
        raise Problem(f"{names[0]}: {error}" if len(names) == 1 or not _range(arguments) else str(error))
    except FormatError as error:
        raise Problem(f"{shown_name(names[0])}: {error}")
    except OverflowError:
        raise Problem(f"{shown_name(names[0])}: a sum is beyond 64 bits")
    known.warn_unused()
    return 0
