# SPDX-License-Identifier: GPL-2.0-or-later
"""Views come and go with the processes that the reader looks at, and leave nothing behind."""

from pathlib import Path
from typing import Any, Dict, List, NamedTuple

from tests.web.browser import visit
from tests.web.pages import Page

COUNT = (Path(__file__).parent / "counted.js").read_text()
FORGET = "window.forgetful = true;"
KEEP = "(window.kept ??= []).push(document.querySelector('#timeline .u-over')), null"
WARM_UP, ROUNDS = 3, 10
WATCHED = {"Window: themechange", "MediaQueryList: change"}


class Counts(NamedTuple):
    first: Dict[str, Any]  # when the page has opened
    warm: Dict[str, Any]
    last: Dict[str, Any]


def counted(page: Page, script: str, *before_leaving: List[Any]) -> Counts:
    """What the page holds on to: round after round to another process, to some of its moments, and back to the first.

    The engine keeps one object of each literal as a pattern for the next, and with a literal that has getters whatever these
    reach; so what is out of the document is counted from a warm start on.
    """
    steps: List[List[Any]] = [["counted"]]
    for i in range(WARM_UP + ROUNDS):
        steps += [["counted"]] if i == WARM_UP else []
        steps += [
            *before_leaving,
            ["choose", ".bar select", {"index": 1 + i % len(page.profiles)}],
            ["press", "#timeline .plot", "ArrowLeft"],
            ["press", "#timeline .plot", "Shift+Home"],
            ["choose", "#timeline select", {"index": 1 + i % 2}],
            ["choose", ".bar select", {"index": 0}],
        ]
    visited = visit(page.path, *steps, ["counted"], before=script, fragment="tab=flame-graph", tabs="none")
    assert visited.trouble == []
    found = [step for step in visited.results if isinstance(step, dict)]
    return Counts(*found)


def in_document(held: Dict[str, int]) -> Dict[str, int]:
    return {what: n for what, n in held.items() if not what.startswith("lost")}


def test_nothing_is_left_behind_by_processes_and_moments(forking: Page) -> None:
    first, warm, last = counted(forking, COUNT)
    assert WATCHED <= set(first["held"])
    assert first["held"] == in_document(last["held"])
    assert warm["held"] == last["held"]
    assert warm["listeners"] == last["listeners"]
    assert abs(warm["nodes"] - last["nodes"]) < ROUNDS


def test_forgotten_listeners_and_observers_would_be_counted(forking: Page) -> None:
    """The flame graph looks after the theme and its place's width. All was left behind with each change of process."""
    _, warm, last = (each["held"] for each in counted(forking, FORGET + COUNT))
    for what in WATCHED:
        assert last[what] - warm[what] >= 2 * ROUNDS, what


def test_forgotten_elements_would_be_counted(forking: Page) -> None:
    _, warm, last = (each["held"] for each in counted(forking, COUNT, ["evaluate", KEEP]))
    # The plot's own and the page's.
    for what in ("mouseup", "mousedown"):
        assert last[f"lost div.u-over: {what}"] - warm[f"lost div.u-over: {what}"] >= ROUNDS
