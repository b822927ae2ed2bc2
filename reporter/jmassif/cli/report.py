# SPDX-License-Identifier: GPL-2.0-or-later
"""The command jm_print: its options. What goes wrong is one line and exit status 2; see common.py."""

import argparse
import shutil
import sys
from typing import List, NoReturn, Optional, Tuple

from jmassif.analysis.aggregate import RANGE_VALUES, VALUES
from jmassif.analysis.moments import SelectionError
from jmassif.analysis.processes import join
from jmassif.attribution.redact import anonymize
from jmassif.attribution.views import WITHOUT_THREADS
from jmassif.cli import common, options as editors, options as filters, options as overlay, options as suppressions
from jmassif.cli.common import Parser, Problem, filled
from jmassif.cli.formats import BINARY, FORMATS, LARGE, PAGE, Format
from jmassif.cli.options import Suppressions
from jmassif.cli.pages import write_page
from jmassif.cli.terminal import is_terminal
from jmassif.model.processes import twice
from jmassif.model.run import Profile
from jmassif.reader.input import STDIN, expand
from jmassif.render.layout import fitted
from jmassif.render.view import BY, FOLDS, FormatError, View


# What recorder and reporter take for granted when nobody says otherwise, as massif does.
_DEFAULT_THRESHOLD = 1.0

_DEFAULT_WIDTH = 70
_LEAST_WIDTH = 20
_GRAPH_MARGIN = 10  # columns beside a graph
_PAGE_COLUMNS = 100

_EPILOG = (
    """\
FILE may be compressed with gzip or zstd, and - is standard input.

Without options jm_print answers where the memory went at the peak: the ledger by owner, what the
start cost, and the stacks. The formats, and what opens them:
"""
    + "".join(f"\n  {format_.name:<12}{format_.help}" for format_ in FORMATS.values())
    + """

examples:
  jm_print jmassif.out.4711                         where the memory went
  jm_print --by=python-line jmassif.out.4711        by line of the script
  jm_print --snapshot=end jmassif.out.4711          what was held in the end
  jm_print --from=start --to=80% jmassif.out.4711   what came and went in between
  jm_print --by=library --pager jmassif.out.4711    by library, a page at a time
  jm_print jmassif.out.*                            several processes, and their sum
  ssh board zstd -c jmassif.out.4711 | jm_print -   from a board, without a copy
  jm_print --format=html --open jmassif.out.4711    as a page in the browser
  jm_print --format=massif -o massif.out.4711 jmassif.out.4711
"""
)


def _percent(text: str) -> float:
    try:
        value = float(text[:-1] if text.endswith("%") else text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f'"{text}" is no percentage from 0 to 100')
    return value


def _extent(text: str) -> int:
    value = int(text) if text.isdigit() and len(text) < 5 else 0
    if not 4 <= value <= 1000:
        raise argparse.ArgumentTypeError(f'"{text}" is no number from 4 to 1000')
    return value


def _parser() -> argparse.ArgumentParser:
    parser = Parser("jm_print", "Shows what valgrind --tool=jmassif recorded.", _EPILOG)
    option = parser.add_argument
    option(
        "files",
        metavar="FILE",
        nargs="+",
        help="a trace, as a rule jmassif.out.PID; several of several processes; - for standard input",
    )
    option("--format", choices=list(FORMATS), default="text", help="what to write; see below [text]")
    option(
        "-o", "--output", type=filled, metavar="FILE", help="write to FILE [standard output; html: jmassif.PID.html]"
    )
    option(
        "--snapshot",
        type=filled,
        metavar="WHICH",
        help="the moment to explain: a snapshot's number, a mark, peak, peak-host, peak-device, peak-allocated, start, end"
        " or last [peak]; csv: or all",
    )
    option(
        "--from",
        type=filled,
        metavar="WHEN",
        help="instead, what came, went and passed since that moment; like --snapshot, or a time: 12.5s, 40%%; of several processes also 12-of-PID [start]",
    )
    option("--to", type=filled, metavar="WHEN", help="likewise, until that moment [end]")
    option(
        "--threshold",
        type=_percent,
        metavar="PERCENT",
        help="fold places below this share of the total [the recorder's --threshold, else 1]",
    )
    option(
        "--by",
        choices=BY,
        help="what the trees begin with; python-line, python-function and module are tables [stack, in tables owner]",
    )
    option(
        "--fold",
        choices=FOLDS,
        help="make runs of frames inside Python, PyTorch and other packages one [internal in text, none in other trees];"
        " --by=thread: with none threads that share a name are told apart",
    )
    _add_reports(parser)
    suppressions.add_suppressions(parser)
    filters.add_options(parser)
    _add_options_of_extent(parser)
    return parser


