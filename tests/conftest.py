# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures that every test may use, the choice of tests, and the closing line."""

import os
from pathlib import Path
from typing import List

import pytest

from tests import harness


# Directories of tests that run many programs, or make whole builds.
SLOW = ("arm64", "board", "fleet", "fuzz", "packaging", "plugin", "python", "tool", "torch")


def pytest_configure(config: "pytest.Config") -> None:
    config.addinivalue_line("markers", "slow: JMASSIF_CHECK leaves it out")


def pytest_collection_modifyitems(config: "pytest.Config", items: List[pytest.Item]) -> None:
    """JMASSIF_CHECK: quick leaves out the slow ones; first has of the others the first of each file."""
    choice = os.environ.get("JMASSIF_CHECK")
    if choice not in ("quick", "first"):
        return
    chosen = [item for item in items if not (item.get_closest_marker("slow") or is_in_slow_directory(item))]
    if choice == "first":
        chosen = list({str(item.fspath): item for item in reversed(chosen)}.values())[::-1]
    kept = set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = chosen


def is_in_slow_directory(item: pytest.Item) -> bool:
    return Path(str(item.fspath)).relative_to(harness.ROOT / "tests").parts[0] in SLOW


def pytest_unconfigure(config: "pytest.Config") -> None:
    """`N passed, N failed, N skipped`, for whoever reads the result of the whole run."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput") or config.option.collectonly:
        return
    n_passed, n_failed, n_errors, n_skipped = (
        len(reporter.stats.get(outcome, ())) for outcome in ("passed", "failed", "error", "skipped")
    )
    line = f"{n_passed} passed, {n_failed + n_errors} failed"
    if n_skipped:
        line += f", {n_skipped} skipped"
    harness.MADE.mkdir(parents=True, exist_ok=True)
    (harness.MADE / "summary").write_text(line + "\n")
    print(line)


@pytest.fixture(scope="session")
def sim() -> Path:
    """The directory of the simulated board's libraries."""
    return harness.sim_build()
