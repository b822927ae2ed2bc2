# SPDX-License-Identifier: GPL-2.0-or-later
"""The sources of traces: files, also compressed ones, and standard input.

The first bytes of a file say how it is compressed, not its name. gzip comes with Python; zstd does from Python 3.14 on, and the
program zstd stands in for it before.
"""

import contextlib
import errno
import glob
import gzip
import io
import os
import re
import sys
import threading
import zlib
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Mapping, Optional, Sequence


# The name that stands for standard input.
STDIN = "-"

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_CHUNK_BYTES = 1 << 18
# Traces pack to a tenth, or a thirtieth where they repeat themselves.
_MOST_TIMES = 64
_UNPACKED_ANYWAY = 16 << 20  # bytes

# Bytes read so far and in all (None: not known), as they lie in the file.
Progress = Callable[[int, Optional[int]], None]


class _Failed(OSError):
    """With a reason in words, as the system's errors have."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EIO, reason)


class _Zstd:
    """The program zstd as a stream of what `source` holds unpacked."""

    def __init__(self, source: BinaryIO) -> None:
        import subprocess

        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(["zstd", "-dcq"], stdin=pipe, stdout=pipe, stderr=pipe)
        except OSError:
            raise _Failed("it is compressed with zstd: install the program zstd, or unpack it")
        self._feeder = threading.Thread(target=self._feed, args=(source,), daemon=True)
        self._feeder.start()

    def _feed(self, source: BinaryIO) -> None:
        import shutil

        assert self._process.stdin
        try:
            shutil.copyfileobj(source, self._process.stdin, _CHUNK_BYTES)
        except (OSError, ValueError):  # the program has ended early and will say why, or nobody wants to read on
            pass
        finally:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def readinto(self, buffer: Any) -> int:
        assert self._process.stdout and self._process.stderr
        n: int = self._process.stdout.readinto(buffer)  # type: ignore[attr-defined]
        if not n:
            said = self._process.stderr.read().decode("utf-8", "replace").strip()
            if self._process.wait() != 0:
                raise _Failed(f"its compressed data are damaged or cut off ({said[:200] or 'zstd failed'})")
        return n

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._feeder.join()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()


class _Source(io.RawIOBase):
    """Reads from `unpacked`, reports the position in `packed`, and has one kind of error."""

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
            raise _Failed("its compressed data are cut off")
        except (zlib.error, ValueError) as error:
            raise _Failed(f"its compressed data are damaged ({error})")
        except OSError as error:
            if error.strerror:
                raise
            raise _Failed(f"its compressed data are damaged ({error})")  # gzip's own errors have no number
        self._n_read += n
        self._check_ratio()
        if self._progress:
            self._progress(self._n_read if self._size is None else self._packed.tell(), self._size)
        return n

    def _check_ratio(self) -> None:
        """A small file that becomes a huge one is not read to its end."""
        if self._unpacked is self._packed or self._n_read < _UNPACKED_ANYWAY or self._size is None:
            return
        if self._n_read > _MOST_TIMES * self._size:
            raise _Failed(f"it unpacks to more than {_MOST_TIMES} times its size, which no trace does")

    def close(self) -> None:
        if not self.closed and self._unpacked is not self._packed:
            self._unpacked.close()
        super().close()


def _unpacked(packed: io.BufferedReader) -> Any:
    beginning = packed.peek(4)
    if beginning.startswith(_GZIP):
        return gzip.GzipFile(fileobj=packed)
    if beginning.startswith(_ZSTD):
        try:
            from compression import zstd  # type: ignore[import]
        except ImportError:
            return _Zstd(packed)
        return zstd.ZstdFile(packed)
    return packed


@contextlib.contextmanager
def open_input(name: str, progress: Optional[Progress] = None) -> Iterator[BinaryIO]:
    """The bytes of the file `name`, unpacked; of standard input where it is "-". Raises OSError, also while it is read."""
    if name == STDIN:
        if sys.stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        packed = io.open(sys.stdin.fileno(), "rb", closefd=False)
    else:
        packed = io.open(name, "rb")
    with packed:
        source = _Source(_unpacked(packed), packed, progress)
        with io.BufferedReader(source, _CHUNK_BYTES) as stream:
            yield stream


def _by_number(name: str) -> List[Any]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def expand(names: Sequence[str]) -> List[str]:
    """The inputs that are named, each one once, in order. Patterns that the shell has left alone stand for what they match."""
    found: Dict[str, str] = {}
    for name in names:
        matches = [name]
        if name != STDIN and not os.path.exists(name) and glob.has_magic(name):
            matches = sorted(glob.glob(name), key=_by_number) or [name]
        for match in matches:
            found.setdefault(match if match == STDIN else os.path.realpath(match), match)
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