def _add_reports(parser: argparse.ArgumentParser) -> None:
    """What may be shown in the report's place."""
    option = parser.add_argument
    option(
        "--segments",
        metavar="N",
        help="instead, map the device's memory: at --snapshot [peak-device], or at the Nth failed allocation (--segments=N)",
    )
    option(
        "--sizes",
        action="store_true",
        help="instead, how large blocks are at --snapshot, and the lines that allocate most often; json: besides",
    )
    option(
        "--calls-of",
        type=filled,
        metavar="NAME",
        help="instead, who calls that function, or line (FILE:LINE), and whom it calls",
    )


def _add_options_of_extent(parser: argparse.ArgumentParser) -> None:
    """How much is shown, and how it looks."""
    option = parser.add_argument
    option("--stacks", action="store_true", help="end the text in call stacks; so do --by, --fold and --threshold")
    option("--all", action="store_true", help="show the sections of the text in full, and the call stacks")
    overlay.add_overlay(parser)
    option("--each", action="store_true", help="of several processes, report on each and not on the largest alone")
    option("--pages", action="store_true", help="count resident pages in massif output too, which massif does not")
    option(
        "--source",
        type=filled,
        metavar="DIRECTORY",
        action="append",
        help="show the text of source lines from files below DIRECTORY too, whatever is there; without it, of the files that"
        " ran and have not changed",
    )
    option(
        "--anonymous",
        action="store_true",
        help="leave out what tells whose machine it was: user, host, paths but within packages, arguments, environment, source",
    )
    editors.add_editor(parser)
    option("--no-source", action="store_true", help="leave the text of source lines out")
    option("--open", action="store_true", help="of --format=html: show the page in the browser")
    option(
        "--value",
        choices=list({**VALUES, **RANGE_VALUES}),
        help="what folded, speedscope and a flame graph tell of a stack [live-bytes; of a range new-bytes]",
    )
    option("--x", type=_extent, metavar="4..1000", help="the graph's width [70]")
    option("--y", type=_extent, metavar="4..1000", help="the graph's height [what fits a screen]")
    option("--color", choices=("auto", "always", "never"), default="auto", help="colour the text [auto: on a terminal]")
    option(
        "--pager",
        action="store_true",
        default=None,
        help="on a terminal, page the text through $JMASSIF_PAGER, $PAGER or less [if that is there]",
    )
    option("--no-pager", action="store_false", dest="pager", help="do not")


def _check_options(arguments: argparse.Namespace, format_: Format) -> None:
    """What means nothing to the format is refused rather than ignored."""
    given = tuple(name.replace("_", "-") for name, value in vars(arguments).items() if value not in (None, False))
    stranger = format_.does_not_take(given)
    if stranger:
        takers = ", ".join(other.name for other in FORMATS.values() if stranger in other.options)
        raise Problem(f"--{stranger} means nothing to --format={format_.name}, only to: {takers}")
    if arguments.by and arguments.by not in format_.by:
        raise Problem(f"--format={format_.name} has no --by={arguments.by}, only: {', '.join(format_.by)}")
    if format_.content in (BINARY, LARGE) and not arguments.output and sys.stdout and sys.stdout.isatty():
        raise Problem(f"--format={format_.name} is nothing for a terminal: name a file with -o")
    if arguments.anonymous and arguments.source:
        raise Problem("--anonymous leaves the text of source lines out: leave --source out too")
    if arguments.anonymous and arguments.editor:
        raise Problem("--anonymous leaves paths out: leave --editor out too")
    if arguments.open and format_.content != PAGE:
        raise Problem("--open shows a page in the browser: it needs --format=html")


