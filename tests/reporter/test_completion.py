# SPDX-License-Identifier: GPL-2.0-or-later
"""Completion in zsh and fish, asked of the shells themselves. (bash's is in test_habits.py.)"""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import List

import pytest

from tests.reporter.commands import documented_options
from tests.reporter.traces import ROOT

COMPLETION = ROOT / "reporter" / "completion"
COMMANDS = ("jm_check", "jm_diff", "jm_fleet", "jm_print", "jm_serve", "jm_top")
# A busy machine takes its time.
_PATIENCE_SECONDS = 60


def options_of(command: str) -> List[str]:
    """All long ones, from --help."""
    done = subprocess.run([str(ROOT / "reporter" / command), "--help"], stdout=subprocess.PIPE, check=True)
    return sorted(set(re.findall(r"^  (?:-\w(?: \w+)?, )?(--[a-z-]+)", done.stdout.decode(), re.MULTILINE)))


def in_fish(tmp_path: Path, line: str) -> List[str]:
    """What fish offers, without what each is for."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    for command in (*COMMANDS, "jmassif"):
        link = tmp_path / f"{command}.fish"
        if not link.exists():
            link.symlink_to(COMPLETION / "jm_print.fish")
    environment = {**os.environ, "PATH": f"{ROOT / 'reporter'}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    script = f"set fish_complete_path {tmp_path}; complete -C '{line}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        timeout=120,
    )
    assert done.stderr == b""
    return [row.split("\t")[0] for row in done.stdout.decode().splitlines()]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_manual_knows_every_option(command: str) -> None:
    options = options_of(command)
    assert len(options) >= 4 and [option for option in options if option not in documented_options(command)] == []


@pytest.mark.parametrize("command", ["jm_fleet", "jm_print", "jm_serve"])
def test_fish_completes_all_options(tmp_path: Path, command: str) -> None:
    options = options_of(command)
    assert len(options) >= 4 and set(options) <= set(in_fish(tmp_path, f"{command} --"))


def test_fish_completes_the_values_of_options_and_else_files(tmp_path: Path) -> None:
    assert in_fish(tmp_path, "jm_top --sort=") == ["--sort=device", "--sort=grown", "--sort=held", "--sort=host"]
    assert in_fish(tmp_path, "jm_print --color ") == ["always", "auto", "never"]
    assert {"diff", "export", "load", "runs"} <= set(in_fish(tmp_path, "jm_fleet "))
    (tmp_path / "jmassif.out.4711").touch()
    assert in_fish(tmp_path, f"jm_print {tmp_path}/jmassif") == [
        f"{tmp_path}/jmassif.fish",
        f"{tmp_path}/jmassif.out.4711",
    ]


def test_zsh_completes_options_and_their_values(tmp_path: Path) -> None:
    for program in ("zsh", "tmux"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    tmux = ["tmux", "-f", "/dev/null", "-S", str(tmp_path / "socket")]

    def do(*words: str) -> str:
        return subprocess.run([*tmux, *words], stdout=subprocess.PIPE, check=True).stdout.decode()

    def wait(text: str) -> None:
        end = time.monotonic() + _PATIENCE_SECONDS
        while text not in do("capture-pane", "-p", "-J"):
            assert time.monotonic() < end, do("capture-pane", "-p")
            time.sleep(0.1)

    start = f"PATH={ROOT / 'reporter'}:$PATH; fpath=({COMPLETION} $fpath); autoload -Uz compinit; compinit -u -d {tmp_path}/dump; PS1='ready> '; clear"
    do("new-session", "-d", "-x", "150", "-y", "40", f"HOME={tmp_path} zsh -f")
    try:
        do("send-keys", "-l", start)
        do("send-keys", "Enter")
        wait("ready>")
        for typed, completed in (
            ("jm_print --thr", "--threshold="),
            ("jm_top --sort=g", "--sort=grown"),
            ("jm_serve --no-s", "--no-source"),
            ("jm_diff --vs", "--vs"),
            ("jm_fleet exp", "export "),
        ):
            do("send-keys", "-l", typed)
            do("send-keys", "Tab")
            wait(f"ready> {typed.split()[0]} {completed}")
            do("send-keys", "C-u")
        # What options are for stands beside them.
        do("send-keys", "-l", "jm_top --")
        do("send-keys", "Tab")
        wait("how often to look")
    finally:
        do("kill-server")
