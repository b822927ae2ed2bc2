# SPDX-License-Identifier: GPL-2.0-or-later
"""The text of source lines, where the files can still be read.

The paths come from a trace, so nothing is taken for granted: only regular files of a sensible size are opened.
"""

import os
import stat
import tokenize
from typing import Dict, List, Set

from jmassif.model.profile import Profile
from jmassif.units import printable

_MAX_FILE_BYTES = 4 << 20
_MAX_SHOWN = 60


class Sources:
    """Reads each file once. `changed` has the paths of those that are newer than the run: their lines may have moved."""

    def __init__(self, profile: Profile) -> None:
        self.changed: Set[str] = set()
        self._home = profile.manifest.get("cwd", "")
        start = profile.number("start-unix-ms")
        self._start = float("inf") if start is None else start / 1000
        self._files: Dict[str, List[str]] = {}

    def line(self, path: str, number: int) -> str:
        """The line with that number, fit to be shown; "" if it cannot be read."""
        if path not in self._files:
            self._files[path] = self._read(path)
        lines = self._files[path]
        if not 0 < number <= len(lines):
            return ""
        text = printable(lines[number - 1].strip())
        return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"

    def _read(self, path: str) -> List[str]:
        place = os.path.join(self._home, path)
        if not os.path.isabs(place):
            return []
        try:
            status = os.stat(place)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
                return []
            with tokenize.open(place) as stream:
                lines = list(stream)
        # Not there, not to be read, no Python, or a name that no file can have.
        except (OSError, SyntaxError, ValueError):
            return []
        if status.st_mtime > self._start:
            self.changed.add(path)
        return lines
