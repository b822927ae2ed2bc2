# SPDX-License-Identifier: GPL-2.0-or-later
"""pytest --jmassif, as its user sees it: suites that are run by a pytest of their own.

Natively, but for one that is also run below Valgrind: what the plugin does is the same, and pytest starts in a tenth of the time.
"""

import os
import re
import shutil
import signal
import subprocess
import sysconfig
from pathlib import Path
from typing import List, Mapping, Optional, Tuple

import pytest

from jmassif.launcher import LaunchError, launcher
from jmassif.pytest_plugin import Limit, LimitError, allocator, limit_of
from jmassif.reader.builder import load_file
from tests.harness import PYTHON, ROOT, Run, check_run, need_module, recorder_on_path, run

SUITES = Path(__file__).resolve().parent / "suites"
MB = 1_000_000
SOON = "--jmassif --jmassif-options=--heap=no"  # for tests of pytest itself
ENVIRONMENT = {
    "PYTHONPATH": str(ROOT / "reporter"),
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTEST_ADDOPTS": "",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # those of others, whose import takes long below Valgrind
    "COLUMNS": "200",
}


def run_suite(
    directory: Path,
    *arguments: str,
    env: Optional[Mapping[str, str]] = None,
    python: Tuple[str, ...] = (PYTHON,),
    host: str = "native",
) -> Run:
    """With the plugin as its entry point has pytest load it; below the recorder of the build tree if asked to."""
    return run(
        [*python, "-m", "pytest", "-p", "no:cacheprovider", "-p", "jmassif.pytest_plugin", "--rootdir=.", *arguments],
        cwd=directory,
        env={**ENVIRONMENT, **recorder_on_path(host), **(env or {})},
        timeout=300,
    )


def suite(directory: Path, text: str) -> Path:
    (directory / "test_suite.py").write_text(text)
    return directory


def line_of(mark: str) -> str:
    lines = (SUITES / "limits.py").read_text().splitlines()
    return next(str(number) for number, line in enumerate(lines, 1) if line.endswith(f"# HERE: {mark}"))


@pytest.mark.parametrize("workers, host", [(0, "valgrind"), (2, "native")])
def test_of_ten_tests_the_three_that_break_their_limits_fail_and_are_reported(
    sim: Path, tmp_path: Path, workers: int, host: str
) -> None:
    shutil.copy(SUITES / "limits.py", tmp_path / "test_limits.py")
    env = {"LD_LIBRARY_PATH": str(sim)}
    distributed = need_xdist(workers) if workers else []
    if not workers:
        alone = run_suite(tmp_path, env=env)
        assert " 10 passed in " in alone.stdout, alone.stdout + alone.stderr
    options = ("--jmassif", "--jmassif-out-file=kept", "--junitxml=result.xml", *distributed)
    done = run_suite(tmp_path, *options, env=env, host=host)
    assert done.returncode == 1 and " 3 failed, 7 passed in " in done.stdout, done.stdout + done.stderr
    wanted = {
        "test_device_beyond": ("limit_memory", "device", "8 MB", 11 * MB, "device", "Gpu.take"),
        "test_host_beyond": ("limit_memory", "host", "5 MB", 8 * MB, "host", "test_host_beyond"),
        "test_leaks": ("limit_leaks", "not freed", "1 MB", 2.5 * MB, "leak", "test_leaks"),
    }
    table = done.stdout.split("memory of tests with limits:")[1].split("short test summary")[0]
    for name, (mark, what, limit, n_bytes, here, function) in wanted.items():
        (message,) = re.findall(f"FAILED test_limits.py::{name} - (.*)", done.stdout)
        assert message.startswith(f"{mark}: ") and what in message and message.endswith(f" limit {limit}")
        counted = int(re.findall(r"\(([\d,]+) B\)", message)[0].replace(",", ""))
        # Beside the blocks of the test: rounding, headers, what calls take, and less what was held before and is freed meanwhile:
        # strings of pytest, such as the name of the item before in its environment.
        assert n_bytes - 1_000 <= counted <= n_bytes + 100_000
        assert f": test_limits.py:{line_of(here)} ({function}): " in table.split(f"{name}\n")[1].splitlines()[0]
    assert sum("test_limits.py::" in line for line in table.splitlines()) == 9  # one test has no limits
    assert (tmp_path / "result.xml").read_text().count("<failure ") == 3
    assert sum(len(load_file(str(trace)).stages) for trace in tmp_path.glob("kept*")) == 2 * 9


# ---- everything else is as without --jmassif ------------------------------------------------


def need_xdist(workers: int) -> List[str]:
    need_module("xdist")
    return ["-p", "xdist", f"-n{workers}"]


