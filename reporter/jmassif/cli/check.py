# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif check`: memory budgets of recorded runs, and the exit status that a build script acts on.

Verdicts are for people, as JUnit's XML, and as JSON, which docs/reference.md describes.
"""

import argparse
import json
import re
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence
from xml.sax.saxutils import escape, quoteattr

from jmassif.analysis.budgets import Budget, BudgetError, Culprit, Verdict, judge, parse_budget, parse_budgets
from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.options import Suppressions, add_suppressions, checked, non_empty
from jmassif.cli.terminal import Working
from jmassif.model.run import Profile
from jmassif.render.summary import growth_unknown, rate, whole_percent
from jmassif.units import QuantityError, parse_allowance, printable, size

JSON_VERSION = 1
_TIMES = 1.05  # of its limit: a budget that is over by less is said to be over


class Checked(NamedTuple):
    """A trace and the verdicts on it."""

    file: str
    truncation: Optional[str]  # where the trace ends before its program did
    verdicts: List[Verdict]
    is_truncation_allowed: bool = False

    @property
    def is_whole(self) -> bool:
        """Nothing that matters is missing: what came after the trace's end may have been over any budget."""
        return self.truncation is None or self.is_truncation_allowed

    @property
    def is_kept(self) -> bool:
        return self.is_whole and all(verdict.is_kept for verdict in self.verdicts)


def _amount(verdict: Verdict, number: int) -> str:
    return size(number) if verdict.is_bytes else f"{number:,}"


def _sentence(verdict: Verdict) -> str:
    """ "2.61 GiB of 3.00 GiB, 400 MiB left (13 %)", "47.8 MiB, 4.8 x the budget of 10.0 MiB (+37.8 MiB)" """
    value, limit, left = (_amount(verdict, n) for n in (verdict.value, verdict.limit, abs(verdict.left)))
    if re.search(r"[kMGT]B$", verdict.written) and "+" not in verdict.written:
        limit += f" ({verdict.written})"  # decimal, other than reports' sizes
    if verdict.is_unknown:
        text = f"not checked against {limit}"
    elif verdict.is_kept:
        text = f"{value} of {limit}, {left} left"
        text += f" ({whole_percent(verdict.left, verdict.limit)})" if verdict.limit else ""
    else:
        times = verdict.value / verdict.limit if verdict.limit else 0
        text = f"{value}, {f'{times:.1f} x' if times >= _TIMES else 'over'} the budget of {limit} (+{left})"
    if verdict.before is not None and not verdict.is_unknown:
        by = verdict.value - verdict.before
        more = f"{_amount(verdict, abs(by))} {'more' if by > 0 else 'less'} than"
        text += f"; {more if by else 'as in'} the baseline"
    note = _note(verdict)
    return f"{text} [{note}]" if note else text


def _note(verdict: Verdict) -> str:
    texts = {
        "two-pools": "the sum of the two pools of a discrete GPU",
        "no-library": "no such library was loaded",
        "growth-unknown": f"unknown: {growth_unknown(verdict.growth)}" if verdict.growth else "",
        "no-growth": "none for a third of the run",
    }
    notes = (
        f"the heap was {each.name}"
        if each.key == "heap"
        else f"{size(each.bytes)} of it was freed before the end"
        if each.key == "freed"
        else texts.get(each.key) or f"{each.name} is {size(each.bytes)}"
        for each in verdict.notes
    )
    return "; ".join(notes)


def _rate(verdict: Verdict, culprit: Culprit) -> str:
    return rate(verdict.growth, culprit.leak, verdict.time_unit) if verdict.growth and culprit.leak else ""


def _culprit(verdict: Verdict, culprit: Culprit) -> str:
    """ "12.0 MiB  train.py:31 (<module>) (tensor), 50.0 KiB per step" """
    by = f"{size(culprit.bytes)} new"
    if culprit.before is None:
        by = size(culprit.bytes)
    elif culprit.before:
        by = f"{size(culprit.grown)} more than {size(culprit.before)}"
    return ", ".join(filter(None, [f"{by}: {culprit.label} ({culprit.owner})", _rate(verdict, culprit)]))


class _Case(NamedTuple):
    """A budget or, if the trace is not whole, the rest of the run."""

    name: str  # as it was given
    state: str  # "ok", "OVER", "unknown" or "CUT"
    text: str
    culprits: List[str]


def _cases(one: Checked) -> Iterator[_Case]:
    if not one.is_whole:
        text = f"the trace is truncated ({one.truncation}): what came after is not judged; --allow-truncated takes it as it is"
        yield _Case("complete trace", "CUT", text, [])
    for verdict in one.verdicts:
        culprits = [_culprit(verdict, each) for each in verdict.culprits]
        state = "unknown" if verdict.is_unknown else "ok" if verdict.is_kept else "OVER"
        yield _Case(verdict.name, state, _sentence(verdict), culprits)


def _prefix(judged: Sequence[Checked], one: Checked) -> str:
    return f"{printable(one.file)}: " if len(judged) > 1 else ""


