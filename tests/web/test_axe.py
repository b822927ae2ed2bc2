# SPDX-License-Identifier: GPL-2.0-or-later
"""What axe-core finds wrong with the page: names, roles, contrast, order of headings and of the focus."""

from pathlib import Path

import pytest

from tests.reporter.test_exhaustion import fragmented, on_board
from tests.web.browser import visit, write_page
from tests.web.pages import Page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("tabs", ["none", "all"])
def test_a_page_is_clean(training: Page, scheme: str, tabs: str) -> None:
    visited = visit(training.path, ["axe"], scheme=scheme, tabs=tabs)
    assert visited.results[0] == []


def test_a_page_that_tells_of_failures_compared_and_narrowed_is_clean(tmp_path: Path) -> None:
    run = fragmented()
    run.fails(400 << 20, **on_board(0))
    run.trace.snapshot(50, "exit", {run.cache: (1 << 20, 1)})
    page = write_page(tmp_path, run.trace.save(tmp_path))
    visited = visit(page, ["click", "#owners tbody tr"], ["axe"], width=390, height=844)
    assert visited.results[1] == []


def test_a_page_with_a_stack_and_the_filter_is_clean(tmp_path: Path) -> None:
    """The stack of a block that was clicked, and a filter that has something to say."""
    run = fragmented()
    run.trace.snapshot(50, "exit", {run.cache: (1 << 20, 1)})
    page = write_page(tmp_path, run.trace.save(tmp_path))
    visited = visit(
        page,
        ["click", "#blocks tbody tr"],
        ["click", ".menu > summary"],
        ["fill", ".sifting .sift", "("],
        ["evaluate", "[...document.querySelectorAll('.stack')].filter((e) => e.checkVisibility()).length"],
        ["axe"],
    )
    assert visited.results[-2:] == [1, []]


def test_axe_finds_what_is_wrong(training: Page) -> None:
    wrong = "document.querySelector('main').append(document.createElement('button')), null"
    visited = visit(training.path, ["evaluate", wrong], ["axe"], tabs="none")
    assert any(found.startswith("button-name: ") for found in visited.results[1])
