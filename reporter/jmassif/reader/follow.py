# SPDX-License-Identifier: GPL-2.0-or-later
"""Follows a trace while it is written: a file that grows, or a pipe. Nothing is read twice but its tail.

What a recorder has written stays, but for one thing: at the end of a file may be a tail (docs/trace-format.md), a `t` record
and a snapshot group in place of which the next records are written. Nothing in it says that it is one. So of a file the last
group is held back as long as nothing comes after it, and is read anew when the file has changed; all before it is settled.
Into a pipe no tails are written. When the trace begins anew (the file was truncated, or is another one), so does the reader.
"""

import io
import os
import select
import stat
import sys
from typing import Any, Callable, NamedTuple, Optional, Tuple, Union

from jmassif.reader.input import STDIN
from jmassif.reader.tokens import CUT_AT_ONCE, EMPTY, MAGIC, MOST_LINE_BYTES, Reader, TraceError


# As much is read at once, so that whoever shows what was read stays awake.
_BITE_BYTES = 1 << 20
# No group that a recorder writes is as long: what is held back beyond that is no tail.
_MOST_HELD_BYTES = 64 << 20
# How often a file is read that changes meanwhile.
_TRIES = 4
_BEGINS_ANEW = b"\n" + MAGIC


class Bytes(NamedTuple):
    settled: bytes  # whole lines, never given before
    tail: bytes  # whole lines that may go again
    begins_anew: bool  # forget all that came before
    is_all: bool  # there is no more at the moment
    is_over: bool  # and there never will be


_NOTHING = Bytes(b"", b"", False, True, False)


def settled_bytes(text: bytes) -> int:
    """How much of a file's end, which begins with a line, will stay whatever comes."""
    end = text.rfind(b"\n") + 1
    begin = text.rfind(b"\nS ", 0, end) + 1
    closing = text.find(b"\nE ", begin, end)
    is_followed = closing >= 0 and text.find(b"\n", closing + 1, end) + 1 < len(text)
    if is_followed or not text.startswith(b"S ", begin, end):
        begin = end
    # The totals that a tail begins with, or may be about to.
    line = text.rfind(b"\n", 0, max(0, begin - 1)) + 1
    return line if text.startswith(b"t ", line, begin) else begin


def _whole_lines(text: bytes) -> int:
    """How many bytes of it. What is longer than any line is one, so that it is refused and not collected for ever."""
    return text.rfind(b"\n") + 1 or (len(text) if len(text) >= MOST_LINE_BYTES else 0)