def _check_range(arguments: argparse.Namespace) -> None:
    """Raises Problem where options contradict each other."""
    if not _range(arguments):
        if arguments.value in RANGE_VALUES.keys() - VALUES.keys():
            raise Problem(f"--value={arguments.value} is of a range: give its ends with --from and --to")
        return
    if arguments.snapshot or arguments.segments is not None:
        raise Problem("--from and --to show a range, not a moment: leave --snapshot and --segments out")
    if arguments.value in VALUES.keys() - RANGE_VALUES.keys():
        raise Problem(f"--value={arguments.value} is none of a range, which has: {', '.join(RANGE_VALUES)}")
    if arguments.by == "role":
        raise Problem("--by=role tells of a moment: what a tensor is for may change in a range")


def _check_threads(arguments: argparse.Namespace, names: List[str], profiles: List[Profile]) -> None:
    """Raises Problem where threads are asked for and a trace tells none."""
    untold = next((name for name, profile in zip(names, profiles) if not profile.has_threads), None)
    if arguments.by == "thread" and untold is not None:
        raise Problem(f"{untold}: {WITHOUT_THREADS}")


# Each is a report of its own; some are of one process.
_OF_ONE = ("sizes", "calls_of")
_REPORTS = ("from", "to") + _OF_ONE + ("segments",)


def _is_other_report(arguments: argparse.Namespace) -> bool:
    return any(getattr(arguments, name) not in (None, False) for name in _REPORTS)


def _check_reports(arguments: argparse.Namespace) -> None:
    """Raises Problem where two are asked for."""
    asked = [name for name in _REPORTS if getattr(arguments, name) not in (None, False)]
    if len(asked) > 1 and asked != ["from", "to"]:
        raise Problem(f"--{asked[0]} and --{asked[-1].replace('_', '-')} are reports of their own: leave one out")


def _range(arguments: argparse.Namespace) -> Optional[Tuple[str, str]]:
    begin, end = getattr(arguments, "from"), arguments.to
    return (begin or "start", end or "end") if begin or end else None


def _columns(arguments: argparse.Namespace) -> int:
    """As wide as lines of the text may be: as the terminal; elsewhere a page for the report, and no limit for stacks."""
    if not arguments.output and is_terminal(sys.stdout):
        return shutil.get_terminal_size().columns
    return 0 if arguments.all or arguments.stacks or arguments.by or _is_other_report(arguments) else _PAGE_COLUMNS


def _graph_width(arguments: argparse.Namespace) -> int:
    return max(_LEAST_WIDTH, min(_DEFAULT_WIDTH, (_columns(arguments) or _PAGE_COLUMNS) - _GRAPH_MARGIN))


def _view(arguments: argparse.Namespace, profile: Profile, format_: Format, name: str) -> View:
    threshold = arguments.threshold
    if threshold is None:
        threshold = format_.threshold
    if threshold is None:
        threshold = min(profile.option("threshold", _DEFAULT_THRESHOLD), 100.0)
    asks_for_stacks = (
        arguments.stacks or arguments.all or arguments.by or arguments.fold or arguments.threshold is not None
    )
    return View(
        selector=arguments.snapshot,
        threshold=threshold,
        by=arguments.by or (format_.by or BY)[0],
        width=arguments.x or _graph_width(arguments),
        height=arguments.y,
        fold=arguments.fold or format_.fold,
        source=None if arguments.no_source or arguments.anonymous else tuple(arguments.source or ()),
        value=arguments.value or next(iter(RANGE_VALUES if _range(arguments) else VALUES)),
        range=_range(arguments),
        sizes=arguments.sizes,
        calls_of=arguments.calls_of,
        segments=arguments.segments,
        editor=arguments.editor,
        with_pages=arguments.pages,
        is_brief=not arguments.all,
        with_stacks=bool(asks_for_stacks),
        columns=_columns(arguments),
        file="" if name == STDIN or arguments.anonymous else name,
    )


