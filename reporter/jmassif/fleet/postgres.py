# SPDX-License-Identifier: GPL-2.0-or-later
"""A fleet in PostgreSQL, through psycopg 3, which nobody needs who keeps his in SQLite. Rows come by COPY.

The tables are in a schema of their own, `jmassif`, so that they may lie beside others in a database.
"""

import importlib
import re
from contextlib import contextmanager
from typing import Any, Dict, Iterable, Iterator, List, Sequence

from jmassif.fleet.database import Database, Row, definitions
from jmassif.fleet.schema import FleetError, Table
from jmassif.units import printable

SCHEMES = ("postgresql://", "postgres://")
_SCHEMA = "jmassif"
# "jmassif": who adds holds it until he has committed.
_LOCK = 0x6A6D61737369
_COPY_BYTES = 1 << 18

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_ESCAPED = re.compile("[\\\\\t\n\r]")


def _field(value: Any) -> str:
    """As COPY's text format has it."""
    if value is None:
        return "\\N"
    return _ESCAPED.sub(lambda found: _ESCAPES[found.group()], value) if isinstance(value, str) else str(value)


def without_password(address: str) -> str:
    """An address that is safe to show."""
    return printable(re.sub(r"(?<=://)([^/@:]*):[^/@]*@", r"\1:***@", re.sub(r"(password=)[^&]*", r"\1***", address)))


class PostgreSQL(Database):
    joined = "string_agg({}, ',')"

    def __init__(self, address: str) -> None:
        self.name = without_password(address)
        try:
            self._driver: Any = importlib.import_module("psycopg")
        except ImportError:
            raise FleetError(
                f"{self.name}: PostgreSQL needs psycopg 3: install python3-psycopg, or let DB be a file, for SQLite"
            )
        with self._told():
            self._connection = self._driver.connect(address, autocommit=True)
            self._connection.execute(f"SET search_path TO {_SCHEMA}")
            self._connection.execute("SET work_mem = '64MB'")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except self._driver.Error as error:
            first = (str(error).strip().splitlines() or ["it does not say why"])[0]
            raise FleetError(f"{self.name}: {printable(first)}")

    def rows(self, sql: str, values: Sequence[Any] = ()) -> List[Row]:
        with self._told():
            found: List[Row] = self._connection.execute(sql.replace("?", "%s"), values).fetchall()
            return found

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        with self._told():
            self._connection.execute(sql.replace("?", "%s") if values else sql, values or None)

    def add(self, table: Table, rows: Iterable[Row]) -> None:
        with self._told(), self._connection.cursor() as cursor:
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
        # The last of those with one key, as a table of keys knows no order.
        keys = [index for index, (name, _) in enumerate(table.columns) if name in table.key.split(", ")]
        last: Dict[Row, Row] = {tuple(row[index] for index in keys): row for row in rows}
        others = [name for name, _ in table.columns if name not in table.key.split(", ")]
        update = ", ".join(f"{name} = EXCLUDED.{name}" for name in others)
        places = ",".join(["%s"] * len(table.columns))
        with self._told(), self._connection.cursor() as cursor:
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


def is_address(name: str) -> bool:
    return name.startswith(SCHEMES)
