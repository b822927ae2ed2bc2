# SPDX-License-Identifier: GPL-2.0-or-later
"""The subcommands of jmassif: their help, the modules that each imports, and what is generated from their parsers."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import List

import pytest

from jmassif.cli.main import COMMANDS, build_parser
from tests.reporter.commands import assert_one_line_error, jm_print, jmassif, program
from tests.reporter.traces import ROOT, Trace, small_training_run

_PATIENCE_SECONDS = 60  # a busy machine takes its time
_MOST_LINES = 40


def help_of(*words: str, capsys: "pytest.CaptureFixture[str]") -> str:
    with pytest.raises(SystemExit) as end:
        build_parser(words[0]).parse_args([*words[1:], "--help"])
    assert end.value.code == 0
    return capsys.readouterr().out


# ---- help -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_screen_and_has_two_examples_that_are_accepted(
    name: str, capsys: "pytest.CaptureFixture[str]", monkeypatch: "pytest.MonkeyPatch"
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines = help_of(name, capsys=capsys).splitlines()
    assert len(lines) <= _MOST_LINES and max(map(len, lines)) <= 81
    examples = [re.sub(r"   .*", "", line).strip() for line in lines if re.match(rf"  .*jmassif {name}\b", line)]
    assert len(examples) >= 2
    for example in examples:
        words = shlex.split(example.partition(" | jq")[0])
        build_parser(name).parse_args(words[words.index(name, words.index("jmassif")) + 1 :])


@pytest.mark.parametrize("action", ["load", "watch", "diff"])
def test_each_action_of_fleet_has_a_help_of_its_own(action: str, capsys: "pytest.CaptureFixture[str]") -> None:
    assert f"usage: jmassif fleet {action} " in help_of("fleet", action, capsys=capsys)


def test_the_version_is_that_of_the_package() -> None:
    assert re.fullmatch(r"jm_print \d+\.\d+\.\d+\n", program("jm_print", "--version").out)


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_without_a_command_lists_all(option: str) -> None:
    command = [sys.executable, "-B", "-m", "jmassif", option]
    done = subprocess.run(
        command, stdout=-1, stderr=-1, timeout=60, env={**os.environ, "PYTHONPATH": str(ROOT / "reporter")}
    )
    lines = done.stdout.decode().splitlines()
    assert (done.returncode, done.stderr) == (0, b"") and lines[0] == "usage: jmassif COMMAND [OPTION]..."
    assert all(f"  {name:<8}  {text}" in lines for name, text in COMMANDS.items()) and max(map(len, lines)) <= 80


@pytest.mark.parametrize("words", [[], ["reprot"], ["/bin/true"]])
def test_a_word_that_is_no_subcommand_is_one_line(words: List[str]) -> None:
    assert_one_line_error("jmassif", jmassif(*words), "unknown command", "report, export, diff")


# ---- imports ----------------------------------------------------------------------------------------

_IMPORTED = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from jmassif.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(*sorted(name for name in sys.modules if name.startswith("jmassif.")), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "words, imported",
    [
        (["report"], ""),
        (["report", "--format=folded"], "jmassif.export.folded"),
        (["export", "--format=csv"], "jmassif.export.csv"),
    ],
)
def test_only_the_chosen_output_is_imported(words: List[str], imported: str, tmp_path: Path) -> None:
    trace = small_training_run().save(tmp_path)
    start = [sys.executable, "-B", "-c", _IMPORTED, str(ROOT / "reporter")]
    done = subprocess.run([*start, *words, str(trace)], stdout=-1, stderr=-1, timeout=60)
    modules = done.stderr.decode().split()
    outputs = (
        "jmassif.html.",
        "jmassif.export.",
        "jmassif.fleet.",
        "jmassif.live.",
        "jmassif.serve.",
        "jmassif.doctor.",
    )
    assert done.stdout and [name for name in modules if name.startswith(outputs)] == imported.split()


# ---- the newest trace -------------------------------------------------------------------------------


def test_without_a_file_the_newest_trace_is_read(tmp_path: Path, monkeypatch: "pytest.MonkeyPatch") -> None:
    monkeypatch.chdir(tmp_path)
    assert_one_line_error("jm_print", jm_print(), "no jmassif.out.* in this directory: name a trace, or record")
    (tmp_path / "note.jmassif").write_text("a note")
    for age, name in enumerate(["new run.jmassif", "old.jmassif"]):
        small_training_run().save(tmp_path, name)
        os.utime(str(tmp_path / name), (1e9 - age, 1e9 - age))
    assert_one_line_error("jm_print", jm_print(), "directory: name one, as in: jm_print 'new run.jmassif', or record")
    for age, name in enumerate(["jmassif.out.note", "jmassif.out.12", "jmassif.out.7"]):
        small_training_run().save(tmp_path).rename(tmp_path / name)
        os.utime(str(tmp_path / name), (1e9 - age, 1e9 - age))
    (tmp_path / "jmassif.out.note").write_text("a note")
    os.utime(str(tmp_path / "jmassif.out.note"), (1e9, 1e9))
    done = jm_print("--format=folded")
    assert (done.status, done.err) == (0, "jm_print: jmassif.out.12 is the newest trace here\n")
    assert done.out == jm_print("--format=folded", "jmassif.out.12").out
    assert jmassif("export", "--format=folded").out == done.out


def test_what_is_no_trace_is_told_from_what_jmassif_writes(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("a note")
    assert_one_line_error("jm_print", jm_print(tmp_path / "note"), "give the jmassif.out file that jmassif wrote")


def test_the_others_of_its_run_are_named_with_the_newest(tmp_path: Path, monkeypatch: "pytest.MonkeyPatch") -> None:
    monkeypatch.chdir(tmp_path)
    heads = {"7": [("7.1", "3")], "1 2": [("12.5", ""), ("7.1", "3")], "13": [("13.6", "12")], "9": [("9.2", "3")]}
    for age, (name, processes) in enumerate(heads.items()):
        trace = Trace()
        for process, parent in processes:
            trace.manifest("process", process)
            trace.manifest("ppid", parent or "3")
        trace.snapshot(0, "start")
        trace.save(tmp_path, f"jmassif.out.{name}")
        os.utime(str(tmp_path / f"jmassif.out.{name}"), (1e9 - age, 1e9 - age))
    said = jm_print().err.splitlines()[0]
    assert said == (
        "jm_print: jmassif.out.7 is the newest trace here; with the others of its run:"
        " jm_print jmassif.out.7 'jmassif.out.1 2' jmassif.out.13"
    )


@pytest.mark.parametrize(
    "words, says",
    [
        (["--from=1", "--snapshot=2"], "--from and --snapshot cannot be combined"),
        (["--include=a", "--segments"], "--segments and --include cannot be combined"),
        (["--segments=1", "--exclude=x"], "--segments and --exclude cannot be combined"),
        (["--anonymous", "--source=."], "--anonymous and --source cannot be combined"),
        (["--value=live-bytes"], "--value is not supported by --format=text (supported: folded)"),
        (["--include=("], 'invalid regular expression "("'),
    ],
)
def test_options_that_contradict_each_other_are_one_line(words: List[str], says: str, tmp_path: Path) -> None:
    assert_one_line_error("jm_print", jm_print(*words, small_training_run().save(tmp_path)), says)


# ---- manual pages and completions -------------------------------------------------------------------


@pytest.fixture(name="made", scope="module")
def fixture_made(tmp_path_factory: "pytest.TempPathFactory") -> Path:
    directory = tmp_path_factory.mktemp("generated")
    subprocess.run([sys.executable, str(ROOT / "reporter/generate"), str(directory)], check=True, timeout=60)
    return directory


def options_of(*words: str, capsys: "pytest.CaptureFixture[str]") -> List[str]:
    found = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", help_of(*words, capsys=capsys), re.MULTILINE)
    assert found
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_the_manual_page_has_every_option(name: str, made: Path, capsys: "pytest.CaptureFixture[str]") -> None:
    page = (made / f"jmassif-{name}.1").read_text("utf-8")
    plain = page.replace("\\-", "-")
    assert [option for option in options_of(name, capsys=capsys) if option not in plain] == []
    assert all(f".SH {title}\n" in page for title in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES"))
    if shutil.which("man"):
        words = ["man", "-l", "--warnings", "-E", "UTF-8", str(made / f"jmassif-{name}.1")]
        shown = subprocess.run(words, stdout=-1, stderr=-1, timeout=60, env={**os.environ, "MANWIDTH": "80"})
        assert shown.returncode == 0 and shown.stderr == b""


def in_bash(made: Path, *words: str) -> List[str]:
    script = """
        . "$0"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _jmassif "$1" 2>&1
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(["bash", "-c", script, str(made / "jmassif.bash"), *words], stdout=-1, timeout=60, check=True)
    return done.stdout.decode().split()


