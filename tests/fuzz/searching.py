# SPDX-License-Identifier: GPL-2.0-or-later
"""What the commands that search for faults have in common: the seed, how long, and what is told in the end."""

import argparse
import os
import time
from typing import Optional, Sequence


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


def timed_parser(description: Optional[str]) -> argparse.ArgumentParser:
    """Likewise, of a search that goes on for some seconds."""
    made = parser(description)
    made.add_argument("--seconds", type=float, default=20)
    return made


def ended(faults: Sequence[str]) -> int:
    """Tells the faults; the exit status."""
    for fault in faults:
        print(fault)
    return 1 if faults else 0