def _print(given: Optional[List[str]]) -> int:
    # Its value is optional, and what follows it may be a file.
    words = ["--segments=" if word == "--segments" else word for word in (sys.argv[1:] if given is None else given)]
    arguments = _parser().parse_args(words)
    format_ = FORMATS[arguments.format]
    _check_options(arguments, format_)
    _check_reports(arguments)
    _check_range(arguments)
    names = expand(arguments.files)
    known = Suppressions("jm_print", arguments.suppressions)
    if len(names) > 1 and not (format_.write_range if _range(arguments) else format_.write_several):
        raise Problem(f"--format={arguments.format} shows one process: name one trace ({len(names)} are named)")
    of_one = next((name for name in _OF_ONE if getattr(arguments, name) not in (None, False)), None)
    if len(names) > 1 and of_one:
        raise Problem(f"--{of_one.replace('_', '-')} is of one process: name one trace ({len(names)} are named)")
    try:
        format_.check()
    except FormatError as error:
        raise Problem(str(error))
    profiles = [common.read("jm_print", name, "showing what came before") for name in names]
    _check_threads(arguments, names, profiles)
    overlay.lay(arguments, profiles)
    filters.narrow(arguments, names, profiles, format_.content == PAGE)
    for profile in profiles:
        known.apply(profile)
        if arguments.anonymous:
            anonymize(profile)
    common.keep_inputs(arguments.output, names)
    copies = twice(list(zip(names, profiles)))
    if copies:
        raise Problem(f"{copies[1]}: is of the same process as {copies[0]}: name one of them")
    try:
        _write(arguments, format_, names, profiles)
    except SelectionError as error:
        raise Problem(str(error) if len(names) > 1 and _range(arguments) else f"{names[0]}: {error}")
    except FormatError as error:
        raise Problem(f"{arguments.output or names[0]}: {error}")
    except OverflowError:
        raise Problem(f"{names[0]}: a sum is beyond 64 bits")
    known.tell_unused()
    return 0


def _pid(profile: Profile) -> str:
    pid = profile.manifest.get("pid", "")
    return f"{pid}." if pid.isdecimal() and len(pid) <= 20 else ""


def _write(arguments: argparse.Namespace, format_: Format, names: List[str], profiles: List[Profile]) -> None:
    name_of = {id(profile): name for name, profile in zip(names, profiles)}

    def view(profile: Profile) -> View:
        return _view(arguments, profile, format_, name_of[id(profile)])

    # Files may be called as their owner is.
    shown = [f"trace {number}" for number in range(1, len(names) + 1)] if arguments.anonymous else names
    write_several = format_.write_range if _range(arguments) else format_.write_several
    if len(profiles) > 1 and write_several:
        lines = write_several(join(list(zip(shown, profiles))), view, arguments.each)
    else:
        lines = format_.write(profiles[0], view(profiles[0]))
    if format_.content == PAGE:
        default = f"jmassif.{_pid(profiles[0])}html"
        write_page("jm_print", lines, names, arguments.output, default, arguments.open)
    elif format_.name == "text":
        common.show(fitted(lines, _columns(arguments)), arguments.output, arguments.color, arguments.pager)
    else:
        common.write(lines, arguments.output)
        remark = format_.remark(profiles[0], view(profiles[0]))
        if remark:
            common.say("jm_print", f"{'standard input' if names[0] == STDIN else names[0]}: {remark}")


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs jm_print with `arguments` (those of the process by default); the exit status."""
    return common.main("jm_print", _print, arguments)


def run() -> NoReturn:
    """The program."""
    common.run(main)
