# SPDX-License-Identifier: GPL-2.0-or-later
"""Names without what changes from release to release, so that two runs can be laid side by side.

libcudnn_ops_infer.so.8.6.0 of one JetPack is libcudnn_ops_infer.so.8.2.1 of another. The rest is the name that a person
would use for both: libcudnn_ops_infer.so.
"""

import re
from collections import Counter
from functools import lru_cache
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, TypeVar

from jmassif.attribution.blame import NO_STACK, NO_SYMBOLS, Sites, base_name
from jmassif.model.records import Frame
from jmassif.model.run import Profile
from jmassif.units import printable


# ---- names ----
# Names of frames, stacks and accounts that are safe to show.
#
# Python files go by their path inside the package, or by their last name, with as many directories as it takes to keep all
# files of the run apart.

# Directories of packages: the module's path follows.
_PACKAGES = re.compile(r".*/(?:(?:site|dist)-packages|python3(?:\.\d+)?)/")
# Directories before a name, to keep it apart from others.
_MOST_DIRECTORIES = 24
_Answer = TypeVar("_Answer")

NO_TENSOR = "(no tensor)"
STACK_ENDS = "(the stack ends here)"


def _module_path(path: str) -> str:
    """/usr/lib/python3/dist-packages/torch/nn/modules/linear.py → torch/nn/modules/linear.py"""
    found = _PACKAGES.match(path)
    return path[found.end() :] if found else base_name(path)


def short_names(paths: Iterable[str]) -> Dict[str, str]:
    """The shortest ends of the paths that keep them apart, and whole packages' paths, by path."""
    names = {path: _module_path(path) for path in paths}
    unsettled = list(names)
    for _ in range(_MOST_DIRECTORIES):
        shared = Counter(names.values())
        unsettled = [path for path in unsettled if shared[names[path]] > 1 and names[path] != path]
        if not unsettled:
            return names
        for path in unsettled:
            name = names[path]
            longer = base_name(path[: -len(name) - 1])
            names[path] = f"{longer}/{name}" if longer else path
    # Nobody would read so long a name to its end.
    names.update((path, path) for path in unsettled)
    return names


def describe(frame: Frame, files: Mapping[str, str] = {}) -> str:
    """ "main (a.c:5)", "train.py:87 (<module>)", "cudnnCreate (libcudnn.so.8)", "0x4005d0 (libfoo.so)",
    "libfoo.so (no debug symbols)".

    `files` has names of Python frames' files.
    """
    if frame.type == "t":
        return printable(frame.function)
    if frame.type == "p":
        file = files.get(frame.file) or _module_path(frame.file) or "?"
        return printable(f"{file}:{frame.line} ({frame.function or '?'})")
    place = base_name(frame.object) or "no object file"
    if frame.file:
        place = base_name(frame.file) + (f":{frame.line}" if frame.line else "")
    if frame.function == NO_SYMBOLS:
        return printable(f"{place} {NO_SYMBOLS}")
    return printable(f"{frame.function or f'0x{frame.address:x}'} ({place})")


class Names(Sites):
    """Words for the frames and stacks of one profile. Remembers what it worked out: stacks share most frames."""

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self._files = short_names({profile.strings[frame[3]] for frame in profile.frames.values() if frame[0] == "p"})
        files = self._files
        self._described: Callable[[int], str] = lru_cache(maxsize=None)(
            lambda frame: describe(profile.frame(frame), files) if frame else NO_STACK
        )
        self._answers: Dict[Any, Any] = {}

    def once(self, question: Callable[[Profile, "Names"], _Answer]) -> _Answer:
        """The result of a query on this run, which is made once."""
        if question not in self._answers:
            self._answers[question] = question(self.profile, self)
        answer: _Answer = self._answers[question]
        return answer

    def frame(self, frame: int) -> str:
        """0: no frame, as of a stack that is a thread alone."""
        return self._described(frame)

    def file(self, frame: int) -> str:
        """The name of a Python frame's file."""
        return printable(self._files[self.profile.frame(frame).file]) or "?"

    def line(self, account: int) -> str:
        """The Python line that an account is charged to; without one, the place that allocated."""
        return self.frame(self.charged(account) or self.site_id(account))

    def site(self, account: int) -> Optional[str]:
        """The frame to blame and, where that is native, the Python line it was called from; None without a stack."""
        node = self.site_node(account)
        if not node:
            return None
        frame = self.profile.node_frame[node]
        line = self.charged(account) or self.charged(account, False)
        return self.frame(frame) + (f", from {self.frame(line)}" if line and line != frame else "")


# ---- alignment ----

_SUFFIX = re.compile(r"\.so(?:\.[\w.+-]*)?$")
# Parts between a library's name and .so: Python's ABI, auditwheel's hash, a version.
_INFIXES = (
    re.compile(r"\.(?:cpython|pypy)[\w-]*$|\.abi3$"),
    re.compile(r"(?:-[0-9a-f]{8}(?:\.[\d.]+)?)$"),
    re.compile(r"-\d+(?:\.\d+)*$"),
)
_PYTHON = re.compile(r"(lib)?python\d(?:\.\d+)?[a-z]*")
# Longer ones are nobody's, and patterns would be slow on them.
_MAX_LENGTH = 1000
_LOADER = re.compile(r"ld(?:-linux.*|-\d.*)?\.so.*")


def library(name: str) -> str:
    """An object file's base name, without versions: "libcudart-9335f6a2.so.11.0" → "libcudart.so"."""
    if len(name) > _MAX_LENGTH:
        return name
    if _LOADER.fullmatch(name):
        return "ld.so"
    stem = _SUFFIX.sub("", name)
    is_shared = stem != name
    if is_shared:
        for infix in _INFIXES:
            stem = infix.sub("", stem) or stem
    if _PYTHON.fullmatch(stem):
        stem = "libpython" if stem.startswith("lib") else "python"
    return f"{stem}.so" if is_shared else stem


_COMPILERS = re.compile(r"(?:\.(?:constprop|isra|part|cold|lto_priv)(?:\.\d+)*)+$|@+[\w.]+$")
_REVISION = re.compile(r"(?:_v\d+|_ptsz|_ptds)+$")


def function(name: str) -> str:
    """A function's name, without the compiler's additions and the version of its symbol."""
    return name if len(name) > _MAX_LENGTH else _COMPILERS.sub("", name) or name


def scope(name: str) -> str:
    """The name of a call: "cuCtxCreate_v4" → "cuCtxCreate", "dlopen libcudnn.so.8" → "dlopen libcudnn.so"."""
    if len(name) > _MAX_LENGTH:
        return name
    call, space, argument = name.partition(" ")
    call = _REVISION.sub("", call) or call
    return f"{call} {library(argument)}" if space else call
