# SPDX-License-Identifier: GPL-2.0-or-later
"""The size of documents: lines that a terminal shows, a README that is read in two minutes, and no more than a reader finds."""

import subprocess
from typing import List

import pytest

from tests.harness import ROOT

WIDTH = 100
MOST_LINES = 2500
README_LINES = 130


def documents() -> List[str]:
    found = subprocess.run(["git", "ls-files", "*.md", "NEWS"], cwd=str(ROOT), stdout=subprocess.PIPE)
    return found.stdout.decode().split()


def test_no_line_is_wider_than_a_terminal_but_rows_of_tables() -> None:
    if not documents():
        pytest.skip("not a checkout")
    wide = [
        f"{name}:{number}"
        for name in documents()
        for number, line in enumerate((ROOT / name).read_text("utf-8").splitlines(), 1)
        if len(line) > WIDTH and not line.startswith("|")
    ]
    assert wide == []


def test_documents_are_no_longer_than_they_may_be() -> None:
    pages = [*ROOT.glob("docs/*.md"), ROOT / "docs" / "jmassif.1"]
    assert sum(len(page.read_text("utf-8").splitlines()) for page in pages) <= MOST_LINES
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= README_LINES
