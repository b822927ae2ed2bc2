# SPDX-License-Identifier: GPL-2.0-or-later
"""A database with a fleet in it: what is asked of one, whatever kind it is. SQL here has ? where a value goes."""

from typing import Any, Iterable, List, Sequence, Tuple

from jmassif.fleet.schema import TABLES, VERSION, FleetError, Table

Row = Tuple[Any, ...]


class Database:
    """One kind's calls. Whatever goes wrong in it raises FleetError."""

    # A path or an address that is safe to show.
    name = ""
    # Whether rows come in parts that fit nobody's memory at once, and what an expression is that joins texts with commas.
    joined = ""

    def rows(self, sql: str, values: Sequence[Any] = ()) -> List[Row]:
        raise NotImplementedError

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        raise NotImplementedError

    def add(self, table: Table, rows: Iterable[Row]) -> None:
        """Rows that are not there yet."""
        raise NotImplementedError

    def merge(self, table: Table, rows: Sequence[Row]) -> None:
        """Rows of which some may be there: those are replaced."""
        raise NotImplementedError

    def begin(self) -> None:
        """What follows is there as a whole or not at all; others that add wait."""
        raise NotImplementedError

    def commit(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def exists(self) -> bool:
        """Whether there are tables of a fleet."""
        raise NotImplementedError

    def make_tables(self) -> None:
        """In a database that has none."""
        raise NotImplementedError

    def check_version(self) -> None:
        ((version,),) = self.rows("SELECT max(version) FROM fleet")
        if version != VERSION:
            raise FleetError(
                f"{self.name}: has tables of version {version}, and this jm_fleet knows version {VERSION}: name a new one"
            )

    def prepare(self) -> None:
        """Makes the tables where there are none."""
        self.begin()
        if not self.exists():
            self.make_tables()
            self.run("INSERT INTO fleet VALUES (?)", (VERSION,))
        self.check_version()
        self.commit()

    def need(self) -> None:
        """Raises FleetError if there is no fleet in it."""
        if not self.exists():
            raise FleetError(f"{self.name}: has no fleet in it: jm_fleet load makes one")
        self.check_version()


def definitions(suffix: str = "") -> List[str]:
    """The statements that make the tables."""
    found = ["CREATE TABLE fleet (version INTEGER NOT NULL)"]
    for table in TABLES:
        columns = ", ".join(f"{name} {type_}" for name, type_ in table.columns)
        found.append(f"CREATE TABLE {table.name} ({columns}, PRIMARY KEY ({table.key})){suffix}")
    found.append("CREATE INDEX figure_by_part ON figure (part, run, host, device)")
    return found
