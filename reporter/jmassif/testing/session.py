# SPDX-License-Identifier: GPL-2.0-or-later
"""The process that the user has started: starts the one below Valgrind, shows what comes of its tests, and holds their limits.

Tests without limits are shown as they end; those with limits when the run has ended, and its trace can be read.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, TextIO

import pytest

from jmassif.launcher import LaunchError, launcher
from jmassif.testing import CHANNEL
from jmassif.testing.limits import Limit

_Event = Dict[str, Any]

# What the second process runs: pytest, with the path for modules of the first.
_PROGRAM = "import sys; sys.path[:] = %r; import pytest; sys.exit(pytest.main(sys.argv[1:]))"


def _launcher() -> List[str]:
    try:
        return launcher()
    except LaunchError as error:
        raise pytest.UsageError(f"--jmassif {error}")


def _refuse_others(config: Any) -> None:
    if config.getoption("numprocesses", None) or config.getoption("tx", None):
        raise pytest.UsageError("--jmassif runs all tests in one process below Valgrind: leave out -n (or write -n 0)")
    if config.getoption("usepdb", False) or config.getoption("trace", False):
        raise pytest.UsageError(
            "--jmassif runs the tests below Valgrind, where nobody can type: leave out --pdb and --trace"
        )


class _Crash(NamedTuple):
    """As pytest's summary of failures asks for it."""

    message: str
    path: str = ""
    lineno: int = 0


class _Reason:
    """Why a test has failed, as pytest shows what a report has in place of a traceback."""

    def __init__(self, lines: List[str]) -> None:
        self.lines = lines
        self.reprcrash = _Crash(lines[0])

    def toterminal(self, tw: Any) -> None:
        for line in self.lines:
            tw.line(line, red=True)

    def __str__(self) -> str:
        return "\n".join(self.lines)


class _Test:
    """What has come of a test so far."""

    def __init__(self, start: _Event) -> None:
        self.start = start
        self.reports: List[Any] = []
        self.number = ""
        self.limits: List[Limit] = []


