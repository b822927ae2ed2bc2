# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads traces into a database: worker processes read them, one at a time each, and this process writes.

A batch is committed with the names of its files. A load that is killed loses a batch at most, and a second load reads only what
is missing. A run is identified by its id: of two traces of one run the more complete one stays.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.pool import ThreadPool
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from jmassif.analysis.aggregate import Usage, sum_of
from jmassif.analysis.compare import Key, Run, measure
from jmassif.analysis.moments import SelectionError
from jmassif.fleet.database import (
    FIGURE,
    LIBRARY,
    LINE,
    LOADED,
    OWNER,
    PART,
    REFUSED,
    RUN,
    SCOPE,
    SETUP,
    TOTAL,
    TRACE,
    VIEWS,
    Database,
    Row,
    number_of,
)
from jmassif.model.run import Profile
from jmassif.model.run_info import fact, facts, run_id
from jmassif.reader.builder import load_file
from jmassif.reader.tokens import TraceError
from jmassif.units import printable, unicode_text


# ---- reduce ----
# The record of a run: its facts, and the bytes of each owner, library, call and Python line at the peak, under the names by which
# jmassif diff compares runs.

_LARGEST = (1 << 63) - 1
_OF_ONE_HOST = ("host",)


class TooLarge(Exception):
    """A figure too large for a database."""


def _text(value: str) -> str:
    return unicode_text(value).replace("\0", "\\x00")


def _number(value: int) -> int:
    if abs(value) > _LARGEST:
        raise TooLarge("a figure is beyond 63 bits, which databases cannot hold")
    return value


def _name(key: Key) -> str:
    """A part's name; a nested call has its callers' names before it."""
    return " > ".join((*key.inside, key.name)) + (" (further calls)" if key.is_listed else "")


def _parts(run: Run) -> List[Tuple[str, str, Usage]]:
    found: Dict[Tuple[str, str], Usage] = {}
    for view in VIEWS:
        for key, figures in run.views[view].items():
            name = (view, _text(_name(key)))
            found[name] = found.get(name, Usage()) + figures
    return [(view, name, figures) for (view, name), figures in found.items()]


def _figures(name: str, profile: Profile) -> List[Tuple[str, str, int, int, int]]:
    """View, name, host, device, and blocks or calls; empty for a program that was killed before it had a peak."""
    try:
        run = measure(name, profile, VIEWS, "peak")
    except SelectionError:
        return []
    parts = _parts(run)
    total = sum_of(figures for view, _, figures in parts if view == OWNER)
    parts.insert(0, (TOTAL, TOTAL, total))
    assert {view for view, _, _ in parts} <= {TOTAL, OWNER, LIBRARY, SCOPE, LINE}
    return [(view, part, _number(f.host_bytes), _number(f.device_bytes), _number(f.blocks)) for view, part, f in parts]


def _ended(profile: Profile) -> str:
    if profile.truncation:
        return f"cut off: {printable(profile.truncation)}"
    if profile.end:
        return f"{profile.end.reason} {profile.end.code}"
    return "exec" if profile.is_complete else "no end record"


def reduced(name: str, profile: Profile) -> Dict[str, Any]:
    """A record for JSON: `row` of the table run, `setup` (key, value), `figures`. Raises TooLarge."""
    id_ = run_id(profile)
    known = {key: _text(value) for key, value in facts(profile).items() if value and key not in _OF_ONE_HOST}
    setup = number_of("\n".join(f"{key}\0{value}" for key, value in sorted(known.items())))
    peaks = {which: profile.peaks.get(which) for which in ("total", "host", "device")}
    total, host, device = peaks["total"], peaks["host"], peaks["device"]
    manifest = profile.manifest
    row = {
        "run": number_of(id_),
        "id": id_,
        "file": _text(name),
        **{key: _text(manifest.get(key, "")) for key in ("host", "board", "l4t", "pytorch", "command", "start")},
        "jetpack": _text(fact(profile, "jetpack")),
        "pid": _number(profile.number("pid") or 0),
        "start_unix_ms": _number(profile.number("start-unix-ms") or 0),
        "is_complete": int(profile.is_complete),
        "ended": _text(_ended(profile)),
        "end_time": _number(profile.last_time),
        "is_discrete": int(profile.is_discrete),
        "peak_total": _number(total.host + total.device) if total else None,
        "peak_host": _number(host.host) if host else None,
        "peak_device": _number(device.device) if device else None,
        "setup": setup,
    }
    return {"row": row, "setup": sorted(known.items()), "figures": _figures(name, profile)}


# ---- worker ----
# A process that reads traces: a line with a path in, a line of JSON out.
#
# It is a program of its own with two pipes, not a fork: it ends with its input when the loader is killed. A trace that takes all
# memory costs this process, not the load.

_START = "import sys; sys.path.insert(0, sys.argv[1]); from jmassif.fleet.load import serve; serve()"


def answer(path: str) -> Dict[str, Any]:
    """The record of a trace, or the reason why there is none."""
    try:
        return reduced(path, load_file(path))
    except (TraceError, TooLarge) as error:
        return {"reason": str(error)}
    except OverflowError:
        return {"reason": "a sum is beyond 64 bits"}
    except MemoryError:
        return {"reason": "there is not enough memory to read it"}


