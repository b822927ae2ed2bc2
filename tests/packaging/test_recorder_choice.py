# SPDX-License-Identifier: GPL-2.0-or-later
"""Which recorder the command takes, and what it says of programs and options that the native one cannot serve."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Dict, List, Optional

import pytest

from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from tests.harness import BUILD, PYTHON, ROOT, VALGRIND, check_run, compile_c, run
from tests.packaging.test_launcher import OPTIONS, installed, one_line, our_lines, start

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    char *volatile kept = malloc(100000);
    puts("it ran");
    return kept == NULL;
}
"""

OWN_MALLOC = r"""
#include <stddef.h>

static char pool[1 << 20];
static size_t used;

VISIBLE void *malloc(size_t bytes)
{
    void *p = pool + used;
    used += (bytes + 15) & ~(size_t)15;
    return p;
}

void free(void *p)
{
    (void)p;
}
"""


NOTHING: List[str] = []


@pytest.fixture(name="command")
def _command(tmp_path: Path) -> Path:
    return installed(tmp_path / "there", VALGRIND)


def recorded(tmp_path: Path) -> Optional[Profile]:
    """The only trace there, if any. Removes it."""
    traces = list(tmp_path.glob("jmassif.out.*"))
    if not traces:
        return None
    (trace,) = traces
    profile = load_file(str(trace))
    trace.unlink()
    return profile


def record(command: Path, *arguments: object, cwd: Path, env: Optional[Dict[str, str]] = None) -> Profile:
    done = start(command, *map(str, arguments), cwd=cwd, env=env)
    assert done.returncode == 0 and done.stdout == "it ran\n", done.stderr
    profile = recorded(cwd)
    assert profile and profile.is_complete
    return profile


# ---- programs --------------------------------------------------------------------------------


def static() -> Path:
    return compile_c(PROGRAM, "-static")


def static_pie() -> Path:
    return compile_c(PROGRAM, "-static-pie", "-fPIE")


def own_malloc() -> Path:
    return compile_c(PROGRAM + OWN_MALLOC.replace("VISIBLE", ""))


def hidden_malloc() -> Path:
    return compile_c(PROGRAM + OWN_MALLOC.replace("VISIBLE", '__attribute__((visibility("hidden")))'))


def of_musl() -> Path:
    return compile_c(PROGRAM, compiler="musl-gcc")


@pytest.mark.parametrize(
    "make, reason",
    [
        (static, "is linked statically"),
        (static_pie, "is linked statically"),
        (own_malloc, "has a malloc of its own"),
        (hidden_malloc, "has a malloc of its own"),
        (of_musl, "is loaded by /lib/ld-musl-"),
    ],
)
def test_only_valgrind_records_it(tmp_path: Path, command: Path, make: object, reason: str) -> None:
    assert callable(make)
    program = make()
    for options in NOTHING, ["--native"]:
        one_line(start(command, *options, program, cwd=tmp_path), 2, str(program), reason, "--valgrind")
        assert not recorded(tmp_path)
    assert record(command, "--valgrind", program, cwd=tmp_path).manifest["recorder"] == "valgrind"
    done = start(command, "--auto", program, cwd=tmp_path)
    assert reason in our_lines(done) and our_lines(done).count("\n") == 1
    profile = recorded(tmp_path)
    assert profile and profile.manifest["recorder"] == "valgrind"
    assert our_lines(start(command, "--auto", "-q", program, cwd=tmp_path)) == ""


