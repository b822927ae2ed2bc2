# SPDX-License-Identifier: GPL-2.0-or-later
"""jmassif from Python: annotate the profiled program, and read traces.

region(), mark(), stage(), usage(), snapshot(), tensor() and record() (annotate.py) reach the recorder from the profiled program. Profile.load()
reads a trace (docs/reference.md). docs/architecture.md lists the folders. All of it runs on Python 3.6.
"""

import sys
from typing import TYPE_CHECKING, Any

from jmassif.annotate import is_recording, mark, record, region, snapshot, stage, tensor, tensor_freed, usage

if TYPE_CHECKING:
    from jmassif.api import FitError, Processes, Profile, TraceError
    from jmassif.model.records import side_of
    from jmassif.version import __version__

__all__ = [
    "FitError",
    "Processes",
    "Profile",
    "TraceError",
    "is_recording",
    "mark",
    "record",
    "region",
    "side_of",
    "snapshot",
    "stage",
    "tensor",
    "tensor_freed",
    "usage",
]

# Imported at first use: a training script does not need them.
_LAZY = {
    "FitError": "jmassif.api",
    "Processes": "jmassif.api",
    "Profile": "jmassif.api",
    "TraceError": "jmassif.api",
    "__version__": "jmassif.version",
    "side_of": "jmassif.model.records",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'jmassif' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)


def load_ipython_extension(shell: Any) -> None:
    """%load_ext jmassif"""
    from jmassif.notebook import load

    load(shell)


if sys.version_info < (3, 7):  # which asks a module's class, not the module, for what it lacks

    class _Module(type(sys)):
        def __getattr__(self, name: str) -> Any:
            return __getattr__(name)

    sys.modules[__name__].__class__ = _Module
