# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kind of database a name stands for."""

from jmassif.fleet.database import Database
from jmassif.fleet.postgres import PostgreSQL, is_address
from jmassif.fleet.sqlite import SQLite


def open_database(name: str, may_be_new: bool = False) -> Database:
    """The database at a path, for SQLite, or at a postgresql:// address. Raises FleetError."""
    if is_address(name):
        return PostgreSQL(name)
    return SQLite(name, may_be_new)
