# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces get into a database: processes read them, each one at a time, and this one writes.

What is written is committed by the batch, with the names of the files. So a load that is killed has lost a batch at most, and
one that is started again reads what is missing. A run goes by its id: of two traces of one run the one that tells
more stays.
"""

import os
import queue
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from jmassif.fleet.database import Database, Row
from jmassif.fleet.schema import FIGURE, LOADED, PART, REFUSED, RUN, SETUP, TRACE, number_of
from jmassif.fleet.worker import Died, Worker
from jmassif.units import unicode_text

_BATCH_RUNS = 200
_BATCH_SECONDS = 1.0
_KEYS_AT_ONCE = 500

_RUN_FIELDS = [name for name, _ in RUN.columns]


class State(NamedTuple):
    """Of a file, by which it is told that it has not changed."""

    size: int
    mtime_ns: int


class Refused(NamedTuple):
    path: str
    reason: str


class Loaded(NamedTuple):
    """What a load has done."""

    n_new: int  # traces whose runs were added, or replaced by more of them
    n_known: int  # that were there already
    refused: List[Refused]


class Progress(NamedTuple):
    n_done: int
    n_all: int
    n_refused: int
    seconds: float


class _Read(NamedTuple):
    path: str
    state: State
    found: Dict[str, Any]


def _state(path: str) -> State:
    """Raises OSError."""
    status = os.stat(path)
    return State(status.st_size, status.st_mtime_ns)


class _Readers:
    """Threads, each with a process of its own that reads what it is handed."""

    def __init__(self, paths: Sequence[str], n: int) -> None:
        self._paths = iter(paths)
        self._lock = threading.Lock()
        self._results: "queue.Queue[Optional[_Read]]" = queue.Queue(2 * n + 16)
        self._is_over = threading.Event()
        self._n = n
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(n)]
        for thread in self._threads:
            thread.start()

    def _next(self) -> Optional[str]:
        with self._lock:
            return None if self._is_over.is_set() else next(self._paths, None)

    def _work(self) -> None:
        worker = Worker()
        try:
            for path in iter(self._next, None):
                found: Dict[str, Any]
                try:
                    state = _state(path)
                    found = worker.ask(path)
                except OSError as error:
                    state, found = State(0, 0), {"reason": f"cannot be read: {error.strerror}"}
                except Died as error:
                    worker, found = Worker(), {"reason": str(error)}
                self._results.put(_Read(path, state, found))
        finally:
            worker.close()
            self._results.put(None)

    def results(self) -> Iterator[_Read]:
        n = self._n
        while n:
            result = self._results.get()
            if result is None:
                n -= 1
            else:
                yield result

    def stop(self) -> None:
        self._is_over.set()


class _Batch:
    """What is written in one transaction."""

    def __init__(self) -> None:
        self.runs: Dict[int, Dict[str, Any]] = {}
        self.traces: List[Row] = []
        self.begin = time.monotonic()

    @property
    def is_full(self) -> bool:
        return len(self.traces) >= _BATCH_RUNS or time.monotonic() - self.begin > _BATCH_SECONDS

    def add(self, read: _Read) -> None:
        row = read.found["row"]
        other = self.runs.get(row["run"])
        if other is None or _tells(row["is_complete"], row["end_time"]) >= _tells(
            other["row"]["is_complete"], other["row"]["end_time"]
        ):
            self.runs[row["run"]] = read.found
        self.traces.append((read.path, *read.state, LOADED, None, row["run"]))

    def refuse(self, read: _Read, reason: str) -> None:
        self.traces.append((read.path, *read.state, REFUSED, reason, None))


def _tells(is_complete: int, end_time: int) -> Tuple[int, int]:
    return is_complete, end_time


class Loader:
    def __init__(self, database: Database) -> None:
        self._database = database
        # Numbers of parts and setups that are in the database.
        self._parts: Set[int] = {part for part, in database.rows("SELECT part FROM part")}
        self._setups: Set[int] = {setup for setup, in database.rows("SELECT DISTINCT setup FROM setup")}

    def _known(self, paths: Sequence[str]) -> Dict[str, Tuple[State, str, str]]:
        found = self._database.rows("SELECT path, size, mtime_ns, state, reason FROM trace")
        wanted = {unicode_text(path) for path in paths}
        return {
            path: (State(size, mtime), state, reason) for path, size, mtime, state, reason in found if path in wanted
        }

    def _replace(self, batch: _Batch) -> List[int]:
        """Removes what the batch has more of; the runs of which the database has more."""
        runs = list(batch.runs)
        less = []
        for begin in range(0, len(runs), _KEYS_AT_ONCE):
            some = runs[begin : begin + _KEYS_AT_ONCE]
            sql = f"SELECT run, is_complete, end_time FROM run WHERE run IN ({','.join('?' * len(some))})"
            there = {run: _tells(*told) for run, *told in self._database.rows(sql, some)}
            for run in some:
                row = batch.runs[run]["row"]
                if run in there and there[run] > _tells(row["is_complete"], row["end_time"]):
                    less.append(run)
            replaced = [run for run in there if run not in less]
            for table in (FIGURE, RUN):
                if replaced:
                    places = ",".join("?" * len(replaced))
                    self._database.run(f"DELETE FROM {table.name} WHERE run IN ({places})", replaced)
        return less

    def write(self, batch: _Batch) -> None:
        """In one transaction."""
        parts: Dict[int, Row] = {}
        setups: Dict[int, List[Row]] = {}
        figures: List[Row] = []
        self._database.begin()
        for run in self._replace(batch):
            del batch.runs[run]
        for run, found in batch.runs.items():
            for view, name, *numbers in found["figures"]:
                part = number_of(f"{view}\0{name}")
                if part not in self._parts:
                    parts[part] = (part, view, name)
                figures.append((run, part, *numbers))
            setup = found["row"]["setup"]
            if setup not in self._setups:
                setups[setup] = [(setup, key, value) for key, value in found["setup"]]
        self._database.merge(PART, list(parts.values()))
        self._database.merge(SETUP, [row for rows in setups.values() for row in rows])
        self._database.add(RUN, [tuple(found["row"][name] for name in _RUN_FIELDS) for found in batch.runs.values()])
        self._database.add(FIGURE, figures)
        self._database.merge(TRACE, [(unicode_text(path), *rest) for path, *rest in batch.traces])
        self._database.commit()
        self._parts.update(parts)
        self._setups.update(setups)

    def load(self, paths: Sequence[str], n_workers: int, progress: Callable[[Progress], None]) -> Loaded:
        """Adds the runs of all traces that are not there yet."""
        begin = time.monotonic()
        known = self._known(paths)
        refused: List[Refused] = []
        wanted: List[str] = []
        for path in paths:
            state, was, reason = known.get(unicode_text(path), (None, "", ""))
            try:
                is_known = state == _state(path)
            except OSError:
                is_known = False
            if not is_known:
                wanted.append(path)
            elif was == REFUSED:
                refused.append(Refused(path, reason))
        n_known = len(paths) - len(wanted) - len(refused)
        n_done, n_new = len(paths) - len(wanted), 0
        readers = _Readers(wanted, max(1, min(n_workers, len(wanted))))
        batch = _Batch()
        try:
            for read in readers.results():
                if "reason" in read.found:
                    refused.append(Refused(read.path, read.found["reason"]))
                    batch.refuse(read, read.found["reason"])
                else:
                    n_new += 1
                    batch.add(read)
                n_done += 1
                if batch.is_full:
                    self.write(batch)
                    batch = _Batch()
                progress(Progress(n_done, len(paths), len(refused), time.monotonic() - begin))
            self.write(batch)
        finally:
            readers.stop()
        return Loaded(n_new, n_known, sorted(refused))
