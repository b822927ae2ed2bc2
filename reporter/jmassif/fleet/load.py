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
from concurrent.futures import CancelledError, Executor, ProcessPoolExecutor, TimeoutError, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from fnmatch import fnmatch
from itertools import chain, islice, zip_longest
from multiprocessing import get_context
from typing import Any, Deque, Dict, Iterable, Iterator, List, NamedTuple, Tuple, Type, Union

from sqlalchemy import delete, select

from jmassif.fleet import FleetError, Unavailable
from jmassif.fleet.database import FIGURE, PART, RUN, SETUP, TRACE, begin, insert
from jmassif.fleet.reduce import Record, Refuse, Refused, Row, Status, host_of, listed, read, status_of, version
from jmassif.units import unicode_text
from jmassif.version import __version__

# ---- readers ----
# A trace that takes all memory costs the process that reads it, not the load.

_Read = Union[Record, Refused]


def _begin_worker(loader: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a signal of the terminal; the loader decides
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # PR_SET_PDEATHSIG: a loader that is killed leaves no process behind.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != loader:  # killed before that call
        os._exit(1)


class Processes:
    """Readers on this machine, by default one a processor."""

    killed: Type[Exception] = BrokenProcessPool  # by which a pool says that a process ended
    together = 1  # traces in a task, at most

    def __init__(self, n: int) -> None:
        self._n = n or os.cpu_count() or 1
        self.most = 8 * self._n  # tasks that are read, or whose records wait for a slow database

    def pool(self, _host: str) -> Executor:
        return ProcessPoolExecutor(self._n, get_context("fork"), _begin_worker, (os.getpid(),))

    def status(self, path: str) -> Status:
        return status_of(path)

    def has(self, host: str) -> bool:
        """Somebody is left who can read there."""
        return True


_CONNECT_SECONDS = 30


class Workers(Processes):
    """Those of a Dask scheduler: a path is one that all of them see, or HOST:PATH, which only workers of that host read."""

    together = 16  # a task costs the scheduler 1.5 ms, whatever it reads

    def __init__(self, client: Any, address: str, killed: Type[Exception]) -> None:
        self._client, self.killed, self.most = client, killed, 64
        self._listed: Dict[str, Status] = {}
        others = set(map(str, client.run(version, on_error="return").values())) - {__version__}
        if others:
            raise FleetError(f"{address}: a worker has another jmassif than {__version__}: {others.pop()}")

    def pool(self, host: str) -> Any:
        # Not pure: a second reading of a trace is not the result of the first.
        return self._client.get_executor(pure=False, workers=[host] if host else None)

    def status(self, path: str) -> Status:
        return self._listed[path] if path in self._listed else super().status(path)

    def _hosts(self) -> Dict[str, str]:
        """A worker of each."""
        from distributed.comm import get_address_host

        return {get_address_host(worker): worker for worker in self._client.run(version)}

    def has(self, host: str) -> bool:
        return not host or host in self._hosts()

    def find(self, name: str, refuse: Refuse) -> Iterator[str]:
        """The files below HOST:DIR, of each host that matches in turn."""
        pattern, _, directory = name.partition(":")
        hosts = self._hosts()
        chosen = {worker: host for host, worker in hosts.items() if fnmatch(host, pattern)}
        if not chosen:
            raise FleetError(f"{name}: no worker is on such a host; there are {', '.join(sorted(hosts))}")
        by_host = []
        for worker, (files, refused) in self._client.run(listed, directory, workers=list(chosen)).items():
            by_host.append({f"{chosen[worker]}:{path}": status for path, status in files})
            self._listed.update(by_host[-1])
            for path, reason in refused:
                refuse(f"{chosen[worker]}:{path}", reason)
        yield from filter(None, chain.from_iterable(zip_longest(*by_host)))


@contextmanager
def cluster(address: str) -> Iterator[Workers]:
    """Raises FleetError, also for errors inside."""
    from distributed import Client, KilledWorker

    logging.disable(logging.CRITICAL)  # of what goes on in the cluster
    try:
        with Client(address, timeout=_CONNECT_SECONDS, set_as_default=False) as client:
            client.wait_for_workers(1, _CONNECT_SECONDS)
            yield Workers(client, address, KilledWorker)
    except ImportError as error:  # on a worker that came later
        raise FleetError(f"{address}: a worker has another jmassif than {__version__}: {error}")
    except (CancelledError, OSError, TimeoutError, ValueError) as error:
        raise Unavailable(f"{address}: no scheduler with a worker answers ({type(error).__name__})")


def _tasks(paths: Iterable[str], together: int) -> Iterator[Tuple[str, List[str]]]:
    """Paths of one host each, of the hosts in turn."""
    by_host: Dict[str, List[str]] = {}
    for path in paths:
        by_host.setdefault(host_of(path), []).append(path)
    tasks = [
        [(host, some[at : at + together]) for at in range(0, len(some), together)] for host, some in by_host.items()
    ]
    return filter(None, chain.from_iterable(zip_longest(*tasks)))


def read_all(paths: Iterable[str], readers: Processes) -> Iterator[Tuple[str, _Read]]:
    wanted = list(paths)
    left = _tasks(wanted, min(readers.together, 1 + len(wanted) // 20))  # a task for each of a few workers
    pools: Dict[str, Any] = {}  # by host
    waiting: Deque[Tuple[str, List[str], Any]] = deque()  # tasks, and futures of what is read

    def submit(host: str, some: List[str]) -> Any:
        try:
            if host not in pools:
                pools[host] = readers.pool(host)
            return pools[host].submit(read, some)
        except readers.killed:
            pools[host] = readers.pool(host)
            return pools[host].submit(read, some)

    def result(host: str, future: Any) -> List[_Read]:
        while True:
            try:
                return list(future.result(_CONNECT_SECONDS))
            except TimeoutError:
                if not readers.has(host):
                    future.cancel()
                    raise Unavailable(f"no worker of {host} is left")

    def alone(host: str, path: str) -> _Read:
        try:
            return result(host, submit(host, [path]))[0]
        except readers.killed:
            return Refused("the process that read it was killed; it may need more memory than there is")

    try:
        while True:
            waiting.extend((host, some, submit(host, some)) for host, some in islice(left, readers.most - len(waiting)))
            if not waiting:
                return
            host, some, future = waiting.popleft()
            try:
                found = result(host, future)
            except readers.killed:  # by one of these traces, or by one that was read at the same time
                wait([each for *_, each in waiting])
                found = [alone(host, path) for path in some]
            yield from zip(some, found)
    finally:
        for *_, future in waiting:
            future.cancel()
        for pool in pools.values():
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


def load(connection: Any, paths: Iterable[str], readers: Processes) -> Iterator[Outcome]:
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
                size, mtime_ns = readers.status(path)
            except OSError as error:
                yield Outcome(path, f"cannot be read: {error.strerror}", True)
                continue
            row: Row = {"path": unicode_text(path), "size": size, "mtime_ns": mtime_ns}
            if tuple(row.values()) in known:
                yield Outcome(path, known[tuple(row.values())], False)
            else:
                wanted[path] = row
        found = read_all(wanted, readers)
        for batch in iter(lambda: list(islice(found, _BATCH)), []):
            begin(connection)
            done: List[Outcome] = []
            for path, record in batch:
                row = wanted[path]
                connection.execute(delete(TRACE).where(TRACE.c.path == row["path"]))
                if isinstance(record, Record):
                    _add(connection, record)
                    insert(connection, TRACE, [{**row, "run": record.run["run"], "reason": None}])
                elif record.is_of_content:
                    insert(connection, TRACE, [{**row, "run": None, "reason": record.reason}])
                done.append(Outcome(path, "" if isinstance(record, Record) else record.reason, True))
            connection.commit()
            yield from done
