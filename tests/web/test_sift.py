# SPDX-License-Identifier: GPL-2.0-or-later
"""A part of a run on the page, chosen by expressions there or on the command line: its figures are those of that part, to the byte."""

from pathlib import Path
from typing import Any, List

import pytest

from tests.reporter.commands import assert_one_line_error, jm_print
from tests.reporter.traces import Trace
from tests.web.browser import SCREENSHOTS, Seen, in_node, look, look_once, write_page

ONLY, EXCEPT = "[aria-label^='Show only']", "[aria-label^='Show all except']"


def trace() -> Trace:
    trace = Trace(memory="unified", time_unit="ms", pid="7", command="train.py")
    net = trace.account("heap", "framework", ["malloc (libc.so.6)", "py forward (/app/net.py:7)", "main (m.c:1)"])
    data = trace.account("heap", "app", ["malloc (libc.so.6)", "py load (/app/data.py:3)", "main (m.c:1)"])
    pool = trace.account("device", "tensor", ["cudaMalloc (libcuda.so)", "py forward (/app/net.py:8)", "main (m.c:1)"])
    none = trace.account("stack", "loader")
    trace.block(40, 0x10000, 1 << 20, pool)
    trace.snapshot(50, "time", {net: (1 << 20, 2), data: (3 << 20, 1), pool: (1 << 20, 1), none: (4096, 0)})
    trace.block(60, 0x900000, 3 << 20, pool)
    trace.snapshot(100, "exit", {net: (2 << 20, 2), data: (5 << 20, 4), pool: (4 << 20, 2), none: (4096, 0)})
    return trace


@pytest.fixture(scope="module", name="page")
def fixture_page(tmp_path_factory: Any) -> Path:
    directory = tmp_path_factory.mktemp("sift")
    return write_page(directory, trace().save(directory))


def sifted(only: str = "", but: str = "") -> List[List[Any]]:
    return [
        ["evaluate", "document.querySelector('.menu').open = true"],
        ["fill", ONLY, only],
        ["press", ONLY, "Enter"],
        ["fill", EXCEPT, but],
        ["press", EXCEPT, "Enter"],
    ]


OWNERS = ["rows", "#owners table"]


def by_owner(rows: List[List[Any]]) -> Any:
    heads = [str(head).strip(" ▾▴") for head in rows[0]]
    place = heads.index("total")
    return {row[0]: row[place] for row in rows[1:] if len(row) > place}


MIB = 1 << 20


PARTS = [
    ("forward", "", {"framework": 2 * MIB, "tensor": 4 * MIB, "total": 6 * MIB}),
    ("file:data", "", {"app": 5 * MIB, "total": 5 * MIB}),
    ("", "owner:^(tensor|app)$", {"framework": 2 * MIB, "loader": 4096, "total": 2 * MIB + 4096}),
    ("function:FORWARD", "libcuda", {"framework": 2 * MIB, "total": 2 * MIB}),
    ("function:net.py", "", {}),
]


@pytest.fixture(scope="module", name="parts")
def fixture_parts(page: Path) -> Seen:
    """One part after the other."""
    figures = [
        OWNERS,
        ["text", "#headline .size"],
        ["click", "#tab-flame-graph"],
        ["evaluate", "document.querySelector('.flame')?.tree?.now ?? 0"],
        ["count", "#blocks tbody tr.choosable"],
    ]
    return look_once(page, {f"{only} {but}": sifted(only, but) + figures for only, but, _ in PARTS})


@pytest.mark.parametrize("only, but, held", PARTS)
def test_a_part_holds_what_its_accounts_hold(parts: Seen, only: str, but: str, held: Any) -> None:
    *_, rows, said, _, tree, blocks = parts[f"{only} {but}"]
    assert {k: v for k, v in by_owner(rows).items() if isinstance(v, int)} == held
    assert tree == held.get("total", 0)
    assert "of 11.0 MiB shown" in said or not (only or but)
    assert (blocks > 0) == ("tensor" in held)


@pytest.mark.parametrize(
    "text, fields, expression",
    [
        ("function:std::vector", ["function"], "std::vector"),
        ("std::vector", ["function", "file", "owner", "thread"], "std::vector"),
        ("file:C:/net.py", ["file"], "C:/net.py"),
    ],
)
def test_colons_but_the_first_are_of_the_expression(text: str, fields: List[str], expression: str) -> None:
    script = """
    import { expressionOf } from './src/runs/filter.js';
    import { readFileSync } from 'node:fs';
    const { fields, pattern } = expressionOf(JSON.parse(readFileSync(0, 'utf8')));
    console.log(JSON.stringify([fields, pattern.source.replaceAll('\\\\', '')]));
    """
    assert in_node(script, text) == [fields, expression]


def test_the_whole_is_shown_again_and_the_address_tells(page: Path) -> None:
    before, *_, fragment, seen, _, _, after, back = look(
        page,
        OWNERS,
        *sifted("forward"),
        ["fragment"],
        OWNERS,
        ["fill", ONLY, ""],
        ["press", ONLY, "Enter"],
        OWNERS,
        ["evaluate", "document.querySelectorAll('.whole:not([hidden])').length"],
        fragment="tab=by-owner",
        tabs="none",
    )
    assert before == after != seen and back == 0 and "only=forward" in fragment
    again, _, noted = look(
        page, OWNERS, ["click", "#tab-leaking"], ["text", "#leaks .whole"], fragment=fragment, tabs="none"
    )
    assert again == seen and noted == "Not filtered"


def test_what_is_no_expression_is_said_in_a_word_and_changes_nothing(page: Path) -> None:
    before, *_, after, said = look(page, OWNERS, *sifted("(", ""), OWNERS, ["text", ".sifting [role=status]"])
    assert before == after and said == "Invalid regular expression"


def test_a_part_from_the_command_line_is_shown_first_and_can_be_left(tmp_path: Path) -> None:
    """There it is looked for in whole paths, which the page does not have."""
    page = write_page(tmp_path, trace().save(tmp_path), options=["--include=file:^/app/net", "--exclude=owner:tensor"])
    rows, said, _, asked, _, all_rows, fragment, _ = look(
        page,
        OWNERS,
        ["text", "#headline .size"],
        ["click", ".menu > summary"],
        ["text", ".sifting label:has([type=checkbox])"],
        ["click", ".sifting [type=checkbox]"],
        OWNERS,
        ["fragment"],
        ["screenshot", str(SCREENSHOTS / "sift.png")],
    )
    assert by_owner(rows) == {"framework": 2 * MIB, "total": 2 * MIB}
    assert said.startswith("2.00 MiB of 11.0 MiB shown")
    assert asked.strip() == "--include=file:^/app/net --exclude=owner:tensor"
    assert by_owner(all_rows)["total"] == 11 * MIB + 4096 and "given=no" in fragment


def test_a_bad_expression_on_the_command_line_is_one_line(tmp_path: Path) -> None:
    path = trace().save(tmp_path)
    done = jm_print("--format=html", "--include=(", path)
    assert_one_line_error("jm_print", done, "regular expression")
