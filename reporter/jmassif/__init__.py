# SPDX-License-Identifier: GPL-2.0-or-later
"""jmassif from Python: name regions of the program that is profiled, and read what was recorded.

In the profiled program, region(), mark() and snapshot() (client.py) reach the recorder; importing them costs nothing else.
Profile.load() reads a trace; docs/python-api.md tells what can be asked of it.

The reporter: trace.py reads the file's records, profile.py keeps them as a model, tree.py and ledger.py answer questions
about it, and each module in writers/ turns the answers into one output format. Nothing here needs more than Python 3.6.
"""

import sys
from typing import TYPE_CHECKING, Any

from jmassif.client import is_recording, mark, region, snapshot

if TYPE_CHECKING or sys.version_info < (3, 7):
    from jmassif.processes import Processes
    from jmassif.profile import Profile
    from jmassif.trace import TraceError

__all__ = ["Processes", "Profile", "TraceError", "is_recording", "mark", "region", "snapshot"]
__version__ = "0.1.0"

# Not what a training script needs, so it is imported at first use.
_LAZY = {"Processes": "jmassif.processes", "Profile": "jmassif.profile", "TraceError": "jmassif.trace"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'jmassif' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)
