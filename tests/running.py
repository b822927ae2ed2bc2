# SPDX-License-Identifier: GPL-2.0-or-later
"""How the tests run: one that hangs fails and is named, and files that take long come first.

A minute into a test, and each minute from then on, a line with its name goes to standard error, so that a log that is cut off
tells where the run was. After ten minutes (of the tier long: an hour) the stacks of all threads are printed, the processes that
the test started are killed, and it fails. JMASSIF_TEST_LIMIT is another limit in seconds, of which a tenth is the minute.
"""

import contextlib
import faulthandler
import os
import signal
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Iterator, Optional, Set

import pytest

from tests import tiers

LIMIT = float(os.environ.get("JMASSIF_TEST_LIMIT") or 600)
LARGE = "JMASSIF_LARGE" in os.environ

# Below tests/, what takes the longest first: the files that would otherwise be the last to end, alone.
FIRST = [
    "board/test_emulated_board.py",
    "arm64/test_arm64.py",
    "web/test_page.py",
    "test_lint.py",
    "web/test_interactions.py",
    "packaging/test_install.py",
    "plugin/test_plugin.py",
    "fuzz/*",
    "torch/*",
    "fleet/*",
    "packaging/test_page_build.py",
    "native/*",
    "sim/*",
    "python/*",
    "tool/test_leaks.py",
    "tool/test_unwinding*",
    "tool/test_code_cache.py",
    "tool/test_both_hosts.py",
    "tool/test_whose.py",
    "packaging/*",
    "tool/*",
    "web/*",
]


def place(node_id: str) -> int:
    """The place of a test's file in the order of all files."""
    below = node_id.partition("::")[0][len("tests/") :]
    return next((index for index, pattern in enumerate(FIRST) if fnmatchcase(below, pattern)), len(FIRST))


class Limit:
    """Limits a test's set-up, the test and its teardown. A test that no signal wakes ends with its worker, after twice the time."""

    def __init__(self) -> None:
        self._stderr = os.dup(2)  # pytest has its own in its place while a test runs
        self._node, self._begin, self._limit = "", 0.0, LIMIT
        signal.signal(signal.SIGALRM, self._tick)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        with self._watched(item):
            yield

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        with self._watched(item):
            yield

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        with self._watched(item):
            yield

    @contextlib.contextmanager
    def _watched(self, item: pytest.Item) -> Iterator[None]:
        self._node, self._begin = item.nodeid, time.monotonic()
        self._limit = LIMIT * 6 if LARGE or tiers.tier_of(item.nodeid) == "long" else LIMIT
        faulthandler.dump_traceback_later(2 * self._limit, exit=True, file=self._stderr)
        signal.setitimer(signal.ITIMER_REAL, LIMIT / 10, LIMIT / 10)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()
        if time.monotonic() - self._begin >= LIMIT / 10:
            self._tell("in all")

    def _tick(self, _number: int, _frame: object) -> None:
        self._tell("so far")
        if time.monotonic() - self._begin < self._limit:
            return
        faulthandler.dump_traceback(self._stderr)
        for process in sorted(_processes_of(self._node)):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                os.kill(process, signal.SIGKILL)
                self._tell(f"killed {process}, {words}")
        pytest.fail(f"it takes more than {self._limit:g} s")

    def _tell(self, words: str) -> None:
        os.write(self._stderr, f"\n{time.monotonic() - self._begin:.0f} s {words}: {self._node}\n".encode())


def _processes_of(node: str) -> Set[int]:
    """Processes that a test has started: those below this one and, by their environment, those that have lost their parent."""
    this, parents, found = os.getpid(), {}, {os.getpid()}
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(directory.name)] = int((directory / "stat").read_text().rpartition(")")[2].split()[1])
            if f"\0PYTEST_CURRENT_TEST={node} ".encode() in b"\0" + (directory / "environ").read_bytes():
                found.add(int(directory.name))
    more = found
    while more:
        more = {process for process, parent in parents.items() if parent in found} - found
        found |= more
    return found - {this}


def pytest_configure(config: "pytest.Config") -> None:
    if not config.option.usepdb:
        config.pluginmanager.register(Limit())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: "pytest.Config", log: Any) -> Optional[object]:
    """A file's tests run in one worker, which makes its fixtures once, and files come in the order of collection. xdist's own
    scheduler does so too, but gives a test that ended its worker to the next one."""
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import]

    class Scheduling(LoadFileScheduling):
        def remove_node(self, node: object) -> Optional[str]:
            pending = [(unit, test) for unit in self.assigned_work[node].values() for test in unit if not unit[test]]
            for unit, test in pending[:1]:
                unit[test] = True
            super().remove_node(node)
            return pending[0][1] if pending else None

    return Scheduling(config, log)
