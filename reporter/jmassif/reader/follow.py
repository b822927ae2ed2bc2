# SPDX-License-Identifier: GPL-2.0-or-later
"""Follows a trace in a file while it is written. Nothing is read twice but its tail.

What a recorder has written stays, but for one thing: at the end of a file may be a tail (docs/trace-format.md), a `t` record
and a snapshot group in place of which the next records are written. Nothing in it says that it is one. So of a file the last
group is held back as long as nothing comes after it, and is read anew when the file has changed; all before it is settled.
When the trace begins anew (the file was truncated, or is another one), so does the reader.
"""

import io
import os
import stat
from typing import Any, Callable, Optional, Tuple

from jmassif.reader.tokens import MOST_LINE_BYTES, Reader, TraceError


# As much is read at once, so that whoever shows what was read stays awake.
_BITE_BYTES = 1 << 20
# No group that a recorder writes is as long: what is held back beyond that is no tail.
_MOST_HELD_BYTES = 64 << 20
# How often a file is read that changes meanwhile.
_TRIES = 4


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


def _opened(name: str) -> int:
    """A descriptor. Raises TraceError."""
    try:
        found = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise TraceError(f"cannot be read: {error.strerror}")
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise TraceError("is not a file, and only a file can be followed")
    return found


class Follower:
    """One trace. `begin` is called when it begins, and again when it restarts, for the handlers of its records."""

    def __init__(self, name: str, begin: Callable[[], Any], drop_tail: Callable[[], None] = lambda: None) -> None:
        """`drop_tail` is called before records are handed on that follow a tail or replace it. Raises TraceError."""
        self.name = name
        self._begin = begin
        self._drop_tail = drop_tail
        self._file = _opened(name)
        self._at = 0  # all before it is settled, and was handed on
        self._n_held = 0  # bytes after it that were read
        self._state = (0, 0)  # size and time of the file when all was read
        self._size = 0
        self._reader = Reader(begin())
        self.tail = b""  # lines of a `t` record and a snapshot group that may go again, or b""
        self.is_all = False  # all that there is was read
        self.has_begun = False

    def poll(self) -> bool:
        """Reads on, a bite at most. Whether anything is new. Raises TraceError: then it cannot be followed any further."""
        try:
            is_anew = self._is_another()
            text = self._read()
        except OSError as error:
            raise TraceError(f"cannot be read: {error.strerror}")
        if is_anew:
            self._reader = Reader(self._begin())
            self.tail = b""
        if text is None:
            return is_anew
        n = settled_bytes(text) if self.is_all or len(text) < _MOST_HELD_BYTES else _whole_lines(text)
        self._at += n
        self._n_held = 0 if self.is_all else len(text) - n
        if n:
            self._drop_tail()
            self._reader.read(io.BytesIO(text[:n]))
            self.has_begun = True
        tail = text[n : text.rfind(b"\n") + 1] if self.is_all else b""
        before = self.tail
        if self.is_all or n:
            self.tail = tail
        return is_anew or n > 0 or self.tail != before

    def _read(self) -> Optional[bytes]:
        """The file from the settled part on, so far as it is held and a bite more; None: nothing is new, or it changes meanwhile."""
        for _ in range(_TRIES):
            state = self._file_state()
            if state == self._state:
                self.is_all = True
                return None
            text = os.pread(self._file, self._n_held + _BITE_BYTES, self._at)
            if self._file_state() == state:
                self._size = state[0]
                self.is_all = self._at + len(text) >= self._size
                self._state = state if self.is_all else (0, 0)
                return text
        self.is_all = False
        return None

    def _file_state(self) -> Tuple[int, int]:
        found = os.fstat(self._file)
        return found.st_size, found.st_mtime_ns

    def _is_another(self) -> bool:
        """The run was started again: the name leads to another file, or this one lost what was in it."""
        try:
            there = os.stat(self.name)
        except OSError:
            return False
        here = os.fstat(self._file)
        if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            os.close(self._file)
            self._file = os.open(self.name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        elif here.st_size >= self._at:
            return False
        self._at, self._n_held, self._state = 0, 0, (0, 0)
        return True

    def lay(self, tail: bytes) -> None:
        """Hands on the records of a tail, to be undone by `drop_tail`. Raises TraceError."""
        self._reader.read_apart(io.BytesIO(tail))

    @property
    def share_read(self) -> float:
        """The share of the file that is read."""
        return self._at / self._size if self._size else 1.0

    def close(self) -> None:
        os.close(self._file)
