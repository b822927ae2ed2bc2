# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of many machines in a database, and differences between groups of them.

It needs SQLAlchemy, and comparisons also pandas and SciPy. Of the reporter only commands import this package.
"""

# Figures at the peak; the cost of calls is of the whole run.
TOTAL = "total"
VIEWS = ("owner", "library", "scope", "python-line")
SERVERS = ("postgresql://", "postgres://")  # beginnings of a database's name that is no file


class FleetError(Exception):
    """One line for the user: the failure and the mend."""


class Unavailable(FleetError):
    """A database or a cluster that does not answer, and may do so later."""


def needed(error: ImportError) -> str:
    return f"needs {error.name}: apt install python3-{error.name}"
