# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of a fleet on the server of serve/: comparisons by one fact or another, and the report of any run.

Comparisons take seconds, as the report of a large run does; so they are made in advance, with the reports of the farthest
outliers, and again when the database has changed. Other reports are made when they are asked for.
The database is only read. A report is made of the trace that the database names, if that is there and still of this run.
"""

import os
import threading
import time
from contextlib import suppress
from functools import lru_cache
from html import escape
from typing import Any, Dict, List, Optional, Sequence

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
    known = [*_FIRST_KEYS, *sorted(key for key in runs if key.startswith(("package.", "option.")))]
    found = [key for key in known if key in runs and 2 <= runs[key].fillna("").nunique() <= _MOST_GROUPS]
    return list(dict.fromkeys([first] * bool(first) + found or ["jetpack"]))[:_MOST_KEYS]


def _links(keys: List[str], chosen: str) -> str:
    current = {chosen: " aria-current=page"}
    links = (f'<a href="by-{escape(key)}"{current.get(key, "")}>{escape(label(key))}</a>' for key in keys)
    return f'<nav class="quiet" aria-label="Compare by">Compare by {" · ".join(links)}</nav>'


class Fleet(Pages):
    """Raises FleetError where there is nothing to compare."""

    def __init__(
        self, database: str, key: str, conditions: Sequence[str], directories: Optional[Sequence[str]]
    ) -> None:
        self._database, self._key, self._conditions, self._directories = database, key, conditions, directories
        self._is_closed = threading.Event()
        self._last_wanted = time.monotonic()
        self._mark: Any = None  # of the database's traces
        self._pages: Dict[str, bytes] = {}  # by key
        self._traces: Dict[str, str] = {}  # by the ids of runs
        self._outliers: List[str] = []  # ids
        self._compare()

    def _compare(self) -> None:
        """Make the pages anew where the database has changed. They replace the others together."""
        with opened(self._database) as connection:
            connection.execute(_READ_ONLY[connection.dialect.name])
            connection.commit()  # PostgreSQL: from the next transaction on
            numbers = func.count(), func.sum(TRACE.c.mtime_ns % 1000003), func.sum(TRACE.c.size)
            mark = connection.execute(select(*numbers)).fetchone()
            if mark == self._mark:
                return
            runs = compare.Runs(connection, self._conditions)
            paths = connection.execute(select(RUN.c.id, TRACE.c.path).join(TRACE, TRACE.c.run == RUN.c.run)).fetchall()
        ids, pages, outliers = set(runs.all["id"]), {}, []
        traces = {id_: path for id_, path in paths if id_ in ids and os.access(path, os.R_OK)}
        keys = _keys(runs.runs, self._key)
        for each in keys:
            found = compare.compare(runs, each)
            pages[each] = as_bytes(tables.write_page(found, _links(keys, each), traces))
            outliers += [id_ for id_ in found.outliers["id"] if id_ in traces][:_MADE_REPORTS]
        self._mark, self._pages, self._traces, self._outliers = mark, pages, traces, outliers

    @lru_cache(_KEPT_REPORTS)
    def _made(self, id_: str, path: str, _changed: int) -> Optional[bytes]:
        profile = load_file(path)
        if run_id(profile) != id_:  # another run has taken its name
            return None
        return as_bytes(page(join([("", profile)]), self._directories))

    def _report(self, id_: str) -> Optional[bytes]:
        try:
            path = self._traces[id_]
            return self._made(id_, path, os.stat(path).st_mtime_ns)
        except (KeyError, OSError, TraceError, FormatError, OverflowError):
            return None

    def page_of(self, name: str) -> Optional[bytes]:
        self._last_wanted = time.monotonic()
        kind, _, rest = name.partition("-")
        if not name:
            return next(iter(self._pages.values()))
        return self._pages.get(rest) if kind == "by" else self._report(rest) if kind == "run" else None

    def start(self) -> None:
        threading.Thread(target=self._work, daemon=True).start()

    def close(self) -> None:
        self._is_closed.set()

    def _work(self) -> None:
        pause = 0.0
        while not self._is_closed.wait(pause):
            begin = time.monotonic()
            if begin - self._last_wanted < _WANTED_SECONDS:
                with suppress(FleetError):  # the database is away: ask again
                    self._compare()
                    for id_ in self._outliers[:_MADE_REPORTS]:
                        self._report(id_)
            pause = max(_LOOK_SECONDS, 3 * (time.monotonic() - begin))
