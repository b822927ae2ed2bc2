# SPDX-License-Identifier: GPL-2.0-or-later
"""jmassif fleet load: each run once, whatever happens meanwhile, and what cannot be read is named and passed over."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, List, Tuple

import pytest

pytest.importorskip("sqlalchemy")
from sqlalchemy import func, select

from jmassif.fleet import FleetError, load, reduce
from jmassif.fleet.database import FIGURE, PART, RUN, SETUP, opened
from jmassif.reader.tokens import TraceError
from tests.fleet.conftest import MadeFleet, jm_fleet
from tests.fleet.server import Server
from tests.harness import PYTHON, ROOT
from tests.reporter.commands import assert_one_line_error, command, jmassif
from tests.reporter.traces import Trace, small_training_run


def contents(address: str) -> List[List[Tuple[Any, ...]]]:
    with opened(str(address)) as connection:
        tables = (RUN, FIGURE, PART, SETUP)
        return [sorted(map(tuple, connection.execute(select(table)).fetchall()), key=repr) for table in tables]


def n_runs(address: str) -> int:
    """0 where there is no fleet yet."""
    try:
        with opened(str(address)) as connection:
            return int(connection.execute(select(func.count()).select_from(RUN)).scalar())
    except FleetError:
        return 0


def a_trace(pid: int = 4711, n_lost: int = 0) -> bytes:
    trace = small_training_run()
    trace.manifest("pid", str(pid))
    trace.manifest("host", "nano")
    trace.manifest("start-unix-ms", "1700000000000")
    trace.lines.sort(key=lambda line: not line.startswith(("jmassif-trace", "m ")))
    whole = trace.bytes()
    return whole[: len(whole) - n_lost]


# ---- a fleet -----------------------------------------------------------------------------------------


def test_each_run_is_there_and_the_damaged_trace_is_named(fleet: MadeFleet) -> None:
    again = jm_fleet("load", fleet.database, fleet.traces, status=1)
    (damaged,) = fleet.truth["damaged"]
    assert again.stderr.count(damaged) == 1 and "the file is damaged" in again.stderr
    assert f"0 traces added" in again.stderr and "199 there already, 1 refused" in again.stderr
    runs = {Path(file).name: complete for file, complete in rows(fleet.database, "SELECT file, is_complete FROM run")}
    assert len(runs) == 199 and damaged not in runs
    assert sorted(file for file, complete in runs.items() if not complete) == fleet.truth["killed"]


def rows(database: Path, sql: str) -> List[Any]:
    connection = sqlite3.connect(str(database))
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_what_is_kept_adds_up(fleet: MadeFleet) -> None:
    """Owners, libraries and Python lines are the total, side by side, in every run."""
    sums = "SELECT run, view, sum(host), sum(device) FROM figure JOIN part USING (part) GROUP BY 1, 2"
    found = {(run, view): (host, device) for run, view, host, device in rows(fleet.database, sums)}
    totals = {run: of for (run, view), of in found.items() if view == "total"}
    assert len(totals) > 190
    for run, total in totals.items():
        assert total == found[run, "owner"] == found[run, "library"] == found[run, "python-line"]
    peaks = dict(rows(fleet.database, "SELECT run, peak_total FROM run WHERE is_complete"))
    assert peaks == {run: sum(totals[run]) for run in peaks}


def start_load(address: str, traces: List[Path]) -> "subprocess.Popen[bytes]":
    words = [*command("fleet"), "load", "--jobs=2", address, *map(str, traces)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def processes_of(session: int) -> List[int]:
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.getsid(int(name)) == session and "Z" not in state_of(name):
                found.append(int(name))
        except OSError:
            pass
    return found


def state_of(pid: str) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def kill_and_start_again(address: str, fleet: MadeFleet, directory: Path) -> None:
    whole = [path for path in fleet.traces.iterdir() if path.name not in fleet.truth["damaged"]]
    traces = sorted(whole, key=lambda path: (path.stat().st_size, path.name))[:40]
    (directory / "damaged").write_bytes(b"jmassif-trace 4\nwhat\n")
    traces.insert(20, directory / "damaged")
    for wanted in (0, 1, 15):  # runs that are there when it is killed, at least
        loading = start_load(address, traces)
        deadline = time.monotonic() + 200
        if not wanted:
            time.sleep(0.3)
        while wanted and loading.poll() is None and n_runs(address) < wanted:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        loading.send_signal(signal.SIGKILL)
        loading.wait()
        while processes_of(loading.pid):  # readers whose input has ended
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert "1 refused" in jm_fleet("load", address, *traces, status=1).stderr
    jm_fleet("load", directory / "fresh.db", *traces, status=1)
    assert n_runs(address) == 40 and contents(address) == contents(str(directory / "fresh.db"))
    words = "--group-by=jetpack", "--format=json"
    compared = [jm_fleet("diff", of, *words).stdout for of in (address, directory / "fresh.db")]
    assert compared[0] == compared[1]


def test_a_load_that_is_killed_goes_on_where_it_was(fleet: MadeFleet, tmp_path: Path) -> None:
    kill_and_start_again(str(tmp_path / "fleet.db"), fleet, tmp_path)


def test_so_does_one_into_postgresql_which_then_has_the_same(fleet: MadeFleet, server: Server, tmp_path: Path) -> None:
    kill_and_start_again(server.database(), fleet, tmp_path)


# ---- single traces, on either database ----------------------------------------------------------------


@pytest.fixture(name="address", params=["sqlite", "postgresql"])
def fixture_address(request: Any, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "fleet.db")
    return str(request.getfixturevalue("server").database())


def test_a_trace_that_has_grown_replaces_what_was_known_of_its_run(address: str, tmp_path: Path) -> None:
    path = tmp_path / "jmassif.out.1"
    path.write_bytes(a_trace(n_lost=600))
    assert jmassif("fleet", "load", address, path).status == 0
    before = contents(address)
    path.write_bytes(a_trace())
    assert jmassif("fleet", "load", address, path).status == 0
    now = contents(address)
    assert n_runs(address) == 1 and now != before
    fresh = tmp_path / "fresh.db"
    jmassif("fleet", "load", fresh, path)
    assert now[:2] == contents(str(fresh))[:2]


def test_a_copy_and_a_part_of_a_trace_add_nothing(address: str, tmp_path: Path) -> None:
    whole, copy, part = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    whole.write_bytes(a_trace())
    assert jmassif("fleet", "load", address, whole).status == 0
    before = contents(address)
    shutil.copy(str(whole), str(copy))
    part.write_bytes(a_trace(n_lost=600))
    assert jmassif("fleet", "load", address, part).status == 0
    assert contents(address) == before
    assert jmassif("fleet", "load", address, copy, part, whole).status == 0
    assert n_runs(address) == 1 and contents(address)[1:] == before[1:]


def test_a_program_that_was_killed_before_it_had_a_peak_is_a_run(address: str, tmp_path: Path) -> None:
    trace = Trace(command="a", pid="1", host="h", start_unix_ms="5", time_unit="ms")
    trace.snapshot(0, "start")
    (tmp_path / "t").write_bytes(trace.bytes())
    done = jmassif("fleet", "load", address, tmp_path / "t")
    assert done.status == 0 and n_runs(address) == 1, done.err


def test_hostile_texts_come_back_as_they_were(address: str, tmp_path: Path) -> None:
    board = "a\tb\\c\\N \\x41 'quoted' \u202e"
    trace = Trace(command="x", pid="1", host="h\\x00", start_unix_ms="5", time_unit="ms", board=board)
    (tmp_path / "t").write_bytes(trace.bytes())
    assert jmassif("fleet", "load", address, tmp_path / "t").status == 0
    with opened(address) as connection:
        assert connection.execute(select(RUN.c.board)).scalar() == board


def test_files_that_are_none_are_refused_one_by_one(address: str, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/good").write_bytes(a_trace())
    (tmp_path / "d/other").write_bytes(b"desc: x\n")
    (tmp_path / "d/empty").write_bytes(b"")
    done = jmassif("fleet", "load", address, tmp_path / "d", tmp_path / "missing")
    assert done.status == 1 and n_runs(address) == 1
    for file, reason in (("other", "is a massif file"), ("empty", "is empty"), ("missing", "No such file")):
        (line,) = [line for line in done.err.splitlines() if f"/{file}: " in line]
        assert reason in line
    again = jmassif("fleet", "load", address, tmp_path / "d")
    assert again.status == 1 and "is a massif file" in again.err and "1 there already" in again.err


def test_a_directory_that_cannot_be_read_is_passed_over(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d/lost+found").mkdir(parents=True)
    (tmp_path / "d/good").write_bytes(a_trace())
    scandir = os.scandir

    def of_others(path: Any) -> Any:  # that is denied to root too
        if str(path).endswith("lost+found"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", of_others)
    done = jmassif("fleet", "load", address, tmp_path / "d")
    assert done.status == 1 and n_runs(address) == 1
    assert "/lost+found: cannot be read: Permission denied" in done.err and "1 refused" in done.err


def test_the_database_may_lie_among_the_traces_and_is_none_of_them(tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(a_trace())
    (tmp_path / "linked.db").symlink_to(tmp_path / "runs.db")
    for name in ("runs.db", "runs.db", "linked.db"):
        done = jmassif("fleet", "load", tmp_path / name, tmp_path)
        assert done.status == 0, done.err
    assert n_runs(str(tmp_path / "runs.db")) == 1
    for name in ("runs.db", "linked.db"):
        done = jmassif("fleet", "load", tmp_path / "runs.db", tmp_path / name, tmp_path / "good")
        assert done.status == 1 and f"/{name}: is not a jmassif trace: " in done.err, done.err
        assert "1 there already, 1 refused" in done.err and done.err.count("\n") == 2


# ---- what goes wrong ---------------------------------------------------------------------------------


def refused(*arguments: object) -> str:
    done = jmassif("fleet", *arguments)
    assert_one_line_error("jmassif fleet", done)
    return done.err


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    connection = sqlite3.connect(str(other))
    connection.execute("CREATE TABLE mine (a)")
    connection.close()
    (tmp_path / "t").write_bytes(a_trace())
    assert "has no tables of a fleet in version" in refused("load", other, tmp_path / "t")
    (tmp_path / "text").write_text("no database at all, but long enough to look at it\n" * 100)
    assert "not a database" in refused("load", tmp_path / "text", tmp_path / "t")
    assert "no such file" in refused("diff", tmp_path / "missing.db", "--group-by=host")
    assert not (tmp_path / "missing.db").exists()
    assert "there is no such run" in refused("diff", made_empty(tmp_path), "--group-by=host")


def made_empty(directory: Path) -> Path:
    with opened(str(directory / "empty.db"), may_be_new=True):
        return directory / "empty.db"


def test_what_is_compared_may_be_read_alone(fleet: MadeFleet, tmp_path: Path) -> None:
    """The file is all there is, and nothing is written beside it."""
    copy = tmp_path / "place" / "fleet.db"
    copy.parent.mkdir()
    shutil.copy(str(fleet.database), str(copy))
    copy.chmod(0o444)
    copy.parent.chmod(0o555)
    try:
        done = jmassif("fleet", "diff", copy, "--group-by=jetpack")
        assert done.status == 0 and "cudnn" in done.out, done.err
        assert os.listdir(str(copy.parent)) == ["fleet.db"]
    finally:
        copy.parent.chmod(0o755)


def test_a_database_of_another_version_is_refused(tmp_path: Path) -> None:
    path = made_empty(tmp_path)
    connection = sqlite3.connect(str(path))
    connection.execute("UPDATE fleet SET version = 99")
    connection.commit()
    connection.close()
    assert "has no tables of a fleet in version" in refused("diff", path, "--group-by=host")


def test_without_psycopg2_postgresql_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg2", None)  # type: ignore[misc]
    message = refused("diff", "postgresql://user:secret@nowhere/fleet", "--group-by=host")
    assert "install python3-psycopg2" in message and "secret" not in message


def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("psycopg2")
    address = f"postgresql://user:secret@/fleet?host={tmp_path}&password=secret"
    for scheme in ("postgresql", "postgres"):
        message = refused("diff", address.replace("postgresql", scheme), "--group-by=host")
        assert str(tmp_path) in message and "secret" not in message
    assert "is not like postgresql://" in refused("diff", "postgresql://host:port/fleet", "--group-by=host")


def test_sqlite_needs_no_psycopg2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg2", None)  # type: ignore[misc]
    (tmp_path / "t").write_bytes(a_trace())
    assert jmassif("fleet", "load", tmp_path / "f.db", tmp_path / "t").status == 0


def test_a_reader_that_dies_costs_its_trace_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the kernel kills the one that takes too much memory."""
    for name in "abcde":
        (tmp_path / name).write_bytes(a_trace(pid=ord(name)))
    load_file = reduce.load_file

    def mortal(path: str, has_lines: bool = True) -> Any:
        if path.endswith(("b", "d")):
            os.kill(os.getpid(), signal.SIGKILL)
        return load_file(path)

    monkeypatch.setattr(reduce, "load_file", mortal)
    done = jmassif("fleet", "load", "--jobs=2", tmp_path / "f.db", *(tmp_path / name for name in "abcde"))
    assert done.status == 1 and n_runs(str(tmp_path / "f.db")) == 3, done.err
    assert "/b: the process that read it was killed" in done.err and "2 refused" in done.err


