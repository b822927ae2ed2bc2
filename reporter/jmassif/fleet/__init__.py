# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of many machines in a database, and differences between groups of them.

It needs SQLAlchemy, and comparisons also pandas and SciPy. Nothing else of the reporter imports this package.
"""

# Figures at the peak; the cost of calls is of the whole run.
TOTAL = "total"
VIEWS = ("owner", "library", "scope", "python-line")
POOLS = ("bytes", "host", "device")  # bytes: host and device


class FleetError(Exception):
    """One line for the user: the failure and the mend."""


class Unavailable(FleetError):
    """A database or a cluster that does not answer, and may do so later."""
