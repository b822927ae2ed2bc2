# SPDX-License-Identifier: GPL-2.0-or-later
"""What the text of a script was: the hash that the trace tells, and what a reader shows of it."""

import zlib
from pathlib import Path
from typing import List

import pytest

from tests.harness import PYTHON, record
from tests.tool.programs import print_report


def _keep(path: Path, n_padding: int) -> Path:
    path.write_text("kept = [bytes(100000) for _ in range(9)]\n" + "#" * n_padding, encoding="utf-8")
    return path


# Around the size at which a piece that is read is full.
@pytest.mark.parametrize("n_padding", (0, 16384 - 41, 16384, 70000))
def test_the_text_that_ran_is_known_by_its_checksum(tmp_path: Path, n_padding: int) -> None:
    script = _keep(tmp_path / "train.py", n_padding)
    profile = record([PYTHON, "-S", str(script)]).profile
    assert profile.source_hashes == {str(script): f"{zlib.crc32(script.read_bytes()):x}"}


def test_only_the_programs_own_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import json\nkept = json.loads('[' + '1.5,' * 90000 + '1]')\n")
    script = tmp_path / "train.py"
    script.write_text("import own\nexec(compile('more = bytes(200000)', '/dev/zero', 'exec'))\nmine = bytes(300000)\n")
    profile = record([PYTHON, str(script)]).profile
    assert set(profile.source_hashes) == {str(script), str(tmp_path / "own.py")}


def test_an_anonymous_trace_tells_no_hashes(tmp_path: Path) -> None:
    script = _keep(tmp_path / "train.py", 0)
    recording = record([PYTHON, "-S", str(script)], ["--anonymize=yes"])
    assert recording.profile.source_hashes == {}


def test_the_report_shows_what_ran_and_not_what_is_there_now(tmp_path: Path) -> None:
    script = _keep(tmp_path / "train.py", 0)
    recording = record([PYTHON, "-S", str(script)])

    def lines(*options: str) -> List[str]:
        return print_report(recording.trace, "--by=python-line", *options).stdout.splitlines()

    assert any("train.py:1" in line and "kept = [bytes" in line for line in lines())
    script.write_text("password = 'secret'\n")
    assert not any("secret" in line for line in lines())
    assert any("left out: train.py" in line for line in lines())
    assert any("secret" in line for line in lines(f"--source={tmp_path}"))
