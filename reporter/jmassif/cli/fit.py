# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif fit`: whether a training fits with another batch size, on another board, or with other settings of PyTorch's allocator.

JSON is described in docs/fit.md.
"""

import argparse
import json
import re
from itertools import zip_longest
from typing import Any, Dict, Iterator, List, Optional, Sequence

from jmassif.analysis.allocator_steps import FitError
from jmassif.analysis.batches import NEARLY
from jmassif.analysis.fit import Fit, Need, Trials, fit_batches, try_settings
from jmassif.analysis.levers import Levers, levers_of
from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.options import checked
from jmassif.cli.terminal import Working
from jmassif.model.run import Profile
from jmassif.model.run_info import fact
from jmassif.units import QuantityError, moment, parse_size, printable, size

JSON_VERSION = 1
_MOST_LINES = 5

_EPILOG = """\
examples:
  jmassif fit two.jm four.jm --batch 2,4             the largest batch that fits
  jmassif fit two.jm four.jm --batch 2,4 --at 8,16   these batches
  jmassif fit four.jm --batch 4 --at 8               about, by tensors' roles
  jmassif fit run.jm                                 other settings, levers
  jmassif fit run.jm --dry --board nano              a desktop's run on a board"""

# GiB of memory. Boards that are sold with several sizes have the size in their name.
_BOARDS = {
    "nano": 4, "nano-2gb": 2, "tx1": 4, "tx2": 8, "tx2-nx": 4, "xavier-nx": 8, "xavier-nx-16gb": 16, "agx-xavier": 32,
    "agx-xavier-64gb": 64, "orin-nano-4gb": 4, "orin-nano": 8, "orin-nx-8gb": 8, "orin-nx": 16, "agx-orin-32gb": 32,
    "agx-orin": 64, "agx-thor": 128,
}  # fmt: skip


def _board(text: str) -> int:
    """Bytes of a size, or of a board by its name."""
    name = text.lower().replace("jetson", "").strip(" -_").replace("_", "-").replace(" ", "-")
    if name[:1].isalpha() and name not in _BOARDS:
        raise QuantityError(f'unknown board "{text}": name a size such as 4GiB, or {", ".join(_BOARDS)}')
    return _BOARDS[name] << 30 if name in _BOARDS else parse_size(text)


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
    option("--batch", type=batches, metavar="A,B", help="the batch sizes of the traces")
    option("--at", type=batches, default=[], metavar="N,...", help="batch sizes to judge [the largest that fits]")
    board_help = "memory of the board, such as 4GiB, or its name, such as nano"
    option("--board", type=checked(_board, QuantityError), metavar="SIZE", help=board_help)
    option("--startup-of", metavar="TRACE", help="take CUDA's start-up costs from this run")
    option("--dry", action="store_true", help="judge a desktop's run for a board")
    option("--format", choices=("text", "json"), default="text", metavar="NAME", help="text, json [text]")
    return parser


# ---- text ---------------------------------------------------------------------------------------


def _sentence(fit: Fit, need: Need, subject: str) -> str:
    available, fits = fit.room.available, fit.fits(need)
    had = "that were available" if fit.room.is_measured else "that are left on such a board"
    if fits is None:
        end = f"and may fit in the {size(available)} {had}"
    else:
        end = f"and fits in the {size(available)} {had}" if fits else f"and misses by {size(need.program - available)}"
    needed, span = size(need.program), f"{size(need.least)} to {size(need.most)}"
    if need.is_about:  # with all that is free inside malloc it is no better guess than without
        needed = span if need.program == need.most else f"about {needed} ({span})"
    return f"{subject} needs {needed} {end}"


def _where(run: Profile, name: str) -> str:
    """ "four.jm (NVIDIA Jetson Nano, L4T 32.7.1)" """
    facts = [fact(run, "board") or fact(run, "arch"), fact(run, "l4t") and f"L4T {fact(run, 'l4t')}"]
    return printable(f"{name} ({', '.join(filter(None, facts))})")


def _without(batch: int, word: str) -> str:
    return re.sub(rf"(?<!\d){batch}(?!\d)", "", word)


def _doubts(runs: Dict[str, Profile], batches: Sequence[int]) -> Iterator[str]:
    """Reasons to doubt the figures of these runs."""
    if len(runs) == 2:
        first, second = runs.values()
        commands = [run.manifest.get("command", "").split() for run in runs.values()]
        unlike = [
            f'"{a}" and "{b}"'
            for a, b in zip_longest(*commands, fillvalue="")
            if a != b and _without(batches[0], a) != _without(batches[1], b)
        ]
        if unlike:
            yield printable(f"The commands differ in more than the batch: {', '.join(unlike[:_MOST_LINES])}.")
        for path, crc32 in first.source_hashes.items():
            if second.source_hashes.get(path, crc32) != crc32:
                yield f"{printable(path)} is not the same in both runs: see that they differ in the batch alone."
    for name, run in runs.items():
        roles = set(run.roles.values())
        if run.is_complete and not (run.end and run.end.reason == "signal"):
            continue
        if "parameter" in roles and "gradient" not in roles:
            yield f"{printable(name)} was killed before training: it has no gradients, and the figures are too low."
        elif "gradient" in roles and "optimizer" not in roles:
            yield f"{printable(name)} was killed before its optimizer had any state: unless that keeps none, the figures are too low."


