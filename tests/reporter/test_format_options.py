# SPDX-License-Identifier: GPL-2.0-or-later
"""jm_print --format=…: where each format goes, and which options mean something to it."""

import os
import subprocess
from pathlib import Path
from typing import Dict, List

import pytest

from jmassif.cli.report import FORMATS
from jmassif.cli.main import main
from tests.reporter.commands import assert_one_line_error, command, jm_print
from tests.reporter.traces import small_training_run

# html needs npm's packages, memory-viz blocks of a device; they have tests of their own.
NAMES = sorted(set(FORMATS) - {"html", "memory-viz"})

# A word that the parser takes, for each option that chooses what is shown.
_GIVEN: Dict[str, str] = {
    "snapshot": "--snapshot=2",
    "threshold": "--threshold=1",
    "by": "--by=owner",
    "fold": "--fold=none",
    "no-source": "--no-source",
    "source": "--source=.",
    "value": "--value=live-blocks",
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return small_training_run().save(tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_an_option_applies_or_is_refused(name: str, trace: Path, tmp_path: Path) -> None:
    for option, given in _GIVEN.items():
        report = tmp_path / option
        done = jm_print(f"--format={name}", given, "-o", report, trace)
        assert report.exists() == (done.status == 0) == (option in FORMATS[name].options)
        if done.status:
            refusal = f"--{option} is not supported by --format={name} (supported: "
            assert_one_line_error("jm_print", done, f"jm_print: {refusal}")


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--format=csv", "--by=stack"], "--by=stack is not supported by --format=csv (supported: owner, "),
        (["--format=json", "--snapshot=all"], 'no snapshot "all"'),
    ],
)
def test_what_a_format_does_not_do_is_one_line(
    arguments: List[str], says: str, trace: Path, capsys: "pytest.CaptureFixture[str]"
) -> None:
    assert main(["report", *arguments, str(trace)]) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1


def test_the_options_of_text_need_no_format(trace: Path, capsys: "pytest.CaptureFixture[str]") -> None:
    assert main(["report", "--no-source", "--by=python-line", str(trace)]) == 0
    assert "Memory by Python line" in capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_a_pipe_and_a_file_get_the_same_bytes(name: str, trace: Path, tmp_path: Path) -> None:
    report = tmp_path / "report"
    words = command("jm_print") + [f"--format={name}", str(trace)]
    piped = subprocess.run(words, stdout=subprocess.PIPE, env=dict(os.environ, PYTHONIOENCODING="utf-8"), timeout=60)
    assert main(["report", f"--format={name}", "-o", str(report), str(trace)]) == 0
    assert piped.returncode == 0 and piped.stdout == report.read_bytes()
