# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif check`: memory budgets of recorded runs, and the exit status that a build script acts on."""

import argparse
from typing import Any, Dict, List

from jmassif.analysis.budgets import Budget, BudgetError, Meter, judge, parse_budget, parse_budgets
from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.options import Suppressions, add_suppressions, checked, non_empty
from jmassif.model.run import Profile
from jmassif.render.check import WRITERS, Checked
from jmassif.units import QuantityError, parse_allowance

# Compared with a baseline where no names are given; with two pools the first, their sum, is not.
_OF_A_BASELINE = ("peak.total", "peak-host.host", "peak-device.device", "growth")

_EPILOG = """\
A NAME is a moment (peak, peak-host, peak-device, start, end, last, a mark) and
what is measured then: total, host, device, an owner such as cudnn, group.G,
kind.K, role.R or library.GLOB, alone or with .host, .device or .file. Other
names are end.leak[.OWNER] (not freed at the end), growth[.OWNER] (by lines
that still grew), failures, allocations, allocated, temporaries. A size has a
unit (B, KiB, MiB, GiB, kB, MB, GB). All names: docs/check.md.

examples:
  jmassif check --max peak.total=3GiB --max end.leak=10MiB jmassif.out.4711
  jmassif check --baseline=main.jmassif --allow=+2% branch.jmassif

exit status: 0 within all budgets, 1 over one or a truncated trace, 2 bad input"""


def build_parser(prog: str) -> Parser:
    parser = Parser(prog, "Check recorded runs against memory budgets.", _EPILOG, "[OPTION]... TRACE...")
    option = parser.add_argument
    many: Dict[str, Any] = {"action": "append", "default": []}
    budget, allowance = checked(lambda text: parse_budget(text, "="), BudgetError), checked(
        parse_allowance, QuantityError
    )
    max_help = "NAME=LIMIT; against a baseline also NAME=+2%%, NAME=+10MiB or NAME"
    allow_help = "allowed above the baseline; the largest allowance applies"
    formats = sorted(WRITERS)
    option("traces", nargs="+", metavar="TRACE", help="a trace")
    option("--max", type=budget, metavar="BUDGET", help=max_help, **many)
    option("--budgets", type=non_empty, metavar="FILE", help="more budgets, NAME <= LIMIT a line", **many)
    option("--baseline", type=non_empty, metavar="TRACE", help="the run to compare with")
    option("--allow", type=allowance, metavar="+N%|+SIZE", help=allow_help, **many)
    add_suppressions(parser)
    option("--allow-truncated", action="store_true", help="accept a truncated trace; without this it fails")
    option("--complete", action="store_true", help="treat a truncated trace as bad input")
    option("--format", choices=formats, default="text", metavar="NAME", help=f"{', '.join(formats)} [text]")
    option("-o", "--output", type=non_empty, metavar="FILE", help="write to FILE [standard output]")
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
    """The given budgets; without any those of the baseline apply. Raises Problem."""
    budgets: List[Budget] = [budget for name in arguments.budgets for budget in _budgets_of_file(name)] + arguments.max
    if not budgets and arguments.budgets:
        raise Problem(f"{arguments.budgets[0]}: has no budgets in it")
    if not budgets and not arguments.baseline:
        raise Problem("no budgets: give some with --max or --budgets, or a --baseline")
    if arguments.allow and not arguments.baseline:
        raise Problem("--allow says how much more than a baseline: give one with --baseline")
    return budgets


def run(arguments: argparse.Namespace) -> int:
    given = _budgets(arguments)
    known = Suppressions(arguments.suppressions)
    inputs = arguments.traces + arguments.budgets + arguments.suppressions
    common.check_not_input(arguments.output, inputs + ([arguments.baseline] if arguments.baseline else []))

    def read(name: str) -> Profile:
        profile = common.read(name, None if arguments.complete else "judged on what came before")
        known.apply(profile)
        return profile

    baseline = read(arguments.baseline) if arguments.baseline else None
    checks = []
    for name in arguments.traces:
        profile = read(name)
        compared = _OF_A_BASELINE[1:] if profile.is_discrete else _OF_A_BASELINE
        meter = Meter(profile, Meter(baseline).owners if baseline else ())
        before = Meter(baseline, meter.owners) if baseline else None
        try:
            verdicts = judge(given or [Budget(each) for each in compared], meter, before, arguments.allow)
        except BudgetError as error:
            raise Problem(f"{name}: {error}")
        truncation = None if profile.is_complete else profile.truncation or "no end record"
        checks.append(Checked(name, truncation, verdicts, arguments.allow_truncated))
    common.write(WRITERS[arguments.format](checks), arguments.output)
    known.warn_unused()
    return 0 if all(one.is_kept for one in checks) else 1
