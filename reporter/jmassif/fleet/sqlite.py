# SPDX-License-Identifier: GPL-2.0-or-later
"""A fleet in a file of SQLite's: the default, for which nothing has to be installed."""

import os
import sqlite3
from contextlib import contextmanager
from typing import Any, Iterable, Iterator, List, Sequence

from jmassif.fleet.database import Database, Row, definitions
from jmassif.fleet.schema import FleetError, Table
from jmassif.units import printable

# "jmfl": by it file(1) and this module tell the database from others.
APPLICATION_ID = 0x6A6D666C
_CACHE_KIB = 48 << 10
_WAIT_SECONDS = 300


class SQLite(Database):
    joined = "group_concat({})"

    def __init__(self, path: str, may_be_new: bool) -> None:
        self.name = printable(path)
        if not may_be_new and not os.path.exists(path):
            raise FleetError(f"{self.name}: there is no such file: jm_fleet load makes one")
        with self._told():
            self._connection = sqlite3.connect(os.path.abspath(path), timeout=_WAIT_SECONDS, isolation_level=None)
            self._connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            self._connection.execute("PRAGMA synchronous = NORMAL")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise FleetError(f"{self.name}: {printable(str(error))}")

    def rows(self, sql: str, values: Sequence[Any] = ()) -> List[Row]:
        with self._told():
            return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        with self._told():
            self._connection.execute(sql, values)

    def _insert(self, verb: str, table: Table, rows: Iterable[Row]) -> None:
        places = ",".join("?" * len(table.columns))
        with self._told():
            self._connection.executemany(f"{verb} INTO {table.name} VALUES ({places})", rows)

    def add(self, table: Table, rows: Iterable[Row]) -> None:
        self._insert("INSERT", table, rows)

    def merge(self, table: Table, rows: Sequence[Row]) -> None:
        self._insert("INSERT OR REPLACE", table, rows)

    def begin(self) -> None:
        self.run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.run("COMMIT")

    def close(self) -> None:
        with self._told():
            self._connection.close()

    def exists(self) -> bool:
        ((application,),) = self.rows("PRAGMA application_id")
        if application == APPLICATION_ID:
            return True
        if self.rows("SELECT count(*) FROM sqlite_master") != [(0,)]:
            raise FleetError(f"{self.name}: is a database of something else: name a new file")
        return False

    def make_tables(self) -> None:
        for statement in definitions(" WITHOUT ROWID"):
            self.run(statement.replace("version INTEGER NOT NULL) WITHOUT ROWID", "version INTEGER NOT NULL)"))
        self.run(f"PRAGMA application_id = {APPLICATION_ID}")
