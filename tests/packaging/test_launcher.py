# SPDX-License-Identifier: GPL-2.0-or-later
"""The command jmassif, as a bundle has it (the tool starts by itself) and as an installation beside a Valgrind does."""

import json
import os
import re
import resource
import shlex
import stat
import subprocess
from pathlib import Path
from typing import Callable, Dict, List, Optional

import pytest

from jmassif.reader.builder import load_file
from tests.harness import ARCH, BUILD, PYTHON, ROOT, VALGRIND, Argument, Run, compile_c
from tests.reporter.traces import small_training_run
from tests.tool import board

TEMPLATE = ROOT / "packaging" / "jmassif.in"
TOOLS = BUILD / ".in_place"
# A bundle's core finds its files by this variable under another name.
AS_CORE = {"VALGRIND_LIB": str(TOOLS)}

SPAWNS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    puts(getenv("VALGRIND_LAUNCHER") || (argc == 1 && getenv("JMASSIF_NATIVE")) ? "visible" : "hidden");
    fflush(stdout);
    if (argc > 1)
        execv(argv[1], argv + 1);
    return 3;
}
"""


def installed(prefix: Path, valgrind: str = "") -> Path:
    """The command below a prefix, and beside it what it looks for."""
    (prefix / "bin").mkdir(parents=True)
    (prefix / "share/jmassif").mkdir(parents=True)
    (prefix / "share/jmassif/python").symlink_to(ROOT / "reporter")
    (prefix / "lib").mkdir()
    (prefix / "lib/jmassif").symlink_to(TOOLS)
    text = TEMPLATE.read_text().replace("@valgrind@", valgrind).replace("@tools@", str(TOOLS) if valgrind else "")
    command = prefix / "bin/jmassif"
    command.write_text(text.replace("@version@", "9.9, Valgrind 8.8"))
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return command


def start(command: Path, *arguments: Argument, cwd: Path, env: Optional[Dict[str, str]] = None, limit: int = 0) -> Run:
    """With at most `limit` open files, if any."""
    few: Optional[Callable[[], None]] = None
    if limit:
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))  # noqa: E731
    done = subprocess.run(
        [str(command), *map(str, arguments)],
        cwd=str(cwd),
        env={**os.environ, **AS_CORE, **(env or {})},
        preexec_fn=few,
        timeout=120,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    return Run(done.returncode, done.stdout.decode(), done.stderr.decode("utf-8", "replace"))


def our_lines(run: Run) -> str:
    """Lines of the script itself: Valgrind's begin with a process number."""
    return "".join(re.findall(r"(?m)^(?!==|jmassif: next: ).*\n", run.stderr))


EACH_KIND = pytest.mark.parametrize("valgrind", ["", VALGRIND], ids=["bundle", "installation"])
EACH = pytest.mark.parametrize("recorder", ["--native", "--valgrind"])


@EACH_KIND
@EACH
def test_it_records_from_any_directory_and_says_nothing_of_its_own(
    tmp_path: Path, valgrind: str, recorder: str
) -> None:
    command = installed(tmp_path / "there", valgrind)
    done = start(command, recorder, compile_c(SPAWNS), cwd=tmp_path)
    assert (done.returncode, done.stdout, our_lines(done)) == (3, "hidden\n", ""), done.stderr
    (trace,) = tmp_path.glob("jmassif.out.*")
    profile = load_file(str(trace))
    assert profile.is_complete and profile.manifest["recorder"] == recorder[2:]
    assert ("valgrind" in profile.manifest) == (recorder == "--valgrind")


def test_a_bundle_is_found_through_a_link_that_is_found_through_the_path(tmp_path: Path) -> None:
    command = installed(tmp_path / "there")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/record").symlink_to(command)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    done = start(Path("/usr/bin/env"), f"PATH={path}", "record", "--jmassif-out-file=trace", "true", cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "trace").exists(), done.stderr


@EACH_KIND
@EACH
def test_children_are_recorded_too_and_the_machine_is_looked_at_once(
    tmp_path: Path, valgrind: str, recorder: str
) -> None:
    command = installed(tmp_path / "there", valgrind)
    program = compile_c(SPAWNS)
    options = [recorder, "--trace-children=yes"]
    done = start(command, *options, program, program, program, cwd=tmp_path, limit=64)
    last = "hidden" if recorder == "--valgrind" else "visible"  # to the last, whose children would be recorded too
    assert (done.returncode, done.stdout) == (3, f"hidden\nhidden\n{last}\n"), done.stderr
    # exec stays the same process, and each of its programs has a trace.
    traces = [load_file(str(trace)) for trace in tmp_path.glob("jmassif.out.*")]
    assert sorted(len(trace.manifest["command"].split()) for trace in traces) == [1, 2, 3]
    assert len(our_lines(done).splitlines()) == (recorder == "--valgrind")  # few open files


