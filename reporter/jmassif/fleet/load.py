# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads traces into a database: other processes read them, here or on a Dask cluster, and this process writes.

A batch is committed with the names of its files. A load that is killed loses a batch at most, and a second load reads only what
is missing. A run is identified by its id: of two traces of one run the more complete one stays.

A watch loads traces as they arrive, for months: each scan looks all files up in the database, so memory does not grow with them. A
trace without an end waits until nothing has been written to it for a while: its program may go on, or a copy of it may.
"""

import ctypes
import gc
import logging
import os
import re
import signal
import threading
import time
from collections import defaultdict, deque
from concurrent.futures import CancelledError, ProcessPoolExecutor, TimeoutError, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from fnmatch import fnmatch
from itertools import chain, islice, zip_longest
from multiprocessing import get_context
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, List, NamedTuple, Tuple, Type

from sqlalchemy import delete, select

from jmassif.fleet import FleetError, Unavailable
from jmassif.fleet.database import FIGURE, PART, RUN, SETUP, TRACE, begin, insert, opened
from jmassif.fleet.reduce import File, Read, Row, files, host_of, read, version
from jmassif.units import unicode_text
from jmassif.version import __version__

# ---- readers ----

_CONNECT_SECONDS = 30
_KILLED = "the process that read it was killed; it may need more memory than there is"
_TASK_OF_CLUSTER = 16  # traces: a task costs the scheduler 1.5 ms, whatever it reads


def _begin_worker(loader: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a signal of the terminal; the loader decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # PR_SET_PDEATHSIG: a loader that is killed leaves no process behind.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != loader:  # killed before that call
        os._exit(1)


class Readers:
    """Processes that read traces: of this machine, by default one a processor, or those of a Dask scheduler's `client`.

    A trace that takes all memory costs the process that reads it, not the load: the pool says so by the exception `killed`.
    """

    def __init__(self, n: int = 0, client: Any = None, killed: Type[Exception] = BrokenProcessPool) -> None:
        self._n, self._client, self._killed = n or os.cpu_count() or 1, client, killed
        self._pools: Dict[str, Any] = {}  # by host; "": all that the loader can reach

    def hosts(self) -> Dict[str, str]:
        """Return the hosts of the cluster, with a worker of each."""
        from distributed.comm import get_address_host

        return {get_address_host(worker): worker for worker in self._client.run(version)}

    def find(self, name: str) -> Iterator[File]:
        """All files of a directory, or of HOST:DIR, on each host that matches in turn."""
        pattern, colon, directory = name.partition(":")
        if not (self._client and colon and "/" not in pattern):
            yield from files(name)
            return
        hosts = self.hosts()
        chosen = {worker: host for host, worker in hosts.items() if fnmatch(host, pattern)}
        if not chosen:
            raise FleetError(f"{name}: no worker is on such a host; there are {', '.join(sorted(hosts))}")
        found = self._client.run(lambda: list(files(directory)), workers=list(chosen))
        of_hosts = ([each._replace(path=f"{chosen[worker]}:{each.path}") for each in found[worker]] for worker in found)
        yield from filter(None, chain.from_iterable(zip_longest(*of_hosts)))

    def find_all(self, names: Iterable[str], database: str) -> Iterator[File]:
        """The named traces and all files in directories. The database may lie among these."""
        # SQLite keeps files beside a database while it is written to.
        own = {os.path.realpath(database) + end for end in ("", "-journal", "-wal", "-shm")}
        for name in names:
            for file in self.find(name):
                if os.path.realpath(file.path) not in own:
                    yield file
                elif os.path.realpath(name) in own:
                    yield file._replace(reason="is the database, and no trace")

    def _tasks(self, paths: List[str]) -> Iterator[List[str]]:
        """Some paths of one host each: few enough for all workers to have a task."""
        together = min(_TASK_OF_CLUSTER if self._client else 1, 1 + len(paths) // 20)
        by_host: Dict[str, List[str]] = defaultdict(list)
        for path in paths:
            by_host[host_of(path)].append(path)
            if len(by_host[host_of(path)]) == together:
                yield by_host.pop(host_of(path))
        yield from by_host.values()

    def _submit(self, task: List[str]) -> Any:
        host = host_of(task[0])
        try:
            return self._pools[host].submit(read, task)
        except (KeyError, self._killed):  # the first one, or the first one since a process was killed
            if self._client:  # not pure: a second reading of a trace is not the result of the first
                self._pools[host] = self._client.get_executor(pure=False, workers=[host] if host else None)
            else:
                self._pools[host] = ProcessPoolExecutor(self._n, get_context("fork"), _begin_worker, (os.getpid(),))
            return self._pools[host].submit(read, task)

    def _result(self, task: List[str], future: Any) -> List[Read]:
        while True:
            try:
                return list(future.result(_CONNECT_SECONDS))
            except TimeoutError:
                host = host_of(task[0])
                if host and host not in self.hosts():
                    raise Unavailable(f"no worker of {host} is left")

    def read(self, paths: List[str]) -> Iterator[Tuple[str, Read]]:
        """Each path with its record. Few tasks run ahead of a slow database."""
        tasks, most = self._tasks(paths), 64 if self._client else 8 * self._n
        waiting: Deque[Tuple[List[str], Any]] = deque()
        try:
            while True:
                waiting.extend((task, self._submit(task)) for task in islice(tasks, most - len(waiting)))
                if not waiting:
                    return
                task, future = waiting[0]
                try:
                    yield from zip(task, self._result(task, future))
                except self._killed:  # by one of these traces, or by one that was read at the same time
                    wait([each for _, each in waiting])
                    for path in task:
                        try:
                            yield path, self._result([path], self._submit([path]))[0]
                        except self._killed:
                            yield path, Read({}, _KILLED)
                waiting.popleft()
        finally:
            for _, future in waiting:
                future.cancel()
            for pool in self._pools.values():
                pool.shutdown()
            self._pools.clear()


@contextmanager
def cluster(address: str) -> Iterator[Readers]:
    """The workers of a Dask scheduler. Raises FleetError, also for errors inside."""
    from distributed import Client, KilledWorker

    logging.disable(logging.CRITICAL)  # of what goes on in the cluster
    other = f"{address}: a worker has another jmassif than {__version__}"
    try:
        with Client(address, timeout=_CONNECT_SECONDS, set_as_default=False) as client:
            client.wait_for_workers(1, _CONNECT_SECONDS)
            if set(map(str, client.run(version, on_error="return").values())) != {__version__}:
                raise FleetError(other)
            yield Readers(client=client, killed=KilledWorker)
    except ImportError as error:  # on a worker that came later
        raise FleetError(f"{other}: {error}")
    except (CancelledError, OSError, TimeoutError, ValueError) as error:
        raise Unavailable(f"{address}: no scheduler with a worker answers ({type(error).__name__})")


# ---- load ----

_BATCH = 25  # traces in a transaction
_LOOK_UP = 5000  # paths that are looked up at once


Outcome = Tuple[str, str, bool]  # path; why it is refused, or ""; False: the database had it, or refused it before


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


def load(connection: Any, found: Iterable[File], readers: Readers) -> Iterator[Outcome]:
    """Add the runs of all traces that are not loaded yet; each outcome follows its commit."""
    left = iter(found)
    for some in iter(lambda: {file.path: file for file in islice(left, _LOOK_UP)}, {}):
        names = list(map(unicode_text, some))
        traces = connection.execute(select(TRACE).where(TRACE.c.path.in_(names))).fetchall()
        connection.commit()
        known = {(row.path, row.size, row.mtime_ns): row.reason or "" for row in traces}
        wanted: Dict[str, Row] = {}
        for name, file in zip(names, some.values()):
            key = name, file.size, file.mtime_ns
            if file.reason or key in known:
                yield file.path, file.reason or known[key], bool(file.reason)
            else:
                wanted[file.path] = {"path": name, "size": file.size, "mtime_ns": file.mtime_ns}
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


# ---- watch ----

_MOST_NAMED = 10_000


def _is_ready(file: File, settle: float) -> bool:
    """It is complete, or was left alone for some seconds."""
    if file.reason or time.time() - file.changed >= settle:
        return True
    try:
        with open(file.path, "rb") as stream:
            stream.seek(max(0, file.size - 100))
            return bool(re.search(rb"\nZ [^\n]*\n\Z", stream.read()))
    except OSError as error:
        return not isinstance(error, FileNotFoundError)  # to be refused with the reason


def watch(
    database: str, names: List[str], readers: Readers, every: float, settle: float, warn: Callable[[str], Any]
) -> int:
    """Load what arrives until SIGTERM; the number of traces loaded. Raises FleetError if the database is not there at first."""
    with opened(database, may_be_new=True):
        pass
    has_ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: has_ended.set())
    named: Dict[str, str] = {}
    n_loaded, gone = 0, 0.0
    while True:
        begin = time.monotonic()
        try:
            with opened(database, may_be_new=True) as connection:
                if gone:
                    warn(f"the database is back after {begin - gone:.0f} s")
                    gone = 0.0
                ready = (file for file in readers.find_all(names, database) if _is_ready(file, settle))
                for path, reason, is_new in load(connection, ready, readers):
                    n_loaded += is_new and not reason
                    if is_new and reason and named.get(path) != reason and len(named) < _MOST_NAMED:
                        named[path] = reason
                        warn(f"{path}: {reason}")
                    if has_ended.is_set():
                        return n_loaded
        except Unavailable as error:
            if not gone:
                warn(f"{error}; trying again")
                gone = begin
        gc.collect()
        if has_ended.wait(every):
            return n_loaded
