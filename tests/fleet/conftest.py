# SPDX-License-Identifier: GPL-2.0-or-later
"""A small fleet, made once for all workers, and loaded."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, NamedTuple

import pytest

from tests.fleet.server import Server
from tests.harness import MADE, ROOT, lock
from tests.reporter.commands import command

N = 200  # 50 for each JetPack: with half of that the planted change of the total would be chance


class MadeFleet(NamedTuple):
    traces: Path
    truth: Dict[str, Any]
    database: Path  # of all of them


def jm_fleet(*arguments: object, status: int = 0, timeout: int = 300) -> "subprocess.CompletedProcess[str]":
    words = [*command("fleet"), *map(str, arguments)]
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=timeout
    )
    assert done.returncode == status, done.stderr
    return done


def _is_older(path: Path, than: Path) -> bool:
    return not path.exists() or path.stat().st_mtime < than.stat().st_mtime


@pytest.fixture(scope="session", name="fleet")
def fixture_fleet() -> MadeFleet:
    for library in ("sqlalchemy", "pandas", "scipy"):
        pytest.importorskip(library)
    directory = MADE / f"fleet-{N}"
    truth, database = directory / "truth.json", directory / "fleet.db"
    made_of = [*(ROOT / "tests" / "fleet").glob("*"), ROOT / "jmassif" / "trace" / "trace.c"]
    newest = max(made_of, key=lambda path: path.stat().st_mtime if path.is_file() else 0)
    sources = max((ROOT / "reporter/jmassif").rglob("*.py"), key=lambda path: path.stat().st_mtime)
    with lock("fleet-200"):
        if _is_older(truth, newest):
            command = [sys.executable, "-B", str(ROOT / "tests/fleet/make"), "--small", str(N), str(directory)]
            subprocess.run(command, check=True, timeout=300)
            database.unlink() if database.exists() else None
        if _is_older(database, sources):
            for path in directory.glob("fleet.db*"):
                path.unlink()
            jm_fleet("load", database, directory / "traces", status=1)
    return MadeFleet(directory / "traces", json.loads(truth.read_text()), database)


@pytest.fixture(scope="session", name="server")
def fixture_server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()
