# SPDX-License-Identifier: GPL-2.0-or-later
"""House style, as tests/lint.sh checks it."""

import pytest

from tests.harness import ROOT, run

TOOL_IS_MISSING = 77  # also lint.sh's


@pytest.mark.parametrize(
    "check", ["clang_format", "black", "mypy", "shellcheck", "spdx", "words", "arrows", "prettier", "eslint"]
)
def test_lint(check: str) -> None:
    done = run([ROOT / "tests" / "lint.sh", check], cwd=ROOT, timeout=300)
    if done.returncode == TOOL_IS_MISSING:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