class _File:
    """A regular file that a program is writing, or has written."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path, self._file = path, descriptor
        self._at = 0  # all before it was given
        self._n_held = 0  # bytes that were read, but not given
        self._state: Optional[Tuple[int, int]] = None  # when all was read
        self.size = 0

    @property
    def n_read(self) -> int:
        return self._at

    def read(self) -> Bytes:
        begins_anew = self._is_another()
        for _ in range(_TRIES):
            found = os.fstat(self._file)
            state = (found.st_size, found.st_mtime_ns)
            self.size = found.st_size
            if state == self._state and not begins_anew:
                return _NOTHING
            text = os.pread(self._file, self._n_held + _BITE_BYTES, self._at)
            after = os.fstat(self._file)
            if (after.st_size, after.st_mtime_ns) == state:
                break
        else:
            return Bytes(b"", b"", begins_anew, False, False)
        is_all = self._at + len(text) >= state[0]
        if is_all or len(text) < _MOST_HELD_BYTES:
            n = settled_bytes(text)
        else:
            n = _whole_lines(text)
        self._at += n
        self._n_held = 0 if is_all else len(text) - n
        self._state = state if is_all else None
        tail = text[n : text.rfind(b"\n") + 1] if is_all else b""
        return Bytes(text[:n], tail, begins_anew, is_all, False)

    def _is_another(self) -> bool:
        """The run was started again: the name leads to another file, or this one lost what was in it."""
        try:
            there = os.stat(self._path)
        except OSError:
            return False
        here = os.fstat(self._file)
        if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            os.close(self._file)
            self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        elif here.st_size >= self._at:
            return False
        self._at, self._n_held, self._state = 0, 0, None
        return True

    def fileno(self) -> Optional[int]:
        return None

    def close(self) -> None:
        os.close(self._file)


class _Pipe:
    """A pipe, a FIFO, a terminal: what comes stays."""

    size = 0

    def __init__(self, descriptor: int, has_begun: bool) -> None:
        """`has_begun`: where nobody writes to it, nobody will."""
        self._file = descriptor
        self._rest = b""
        self._begun = has_begun
        self._is_over = False
        self.n_read = 0

    def read(self) -> Bytes:
        if self._is_over:
            return _NOTHING
        pieces = [self._rest]
        n_bytes = 0
        is_all = False
        while n_bytes < _BITE_BYTES:
            if not select.select([self._file], [], [], 0)[0]:
                is_all = True
                break
            try:
                piece = os.read(self._file, _BITE_BYTES)
            except BlockingIOError:  # a FIFO that is open for writing, and empty
                is_all = True
                break
            if not piece:
                # A FIFO reads as ended, too, until the first writer opens it.
                is_all, self._is_over = True, self._begun
                break
            self._begun = True
            n_bytes += len(piece)
            pieces.append(piece)
        self.n_read += n_bytes
        text = b"".join(pieces)
        end = _whole_lines(text)
        again = text.rfind(_BEGINS_ANEW, 0, end) + 1
        self._rest = text[end:]
        return Bytes(text[again:end], b"", bool(again), is_all, self._is_over)

    def fileno(self) -> Optional[int]:
        return None if self._is_over else self._file

    def close(self) -> None:
        os.close(self._file)


def _opened(name: str) -> Union[_File, _Pipe]:
    """Raises TraceError."""
    try:
        if name == STDIN:
            if sys.stdin is None:
                raise OSError(9, os.strerror(9))
            descriptor = os.dup(sys.stdin.fileno())
        else:
            descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            os.close(descriptor)
            raise IsADirectoryError(21, os.strerror(21))
    except OSError as error:
        raise TraceError(f"cannot be read: {error.strerror}")
    if stat.S_ISREG(mode):
        return _File(f"/proc/self/fd/{descriptor}" if name == STDIN else name, descriptor)
    # A FIFO as standard input has had its writer by now; other files, such as /dev/null, have none.
    return _Pipe(descriptor, has_begun=name == STDIN or not stat.S_ISFIFO(mode))


class Follower:
    """One trace. `begin` is called when it begins, and again when it restarts, for the handlers of its records."""

    def __init__(self, name: str, begin: Callable[[], Any], drop_tail: Callable[[], None] = lambda: None) -> None:
        """`drop_tail` is called before records are handed on that follow a tail or replace it. Raises TraceError."""
        self.name = name
        self._begin = begin
        self._drop_tail = drop_tail
        self._source = _opened(name)
        self._reader = Reader(begin())
        self.tail = b""  # lines of a `t` record and a snapshot group that may go again, or b""
        self.is_over = False  # a pipe, and nobody writes to it any more
        self.is_all = False  # all that there is was read
        self.has_begun = False

    def poll(self) -> bool:
        """Reads on, a bite at most. Whether anything is new. Raises TraceError: then it cannot be followed any further."""
        try:
            found = self._source.read()
        except OSError as error:
            raise TraceError(f"cannot be read: {error.strerror}")
        is_news = bool(found.settled) or found.begins_anew or found.is_over != self.is_over
        if found.begins_anew:
            self._reader = Reader(self._begin())
            self.tail = b""
        self.is_all = found.is_all
        self.is_over = self.is_over or found.is_over
        if found.is_over and not (self.has_begun or found.settled):
            raise TraceError(CUT_AT_ONCE if self._source.n_read else EMPTY)
        if found.settled:
            self._drop_tail()
            self._reader.read(io.BytesIO(found.settled))
            self.has_begun = True
        if found is not _NOTHING and (found.is_all or found.settled):
            is_news = is_news or found.tail != self.tail
            self.tail = found.tail
        return is_news

    def lay(self, tail: bytes) -> None:
        """Hands on the records of a tail, to be undone by `drop_tail`. Raises TraceError."""
        self._reader.read_apart(io.BytesIO(tail))

    @property
    def n_read(self) -> int:
        """Bytes."""
        return self._source.n_read

    @property
    def share_read(self) -> float:
        """The share of a file that is read."""
        return self._source.n_read / self._source.size if self._source.size else 1.0

    def fileno(self) -> Optional[int]:
        """A descriptor to wait for; None: a file, which is polled."""
        return self._source.fileno()

    def close(self) -> None:
        self._source.close()
