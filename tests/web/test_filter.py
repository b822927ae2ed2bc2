# SPDX-License-Identifier: GPL-2.0-or-later
"""Long tables are filtered: the rows, their total, and what is saved are those that a regular expression finds."""

import csv
import io
from typing import Dict, List

import pytest

from jmassif.analysis.system import libraries
from jmassif.analysis.moments import select
from tests.web.browser import Seen, Step, look, look_once
from tests.web.pages import Page

TABLE = "#owners .table"


# Of whose columns the sums must be the total's.
TABLES = (TABLE, "#lines .table")


def typed(text: str, table: str = TABLE) -> List[str]:
    """A step that types into the filter; its result is whether the text is taken for wrong."""
    return [
        "evaluate",
        f"""(() => {{
            const filter = document.querySelector('{table} .filter');
            filter.value = {text!r};
            filter.dispatchEvent(new Event('input'));
            return new Promise((done) => setTimeout(() => done(filter.getAttribute('aria-invalid')), 50));
        }})()""",
    ]


@pytest.fixture(scope="module", name="seen")
def fixture_seen(pytorch: Page) -> Seen:
    """Each time without a filter at the end."""
    plans: Dict[str, List[Step]] = {
        "libraries": [["choose", "#owners .choice select", "library"]],
        "found": [
            ["texts", f"{TABLE} thead th"],
            typed("^LIBTORCH"),
            ["rows", f"{TABLE} tbody"],
            ["rows", f"{TABLE} tfoot"],
            ["text", f"{TABLE} [role=status]"],
            ["save", f"{TABLE} button:text-is('CSV')"],
            typed(""),
            ["rows", f"{TABLE} tfoot"],
        ],
        "no expression": [["rows", f"{TABLE} tfoot"], typed("("), ["rows", f"{TABLE} tfoot"], typed("")],
        "nothing": [typed("no such"), ["texts", f"{TABLE} tbody td"], ["count", f"{TABLE} .filter"], typed("")],
    }
    for table in TABLES:
        plans[table] = [
            typed("torch|train", table),
            ["evaluate", f"document.querySelector('{table} .more').click()"],
            ["rows", f"{table} thead"],
            ["rows", f"{table} tbody"],
            ["rows", f"{table} tfoot"],
        ]
    return look_once(pytorch.path, plans)


def test_a_filter_leaves_what_it_finds_and_its_total(pytorch: Page, seen: Seen) -> None:
    profile, names = pytorch.profile, pytorch.names
    composition = select(profile, "peak").composition
    expected = {
        row.name: row.bytes
        for row in libraries(profile, names, composition, [])
        if "libtorch" in row.name and row.bytes
    }
    assert len(expected) >= 2
    heads, is_wrong, rows, total, said, saved, _, all_rows = seen["found"]
    place = [head.split(" ")[0] for head in heads].index("total")
    assert is_wrong is None
    assert {row[0]: row[place] for row in rows} == expected
    assert total[0][place] == sum(expected.values()) < all_rows[0][place]
    assert said.startswith(f"{len(expected)} of ")
    first = list(csv.reader(io.StringIO(saved["text"])))
    assert {row[0]: int(row[place]) for row in first[1:]} == expected


def test_totals_of_all_columns_follow_the_filter(seen: Seen) -> None:
    """Also of those that are not the cells' own sums: by kind, and what is left of Python lines at the end."""
    for table in TABLES:
        heads, rows, total = seen[table][2:]
        assert rows
        for place, (head, figure) in enumerate(zip(heads[0], total[0])):
            # Lines call each other, so what passes through them is in many rows.
            if isinstance(figure, int) and "total" not in str(head):
                assert figure == sum(row[place] for row in rows)


def test_what_is_no_regular_expression_is_said_and_leaves_all(seen: Seen) -> None:
    before, is_wrong, after, _ = seen["no expression"]
    assert is_wrong == "true" and before == after


def test_a_filter_that_finds_nothing_says_so(seen: Seen) -> None:
    found = seen["nothing"]
    assert found[1] == ["nothing found"] and found[2] >= 1


def test_short_tables_have_none(training: Page) -> None:
    assert look(training.path, ["evaluate", "document.querySelector('#owners .filter').hidden"]) == [True]