class Session:
    def __init__(self, config: Any) -> None:
        _refuse_others(config)
        self._config = config
        self._launcher = _launcher()
        self._options = shlex.split(config.getoption("jmassif_options"))
        self._current: Optional[_Test] = None
        self._held_back: List[_Test] = []
        self._end: Optional[_Event] = None
        self._is_ready = False

    def pytest_report_header(self) -> str:
        return f"jmassif: the tests run below {self._launcher[0]}"

    def pytest_collection(self) -> bool:
        return True  # the other process does

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        with tempfile.TemporaryDirectory(prefix="jmassif-pytest-") as directory:
            kept = self._config.getoption("jmassif_out_file")
            trace = os.path.abspath(kept or os.path.join(directory, "trace"))
            status = self._run(session, trace)
            if self._end is None:
                self._ended_early(status)
            if self._held_back:
                self._show_held_back(trace)
        self._finish(session)
        return True

    # ---- the other process -----------------------------------------------------------------------

    def _run(self, session: Any, trace: str) -> int:
        """Until it has ended; its exit status."""
        read_end, write_end = os.pipe()
        parameters = self._config.invocation_params
        command = (
            self._launcher + ["-q", "--pages=no", f"--jmassif-out-file={trace.replace('%', '%%')}"] + self._options
        )
        command += [sys.executable, "-c", _PROGRAM % sys.path] + [str(argument) for argument in parameters.args]
        # Python's small objects come from pages of its own, unless it asks malloc for each.
        environment = {"PYTHONMALLOC": "malloc", **os.environ, CHANNEL: str(write_end)}
        with open(read_end, encoding="utf-8") as channel:
            try:
                process = subprocess.Popen(
                    command, env=environment, cwd=str(parameters.dir), pass_fds=[write_end], stdin=subprocess.DEVNULL
                )
            finally:
                os.close(write_end)
            try:
                for event in _events(channel):
                    self._take(session, event)
            except BaseException:
                process.kill()
                raise
            finally:
                status = process.wait()
        return status

    def _take(self, session: Any, event: _Event) -> None:
        name = event["event"]
        if name == "ready":
            if not event["is_recording"]:
                raise pytest.UsageError(f"{self._launcher[0]} runs the tests, but not below the tool jmassif")
            self._is_ready = True
        elif name == "usage":
            raise pytest.UsageError(event["text"])
        elif name == "collected":
            session.testscollected = event["tests"]
        elif name == "collectreport":
            self._config.hook.pytest_collectreport(report=self._report(event))
        elif name == "start":
            self._current = _Test(event)
        elif name == "limits" and self._current:
            self._current.number = event["number"]
            self._current.limits = [Limit(*fields) for fields in event["limits"]]
        elif name == "report" and self._current:
            self._current.reports.append(self._report(event))
        elif name == "finish" and self._current:
            if self._current.limits:
                self._held_back.append(self._current)
            else:
                self._show(self._current)
            self._current = None
        elif name == "end":
            self._end = event

    def _report(self, event: _Event) -> Any:
        return self._config.hook.pytest_report_from_serializable(config=self._config, data=event["report"])

    def _ended_early(self, status: int) -> None:
        """Without a word: a signal, os._exit, or Valgrind could not start."""
        if not self._is_ready:
            raise pytest.UsageError(
                f"{' '.join(self._launcher)} could not run the tests (status {status}): is the tool jmassif installed there?"
            )
        how = f"with status {status}"
        if status < 0:
            how = f"by signal {signal.Signals(-status).name}"
        test = self._current
        if test is None:
            raise pytest.UsageError(f"the tests below Valgrind have ended {how} before their time")
        test.reports.append(
            _failure(test, f"the process below Valgrind ended {how} in this test; none after it were run")
        )
        self._show(test)

    # ---- what is shown ---------------------------------------------------------------------------

    def _show(self, test: _Test) -> None:
        hook = self._config.hook
        named = {"nodeid": test.start["nodeid"], "location": tuple(test.start["location"])}
        hook.pytest_runtest_logstart(**named)
        for report in test.reports:
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(**named)

    def _show_held_back(self, trace: str) -> None:
        from jmassif.testing.verdicts import Verdicts
        from jmassif.reader.builder import load_file
        from jmassif.reader.tokens import TraceError

        verdicts: Optional[Verdicts] = None
        try:
            verdicts = Verdicts(load_file(trace))
        except (TraceError, OSError) as error:
            reasons = [f"its limits could not be held: {error}"]
        for test in self._held_back:
            for report in test.reports:
                if report.when == "call" and report.passed:
                    broken = verdicts.broken(test.number, test.limits) if verdicts else reasons
                    if broken:
                        report.outcome = "failed"
                        report.longrepr = _Reason(broken)
            self._show(test)

    def _finish(self, session: Any) -> None:
        """As the other process has ended, where that says more than the tests' outcomes."""
        text = self._end["text"] if self._end else ""
        if session.testsfailed and self._end and self._end["status"] == pytest.ExitCode.INTERRUPTED:
            raise session.Interrupted(text or "errors during collection")
        if text:
            session.shouldfail = session.shouldfail or text
        if self._end and self._end["status"] == pytest.ExitCode.INTERNAL_ERROR:
            raise RuntimeError("pytest had an internal error below Valgrind")


def _events(channel: TextIO) -> Iterator[_Event]:
    """Until the last one: processes that tests have left may keep the channel open."""
    for line in channel:
        event: _Event = json.loads(line)
        yield event
        if event["event"] == "end":
            return


def _failure(test: _Test, text: str) -> Any:
    location: Any = tuple(test.start["location"])
    report: Any = pytest.TestReport(test.start["nodeid"], location, {}, "failed", text, "call")
    report.longrepr = _Reason([text])
    return report
