# SPDX-License-Identifier: GPL-2.0-or-later
"""A click on an owner, a line or a block narrows the call tree to it, which is to be seen and undone."""

import json

from jmassif.analysis.moments import select
from tests.web.browser import look
from tests.web.pages import TREE, Page, assert_adds_up, held


def test_an_owner_that_is_chosen_is_all_of_the_call_tree(real: Page) -> None:
    profile = real.profile
    row = "#owners tbody tr:nth-child(2)"
    owner, _, focused, said, tree, picked, _, rest, whole = look(
        real.path,
        ["text", f"{row} th"],
        ["press", row, "Enter"],
        ["evaluate", "document.activeElement.closest('tr')?.innerText ?? ''"],
        ["text", ".bar .chip"],
        ["evaluate", TREE],
        ["evaluate", "document.querySelector('#calls label:has(select):nth-of-type(4) select, #calls select').value"],
        ["press", ".bar .chip", "Enter"],
        ["count", ".chip"],
        ["evaluate", TREE],
    )
    composition = select(profile, "peak").composition
    root = json.loads(tree)
    assert_adds_up(root)
    assert f"only owner {owner}" in said and picked is not None
    assert root[1] == held(profile, composition, lambda account: bool(profile.accounts[account].owner == owner))
    assert owner in focused
    assert rest == 0 and json.loads(whole)[1] == held(profile, composition)


def test_a_line_and_a_block_are_likewise(training: Page) -> None:
    profile, names = training.profile, training.names
    composition = select(profile, "peak").composition
    line, _, by_line, _, none, _, chips, by_block = look(
        training.path,
        ["text", "#lines tbody tr th"],
        ["click", "#lines tbody tr"],
        ["evaluate", TREE],
        ["click", "#lines tbody tr"],
        ["count", ".chip"],
        ["click", "#blocks tbody tr"],
        ["texts", ".bar .chip"],
        ["evaluate", TREE],
    )

    def is_of_line(account: int) -> bool:
        frame = names.charged(account)
        return bool(frame and f"{names.file(frame)}:{profile.frame(frame).line}" == line)

    assert json.loads(by_line)[1] == held(profile, composition, is_of_line) > 0
    assert none == 0  # a second click undoes the first
    assert len(chips) == 1 and chips[0].startswith("only allocated by ")
    assert 0 < json.loads(by_block)[1] < held(profile, composition)
