# SPDX-License-Identifier: GPL-2.0-or-later
"""The database of a fleet: its tables, in a file of SQLite or in PostgreSQL."""

import hashlib
import importlib
import os
import re
import sqlite3
from contextlib import contextmanager
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple, Union

from jmassif.units import printable


# ---- schema ----
# The tables of a fleet, the same in SQLite and in PostgreSQL.
#
# Every table that grows with the runs begins with the run, so a distributed PostgreSQL can spread them by it (docs/fleet.md). A
# run's number is a hash of its id, a part's of its name and so on: a loader needs no sequence, and adding a run twice finds it
# there. Values that many runs share are stored once: names of parts in `part`, the hundred facts of a board's software in `setup`.

VERSION = 1

# Figures at the peak; the cost of calls is of the whole run.
TOTAL, OWNER, LIBRARY, SCOPE, LINE = "total", "owner", "library", "scope", "python-line"
VIEWS = (OWNER, LIBRARY, SCOPE, LINE)


class Table(NamedTuple):
    name: str
    columns: Sequence[Tuple[str, str]]  # name, type
    key: str

    @property
    def names(self) -> str:
        return ", ".join(name for name, _ in self.columns)


_RUN = "run BIGINT NOT NULL"


def _columns(text: str) -> Sequence[Tuple[str, str]]:
    return [column.strip().partition(" ")[::2] for column in text.split(",")]


RUN = Table(
    "run",
    _columns(
        f"{_RUN}, id TEXT NOT NULL, file TEXT, host TEXT, board TEXT, l4t TEXT, jetpack TEXT, pytorch TEXT, command TEXT,"
        " pid BIGINT, start TEXT, start_unix_ms BIGINT, is_complete INTEGER NOT NULL, ended TEXT, end_time BIGINT,"
        " is_discrete INTEGER NOT NULL, peak_total BIGINT, peak_host BIGINT, peak_device BIGINT, setup BIGINT NOT NULL"
    ),
    "run",
)
FIGURE = Table(
    "figure",
    _columns(f"{_RUN}, part BIGINT NOT NULL, host BIGINT NOT NULL, device BIGINT NOT NULL, number BIGINT NOT NULL"),
    "run, part",
)
PART = Table("part", _columns("part BIGINT NOT NULL, view TEXT NOT NULL, name TEXT NOT NULL"), "part")
SETUP = Table("setup", _columns("setup BIGINT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL"), "setup, key")
# Files that were read, and the outcome: a load that was killed need not read them again.
TRACE = Table(
    "trace",
    _columns("path TEXT NOT NULL, size BIGINT, mtime_ns BIGINT, state TEXT NOT NULL, reason TEXT, run BIGINT"),
    "path",
)
TABLES = (RUN, FIGURE, PART, SETUP, TRACE)
LOADED, REFUSED = "loaded", "refused"


def number_of(text: str) -> int:
    """A hash of 63 bits, which every database has: a million texts collide in one of ten million fleets."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class FleetError(Exception):
    """One line for the user: the failure and the mend."""


Row = Tuple[Any, ...]


def definitions(suffix: str = "") -> List[str]:
    """The statements that make the tables."""
    found = ["CREATE TABLE fleet (version INTEGER NOT NULL)"]
    for table in TABLES:
        columns = ", ".join(f"{name} {type_}" for name, type_ in table.columns)
        found.append(f"CREATE TABLE {table.name} ({columns}, PRIMARY KEY ({table.key})){suffix}")
    found.append("CREATE INDEX figure_by_part ON figure (part, run, host, device)")
    return found


# ---- sqlite ----
# SQLite: the default; it needs nothing installed.

# "jmfl": identifies the database to file(1) and to this module.
APPLICATION_ID = 0x6A6D666C
_CACHE_KIB = 48 << 10
_WAIT_SECONDS = 300


class SQLite:
    """SQL has ? in the place of a value; errors are raised as FleetError. Of PostgreSQL alike."""

    joined = "group_concat({})"  # the expression that joins texts with commas

    def __init__(self, path: str, may_be_new: bool) -> None:
        self.name = printable(path)  # safe to show
        if not may_be_new and not os.path.exists(path):
            raise FleetError(f"{self.name}: no such file; jmassif fleet load makes one")
        with self._errors():
            self._connection = sqlite3.connect(os.path.abspath(path), timeout=_WAIT_SECONDS, isolation_level=None)
            self._connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            self._connection.execute("PRAGMA synchronous = NORMAL")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise FleetError(f"{self.name}: {printable(str(error))}")

    def rows(self, sql: str, values: Sequence[Any] = ()) -> List[Row]:
        with self._errors():
            return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        with self._errors():
            self._connection.execute(sql, values)

    def _insert(self, verb: str, table: Table, rows: Iterable[Row]) -> None:
        places = ",".join("?" * len(table.columns))
        with self._errors():
            self._connection.executemany(f"{verb} INTO {table.name} VALUES ({places})", rows)

    def add(self, table: Table, rows: Iterable[Row]) -> None:
        """Inserts rows that are not there yet."""
        self._insert("INSERT", table, rows)

    def merge(self, table: Table, rows: Sequence[Row]) -> None:
        """Inserts rows; replaces those that are there."""
        self._insert("INSERT OR REPLACE", table, rows)

    def begin(self) -> None:
        """Begins a transaction; other writers wait."""
        self.run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.run("COMMIT")

    def close(self) -> None:
        with self._errors():
            self._connection.close()

    def exists(self) -> bool:
        """True if it has the tables of a fleet."""
        ((application,),) = self.rows("PRAGMA application_id")
        if application == APPLICATION_ID:
            return True
        if self.rows("SELECT count(*) FROM sqlite_master") != [(0,)]:
            raise FleetError(f"{self.name}: is another program's database: name a new file")
        return False

    def make_tables(self) -> None:
        for statement in definitions(" WITHOUT ROWID"):
            self.run(statement.replace("version INTEGER NOT NULL) WITHOUT ROWID", "version INTEGER NOT NULL)"))
        self.run(f"PRAGMA application_id = {APPLICATION_ID}")


# ---- postgres ----
# PostgreSQL, through psycopg 3. Rows are added by COPY. The tables are in a schema of their own, `jmassif`.

_SCHEMES = ("postgresql://", "postgres://")
_SCHEMA = "jmassif"
# "jmassif": the advisory lock that a writer holds until it commits.
_LOCK = 0x6A6D61737369
_COPY_BYTES = 1 << 18

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_ESCAPED = re.compile("[\\\\\t\n\r]")


def _field(value: Any) -> str:
    """A field in COPY's text format."""
    if value is None:
        return "\\N"
    return _ESCAPED.sub(lambda found: _ESCAPES[found.group()], value) if isinstance(value, str) else str(value)


