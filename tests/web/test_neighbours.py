# SPDX-License-Identifier: GPL-2.0-or-later
"""Callers and callees on the page are those of jm_print --calls-of, and a click goes on to one of them."""

from typing import Any, Dict, List

from jmassif.analysis.callers_callees import neighbours
from jmassif.analysis.moments import select
from tests.web.browser import look
from tests.web.pages import Page


def bytes_of(rows: List[List[Any]]) -> Dict[str, int]:
    return {row[0]: row[1] for row in rows[1:] if row[0] != "total"}


def test_callers_and_callees_are_those_of_the_text(training: Page) -> None:
    profile, names = training.profile, training.names
    held = select(profile, "peak").composition
    wanted = "train.py:148 (train_with_jmsim)"
    call = "#neighbours .table:last-of-type tbody tr"
    _, _, callers, callees, total, _, _, name, _, back = look(
        training.path,
        ["fill", "#neighbours input", wanted],
        ["press", "#neighbours input", "Enter"],
        ["rows", "#neighbours .table:nth-of-type(2) table"],
        ["rows", "#neighbours .table:nth-of-type(3) table"],
        ["text", "#neighbours .table:nth-of-type(3) tfoot th"],
        ["text", f"{call} th"],
        ["click", call],
        ["evaluate", "document.querySelector('#neighbours input').value"],
        ["rows", "#neighbours .table:nth-of-type(3) table"],
        ["rows", "#neighbours .table:nth-of-type(2) table"],
    )
    expected = neighbours(profile, names, held, wanted)
    assert bytes_of(callers) == {name_: f.bytes for name_, f in expected.callers if f.bytes or f.allocated}
    assert sum(bytes_of(callees).values()) == expected.total.bytes > 0 and total == "total"
    # The largest callee is the text's, and who called it is what was asked for, among others.
    assert name == expected.callees[0][0]
    assert any(row[0] == wanted for row in back)
