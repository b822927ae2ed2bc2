# SPDX-License-Identifier: GPL-2.0-or-later
"""What to call a frame, a stack and an account, in words that are safe to show.

The *site* of an account is the frame that a person would blame: the first one, from the allocation outwards, that is not
the allocator itself. Its object file is the library that the memory is booked on with --by=library.
"""

import re
from fnmatch import translate
from typing import Dict, Optional, Pattern, Sequence, Tuple

from reporter.profile import Frame, Profile, side_of
from reporter.units import printable

# Object files that allocate, or call what does, on behalf of their caller.
_ALLOCATORS = (
    "libc.so*",
    "libc-*.so",
    "libpthread*",
    "libstdc++*",
    "libc++*",
    "libgcc_s*",
    "vgpreload_*",
    "libffi*",
    "_ctypes.*",
)
_DEVICE_ALLOCATORS = _ALLOCATORS + ("libcuda.so*", "libcudart*")


def _any_of(patterns: Sequence[str]) -> "Pattern[str]":
    return re.compile("|".join(translate(pattern) for pattern in patterns))


_IS_ALLOCATOR = {"host": _any_of(_ALLOCATORS), "device": _any_of(_DEVICE_ALLOCATORS)}

# Where Python keeps packages: what follows is the module's path.
_PACKAGES = re.compile(r".*/(?:(?:site|dist)-packages|python3(?:\.\d+)?)/")

NO_STACK = "(memory without a stack)"
STACK_ENDS = "(the stack ends here)"


def base_name(path: str) -> str:
    return path.rpartition("/")[2]


def _module_path(path: str) -> str:
    """/usr/lib/python3/dist-packages/torch/nn/modules/linear.py → torch/nn/modules/linear.py"""
    found = _PACKAGES.match(path)
    return path[found.end() :] if found else base_name(path)


def describe(frame: Frame) -> str:
    """ "main (a.c:5)", "train.py:87 (<module>)", "cudnnCreate (libcudnn.so.8)", "0x4005d0 (libfoo.so)"."""
    if frame.type == "p":
        function = frame.function or "?"
        text = f"{_module_path(frame.file) or '?'}:{frame.line} ({function})"
    else:
        function = frame.function or f"0x{frame.address:x}"
        if frame.file:
            place = base_name(frame.file) + (f":{frame.line}" if frame.line else "")
        else:
            place = base_name(frame.object) or "no object file"
        text = f"{function} ({place})"
    return printable(text)


class Names:
    """Names for the frames and stacks of one profile. Remembers what it worked out: stacks share most frames."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._described: Dict[int, str] = {}
        self._libraries: Dict[int, str] = {}  # by frame
        self._sites: Dict[Tuple[int, str], Tuple[int, str]] = {}

    def frame(self, frame: int) -> str:
        text = self._described.get(frame)
        if text is None:
            text = self._described[frame] = describe(self._profile.frame(frame))
        return text

    def _site(self, account: int) -> Tuple[int, str]:
        """(node of the site, its library); node 0: the account has no stack."""
        node, kind, _ = self._profile.accounts[account]
        key = (node, side_of(kind) or "device")
        found = self._sites.get(key)
        if found is None:
            found = self._sites[key] = self._find_site(*key)
        return found

    def _find_site(self, innermost: int, side: str) -> Tuple[int, str]:
        """Where all frames are allocators', the innermost has to answer."""
        if not innermost:
            return 0, NO_STACK
        node = innermost
        while node and _IS_ALLOCATOR[side].match(self._library(node)):
            node = self._profile.node_parent[node]
        node = node or innermost
        return node, printable(self._library(node)) or "(no object file)"

    def _library(self, node: int) -> str:
        frame_id = self._profile.node_frame[node]
        library = self._libraries.get(frame_id)
        if library is None:
            frame = self._profile.frame(frame_id)
            library = self._libraries[frame_id] = base_name(frame.object or frame.file)
        return library

    def library(self, account: int) -> str:
        return self._site(account)[1]

    def site_frame(self, account: int) -> str:
        """The frame to blame. The account must have a stack."""
        return self.frame(self._profile.node_frame[self._site(account)[0]])

    def site(self, account: int) -> Optional[str]:
        """The frame to blame and, where that is native, the Python line it was called from; None without a stack."""
        node = self._site(account)[0]
        if not node:
            return None
        frames = self._profile.stack(node)
        first = next(frames)
        text = self.frame(first)
        if self._profile.frames[first][0] != "p":
            for frame in frames:
                if self._profile.frames[frame][0] == "p":
                    return f"{text}, from {self.frame(frame)}"
        return text