def _notes(fit: Fit, runs: Dict[str, Profile]) -> Iterator[str]:
    if fit.room.others is None:
        yield "What the rest of the system uses on such a board was not measured, and is not taken away."
    elif not fit.room.is_measured:
        yield f"The rest of the system is taken to use {size(fit.room.others)}, as where the traces were recorded."
    if len(runs) == 1 and fit.batches and any(need.is_about for need in fit.needs):
        yield (
            "From one run: activations and inputs are taken to grow with the batch, and parameters, gradients and optimizer state"
            " not to. The range is of what has another role, and of PyTorch's cache. Two runs give one figure."
        )
    if fit.unused:
        yield (
            f"Of batch {fit.batches[-1]}, {size(fit.unused)} was free inside malloc. It is sampled, and continued in a straight"
            " line: the range begins without it."
        )
    if abs(fit.modelled - fit.recorded) > NEARLY * fit.recorded:
        yield (
            f"Of batch {fit.batches[-1]} the model says {size(fit.modelled)} reserved, and {size(fit.recorded)} were:"
            " expect as large an error."
        )
    if fit.unlike > 0.001:
        kept = "tensors are taken to grow with the batch" if 1 in fit.batches else "they are taken as fixed"
        yield f"{fit.unlike:.1%} of PyTorch's bytes at the peak have no counterpart in the first run; {kept}."
    for name, run in runs.items():
        if not run.is_complete:
            end = moment(run.last_time, run.time_unit)
            yield f"{printable(name)} ends at {end}, before its program did: what came after is not in these figures."


def _measured(
    fit: Fit, runs: Dict[str, Profile], other: Optional[Profile], name: str, is_dry: bool
) -> List[Dict[str, Any]]:
    """Each figure of the first need, and the trace that has it."""
    run = list(runs)[-1]
    need, here = fit.needs[0], _where(runs[run], run)
    there = _where(other, name) if other else here
    startup = sum(row.replaced for row in fit.startup)
    found = [
        ("large blocks of the heap" if fit.steps.is_host else "PyTorch's allocator", need.reserved, here),
        ("CUDA's start-up", startup, there),
        ("the rest of the program", need.rest - startup + need.unused, here),
        ("the rest of the system", fit.room.others, None if fit.room.others is None else there if is_dry else here),
    ]
    return [{"what": what, "bytes": n_bytes, "trace": where} for what, n_bytes, where in found]


def _fit_text(fit: Fit, runs: Dict[str, Profile], measured: List[Dict[str, Any]]) -> Iterator[str]:
    subjects = [f"batch {need.batch}" if fit.batches else "this run" for need in fit.needs]
    yield "; ".join(_sentence(fit, need, subject) for need, subject in zip(fit.needs, subjects)) + "."
    if measured and measured[0]["trace"] != measured[1]["trace"]:
        before, after = sum(row.recorded for row in fit.startup), sum(row.replaced for row in fit.startup)
        yield f"CUDA's start-up is counted with {size(after)}, as in {measured[1]['trace']}, instead of {size(before)}."
    yield ""
    reserves = "of it, blocks of the heap" if fit.steps.is_host else "of it, PyTorch reserves"
    yield f"{'batch':>7}{'program':>13}{reserves:>27}{'tensors, at most':>19}{'left':>13}"
    for need in fit.needs:
        left = fit.room.available - need.program
        cells = [size(each) for each in (need.program, need.reserved, need.allocated)]
        batch, sign = need.batch if fit.batches else "-", "-" if left < 0 else ""
        yield f"{batch:>7}{cells[0]:>13}{cells[1]:>27}{cells[2]:>19}{sign + size(abs(left)):>13}"
    if measured:
        yield ""
        yield "measured in:"
        for row in measured:
            n_bytes = "unknown" if row["bytes"] is None else size(row["bytes"])
            yield f"  {n_bytes:>10}  {row['what']:<24}  {row['trace'] or 'not measured'}"
    if fit.lines and fit.batches:
        yield ""
        yield "grows with each sample, of what tensors hold at the peak:"
        for line in fit.lines[:_MOST_LINES]:
            yield f"  {size(int(line.each)):>10}  {line.label}"
        rest = fit.lines[_MOST_LINES:]
        if rest:
            yield f"  {size(int(sum(line.each for line in rest))):>10}  {len(rest)} more"
    notes = list(_notes(fit, runs))
    if notes:
        yield ""
        yield from notes


def _on_board(trials: Trials, reserved: int) -> str:
    """On the board asked for."""
    if trials.room is None:
        return ""
    return "fits" if reserved <= trials.room else f"runs out, {size(reserved - max(0, trials.room))} missing"


