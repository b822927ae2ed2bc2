# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif fit`: whether a training fits with another batch size, on another board, or with other settings of PyTorch's allocator.

JSON is described in docs/fit.md.
"""

import argparse
import json
from typing import Any, Dict, Iterator, List

from jmassif.analysis.fit import Fit, FitError, Need, Trials, fit_batches, try_settings
from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.options import checked
from jmassif.cli.terminal import Working
from jmassif.units import QuantityError, parse_size, size

JSON_VERSION = 1
_MOST_LINES = 5

_EPILOG = """\
examples:
  jmassif fit two.jm four.jm --batch 2,4             the largest batch that fits
  jmassif fit two.jm four.jm --batch 2,4 --at 8,16   these batches
  jmassif fit run.jm                                 other settings of PyTorch"""


def _batches(text: str) -> List[int]:
    numbers = [int(part) if part.isdecimal() else 0 for part in text.split(",")]
    if not all(1 <= number < 1 << 16 for number in numbers):
        raise QuantityError(f"{text}: not a list of batch sizes from 1 to 65535")
    return numbers


def build_parser(prog: str) -> Parser:
    parser = Parser(prog, "Say whether a training would fit.", _EPILOG, "[OPTION]... TRACE [TRACE --batch A,B]")
    option = parser.add_argument
    option("traces", nargs="+", metavar="TRACE", help="a recorded training, or two that differ in the batch alone")
    batches = checked(_batches, QuantityError)
    option("--batch", type=batches, metavar="A,B", help="the batch sizes of the two traces")
    option("--at", type=batches, default=[], metavar="N,...", help="batch sizes to judge [the largest that fits]")
    board_help = "as if the board had so much memory, such as 4GiB [that of the traces]"
    option("--board", type=checked(parse_size, QuantityError), metavar="SIZE", help=board_help)
    option("--format", choices=("text", "json"), default="text", metavar="NAME", help="text, json [text]")
    return parser


# ---- text ---------------------------------------------------------------------------------------


def _sentence(fit: Fit, need: Need) -> str:
    left = fit.room.available - need.program
    had = "that were available" if fit.room.is_measured else "that are left on such a board"
    end = f"and fits in the {size(fit.room.available)} {had}" if left >= 0 else f"and misses by {size(-left)}"
    return f"batch {need.batch} needs {size(need.program)} {end}"


def _notes(fit: Fit) -> Iterator[str]:
    if not fit.room.is_measured:
        yield f"The rest of the system is taken to use {size(fit.room.others)}, as where the traces were recorded."
    if abs(fit.modelled - fit.recorded) > 0.01 * fit.recorded:
        yield (
            f"Of batch {fit.batches[1]} the model says {size(fit.modelled)} reserved, and {size(fit.recorded)} were:"
            " expect as large an error."
        )
    if fit.unlike > 0.001:
        yield f"{fit.unlike:.1%} of PyTorch's bytes at the peak have no counterpart in the first run; they are taken as fixed."
    if fit.is_cut:
        yield "A trace ends before its program did: what came after is not in these figures."


def _fit_text(fit: Fit) -> Iterator[str]:
    yield "; ".join(_sentence(fit, need) for need in fit.needs) + "."
    yield ""
    yield f"{'batch':>7}{'program':>13}{'of it, PyTorch reserves':>26}{'tensors, at most':>19}{'left':>13}"
    for need in fit.needs:
        left = fit.room.available - need.program
        cells = (
            size(need.program),
            size(need.reserved),
            size(need.allocated),
            f"{'-' if left < 0 else ''}{size(abs(left))}",
        )
        yield f"{need.batch:>7}{cells[0]:>13}{cells[1]:>26}{cells[2]:>19}{cells[3]:>13}"
    if fit.lines:
        yield ""
        yield "grows with each sample, of what tensors hold at the peak:"
        for line in fit.lines[:_MOST_LINES]:
            yield f"  {size(int(line.each)):>10}  {line.label}"
        rest = fit.lines[_MOST_LINES:]
        if rest:
            yield f"  {size(int(sum(line.each for line in rest))):>10}  {len(rest)} more"
    notes = list(_notes(fit))
    if notes:
        yield ""
        yield from notes


def _on_board(trials: Trials, reserved: int) -> str:
    """On the board asked for."""
    if trials.room is None:
        return ""
    return "fits" if reserved <= trials.room else f"runs out, {size(reserved - max(0, trials.room))} missing"


def _trials_text(trials: Trials) -> Iterator[str]:
    recorded = trials.recorded.text or "default settings"
    if trials.room is not None:
        yield (
            f"On such a board PyTorch's allocator can have {size(max(0, trials.room))}: as recorded the run"
            f" {_on_board(trials, trials.reserved)}."
        )
    if not trials.holds:
        yield (
            f"The model of PyTorch's allocator does not hold for this run: it says {size(trials.modelled)} reserved,"
            f" and {size(trials.reserved)} were. So nothing is said of other settings."
        )
    elif not trials.others:
        yield f"No other setting of PyTorch's allocator would have needed less than the {size(trials.reserved)} reserved with {recorded}."
    else:
        best = trials.others[0]
        yield (
            f"{best.settings.text or 'The default settings'} would have needed {size(best.made.reserved)} instead of the"
            f" {size(trials.reserved)} reserved with {recorded}."
        )
        yield ""
        for trial in trials.others:
            verdict = _on_board(trials, trial.made.reserved)
            yield f"  {size(trial.made.reserved):>10}  {trial.settings.text or 'default settings'}{verdict and f': {verdict}'}"
        yield ""
        yield f"Set it before PyTorch starts: {trials.variable}={best.settings.text or 'backend:native'}"
        if best.settings.expandable_segments:
            yield "On a Jetson try it first: expandable segments need cuMemCreate, which fails on some boards."


# ---- JSON ---------------------------------------------------------------------------------------


def _fit_json(fit: Fit) -> Dict[str, Any]:
    return {
        "available": fit.room.available,
        "largest_batch": fit.largest,
        "batches": [{**need._asdict(), "program": need.program, "fits": fit.fits(need)} for need in fit.needs],
        "lines": [line._asdict() for line in fit.lines],
        "model": {"recorded": fit.recorded, "modelled": fit.modelled, "unmatched_share": fit.unlike},
        "is_cut": fit.is_cut,
    }


def _trials_json(trials: Trials) -> Dict[str, Any]:
    return {
        "recorded": {"settings": trials.recorded.text, "reserved": trials.reserved, "modelled": trials.modelled},
        "room": trials.room,
        "better": [{"settings": each.settings.text, "reserved": each.made.reserved} for each in trials.others]
        if trials.holds
        else [],
    }


def run(arguments: argparse.Namespace) -> int:
    traces, batches = arguments.traces, arguments.batch
    if len(traces) > 2:
        raise Problem("at most two traces")
    if (len(traces) == 2) != (batches is not None and len(batches) == 2):
        raise Problem("--batch=A,B names the batch sizes of two traces")
    runs = [common.read(name, "judging what came before") for name in traces]
    found: Dict[str, Any] = {"version": JSON_VERSION}
    lines: Iterator[str]
    try:
        with Working("replaying the allocator"):
            if batches:
                fit = fit_batches((runs[0], runs[1]), (batches[0], batches[1]), arguments.at, arguments.board)
                found["fit"], lines = _fit_json(fit), _fit_text(fit)
            else:
                trials = try_settings(runs[0], arguments.board)
                found["settings"], lines = _trials_json(trials), _trials_text(trials)
    except FitError as error:
        raise Problem(str(error))
    print(json.dumps(found, indent=2) if arguments.format == "json" else "\n".join(lines))
    return 0
