# SPDX-License-Identifier: GPL-2.0-or-later
"""The command jm_print, as users meet it: what it prints where, and with what status it ends."""

import ast
import os
import stat
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest

from tests.reporter.commands import Done, assert_one_line_error as assert_one_line, jm_print, program
from tests.reporter.massif_grammar import parse
from tests.reporter.traces import ROOT, Trace, random_run, small_training_run


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return small_training_run().save(tmp_path)


def assert_one_line_error(done: Done, *says: str) -> None:
    assert_one_line("jm_print", done, *says)


# ---- what goes well ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, says",
    [
        (["--snapshot=2"], "at snapshot 2 (250 ms)"),
        (["--snapshot=last"], "at the last snapshot (1.00 s)"),
        (["--snapshot", "peak-host"], "at the host peak (900 ms)"),
        (["--by=kind"], "100.0 % 244,366,208 B in 3,018 blocks\n\n 55.8 % 136,314,880 B in 5 blocks: device\n"),
        (["--by=role"], " 34.3 % 83,886,080 B in 4 blocks of device, tensor: parameter\n"),
        (["--by=python-line", "--no-source"], "train.py:87 "),
        (["--by=python-function"], "<module> (train.py) "),
        (["--by=module", "--fold=none"], "\ntrain  "),
        (["--fold=internal"], "        … 1 frame of torch\n        train.py:87 (<module>)\n"),
        (["--threshold=50%"], "244,366,208 B in 3,018 blocks, in 5 places below 50 %"),
    ],
)
def test_options(trace: Path, options: List[str], says: str) -> None:
    assert says in jm_print(*options, trace).out


def test_output_suits_the_encoding_of_the_terminal(tmp_path: Path) -> None:
    path = Trace(command="./café").save(tmp_path)
    assert "Command: café" in program("jm_print", path, env={"PYTHONIOENCODING": "utf-8"}).out
    assert "Command: caf\\xe9" in program("jm_print", path, env={"PYTHONIOENCODING": "ascii"}).out


# ---- -o ------------------------------------------------------------------------------------------


def test_a_file_is_written_in_place_of_standard_output(trace: Path, tmp_path: Path) -> None:
    report = tmp_path / "report"
    assert jm_print("-o", report, trace).out == ""
    assert "Peak 233 MiB" in report.read_text(encoding="utf-8")