_LEVERS = {
    "half-activations": "half precision for activations, if they are float32",
    "inference": "inference alone: no gradients, no optimizer state",
    "8-bit-optimizer": "optimizer state in 8 bits, if it is float32",
    "smaller-workspace": "no workspace of cuDNN or cuBLAS, the largest",
    "no-pinned-buffers": "no page-locked host memory",
    "free-copies": "free what is held twice, by host and device",
    "checkpointing": "checkpointing of the regions",
}


def _levers_text(levers: Levers) -> Iterator[str]:
    if levers.levers:
        best = levers.levers[0]
        yield ""
        yield (
            f"Of the {size(levers.allocated)} that tensors held at their peak, the most, {size(best.bytes)}, goes with"
            f" {_LEVERS[best.action]}. Each alone:"
        )
        for lever in levers.levers:
            yield f"  {size(lever.bytes):>10}  {_LEVERS[lever.action]}{f', at {lever.line}' if lever.line else ''}"


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
            f"{best.settings.text or 'The default settings'} would have needed {size(best.reserved)} instead of the"
            f" {size(trials.reserved)} reserved with {recorded}."
        )
        yield ""
        yield "settings that need less than all that were tried before them, the best first:"
        for trial in trials.others:
            verdict = _on_board(trials, trial.reserved)
            yield f"  {size(trial.reserved):>10}  {trial.settings.text or 'default settings'}{verdict and f': {verdict}'}"
        yield ""
        yield f"Set it before PyTorch starts: {trials.variable}={best.settings.text or 'backend:native'}"
        if best.settings.expandable_segments:
            yield "On a Jetson try it first: expandable segments need cuMemCreate, which fails on some boards."


# ---- JSON ---------------------------------------------------------------------------------------


def _fit_json(fit: Fit, measured: List[Dict[str, Any]]) -> Dict[str, Any]:
    return {
        "available": fit.room.available,
        "largest_batch": fit.largest,
        "batches": [{**need._asdict(), "program": need.program, "fits": fit.fits(need)} for need in fit.needs],
        "lines": [line._asdict() for line in fit.lines],
        "model": {"recorded": fit.recorded, "modelled": fit.modelled, "unmatched_share": fit.unlike},
        "is_cut": fit.is_cut,
        "startup": [row._asdict() for row in fit.startup],
        "measured": measured,
    }


def _trials_json(trials: Trials) -> Dict[str, Any]:
    return {
        "recorded": {"settings": trials.recorded.text, "reserved": trials.reserved, "modelled": trials.modelled},
        "room": trials.room,
        "better": [{"settings": each.settings.text, "reserved": each.reserved} for each in trials.others]
        if trials.holds
        else [],
    }


def run(arguments: argparse.Namespace) -> int:
    traces, batches = arguments.traces, arguments.batch
    if len(traces) > 2:
        raise Problem("at most two traces")
    if len(batches or []) != len(traces) and (len(traces) == 2 or batches or arguments.at):
        raise Problem("--batch=A,B names the batch sizes of two traces, --batch=A that of one")
    if arguments.dry and not (arguments.board or arguments.startup_of):
        raise Problem("--dry needs --board=SIZE, or --startup-of a run on the board")
    if arguments.startup_of and not (batches or arguments.dry):
        raise Problem("--startup-of needs --batch, or --dry")
    if batches:
        batches, traces = zip(*sorted(zip(batches, traces)))
    runs = {name: common.read(name, "judging what came before") for name in traces}
    if len(runs) < len(traces):
        raise Problem("both traces are the same")
    run = runs[traces[-1]]
    other = common.read(arguments.startup_of, "judging what came before") if arguments.startup_of else None
    doubts = list(_doubts(runs, batches or ()))
    found: Dict[str, Any] = {"version": JSON_VERSION, "doubts": doubts}
    lines: List[str]
    try:
        with Working("replaying the allocator"):
            if batches or arguments.dry:
                order = [runs[name] for name in traces]
                fit = fit_batches(order, batches or (), arguments.at, arguments.board, other, arguments.dry)
                measured = (
                    _measured(fit, runs, other, arguments.startup_of, arguments.dry) if other or arguments.dry else []
                )
                steps, found["fit"], lines = fit.steps, _fit_json(fit, measured), list(_fit_text(fit, runs, measured))
            else:
                trials = try_settings(run, arguments.board)
                steps, found["settings"], lines = trials.steps, _trials_json(trials), list(_trials_text(trials))
            levers = levers_of(run, arguments.dry, steps)
            found["levers"] = [lever._asdict() for lever in levers.levers]
    except FitError as error:
        raise Problem("; ".join([str(error), *(doubt.rstrip(".") for doubt in doubts)]))
    lines += [*_levers_text(levers), *([""] if doubts else []), *doubts]
    print(json.dumps(found, indent=2) if arguments.format == "json" else "\n".join(lines))
    return 0
