# SPDX-License-Identifier: GPL-2.0-or-later
"""Who is to blame for an account's memory: a frame, a library, a Python line.

The *site* of an account is the frame that a person would blame: the first one, from the allocation outwards, that is not
the allocator itself. Its object file is the library that the memory is booked on with --by=library. What Python line
that was called from is told with it; see charges.py.
"""

import re
from fnmatch import translate
from typing import Callable, Dict, Pattern, Sequence, Tuple

from jmassif.model.kinds import side_of
from jmassif.model.profile import Profile
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

NO_STACK = "(memory without a stack)"


def base_name(path: str) -> str:
    return path.rpartition("/")[2]


class Sites:
    """Of one profile. Remembers what it worked out: stacks share most frames."""

    def __init__(self, profile: Profile) -> None:
        self.folding = Folding(profile)
        self._profile = profile
        self._charges: Dict[bool, Callable[[int], int]] = {}  # by whether internal frames are folded
        self._libraries: Dict[int, str] = {}  # by frame
        self._sites: Dict[Tuple[int, str], Tuple[int, str]] = {}

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

    def site_node(self, account: int) -> int:
        """The node of the frame to blame, 0 if the account has no stack."""
        return self._site(account)[0]
