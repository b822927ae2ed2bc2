# SPDX-License-Identifier: GPL-2.0-or-later
"""What a person would stumble over: figures off the screen, titles that are told twice, lines that glare."""

from typing import Any, List

from tests.web.browser import look
from tests.web.pages import Page


# Words of the first column of tables, names in parts after slashes: on how many lines each of them is.
PARTS = """
[...document.querySelectorAll('tbody .name')].filter((name) => name.checkVisibility()).flatMap((name) => {
    const texts = document.createTreeWalker(name, NodeFilter.SHOW_TEXT);
    const found = [];
    while (texts.nextNode()) {
        for (const { 0: word, index } of texts.currentNode.data.matchAll(/\\S+/g)) {
            const range = document.createRange();
            range.setStart(texts.currentNode, index);
            range.setEnd(texts.currentNode, index + word.length);
            found.push([word, range.getClientRects().length]);
        }
    }
    return found;
})
"""


def test_a_phone_breaks_names_after_slashes_only(training: Page) -> None:
    """ "torch / _cou / nters / .py:1" stood there."""
    parts, over = look(
        training.path,
        ["evaluate", PARTS],
        ["evaluate", "document.documentElement.scrollWidth - document.documentElement.clientWidth"],
        width=390,
        height=844,
    )
    short = [(text, n_lines) for text, n_lines in parts if len(text) <= 16]
    assert len(short) > 20 and any(".py:" in text for text, _ in short)
    assert [text for text, n_lines in short if n_lines > 1] == []
    assert over <= 0


def test_a_finger_hits_what_stands_beside_other_controls_on_a_phone(training: Page) -> None:
    controls = "[...document.querySelectorAll('.moment button, .menu > summary')].filter((e) => e.checkVisibility())"
    sides = "flatMap((e) => [e.getBoundingClientRect().width, e.getBoundingClientRect().height])"
    (found,) = look(training.path, ["evaluate", f"{controls}.{sides}"], width=390, height=844, tabs="none")
    assert len(found) >= 10 and min(found) >= 44


def test_a_title_is_shown_once(training: Page) -> None:
    seen: List[str]
    (seen,) = look(
        training.path,
        [
            "evaluate",
            """[...document.querySelectorAll('section:not([hidden])')].flatMap((section) =>
                [...section.querySelectorAll('h2, h3')].filter((e) => !e.closest('[hidden]') && e.getBoundingClientRect().left >= 0)
                    .map((e) => e.textContent))""",
        ],
    )
    assert {"Memory over time", "Python lines", "Callers and callees"} <= set(seen)
    assert len(seen) == len(set(seen))


def test_the_frames_of_the_call_tree_are_parted_by_the_pages_own_background(training: Page) -> None:
    stroke = "getComputedStyle(document.querySelector('.flame rect')).stroke"
    back = "getComputedStyle(document.documentElement).backgroundColor"
    for scheme in ("light", "dark"):
        found = look(training.path, ["evaluate", stroke], ["evaluate", back], scheme=scheme)
        assert found[0] == found[1]
