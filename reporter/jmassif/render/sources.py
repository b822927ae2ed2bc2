# SPDX-License-Identifier: GPL-2.0-or-later
"""The text of source lines, where it is what ran.

Paths come from a trace, and a trace may come from anybody: were the files that it names simply opened, it could have any file of
this machine put into a report. So a file's text is shown only if it has the checksum that the recorder wrote, which nobody
knows without the text; or if it lies below a directory that the reader has named. Of either, regular files of a sensible size.
"""

import io
import os
import zlib
from typing import Dict, Iterator, List, Optional, Sequence, Set

from jmassif.model.run import Profile
from jmassif.render.layout import cut
from jmassif.units import printable


_MAX_FILE_BYTES = 4 << 20  # the recorder's limit too
_MAX_SHOWN = 60
_MAX_AROUND = 100
_AROUND = 3  # lines on either side
_MAX_DEPTH = 64  # directories of a path, below a directory that was named


def _content(place: str) -> Optional[bytes]:
    """None: no regular file, too large, or not to be read."""
    try:
        if not os.path.isfile(place):  # a named pipe without a writer would be waited for
            return None
        with open(place, "rb") as stream:
            content = stream.read(_MAX_FILE_BYTES + 1)
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return None
    return content if len(content) <= _MAX_FILE_BYTES else None


def _lines(content: bytes) -> List[str]:
    import tokenize

    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return list(io.TextIOWrapper(io.BytesIO(content), encoding))
    except (SyntaxError, ValueError):  # no Python
        return []


def _safe(text: str, length: int) -> str:
    return cut(printable(text.expandtabs(4)), length)


def _below(directory: str, path: str) -> Iterator[str]:
    """Paths of the file below the directory: under its whole path, or under the end of it."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        return
    for first in range(max(0, len(parts) - _MAX_DEPTH), len(parts)):
        yield os.path.join(directory, *parts[first:])


class Sources:
    """Reads each file once.

    `directories` are trusted: what lies below them is shown whatever it is. `changed` has the paths of files that are shown and are
    not as they were, `left_out` of those that are not shown for that.
    """

    def __init__(self, profile: Profile, directories: Sequence[str] = ()) -> None:
        self.changed: Set[str] = set()
        self.left_out: Set[str] = set()
        self._profile = profile
        self._directories = directories
        self._home = profile.manifest.get("cwd", "")
        self._files: Dict[str, List[str]] = {}

    def line(self, path: str, number: int) -> str:
        """The line with that number, fit to be shown; "" if it cannot be."""
        lines = self._read(path)
        return _safe(lines[number - 1].strip(), _MAX_SHOWN) if 0 < number <= len(lines) else ""

    def around(self, path: str, number: int) -> str:
        """The line with those around it, by their numbers; "" likewise."""
        lines = self._read(path)
        shown = range(max(1, number - _AROUND), min(len(lines), number + _AROUND) + 1)
        rows = (f"{'>' if n == number else ' '}{n:5} {_safe(lines[n - 1].rstrip(), _MAX_AROUND)}" for n in shown)
        return "\n".join(rows) if 0 < number <= len(lines) else ""

    def _read(self, path: str) -> List[str]:
        if path not in self._files:
            content = self._find(path)
            self._files[path] = [] if content is None else _lines(content)
        return self._files[path]

    def _find(self, path: str) -> Optional[bytes]:
        recorded = self._profile.source_hashes.get(path)

        def is_other(content: bytes) -> bool:
            return bool(recorded) and f"{zlib.crc32(content):x}" != recorded

        for place in (place for directory in self._directories for place in _below(directory, path)):
            content = _content(place)
            if content is not None:
                if is_other(content):
                    self.changed.add(path)
                return content
        place = os.path.join(self._home, path)
        content = _content(place) if recorded and os.path.isabs(place) else None
        if content is None or not is_other(content):
            return content
        self.left_out.add(path)
        return None


def sources_of(profile: Profile, directories: Optional[Sequence[str]]) -> Optional[Sources]:
    """The sources that a view shows; None where it shows no text."""
    return None if directories is None else Sources(profile, directories)