def without_password(address: str) -> str:
    """An address that is safe to show."""
    return printable(re.sub(r"(?<=://)([^/@:]*):[^/@]*@", r"\1:***@", re.sub(r"(password=)[^&]*", r"\1***", address)))


class PostgreSQL:
    joined = "string_agg({}, ',')"

    def __init__(self, address: str) -> None:
        self.name = without_password(address)
        try:
            self._driver: Any = importlib.import_module("psycopg")
        except ImportError:
            raise FleetError(
                f"{self.name}: PostgreSQL needs psycopg 3: install python3-psycopg, or name a file for SQLite"
            )
        with self._errors():
            self._connection = self._driver.connect(address, autocommit=True)
            self._connection.execute(f"SET search_path TO {_SCHEMA}")
            self._connection.execute("SET work_mem = '64MB'")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._driver.Error as error:
            first = (str(error).strip().splitlines() or ["no reason given"])[0]
            raise FleetError(f"{self.name}: {printable(first)}")

    def rows(self, sql: str, values: Sequence[Any] = ()) -> List[Row]:
        with self._errors():
            found: List[Row] = self._connection.execute(sql.replace("?", "%s"), values).fetchall()
            return found

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        with self._errors():
            self._connection.execute(sql.replace("?", "%s") if values else sql, values or None)

    def add(self, table: Table, rows: Iterable[Row]) -> None:
        with self._errors(), self._connection.cursor() as cursor:
            with cursor.copy(f"COPY {table.name} ({table.names}) FROM STDIN") as copy:
                pieces: List[str] = []
                n_bytes = 0
                for row in rows:
                    line = "\t".join(map(_field, row)) + "\n"
                    pieces.append(line)
                    n_bytes += len(line)
                    if n_bytes > _COPY_BYTES:
                        copy.write("".join(pieces).encode("utf-8"))
                        pieces, n_bytes = [], 0
                copy.write("".join(pieces).encode("utf-8"))

    def merge(self, table: Table, rows: Sequence[Row]) -> None:
        if not rows:
            return
        # The last of several rows with one key counts.
        keys = [index for index, (name, _) in enumerate(table.columns) if name in table.key.split(", ")]
        last: Dict[Row, Row] = {tuple(row[index] for index in keys): row for row in rows}
        others = [name for name, _ in table.columns if name not in table.key.split(", ")]
        update = ", ".join(f"{name} = EXCLUDED.{name}" for name in others)
        places = ",".join(["%s"] * len(table.columns))
        with self._errors(), self._connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {table.name} ({table.names}) VALUES ({places}) ON CONFLICT ({table.key}) DO UPDATE SET {update}",
                list(last.values()),
            )

    def begin(self) -> None:
        self.run("BEGIN")
        self.rows("SELECT pg_advisory_xact_lock(?)::text", (_LOCK,))

    def commit(self) -> None:
        self.run("COMMIT")

    def close(self) -> None:
        self._connection.close()

    def exists(self) -> bool:
        return self.rows("SELECT to_regclass(?) IS NOT NULL", (f"{_SCHEMA}.fleet",)) == [(True,)]

    def make_tables(self) -> None:
        self.run(f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}")
        for statement in definitions():
            self.run(statement)


# ---- opening ----

Database = Union[SQLite, PostgreSQL]


def _check_version(database: Database) -> None:
    ((version,),) = database.rows("SELECT max(version) FROM fleet")
    if version != VERSION:
        raise FleetError(
            f"{database.name}: has tables of version {version}; this release needs version {VERSION}: name a new database"
        )


def open_database(name: str, may_be_new: bool = False) -> Database:
    """The database at a path, for SQLite, or at a postgresql:// address. Raises FleetError."""
    return PostgreSQL(name) if name.startswith(_SCHEMES) else SQLite(name, may_be_new)


def prepare(database: Database) -> None:
    """Makes the tables where there are none. Raises FleetError."""
    database.begin()
    if not database.exists():
        database.make_tables()
        database.run("INSERT INTO fleet VALUES (?)", (VERSION,))
    _check_version(database)
    database.commit()


def need(database: Database) -> None:
    """Raises FleetError if there is no fleet in it."""
    if not database.exists():
        raise FleetError(f"{database.name}: has no fleet: jmassif fleet load makes one")
    _check_version(database)
