# SPDX-License-Identifier: GPL-2.0-or-later
"""The command jm_check: its options, and the exit status that a build script acts on."""

import argparse
from typing import List, NoReturn, Optional, Set

from jmassif.analysis.budgets import Budget, BudgetError, Meter, judge, parse_budget, parse_budgets
from jmassif.cli import common, options as suppressions
from jmassif.cli.common import Parser, Problem, filled
from jmassif.cli.options import Suppressions
from jmassif.model.run import Profile
from jmassif.render.check import WRITERS, Checked
from jmassif.units import Allowance, QuantityError, parse_allowance


_NAME = "jm_check"
_KEPT, _OVER = 0, 1

# What is compared with a baseline where no names are given.
_OF_A_BASELINE = ("peak.total", "peak-host.host", "peak-device.device", "growth")
_OF_A_DISCRETE_BASELINE = _OF_A_BASELINE[1:]

_EPILOG = """\
A NAME is a moment (peak, peak-host, peak-device, start, end, last, or a mark) and what is held then: total,
host, device, an owner such as cudnn, group.G, kind.K, role.R or library.GLOB. A part of it: .host, .device,
.file. Of the whole machine: process, valgrind, unaccounted. Of leaks: growth, by how many bytes lines have
grown that still grew at the end, and growth.OWNER; end.leak, what was held then before an interpreter's
clean-up, without imports, caches and the runtime, and end.leak.OWNER. It is also a count over the run: failures,
failures.CALL, temporaries, allocations, allocated, cuda-alloc-retries. Sizes have units: B, KiB, MiB, GiB, kB,
MB, GB; counts and 0 have none.

examples:
  jm_check --max peak.total=3GiB --max peak.cudnn=800MiB --max growth=0 jmassif.out.4711
  jm_check --max end.leak=10MiB --max end.leak.tensor=4MiB jmassif.out.4711
  jm_check --budgets=memory.budgets --format=junit -o memory.xml jmassif.out.4711
  jm_check --baseline=main.jmassif --allow=+2% --allow=+10MiB jmassif.out.4711

exit status: 0 within all budgets, 1 over one or a truncated trace, 2 bad input"""


def _budget(text: str) -> Budget:
    try:
        return parse_budget(text, "=")
    except BudgetError as error:
        raise argparse.ArgumentTypeError(str(error))


def _allowance(text: str) -> Allowance:
    try:
        return parse_allowance(text)
    except QuantityError as error:
        raise argparse.ArgumentTypeError(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(_NAME, "Holds recorded runs against memory budgets.", _EPILOG)
    option = parser.add_argument
    option("traces", nargs="+", metavar="TRACE", help="what valgrind --tool=jmassif recorded")
    option(
        "--max",
        type=_budget,
        action="append",
        default=[],
        metavar="NAME[=LIMIT]",
        help="a budget; a LIMIT with a sign (+2%%, +10MiB) is on top of the baseline's value, as --allow is without LIMIT",
    )
    option(
        "--budgets", type=filled, action="append", default=[], metavar="FILE", help="more budgets, NAME <= LIMIT a line"
    )
    option("--baseline", type=filled, metavar="TRACE", help="the run to compare with")
    option(
        "--allow",
        type=_allowance,
        action="append",
        default=[],
        metavar="+N%|+SIZE",
        help="how much more than the baseline is allowed; of several the most generous counts [none]",
    )
    suppressions.add_suppressions(parser)
    option("--allow-truncated", action="store_true", help="judge a truncated trace on what it has; else it fails")
    option("--complete", action="store_true", help="take a truncated trace for bad input")
    option("--format", choices=sorted(WRITERS), default="text", help="what to write [text]")
    option("-o", "--output", type=filled, metavar="FILE", help="write to FILE [standard output]")
    return parser


def _budgets_of_file(name: str) -> List[Budget]:
    try:
        with open(name, encoding="utf-8", errors="surrogateescape") as stream:
            return parse_budgets(stream.read())
    except OSError as error:
        raise Problem(f"{name}: cannot be read: {error.strerror}")
    except BudgetError as error:
        raise Problem(f"{name}: {error}")


def _budgets(arguments: argparse.Namespace) -> List[Budget]:
    """Those that were given; none if the baseline's own are meant. Raises Problem."""
    budgets: List[Budget] = [budget for name in arguments.budgets for budget in _budgets_of_file(name)] + arguments.max
    if not budgets and arguments.budgets:
        raise Problem(f"{arguments.budgets[0]}: has no budgets in it")
    if not budgets and not arguments.baseline:
        raise Problem("no budgets: give some with --max or --budgets, or a --baseline")
    if arguments.allow and not arguments.baseline:
        raise Problem("--allow says how much more than a baseline: give one with --baseline")
    return budgets


def _checked(
    name: str,
    profile: Profile,
    budgets: List[Budget],
    baseline: Optional[Profile],
    allow: List[Allowance],
    may_be_cut: bool,
) -> Checked:
    if not budgets:
        budgets = [Budget(each) for each in (_OF_A_DISCRETE_BASELINE if profile.is_discrete else _OF_A_BASELINE)]
    owners: Set[str] = Meter(baseline).owners if baseline else set()
    meter = Meter(profile, owners)
    try:
        verdicts = judge(budgets, meter, Meter(baseline, meter.owners) if baseline else None, allow)
    except BudgetError as error:
        raise Problem(f"{name}: {error}")
    truncation = None if profile.is_complete else profile.truncation or "no end on record"
    return Checked(name, truncation, verdicts, may_be_cut)


def _check(given: Optional[List[str]]) -> int:
    arguments = _parser().parse_args(given)
    budgets = _budgets(arguments)
    known = Suppressions(_NAME, arguments.suppressions)
    inputs = (
        arguments.traces
        + arguments.budgets
        + arguments.suppressions
        + ([arguments.baseline] if arguments.baseline else [])
    )
    common.keep_inputs(arguments.output, inputs)

    def read(name: str) -> Profile:
        profile = common.read(_NAME, name, None if arguments.complete else "judged on what came before")
        known.apply(profile)
        return profile

    baseline = read(arguments.baseline) if arguments.baseline else None
    may_be_cut = arguments.allow_truncated
    checked = [_checked(name, read(name), budgets, baseline, arguments.allow, may_be_cut) for name in arguments.traces]
    common.write(WRITERS[arguments.format](checked), arguments.output)
    known.tell_unused()
    return _KEPT if all(one.is_kept for one in checked) else _OVER


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs jm_check with `arguments` (those of the process by default); the exit status."""
    return common.main(_NAME, _check, arguments)


def run() -> NoReturn:
    common.run(main)
