# SPDX-License-Identifier: GPL-2.0-or-later
"""The frame, library and Python line to blame for the memory of an account.

The *site* of an account is the frame that a person would blame: the first one, from the allocation outwards, that is not
the allocator itself, nor the C++ library's templates. Its object file is the library that the memory is booked on with
--by=library. The Python line that it was called from is shown with it.
"""

import re
from array import array
from functools import lru_cache
from typing import Callable, Dict, Iterator, Pattern, Set, Tuple

from jmassif.attribution.packages import INSTALLED, OWN, Folding
from jmassif.model.records import Frame, side_of
from jmassif.model.run import Profile
from jmassif.units import printable


# ---- charges ----
# The Python line that a stack's memory is charged to, the innermost of the user's own; and the lines that had called it.
#
# So a line's figure is what that line caused, whatever it called in PyTorch or NumPy, and every byte is charged to one line
# at most. A stack without a line of the user's own is charged to the innermost of an installed package that is not the core
# (see packages.py), for such is all that a program has that pip installed; and to none, where only Python itself is in it.


class Innermost:
    """The first of some Python frames, from the innermost outwards, in each stack; 0: none."""

    def __init__(self, profile: Profile, wanted: Set[int]) -> None:
        self._profile, self._wanted = profile, wanted
        self._found = {0: 0}  # by Python node
        self.extend()

    def extend(self) -> None:
        """To nodes that the profile, and frames that `wanted`, have got since: of a trace that is still being written."""
        stacks, frames, found = self._profile.python_stacks(), self._profile.node_frame, self._found
        n_known = len(found)
        for node, caller in zip(stacks.nodes[n_known:], stacks.callers[n_known:]):
            frame = frames[node]
            found[node] = frame if frame in self._wanted else found[caller]
        self._nearest = stacks.innermost

    def __call__(self, node: int) -> int:
        return self._found[self._nearest[node]]

    def of_accounts(self) -> Iterator[int]:
        return map(self._found.__getitem__, map(self._nearest.__getitem__, self._profile.accounts.nodes))


def _python_frames(profile: Profile, folding: Folding, is_folded: bool) -> Tuple[Set[int], Set[int]]:
    """The program's own frames, and installed packages', which are charged in a stack without any of the own.

    Unless `is_folded` no frame is internal: all are the program's.
    """
    python = profile.python_frames
    if not is_folded:
        return python, set()
    rank = {frame: folding.internal(frame).rank for frame in python}
    return {frame for frame in python if rank[frame] == OWN}, {frame for frame in python if rank[frame] == INSTALLED}


def callers(profile: Profile, folding: Folding, is_folded: bool) -> Callable[[int], Tuple[int, ...]]:
    """A function from a stack's node to all frames that have the memory in their totals: the charged one, and its callers.

    Each comes once, the outermost first.
    """
    stacks, frames = profile.python_stacks(), profile.node_frame

    def passed(wanted: Set[int]) -> Dict[int, Tuple[int, ...]]:
        found: Dict[int, Tuple[int, ...]] = {0: ()}  # by Python node
        for node, caller in zip(stacks.nodes[1:], stacks.callers[1:]):
            frame = frames[node]
            is_new = frame in wanted and frame not in found[caller]
            found[node] = found[caller] + (frame,) if is_new else found[caller]
        return found

    own, installed = map(passed, _python_frames(profile, folding, is_folded))
    nearest = stacks.innermost
    return lambda node: own[nearest[node]] or installed[nearest[node]]


# ---- sites ----

# Object files that allocate, or call what does, on behalf of their caller.
_ALLOCATORS = (
    r"libc\.so|libc-.*\.so$|libpthread|libstdc\+\+|libc\+\+|libgcc_s|vgpreload_|libjmassif-native|libffi|_ctypes\."
)
_ALLOCATOR_NAMES = {"host": re.compile(_ALLOCATORS), "device": re.compile(_ALLOCATORS + r"|libcuda\.so|libcudart")}

# The name of all functions of an object file that have none, and the ids of its frame, beyond those of traces.
NO_SYMBOLS = "(no debug symbols)"
_WITHOUT_NAME = 1 << 40

# Headers of the C++ library, with templates that are compiled into their users, and names that are reserved for it.
_CXX_FILE = re.compile(
    r".*/include/c\+\+/|(.*/)?((new_allocator|alloc_traits|basic_string|stl_\w+|hashtable_policy|shared_ptr_base)\.h|\w+\.tcc)$"
)
_CXX_NAME = re.compile(r"_[MS]_|(std|__gnu_cxx)::")

# A thread of PyTorch's backward pass has no Python frame, and its allocator's functions have no names.
_BACKWARD = "torch::autograd::Engine::evaluate_function("

