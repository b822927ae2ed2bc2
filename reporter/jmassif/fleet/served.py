# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of a fleet on the server of serve/: comparisons by one fact or another, and the report of any run.

Comparisons take seconds, as the report of a large run does; so they are made in advance, with the reports of the farthest
outliers, and again when the database has changed. Other reports are made when they are asked for.
The database is only read. A report is made of the trace that the database names, if that is there and still of this run.
"""

import os
import threading
import time
from functools import lru_cache
from html import escape
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from sqlalchemy import func, select, text

from jmassif.analysis.processes import join
from jmassif.fleet import FleetError, compare, tables
from jmassif.fleet.database import RUN, TRACE, opened
from jmassif.html.page import page
from jmassif.model.run_info import label, run_id
from jmassif.reader.builder import load_file
from jmassif.reader.tokens import TraceError
from jmassif.render.view import FormatError
from jmassif.serve.server import Pages, as_bytes

_LEVEL = 0.01
_MADE_REPORTS = 16
_KEPT_REPORTS = 64
_LOOK_SECONDS = 5.0
_WANTED_SECONDS = 600.0  # without a request for so long, a database that changes is left alone
_FIRST_KEYS = ("jetpack", "board", "l4t", "pytorch", "cuda", "cudnn")
_MOST_KEYS = 8
_MOST_GROUPS = 8  # a fact of more values is no group of releases
_READ_ONLY = {"sqlite": text("PRAGMA query_only = 1"), "postgresql": text("SET default_transaction_read_only = on")}


def _keys(runs: Any, first: str) -> List[str]:
    """Facts that tell runs apart, and leave enough of them in a group to be compared."""
    known = [key for key in _FIRST_KEYS if key in runs]
    known += sorted(key for key in runs if key.startswith(("package.", "option.")))
    found = [key for key in known if 2 <= runs[key].fillna("").nunique() <= _MOST_GROUPS]
    return list(dict.fromkeys([first] * bool(first) + found))[:_MOST_KEYS]


class _State(NamedTuple):
    """Pages of a database at one time."""

    mark: Tuple[int, ...]  # that of its traces
    pages: Dict[str, bytes]  # by key
    traces: Dict[str, str]  # by the ids of runs
    outliers: List[str]  # ids


def _links(keys: List[str], chosen: str) -> str:
    links = (
        f'<a href="by-{escape(key)}"{" aria-current=page" * (key == chosen)}>{escape(label(key))}</a>' for key in keys
    )
    return f'<nav class="quiet" aria-label="Compare by">Compare by {" · ".join(links)}</nav>'


class Fleet(Pages):
    """Raises FleetError where there is nothing to compare."""

    def __init__(
        self, database: str, key: str, conditions: Sequence[str], directories: Optional[Sequence[str]]
    ) -> None:
        self._database, self._key, self._conditions, self._directories = database, key, conditions, directories
        self._is_closed = threading.Event()
        self._last_wanted = time.monotonic()
        self._made = lru_cache(_KEPT_REPORTS)(self._make)
        self._now = self._read(None)

    def _read(self, before: Optional[_State]) -> _State:
        """The state before, where the database is still in it."""
        with opened(self._database) as connection:
            connection.execute(_READ_ONLY[connection.dialect.name])
            connection.commit()  # PostgreSQL: from the next transaction on
            numbers = func.count(), func.sum(TRACE.c.mtime_ns % 1000003), func.sum(TRACE.c.size)
            mark = tuple(int(n or 0) for n in connection.execute(select(*numbers)).fetchone())
            if before and before.mark == mark:
                return before
            runs = compare.Runs(connection, self._conditions)
            of_runs = select(RUN.c.id, TRACE.c.path).join(TRACE, TRACE.c.run == RUN.c.run)
            ids = set(runs.all["id"])
            traces = {id_: path for id_, path in connection.execute(of_runs) if id_ in ids and os.access(path, os.R_OK)}
        keys = _keys(runs.runs, self._key)
        if not keys:
            raise FleetError("all runs are of the same JetPack, board and packages: there is nothing to compare")
        now = _State(mark, {}, traces, [])
        for each in keys:
            found = compare.compare(runs, each, None, _LEVEL)
            now.pages[each] = as_bytes(tables.write_page(found, _links(keys, each), traces))
            now.outliers.extend([id_ for id_ in found.outliers["run"] if id_ in traces][:_MADE_REPORTS])
        return now

    def _make(self, id_: str, path: str, _changed: int) -> Optional[bytes]:
        profile = load_file(path)
        if run_id(profile) != id_:  # another run has taken its name
            return None
        return as_bytes(page(join([("", profile)]), self._directories))

    def _report(self, state: _State, id_: str) -> Optional[bytes]:
        try:
            path = state.traces[id_]
            return self._made(id_, path, os.stat(path).st_mtime_ns)
        except (KeyError, OSError, TraceError, FormatError, OverflowError):
            return None

    def page_of(self, name: str) -> Optional[bytes]:
        state, self._last_wanted = self._now, time.monotonic()
        kind, _, rest = name.partition("-")
        if name == "":
            return next(iter(state.pages.values()))
        return state.pages.get(rest) if kind == "by" else self._report(state, rest) if kind == "run" else None

    def start(self) -> None:
        threading.Thread(target=self._work, daemon=True).start()

    def close(self) -> None:
        self._is_closed.set()

    def _work(self) -> None:
        """Makes the pages before they are asked for: those of a changed database replace the others together."""
        pause = 0.0
        while not self._is_closed.wait(pause):
            begin = time.monotonic()
            if begin - self._last_wanted < _WANTED_SECONDS:
                try:
                    self._now = self._read(self._now)
                    for id_ in self._now.outliers[:_MADE_REPORTS]:
                        self._report(self._now, id_)
                except FleetError:  # the database is away: ask again
                    pass
            pause = max(_LOOK_SECONDS, 3 * (time.monotonic() - begin))
