# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of docs/guide.md, "A fleet of boards", as they stand there."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import List, NamedTuple

import pytest

from tests.fleet.conftest import MadeFleet
from tests.fleet.server import Server
from tests.harness import ROOT
from tests.reporter.commands import command

DOCUMENT = ROOT / "docs" / "guide.md"
_BEGIN, _END = "\n## A fleet of boards\n", "\n## "
_NOT_RUN = "not run here"


class Block(NamedTuple):
    section: int
    script: str


def blocks() -> List[Block]:
    """Those that are to be run: what is indented, but for tables that are shown, and what the text before it leaves out."""
    found = []
    section, before = 0, ""
    chapter = DOCUMENT.read_text(encoding="utf-8").partition(_BEGIN)[2].partition(_END)[0]
    for part in re.split(r"\n\n+", chapter):
        heading = re.match(r"### (\d+)\.", part)
        if heading:
            section = int(heading.group(1))
        is_block = all(line.startswith("    ") for line in part.splitlines())
        if is_block and re.match(r"    [a-z]", part) and _NOT_RUN not in before:
            found.append(Block(section, "\n".join(line[4:] for line in part.splitlines())))
        before = before if is_block else part
    return found


def lay_out(fleet: MadeFleet, directory: Path) -> None:
    """Some of the traces, where the document has them."""
    traces = [path for path in sorted(fleet.traces.iterdir()) if path.name not in fleet.truth["damaged"]]
    killed = [path for path in traces if path.name in fleet.truth["killed"]]
    some = [path for path in traces if path not in killed][:12] + killed[:1]
    (directory / "traces").mkdir()
    for number, path in enumerate(some):
        shutil.copy(str(path), str(directory / "traces" / (path.name if number else "jmassif.out.1")))


def run_all(scripts: List[str], directory: Path, address: str) -> None:
    launcher = directory / "bin" / "jmassif"
    launcher.parent.mkdir()
    launcher.write_text(f'#!/bin/sh\nexec {" ".join(map(shlex.quote, command("")[:-1]))} "$@"\n')
    launcher.chmod(0o755)
    path = f"{launcher.parent}:/usr/bin:/bin"
    for script in scripts:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=str(directory),
            env={**os.environ, "PATH": path, "DB": address, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            timeout=200,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        is_written = " -o " in script or "jmassif fleet load" in script
        assert done.stdout.strip() or is_written, f"{script}\nsays nothing"


def test_the_document_has_commands_to_be_run() -> None:
    scripts = [block.script for block in blocks()]
    for word in ("load", "diff"):
        assert any(f"jmassif fleet {word} " in script for script in scripts)
    assert len(scripts) >= 7 and not any("go tool" in script for script in scripts)


def test_on_sqlite(fleet: MadeFleet, tmp_path: Path) -> None:
    if shutil.which("sqlite3") is None:
        pytest.skip("sqlite3 is not installed")
    lay_out(fleet, tmp_path)
    run_all([block.script for block in blocks() if not block.script.startswith("psql")], tmp_path, "fleet.db")


def test_on_postgresql(fleet: MadeFleet, server: Server, tmp_path: Path) -> None:
    lay_out(fleet, tmp_path)
    scripts = [block.script for block in blocks() if 1 <= block.section <= 3 and not block.script.startswith("sqlite3")]
    assert any(script.startswith("psql") for script in scripts)
    run_all(scripts, tmp_path, server.database())