@EACH
def test_without_the_reporter_it_records_all_the_same(tmp_path: Path, recorder: str) -> None:
    command = installed(tmp_path / "there")  # as in a build tree
    (tmp_path / "there/share/jmassif/python").unlink()
    done = start(command, recorder, "true", cwd=tmp_path)
    assert (done.returncode, our_lines(done)) == (0, "")
    assert len(list(tmp_path.glob("jmassif.out.*"))) == 1


@pytest.mark.parametrize("name", ["with space", "with:colon", "with$dollar"])
def test_a_directory_that_nothing_can_be_preloaded_from_gets_one_line(tmp_path: Path, name: str) -> None:
    done = start(installed(tmp_path / name), "true", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and name in done.stderr


def test_a_bundle_for_another_processor_gets_one_line(tmp_path: Path) -> None:
    command = installed(tmp_path / "there")
    (tmp_path / "there/lib/jmassif").unlink()
    (tmp_path / "there/lib/jmassif").mkdir()
    done = start(command, "--valgrind", "true", cwd=tmp_path, env={"JMASSIF_DOCTOR": "no"})
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and f"jmassif-{ARCH}-linux" in done.stderr


def test_what_would_spoil_the_recording_is_one_line_before_it(tmp_path: Path) -> None:
    command = installed(tmp_path / "there", VALGRIND)
    done = start(command, "--valgrind", compile_c(SPAWNS), cwd=tmp_path, limit=64)
    assert done.returncode == 3 and our_lines(done).count("\n") == 1
    assert re.search(r"^jmassif: open files: .*\b64\b.*jmassif doctor", our_lines(done))
    quiet = start(command, "--valgrind", compile_c(SPAWNS), cwd=tmp_path, limit=64, env={"JMASSIF_DOCTOR": "no"})
    assert our_lines(quiet) == ""


def test_without_python_it_records_all_the_same(tmp_path: Path) -> None:
    no_python = {"JMASSIF_PYTHON": "no-such-python"}
    done = start(installed(tmp_path / "there"), "--valgrind", "true", cwd=tmp_path, limit=64, env=no_python)
    assert done.returncode == 0 and our_lines(done) == ""


@EACH_KIND
def test_the_doctor_tells_whether_it_can_work(tmp_path: Path, valgrind: str) -> None:
    command = installed(tmp_path / "there", valgrind)
    well = start(command, "doctor", "--json", cwd=tmp_path)
    said = json.loads(well.stdout)
    assert said["works"] == all(row["state"] != "fails" for row in said["findings"]) == (well.returncode == 0)
    # Every check has answered, on whatever machine this is.
    names = {row["name"] for row in said["findings"]}
    assert {"native", "Valgrind", "Python", "memory", "open files", "devices", "trace", "temporary", "kernel"} <= names
    assert "ok     Valgrind" in start(command, "doctor", cwd=tmp_path).stdout

    ill = start(command, "doctor", cwd=tmp_path, env={"TMPDIR": str(tmp_path / "absent")})
    assert ill.returncode == 0 and "lost   temporary" in ill.stdout
    absent = start(command, "doctor", "no-such-program", cwd=tmp_path)
    assert absent.returncode == 2 and absent.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "release, limit, shown",
    [("r32", 0, "/dev/nvmap may be used"), ("r32", 64, ""), ("rm580", 64, "/dev/nvidiactl may be used")],
)
def test_the_doctor_sees_the_boards_devices(tmp_path: Path, sim: Path, release: str, limit: int, shown: str) -> None:
    """Which are there for who opens them, like a container's; few open files are too few for nvmap alone."""
    board.require_board(sim)
    command = installed(tmp_path / "there")
    on_board = [*board.launcher(sim, release), command, "doctor", "--json"]
    done = start(Path(on_board[0]), *on_board[1:], cwd=tmp_path, limit=limit)
    rows = {row["name"]: row for row in json.loads(done.stdout)["findings"]}
    assert rows["devices"]["state"] == "ok" and shown in rows["devices"]["text"]
    assert (rows["open files"]["state"] == "lost") == (limit == 64)


