# SPDX-License-Identifier: GPL-2.0-or-later
"""pytest --jmassif: the tests run below the recorder, and a test that exceeds its limits fails.

    @pytest.mark.limit_memory("device", "200 MB")     # also "host", "total"; "200 MB" alone is the host's
    @pytest.mark.limit_leaks("1 MB")

pytest executes itself again, below the recorder, before it has loaded anything; with pytest-xdist the workers are recorded
instead. A test with limits is a stage of the run (jmassif.stage), so its peaks are exact. Memory counts beyond that of its begin,
without fixtures and earlier tests, and from a full collection of garbage to another. At its end the stage after it has the figures
in its name, so that the report, in a process that is not recorded, analyses the stages of broken limits alone.
"""

import gc
import glob
import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, NoReturn, Optional, Sequence

import pytest
from _pytest._code.code import ReprExceptionInfo, ReprFileLocation, ReprTracebackNative

from jmassif.annotate import LiveUsage, is_recording, region, stage, usage
from jmassif.units import QuantityError, parse_size, printable, size

# ---- pytest below the recorder ---------------------------------------------------------------

_MARKERS = (
    "limit_memory([pool, ]size): with --jmassif, the test fails if it allocates more than that beyond what was allocated at its "
    'begin; pool is "host" (the default), "device" or "total"',
    "limit_leaks(size): with --jmassif, the test fails if it leaves more than that behind",
)
# Options of pytest that run no test.
_SHOWS_ONLY = ("collectonly", "help", "version", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow")
# Set for the second process: it must be recorded, and not start a third.
_STARTED = "JMASSIF_PYTEST_STARTED"


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("jmassif", "memory of tests (jmassif)")
    group.addoption("--jmassif", action="store_true", help="record the memory of the tests, and check their limits")
    group.addoption("--jmassif-out-file", metavar="FILE", help="keep the trace there")
    group.addoption(
        "--jmassif-options", metavar="OPTIONS", default="", help="further options of the recorder, in one word"
    )


def _runs_workers(options: Any) -> bool:
    """pytest-xdist runs the tests in other processes."""
    return bool(getattr(options, "numprocesses", None) or getattr(options, "tx", None))


def _shows_only(options: Any) -> bool:
    return any(getattr(options, name, False) for name in _SHOWS_ONLY)


def _recorder(options: Any, trace: str) -> List[str]:
    """The words before the interpreter."""
    from jmassif.launcher import LaunchError, launcher

    given = shlex.split(options.jmassif_options)
    try:
        words = launcher(given)
    except LaunchError as error:
        raise pytest.UsageError(f"--jmassif {error}")
    words += ["-q", "--pages=no", f"--jmassif-out-file={trace.replace('%', '%%')}"]
    return words + given


def allocator() -> Dict[str, str]:
    """Python's small objects come from pages of its own, unless it asks malloc for each. A free-threaded build refuses to."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return {}
    return {"PYTHONMALLOC": os.environ.get("PYTHONMALLOC", "malloc")}


# Before the capturing of output begins, and before plugins and conftests of the tests are loaded.
@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> Iterator[None]:
    options = early_config.known_args_namespace
    if getattr(options, "jmassif", False) and not is_recording() and not _shows_only(options):
        if os.environ.pop(_STARTED, None):
            raise pytest.UsageError("--jmassif: the command that should record pytest has run it unrecorded")
        if not _runs_workers(options):
            _run_recorded(options)
    os.environ.pop(_STARTED, None)
    yield


def _run_recorded(options: Any) -> NoReturn:
    """Ends this process as the recorded one ends."""
    with tempfile.TemporaryDirectory(prefix="jmassif-pytest-") as directory:
        trace = os.path.abspath(options.jmassif_out_file or os.path.join(directory, "trace"))
        command = _recorder(options, trace)
        with open("/proc/self/cmdline", encoding="utf-8", errors="surrogateescape") as stream:
            own = stream.read().split("\0")[1:-1]
        environment = {**os.environ, **allocator(), _STARTED: "yes"}
        status = _status_of(subprocess.Popen(command + [sys.executable] + own, env=environment))
        if os.path.exists(trace):
            _report([trace], print)
        elif status:
            print(
                f"ERROR: {command[0]} has recorded nothing: see above; is the tool jmassif installed there?",
                file=sys.stderr,
            )
            status = int(pytest.ExitCode.USAGE_ERROR)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # no further output, as from coverage of this process


def _status_of(process: "subprocess.Popen[bytes]") -> int:
    """As a shell has it. The terminal interrupts both processes, and the recorded one answers."""
    signal.signal(signal.SIGINT, lambda number, frame: None)
    signal.signal(signal.SIGTERM, lambda number, frame: process.terminate())
    status = process.wait()
    return status if status >= 0 else 128 - status


@pytest.hookimpl(trylast=True)
def pytest_configure(config: Any) -> None:
    for text in _MARKERS:
        config.addinivalue_line("markers", text)
    if not config.getoption("jmassif") or _shows_only(config.option):
        return
    if is_recording():
        begin = _Begin()
        config.pluginmanager.register(begin)
        config.pluginmanager.register(_End(begin))
    elif _runs_workers(config.option):
        config.pluginmanager.register(_Workers(config.option))
    else:
        raise pytest.UsageError("--jmassif: load the plugin with -p jmassif.pytest_plugin, not from a conftest.py")


class _Workers:
    """In the process that starts pytest-xdist's workers."""

    def __init__(self, options: Any) -> None:
        self._options = options
        self._directory = tempfile.TemporaryDirectory(prefix="jmassif-pytest-")
        self._base = os.path.abspath(options.jmassif_out_file or os.path.join(self._directory.name, "trace"))
        self._n_workers = 0

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Any) -> None:
        for spec in specs:
            if not spec.popen:
                raise pytest.UsageError("--jmassif records workers of this machine alone")
            trace = f"{self._base}.{self._n_workers}"
            self._n_workers += 1
            words = ["env"] + [f"{name}={value}" for name, value in allocator().items()]
            words += _recorder(self._options, trace)
            words += shlex.split(spec.python) if spec.python else [sys.executable]
            spec.python = " ".join(map(shlex.quote, words))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        patterns = [f"{glob.escape(self._base)}.{number}*" for number in range(self._n_workers)]
        _report([trace for pattern in patterns for trace in glob.glob(pattern)], terminalreporter.write_line)


# ---- limits ----------------------------------------------------------------------------------

POOLS = ("host", "device", "total")
LEAKS = "leaks"
_BEGIN = "jmassif test "
_END = re.compile(
    r"jmassif test used host=(\d+) device=(\d+) total=(\d+) leaks=(\d+) broken=([a-z,]*): (.*)", re.DOTALL
)
_N_ROWS = 10  # of the report
_SMALLEST = 0.02  # of what a limit counts: lines with less are not named, but for the first


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
        if mark.name in ("limit_memory", "limit_leaks"):
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


# ---- the report ------------------------------------------------------------------------------


class _Test(NamedTuple):
    name: str
    used: Dict[str, int]  # by pool and LEAKS
    broken: List[str]  # limits
    lines: List[str]  # for these


def _report(traces: Sequence[str], write: Callable[[str], Any]) -> None:
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
