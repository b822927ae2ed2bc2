# SPDX-License-Identifier: GPL-2.0-or-later
"""What frames ran, as a page has it: what opens their lines in an editor, and the text around these.

A run has frames by the thousand, of a few hundred files: so an address is told once a file, with a place for the line, and a text
once a line. Texts beyond a budget are left out; what they belong to still has its link.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from jmassif.model.records import Frame
from jmassif.model.profile import Profile
from jmassif.writers.editor import Editor
from jmassif.writers.page.texts import shown
from jmassif.writers.sources import Sources

_MAX_BYTES = 400_000  # of texts, before they are deflated


class Place(NamedTuple):
    pattern: str  # what opens the file, with {line} in it; "" if nothing does
    around: str  # the text of the line and of those around it; "" if there is none


class Code:
    """`directories` as view.View has them: None shows no text at all."""

    def __init__(self, profile: Profile, directories: Optional[Sequence[str]], editor: Optional[Editor]) -> None:
        self._sources = None if directories is None else Sources(profile, directories)
        self._editor = editor
        self._home = profile.manifest.get("cwd", "")
        self._opens: Dict[str, int] = {"": 0}
        self._arounds: Dict[str, int] = {"": 0}
        self._n_bytes = 0
        self._open: List[int] = [0]
        self._around: List[int] = [0]

    def place(self, frame: Frame) -> Place:
        if not frame.file or not frame.line or frame.type == "t":
            return Place("", "")
        pattern = self._editor.pattern(frame.file, self._home) if self._editor else ""
        # No hash says that the text of a native frame's file is what ran.
        is_known = self._sources is not None and frame.type == "p"
        around = self._sources.around(frame.file, frame.line) if is_known and self._sources else ""
        return Place(pattern, "\n".join(map(shown, around.split("\n"))))

    def add(self, frame: Frame) -> None:
        """The next frame of the columns; the first of all, no frame, is there."""
        pattern, around = self.place(frame)
        self._open.append(self._opens.setdefault(pattern, len(self._opens)))
        if around not in self._arounds:
            self._n_bytes += len(around)
            if self._n_bytes > _MAX_BYTES:
                around = ""
        self._around.append(self._arounds.setdefault(around, len(self._arounds)))

    @property
    def columns(self) -> Dict[str, List[Any]]:
        return {
            "open": self._open,
            "opens": list(self._opens),
            "around": self._around,
            "arounds": list(self._arounds),
        }
