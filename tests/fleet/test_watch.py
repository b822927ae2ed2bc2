# SPDX-License-Identifier: GPL-2.0-or-later
"""jmassif fleet watch: nothing lost and nothing twice, whatever fails meanwhile."""

import os
import signal
import sqlite3
from pathlib import Path
from typing import Any, List

import pytest

for library in ("sqlalchemy", "psycopg2"):
    pytest.importorskip(library)
from sqlalchemy import select

from jmassif.fleet import load
from jmassif.fleet.database import TRACE, opened
from tests.fleet import day
from tests.fleet.server import Server
from tests.fleet.test_load import a_trace, contents
from tests.reporter.commands import assert_one_line_error, jmassif


def live_and_compare(directory: Path, server: Server, arrivals: int, outages: int, damaged: int, kills: int) -> day.Day:
    """A day, after which the database is that of one load of all that has come."""
    lived = day.live(directory, server, a_trace(), arrivals, outages, damaged, kills)
    fresh = str(directory / "fresh.db")
    assert jmassif("fleet", "load", fresh, directory / "traces").status == 1
    assert contents(lived.address) == contents(fresh)
    traces = []
    for address in (lived.address, fresh):
        with opened(address) as connection:
            traces.append(sorted(map(tuple, connection.execute(select(TRACE)).fetchall())))
    assert traces[0] == traces[1] and len(traces[0]) == arrivals
    named = [line for line in lived.said if "the file is damaged" in line]
    assert len(named) == damaged and {line.split(": ")[1].rpartition("/")[2] for line in named} == lived.damaged
    assert sum("trying again" in line for line in lived.said) == outages
    assert sum("the database is back after" in line for line in lived.said) == outages
    assert len(lived.said) == damaged + 2 * outages + 1 and "traces added" in lived.said[-1]
    return lived


def test_an_hour_with_an_outage_a_kill_and_damaged_files(server: Server, tmp_path: Path) -> None:
    live_and_compare(tmp_path, server, 60, 1, 2, 1)


def test_a_day_at_length(server: Server, tmp_path: Path) -> None:
    lived = live_and_compare(tmp_path, server, 10_000, 5, 20, 2)
    print(lived._replace(said=[], damaged=set()))
    assert lived.kib_at_the_end < 1.05 * lived.kib_in_the_middle


def test_a_directory_that_is_moved_there_is_loaded_at_the_next_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files keep the times at which they were written elsewhere."""
    (tmp_path / "watched").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/1").write_bytes(a_trace())
    scans: List[int] = []
    all_files = load.files

    def aged(names: Any, database: str) -> Any:
        scans.append(len(scans))
        if len(scans) == 2:
            (tmp_path / "outside").rename(tmp_path / "watched/moved")
        if len(scans) == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return (file._replace(changed=file.changed - 1000) for file in all_files(names, database))

    monkeypatch.setattr(load, "files", aged)
    before = signal.getsignal(signal.SIGTERM)
    try:
        found = list(load.watch(str(tmp_path / "f.db"), [str(tmp_path / "watched")], load.Readers(1), 0.01, print))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert found == [(str(tmp_path / "watched/moved/1"), "", True)] + found[1:] and len(found) <= 3
    assert {(path, reason) for path, reason, _ in found} == {(str(tmp_path / "watched/moved/1"), "")}


def test_it_may_begin_before_its_database(tmp_path: Path) -> None:
    """It says so once, and waits; a database that is another program's ends it."""
    (tmp_path / "t").write_bytes(a_trace())
    watcher = day.Watcher(str(tmp_path / "later/f.db"), tmp_path / "t", tmp_path / "log")
    day.wait_for(lambda: "trying again" in (tmp_path / "log").read_text())
    (tmp_path / "later").mkdir()
    day.wait_for(lambda: day.n_traces(str(tmp_path / "later/f.db")) == 1)
    assert watcher.end(signal.SIGTERM) == 0
    assert ["unable to open" in watcher.said()[0], "is back" in watcher.said()[1]] == [True, True]
    assert watcher.said()[2:] == ["jmassif fleet: 1 trace added"]
    connection = sqlite3.connect(str(tmp_path / "other.db"))
    connection.execute("CREATE TABLE mine (a)")
    connection.close()
    done = jmassif("fleet", "watch", tmp_path / "other.db", tmp_path)
    assert_one_line_error("jmassif fleet", done)
    assert "has no tables of a fleet" in done.err
