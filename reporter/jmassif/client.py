# SPDX-License-Identifier: GPL-2.0-or-later
"""For the program that is profiled: names for what it does, on the report's timeline.

    import jmassif

    with jmassif.region("load weights"):
        net.load_state_dict(torch.load("net.pt"))

    @jmassif.region("epoch")
    def train(): ...

    jmassif.mark("before validation")

Under jmassif they reach the recorder; anywhere else they do nothing, at the cost of a call. Importing this module
imports nothing else that a Python program does not have already.
"""

import functools
import os
from typing import Any, Callable, List, Optional, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

# The recorder's preload library as Valgrind names it to the dynamic linker; it has the functions of libjmassif.so.
_PRELOADED = "vgpreload_jmassif"

_library: Any = None
_is_looked_up = False


def _recorder() -> Optional[Any]:
    """The recorder's functions; None where there is no recorder."""
    global _library, _is_looked_up
    if not _is_looked_up:
        _is_looked_up = True
        if _PRELOADED in os.environ.get("LD_PRELOAD", ""):
            import ctypes

            functions = ctypes.CDLL(None)
            if hasattr(functions, "jmassif_region_begin"):
                _library = functions
    return _library


def _text(name: str) -> bytes:
    return name.encode("utf-8", "replace").replace(b"\0", b"\xef\xbf\xbd")


def is_recording() -> bool:
    """Whether this program runs under jmassif."""
    return _recorder() is not None


def mark(name: str) -> None:
    """Sets a mark now, with a snapshot: reports can be asked for this moment by its name."""
    recorder = _recorder()
    if recorder is not None:
        recorder.jmassif_mark(_text(name))


def snapshot() -> None:
    """Takes a snapshot now, and writes everything that was recorded so far to the trace."""
    recorder = _recorder()
    if recorder is not None:
        recorder.jmassif_snapshot()


class region:
    """A named span of this thread's time: a context manager, and a decorator for functions. May be entered again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._begun: List[bytes] = []

    def __enter__(self) -> "region":
        recorder = _recorder()
        if recorder is not None:
            text = _text(self.name)
            recorder.jmassif_region_begin(text)
            self._begun.append(text)
        return self

    def __exit__(self, *exception: object) -> None:
        recorder = _recorder()
        if recorder is not None and self._begun:
            recorder.jmassif_region_end(self._begun.pop())

    def __call__(self, function: _Function) -> _Function:
        @functools.wraps(function)
        def inside(*arguments: Any, **named: Any) -> Any:
            # A region of its own for each call: calls may overlap in threads.
            with region(self.name):
                return function(*arguments, **named)

        return inside  # type: ignore[return-value]
