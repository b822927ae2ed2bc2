# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits of tests: measured in the recorded process, reported from its trace.

A test with limits is a stage of the run (jmassif.stage), so its peaks are exact. Memory counts beyond that of its begin, without
fixtures and earlier tests, and from a full collection of garbage to another. At its end the stage after it has the figures in
its name, so that the report, in a process that is not recorded, analyses the stages of broken limits alone.
"""

import gc
import re
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

import pytest
from _pytest._code.code import ReprExceptionInfo, ReprFileLocation, ReprTracebackNative

from jmassif.annotate import LiveUsage, region, stage, usage
from jmassif.units import QuantityError, parse_size, printable, size

POOLS = ("host", "device", "total")
LEAKS = "leaks"
_MARKS = ("limit_memory", "limit_leaks")
_BEGIN = "jmassif test "
_END = re.compile(
    r"jmassif test used host=(\d+) device=(\d+) total=(\d+) leaks=(\d+) broken=([a-z,]*): (.*)", re.DOTALL
)
_N_ROWS = 10  # of the report
_SMALLEST = 0.02  # of what a limit counts: lines with less are not named, but for the first


# ---- limits ----------------------------------------------------------------------------------


class LimitError(Exception):
    """A test exceeds its limits, or its mark has invalid arguments. Either fails the test."""


class Limit(NamedTuple):
    what: str  # one of POOLS, or LEAKS
    bytes: int
    text: str  # as written


def limit_of(mark: str, arguments: Sequence[Any], named: Dict[str, Any]) -> Limit:
    """The limit of @pytest.mark.MARK(*arguments, **named). Raises LimitError."""
    shown = [repr(argument) for argument in arguments] + [f"{name}={value!r}" for name, value in named.items()]
    call = printable(f"{mark}({', '.join(shown)})")
    if mark == "limit_leaks":
        most, usage_text, pool = 1, 'limit_leaks("1 MB")', LEAKS
    else:
        most, usage_text = 2, 'limit_memory("200 MB") or limit_memory("device", "200 MB")'
        pool = arguments[0] if len(arguments) == 2 else "host"
    if named or not 1 <= len(arguments) <= most:
        raise LimitError(f"{call}: write {usage_text}")
    if mark == "limit_memory" and pool not in POOLS:
        raise LimitError(f'{call}: {printable(repr(pool))} is none of "host", "device" and "total"')
    value = arguments[-1]
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Limit(pool, value, str(value))
    try:
        return Limit(pool, parse_size(value if isinstance(value, str) else repr(value)), str(value))
    except QuantityError as error:
        raise LimitError(f"{call}: {printable(str(error))}") from None


def _limits_of(item: Any) -> List[Limit]:
    """For each pool, and for leaks, the mark that is nearest to the test. Raises LimitError."""
    found: Dict[str, Limit] = {}
    for mark in item.iter_markers():
        if mark.name in _MARKS:
            limit = limit_of(mark.name, mark.args, mark.kwargs)
            found.setdefault(limit.what, limit)
    return list(found.values())


# ---- in the recorded process -----------------------------------------------------------------


class _Begin:
    """Begins a test's region and stage."""

    def __init__(self) -> None:
        self.before: Optional[LiveUsage] = None

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_call(self, item: Any) -> Iterator[None]:
        self.before = None
        with region(item.nodeid):
            if _limits_of(item):
                gc.collect()
                stage(_BEGIN + item.nodeid)
                for _ in range(2):  # the second one frees an object for each that it makes
                    self.before = usage()
            yield