def test_few_records_wait_for_a_slow_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading stops while nothing is written, and goes on with it."""

    def quick(path: str, has_lines: bool = True) -> Any:
        (tmp_path / path).touch()
        raise TraceError("none")

    monkeypatch.setattr(reduce, "load_file", quick)
    records = load.Readers(2).read(list(map(str, range(500))))
    next(records)
    time.sleep(0.3)
    assert 1 <= len(os.listdir(str(tmp_path))) < 150
    assert [record for _, record in records] == [reduce.Read({}, "none")] * 499
    assert len(os.listdir(str(tmp_path))) == 500


def test_without_its_libraries_it_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t").write_bytes(a_trace())
    assert jmassif("fleet", "load", tmp_path / "f.db", tmp_path / "t").status == 0
    for name in [name for name in sys.modules if name.startswith("jmassif.fleet.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pandas", None)  # type: ignore[misc]
    assert "needs pandas: apt install python3-pandas" in refused("diff", tmp_path / "f.db", "--group-by=host")
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)  # type: ignore[misc]
    assert "needs sqlalchemy" in refused("load", tmp_path / "g.db", tmp_path / "t")


def test_a_load_imports_neither_pandas_nor_scipy(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(a_trace())
    names = "import sys; sys.stderr.write(' '.join(sys.modules))"
    start = f"import atexit; atexit.register(lambda: exec({names!r})); {command('fleet')[-2]}"
    words = [sys.executable, "-B", "-c", start, "fleet", "load", str(tmp_path / "f.db"), str(tmp_path / "t")]
    done = subprocess.run(words, stderr=subprocess.PIPE, universal_newlines=True, timeout=60)
    assert "sqlalchemy" in done.stderr and "pandas" not in done.stderr and "scipy" not in done.stderr


def test_a_reader_whose_loader_was_killed_before_it_began_ends() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()  # its number is no parent's
    begin = f"from jmassif.fleet.load import _begin_worker; _begin_worker({ended.pid}); print('goes on')"
    done = subprocess.run(
        [PYTHON, "-B", "-c", begin], env={**os.environ, "PYTHONPATH": str(ROOT / "reporter")}, stdout=subprocess.PIPE
    )
    assert (done.returncode, done.stdout) == (1, b"")
