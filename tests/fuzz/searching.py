# SPDX-License-Identifier: GPL-2.0-or-later
"""What the commands that search for faults have in common: the seed, how long, and what is told in the end."""

import argparse
import os
import time
from typing import Optional, Sequence

import pytest


def seed() -> int:
    """Of the short searches that every change goes through: what fails is the change's doing, not the day's.

    JMASSIF_SEED is another; searches by hand take another each time.
    """
    return int(os.environ.get("JMASSIF_SEED", "2026"))


def parser(description: Optional[str]) -> argparse.ArgumentParser:
    """With a seed, which is another each time unless it is given."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--seed", type=int, default=int(time.time()))
    return made


def counted_parser(description: Optional[str], n_runs: int) -> argparse.ArgumentParser:
    """Likewise, of a search that makes a number of runs."""
    made = parser(description)
    made.add_argument("--runs", type=int, default=n_runs)
    return made


def extent(short: int, at_length: int) -> "pytest.MarkDecorator":
    """For tests of two lengths: a few runs with every change, many now and then."""
    values = [pytest.param(short, id="short"), pytest.param(at_length, id="at_length")]
    return pytest.mark.parametrize("n_runs", values)


def ended(faults: Sequence[str]) -> int:
    """Tells the faults; the exit status."""
    for fault in faults:
        print(fault)
    return 1 if faults else 0