def shown(text: str) -> str:
    """A run's output without times, and without our own table."""
    text = text.split("memory of tests with limits:")[0]
    text = re.sub(r"(in|time=|timestamp=)[ \"][\d.:T-]+s?", r"\1", text)
    return re.sub("={2,}", "==", text)


def both(directory: Path, *arguments: str, python: Tuple[str, ...] = (PYTHON,)) -> Tuple[Run, Run]:
    """Without --jmassif and with it; JUnit's files become plain.xml and recorded.xml."""
    shutil.copy(SUITES / "outcomes.py", directory / "test_outcomes.py")
    runs = []
    recorded = "--jmassif" if "-ra" in arguments else SOON
    for option, name in (("", "plain.xml"), (recorded, "recorded.xml")):
        runs.append(run_suite(directory, *option.split(), "--junitxml=result.xml", *arguments, python=python))
        if (directory / "result.xml").exists():
            (directory / "result.xml").rename(directory / name)
    return runs[0], runs[1]


def junit(directory: Path) -> List[str]:
    """Of both runs; "" where there is none."""
    files = [directory / name for name in ("plain.xml", "recorded.xml")]
    return [shown(file.read_text()) if file.exists() else "" for file in files]


@pytest.mark.parametrize(
    "options, status",
    [
        ("-ra -o junit_family=xunit1", 1),
        ("-x -rs -v", 1),
        ("-q -s -k not(fails) --maxfail=1", 1),
        ("-W error --tb=line -p no:capture test_outcomes.py::test_warns", 1),
        ("-k nothing", 5),
        ("wrong/path.py", 4),
        ("--no-such-option", 4),
        ("--collect-only -q", 0),
    ],
)
def test_output_status_and_junit_are_as_without(tmp_path: Path, options: str, status: int) -> None:
    plain, recorded = both(tmp_path, *options.split(" "))
    assert (plain.returncode, recorded.returncode) == (status, status), recorded.stderr
    assert shown(recorded.stdout) == shown(plain.stdout)
    assert recorded.stderr == plain.stderr
    assert junit(tmp_path)[0] == junit(tmp_path)[1]


@pytest.mark.parametrize("options, status", [("-ra", 1), ("-x -rs", 2)])
def test_with_workers_too(tmp_path: Path, options: str, status: int) -> None:
    plain, recorded = both(tmp_path, *(options.split(" ") + need_xdist(2)))
    assert (plain.returncode, recorded.returncode) == (status, status), recorded.stdout + recorded.stderr
    if status == 1:  # with -x it depends on the workers' speed which tests still run
        cases = [sorted(re.findall("(?s)<testcase.*?(?=<testcase|</testsuite>)", text)) for text in junit(tmp_path)]
        assert cases[0] == cases[1] and len(cases[0]) == 11
        counts = re.findall(r"=+ (.*) in [\d.]+s.* =+$", plain.stdout + recorded.stdout, re.MULTILINE)
        assert len(counts) == 2 and counts[0] == counts[1]


def test_coverage_sees_the_same_lines(tmp_path: Path) -> None:
    need_module("coverage")
    reports = []
    shutil.copy(SUITES / "outcomes.py", tmp_path / "test_outcomes.py")
    for options in ("", SOON):
        python = (PYTHON, "-m", "coverage", "run", "--include=test_*.py")
        assert run_suite(tmp_path, *options.split(), python=python).returncode == 1
        reports.append(check_run([PYTHON, "-m", "coverage", "report", "-m"], cwd=tmp_path))
        (tmp_path / ".coverage").unlink()
    assert reports[0] == reports[1] and "test_outcomes.py" in reports[0]


def test_a_test_that_kills_its_process_kills_pytest(tmp_path: Path) -> None:
    done = run_suite(suite(tmp_path, "import os\ndef test_kills(): os.abort()\n"), *SOON.split())
    assert done.returncode == 128 + signal.SIGABRT and "Fatal Python error: Aborted" in done.stderr


def test_an_interrupt_reaches_the_tests(tmp_path: Path) -> None:
    text = "import os, signal\ndef test_it(): os.killpg(0, signal.SIGINT)\ndef test_later(): pass\n"
    done = run(
        # A background job of a shell starts with SIGINT ignored.
        [
            "env",
            "--default-signal=INT",
            "setsid",
            "-w",
            PYTHON,
            "-m",
            "pytest",
            "-p",
            "jmassif.pytest_plugin",
            *SOON.split(),
        ],
        cwd=suite(tmp_path, text),
        env={**ENVIRONMENT, **recorder_on_path()},
    )
    assert done.returncode == 2 and "KeyboardInterrupt" in done.stdout and "no tests ran" in done.stdout


