# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads traces into a database: worker processes read them, one at a time each, and this process writes.

A batch is committed with the names of its files. A load that is killed loses a batch at most, and a second load reads only what
is missing. A run is identified by its id: of two traces of one run the more complete one stays.
"""

import ctypes
import os
import signal
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple, Union

from sqlalchemy import delete, select

from jmassif.analysis.aggregate import Usage, sum_of
from jmassif.analysis.compare import measure
from jmassif.analysis.moments import SelectionError
from jmassif.model.run_info import ending_of, fact, facts, run_id
from jmassif.fleet import TOTAL, VIEWS
from jmassif.fleet.database import FIGURE, PART, RUN, SETUP, TRACE, begin, insert, number_of
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from jmassif.reader.tokens import TraceError
from jmassif.units import unicode_text

# ---- reduce ----
# The record of a run: its facts, and the bytes of each owner, library, call and Python line at the peak, under the names by which
# jmassif diff compares runs.

_Row = Dict[str, Any]  # of a table, by column


class Record(NamedTuple):
    run: _Row
    setup: List[_Row]
    parts: List[_Row]
    figures: List[_Row]


def _text(value: str) -> str:
    return unicode_text(value).replace("\0", "\\x00")


def _parts(name: str, profile: Profile) -> Dict[Tuple[str, str], Usage]:
    """By view and name; nothing of a program that was killed before it had a peak."""
    try:
        run = measure(name, profile, VIEWS, "peak")
    except SelectionError:
        return {}
    found = {(TOTAL, TOTAL): sum_of(run.views["owner"].values())}
    for view in VIEWS:
        for key, usage in run.views[view].items():
            # A nested call has its callers' names before it.
            part = (view, _text(" > ".join((*key.inside, key.name)) + (" (further calls)" if key.is_listed else "")))
            found[part] = found.get(part, Usage()) + usage
    return found


def _reduced(name: str, profile: Profile) -> Record:
    manifest, peaks = profile.manifest, profile.peaks
    known = {key: _text(value) for key, value in sorted(facts(profile).items()) if value and key != "host"}
    setup = number_of("\n".join(f"{key}\0{value}" for key, value in known.items()))
    id_ = run_id(profile)
    run = {
        "run": number_of(id_),
        "id": id_,
        "file": _text(name),
        **{key: _text(manifest.get(key, "")) for key in ("host", "board", "l4t", "pytorch", "command", "start")},
        "jetpack": _text(fact(profile, "jetpack")),
        "pid": profile.number("pid") or 0,
        "start_unix_ms": profile.number("start-unix-ms") or 0,
        "is_complete": int(profile.is_complete),
        "ended": f"cut off: {_text(profile.truncation)}" if profile.truncation else ending_of(profile),
        "end_time": profile.last_time,
        "is_discrete": int(profile.is_discrete),
        **{f"peak_{which}": peaks[which].bytes if which in peaks else None for which in ("total", "host", "device")},
        "setup": setup,
    }
    setups = [{"setup": setup, "key": key, "value": value} for key, value in known.items()]
    parts, figures = [], []
    for (view, part), usage in _parts(name, profile).items():
        number = number_of(f"{view}\0{part}")
        parts.append({"part": number, "view": view, "name": part})
        bytes_ = {"host": usage.host_bytes, "device": usage.device_bytes}
        figures.append({"run": run["run"], "part": number, **bytes_, "number": usage.blocks})
    return Record(run, setups, parts, figures)


# ---- read ----
# A trace that takes all memory costs the process that reads it, not the load.


_Read = Union[Record, str]  # a run, or the reason why its trace is refused


def _read(path: str) -> _Read:
    try:
        found = _reduced(path, load_file(path, has_lines=False))
        numbers = [value for row in (found.run, *found.figures) for value in row.values() if isinstance(value, int)]
        if any(abs(number) >> 63 for number in numbers):
            raise OverflowError
        return found
    except TraceError as error:
        return str(error)
    except OverflowError:
        return "a figure is beyond 63 bits, which databases cannot hold"
    except MemoryError:
        return "there is not enough memory to read it"


def _begin_worker(loader: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a signal of the terminal; the loader decides
    # PR_SET_PDEATHSIG: a loader that is killed leaves no process behind.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != loader:  # killed before that call
        os._exit(1)


def _pool(n_workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(n_workers, get_context("fork"), _begin_worker, (os.getpid(),))


def _read_alone(path: str) -> _Read:
    with _pool(1) as pool:
        try:
            return pool.submit(_read, path).result()
        except BrokenProcessPool:
            return "the process that read it was killed; it may need more memory than there is"


_WAITING_PER_WORKER = 8  # records that wait for a slow database


def read_all(paths: Iterable[str], n_workers: int) -> Iterator[_Read]:
    """In the order of the paths."""
    left = deque(paths)
    waiting: Deque[Tuple[str, Future[_Read]]] = deque()
    pool = _pool(n_workers)
    while left or waiting:
        try:
            while left and len(waiting) < _WAITING_PER_WORKER * n_workers:
                waiting.append((left[0], pool.submit(_read, left[0])))
                left.popleft()
            record = waiting[0][1].result()
            waiting.popleft()
            yield record
        except BrokenProcessPool:  # by one of those that wait
            yield from (_read_alone(path) for path, _ in waiting)
            waiting.clear()
            pool = _pool(n_workers)


# ---- load ----

_BATCH = 25  # traces in a transaction
Loaded = Tuple[int, int, List[Tuple[str, str]]]  # traces read now, and read before; path and reason of the refused


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


def load(connection: Any, paths: Sequence[str], n_workers: int, progress: Callable[[int], None]) -> Loaded:
    """Add the runs of all traces that are not loaded yet. `progress` gets the number of those done."""
    traces = connection.execute(select(TRACE.c.path, TRACE.c.size, TRACE.c.mtime_ns, TRACE.c.reason)).fetchall()
    connection.commit()
    known = {(path, size, mtime): reason for path, size, mtime, reason in traces}
    refused: List[Tuple[str, str]] = []
    wanted: Dict[str, _Row] = {}
    n_known = n_new = 0
    for path in paths:
        try:
            status = os.stat(path)
        except OSError as error:
            refused.append((path, f"cannot be read: {error.strerror}"))
            continue
        row: _Row = {"path": unicode_text(path), "size": status.st_size, "mtime_ns": status.st_mtime_ns}
        key = (row["path"], row["size"], row["mtime_ns"])
        if key not in known:
            wanted[path] = row
        elif known[key]:
            refused.append((path, known[key]))
        else:
            n_known += 1
    read = zip(wanted.items(), read_all(wanted, max(1, min(n_workers, len(wanted)))))
    for batch in iter(lambda: list(islice(read, _BATCH)), []):
        begin(connection)
        for (path, row), found in batch:
            connection.execute(delete(TRACE).where(TRACE.c.path == row["path"]))
            if isinstance(found, Record):
                n_new += 1
                _add(connection, found)
                insert(connection, TRACE, [{**row, "run": found.run["run"], "reason": None}])
            else:
                refused.append((path, found))
                insert(connection, TRACE, [{**row, "run": None, "reason": found}])
        connection.commit()
        progress(n_new + n_known + len(refused))
    return n_new, n_known, sorted(refused)
