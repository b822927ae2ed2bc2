# SPDX-License-Identifier: GPL-2.0-or-later
"""The page's pure functions, tested by Node.js's own runner: a file of tests here is one test."""

import re
from pathlib import Path

import pytest

from tests.harness import run
from tests.web.browser import bundle

FILES = sorted(Path(__file__).parent.glob("*.test.mjs"))


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_all_of_a_file_pass(file: Path, tmp_path: Path) -> None:
    done = run(["node", "--test", "--test-reporter=tap", bundle(tmp_path / file.name, file)])
    assert done.returncode == 0, done.stdout + done.stderr
    n_tests, n_passed = (re.search(rf"^# {word} (\d+)$", done.stdout, re.MULTILINE) for word in ("tests", "pass"))
    assert n_tests and n_passed and 1 < int(n_tests.group(1)) == int(n_passed.group(1)), done.stdout
