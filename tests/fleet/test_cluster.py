# SPDX-License-Identifier: GPL-2.0-or-later
"""jmassif fleet load --on: the workers of a Dask cluster read the traces."""

import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Iterator, Optional

import pytest

pytest.importorskip("sqlalchemy")

from jmassif.fleet import load
from tests.fleet.cluster import Cluster
from tests.fleet.day import wait_for
from tests.fleet.test_load import a_trace, contents
from tests.reporter.commands import assert_one_line_error, command, jmassif


@pytest.fixture(name="cluster")
def fixture_cluster(tmp_path: Path) -> Iterator[Cluster]:
    if find_spec("distributed") is None:
        pytest.skip("Dask is not installed (python3-distributed)")
    cluster = Cluster(tmp_path / "cluster", 2, allowed_failures=1)
    yield cluster
    cluster.stop()


def reader_of(path: Path, cluster: Cluster) -> "Optional[subprocess.Popen[bytes]]":
    for worker in cluster.workers:
        for opened in Path(f"/proc/{worker.pid}/fd").glob("*"):
            try:
                if opened.resolve() == path.resolve():
                    return worker
            except OSError:
                pass  # closed meanwhile
    return None


def test_a_cluster_brings_the_same_rows_though_a_worker_is_killed_three_times(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace that is a pipe holds its worker until that is killed. The scheduler tries again once, the loader too, alone."""
    traces = [tmp_path / f"{number:02}.jmassif" for number in range(20)]
    for number, path in enumerate(traces):
        path.write_bytes(a_trace(pid=number + 1))
    traces[3].write_bytes(a_trace(pid=4, n_lost=600))
    traces[5].write_bytes(a_trace().replace(b"\nS ", b"\nc 1 2\nS ", 3))
    pipe = traces[8]
    whole = pipe.read_bytes()
    pipe.unlink()
    os.mkfifo(str(pipe))
    writer = os.open(str(pipe), os.O_RDWR)  # readers wait for what it writes
    words = [*command("fleet"), "load", f"--on={cluster.address}", str(tmp_path / "on.db"), *map(str, traces)]
    loading = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    for _ in range(3):
        reader = None
        while reader is None:
            assert loading.poll() is None, loading.communicate()
            time.sleep(0.05)
            reader = reader_of(pipe, cluster)
        cluster.kill_worker(reader)
    wait_for(lambda: reader_of(pipe, cluster), 200)
    os.write(writer, whole)
    os.close(writer)
    _, said = loading.communicate(timeout=200)
    assert loading.returncode == 1 and "19 traces added" in said and said.count("\n") == 2, said
    pipe.unlink()
    pipe.write_bytes(whole)
    here = jmassif("fleet", "load", "--jobs=1", tmp_path / "here.db", *traces)
    assert here.status == 1 and "19 traces added" in here.err
    assert contents(str(tmp_path / "on.db")) == contents(str(tmp_path / "here.db"))
    monkeypatch.setattr(load, "__version__", "0.0.0")
    other = jmassif("fleet", "load", f"--on={cluster.address}", tmp_path / "on.db", *traces)
    assert_one_line_error("jmassif fleet", other)
    assert "a worker has another jmassif than 0.0.0" in other.err


def test_a_cluster_that_is_none_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t").write_bytes(a_trace())

    def refused(*options: str) -> str:
        done = jmassif("fleet", "load", *options, tmp_path / "f.db", tmp_path / "t")
        assert_one_line_error("jmassif fleet", done)
        return done.err

    assert "not allowed with argument --on" in refused("--on=tcp://127.0.0.1:1", "--jobs=2")
    if find_spec("distributed") is not None:
        monkeypatch.setattr(load, "_CONNECT_SECONDS", 1)
        assert "tcp://127.0.0.1:1: no scheduler" in refused("--on=tcp://127.0.0.1:1")
        assert "no address: no scheduler" in refused("--on=no address")
    monkeypatch.setitem(sys.modules, "distributed", None)  # type: ignore[misc]
    assert "needs distributed: apt install python3-distributed" in refused("--on=tcp://127.0.0.1:1")
