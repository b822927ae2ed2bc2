# SPDX-License-Identifier: GPL-2.0-or-later
"""pytest --jmassif, as its user sees it: suites that are run by a pytest of their own."""

import re
import shutil
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Tuple

import pytest

from jmassif.reader.builder import load_file
from jmassif.testing.limits import Limit, LimitError, limit_of
from tests.harness import BUILD, PYTHON, ROOT, Run, check_run, run

SUITES = Path(__file__).resolve().parent / "suites"
MB = 1_000_000


def run_suite(
    directory: Path, *arguments: str, env: Optional[Mapping[str, str]] = None, python: Tuple[str, ...] = (PYTHON,)
) -> Run:
    """With the plugin as its entry point has pytest load it; below the recorder of the build tree if asked to."""
    return run(
        [*python, "-m", "pytest", "-p", "no:cacheprovider", "-p", "jmassif.pytest_plugin", "--rootdir=.", *arguments],
        cwd=directory,
        env={
            "PYTHONPATH": str(ROOT / "reporter"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "VALGRIND_LIB": str(BUILD / ".in_place"),
            "PYTEST_ADDOPTS": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # those of others, whose import takes long below Valgrind
            "COLUMNS": "200",
            **(env or {}),
        },
        timeout=300,
    )


def suite(directory: Path, text: str) -> Path:
    (directory / "test_suite.py").write_text(text)
    return directory


def line_of(mark: str) -> str:
    lines = (SUITES / "limits.py").read_text().splitlines()
    return next(str(number) for number, line in enumerate(lines, 1) if line.endswith(f"# HERE: {mark}"))


def test_of_ten_tests_the_three_that_break_their_limits_fail_with_their_reasons(sim: Path, tmp_path: Path) -> None:
    shutil.copy(SUITES / "limits.py", tmp_path / "test_limits.py")
    env = {"LD_LIBRARY_PATH": str(sim)}
    alone = run_suite(tmp_path, env=env)
    assert " 10 passed in " in alone.stdout, alone.stdout + alone.stderr
    done = run_suite(tmp_path, "--jmassif", "--jmassif-out-file=kept", "--junitxml=result.xml", env=env)
    assert done.returncode == 1 and " 3 failed, 7 passed in " in done.stdout, done.stdout + done.stderr
    wanted = {
        "test_device_beyond": ("limit_memory", "of device memory", "8 MB", 11 * MB, "device", "Gpu.take"),
        "test_host_beyond": ("limit_memory", "of host memory", "5 MB", 8 * MB, "host", "test_host_beyond"),
        "test_leaks": ("limit_leaks", "left", "1 MB", 2.5 * MB, "leak", "test_leaks"),
    }
    failures = re.split(r"^_+ (\w+) _+$", done.stdout.split("short test summary")[0], flags=re.MULTILINE)
    texts: Dict[str, str] = dict(zip(failures[1::2], failures[2::2]))
    assert sorted(texts) == sorted(wanted)
    for name, (mark, of, limit, n_bytes, here, function) in wanted.items():
        first, second = texts[name].strip().splitlines()[:2]
        assert first.startswith(f"{mark}: ") and of in first and first.endswith(f" more than {limit}")
        told = int(re.findall(r"\(([\d,]+) B\)", first)[0].replace(",", ""))
        # Beside what the test asks for: rounding, headers, and what calls take.
        assert n_bytes <= told <= n_bytes + 100_000
        assert f"look first at test_limits.py:{line_of(here)} ({function}): " in second
        assert f"FAILED test_limits.py::{name} - {mark}: " in done.stdout
    assert (tmp_path / "result.xml").read_text().count("<failure ") == 3
    assert len(load_file(str(tmp_path / "kept")).stages) == 2 * 9  # one test has no limits


def test_outcomes_are_those_of_the_tests_and_a_test_that_kills_its_process_is_named(tmp_path: Path) -> None:
    text = """
import os, pytest
@pytest.mark.limit_memory("1 GB")
def test_fails(): assert 1 == 2
@pytest.mark.xfail
def test_fails_as_it_should(): assert 1 == 2
@pytest.mark.skip(reason="not now")
def test_skips(): pass
@pytest.fixture
def broken(): raise ValueError("broken")
def test_has_no_fixture(broken): pass
def test_kills(): os.abort()
def test_never_runs(): pass
"""
    done = run_suite(suite(tmp_path, text), "--jmassif", "-s")
    counts = "2 failed, 1 skipped, 1 xfailed, 1 error in"
    assert done.returncode == 1 and counts in done.stdout, done.stdout + done.stderr
    assert "assert 1 == 2" in done.stdout and "ValueError: broken" in done.stdout
    assert re.search(
        r"FAILED test_suite.py::test_kills - the process below Valgrind ended by signal SIGABRT", done.stdout
    )


def test_arguments_that_are_no_limit_are_one_line(tmp_path: Path) -> None:
    text = 'import pytest\n@pytest.mark.limit_memory("gpu", "1 MB")\ndef test_it(): pass\n'
    done = run_suite(suite(tmp_path, text), "--jmassif")
    assert done.returncode == 4
    said = [line for line in done.stderr.splitlines() if line]
    assert said == [
        "ERROR: test_suite.py::test_it: limit_memory('gpu', '1 MB'): 'gpu' is none of \"host\", \"device\" and \"total\""
    ]


@pytest.mark.parametrize(
    "mark, arguments, wanted",
    [
        ("limit_memory", ["200 MB"], Limit("host", 200 * MB, "200 MB")),
        ("limit_memory", ["device", "1.5MiB"], Limit("device", 3 << 19, "1.5MiB")),
        ("limit_memory", ["total", 4096], Limit("total", 4096, "4096")),
        ("limit_leaks", ["0"], Limit("leaks", 0, "0")),
        ("limit_memory", [], "write limit_memory("),
        ("limit_memory", ["device", "1 MB", "2 MB"], "write limit_memory("),
        ("limit_memory", ["200"], "has no unit"),
        ("limit_memory", ["device", "much"], "is no size"),
        ("limit_memory", [["device"], "1 MB"], "is none of"),
        ("limit_memory", ["device", -1], "is no size"),
        ("limit_leaks", ["host", "1 MB"], "write limit_leaks("),
        ("limit_leaks", [None], "is no size"),
        ("limit_leaks", ["1 MB\x1b[2J\n"], "is no size"),
    ],
)
def test_what_marks_say(mark: str, arguments: List[object], wanted: object) -> None:
    if isinstance(wanted, Limit):
        assert limit_of(mark, arguments, {}) == wanted
        return
    with pytest.raises(LimitError) as caught:
        limit_of(mark, arguments, {})
    assert str(wanted) in str(caught.value) and str(caught.value).isprintable()


def test_named_arguments_are_none() -> None:
    with pytest.raises(LimitError, match="write limit_memory"):
        limit_of("limit_memory", ["1 MB"], {"pool": "device"})


def only_line(done: Run) -> str:
    assert done.returncode == 4, done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line]
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_where_it_cannot_run_it_says_so_in_a_line(tmp_path: Path) -> None:
    suite(tmp_path, "def test_it(): pass\n")
    (tmp_path / "bin").mkdir()
    absent = only_line(run_suite(tmp_path, "--jmassif", env={"PATH": str(tmp_path / "bin"), "VALGRIND": ""}))
    assert "neither jmassif nor valgrind is on PATH" in absent
    assert "leave out --pdb" in only_line(run_suite(tmp_path, "--jmassif", "--pdb"))
    other = tmp_path / "bin" / "valgrind"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    assert "is the tool jmassif installed there?" in only_line(
        run_suite(tmp_path, "--jmassif", env={"VALGRIND": str(other)})
    )


def test_with_workers_of_xdist_it_says_so_in_a_line(tmp_path: Path) -> None:
    if run([PYTHON, "-c", "import xdist"]).returncode != 0:
        pytest.skip("pytest-xdist is not installed")
    assert "leave out -n" in only_line(
        run_suite(suite(tmp_path, "def test_it(): pass\n"), "--jmassif", "-p", "xdist", "-n", "2")
    )


def test_without_the_option_marks_are_known_and_nothing_is_imported(tmp_path: Path) -> None:
    text = """
import sys, pytest
@pytest.mark.limit_memory("nonsense")
def test_it():
    assert sorted(m for m in sys.modules if m.startswith("jmassif.")) == ["jmassif.annotate", "jmassif.pytest_plugin", "jmassif.testing"]
"""
    done = run_suite(suite(tmp_path, text), "--strict-markers")
    assert " 1 passed in " in done.stdout, done.stdout + done.stderr
    assert "@pytest.mark.limit_leaks(size): " in check_run(
        ["env", f"PYTHONPATH={ROOT / 'reporter'}", PYTHON, "-m", "pytest", "-p", "jmassif.pytest_plugin", "--markers"]
    )
