# SPDX-License-Identifier: GPL-2.0-or-later
"""jmassif from Python: name regions of the program that is profiled, and read what was recorded.

In the profiled program, region(), mark() and snapshot() (client.py) reach the recorder; importing them costs nothing else.

The reporter: trace.py reads the file's records, profile.py keeps them as a model, tree.py and ledger.py answer questions
about it, and each module in writers/ turns the answers into one output format. Nothing here needs more than Python 3.6.
"""

from jmassif.client import is_recording, mark, region, snapshot

__all__ = ["is_recording", "mark", "region", "snapshot"]
__version__ = "0.1.0"