def test_bash_completes_commands_options_and_values(made: Path, capsys: "pytest.CaptureFixture[str]") -> None:
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", str(made / "jmassif.bash")], check=True, timeout=60)
    offered = [word.rstrip("=") for word in in_bash(made, "jm_print", "--")]
    assert set(options_of("report", capsys=capsys)) <= set(offered)
    assert in_bash(made, "jmassif", "report", "--fo") == ["--format=", "--fold="]
    assert "report" in in_bash(made, "jmassif", "repor")
    assert in_bash(made, "jmassif", "fleet", "lo") == ["load"]
    assert in_bash(made, "jmassif", "fleet", "load", "--jo") == ["--jobs="]
    assert in_bash(made, "jm_print", "--color", "=", "") == ["auto", "always", "never"]
    assert in_bash(made, "jm_print", "--color", "a") == ["auto", "always"]
    assert in_bash(made, "jm_print", "jmassif") == []  # files are bash's own


def in_fish(made: Path, directory: Path, line: str) -> List[str]:
    """What fish offers, without descriptions."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    for name in ("jmassif", "jm_print"):
        shutil.copy(str(made / "jmassif.fish"), str(directory / f"{name}.fish"))
        (directory / name).touch(0o755)  # fish completes what it can run
    script = f"set fish_complete_path {directory}; complete -C '{line}'"
    words = ["fish", "--no-config", "-c", script]
    environment = {**os.environ, "HOME": str(directory), "PATH": f"{directory}:{os.environ['PATH']}"}
    done = subprocess.run(words, stdout=-1, stderr=-1, env=environment, timeout=120)
    assert done.stderr == b""
    return [row.split("\t")[0] for row in done.stdout.decode().splitlines()]


def test_fish_completes_commands_options_and_values(
    made: Path, tmp_path: Path, capsys: "pytest.CaptureFixture[str]"
) -> None:
    assert set(options_of("report", capsys=capsys)) <= set(in_fish(made, tmp_path, "jm_print --"))
    assert set(options_of("serve", capsys=capsys)) <= set(in_fish(made, tmp_path, "jmassif serve --"))
    assert set(COMMANDS) <= set(in_fish(made, tmp_path, "jmassif "))
    assert in_fish(made, tmp_path, "jmassif top --sort=") == [
        f"--sort={n}" for n in ("device", "grown", "held", "host")
    ]
    assert {"diff", "load", "watch"} <= set(in_fish(made, tmp_path, "jmassif fleet "))
    assert "--jobs" in in_fish(made, tmp_path, "jmassif fleet load --")


def test_zsh_completes_commands_options_and_values(made: Path, tmp_path: Path) -> None:
    for name in ("zsh", "tmux"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
    tmux = ["tmux", "-f", "/dev/null", "-S", str(tmp_path / "socket")]

    def do(*words: str) -> str:
        return subprocess.run([*tmux, *words], stdout=subprocess.PIPE, check=True).stdout.decode()

    def wait(text: str) -> None:
        end = time.monotonic() + _PATIENCE_SECONDS
        while text not in do("capture-pane", "-p", "-J"):
            assert time.monotonic() < end, do("capture-pane", "-p")
            time.sleep(0.1)

    start = f"fpath=({made} $fpath); autoload -Uz compinit; compinit -u -d {tmp_path}/dump; PS1='ready> '; clear"
    do("new-session", "-d", "-x", "150", "-y", "40", f"HOME={tmp_path} zsh -f")
    try:
        do("send-keys", "-l", start)
        do("send-keys", "Enter")
        wait("ready>")
        for typed, completed in (
            ("jm_print --thr", "jm_print --threshold="),
            ("jmassif top --sort=g", "jmassif top --sort=grown"),
            ("jmassif fleet wa", "jmassif fleet watch "),
            ("jmassif fleet load --jo", "jmassif fleet load --jobs="),
            ("jmassif docto", "jmassif doctor "),
        ):
            do("send-keys", "-l", typed)
            do("send-keys", "Tab")
            wait(f"ready> {completed}")
            do("send-keys", "C-u")
        do("send-keys", "-l", "jmassif top --")
        do("send-keys", "Tab")
        wait("time between two looks")
    finally:
        do("kill-server")
