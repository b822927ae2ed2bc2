# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of the page open in an editor, and show the lines around them. Paths come from a trace, and lead nowhere else."""

from pathlib import Path
from typing import Any, List
from urllib.parse import unquote, urlsplit

import pytest

from jmassif.render.editor import EDITORS, EditorError, parse_editor
from tests.reporter.commands import assert_one_line_error, jm_print
from tests.reporter.traces import Trace
from tests.web.browser import look, write_page
from tests.serve.served import Served

TEXT = "".join(f"line_{n} = {n}\n" for n in range(1, 21))


def traced(directory: Path, *paths: str) -> Path:
    trace = Trace(memory="unified", time_unit="ms", cwd=str(directory))
    accounts = [trace.account("heap", "app", [f"py f{i} ({path}:10)"]) for i, path in enumerate(paths)]
    trace.source(paths[0], TEXT.encode())
    trace.snapshot(1, "time", {account: (1000 + account, 1) for account in accounts})
    return trace.save(directory)


# Of what a selector finds, its editor links.
LINKS = "((at) => [...document.querySelectorAll(`${at} a.edit`)].map((a) => a.href))"
HREFS = "[...document.querySelectorAll('#lines a.edit')].map((a) => a.href)"


@pytest.mark.parametrize("name", EDITORS)
def test_each_editor_is_given_the_path_and_the_line(name: str) -> None:
    link = parse_editor(name).link("my net.py", 12, "/work dir")
    assert "/work%20dir/my%20net.py" in link and link.endswith("12") and urlsplit(link).scheme


def test_a_line_has_a_link_and_the_lines_around_it(tmp_path: Path) -> None:
    source = tmp_path / "my net.py"
    source.write_text(TEXT, encoding="utf-8")
    page = write_page(tmp_path, traced(tmp_path, "my net.py"), options=["--editor=vscode"])
    links, hover, tip, chips = look(
        page,
        ["evaluate", HREFS],
        ["attributes", "#lines tbody th", "title"],
        ["evaluate", "[...document.querySelectorAll('.flame title')].map((e) => e.textContent).join('|')"],
        ["count", ".chip"],
    )
    assert [unquote(link) for link in links] == [f"vscode://file{source}:10"] and " " not in links[0]
    for shown in (hover[0], tip):
        assert ">   10 line_10 = 10" in shown and "line_7 = 7" in shown and "line_13 = 13" in shown
        assert "line_6 =" not in shown and "line_14" not in shown
    assert chips == 0


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


def assert_links(directory: Path, links: List[str], titles: List[Any]) -> None:
    """Of all frames, the innermost first."""
    wanted = [f"{directory}/take.c:7", f"{directory}/net.py:10", "/gone.py:3"]
    assert [unquote(link) for link in links] == [f"vscode://file{each}" for each in wanted]
    assert len(titles) == 4 and titles[0] is titles[1] is titles[3] is None
    assert ">   10 line_10 = 10" in titles[2] and "line_14" not in titles[2]


def test_frames_of_a_stack_have_links_and_their_source(tmp_path: Path) -> None:
    """In a block's stack and in the call tree; a native file has a link alone, for no hash says that it is what ran."""
    page = write_page(tmp_path, stacked(tmp_path), options=["--editor=vscode"])
    boxes: List[Any] = []
    enlarged: List[Any] = []
    for _ in range(4):
        enlarged += [["keys", "ArrowDown", "Enter"], ["evaluate", f"{LINKS}('#calls .trail b')"]]
        enlarged += [
            ["attributes", "#calls .trail b > span", "title"],
            ["evaluate", f"{LINKS}('#calls .flame-detail')"],
        ]
    boxes += [["click", "#blocks tbody tr"], ["evaluate", f"{LINKS}('#blocks .stack')"]]
    boxes += [["attributes", "#blocks .stack li", "title"]]
    _, links, titles, _, *found = look(
        page, *boxes, ["evaluate", "document.querySelector('.flame').focus()"], *enlarged
    )
    assert_links(tmp_path, links, titles)
    outermost = [found[4 * i + 1] for i in range(4)]
    assert_links(tmp_path, sum(reversed(outermost), []), [found[4 * i + 2][0] for i in (3, 2, 1, 0)])
    assert [found[4 * i + 3] for i in range(4)] == outermost
    assert "secret" not in page.read_text(encoding="utf-8")


def test_every_stack_of_a_served_page_has_links_and_their_source(tmp_path: Path) -> None:
    served: Any = Served("--editor=vscode", stacked(tmp_path))
    try:
        links, titles = look(
            served.address,
            ["until", "document.querySelectorAll('#places a.edit').length == 3", 30000],
            ["evaluate", f"{LINKS}('#places tbody')"],
            ["attributes", "#places tbody tr .long:has(.name)", "title"],
        )[-2:]
    finally:
        served.stop()
    assert_links(tmp_path, links[::-1], titles[:0:-1])


def test_a_file_that_has_changed_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("other = 1\n" * 20, encoding="utf-8")
    page = write_page(tmp_path, traced(tmp_path, "net.py"))
    links, hover = look(page, ["evaluate", HREFS], ["attributes", "#lines tbody th", "title"])
    assert links == [] and "other" not in hover[0]


HOSTILE: List[str] = [
    "/a/javascript:alert(1).py",
    "/a?x=1&line=2#f.py",
    '/a"onclick="alert(1).py',
    "/a/%2e%2e/%00.py",
    "/{line}/{file}.py",
    "//evil.example/x.py",
    "/../../etc/passwd",
    "<frozen importlib>",
    "<string>",
    "/näh.py",
]


def test_nothing_of_a_path_is_anything_but_a_path(tmp_path: Path) -> None:
    trace = traced(tmp_path, *HOSTILE)
    (links,) = look(
        write_page(tmp_path, trace, options=["--editor=https://x.example/e?f={file}&l={line}"]), ["evaluate", HREFS]
    )
    assert len(links) == len(HOSTILE) - 2
    for link in links:
        parts = urlsplit(link)
        assert (parts.scheme, parts.netloc, parts.path, parts.fragment) == ("https", "x.example", "/e", "")
        assert (
            parts.query.startswith("f=/")
            and not parts.query.startswith("f=//")
            and parts.query.endswith("&l=10")
            and parts.query.count("&") == 1
        )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "vi",
        "javascript://{file}:{line}",
        "JavaScript://{file}{line}",
        "data://{file}:{line}",
        "{file}",
        "vscode://file",
        "vscode://file{file}",
        "vscode://file:{line}",
        "a b://{file}:{line}",
        "x://{file}:{line}\n",
    ],
)
def test_what_is_no_editor_is_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(EditorError):
        parse_editor(text)
    done = jm_print("--format=html", f"--editor={text}", traced(tmp_path, "a.py"))
    assert_one_line_error("jm_print", done, "is none of vscode")


def test_an_anonymous_page_has_none(tmp_path: Path) -> None:
    done = jm_print("--format=html", "--editor=vscode", "--anonymous", traced(tmp_path, "a.py"))
    assert_one_line_error("jm_print", done, "--anonymous leaves paths out")