def write_text(judged: Sequence[Checked]) -> Iterator[str]:
    """A line a budget, and below one that is not kept a line a culprit."""
    widths = [len(printable(verdict.name)) for one in judged for verdict in one.verdicts]
    width = min(max(widths, default=0), 40)
    state = 7 if any(verdict.is_unknown for one in judged for verdict in one.verdicts) else 4
    for one in judged:
        for case in _cases(one):
            name = "" if case.state == "CUT" else f"{printable(case.name):<{width}}  "
            yield f"{_prefix(judged, one)}{case.state:<{state}}  {name}{printable(case.text)}"
            yield from (f"        {culprit}" for culprit in case.culprits)


_FAILURES = {"CUT": "truncated", "OVER": "budget"}


def write_junit(judged: Sequence[Checked]) -> Iterator[str]:
    """A suite a trace, a case a budget."""

    def attribute(text: str) -> str:
        return quoteattr(printable(text))

    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield "<testsuites>"
    for one in judged:
        cases = list(_cases(one))
        n_over = sum(case.state in _FAILURES for case in cases)
        n_unknown = sum(case.state == "unknown" for case in cases)
        counts = f'tests="{len(cases)}" failures="{n_over}" errors="0" skipped="{n_unknown}"'
        yield f" <testsuite name={attribute(f'jmassif budgets of {one.file}')} {counts}>"
        for case in cases:
            body = f"<system-out>{escape(printable(case.text))}</system-out>"
            if case.state == "unknown":
                body = f"<skipped message={attribute(case.text)}/>"
            elif case.state in _FAILURES:
                failure = f'<failure type="{_FAILURES[case.state]}" message={attribute(case.text)}>'
                body = f"{failure}{escape('; '.join(case.culprits))}</failure>"
            yield f"  <testcase classname={attribute(one.file)} name={attribute(case.name)}>{body}</testcase>"
        if one.truncation:
            yield f"  <system-err>{escape(printable(f'truncated: {one.truncation}'))}</system-err>"
        yield " </testsuite>"
    yield "</testsuites>"


def _json(verdict: Verdict) -> Dict[str, Any]:
    culprits = [
        {"label": one.label, "owner": one.owner, "bytes": one.bytes, "before": one.before, "rate": _rate(verdict, one)}
        for one in verdict.culprits
    ]
    unit = "bytes" if verdict.is_bytes else "number"
    found: Dict[str, Any] = dict(name=verdict.name, unit=unit, value=verdict.value, limit=verdict.limit)
    found.update(left=verdict.left, within=verdict.is_kept, known=not verdict.is_unknown, baseline=verdict.before)
    found.update(note=_note(verdict), culprits=culprits)
    return found


def write_json(judged: Sequence[Checked]) -> Iterator[str]:
    """One object, pure ASCII."""
    traces = []
    for one in judged:
        found: Dict[str, Any] = dict(file=one.file, complete=one.truncation is None, truncation=one.truncation)
        traces.append({**found, "budgets": [_json(verdict) for verdict in one.verdicts]})
    within = all(one.is_kept for one in judged)
    yield json.dumps({"format": "jmassif-check", "version": JSON_VERSION, "within": within, "traces": traces}, indent=1)


WRITERS: Dict[str, Callable[[Sequence[Checked]], Iterator[str]]] = {
    "text": write_text,
    "json": write_json,
    "junit": write_junit,
}


# ---- the command ----

# Compared with a baseline where no names are given; with two pools the first, their sum, is not.
_OF_A_BASELINE = ("peak.total", "peak-host.host", "peak-device.device", "growth")

_EPILOG = """\
A NAME is a moment (peak, peak-host, peak-device, start, end, last, a mark) and
what is measured then: total, host, device, an owner such as cudnn, group.G,
kind.K, role.R or library.GLOB, alone or with .host, .device or .file. Other
names are end.leak[.OWNER] (not freed at the end), growth[.OWNER] (by lines
that still grew), failures, allocations, allocated, temporaries. A size has a
unit (B, KiB, MiB, GiB, kB, MB, GB). All names: docs/reference.md.

examples:
  jmassif check --max peak.total=3GiB --max end.leak=10MiB jmassif.out.4711
  jmassif check --baseline=main.jmassif --allow=+2% branch.jmassif

exit status: 0 within all budgets, 1 over one or a truncated trace, 2 bad input"""


def build_parser(prog: str) -> Parser:
    parser = Parser(prog, "Check recorded runs against memory budgets.", _EPILOG, "[OPTION]... TRACE...")
    option = parser.add_argument
    many: Dict[str, Any] = {"action": "append", "default": []}
    budget = checked(lambda text: parse_budget(text, "="), BudgetError)
    allowance = checked(parse_allowance, QuantityError)
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
        profile = common.read(name, "judged on what came before")
        known.apply(profile)
        return profile

    baseline = read(arguments.baseline) if arguments.baseline else None
    checks = []
    for name in arguments.traces:
        profile = read(name)
        compared = _OF_A_BASELINE[1:] if profile.is_discrete else _OF_A_BASELINE
        try:
            with Working(f"checking {printable(name)}"):
                verdicts = judge(given or [Budget(each) for each in compared], profile, baseline, arguments.allow)
        except BudgetError as error:
            raise Problem(f"{name}: {error}")
        truncation = None if profile.is_complete else profile.truncation or "no end record"
        checks.append(Checked(name, truncation, verdicts, arguments.allow_truncated))
    common.write(WRITERS[arguments.format](checks), arguments.output)
    known.warn_unused()
    return 0 if all(one.is_kept for one in checks) else 1
