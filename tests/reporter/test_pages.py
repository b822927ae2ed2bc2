# SPDX-License-Identifier: GPL-2.0-or-later
"""A page without -o: which file it becomes, what is said of it, and how it is opened."""

import webbrowser
from pathlib import Path
from typing import List

import pytest

from jmassif.cli.report import BINARY, FORMATS
from jmassif.html import page as html
from tests.reporter.commands import jm_diff, jm_print
from tests.reporter.test_habits import on_terminal
from tests.reporter.traces import small_training_run


BINARIES = [name for name, format_ in FORMATS.items() if format_.content == BINARY]


@pytest.fixture(name="trace")
def fixture_trace(tmp_path: Path, monkeypatch: "pytest.MonkeyPatch") -> Path:
    assets = tmp_path / "assets"
    assets.mkdir()
    for name in ("page.js", "page.css", "licences.txt"):
        (assets / name).write_text("")
    places = ("policy", "served", "title", "style", "title", "first", "licences", "data", "script")
    (assets / "page.html").write_text("".join("<p>{{%s}}</p>" % place for place in places))
    monkeypatch.setattr(html, "ASSETS", str(assets))
    monkeypatch.chdir(tmp_path)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    return small_training_run().save(tmp_path)


def test_a_page_without_a_name_is_named_after_the_process_and_said_to_be_written(trace: Path) -> None:
    done = jm_print("--format=html", trace)
    assert (done.status, done.out) == (0, "")
    assert done.err.startswith("jm_print: wrote jmassif.4711.html (") and done.err.count("\n") == 1
    assert "Peak 233 MiB" in Path("jmassif.4711.html").read_text(encoding="utf-8")


def test_standard_output_can_be_asked_for(trace: Path) -> None:
    done = jm_print("--format=html", "-o", "-", trace)
    assert "Peak 233 MiB" in done.out and not list(Path().glob("*.html"))


def test_a_named_page_is_written_without_a_word(trace: Path) -> None:
    done = jm_print("--format=html", "-o", "report.html", trace)
    assert (done.status, done.out, done.err) == (0, "", "") and Path("report.html").exists()


def test_a_difference_has_a_file_of_its_own(trace: Path) -> None:
    done = jm_diff("--format=html", trace, trace)
    assert (done.status, done.out) == (0, "") and "wrote jmassif.diff.html" in done.err
    assert Path("jmassif.diff.html").exists()


def test_it_is_opened_in_the_browser(trace: Path, monkeypatch: "pytest.MonkeyPatch") -> None:
    opened: List[str] = []
    monkeypatch.setenv("BROWSER", "anything")
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)  # type: ignore[func-returns-value]
    assert jm_print("--format=html", "--open", trace).status == 0
    assert opened == [Path("jmassif.4711.html").resolve().as_uri()]


def test_without_a_browser_one_line_says_what_to_do(trace: Path) -> None:
    done = jm_print("--format=html", "-o", "report.html", "--open", trace)
    assert done.status == 2 and done.err.count("\n") == 1
    assert "no browser to open report.html with: open file://" in done.err and Path("report.html").exists()


def test_other_formats_cannot_be_opened(trace: Path) -> None:
    for command in (jm_print, jm_diff):
        done = command("--open", trace, trace)
        assert done.status == 2 and "--open shows a page: add --html" in done.err


@pytest.mark.parametrize("format_", ["json", "perfetto", *BINARIES])
def test_what_programs_read_is_not_poured_into_a_terminal(trace: Path, format_: str) -> None:
    what = "binary data" if format_ in BINARIES else format_
    assert (
        on_terminal(trace, f"--format={format_}") == f"jm_print: refusing to write {what} to a terminal; use -o FILE\n"
    )
