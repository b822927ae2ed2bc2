# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands by other releases of Python that pyenv has here: JetPack 4's 3.6 above all. What they write is the same, byte for byte.

All tests of the reporter by these: tests/reporter/on_pythons.
"""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from tests.reporter.traces import ROOT, random_run, small_training_run

RELEASES = ("3.6", "3.8")
PYENV = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")


def interpreter(release: str) -> Path:
    found = sorted((PYENV / "versions").glob(f"{release}.*/bin/python3"))
    if not found:
        pytest.skip(f"no Python {release} in {PYENV}/versions: pyenv install {release}")
    return found[-1]


COMMAND = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from jmassif.cli.main import run
run()
"""


def written(python: Path, command: str, arguments: List[str], directory: Path) -> bytes:
    """What a command prints; not of this environment, whose modules are another release's."""
    done = subprocess.run(
        [str(python), "-I", "-B", "-c", COMMAND, str(ROOT / "reporter"), command, *arguments],
        cwd=str(directory),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return done.stdout


COMMANDS = [
    ("report", ["--all", "trace"]),
    ("report", ["trace", "other"]),
    *(("report", [f"--format={name}", "trace"]) for name in ("massif", "pprof", "json")),
    ("diff", ["--format=markdown", "trace", "other"]),
    ("check", ["--max", "peak.total=9GiB", "trace"]),
]


@pytest.fixture(name="directory", scope="module")
def fixture_directory(tmp_path_factory: "pytest.TempPathFactory") -> Path:
    """Two traces, and what this interpreter writes of them."""
    directory = tmp_path_factory.mktemp("pythons")
    small_training_run().save(directory).rename(directory / "trace")
    random_run(7).save(directory).rename(directory / "other")
    for i, (command, arguments) in enumerate(COMMANDS):
        (directory / f"expected-{i}").write_bytes(written(Path(sys.executable), command, arguments, directory))
    return directory


@pytest.mark.parametrize("release", RELEASES)
def test_another_python_writes_the_same(release: str, directory: Path) -> None:
    python = interpreter(release)
    for i, (command, arguments) in enumerate(COMMANDS):
        expected = (directory / f"expected-{i}").read_bytes()
        assert expected and written(python, command, arguments, directory) == expected, (command, arguments)


def test_the_doctor_answers_on_jetpack_4s_python() -> None:
    done = subprocess.run(
        [str(interpreter("3.6")), "-I", "-B", "-c", COMMAND, str(ROOT / "reporter"), "doctor", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=120,
    )
    said = json.loads(done.stdout.decode())
    assert {"memory", "open files", "kernel"} <= {row["name"] for row in said["findings"]}, done.stderr


def test_tests_name_types_of_pytest_in_quotes() -> None:
    """The last pytest for 3.6 does not have them, and what is not in quotes is looked up when the tests are loaded."""
    unquoted = []
    for path in sorted((ROOT / "tests/reporter").glob("*.py")):
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, (ast.FunctionDef, ast.Lambda)):
                types = [parameter.annotation for parameter in function.args.args + function.args.kwonlyargs]
                types += [function.returns] if isinstance(function, ast.FunctionDef) else []
                named = [name for each in types if each for name in ast.walk(each) if isinstance(name, ast.Name)]
                unquoted += [f"{path.name}:{name.lineno}" for name in named if name.id == "pytest"]
    assert unquoted == []
