# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver of the browser: visits share it, and nothing else. A visit that fails, hangs or crashes fails alone."""

import os
import signal
from pathlib import Path

import pytest

from tests.web import browser
from tests.web.browser import look, visit

PAGE = """<!doctype html><html data-state="ready"><body><button onclick="alert('oh')">ask</button>
<script>localStorage.visits = Number(localStorage.visits ?? 0) + 1;</script></body></html>"""
CLIPBOARD = ["evaluate", "navigator.clipboard.readText()"]


@pytest.fixture(name="page")
def fixture_page(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(PAGE)
    return path


def test_each_visit_has_a_context_of_its_own(page: Path) -> None:
    for _ in range(2):
        written = ["evaluate", "navigator.clipboard.writeText('mine')"]
        assert look(page, ["evaluate", "localStorage.visits"], CLIPBOARD, written, CLIPBOARD)[::3] == ["1", "mine"]
        assert look(page, CLIPBOARD) == [""]


def test_a_visit_that_fails_says_why_and_the_next_one_works(page: Path) -> None:
    with pytest.raises(AssertionError, match="nonsense is not defined"):
        visit(page, ["evaluate", "nonsense()"])
    running = browser.DRIVER.pid
    assert look(page, ["count", "button"]) == [1] and browser.DRIVER.pid == running


def test_a_visit_that_hangs_is_ended_and_the_next_one_works(page: Path) -> None:
    with pytest.raises(AssertionError, match="no end within 3 s"):
        visit(page, ["evaluate", "while (true);"], timeout=3)
    assert look(page, ["count", "button"]) == [1]


def test_a_driver_that_was_killed_is_started_again(page: Path) -> None:
    look(page)
    os.kill(browser.DRIVER.pid, signal.SIGKILL)
    os.waitid(os.P_PID, browser.DRIVER.pid, os.WEXITED | os.WNOWAIT)
    assert look(page, ["count", "button"]) == [1]


def test_what_a_page_should_never_do_is_trouble(page: Path, tmp_path: Path) -> None:
    for script, trouble in (
        ("console.error('bad')", "error: bad"),
        ("console.warn('odd')", "warning: odd"),
        ("document.querySelector('button').click()", "dialog: oh"),
        ("setTimeout(() => { throw new Error('lost'); })", "exception: lost"),
        ("new Image().src = 'elsewhere.png'", f"request: {(tmp_path / 'elsewhere.png').as_uri()}"),
    ):
        assert trouble in visit(page, ["evaluate", f"{script}, null"], ["click", "body"]).trouble
