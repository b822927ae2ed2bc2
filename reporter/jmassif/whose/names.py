# SPDX-License-Identifier: GPL-2.0-or-later
"""What to call a frame, a stack and an account, in words that are safe to show.

The *site* of an account is the frame that a person would blame: the first one, from the allocation outwards, that is not
the allocator itself. Its object file is the library that the memory is booked on with --by=library. What Python line
that was called from is told with it; see charges.py.

Python files go by their path inside the package, or by their last name, with as many directories as it takes to tell all
files of the run apart.
"""

import re
from collections import Counter
from fnmatch import translate
from typing import Callable, Dict, Iterable, Optional, Pattern, Sequence, Tuple

from jmassif.model.kinds import side_of
from jmassif.model.profile import Profile
from jmassif.model.records import Frame
from jmassif.units import printable
from jmassif.whose.charges import charge
from jmassif.whose.folding import Folding

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
NO_TENSOR = "(no tensor)"
STACK_ENDS = "(the stack ends here)"


def base_name(path: str) -> str:
    return path.rpartition("/")[2]


def _module_path(path: str) -> str:
    """/usr/lib/python3/dist-packages/torch/nn/modules/linear.py → torch/nn/modules/linear.py"""
    found = _PACKAGES.match(path)
    return path[found.end() :] if found else base_name(path)


def short_names(paths: Iterable[str]) -> Dict[str, str]:
    """By path: the shortest ends of the paths that tell them apart, and whole packages' paths."""
    names = {path: _module_path(path) for path in paths}
    ambiguous = True
    while ambiguous:
        ambiguous = False
        shared = Counter(names.values())
        for path, name in names.items():
            if shared[name] > 1 and name != path:
                longer = base_name(path[: -len(name) - 1])
                names[path] = f"{longer}/{name}" if longer else path
                ambiguous = True
    return names


def describe(frame: Frame, file: Optional[str] = None) -> str:
    """ "main (a.c:5)", "train.py:87 (<module>)", "cudnnCreate (libcudnn.so.8)", "0x4005d0 (libfoo.so)".

    `file` is what to call a Python frame's file.
    """
    if frame.type == "p":
        function = frame.function or "?"
        text = f"{file or _module_path(frame.file) or '?'}:{frame.line} ({function})"
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
        self.folding = Folding(profile)
        self._profile = profile
        self._files = short_names({profile.strings[frame[3]] for frame in profile.frames.values() if frame[0] == "p"})
        self._charges: Dict[bool, Callable[[int], int]] = {}  # by whether internal frames are folded
        self._described: Dict[int, str] = {}
        self._libraries: Dict[int, str] = {}  # by frame
        self._sites: Dict[Tuple[int, str], Tuple[int, str]] = {}

    def frame(self, frame: int) -> str:
        text = self._described.get(frame)
        if text is None:
            fields = self._profile.frame(frame)
            text = self._described[frame] = describe(fields, self._files.get(fields.file))
        return text

    def file(self, frame: int) -> str:
        """What a Python frame's file is called."""
        return printable(self._files[self._profile.frame(frame).file]) or "?"

    def charged(self, account: int, is_folded: bool = True) -> int:
        """The Python frame that the account is charged to, 0 if there is none."""
        if is_folded not in self._charges:
            self._charges[is_folded] = charge(self._profile, self.folding, is_folded)
        return self._charges[is_folded](self._profile.accounts[account].node)

    def _site(self, account: int) -> Tuple[int, str]:
        """(node of the site, its library); node 0: the account has no stack."""
        node, kind, _ = self._profile.accounts[account]
        key = (node, side_of(kind) or "device")
        found = self._sites.get(key)
        if found is None:
            found = self._sites[key] = self._find_site(*key)
        return found

    def _find_site(self, innermost: int, side: str) -> Tuple[int, str]:
        """Where all frames are allocators', the innermost has to answer. A Python frame's library is the interpreter."""
        if not innermost:
            return 0, NO_STACK
        node = innermost
        while node and self._type(node) != "m" and _IS_ALLOCATOR[side].match(self._library(node)):
            node = self._profile.node_parent[node]
        node = node or innermost
        caller = node
        while caller and self._type(caller) == "p":
            caller = self._profile.node_parent[caller]
        return node, (printable(self._library(caller)) or "(no object file)") if caller else "python"

    def _type(self, node: int) -> str:
        return self._profile.frames[self._profile.node_frame[node]][0]

    def _library(self, node: int) -> str:
        frame_id = self._profile.node_frame[node]
        library = self._libraries.get(frame_id)
        if library is None:
            frame = self._profile.frame(frame_id)
            library = self._libraries[frame_id] = base_name(frame.object or frame.file)
        return library

    def library(self, account: int) -> str:
        return self._site(account)[1]

    def site_id(self, account: int) -> int:
        """The id of the frame to blame, 0 if the account has no stack."""
        return self._profile.node_frame[self._site(account)[0]]

    def site_frame(self, account: int) -> str:
        """The frame to blame. The account must have a stack."""
        return self.frame(self.site_id(account))

    def site(self, account: int) -> Optional[str]:
        """The frame to blame and, where that is native, the Python line it was called from; None without a stack."""
        node = self._site(account)[0]
        if not node:
            return None
        frame = self._profile.node_frame[node]
        line = self.charged(account) or self.charged(account, False)
        if line and line != frame:
            return f"{self.frame(frame)}, from {self.frame(line)}"
        return self.frame(frame)