def test_a_user_can_type_into_the_debugger(tmp_path: Path) -> None:
    text = "def test_it():\n    number = 6 * 7\n    assert not number\n"
    command = [PYTHON, "-m", "pytest", "-p", "jmassif.pytest_plugin", *SOON.split(), "--pdb"]
    done = subprocess.run(
        command,
        cwd=str(suite(tmp_path, text)),
        env={**os.environ, **ENVIRONMENT, **recorder_on_path("native")},
        input=b"p number + 1\nq\n",
        stdout=subprocess.PIPE,
        timeout=300,
    )
    assert done.returncode == 2 and b"(Pdb) 43" in done.stdout


# ---- marks and failures to start -------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 2])
def test_invalid_arguments_of_a_mark_fail_the_test(tmp_path: Path, workers: int) -> None:
    text = 'import pytest\n@pytest.mark.limit_memory("gpu", "1 MB")\ndef test_it(): pass\ndef test_other(): pass\n'
    done = run_suite(suite(tmp_path, text), *SOON.split(), "-rf", *(need_xdist(workers) if workers else []))
    message = "limit_memory('gpu', '1 MB'): 'gpu' is none of \"host\", \"device\" and \"total\""
    assert f"FAILED test_suite.py::test_it - {message}\n" in done.stdout
    assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout and "testing.py" not in done.stdout


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
        ("limit_memory", ["device", "much"], "is not a size"),
        ("limit_memory", [["device"], "1 MB"], "is none of"),
        ("limit_memory", ["device", -1], "is not a size"),
        ("limit_leaks", ["host", "1 MB"], "write limit_leaks("),
        ("limit_leaks", [None], "is not a size"),
        ("limit_leaks", ["1 MB\x1b[2J\n"], "is not a size"),
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


def test_without_a_recorder_it_ends_with_a_line(tmp_path: Path) -> None:
    suite(tmp_path, "def test_it(): pass\n")
    (tmp_path / "bin").mkdir()
    absent = only_line(run_suite(tmp_path, "--jmassif", env={"PATH": str(tmp_path / "bin"), "VALGRIND": ""}))
    assert "neither jmassif nor valgrind is on PATH" in absent
    other = tmp_path / "bin" / "valgrind"
    for text, wanted in (("exit 1", "is the tool jmassif installed there?"), ('shift 4; exec "$@"', "unrecorded")):
        other.write_text(f"#!/bin/sh\n{text}\n")
        other.chmod(0o755)
        assert wanted in run_suite(tmp_path, "--jmassif", env={"VALGRIND": str(other)}).stderr


def test_a_jmassif_that_only_reports_is_passed_over(tmp_path: Path, monkeypatch: "pytest.MonkeyPatch") -> None:
    monkeypatch.delenv("VALGRIND_LIB", raising=False)
    for name, first in (("wheel", f"#!{PYTHON}"), ("recorder", "#!/bin/sh")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "jmassif").write_text(first + "\n")
        (tmp_path / name / "jmassif").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/wheel:{tmp_path}/recorder")
    monkeypatch.delenv("VALGRIND", raising=False)
    assert launcher() == [f"{tmp_path}/recorder/jmassif"]


def test_only_the_command_chooses_a_recorder(tmp_path: Path, monkeypatch: "pytest.MonkeyPatch") -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("VALGRIND", "/bin/true")
    assert launcher(["-q"]) == ["/bin/true", "--tool=jmassif"]
    with pytest.raises(LaunchError, match="needs the command jmassif"):
        launcher(["-q", "--native"])


@pytest.mark.parametrize(
    "without_gil, expected", [(None, {"PYTHONMALLOC": "malloc"}), (0, {"PYTHONMALLOC": "malloc"}), (1, {})]
)
def test_only_a_python_that_can_is_to_take_objects_from_malloc(
    without_gil: Optional[int], expected: Mapping[str, str], monkeypatch: "pytest.MonkeyPatch"
) -> None:
    monkeypatch.delenv("PYTHONMALLOC", raising=False)
    monkeypatch.setattr(sysconfig, "get_config_var", {"Py_GIL_DISABLED": without_gil}.get)
    assert allocator() == expected


def test_without_the_option_marks_are_known_and_little_is_imported(tmp_path: Path) -> None:
    text = """
import sys, pytest
@pytest.mark.limit_memory("nonsense")
def test_it():
    modules = sorted(m[8:] for m in sys.modules if m.startswith("jmassif."))
    assert modules == ["annotate", "pytest_plugin", "units"]
"""
    done = run_suite(suite(tmp_path, text), "--strict-markers")
    assert " 1 passed in " in done.stdout, done.stdout + done.stderr
    assert "@pytest.mark.limit_leaks(size): " in check_run(
        ["env", f"PYTHONPATH={ROOT / 'reporter'}", PYTHON, "-m", "pytest", "-p", "jmassif.pytest_plugin", "--markers"]
    )