def test_an_installation_whose_valgrind_is_gone_gets_one_line(tmp_path: Path) -> None:
    command = installed(tmp_path / "there", str(tmp_path / "gone/valgrind"))
    one_line(start(command, "--valgrind", "true", cwd=tmp_path), 2, "gone/valgrind")
    doctor = start(command, "doctor", cwd=tmp_path)
    assert doctor.returncode == 0 and re.search("lost   Valgrind .*gone/valgrind", doctor.stdout)
    assert start(command, "true", cwd=tmp_path).returncode == 0
    assert load_file(str(next(tmp_path.glob("jmassif.out.*")))).manifest["recorder"] == "native"


def one_line(done: Run, status: int, *words: str) -> None:
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", 1), done.stderr
    assert done.stderr.startswith("jmassif: ") and all(word in done.stderr for word in words), done.stderr


def short_name(command: Path, name: str) -> Path:
    link = command.with_name(name)
    link.symlink_to("jmassif")
    return link


@pytest.mark.parametrize("subcommand", ["doctor", "report"])
def test_without_python_what_needs_it_gets_one_line(tmp_path: Path, subcommand: str) -> None:
    done = start(installed(tmp_path / "there"), subcommand, cwd=tmp_path, env={"JMASSIF_PYTHON": "no-such-python"})
    one_line(done, 2, f"{subcommand} needs Python 3.6", "no-such-python")


@pytest.mark.parametrize("subcommand", ["doctor", "report"])
def test_without_the_reporter_what_needs_it_gets_one_line(tmp_path: Path, subcommand: str) -> None:
    command = installed(tmp_path / "there")
    (tmp_path / "there/share/jmassif/python").unlink()
    one_line(
        start(command, subcommand, cwd=tmp_path), 2, f"{subcommand} needs the reporter", "there/share/jmassif/python"
    )


@pytest.mark.parametrize("name, text", [("jm_print", "Peak 233 MiB"), ("jm_diff", "total ")])
def test_short_names_are_links_to_it(tmp_path: Path, name: str, text: str) -> None:
    link = short_name(installed(tmp_path / "there"), name)
    trace = small_training_run().save(tmp_path)
    assert text in start(link, trace, *[trace] * (name == "jm_diff"), cwd=tmp_path).stdout
    assert start(link, "--version", cwd=tmp_path).stdout.startswith(f"{name} 0.")
    done = start(link, trace, cwd=tmp_path, env={"JMASSIF_PYTHON": "no-such-python"})
    one_line(done, 2, f"{name} needs Python 3.6", "no-such-python")


# ---- the command line ------------------------------------------------------------------------


def test_help_fits_a_screen_and_names_each_subcommand(tmp_path: Path) -> None:
    command = installed(tmp_path / "there", VALGRIND)
    lines = start(command, "--help", cwd=tmp_path).stdout.splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 80 and lines[2].startswith("usage: jmassif ")
    names = [line.split()[0] for line in lines if re.match("  [a-z]+  +[a-z]", line)]
    subcommands = "run report export diff check fit top serve fleet doctor vgdb"
    assert names == subcommands.split() and sum(line.startswith("  jmassif ") for line in lines) == 2
    assert all("Valgrind only" in line for line in lines if "vgdb" in line)
    nothing = start(command, cwd=tmp_path)
    assert (nothing.returncode, nothing.stdout, nothing.stderr.splitlines()) == (2, "", lines)
    assert start(command, "--version", cwd=tmp_path).stdout == "jmassif 9.9, Valgrind 8.8\n"


def test_every_subcommand_is_passed_on_with_its_words(tmp_path: Path) -> None:
    command = installed(tmp_path / "there")
    for name in "report export diff check fit top serve fleet doctor".split():
        done = start(command, name, "--help", cwd=tmp_path)
        assert done.returncode == 0 and f"jmassif {name}" in done.stdout.splitlines()[0], done.stderr
    # The line to type next, typed, but for the file: the newest trace is taken.
    assert start(command, "echo", "a b", cwd=tmp_path).returncode == 0
    done = start(command, "report", cwd=tmp_path)
    assert done.returncode == 0 and "echo" in done.stdout, done.stderr
    refused = start(command, "report", "no such.trace", cwd=tmp_path)
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and "no such.trace" in refused.stderr


OPTIONS = set(re.findall(r'\.name = "(--[a-z-]+)', (ROOT / "jmassif/base/options.c").read_text()))


@EACH_KIND
def test_help_of_run_lists_every_option_of_the_tool(tmp_path: Path, valgrind: str) -> None:
    done = start(installed(tmp_path / "there", valgrind), "run", "--help", cwd=tmp_path)
    assert done.returncode == 0 and max(map(len, done.stdout.splitlines())) <= 80
    assert OPTIONS <= set(re.findall(r"--[a-z-]+", done.stdout))
    assert "Copyright" not in done.stdout


