# SPDX-License-Identifier: GPL-2.0-or-later
"""The database of a fleet: its tables, in a file of SQLite or in PostgreSQL, through SQLAlchemy Core (1.4 or 2).

Every table that grows with the runs begins with the run, so a distributed PostgreSQL can spread them by it (docs/guide.md). A
run's number is a hash of its id, a part's of its name and so on: a loader needs no sequence, and adding a run twice finds it
there. Values that many runs share are stored once: names of parts in `part`, the hundred facts of a board's software in `setup`.
"""

import os
from contextlib import contextmanager
from typing import Any, Iterator, List

from sqlalchemy import BigInteger, Column, Index, MetaData, Table, Text, create_engine, func, inspect, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from jmassif.fleet import SERVERS, FleetError, Unavailable
from jmassif.units import printable

VERSION = 2
_METADATA = MetaData()


def _table(name: str, key: str, texts: str, numbers: str) -> Any:
    """Names of columns: those of the key come first, and are whole numbers unless they are among the texts."""
    names = dict.fromkeys(f"{key} {texts} {numbers}".split())
    types = ((column, Text if column in texts.split() else BigInteger) for column in names)
    columns = [Column(*each, primary_key=each[0] in key.split(), autoincrement=False) for each in types]
    return Table(name, _METADATA, *columns, sqlite_with_rowid=False)


RUN = _table(
    "run",
    "run",
    "id file host board l4t jetpack pytorch command start ended",
    "pid start_unix_ms is_complete end_time is_discrete peak_total peak_host peak_device setup",
)
FIGURE = _table("figure", "run part", "", "host device number")
PART = _table("part", "part", "view name", "")
SETUP = _table("setup", "setup key", "key value", "")
# Files that were read: a load that was killed need not read them again. The reason is that of a refused file.
TRACE = _table("trace", "path", "path reason", "size mtime_ns run")
_FLEET = Table("fleet", _METADATA, Column("version", BigInteger))
Index("figure_by_part", FIGURE.c.part, FIGURE.c.run, FIGURE.c.host, FIGURE.c.device)

# A server's sessions find the tables in a schema of their own. In a file, transactions begin where begin() is called.
_SESSIONS = {
    "sqlite": {"timeout": 300, "isolation_level": None},
    "postgresql": {"options": "-c search_path=jmassif -c work_mem=64MB"},
}
# A writer waits for others. The number, "jmassi", is that of a lock until the transaction ends.
_LOCKS = {"sqlite": text("BEGIN IMMEDIATE"), "postgresql": select(func.pg_advisory_xact_lock(0x6A6D61737369))}


def begin(connection: Any) -> None:
    """Begin a transaction that writes; other writers wait until it is committed."""
    connection.execute(_LOCKS[connection.dialect.name])


def insert(connection: Any, table: Any, rows: List[Any]) -> None:
    """Add rows, dictionaries by column, but for those that are there."""
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    if rows:
        connection.execute(dialect.insert(table).on_conflict_do_nothing(), rows)


@contextmanager
def opened(name: str, may_be_new: bool = False) -> Iterator[Any]:
    """A connection to the fleet in a file of SQLite or at a postgresql:// address. Raises FleetError, also for errors inside."""
    is_file = not name.startswith(SERVERS)
    if is_file and not (may_be_new or os.path.exists(name)):
        raise FleetError(f"{printable(name)}: no such file; jmassif fleet load makes one")
    try:
        file = URL.create("sqlite", database=os.path.abspath(name))
        url = file if is_file else make_url(name.replace("postgres://", "postgresql://", 1))
    except (ArgumentError, ValueError):
        raise FleetError("the database's address is not like postgresql://USER@HOST:PORT/NAME")
    shown = printable(name if is_file else repr(url.difference_update_query(["password"])))  # no password in it
    engine = create_engine(url, connect_args=_SESSIONS[url.drivername], poolclass=NullPool, future=True)
    try:
        with engine.connect() as connection:
            if may_be_new:
                begin(connection)
            tables = inspect(connection).get_table_names()
            if may_be_new and not tables:
                if not is_file:
                    connection.execute(text("CREATE SCHEMA IF NOT EXISTS jmassif"))
                _METADATA.create_all(connection, checkfirst=False)
                connection.execute(_FLEET.insert(), {"version": VERSION})
            elif "fleet" not in tables or connection.execute(select(_FLEET.c.version)).scalar() != VERSION:
                raise FleetError(f"{shown}: has no tables of a fleet in version {VERSION}: name another database")
            connection.commit()
            yield connection
    except SQLAlchemyError as error:
        first = str(getattr(error, "orig", None) or error).strip().splitlines() or ["no reason given"]
        raise Unavailable(f"{shown}: {printable(first[0])}")
