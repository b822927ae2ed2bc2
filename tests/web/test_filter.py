# SPDX-License-Identifier: GPL-2.0-or-later
"""Long tables are filtered: the rows, their total, and what is saved are those that a regular expression finds."""

import csv
import io
from typing import Any, List

from jmassif.questions.mappings import libraries
from jmassif.questions.moments import select
from tests.web.browser import look
from tests.web.pages import Page

TABLE = "#libraries .table"


def typed(text: str) -> List[str]:
    """A step that types into the filter; its result is whether the text is taken for wrong."""
    return [
        "evaluate",
        f"""(() => {{
            const filter = document.querySelector('{TABLE} .filter');
            filter.value = {text!r};
            filter.dispatchEvent(new Event('input'));
            return filter.getAttribute('aria-invalid');
        }})()""",
    ]


def test_a_filter_leaves_what_it_finds_and_its_total(pytorch: Page) -> None:
    profile, names = pytorch.profile, pytorch.names
    composition = select(profile, "peak").composition
    expected = {
        row.name: row.bytes
        for row in libraries(profile, names, composition, [])
        if "libtorch" in row.name and row.bytes
    }
    assert len(expected) >= 2
    heads, is_wrong, rows, total, said, saved, _, all_rows = look(
        pytorch.path,
        ["texts", f"{TABLE}:first-of-type thead th"],
        typed("^LIBTORCH"),
        ["rows", f"{TABLE}:first-of-type tbody"],
        ["rows", f"{TABLE}:first-of-type tfoot"],
        ["text", f"{TABLE} [role=status]"],
        ["save", f"{TABLE} button:text-is('CSV')"],
        typed(""),
        ["rows", f"{TABLE}:first-of-type tfoot"],
    )
    place = [head.split(" ")[0] for head in heads].index("held")
    assert is_wrong is None
    assert {row[0]: row[place] for row in rows} == expected
    assert total[0][place] == sum(expected.values()) < all_rows[0][place]
    assert said.startswith(f"{len(expected)} of ")
    first = list(csv.reader(io.StringIO(saved["text"])))
    assert {row[0]: int(row[place]) for row in first[1:]} == expected


def test_totals_of_all_columns_follow_the_filter(pytorch: Page) -> None:
    """Also of those that are not the cells' own sums: by kind, and what is left of Python lines at the end."""
    for table in ("#libraries .table:first-of-type", "#lines .table"):
        step = typed("torch|train")
        step[1] = step[1].replace(TABLE, table)
        everything = ["evaluate", f"document.querySelector('{table} .more').click()"]
        found = look(
            pytorch.path,
            step,
            everything,
            ["rows", f"{table} thead"],
            ["rows", f"{table} tbody"],
            ["rows", f"{table} tfoot"],
        )
        heads, rows, total = found[2:]
        assert rows
        for place, (head, figure) in enumerate(zip(heads[0], total[0])):
            # Lines call each other, so what passes through them is in many rows.
            if isinstance(figure, int) and "total" not in str(head):
                assert figure == sum(row[place] for row in rows)


def test_what_is_no_regular_expression_is_said_and_leaves_all(pytorch: Page) -> None:
    before, is_wrong, after = look(pytorch.path, ["rows", f"{TABLE} tfoot"], typed("("), ["rows", f"{TABLE} tfoot"])
    assert is_wrong == "true" and before == after


def test_a_filter_that_finds_nothing_says_so(pytorch: Page) -> None:
    found: List[Any] = look(
        pytorch.path, typed("no such"), ["texts", f"{TABLE}:first-of-type tbody td"], ["count", f"{TABLE} .filter"]
    )
    assert found[1] == ["nothing found"] and found[2] >= 1


def test_short_tables_have_none(training: Page) -> None:
    assert look(training.path, ["evaluate", "document.querySelector('#owners .filter').hidden"]) == [True]
