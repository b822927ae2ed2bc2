# SPDX-License-Identifier: GPL-2.0-or-later
"""Annotations of the profiled program: names on the report's timeline.

    import jmassif

    with jmassif.region("load weights"):
        net.load_state_dict(torch.load("net.pt"))

    @jmassif.region("epoch")
    def train(): ...

    jmassif.mark("before validation")

A caching allocator of your own reports its blocks; the report then has tensors and cache as for PyTorch:

    jmassif.tensor(address, n_bytes)
    jmassif.tensor_freed(address)

Without the recorder they do nothing, at the cost of a call. This module imports only modules that Python has loaded already.
"""

import functools
import os
from typing import Any, Callable, List, NamedTuple, Optional, TypeVar


_Function = TypeVar("_Function", bound=Callable[..., Any])

# The recorder's preload library as Valgrind names it to the dynamic linker; it has the functions of libjmassif.so.
_PRELOADED = "vgpreload_jmassif"

_library: Any = None
_is_looked_up = False


def _recorder() -> Optional[Any]:
    """The recorder's functions; None without a recorder."""
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


def _pointer(number: int) -> Any:
    """A pointer-sized argument; ctypes passes plain numbers as C's int."""
    import ctypes

    return ctypes.c_void_p(number)


def is_recording() -> bool:
    """True if this program runs under jmassif."""
    return _recorder() is not None


def mark(name: str) -> None:
    """Sets a mark with a snapshot; --snapshot=NAME reports on this moment."""
    recorder = _recorder()
    if recorder is not None:
        recorder.jmassif_mark(_text(name))


def stage(name: str) -> None:
    """Sets a mark and restarts the peaks, so that a test or an epoch has exact peaks of its own."""
    recorder = _recorder()
    if recorder is not None and hasattr(recorder, "jmassif_stage"):
        recorder.jmassif_stage(_text(name))


class LiveUsage(NamedTuple):
    """Bytes now, and peaks since the last stage began."""

    host: int
    device: int
    peak_host: int
    peak_device: int
    peak_total: int


def usage() -> Optional[LiveUsage]:
    """The ledger's totals; None where there is no recorder."""
    recorder = _recorder()
    if recorder is None or not hasattr(recorder, "jmassif_usage"):
        return None
    import ctypes

    numbers = (ctypes.c_size_t * 5)()
    recorder.jmassif_usage(numbers)
    return LiveUsage(*numbers)


def snapshot() -> None:
    """Takes a snapshot and writes all that was recorded so far to the trace."""
    recorder = _recorder()
    if recorder is not None:
        recorder.jmassif_snapshot()


def tensor(address: int, n_bytes: int) -> None:
    """Reports a tensor: a part of a CUDA block. The rest of the block counts as cache from now on."""
    recorder = _recorder()
    if recorder is not None:
        recorder.jmassif_tensor(_pointer(address), _pointer(n_bytes))


def tensor_freed(address: int) -> None:
    """Reports the end of a tensor."""
    recorder = _recorder()
    if recorder is not None:
        recorder.jmassif_tensor_freed(_pointer(address))


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
