# SPDX-License-Identifier: GPL-2.0-or-later
"""pytest --jmassif: the tests run below the recorder, and a test that exceeds its limits fails.

    @pytest.mark.limit_memory("device", "200 MB")     # also "host", "total"; "200 MB" alone is the host's
    @pytest.mark.limit_leaks("1 MB")

pytest executes itself again, below the recorder, before it has loaded anything; with pytest-xdist the workers are recorded
instead. jmassif/testing.py measures there. Without --jmassif this file alone is loaded, and does nothing.
"""

import glob
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from typing import Any, Dict, Iterator, List, NoReturn

import pytest

from jmassif.annotate import is_recording

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

    try:
        words = launcher()
    except LaunchError as error:
        raise pytest.UsageError(f"--jmassif {error}")
    words += ["-q", "--pages=no", f"--jmassif-out-file={trace.replace('%', '%%')}"]
    return words + shlex.split(options.jmassif_options)


def _environment() -> Dict[str, str]:
    """Python's small objects come from pages of its own, unless it asks malloc for each."""
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
        environment = {**os.environ, **_environment(), _STARTED: "yes"}
        status = _status_of(subprocess.Popen(command + [sys.executable] + own, env=environment))
        if os.path.exists(trace):
            from jmassif.testing import report

            report([trace], print)
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
        from jmassif.testing import plugins

        for plugin in plugins():
            config.pluginmanager.register(plugin)
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
            words = ["env"] + [f"{name}={value}" for name, value in _environment().items()]
            words += _recorder(self._options, trace)
            words += shlex.split(spec.python) if spec.python else [sys.executable]
            spec.python = " ".join(map(shlex.quote, words))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        from jmassif.testing import report

        traces = [
            trace for number in range(self._n_workers) for trace in glob.glob(f"{glob.escape(self._base)}.{number}*")
        ]
        report(traces, terminalreporter.write_line)