def test_a_file_that_is_replaced_keeps_its_mode(trace: Path, tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.write_text("old")
    report.chmod(0o640)
    jm_print("-o", report, trace)
    assert stat.S_IMODE(report.stat().st_mode) == 0o640 and report.read_text() != "old"


def test_a_link_stays_a_link(trace: Path, tmp_path: Path) -> None:
    report, link = tmp_path / "report", tmp_path / "link"
    report.write_text("old")
    link.symlink_to(report)
    jm_print("-o", link, trace)
    assert link.is_symlink() and report.read_text() != "old"


def test_a_device_is_written_to_and_not_replaced(trace: Path) -> None:
    assert program("jm_print", "-o", "/dev/null", trace).status == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("make", [Path.symlink_to, lambda new, old: os.link(str(old), str(new))])
def test_the_input_is_never_written_over(trace: Path, tmp_path: Path, make: Callable[[Path, Path], None]) -> None:
    other = tmp_path / "other"
    make(other, trace)
    before = trace.read_bytes()
    for name in (trace, other):
        assert_one_line_error(jm_print("-o", name, trace), "is the input too")
    assert trace.read_bytes() == before


def test_a_failed_run_leaves_the_older_file_and_no_litter(trace: Path, tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.write_text("old")
    assert_one_line_error(jm_print("-o", report, "--snapshot=77", trace), 'no snapshot "77"')
    assert report.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == [trace.name, "report"]


@pytest.mark.parametrize("where", ["{}/missing/report", "{}", "/dev/full"])
def test_a_place_that_cannot_be_written_is_named(trace: Path, tmp_path: Path, where: str) -> None:
    path = where.format(tmp_path)
    assert_one_line_error(jm_print("-o", path, trace), f"{path}: cannot be written")


# ---- standard output that goes wrong -------------------------------------------------------------


@pytest.mark.parametrize("name", ["jm_print", "jm_diff", "check"])
def test_a_reader_that_goes_away_is_no_error_and_an_output_that_takes_nothing_is_one(name: str, tmp_path: Path) -> None:
    path = random_run(1, n_snapshots=300).save(tmp_path)
    arguments = {"jm_diff": ["--min=0", "--by=function", path, path], "check": ["--max=peak.total=1B", path]}.get(
        name, [path]
    )
    done = program(name, *arguments, shell=f"{name} | head -n 1")
    begin = {"jm_print": "Peak 12.7 GiB", "jm_diff": "new holds as much", "check": "OVER  peak.total"}[name]
    assert done.out.startswith(begin) and done.err == ""
    shown = "jmassif check" if name == "check" else name
    for redirection in (">/dev/full", ">&-"):
        done = program(name, *arguments, shell=f"{name} {redirection}")
        assert done.status == 2 and done.err.startswith(f"{shown}: standard output: cannot be written")
        assert done.err.count("\n") == 1


# ---- input that goes wrong -----------------------------------------------------------------------


def test_a_truncated_trace_is_shown_and_said_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(small_training_run().bytes()[:-40])
    done = jm_print(path)
    assert done.status == 0 and "the trace is cut off" in done.out
    assert done.err.startswith(f"jm_print: {path}: truncated: line ") and done.err.count("\n") == 1


def test_a_trace_of_a_killed_program_is_shown_and_said_to_be_one(tmp_path: Path) -> None:
    recorded = small_training_run()
    del recorded.lines[-1]
    done = jm_print(recorded.save(tmp_path))
    assert done.status == 0 and "Peak 233 MiB" in done.out
    assert "truncated: no end record" in done.err


def test_a_trace_cut_in_any_line_gives_a_report_or_one_line(tmp_path: Path) -> None:
    content = small_training_run().bytes()
    first_line = content.index(b"\n") + 1
    path = tmp_path / "trace"
    ends = [place for place, byte in enumerate(content) if byte == ord("\n")]
    for length in sorted(set(range(first_line)) | {end + beyond for end in ends[:-1] for beyond in (0, 3)}):
        path.write_bytes(content[:length])
        for form in ("text", "massif"):
            done = jm_print(f"--format={form}", path)
            if length < first_line:
                assert_one_line_error(done, "nothing was recorded")
            else:
                assert done.status == 0 and done.err.count("\n") == 1 and "truncated: " in done.err
                assert form == "text" or parse(done.out)


FOREIGN: Dict[str, Tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "massif": (b"desc: (none)\ncmd: ls\ntime_unit: i\n#-----------\nsnapshot=0\n", "open it with ms_print"),
    "jpeg": (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01" + bytes(range(256)) * 40, "is not a jmassif trace"),
    "newer": (b"jmassif-trace 5\nq 1 2 3\n", "version 5"),
    "gzip": (b"\x1f\x8b\x08\x00\x00", "compressed data are"),
    "damaged": (b"jmassif-trace 4\nm pid 1\nqqq\n", "line 3: not a record"),
}


@pytest.mark.parametrize("name", sorted(FOREIGN))
def test_foreign_and_damaged_input_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    content, says = FOREIGN[name]
    path = tmp_path / name
    path.write_bytes(content)
    assert_one_line_error(jm_print(path), str(path), says)


def test_what_is_no_file_is_refused_in_one_line(tmp_path: Path) -> None:
    assert_one_line_error(jm_print(tmp_path), str(tmp_path), "cannot be read: Is a directory")
    assert_one_line_error(jm_print(tmp_path / "none"), "cannot be read: No such file or directory")
    assert_one_line_error(jm_print(tmp_path / "evil\x1b[2J\n"), "evil\\x1b[2J\\x0a: cannot be read")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--format=pdf", "x"],
        ["--by=colour", "x"],
        ["--fold=all", "x"],
        ["--no-source=yes", "x"],
        ["--threshold=101", "x"],
        ["--threshold=nan", "x"],
        ["--threshold=many", "x"],
        ["--snap=1", "x"],
        ["--no\x1b[2J", "x"],
    ],
)
def test_a_wrong_option_is_refused_in_one_line(arguments: List[str]) -> None:
    assert_one_line_error(jm_print(*arguments), "jm_print --help")


# ---- the oldest Python we promise ----------------------------------------------------------------


def test_the_reporter_is_python_3_6() -> None:
    # A parser before 3.8 knows one grammar, its own.
    oldest: Dict[str, Any] = {"feature_version": (3, 6)} if sys.version_info >= (3, 8) else {}
    paths = [*(ROOT / "reporter").rglob("*.py"), *(ROOT / "reporter").glob("jm_*")]
    assert len(paths) > 100
    for path in paths:
        ast.parse(path.read_text(encoding="utf-8"), str(path), **oldest)


@pytest.mark.parametrize("option", ["--snapshot", "--from", "--to", "--source", "-o"])
def test_an_empty_value_is_not_the_option_left_out(trace: Path, option: str) -> None:
    assert_one_line_error(jm_print(option, "", trace), option, '""')
