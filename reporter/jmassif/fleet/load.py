# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads traces into a database: other processes read them, here or on a Dask cluster, and this process writes.

A batch is committed with the names of its files. A load that is killed loses a batch at most, and a second load reads only what
is missing. A run is identified by its id: of two traces of one run the more complete one stays.
"""

import ctypes
import logging
import os
import signal
from collections import deque
from concurrent.futures import CancelledError, Executor, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, List, NamedTuple, Tuple, Type, Union

from sqlalchemy import delete, select

from jmassif.fleet import FleetError, Unavailable
from jmassif.fleet.database import FIGURE, PART, RUN, SETUP, TRACE, begin, insert
from jmassif.fleet.reduce import Record, Refused, Row, read, version
from jmassif.units import unicode_text
from jmassif.version import __version__

# ---- readers ----
# A trace that takes all memory costs the process that reads it, not the load.


class Readers(NamedTuple):
    pool: Callable[[], Any]  # an Executor of concurrent.futures
    most: int  # traces that are read, or whose records wait for a slow database
    killed: Type[Exception]  # by which a pool says that a process ended


def _begin_worker(loader: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a signal of the terminal; the loader decides
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # PR_SET_PDEATHSIG: a loader that is killed leaves no process behind.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != loader:  # killed before that call
        os._exit(1)


def processes(n: int) -> Readers:
    """On this machine, by default one a processor."""
    n = n or os.cpu_count() or 1

    def pool() -> Executor:
        return ProcessPoolExecutor(n, get_context("fork"), _begin_worker, (os.getpid(),))

    return Readers(pool, 8 * n, BrokenProcessPool)


_MOST_ON_CLUSTER = 1000
_CONNECT_SECONDS = 30


@contextmanager
def cluster(address: str) -> Iterator[Readers]:
    """The workers of a Dask scheduler, which find the traces under the same paths. Raises FleetError, also for errors inside."""
    from distributed import Client, KilledWorker

    logging.disable(logging.CRITICAL)  # of what goes on in the cluster
    try:
        with Client(address, timeout=_CONNECT_SECONDS, set_as_default=False) as client:
            client.wait_for_workers(1, _CONNECT_SECONDS)
            others = set(map(str, client.run(version, on_error="return").values())) - {__version__}
            if others:
                raise FleetError(f"{address}: a worker has another jmassif than {__version__}: {others.pop()}")
            # Not pure: a second reading of a trace is not the result of the first.
            yield Readers(lambda: client.get_executor(pure=False), _MOST_ON_CLUSTER, KilledWorker)
    except ImportError as error:  # on a worker that came later
        raise FleetError(f"{address}: a worker has another jmassif than {__version__}: {error}")
    except (CancelledError, OSError, TimeoutError, ValueError) as error:
        raise Unavailable(f"{address}: no scheduler with a worker answers ({type(error).__name__})")


_Read = Union[Record, Refused]


def read_all(paths: Iterable[str], readers: Readers) -> Iterator[_Read]:
    """In the order of the paths."""
    left, pool = iter(paths), readers.pool()
    waiting: Deque[Tuple[str, Any]] = deque()  # paths, and futures of what is read

    def submit(path: str) -> Any:
        nonlocal pool
        try:
            return pool.submit(read, path)
        except readers.killed:
            pool = readers.pool()
            return pool.submit(read, path)

    try:
        while True:
            waiting.extend((path, submit(path)) for path in islice(left, readers.most - len(waiting)))
            if not waiting:
                return
            path, future = waiting.popleft()
            try:
                found = future.result()
            except readers.killed:  # by this trace, or by one that was read at the same time: read it alone
                wait([each for _, each in waiting])
                try:
                    found = submit(path).result()
                except readers.killed:
                    found = Refused("the process that read it was killed; it may need more memory than there is")
            yield found
    finally:
        for _, future in waiting:
            future.cancel()
        pool.shutdown()


# ---- load ----

_BATCH = 25  # traces in a transaction
_LOOK_UP = 5000  # paths that are looked up at once


class Outcome(NamedTuple):
    path: str
    reason: str  # why it is refused; "" if it is loaded
    is_new: bool  # False: the database had it, or refused it before


def _add(connection: Any, record: Record) -> None:
    """Unless the database has the run more complete."""
    number = record.run["run"]
    there = connection.execute(select(RUN.c.is_complete, RUN.c.end_time).where(RUN.c.run == number)).first()
    if there and tuple(there) > (record.run["is_complete"], record.run["end_time"]):
        return
    for table in (FIGURE, RUN):
        connection.execute(delete(table).where(table.c.run == number))
    for table, rows in zip((RUN, SETUP, PART, FIGURE), ([record.run], *record[1:])):
        insert(connection, table, rows)


def load(connection: Any, paths: Iterable[str], readers: Readers) -> Iterator[Outcome]:
    """Add the runs of all traces that are not loaded yet; each outcome follows its commit."""
    left = iter(paths)
    for some in iter(lambda: list(islice(left, _LOOK_UP)), []):
        columns = (TRACE.c.path, TRACE.c.size, TRACE.c.mtime_ns, TRACE.c.reason)
        traces = connection.execute(select(*columns).where(TRACE.c.path.in_(list(map(unicode_text, some))))).fetchall()
        connection.commit()
        known = {tuple(key): reason or "" for *key, reason in traces}
        wanted: Dict[str, Row] = {}
        for path in some:
            try:
                status = os.stat(path)
            except OSError as error:
                yield Outcome(path, f"cannot be read: {error.strerror}", True)
                continue
            row: Row = {"path": unicode_text(path), "size": status.st_size, "mtime_ns": status.st_mtime_ns}
            if tuple(row.values()) in known:
                yield Outcome(path, known[tuple(row.values())], False)
            else:
                wanted[path] = row
        found = zip(wanted.items(), read_all(wanted, readers))
        for batch in iter(lambda: list(islice(found, _BATCH)), []):
            begin(connection)
            done: List[Outcome] = []
            for (path, row), record in batch:
                connection.execute(delete(TRACE).where(TRACE.c.path == row["path"]))
                if isinstance(record, Record):
                    _add(connection, record)
                    insert(connection, TRACE, [{**row, "run": record.run["run"], "reason": None}])
                elif record.is_of_content:
                    insert(connection, TRACE, [{**row, "run": None, "reason": record.reason}])
                done.append(Outcome(path, "" if isinstance(record, Record) else record.reason, True))
            connection.commit()
            yield from done