class _End:
    """Fails a test that has passed and exceeds its limits. This hook is not called after a test that has failed."""

    def __init__(self, begin: _Begin) -> None:
        self._begin = begin

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_call(self, item: Any) -> None:
        before = self._begin.before
        if before is None:
            return
        gc.collect()
        now = usage()
        assert now
        held = before.host + before.device
        used = {
            "host": now.peak_host - before.host,
            "device": now.peak_device - before.device,
            "total": now.peak_total - held,
            LEAKS: max(0, now.host + now.device - held),
        }
        broken = [limit for limit in _limits_of(item) if used[limit.what] > limit.bytes]
        figures = " ".join(f"{what}={n_bytes}" for what, n_bytes in used.items())
        stage(f"jmassif test used {figures} broken={','.join(limit.what for limit in broken)}: {item.nodeid}")
        if broken:
            raise LimitError("\n".join(_sentence(limit, used[limit.what]) for limit in broken))

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_makereport(self, call: Any) -> Iterator[None]:
        """The message stands alone: the traceback has nothing but this file."""
        outcome: Any = yield
        if call.excinfo and isinstance(call.excinfo.value, LimitError):
            text = str(call.excinfo.value)
            report = outcome.get_result()
            crash = ReprFileLocation(str(report.location[0]), (report.location[1] or 0) + 1, text.splitlines()[0])
            report.longrepr = ReprExceptionInfo(reprtraceback=ReprTracebackNative([text + "\n"]), reprcrash=crash)


def _sentence(limit: Limit, n_bytes: int) -> str:
    figure, text = f"{size(n_bytes)} ({n_bytes:,} B)", printable(limit.text)
    if limit.what == LEAKS:
        return f"limit_leaks: {figure} not freed, limit {text}"
    pool = "host and device" if limit.what == "total" else limit.what
    return f"limit_memory: {figure} of {pool} memory beyond the test's begin, limit {text}"


def plugins() -> List[Any]:
    begin = _Begin()
    return [begin, _End(begin)]


# ---- the report ------------------------------------------------------------------------------


class _Test(NamedTuple):
    name: str
    used: Dict[str, int]  # by pool and LEAKS
    broken: List[str]  # limits
    lines: List[str]  # for these


def report(traces: Sequence[str], write: Callable[[str], Any]) -> None:
    """A table of the tests with limits that used most, and lines of code for the broken limits."""
    from jmassif.reader.builder import load_file
    from jmassif.reader.tokens import TraceError

    tests: List[_Test] = []
    for trace in traces:
        try:
            tests += _tests(load_file(trace))
        except (TraceError, OSError) as error:
            write(f"jmassif: {printable(str(error))}")
    if not tests:
        return
    tests.sort(key=lambda test: (not test.broken, -test.used["total"], test.name))
    n_shown = max(_N_ROWS, sum(bool(test.broken) for test in tests))
    write(f"memory of tests with limits{f' ({n_shown} of {len(tests)})' if len(tests) > n_shown else ''}:")
    write(f"{'host peak':>10} {'device peak':>11} {'not freed':>10}")
    for test in tests[:n_shown]:
        host, device, leaks = (size(test.used[what]) for what in ("host", "device", LEAKS))
        write(f"{host:>10} {device:>11} {leaks:>10}  {printable(test.name)}")
        for line in test.lines:
            write(f"{'':>35}{line}")


def _tests(profile: Any) -> Iterator[_Test]:
    for begin, end in zip(profile.stages, profile.stages[1:]):
        found = _END.match(end.text)
        if found and begin.text.startswith(_BEGIN):
            used = dict(zip((*POOLS, LEAKS), map(int, found.groups()[:4])))
            broken = [what for what in found.group(5).split(",") if what]
            lines = [line for what in broken for line in _lines(profile, begin, end, what)]
            yield _Test(found.group(6), used, broken, lines)


def _lines(profile: Any, begin: Any, end: Any, what: str) -> Iterator[str]:
    """The lines of code that hold most of what broke a limit."""
    from jmassif.analysis.budgets import by_place, largest
    from jmassif.attribution.names import Names
    from jmassif.model.records import side_of

    names = Names(profile)
    sides = POOLS[:2] if what in ("total", LEAKS) else (what,)
    after = profile.composition(end.snapshot) if what == LEAKS else profile.composition_at(begin.peaks[what])
    places = []
    for composition in (after, profile.composition(begin.snapshot)):
        held = {id_: pair[0] for id_, pair in composition.items() if side_of(profile.accounts[id_].kind) in sides}
        places.append(by_place(profile, names, held))
    culprits = largest(*places)
    more = sum(places[0].values()) - sum(places[1].values())
    for index, culprit in enumerate(culprits):
        if index == 0 or culprit.grown >= more * _SMALLEST:
            yield f"{what}: {culprit.label}: {size(culprit.grown)} ({printable(culprit.owner)})"
