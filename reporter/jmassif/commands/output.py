# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a report goes, as lines of text or as pieces of a binary format: a stream, or a file that is there whole or not at all.

A file is written beside its place and moved there at the end, so a full disk never leaves half a report, nor a missing
one where an older one was. What is no regular file (a pipe, /dev/null) cannot be replaced and is written to directly.
"""

import os
import stat
import tempfile
from typing import Iterable, Optional, TextIO, Union

Piece = Union[str, bytes]


def write_stream(stream: Optional[TextIO], pieces: Iterable[Piece]) -> None:
    """Writes lines in the stream's encoding, what that lacks escaped, and bytes as they are. Raises OSError."""
    if stream is None:  # closed before the program started
        raise OSError(9, os.strerror(9))
    encoding = stream.encoding or "utf-8"
    binary = stream.buffer
    for piece in pieces:
        binary.write(piece if isinstance(piece, bytes) else (piece + "\n").encode(encoding, "backslashreplace"))
    binary.flush()


def _new_file_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def write_file(path: str, pieces: Iterable[Piece]) -> None:
    """Writes lines as UTF-8, and bytes as they are, to the file at `path`, replacing what it held. Raises OSError."""
    place = os.path.realpath(path)
    try:
        mode = os.stat(place).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG | _new_file_mode()
    if not stat.S_ISREG(mode):
        with open(place, "w", encoding="utf-8", errors="backslashreplace") as stream:
            write_stream(stream, pieces)
        return
    handle, beside = tempfile.mkstemp(prefix=".jm_print.", dir=os.path.dirname(place))
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
            write_stream(stream, pieces)
        os.chmod(beside, stat.S_IMODE(mode))
        os.replace(beside, place)
    except BaseException:
        os.unlink(beside)
        raise
