# SPDX-License-Identifier: GPL-2.0-or-later
"""The sources of traces: files, compressed with gzip or not, and standard input. The first bytes of a file say so, not its name."""

import contextlib
import errno
import gzip
import io
import os
import sys
import zlib
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Mapping, Optional, Sequence


# The name that stands for standard input.
STDIN = "-"

_GZIP = b"\x1f\x8b"
_CHUNK_BYTES = 1 << 18
# Traces pack to a tenth, or a thirtieth where they repeat themselves.
_MOST_TIMES = 64
_UNPACKED_ANYWAY = 16 << 20  # bytes

# Bytes read so far and in all (None: not known), as they lie in the file.
Progress = Callable[[int, Optional[int]], None]


def _failed(reason: str) -> OSError:
    """An error with a reason in words, as the system's errors have."""
    return OSError(errno.EIO, reason)


class _Source(io.RawIOBase):
    """Reads from `unpacked`, reports the position in the file `packed`, and has one kind of error."""

    def __init__(self, unpacked: Any, packed: BinaryIO, progress: Optional[Progress]) -> None:
        super().__init__()
        self._unpacked = unpacked
        self._packed = packed
        self._progress = progress
        self._size = os.fstat(packed.fileno()).st_size if packed.seekable() else None
        self._n_read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            n: int = self._unpacked.readinto(buffer)
        except EOFError:
            raise _failed("its compressed data are cut off")
        except (zlib.error, ValueError) as error:
            raise _failed(f"its compressed data are damaged ({error})")
        except OSError as error:
            if error.strerror:
                raise
            raise _failed(f"its compressed data are damaged ({error})")  # gzip's own errors have no number
        self._n_read += n
        if self._size is not None and self._n_read > max(_UNPACKED_ANYWAY, _MOST_TIMES * self._size):
            raise _failed(f"it unpacks to more than {_MOST_TIMES} times its size, which no trace does")
        if self._progress:
            at = self._n_read if self._size is None else os.lseek(self._packed.fileno(), 0, os.SEEK_CUR)
            self._progress(at, self._size)
        return n

    def close(self) -> None:
        if not self.closed and self._unpacked is not self._packed:
            self._unpacked.close()
        super().close()


@contextlib.contextmanager
def open_input(name: str, progress: Optional[Progress] = None) -> Iterator[BinaryIO]:
    """The bytes of the file `name`, unpacked; of standard input where it is "-". Raises OSError, also while it is read."""
    if name == STDIN and sys.stdin is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    is_file = name != STDIN
    with io.open(name if is_file else sys.stdin.fileno(), "rb", closefd=is_file) as packed:
        unpacked: Any = gzip.GzipFile(fileobj=packed) if packed.peek(4).startswith(_GZIP) else packed
        with io.BufferedReader(_Source(unpacked, packed, progress), _CHUNK_BYTES) as stream:
            yield stream


def without_repeats(names: Sequence[str]) -> List[str]:
    """The inputs that are named, each one once, in order."""
    found: Dict[str, str] = {}
    for name in names:
        found.setdefault(name if name == STDIN else os.path.realpath(name), name)
    return list(found.values())


# ---- who writes ------------------------------------------------------------------------------


def is_of_this_machine(manifest: Mapping[str, str]) -> bool:
    return manifest.get("host") == os.uname().nodename


def process_is_there(manifest: Mapping[str, str]) -> bool:
    """True if this machine has the process of a trace, and not another one with its number."""
    pid, _, start = manifest.get("process", "").partition(".")
    if not is_of_this_machine(manifest) or not pid.isdecimal():
        return False
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return False
    # Fields 3 and 22 of proc(5) stat: the state, and the start.
    return len(fields) > 19 and fields[0] not in (b"Z", b"X") and fields[19].decode() == start
