# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures that every test may use, the choice of tests, and the closing line."""

import signal
import sys
from collections import defaultdict
from pathlib import Path
from typing import DefaultDict, List

import pytest

from tests import harness, hosts, running, tiers


# Keep compiled tests for the next worker and the next run, in the build tree. Children do not inherit this.
sys.pycache_prefix, sys.dont_write_bytecode = str(harness.PYCACHE), False


def pytest_configure(config: "pytest.Config") -> None:
    # A shell starts jobs in the background with SIGINT ignored, and all programs that the tests run inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(running)
    for tier in tiers.TIERS:
        config.addinivalue_line("markers", f"{tier}: runs in this tier (tests/tiers.py)")


def pytest_collection_modifyitems(config: "pytest.Config", items: List[pytest.Item]) -> None:
    if harness.HOST == "native":
        others = [item for item in items if not hosts.records(item.nodeid)]
        items[:] = [item for item in items if hosts.records(item.nodeid)]
        config.hook.pytest_deselected(items=others)
        for item in items:
            reason = hosts.reason_to_skip(item.nodeid)
            if reason:
                item.add_marker(pytest.mark.skip(reason=f"natively: {reason}"))
    items.sort(key=lambda item: running.place(item.nodeid))
    for item in items:
        for tier in tiers.markers_of(item.nodeid):
            item.add_marker(tier)


def pytest_unconfigure(config: "pytest.Config") -> None:
    """Prints each skipped test with its reason and, last, `N passed, N failed, N skipped`. Keeps these lines and the seconds
    that each test took, set-up included."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput") or config.option.collectonly:
        return
    n_passed, n_failed, n_errors, n_skipped = (
        len(reporter.stats.get(outcome, ())) for outcome in ("passed", "failed", "error", "skipped")
    )
    lines = sorted(f"skipped: {report.nodeid}: {report.longrepr[2]}" for report in reporter.stats.get("skipped", ()))
    lines.append(f"{n_passed} passed, {n_failed + n_errors} failed" + f", {n_skipped} skipped" * bool(n_skipped))
    seconds: DefaultDict[str, float] = defaultdict(float)
    for reports in reporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid] += report.duration
    slowest_first = sorted(seconds.items(), key=lambda entry: -entry[1])
    harness.MADE.mkdir(parents=True, exist_ok=True)
    natively = ".native" if harness.HOST == "native" else ""
    (harness.MADE / f"durations{natively}.tsv").write_text(
        "".join(f"{took:.3f}\t{node}\n" for node, took in slowest_first)
    )
    (harness.MADE / f"summary{natively}").write_text("\n".join(lines) + "\n")
    print(*lines, sep="\n")


@pytest.fixture(scope="session")
def sim() -> Path:
    """The directory of the simulated board's libraries."""
    return harness.sim_build()
