# SPDX-License-Identifier: GPL-2.0-or-later
"""What is taken from a table into a spreadsheet is text there, whatever a program's names say."""

import pytest

from tests.web.browser import in_node

SCRIPT = """
import { csv, tabbed } from './src/charts/csv.js';
import { readFileSync } from 'node:fs';
const rows = JSON.parse(readFileSync(0, 'utf8'));
console.log(JSON.stringify([csv(rows).split('\\r\\n'), tabbed(rows).split('\\n')]));
"""


@pytest.mark.parametrize("name", ("=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"))
def test_no_cell_is_a_formula(name: str) -> None:
    """Saved as a file, and copied; numbers stay numbers."""
    saved, copied = in_node(SCRIPT, [["line", "bytes"], [name, -5], ["main", 5]])
    assert saved[1].lstrip('"').startswith("'")
    assert copied[1].startswith("'") and copied[1].endswith("\t-5")
    assert (saved[-2], copied[2]) == ("main,5", "main\t5")


@pytest.mark.parametrize(
    "name, field",
    [
        ('operator "" _kb', '"operator """" _kb"'),
        ('"quoted"', '"""quoted"""'),
        ("f(int, int)", '"f(int, int)"'),
        ("plain", "plain"),
    ],
)
def test_a_field_is_quoted_where_readers_want_it(name: str, field: str) -> None:
    saved, _ = in_node(SCRIPT, [["line", "bytes"], [name, 5]])
    assert saved == ["line,bytes", f"{field},5", ""]
