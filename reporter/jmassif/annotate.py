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

Without the recorder they do nothing, at the cost of a call. In a script that is started with `jmassif --native --start=off`,

    with jmassif.record("epoch.jmassif"):
        train()

records this part alone; without that recorder it raises an error. This module imports only modules that Python has loaded already.
"""

import errno
import functools
import os
from typing import Any, Callable, List, NamedTuple, Optional, TypeVar, Union


_Function = TypeVar("_Function", bound=Callable[..., Any])

# The recorders' preload libraries; both have the functions of libjmassif.so. The native one takes itself out of the environment.
_BELOW_VALGRIND = "vgpreload_jmassif"
_NATIVE = "libjmassif-native.so"


def _is_preloaded() -> bool:
    if _BELOW_VALGRIND in os.environ.get("LD_PRELOAD", ""):
        return True
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as stream:
            return any(_NATIVE in line for line in stream)
    except OSError:
        return False


@functools.lru_cache(maxsize=None)
def _recorder() -> Optional[Any]:
    """The recorder's functions; None without a recorder."""
    if not _is_preloaded():
        return None
    import ctypes

    functions = ctypes.PyDLL(None)  # it keeps the interpreter's lock: the recorder reads objects faster
    return functions if hasattr(functions, "jmassif_region_begin") else None


def _records() -> bool:
    """False also before and after record(), where the recorder does nothing."""
    recorder = _recorder()
    return recorder is not None and bool(getattr(recorder, "jmassif_records", lambda: True)())


def _call(function: str, *arguments: Union[str, int]) -> None:
    """Call a function of the recorder, if there is one, with texts and pointer-sized numbers."""
    recorder = _recorder()
    if recorder is None:
        return
    import ctypes

    values: List[Any] = []
    for each in arguments:
        if isinstance(each, str):
            values.append(each.encode("utf-8", "replace").replace(b"\0", b"\xef\xbf\xbd"))
        else:
            values.append(ctypes.c_void_p(each))  # a plain number would be C's int
    getattr(recorder, f"jmassif_{function}")(*values)


def is_recording() -> bool:
    """True if jmassif records this program now."""
    return _records()


def mark(name: str) -> None:
    """Sets a mark with a snapshot; --snapshot=NAME reports on this moment."""
    _call("mark", name)


def stage(name: str) -> None:
    """Sets a mark and restarts the peaks, so that a test or an epoch has exact peaks of its own."""
    _call("stage", name)


class LiveUsage(NamedTuple):
    """Bytes now, and peaks since the last stage began."""

    host: int
    device: int
    peak_host: int
    peak_device: int
    peak_total: int


def usage() -> Optional[LiveUsage]:
    """The ledger's totals; None where nothing is recorded."""
    recorder = _recorder()
    if recorder is None or not _records():
        return None
    import ctypes

    numbers = (ctypes.c_size_t * 5)()
    recorder.jmassif_usage(numbers)
    return LiveUsage(*numbers)


def snapshot() -> None:
    """Takes a snapshot and writes all that was recorded so far to the trace."""
    _call("snapshot")


def tensor(address: int, n_bytes: int) -> None:
    """Reports a tensor: a part of a CUDA block. The rest of the block counts as cache from now on."""
    _call("tensor", address, n_bytes)


def tensor_freed(address: int) -> None:
    """Reports the end of a tensor."""
    _call("tensor_freed", address)


class region:
    """A named span of this thread's time: a context manager, and a decorator for functions. May be entered again."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> "region":
        _call("region_begin", self.name)
        return self

    def __exit__(self, *exception: object) -> None:
        _call("region_end", self.name)

    def __call__(self, function: _Function) -> _Function:
        @functools.wraps(function)
        def inside(*arguments: Any, **named: Any) -> Any:
            # A region of its own for each call: calls may overlap in threads.
            with region(self.name):
                return function(*arguments, **named)

        return inside  # type: ignore[return-value]


_START_COMMAND = "jmassif --native --start=off python3 SCRIPT"


class record:
    """Records a part of a script, all threads, in a trace: a context manager. It works once in a process.

    In the path, %p is the process id; None stands for the path that the command was given. The script must have been started with
    `jmassif --native --start=off`, or RuntimeError says so; OSError if the trace cannot be written.
    """

    def __init__(self, path: Union[None, str, "os.PathLike[str]"] = None) -> None:
        self.path = path

    def __enter__(self) -> "record":
        recorder = _recorder()
        start = getattr(recorder, "jmassif_start", None)
        error = start(None if self.path is None else os.fsencode(self.path)) if start else errno.ENOTSUP
        if error == errno.ENOTSUP:
            raise RuntimeError(f"jmassif.record() needs the native recorder; start the script by: {_START_COMMAND}")
        if error == errno.EALREADY:
            raise RuntimeError(
                f"jmassif records already; to record a part alone, start the script by: {_START_COMMAND}"
            )
        if error == errno.EBUSY:
            raise RuntimeError(
                "jmassif.record() works once in a process, and its recording has ended; use a process for each part"
            )
        if error:
            raise OSError(error, os.strerror(error), None if self.path is None else os.fspath(self.path))
        return self

    def __exit__(self, *exception: object) -> None:
        recorder = _recorder()
        if recorder is not None:
            recorder.jmassif_stop()
