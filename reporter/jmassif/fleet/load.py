# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads traces into a database: other processes read them, here or on a Dask cluster, and this process writes.

A batch is committed with the names of its files. A load that is killed loses a batch at most, and a second load reads only what
is missing. A run is identified by its id: of two traces of one run the more complete one stays.

A watch loads traces as they arrive, for months: each scan looks all files up in the database, so memory does not grow with them.
"""

import ctypes
import gc
import logging
import os
import signal
import threading
import time
from collections import deque
from concurrent.futures import CancelledError, ProcessPoolExecutor, TimeoutError, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, List, Tuple, Type

from sqlalchemy import delete, select

from jmassif.fleet import FleetError, Unavailable, reduce
from jmassif.fleet.database import FIGURE, PART, RUN, SETUP, TRACE, begin, insert, opened
from jmassif.fleet.reduce import File, Read, Row, files, read
from jmassif.units import unicode_text
from jmassif.version import __version__

# ---- readers ----

_CONNECT_SECONDS = 30
_KILLED = "the process that read it was killed; it may need more memory than there is"
_MOST_OF_TASK = 16  # traces: a task costs Dask's scheduler 1.5 ms, whatever it reads
_AHEAD = 4  # tasks for each process


def _begin_worker(loader: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a signal of the terminal; the loader decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # PR_SET_PDEATHSIG: a loader that is killed leaves no process behind.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != loader:  # killed before that call
        os._exit(1)


class Readers:
    """Processes that read traces: `n` of this machine, by default one a processor, or those of a Dask scheduler's `client`.

    A trace that takes all memory costs the process that reads it, not the load: the pool says so by the exception `killed`.
    """

    _pool: Any

    def __init__(self, n: int = 0, client: Any = None, killed: Type[Exception] = BrokenProcessPool) -> None:
        self._n, self._client, self._killed = n or os.cpu_count() or 1, client, killed

    def _new_pool(self) -> Any:
        if self._client:  # not pure: a second reading of a trace is not the result of the first
            return self._client.get_executor(pure=False)
        return ProcessPoolExecutor(self._n, get_context("fork"), _begin_worker, (os.getpid(),))

    def _submit(self, paths: List[str]) -> Any:
        try:
            return self._pool.submit(read, paths)
        except self._killed:  # a process, some time ago
            self._pool = self._new_pool()
            return self._pool.submit(read, paths)

    def read(self, paths: List[str]) -> Iterator[Tuple[str, Read]]:
        """Each path with its record. Few tasks run ahead of a slow database."""
        together = min(_MOST_OF_TASK, 1 + len(paths) // 20)  # few enough for all processes to have a task
        tasks = (paths[at : at + together] for at in range(0, len(paths), together))
        waiting: Deque[Tuple[List[str], Any]] = deque()
        self._pool = self._new_pool()
        try:
            while True:
                waiting.extend((task, self._submit(task)) for task in islice(tasks, _AHEAD * self._n - len(waiting)))
                if not waiting:
                    return
                task, future = waiting[0]
                try:
                    yield from zip(task, future.result())
                except self._killed:  # by one of these traces, or by one that was read at the same time
                    wait([each for _, each in waiting])
                    for path in task:
                        try:
                            yield path, self._submit([path]).result()[0]
                        except self._killed:
                            yield path, Read({}, _KILLED)
                waiting.popleft()
        finally:
            for _, future in waiting:
                future.cancel()
            self._pool.shutdown()


@contextmanager
def cluster(address: str) -> Iterator[Readers]:
    """The workers of a Dask scheduler. Raises FleetError, also for errors inside."""
    from distributed import Client, KilledWorker

    logging.disable(logging.CRITICAL)  # of what goes on in the cluster
    try:
        with Client(address, timeout=_CONNECT_SECONDS, set_as_default=False) as client:
            client.wait_for_workers(1, _CONNECT_SECONDS)
            versions = client.run(lambda: reduce.__version__, on_error="return")
            if set(map(str, versions.values())) != {__version__}:
                raise FleetError(f"{address}: a worker has another jmassif than {__version__}")
            yield Readers(max(16, len(versions)), client, KilledWorker)  # more workers may come
    except (CancelledError, ImportError, OSError, TimeoutError, ValueError) as error:
        raise Unavailable(f"{address}: no scheduler with a worker answers ({type(error).__name__})")


# ---- load ----

_BATCH = 25  # traces in a transaction
_LOOK_UP = 5000  # paths that are looked up at once


def _add(connection: Any, rows: Dict[str, List[Row]]) -> None:
    """Unless the database has the run more complete."""
    (run,) = rows["run"]
    there = connection.execute(select(RUN.c.is_complete, RUN.c.end_time).where(RUN.c.run == run["run"])).first()
    if there and tuple(there) > (run["is_complete"], run["end_time"]):
        return
    for table in (FIGURE, RUN):
        connection.execute(delete(table).where(table.c.run == run["run"]))
    for table in (RUN, SETUP, PART, FIGURE):
        insert(connection, table, rows[table.name])


def load(connection: Any, found: Iterable[File], readers: Readers) -> Iterator[Tuple[str, str, bool]]:
    """Add the runs of all traces that are not loaded yet. Each path follows its commit, with the reason if it is refused.

    False: the database had it, or refused it before.
    """
    left = iter(found)
    for some in iter(lambda: {file.path: file for file in islice(left, _LOOK_UP)}, {}):
        traces = connection.execute(select(TRACE).where(TRACE.c.path.in_(list(map(unicode_text, some))))).fetchall()
        connection.commit()
        known: Dict[Any, str] = {(row.path, row.size, row.mtime_ns): row.reason or "" for row in traces}
        wanted: Dict[str, Row] = {}
        for path, file in some.items():
            row: Row = {"path": unicode_text(path), "size": file.size, "mtime_ns": file.mtime_ns}
            reason = file.reason or known.get(tuple(row.values()))
            if reason is None:
                wanted[path] = row
            else:
                yield path, reason, bool(file.reason)
        records = readers.read(list(wanted))
        for batch in iter(lambda: list(islice(records, _BATCH)), []):
            begin(connection)
            for path, record in batch:
                connection.execute(delete(TRACE).where(TRACE.c.path == wanted[path]["path"]))
                if not record.reason:
                    _add(connection, record.rows)
                if record.is_of_content:
                    run = None if record.reason else record.rows["run"][0]["run"]
                    insert(connection, TRACE, [{**wanted[path], "run": run, "reason": record.reason or None}])
            connection.commit()
            yield from ((path, record.reason, True) for path, record in batch)


def watch(
    database: str, names: List[str], readers: Readers, every: float, warn: Callable[[str], Any]
) -> Iterator[Tuple[str, str, bool]]:
    """Load what was left alone for some seconds, scan after scan until SIGTERM, which ends it after a batch."""
    has_ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: has_ended.set())
    gone = pause = 0.0
    while not has_ended.wait(pause):
        begin, pause = time.monotonic(), every
        try:
            with opened(database, may_be_new=True) as connection:
                if gone:
                    warn(f"the database is back after {begin - gone:.0f} s")
                    gone = 0.0
                still = (file for file in files(names, database) if time.time() - file.changed >= every)
                for outcome in load(connection, still, readers):
                    yield outcome
                    if has_ended.is_set():
                        break
        except Unavailable as error:
            if not gone:
                warn(f"{error}; trying again")
                gone = begin
        gc.collect()
