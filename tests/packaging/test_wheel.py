# SPDX-License-Identifier: GPL-2.0-or-later
"""The wheel: built without a network, installed by pip into a virtual environment, used from there."""

import platform
import re
import shutil
import zipfile
from pathlib import Path
from typing import List, Union

import pytest

from tests.harness import BUILD, PYTHON, ROOT, check_run, made_each_run, run
from tests.reporter.traces import small_training_run

# Whoever pip asks for more than it was given gets no answer.
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null", "http_proxy": "http://127.0.0.1:9", "PYTHONPATH": ""}


@pytest.fixture(scope="module", name="wheel")
def fixture_wheel() -> Path:
    for module in ("setuptools", "wheel", "ensurepip"):
        if run([PYTHON, "-c", f"import {module}"]).returncode != 0:
            pytest.skip(f"{PYTHON} has no {module}")

    def make(directory: Path) -> None:
        made = check_run(["make", "--no-print-directory", "-C", BUILD / "reporter", "wheel"]).splitlines()[-1]
        shutil.copy2(made, str(directory))

    (wheel,) = made_each_run("wheel", make).iterdir()
    return wheel


@pytest.fixture(scope="module", name="venv")
def fixture_venv(wheel: Path) -> Path:
    def make(directory: Path) -> None:
        check_run([PYTHON, "-m", "venv", directory])
        done = run([directory / "bin" / "pip", "install", "--quiet", "--no-index", wheel], env=OFFLINE)
        assert done.returncode == 0, done.stdout + done.stderr

    return made_each_run("venv", make)


def commands() -> List[str]:
    return sorted(path.name for path in (ROOT / "reporter").glob("jm_*"))


def test_the_wheel_is_for_every_python_of_one_processor(wheel: Path) -> None:
    assert re.fullmatch(rf"jmassif-[\d.]+-py3-none-linux_{platform.machine()}\.whl", wheel.name)
    with zipfile.ZipFile(str(wheel)) as archive:
        metadata = archive.read(next(name for name in archive.namelist() if name.endswith("/METADATA"))).decode()
        packed = {name for name in archive.namelist() if name.startswith("jmassif/")}
    assert "Requires-Python: >=3.6" in metadata and not re.search(r"(?m)^Requires-Dist: [^;]*$", metadata)
    package = ROOT / "reporter" / "jmassif"
    modules = {str(path.relative_to(package.parent)) for path in package.rglob("*.py")}
    assert modules | {"jmassif/py.typed"} <= packed


def test_two_wheels_are_the_same_to_the_byte_and_have_the_licences(wheel: Path) -> None:
    first = wheel.read_bytes()
    made = ["sh", "-c", f"umask 077; make --no-print-directory -C {BUILD}/reporter wheel"]
    assert Path(check_run(made).splitlines()[-1]).read_bytes() == first
    with zipfile.ZipFile(str(wheel)) as archive:
        licences = [name.rpartition("/")[2] for name in archive.namelist() if "COPYING" in name]
    assert licences == ["COPYING", "COPYING.BSD"]


@pytest.mark.parametrize("command", [[name] for name in commands()] + [["jmassif", "check"]])
def test_the_commands_are_installed_and_start(venv: Path, command: List[str]) -> None:
    done = run([venv / "bin" / command[0], *command[1:], "--version"], env={"PYTHONPATH": ""})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{' '.join(command)} ")


def test_the_installed_command_prints_what_the_one_of_the_tree_does(venv: Path, tmp_path: Path) -> None:
    trace = small_training_run().save(tmp_path)
    installed = run([venv / "bin" / "jm_print", trace], env={"PYTHONPATH": ""})
    assert installed.stdout == run([PYTHON, ROOT / "reporter" / "jm_print", trace]).stdout
    assert "--- By owner" in installed.stdout


def test_it_records_without_valgrind_and_a_compiler(venv: Path, tmp_path: Path) -> None:
    script = tmp_path / "hold.py"
    script.write_text("kept = bytearray(7_000_000)\nprint(len(kept))\n")
    bare = {"PATH": f"{venv}/bin:/usr/bin:/bin", "PYTHONPATH": "", "VALGRIND_LIB": "", "VALGRIND": ""}
    ways: List[List[Union[str, Path]]] = [
        [venv / "bin/jmassif", "-q", "-o", "a.jm", "python3"],
        [venv / "bin/python3", "-m", "jmassif", "-q", "-o", "a.jm"],
    ]
    for words in ways:
        done = run([*words, script], cwd=tmp_path, env=bare)
        assert (done.returncode, done.stdout) == (0, "7000000\n"), done.stderr
        report = run([venv / "bin/jmassif", "report", "a.jm"], cwd=tmp_path, env=bare)
        assert "hold.py:1" in report.stdout and "6.68 MiB" in report.stdout, report.stdout + report.stderr
        (tmp_path / "a.jm").unlink()
    doctor = run([venv / "bin/jmassif", "doctor"], cwd=tmp_path, env=bare)
    assert doctor.returncode == 0 and "native" in doctor.stdout, doctor.stdout


def test_pytest_finds_the_plugin(venv: Path) -> None:
    installed = next(venv.glob("lib/python3*/site-packages"))
    done = run([PYTHON, "-m", "pytest", "--help"], env={"PYTHONPATH": str(installed)}, cwd=venv)
    assert "record the memory of the tests, and check their limits" in " ".join(done.stdout.split()), done.stderr


def test_programs_import_the_installed_package(venv: Path, tmp_path: Path) -> None:
    trace = small_training_run().save(tmp_path)
    program = "import jmassif, sys; print(jmassif.__file__, jmassif.Profile.load(sys.argv[1]).peaks['total'].host)"
    done = run([venv / "bin" / "python", "-c", program, trace], cwd=tmp_path, env={"PYTHONPATH": ""})
    assert done.stdout.startswith(str(venv)) and done.stdout.split()[1].isdigit(), done.stderr
