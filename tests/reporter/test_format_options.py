# SPDX-License-Identifier: GPL-2.0-or-later
"""jm_print --format=…: where each format goes, and which options mean something to it."""

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

import pytest

from jmassif.cli.formats import FORMATS
from jmassif.cli.report import main
from tests.reporter.commands import assert_one_line_error, call
from tests.reporter.traces import ROOT, small_training_run

# html needs what is built from npm's packages; it has tests of its own.
NAMES = sorted(set(FORMATS) - {"html"})

JM_PRINT = [sys.executable, "-B", str(ROOT / "reporter" / "jm_print")]

# A word that the parser takes, for each option that chooses what is shown.
_GIVEN: Dict[str, str] = {
    "snapshot": "--snapshot=2",
    "threshold": "--threshold=1",
    "by": "--by=owner",
    "fold": "--fold=none",
    "no-source": "--no-source",
    "source": "--source=.",
    "x": "--x=70",
    "y": "--y=20",
    "value": "--value=live-blocks",
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return small_training_run().save(tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_every_format_is_written_to_a_file(name: str, trace: Path, tmp_path: Path) -> None:
    report = tmp_path / "report"
    assert main([f"--format={name}", "-o", str(report), str(trace)]) == 0
    assert report.stat().st_size > 100


@pytest.mark.parametrize("name", NAMES)
def test_an_option_applies_or_is_refused(name: str, trace: Path, tmp_path: Path) -> None:
    for option, given in _GIVEN.items():
        report = tmp_path / option
        done = call(main, f"--format={name}", given, "-o", report, trace)
        assert report.exists() == (done.status == 0) == (option in FORMATS[name].options)
        if done.status:
            refusal = f"--{option} means nothing to --format={name}, only to: "
            assert_one_line_error("jm_print", done, f"jm_print: {refusal}")


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--format=csv", "--by=stack"], "--format=csv has no --by=stack, only: owner, "),
        (["--format=json", "--snapshot=all"], 'no snapshot "all"'),
    ],
)
def test_what_a_format_does_not_do_is_one_line(
    arguments: List[str], says: str, trace: Path, capsys: "pytest.CaptureFixture[str]"
) -> None:
    assert main(arguments + [str(trace)]) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1


def test_the_options_of_text_need_no_format(trace: Path, capsys: "pytest.CaptureFixture[str]") -> None:
    assert main(["--x=20", "--no-source", "--by=python-line", str(trace)]) == 0
    assert "Memory by Python line" in capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_a_pipe_and_a_file_get_the_same_bytes(name: str, trace: Path, tmp_path: Path) -> None:
    report = tmp_path / "report"
    command = JM_PRINT + [f"--format={name}", str(trace)]
    piped = subprocess.run(command, stdout=subprocess.PIPE, env=dict(os.environ, PYTHONIOENCODING="utf-8"), timeout=60)
    assert main([f"--format={name}", "-o", str(report), str(trace)]) == 0
    assert piped.returncode == 0 and piped.stdout == report.read_bytes()


def test_the_same_trace_gives_the_same_pprof_file(trace: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert main(["--format=pprof", "-o", str(tmp_path / name), str(trace)]) == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert gzip.decompress((tmp_path / "one").read_bytes())


def test_the_manual_and_the_help_name_every_format(capsys: "pytest.CaptureFixture[str]") -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    manual = (ROOT / "docs" / "jm_print.1").read_text(encoding="utf-8")
    formats = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    for name, form in ((name, FORMATS[name]) for name in NAMES):
        assert f"  {name} " in said and form.help in said
        escaped = name.replace("-", "\\-")
        assert f".B {escaped}\n" in manual
        assert f"`{name}`" in formats