_UNKNOWN = (1 << 32) - 1  # in place of a node
NO_STACK = "(memory without a stack)"


def base_name(path: str) -> str:
    return path.rpartition("/")[2]


def _object_name(frame: Frame) -> str:
    return base_name(frame.object or frame.file)


def _is_allocator(frame: Frame, allocators: "Pattern[str]") -> bool:
    if frame.type == "t" or (frame.type != "m" and allocators.match(_object_name(frame))):
        return True
    is_of_cxx = _CXX_FILE.match(frame.file) or _CXX_NAME.match(frame.function)
    return frame.type in "ni" and bool(is_of_cxx)


def _with_name(profile: Profile, frame: int) -> int:
    """The frame, or the one that stands for all functions without a name of its object file."""
    if not frame:
        return frame
    type_, function, object_ = profile.frames[frame][:3]
    if type_ not in ("n", "i") or function or not object_:
        return frame
    found = _WITHOUT_NAME + object_
    profile.strings[_WITHOUT_NAME] = NO_SYMBOLS
    profile.frames[found] = (type_, _WITHOUT_NAME, object_, 0, 0, 0)
    return found


class Sites:
    """The sites of one run. Remembers them: stacks share most frames."""

    def __init__(self, profile: Profile) -> None:
        self.folding = Folding(profile)
        self.profile = profile
        self._charges: Dict[bool, "array[int]"] = {}  # by whether internal frames are folded, and account
        # None of these functions may hold this object, or both live on.
        memo = lru_cache(maxsize=None)
        self._allocates: Callable[[int, str], bool] = memo(
            lambda frame, side: _is_allocator(profile.frame(frame), _ALLOCATOR_NAMES[side])
        )
        self._is_backward: Callable[[int], bool] = memo(
            lambda frame: profile.frame(frame).function.startswith(_BACKWARD)
        )
        self._sites = array("I", [_UNKNOWN]) * len(profile.accounts)  # the node of the site by account
        self._site_frame: Callable[[int], int] = memo(lambda frame: _with_name(profile, frame))
        self._library: Callable[[int], str] = memo(
            lambda frame: printable(_object_name(profile.frame(frame))) or "(no object file)"
        )

    def charges(self, is_folded: bool = True) -> "array[int]":
        """The Python frame that each account is charged to, 0 if there is none."""
        if is_folded not in self._charges:
            frames = _python_frames(self.profile, self.folding, is_folded)
            found = zip(*(Innermost(self.profile, wanted).of_accounts() for wanted in frames))
            self._charges[is_folded] = array("I", (own or installed for own, installed in found))
        return self._charges[is_folded]

    def charged(self, account: int, is_folded: bool = True) -> int:
        """The Python frame that the account is charged to, 0 if there is none."""
        return self.charges(is_folded)[account]

    def find_site(self, innermost: int, kind: str) -> int:
        """The node to blame, of a stack and the kind of its memory. Where all frames are allocators', the innermost has to answer."""
        # CUDA allocates pinned memory, too.
        node, side = innermost, "host" if side_of(kind) == "host" and kind != "pinned" else "device"
        frames = self.profile.node_frame
        while node and self._allocates(frames[node], side):
            node = self.profile.node_parent[node]
        if not node and innermost and self._type(innermost) == "t":
            return 0
        return node or innermost

    def _type(self, node: int) -> str:
        return self.profile.frames[self.profile.node_frame[node]][0]

    def library(self, account: int) -> str:
        """The library of the site. A Python frame lies in the interpreter, with its frames around it."""
        caller = self.site_node(account)
        if not caller:
            return NO_STACK
        while caller and self._type(caller) == "p":
            caller = self.profile.node_parent[caller]
        if not caller or self._type(caller) == "t":
            return "python"
        return self._library(self.profile.node_frame[caller])

    def site_id(self, account: int) -> int:
        """The id of the frame to blame, 0 if the account has no stack. Functions without names are one for each object file."""
        frame = self._site_frame(self.profile.node_frame[self.site_node(account)])
        is_unnamed = frame > _WITHOUT_NAME and not self.charged(account, False)
        return (is_unnamed and self.backward(self.profile.accounts.nodes[account])) or frame

    def backward(self, node: int) -> int:
        """The frame of PyTorch's backward pass in a stack, 0 if there is none."""
        frames, parents = self.profile.node_frame, self.profile.node_parent
        while node and not self._is_backward(frames[node]):
            node = parents[node]
        return frames[node]

    def site_node(self, account: int) -> int:
        """The node of the frame to blame, 0 if the account has no stack."""
        found = self._sites[account]
        if found == _UNKNOWN:
            node, kind, _ = self.profile.accounts[account]
            found = self._sites[account] = self.find_site(node, kind)
        return found
