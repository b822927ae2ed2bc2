# SPDX-License-Identifier: GPL-2.0-or-later
"""Callers and callees on the page are those of the stacks, and a click goes on to one of them."""

from collections import Counter
from typing import Any, Dict, List, Tuple

from jmassif.analysis.moments import select
from jmassif.model.records import side_of
from tests.web.browser import look
from tests.web.pages import Page


def bytes_of(rows: List[List[Any]]) -> Dict[str, int]:
    return {row[0]: row[1] for row in rows[1:] if row[0] != "total"}


def around(profile: Any, names: Any, held: Any, wanted: str) -> "Tuple[Counter[str], Counter[str]]":
    """Bytes of the callers and callees of a frame, from each stack by itself."""
    callers: "Counter[str]" = Counter()
    callees: "Counter[str]" = Counter()
    for account, (n_bytes, _) in held.items():
        stack = [names.frame(frame) for frame in profile.stack(profile.accounts[account].node)]
        if wanted in stack and n_bytes and side_of(profile.accounts[account].kind):
            first, last = stack.index(wanted), len(stack) - 1 - stack[::-1].index(wanted)
            callers[stack[last + 1] if last + 1 < len(stack) else "(nobody: the stack begins here)"] += n_bytes
            callees[stack[first - 1] if first else "(itself)"] += n_bytes
    return callers, callees


def test_callers_and_callees_are_those_of_the_stacks(training: Page) -> None:
    profile, names = training.profile, training.names
    held = select(profile, "peak").composition
    wanted = "train.py:148 (train_with_jmsim)"
    call = "#callers-callees .table:last-of-type tbody tr"
    _, _, callers, callees, total, _, _, name, _, back = look(
        training.path,
        ["fill", "#callers-callees input", wanted],
        ["press", "#callers-callees input", "Enter"],
        ["rows", "#callers-callees .table:nth-of-type(2) table"],
        ["rows", "#callers-callees .table:nth-of-type(3) table"],
        ["text", "#callers-callees .table:nth-of-type(3) tfoot th"],
        ["text", f"{call} th"],
        ["click", call],
        ["evaluate", "document.querySelector('#callers-callees input').value"],
        ["rows", "#callers-callees .table:nth-of-type(3) table"],
        ["rows", "#callers-callees .table:nth-of-type(2) table"],
    )
    callers_, callees_ = around(profile, names, held, wanted)
    assert {caller: held for caller, held in bytes_of(callers).items() if held} == callers_
    assert sum(bytes_of(callees).values()) == sum(callees_.values()) > 0 and total == "total"
    # The largest callee is that of the stacks, and among its callers is the chosen line.
    assert name == max(callees_, key=lambda each: callees_[each])
    assert any(row[0] == wanted for row in back)


def test_the_name_in_the_field_is_not_cut(training: Page) -> None:
    """As long a name as those of Python's own importing lines."""
    room = "(() => { const e = document.querySelector('#callers-callees input'); return e.scrollWidth <= e.clientWidth; })()"
    name = "<frozen importlib._bootstrap>:1178 (_find_and_load_unlocked)"
    assert look(training.path, ["fill", "#callers-callees input", name], ["evaluate", room])[1] is True


def test_figures_of_the_largest_lines_stand_beside_their_names_on_a_phone(training: Page) -> None:
    middle = "const box = e.getBoundingClientRect(); return (box.top + box.bottom) / 2"
    places = f"""(() => {{
        const middle = (e) => {{ {middle}; }}, range = document.createRange();
        const [line, ...cells] = [...document.querySelector('#largest tbody tr').children].filter((e) => e.offsetParent && e.innerText);
        return cells.map((e) => (range.selectNodeContents(e), Math.abs(middle(range) - middle(line.querySelector('button, a')))));
    }})()"""
    (apart,) = look(training.path, ["evaluate", places], width=390, height=844, tabs="none")
    assert apart and max(apart) < 3
