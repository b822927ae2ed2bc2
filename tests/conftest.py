# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures that every test may use, the choice of tests, and the closing line."""

from collections import Counter
from pathlib import Path
from typing import List

import pytest

from tests import harness, tiers


def pytest_configure(config: "pytest.Config") -> None:
    for tier in tiers.TIERS:
        config.addinivalue_line("markers", f"{tier}: runs in this tier (tests/tiers.py)")


def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    for item in items:
        for tier in tiers.markers_of(item.nodeid):
            item.add_marker(tier)


def pytest_unconfigure(config: "pytest.Config") -> None:
    """Prints `N passed, N failed, N skipped`, and keeps the seconds that each test took, set-up included."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput") or config.option.collectonly:
        return
    n_passed, n_failed, n_errors, n_skipped = (
        len(reporter.stats.get(outcome, ())) for outcome in ("passed", "failed", "error", "skipped")
    )
    line = f"{n_passed} passed, {n_failed + n_errors} failed"
    if n_skipped:
        line += f", {n_skipped} skipped"
    seconds: "Counter[str]" = Counter()
    for reports in reporter.stats.values():
        for report in reports:
            seconds[getattr(report, "nodeid", "")] += getattr(report, "duration", 0)
    harness.MADE.mkdir(parents=True, exist_ok=True)
    (harness.MADE / "durations.tsv").write_text("".join(f"{n:.3f}\t{node}\n" for node, n in seconds.most_common()))
    (harness.MADE / "summary").write_text(line + "\n")
    print(line)


@pytest.fixture(scope="session")
def sim() -> Path:
    """The directory of the simulated board's libraries."""
    return harness.sim_build()
