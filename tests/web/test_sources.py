# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines and frames of the page show the source around them, where it is what ran."""

from pathlib import Path
from typing import Any, List

from tests.reporter.traces import Trace
from tests.web.browser import look, write_page

TEXT = "".join(f"line_{n} = {n}\n" for n in range(1, 21))


def traced(directory: Path, *paths: str) -> Path:
    trace = Trace(memory="unified", time_unit="ms", cwd=str(directory))
    accounts = [trace.account("heap", "app", [f"py f{i} ({path}:10)"]) for i, path in enumerate(paths)]
    trace.source(paths[0], TEXT.encode())
    trace.snapshot(1, "time", {account: (1000 + account, 1) for account in accounts})
    return trace.save(directory)


def assert_around(text: str) -> None:
    """Line 10 with the three before and after it."""
    assert ">   10 line_10 = 10" in text and "line_7 = 7" in text and "line_13 = 13" in text
    assert "line_6 =" not in text and "line_14" not in text


def test_a_line_shows_the_lines_around_it(tmp_path: Path) -> None:
    source = tmp_path / "my net.py"
    source.write_text(TEXT, encoding="utf-8")
    hover, tip, chips = look(
        write_page(tmp_path, traced(tmp_path, "my net.py")),
        ["attributes", "#lines tbody th", "title"],
        ["evaluate", "[...document.querySelectorAll('.flame title')].map((e) => e.textContent).join('|')"],
        ["count", ".chip"],
    )
    assert_around(hover[0])
    assert_around(tip)
    assert chips == 0


def test_the_largest_lines_have_their_source_beside_them(tmp_path: Path) -> None:
    source = tmp_path / "my net.py"
    source.write_text(TEXT, encoding="utf-8")
    rows = look(write_page(tmp_path, traced(tmp_path, "my net.py", "gone.py")), ["rows", "#largest tbody"])[0]
    assert sorted(row[:2] for row in rows) == [["gone.py:10", ""], ["my net.py:10", "line_10 = 10"]]


def stacked(directory: Path) -> Path:
    """A block with a native frame of a file and one of a library in its stack, and a Python line whose file is there."""
    (directory / "net.py").write_text(TEXT, encoding="utf-8")
    (directory / "take.c").write_text("int secret;\n" * 20, encoding="utf-8")
    trace = Trace(memory="unified", time_unit="ms", cwd=str(directory), pid="7")
    stack = ["cudaMalloc (libcuda.so)", f"take ({directory}/take.c:7)", "py step (net.py:10)", "py gone (/gone.py:3)"]
    account = trace.account("device", "tensor", stack)
    trace.source("net.py", TEXT.encode())
    trace.source("/gone.py", b"other")
    trace.snapshot(0, "start", {})
    trace.block(1, 0x1000000, 9000000, account)
    trace.snapshot(2, "exit", {account: (9000000, 1)})
    return trace.save(directory)


def assert_titles(titles: List[Any]) -> None:
    """Of all frames, the innermost first: no hash says that a native file, or another file of that name, is what ran."""
    assert len(titles) == 4 and not any((titles[0], titles[1], titles[3]))
    assert_around(titles[2])


def test_frames_of_a_stack_have_their_source(tmp_path: Path) -> None:
    """In a block's stack and in the call tree."""
    page = write_page(tmp_path, stacked(tmp_path))
    enlarged: List[Any] = []
    for _ in range(4):
        enlarged += [["keys", "ArrowDown", "Enter"], ["attributes", "#calls .trail b", "title"]]
    focus = ["evaluate", "document.querySelector('.flame').focus()"]
    blocks: List[Any] = [["click", "#blocks tbody tr"], ["attributes", "#blocks .stack li", "title"]]
    _, titles, _, *found = look(page, *blocks, focus, *enlarged)
    assert_titles(titles)
    assert_titles([title for (title,) in reversed(found[1::2])])
    assert "secret" not in page.read_text(encoding="utf-8")


def test_a_file_that_has_changed_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("other = 1\n" * 20, encoding="utf-8")
    (hover,) = look(write_page(tmp_path, traced(tmp_path, "net.py")), ["attributes", "#lines tbody th", "title"])
    assert "other" not in hover[0]
