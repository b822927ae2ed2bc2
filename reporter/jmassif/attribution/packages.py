# SPDX-License-Identifier: GPL-2.0-or-later
"""Packages of internal frames: Python's, PyTorch's, an installed package's.

A person can mend a line of train.py, not one of torch/nn/functional.py. So memory is charged to the innermost line that is
the user's own (blame.py), and in a tree a run of internal frames can be folded into one line, "… 12 frames of torch".

`RULES` says which frames are internal; the first row that matches decides. The others are what the recorder's owners.rules
call own code. Frames of the *core* are what every program runs through. Those of other installed packages are internal as
well, but where a stack has no line of the user's own, as under a program that pip installed, theirs are the next best.
"""

import re
from functools import lru_cache
from itertools import repeat
from typing import Callable, Iterable, NamedTuple, Sequence, Set, Tuple, Union

from jmassif.model.records import Frame
from jmassif.model.run import Profile
from jmassif.units import printable


OWN = 2
INSTALLED = 1
CORE = 0


class Internal(NamedTuple):
    rank: int  # OWN, INSTALLED or CORE
    package: str  # its name, safe to show; "" for OWN


_OWN = Internal(OWN, "")

_PACKAGES = r".*/(?:site|dist)-packages"
_LIBRARY = r".*/lib(?:32|64)?/python3\.\d+t?/(?!(?:site|dist)-packages/).*|.*/python3\d+t?\.zip/.*"
_TORCH = _PACKAGES + r"/(?:torch|torchgen|torchvision|torchaudio|functorch|caffe2)/.*"
_LIBC = r"libc\.so|libc-|ld-|libdl|libpthread|libm\.|libm-|libstdc\+\+|libc\+\+|libgcc_s|vgpreload_|libjmassif-native"
_NUMPY = _PACKAGES + r"/(?:numpy|scipy)/.*"


class Rule(NamedTuple):
    package: str  # "\\1" is the first group of the pattern
    rank: int
    files: str  # Python frames, by the path of their file; "" none
    objects: str  # native frames, by the path of their object file; "" none


RULES = (
    Rule(
        "python", CORE, _LIBRARY + r"|<frozen .*", _LIBRARY + r"|(?:.*/)?(?:python3|libpython3|_ctypes\.|libffi)[^/]*"
    ),
    Rule("torch", CORE, _TORCH + r"|<eval_with_key>.*", _TORCH + r"|(?:.*/)?(?:libtorch|libc10|libcaffe2|libshm)[^/]*"),
    Rule("numpy", CORE, _NUMPY + r"|<__array_function__ .*", _NUMPY),
    Rule(r"\1", INSTALLED, _PACKAGES + r"/([^/.]+).*", _PACKAGES + r"/([^/.]+).*"),
    # Scripts that pip puts in bin/ have no suffix and call a package.
    Rule(r"\1", INSTALLED, r".*/bin/([^/.]+)", ""),
    # Code from a string: dataclasses and namedtuples make theirs so, and python -c has nothing else.
    Rule("python", INSTALLED, r"<(?!stdin>|ipython|python-input|console>|doctest).*", ""),
    Rule("libc", CORE, "", rf"(?:.*/)?(?:{_LIBC})[^/]*"),
)

# Packages that all others stand on: not worth a name next to them.
_GROUND = {"libc", "python"}

_PYTHON = [(re.compile(rule.files, re.DOTALL), rule) for rule in RULES if rule.files]
_NATIVE = [(re.compile(rule.objects, re.DOTALL), rule) for rule in RULES if rule.objects]


def classify(frame: Frame) -> Internal:
    """The rank and the package of a frame."""
    patterns, path = (_PYTHON, frame.file) if frame.type == "p" else (_NATIVE, frame.object)
    for pattern, rule in patterns:
        match = pattern.fullmatch(path)
        if match:
            return Internal(rule.rank, printable(match.expand(rule.package)))
    return _OWN


class FrameRun(NamedTuple):
    """The name of a run of internal frames in a tree, but for their number."""

    packages: Tuple[str, ...]

    def label(self, fewest: int, most: int) -> str:
        number = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
        return f"… {number} {'frame' if most == 1 else 'frames'} of {self._names()}"

    def name(self) -> str:
        """For formats that look a frame up by its name: whatever the number, the same."""
        return f"… frames of {self._names()}"

    def _names(self) -> str:
        *first, last = self.packages
        return f"{', '.join(first)} and {last}" if first else last


def run_of(packages: Set[str]) -> FrameRun:
    named = packages - _GROUND or packages - {"libc"} or packages
    return FrameRun(tuple(sorted(named)))


# A frame's id or a run; the node of the trie where the stack goes on; how many frames that were.
Step = Tuple[Union[int, FrameRun], int, int]


class Folding:
    """The packages of the frames of one run."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.internal: Callable[[int], Internal] = lru_cache(maxsize=None)(lambda frame: classify(profile.frame(frame)))

    def steps(self, nodes: Sequence[int], is_folded: bool) -> Iterable[Step]:
        """From each node one step up its stack: over a frame or, if `is_folded`, over the whole run it is in."""
        parents, frames = self._profile.node_parent, self._profile.node_frame
        if not is_folded:
            return zip(map(frames.__getitem__, nodes), map(parents.__getitem__, nodes), repeat(1))

        def fold(node: int) -> Step:
            outer = node
            run: Set[str] = set()
            n_frames = 0
            while outer:
                package = self.internal(frames[outer]).package
                if not package:
                    break
                run.add(package)
                n_frames += 1
                outer = parents[outer]
            if run:
                return run_of(run), outer, n_frames
            return frames[node], parents[node], 1

        return map(fold, nodes)