def serve() -> None:
    """Runs the process."""
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a signal of the terminal; the loader decides
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        out.write(json.dumps(answer(os.fsdecode(json.loads(line).encode("latin-1")))).encode("ascii") + b"\n")
        out.flush()


class Died(Exception):
    """The process ended before it answered."""


class Worker:
    def __init__(self) -> None:
        home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        # Isolated: no module comes from the current directory.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", _START, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, path: str) -> Dict[str, Any]:
        """answer() of the process. Raises Died."""
        to: Optional[BinaryIO] = self._process.stdin  # type: ignore[assignment]
        back: Optional[BinaryIO] = self._process.stdout  # type: ignore[assignment]
        assert to and back
        try:
            # Names of files are bytes.
            to.write(json.dumps(os.fsencode(path).decode("latin-1")).encode("ascii") + b"\n")
            to.flush()
            line = back.readline()
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            status = self._process.wait()
            how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
            raise Died(f"the process that read it {how}")
        found: Dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        self._process.terminate()
        for pipe in filter(None, (self._process.stdin, self._process.stdout)):
            with suppress(OSError):
                pipe.close()
        self._process.wait()


# ---- load ----

_BATCH_RUNS = 200
_BATCH_SECONDS = 1.0
_KEYS_AT_ONCE = 500

_RUN_FIELDS = [name for name, _ in RUN.columns]


State = Tuple[int, int]  # size and mtime in nanoseconds: the version of a file


class Refused(NamedTuple):
    path: str
    reason: str


class Loaded(NamedTuple):
    """The outcome of a load."""

    n_new: int  # traces added, or in the place of a less complete one
    n_known: int  # loaded before
    refused: List[Refused]


class _Read(NamedTuple):
    path: str
    state: State
    found: Dict[str, Any]


def _state(path: str) -> State:
    """Raises OSError."""
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


class _Readers:
    """Threads with a worker process each."""

    def __init__(self, n: int) -> None:
        self._own = threading.local()
        self._workers: List[Worker] = []
        self._room = threading.Semaphore(2 * n + 16)
        self._is_over = False
        self._threads = ThreadPool(n, self._begin)

    def _begin(self) -> None:
        self._own.worker = Worker()
        self._workers.append(self._own.worker)

    def _read(self, path: str) -> _Read:
        state = (0, 0)
        try:
            state = _state(path)
            return _Read(path, state, self._own.worker.ask(path))
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
        except Died as error:
            self._begin()
            reason = str(error)
        return _Read(path, state, {"reason": reason})

    def _while_there_is_room(self, paths: Sequence[str]) -> Iterator[str]:
        for path in paths:
            self._room.acquire()
            if self._is_over:
                return
            yield path

    def results(self, paths: Sequence[str]) -> Iterator[_Read]:
        """In any order. A slow database lets few records wait in memory."""
        for read in self._threads.imap_unordered(self._read, self._while_there_is_room(paths)):
            self._room.release()
            yield read

    def close(self) -> None:
        self._is_over = True
        self._room.release()
        self._threads.terminate()
        for worker in list(self._workers):
            worker.close()


class _Batch:
    """The runs of one transaction."""

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
        if other is None or _completeness(row) >= _completeness(other["row"]):
            self.runs[row["run"]] = read.found
        self.traces.append((read.path, *read.state, LOADED, None, row["run"]))

    def refuse(self, read: _Read, reason: str) -> None:
        self.traces.append((read.path, *read.state, REFUSED, reason, None))


def _completeness(row: Dict[str, Any]) -> Tuple[int, int]:
    return row["is_complete"], row["end_time"]


class Loader:
    def __init__(self, database: Database) -> None:
        self._database = database
        # Parts and setups in the database.
        self._parts: Set[int] = {part for part, in database.rows("SELECT part FROM part")}
        self._setups: Set[int] = {setup for setup, in database.rows("SELECT DISTINCT setup FROM setup")}

    def _known(self, paths: Sequence[str]) -> Dict[str, Tuple[State, str, str]]:
        found = self._database.rows("SELECT path, size, mtime_ns, state, reason FROM trace")
        wanted = {unicode_text(path) for path in paths}
        return {path: ((size, mtime), state, reason) for path, size, mtime, state, reason in found if path in wanted}

    def _replace(self, batch: _Batch) -> List[int]:
        """Removes runs that the batch has more complete; returns those that the database has more complete."""
        runs = list(batch.runs)
        less = []
        for begin in range(0, len(runs), _KEYS_AT_ONCE):
            some = runs[begin : begin + _KEYS_AT_ONCE]
            sql = f"SELECT run, is_complete, end_time FROM run WHERE run IN ({','.join('?' * len(some))})"
            there = {run: tuple(fields) for run, *fields in self._database.rows(sql, some)}
            for run in some:
                if run in there and there[run] > _completeness(batch.runs[run]["row"]):
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

    def load(self, paths: Sequence[str], n_workers: int, progress: Callable[[int, int, int], None]) -> Loaded:
        """Adds the runs of all traces that are not loaded yet. `progress` gets the numbers of those done, of all, and of the refused."""
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
        readers = _Readers(max(1, min(n_workers, len(wanted))))
        batch = _Batch()
        try:
            for read in readers.results(wanted):
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
                progress(n_done, len(paths), len(refused))
            self.write(batch)
        finally:
            readers.close()
        return Loaded(n_new, n_known, sorted(refused))