@EACH_KIND
@EACH
@pytest.mark.parametrize("words", [["-o", "a b"], ["-oa b"], ["--output", "a b"], ["--output=a b"]])
def test_the_trace_goes_to_the_file_that_is_named(
    tmp_path: Path, valgrind: str, recorder: str, words: List[str]
) -> None:
    command = installed(tmp_path / "there", valgrind)
    # A program may have the name of a subcommand, and options that look like ours.
    (tmp_path / "report").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "report").chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = start(command, "run", recorder, *words, "--", "report", "-o", "*  x", "--tool=y", cwd=tmp_path, env=path)
    assert (done.returncode, done.stdout, our_lines(done)) == (0, "-o *  x --tool=y\n", ""), done.stderr
    assert load_file(str(tmp_path / "a b")).is_complete
    # The last line is what to type next.
    typed = str(command) if not valgrind or recorder == "--native" else "jmassif"
    assert done.stderr.splitlines()[-1].endswith(f"jmassif: next: {typed} report 'a b'")


@EACH_KIND
@EACH
@pytest.mark.parametrize(
    "named", [["-o", "no/such/%p"], ["--jmassif-out-file=."], ["--output=there/bin/jmassif/trace"]]
)
def test_nothing_is_run_when_the_trace_cannot_be_written(
    tmp_path: Path, valgrind: str, recorder: str, named: List[str]
) -> None:
    command = installed(tmp_path / "there", valgrind)
    named = [recorder, *named]
    refused = start(command, *named, "echo", "it ran", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "") and refused.stderr.count("jmassif: cannot create") == 1
    done = start(command, "--keep-going", *named, "echo", "it ran", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "it ran\n") and done.stderr.count("jmassif: cannot create") == 1


def test_a_program_that_cannot_be_started_gets_one_line_and_the_shells_status(tmp_path: Path) -> None:
    command = installed(tmp_path / "there", VALGRIND)
    (tmp_path / "my.py").write_text("print('it ran')\n")
    (tmp_path / "plain.py").write_text("print('it ran')\n")
    (tmp_path / "plain.py").chmod(0o755)
    (tmp_path / "data").write_text("#!/bin/sh\n")
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    one_line(start(command, "my.py", "--lr=1", cwd=tmp_path), 126, "type: jmassif python3 my.py --lr=1")
    one_line(start(command, "./my.py", cwd=tmp_path), 126, "type: jmassif python3 ./my.py")
    one_line(start(command, "run", "-q", "./plain.py", cwd=tmp_path), 126, "type: jmassif python3 ./plain.py")
    (tmp_path / "my script.py").write_text("print('it ran')\n")
    spaced = start(command, "my script.py", "it's", "", cwd=tmp_path)
    one_line(spaced, 126, "type: jmassif python3 'my script.py' ")
    typed = spaced.stderr.partition("type: ")[2]
    assert shlex.split(typed) == ["jmassif", "python3", "my script.py", "it's", ""]
    one_line(start(command, "./data", cwd=tmp_path), 126, "./data: ")
    one_line(start(command, ".", cwd=tmp_path), 126, ".: is a directory")
    one_line(start(command, "tool", "a b", cwd=tmp_path), 127, "tool: not on PATH: jmassif ./tool 'a b'")
    one_line(start(command, "reprot", "x", cwd=tmp_path), 127, "reprot: ")
    one_line(start(command, "./absent", cwd=tmp_path), 127, "./absent: ")
    (tmp_path / "my.py").write_text(f"#!/usr/bin/env {PYTHON}\nprint('it ran')\n")
    (tmp_path / "my.py").chmod(0o755)
    assert start(command, "--heap=no", "./my.py", cwd=tmp_path).stdout == "it ran\n"


def test_words_that_are_no_command_line_get_one_line(tmp_path: Path) -> None:
    command = installed(tmp_path / "there", VALGRIND)
    one_line(start(command, "--tool=memcheck", "true", cwd=tmp_path), 2, "--tool=memcheck", "valgrind")
    one_line(start(command, "run", "-q", cwd=tmp_path), 2, "no program")
    one_line(start(command, "-o", cwd=tmp_path), 2, "-o needs a file")
    one_line(start(command, "--natve", "true", cwd=tmp_path), 2, "--natve: unknown option; did you mean --native?")
    one_line(start(command, "--auto", "--trace-childs=yes", "true", cwd=tmp_path), 2, "did you mean --trace-children?")
    for chosen in ("--native", "--valgrind", "--auto"):
        one_line(start(command, chosen, "--frobnicate", "true", cwd=tmp_path), 2, "--frobnicate: unknown option")
