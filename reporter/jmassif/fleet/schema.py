# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of a fleet, the same in SQLite and in PostgreSQL.

Every table that grows with the runs begins with the run, so a distributed PostgreSQL can spread them by it (docs/fleet.md). A
run's number is made of its id, a part's of its name and so on: whoever adds a run needs to ask nobody for a number, and
who adds it twice finds it there. What many runs have in common is kept once: names of parts in `part`, and all that is
installed and set on a board, which is told by a hundred facts, in `setup`.
"""

import hashlib
from typing import Dict, NamedTuple, Sequence, Tuple

VERSION = 1

# At the peak; what calls have cost is over the whole run.
TOTAL, OWNER, LIBRARY, SCOPE, LINE = "total", "owner", "library", "scope", "python-line"
VIEWS = (OWNER, LIBRARY, SCOPE, LINE)


class Table(NamedTuple):
    name: str
    columns: Sequence[Tuple[str, str]]  # name, type
    key: str
    grows_with_runs: bool = False

    @property
    def names(self) -> str:
        return ", ".join(name for name, _ in self.columns)


_RUN = "run BIGINT NOT NULL"


def _columns(text: str) -> Sequence[Tuple[str, str]]:
    found = []
    for column in text.split(","):
        name, _, type_ = column.strip().partition(" ")
        found.append((name, type_))
    return found


RUN = Table(
    "run",
    _columns(
        f"{_RUN}, id TEXT NOT NULL, file TEXT, host TEXT, board TEXT, l4t TEXT, jetpack TEXT, pytorch TEXT, command TEXT,"
        " pid BIGINT, start TEXT, start_unix_ms BIGINT, is_complete INTEGER NOT NULL, ended TEXT, end_time BIGINT,"
        " is_discrete INTEGER NOT NULL, peak_total BIGINT, peak_host BIGINT, peak_device BIGINT, setup BIGINT NOT NULL"
    ),
    "run",
    True,
)
FIGURE = Table(
    "figure",
    _columns(f"{_RUN}, part BIGINT NOT NULL, host BIGINT NOT NULL, device BIGINT NOT NULL, number BIGINT NOT NULL"),
    "run, part",
    True,
)
PART = Table("part", _columns("part BIGINT NOT NULL, view TEXT NOT NULL, name TEXT NOT NULL"), "part")
SETUP = Table("setup", _columns("setup BIGINT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL"), "setup, key")
# Which files were read, and how that went: what a load that was killed need not read again.
TRACE = Table(
    "trace",
    _columns("path TEXT NOT NULL, size BIGINT, mtime_ns BIGINT, state TEXT NOT NULL, reason TEXT, run BIGINT"),
    "path",
)
TABLES = (RUN, FIGURE, PART, SETUP, TRACE)
LOADED, REFUSED = "loaded", "refused"

TABLE_OF: Dict[str, Table] = {table.name: table for table in TABLES}


def number_of(text: str) -> int:
    """63 bits, which every database has: of a million texts two have the same once in ten million fleets."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class FleetError(Exception):
    """One line for the user: what cannot be done, and the mend."""