def test_a_malloc_of_its_own_does_not_hinder_what_leaves_the_heap_out(tmp_path: Path, command: Path) -> None:
    profile = record(command, "--native=device", own_malloc(), cwd=tmp_path)
    assert (profile.manifest["recorder"], profile.manifest["option.heap"]) == ("native", "no")
    assert not [account for account in profile.counts() if profile.accounts[account].kind == "heap"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give a file rights of another")
@pytest.mark.parametrize("mode", ["u+s", "g+s"])
def test_a_program_with_rights_of_its_own_is_refused_by_both(tmp_path: Path, command: Path, mode: str) -> None:
    program = tmp_path / "program"
    shutil.copy(str(compile_c(PROGRAM)), str(program))
    check_run(["chmod", mode, program])
    assert record(command, program, cwd=tmp_path).manifest["recorder"] == "native"  # its rights are the user's
    check_run(["chown", "nobody:nogroup", program])
    check_run(["chmod", mode, program])
    for options in NOTHING, ["--auto"]:
        one_line(start(command, *options, program, cwd=tmp_path), 2, "setuid", "record a copy")
    assert start(command, "--valgrind", program, cwd=tmp_path).returncode != 0 and not recorded(tmp_path)


def test_a_program_for_another_processor_is_refused_by_both(tmp_path: Path, command: Path) -> None:
    program = tmp_path / "program"
    content = bytearray(compile_c(PROGRAM).read_bytes())
    content[18:20] = b"\x15\x00"  # POWER
    program.write_bytes(content)
    program.chmod(0o755)
    one_line(start(command, "--auto", program, cwd=tmp_path), 2, "another processor")


# ---- scripts ---------------------------------------------------------------------------------


def script(tmp_path: Path, first: str, *lines: str) -> Path:
    path = tmp_path / "my script"
    path.write_text("\n".join([first, *lines, ""]))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("first", ["#!/usr/bin/env python3", "#!/usr/bin/env -S python3 -u", "#! /usr/bin/python3"])
def test_a_scripts_interpreter_is_recorded_not_env(tmp_path: Path, command: Path, first: str) -> None:
    path = script(tmp_path, first, "import sys", "print(*sys.argv)")
    for option in ("--native", "--valgrind"):
        done = start(command, option, path, "a  b", "*", cwd=tmp_path, env={"PATH": "/usr/bin:/bin"})
        assert (done.returncode, done.stdout) == (0, f"{path} a  b *\n"), done.stderr
        profile = recorded(tmp_path)
        assert profile and "python" in profile.manifest


def test_what_pyenv_executes_is_recorded_not_its_shim(tmp_path: Path, command: Path) -> None:
    program = compile_c(PROGRAM)
    for name, line in (("shims/tool", "echo not this"), ("bin/pyenv", f'[ "$*" = "which tool" ] && echo {program}')):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    path = {"PATH": f"{tmp_path}/shims:{tmp_path}/bin:/usr/bin:/bin"}
    assert record(command, "tool", "a  b", cwd=tmp_path, env=path).manifest["command"] == f"{program} a  b"


def test_a_scripts_interpreter_is_looked_at(tmp_path: Path, command: Path) -> None:
    for first in (f"#!{static()}", f"#!/usr/bin/env {static()}"):
        one_line(start(command, script(tmp_path, first), cwd=tmp_path), 2, str(static()), "is linked statically")


def test_a_script_without_a_first_line_is_the_shells(tmp_path: Path, command: Path) -> None:
    assert record(command, script(tmp_path, "echo it ran"), cwd=tmp_path).manifest["recorder"] == "native"


# ---- options ---------------------------------------------------------------------------------


def test_every_option_of_the_recorder_is_taken_natively(tmp_path: Path, command: Path) -> None:
    values = {"--interval": "10", "--max-snapshots": "100", "--time-unit": "ms", "--memory": "auto", "--python": "auto"}
    values.update({"--large": "64k", "--code-cache": "no", "--code-cache-size": "1MiB", "--owners": "/dev/null"})
    values.update({"--board-root": "", "--jmassif-out-file": "jmassif.out.%p", "--depth": "0"})
    values.update({"--heap-admin": "1", "--low-memory": "1"})
    values.update({f"--{name}": "none" for name in ("alloc-fn", "ignore-fn")})
    words = [f"{name}={values.get(name, 'no')}" for name in sorted(OPTIONS)]
    profile = record(command, *words, "--trace-children=no", "--stats=no", compile_c(PROGRAM), cwd=tmp_path)
    assert profile.manifest["recorder"] == "native"


@pytest.mark.parametrize("option", ["--time-unit=i", "--main-stacksize=100000"])
def test_an_option_that_only_valgrind_has(tmp_path: Path, command: Path, option: str) -> None:
    program = compile_c(PROGRAM)
    one_line(start(command, option, program, cwd=tmp_path), 2, option, "--valgrind")
    one_line(start(command, "-q", "--native", option, program, cwd=tmp_path), 2, option, "--valgrind")
    assert not recorded(tmp_path)
    assert record(command, "--auto", option, program, cwd=tmp_path).manifest["recorder"] == "valgrind"


def test_native_is_native_or_native_device(tmp_path: Path, command: Path) -> None:
    one_line(start(command, "--native=gpu", "true", cwd=tmp_path), 2, "--native=gpu", "--native=device")


# ---- what is installed, and the environment --------------------------------------------------


def only(tmp_path: Path, command: Path, *names: str) -> None:
    """Leaves these files alone of the recorders'."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in names:
        shutil.copy(str(BUILD / ".in_place" / name), str(tools))
    command.write_text(command.read_text().replace(str(BUILD / ".in_place"), str(tools)))


def test_the_library_is_enough(tmp_path: Path) -> None:
    command = installed(tmp_path / "there", str(tmp_path / "no/valgrind"))
    only(tmp_path, command, "libjmassif-native.so")
    for options in NOTHING, ["--auto"]:
        assert record(command, *options, compile_c(PROGRAM), cwd=tmp_path).manifest["recorder"] == "native"
    one_line(start(command, "--auto", static(), cwd=tmp_path), 2, "linked statically", "not installed")
    one_line(start(command, "--time-unit=i", "true", cwd=tmp_path), 2, "--time-unit=i", "not installed")
    assert "--large=<size>" in start(command, "run", "--help", cwd=tmp_path).stdout


def test_without_the_library_auto_takes_valgrind(tmp_path: Path, command: Path) -> None:
    there = BUILD / ".in_place"
    only(tmp_path, command, *(path.name for path in there.iterdir() if path.is_file() and "native" not in path.name))
    one_line(start(command, "true", cwd=tmp_path), 2, "libjmassif-native.so", "--valgrind")
    assert record(command, "--auto", "-q", compile_c(PROGRAM), cwd=tmp_path).manifest["recorder"] == "valgrind"
    assert "--large=<size>" in start(command, "run", "--help", cwd=tmp_path).stdout


def test_the_programs_environment_is_the_users(tmp_path: Path, command: Path) -> None:
    own = compile_c("int preloaded = 1;\n", "-shared", "-fPIC")
    cases: List[Dict[str, str]] = [{}, {"LD_PRELOAD": str(own)}]
    for env in cases:
        alone = subprocess.check_output(["env"], env={**os.environ, **env}).decode()
        done = start(Path("/usr/bin/env"), "-u", "VALGRIND_LIB", command, "env", cwd=tmp_path, env=env)
        differing = set(done.stdout.splitlines()) ^ set(alone.splitlines())
        assert done.returncode == 0 and not {line for line in differing if not re.match("_=|PWD=|OLDPWD=", line)}
    # The user's library is loaded, after ours.
    profile = recorded_with(tmp_path, command, {"LD_PRELOAD": str(own)})
    assert [loaded.path for loaded in profile.objects if loaded.path == str(own)]


def recorded_with(tmp_path: Path, command: Path, env: Dict[str, str]) -> Profile:
    for trace in tmp_path.glob("jmassif.out.*"):
        trace.unlink()
    return record(command, compile_c(PROGRAM), cwd=tmp_path, env=env)


def test_python_records_a_script_by_the_packages_name(tmp_path: Path, command: Path) -> None:
    path = {"PATH": f"{command.parent}:/usr/bin:/bin", "PYTHONPATH": str(ROOT / "reporter")}
    (tmp_path / "train.py").write_text("import sys\nprint(*sys.argv[1:])\n")
    for words, out in ((["train.py", "-o", "x"], "-o x\n"), (["-q", "-o", "kept", "-m", "train", "y"], "y\n")):
        env = ["env", "-u", "VALGRIND", "-u", "VALGRIND_LIB", *(f"{name}={value}" for name, value in path.items())]
        done = run([*env, PYTHON, "-m", "jmassif", *words], cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, out), done.stderr
    for trace in (next(tmp_path.glob("jmassif.out.*")), tmp_path / "kept"):
        assert "python" in load_file(str(trace)).manifest
    one_line(run([*env, PYTHON, "-m", "jmassif", "absent.py"], cwd=tmp_path), 2, "absent.py")


def test_a_wheels_command_names_itself_and_leaves_no_variable(tmp_path: Path, command: Path) -> None:
    done = start(command, "sh", "-c", "echo ${JMASSIF_MODULES-none}", cwd=tmp_path, env={"JMASSIF_MODULES": "/there"})
    assert done.stdout == "none\n" and "jmassif: next: jmassif report " in done.stderr
