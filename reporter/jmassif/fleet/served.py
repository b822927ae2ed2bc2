# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of a fleet on the server of serve/: comparisons by one fact or another, and the report of any run.

Comparisons take seconds, as the report of a large run does; so they are made in advance, with the reports of the farthest
outliers, and again when the database has changed. Other reports are made when they are asked for.
The database is only read. A report is made of the trace that the database names, if that is there and still of this run.
"""

import os
import threading
import time
from html import escape
from typing import Any, Dict, List, Optional, Sequence, Tuple

from sqlalchemy import func, select

from jmassif.analysis.processes import join
from jmassif.fleet import TOTAL, VIEWS, FleetError, compare, tables
from jmassif.fleet.database import TRACE, opened
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
_READ_ONLY = {"sqlite": "PRAGMA query_only = 1", "postgresql": "SET default_transaction_read_only = on"}


def _keys(runs: Any, first: str) -> List[str]:
    """Facts that tell runs apart, and leave enough of them in a group to be compared."""
    known = [key for key in _FIRST_KEYS if key in runs]
    known += sorted(key for key in runs if key.startswith(("package.", "option.")))
    n_values = {key: runs[key].fillna("").nunique() for key in known}
    found = [key for key in known if 2 <= n_values[key] <= _MOST_GROUPS]
    return list(dict.fromkeys([first] * bool(first) + found))[:_MOST_KEYS]


class _Comparisons:
    """Comparisons of what the database had at one time; each is made once."""

    def __init__(self, connection: Any, key: str, conditions: Sequence[str], state: Tuple[int, ...]) -> None:
        runs = compare.read_runs(connection, conditions)
        self.state = state
        self._runs = runs[runs["is_complete"] == 1]
        self._left_out = len(runs) - len(self._runs)
        self._pool = compare.pool_of(self._runs)
        self._figures = compare.held(connection, self._pool, [TOTAL, *VIEWS], self._runs)
        found = connection.execute(select(TRACE.c.run, TRACE.c.path).where(TRACE.c.run.isnot(None))).fetchall()
        paths = {run: path for run, path in found if os.access(path, os.R_OK)}
        self.traces: Dict[str, str] = {
            id_: paths[number] for number, id_ in zip(runs["run"], runs["id"]) if number in paths
        }
        self.keys = _keys(self._runs, key)
        if not self.keys:
            raise FleetError("all runs are of the same JetPack, board and packages: there is nothing to compare")
        self.outliers: List[str] = []  # ids of runs, of the pages that are made
        self._pages: Dict[str, bytes] = {}
        self._making = threading.Lock()

    def _links(self, chosen: str) -> str:
        links = [
            f'<a href="by-{escape(key)}"{" aria-current=page" * (key == chosen)}>{escape(label(key))}</a>'
            for key in self.keys
        ]
        return f'<nav class="quiet" aria-label="Compare by">Compare by {" · ".join(links)}</nav>'

    def page(self, key: str) -> bytes:
        if key not in self._pages:
            with self._making:
                if key not in self._pages:
                    options = None, list(VIEWS), self._pool, _LEVEL, self._left_out
                    found = compare.compared(self._figures, self._runs, key, *options)
                    ids = [each.run for each in found.outliers if each.run in self.traces]
                    self.outliers += ids[:_MADE_REPORTS]
                    self._pages[key] = as_bytes(tables.write_page(found, self._links(key), self.traces))
        return self._pages[key]


class Fleet(Pages):
    """Raises FleetError where there is nothing to compare."""

    def __init__(
        self, database: str, key: str, conditions: Sequence[str], directories: Optional[Sequence[str]]
    ) -> None:
        self._database, self._key, self._conditions, self._directories = database, key, conditions, directories
        self._is_closed = threading.Event()
        self._last_wanted = time.monotonic()
        self._reports: Dict[Tuple[str, int], bytes] = {}
        now = self._read(())
        assert now
        self._now = now
        now.page(now.keys[0])

    def _read(self, known: Tuple[int, ...]) -> Optional[_Comparisons]:
        """None where the database is in the known state."""
        with opened(self._database) as connection:
            connection.exec_driver_sql(_READ_ONLY[connection.dialect.name])
            connection.commit()  # PostgreSQL: from the next transaction on
            numbers = func.count(), func.sum(TRACE.c.mtime_ns % 1000003), func.sum(TRACE.c.size)
            state = tuple(int(n or 0) for n in connection.execute(select(*numbers)).fetchone())
            return None if state == known else _Comparisons(connection, self._key, self._conditions, state)

    def _report(self, id_: str) -> Optional[bytes]:
        try:
            path = self._now.traces[id_]
            key = id_, os.stat(path).st_mtime_ns
            made = self._reports.get(key)
            if made is None:
                profile = load_file(path)
                if run_id(profile) != id_:  # another run has taken its name
                    return None
                made = as_bytes(page(join([("", profile)]), self._directories))
                kept = [*self._reports.items(), (key, made)]
                self._reports = dict(kept[-_KEPT_REPORTS:])
            return made
        except (KeyError, OSError, TraceError, FormatError, OverflowError):
            return None

    def page_of(self, name: str) -> Optional[bytes]:
        now, self._last_wanted = self._now, time.monotonic()
        kind, _, rest = name.partition("-")
        if name == "" or (kind == "by" and rest in now.keys):
            return now.page(rest or now.keys[0])
        return self._report(rest) if kind == "run" else None

    def start(self) -> None:
        threading.Thread(target=self._work, daemon=True).start()

    def close(self) -> None:
        self._is_closed.set()

    def _work(self) -> None:
        """Makes the pages before they are asked for: those of a changed database replace the others together."""
        pause, now = 0.0, self._now
        while not self._is_closed.wait(pause):
            begin = time.monotonic()
            if begin - self._last_wanted < _WANTED_SECONDS:
                try:
                    now = self._read(self._now.state) or self._now
                    for key in now.keys:
                        now.page(key)
                    self._now = now
                    for id_ in now.outliers[:_MADE_REPORTS]:
                        self._report(id_)
                except FleetError:  # the database is away: ask again
                    pass
            pause = max(_LOOK_SECONDS, 3 * (time.monotonic() - begin))
