# SPDX-License-Identifier: GPL-2.0-or-later
"""Leaks that are known and not to be told again, in the words of the tools whose users have such lists already.

A line `leak:PATTERN`, as LeakSanitizer takes it, suppresses what any frame of a stack matches by its function, its source file or
its object file: PATTERN is found anywhere in the name, `*` stands for anything, `^` and `$` hold it to the name's ends. `#` begins a
comment.

A block in braces, as Valgrind's tools print with --gen-suppressions=yes, has a name, `Memcheck:Leak`, and frames from the innermost
outwards: `fun:`, `obj:`, `src:` with `*` and `?`, or `...` for any number of frames. Blocks of other kinds of errors are none of
leaks and passed over. Memcheck's stacks begin with malloc, which ours leave out: a frame of an allocator before all others may
stand for none.
"""

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.model.records import Frame
from jmassif.model.run import Profile


_LONGEST = 1000
_MOST_FRAMES = 500
_ANY = "..."
_ALLOCATORS = (
    "malloc calloc realloc memalign aligned_alloc posix_memalign valloc pvalloc reallocarray strdup _Znwm _Znam _Znwj _Znaj"
    " _ZnwmRKSt9nothrow_t _ZnamRKSt9nothrow_t _ZnwmSt11align_val_t _ZnamSt11align_val_t"
).split() + ["operator new(unsigned long)", "operator new[](unsigned long)"]


class SuppressionError(Exception):
    """The file is none of suppressions. The message is one line, with the line of the file."""


class Glob:
    """A pattern in which `*` is anything. Matched part by part, each as early as it is found: that never tries again."""

    def __init__(self, text: str, is_begin: bool, is_end: bool, has_question: bool) -> None:
        """Held to the begin and the end of a name; `?` is any one character."""
        parts = text.split("*")
        self._is_begin, self._is_end = is_begin, is_end
        self._parts = [
            (
                len(part),
                re.compile("".join("." if c == "?" and has_question else re.escape(c) for c in part), re.DOTALL),
            )
            for part in parts
        ]

    def matches(self, name: str) -> bool:
        at = 0
        last = len(self._parts) - 1
        for place, (length, pattern) in enumerate(self._parts):
            if place == last and self._is_end:
                begin = len(name) - length
                is_there = begin >= at and (place or not self._is_begin or not begin)
                return bool(is_there and pattern.match(name, begin))
            found = pattern.match(name) if not place and self._is_begin else pattern.search(name, at)
            if not found:
                return False
            at = found.end()
        return True


class FramePattern(NamedTuple):
    what: str  # "fun", "obj", "src", or _ANY
    pattern: Glob
    is_allocator: bool  # it may stand for an allocator's frame


class Suppression(NamedTuple):
    file: str
    line: int
    name: str  # as it is told: "leak:foo", or the name of a block
    anywhere: Optional[Glob]  # of a line: what any frame matches
    frames: Tuple[FramePattern, ...]  # of a block


# ---- reading ------------------------------------------------------------------------------------


def _line_pattern(text: str) -> "Glob":
    is_begin, is_end = text.startswith("^"), text.endswith("$")
    return Glob(text[is_begin : len(text) - is_end], is_begin, is_end, False)


def _frame(text: str, where: str) -> FramePattern:
    if text == _ANY:
        return FramePattern(_ANY, Glob("", False, False, False), False)
    what, colon, rest = text.partition(":")
    if not colon or what not in ("fun", "obj", "src") or not rest or len(rest) > _LONGEST:
        raise SuppressionError(f"{where}: a frame is fun:NAME, obj:FILE, src:FILE or ...")
    pattern = Glob(rest, True, True, True)
    is_allocator = what == "fun" and any(map(pattern.matches, _ALLOCATORS)) or what == "obj" and "vgpreload" in rest
    return FramePattern(what, pattern, bool(is_allocator))


def _block(file: str, begin: int, lines: Sequence[Tuple[int, str]]) -> Optional[Suppression]:
    """From what is in braces; None if it is of no leak."""
    if len(lines) < 2:
        raise SuppressionError(f"{file}:{begin}: a block has a name and a kind, such as Memcheck:Leak")
    name, (at, kind) = lines[0][1], lines[1]
    tools, colon, error = kind.partition(":")
    if not colon:
        raise SuppressionError(f"{file}:{at}: a kind is TOOL:KIND, such as Memcheck:Leak")
    if error.strip() != "Leak":
        return None
    given = [(number, text) for number, text in lines[2:] if not text.startswith("match-leak-kinds:")]
    frames = tuple(_frame(text, f"{file}:{number}") for number, text in given)
    if not frames:
        raise SuppressionError(f"{file}:{begin}: the block has no frames")
    if len(frames) > _MOST_FRAMES:
        raise SuppressionError(f"{file}:{begin}: the block has more than {_MOST_FRAMES} frames")
    return Suppression(file, begin, name, None, frames)


def parse_suppressions(file: str, text: str) -> List[Suppression]:
    """From the text of a file of that name. Raises SuppressionError."""
    found: List[Suppression] = []
    block: Optional[List[Tuple[int, str]]] = None
    begin = 0
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        where = f"{file}:{number}"
        if not line or line.startswith("#"):
            continue
        if block is not None:
            if line == "}":
                made = _block(file, begin, block)
                found += [made] if made else []
                block = None
            else:
                block.append((number, line))
        elif line == "{":
            block, begin = [], number
        elif line.startswith("leak:"):
            pattern = line[len("leak:") :]
            if not pattern.strip("*^$") or len(pattern) > _LONGEST:
                raise SuppressionError(f"{where}: leak: needs a pattern that is not everything")
            found.append(Suppression(file, number, line, _line_pattern(pattern), ()))
        else:
            raise SuppressionError(f"{where}: expected leak:PATTERN, or a block in braces")
    if block is not None:
        raise SuppressionError(f"{file}:{begin}: the block has no end")
    return found


# ---- matching -----------------------------------------------------------------------------------


class _Matcher:
    """Of one suppression in one profile. Remembers what frames match."""

    def __init__(self, profile: Profile, suppression: Suppression) -> None:
        self._profile = profile
        self._of = suppression
        self._frames: Dict[Tuple[int, int], bool] = {}  # by place of the pattern, and frame
        self._starts = [suppression.frames]
        if suppression.frames and suppression.frames[0].is_allocator:
            self._starts.append(suppression.frames[1:])

    def _is(self, place: int, pattern: FramePattern, id_: int) -> bool:
        known = self._frames.get((place, id_))
        if known is None:
            frame = self._profile.frame(id_)
            text = {"fun": frame.function, "obj": frame.object, "src": frame.file}[pattern.what]
            known = frame.type != "t" and bool(text) and pattern.pattern.matches(text)
            if not known and pattern.what == "src":
                short, name = f"{_base(frame.file)}:{frame.line}", _base(frame.file)
                known = any(pattern.pattern.matches(each) for each in (name, short, f"{frame.file}:{frame.line}"))
            self._frames[place, id_] = known
        return known

    def of_stack(self, node: int) -> bool:
        """Whether a stack is suppressed."""
        stack = list(self._profile.stack(node))
        if self._of.anywhere is not None:
            return any(self._finds(id_) for id_ in stack)
        return any(self._follows(frames, len(self._of.frames) - len(frames), stack) for frames in self._starts)

    def _finds(self, id_: int) -> bool:
        known = self._frames.get((0, id_))
        if known is None:
            pattern = self._of.anywhere
            known = self._frames[0, id_] = pattern is not None and _found(pattern, self._profile.frame(id_))
        return known

    def _follows(self, frames: Sequence[FramePattern], first: int, stack: Sequence[int]) -> bool:
        """Whether the innermost frames of the stack are these. By all places at once: without trying again it ends."""
        # Of the patterns: how many have been passed, in some way of reading the stack so far.
        places = {0}
        for id_ in [*stack, 0]:
            places = self._past_any(frames, places)
            if len(frames) in places:
                return True
            if not id_:
                break
            following = set()
            for place in places:
                if frames[place].what == _ANY:
                    following.add(place)
                elif self._is(first + place, frames[place], id_):
                    following.add(place + 1)
            places = following
        return len(frames) in places

    @staticmethod
    def _past_any(frames: Sequence[FramePattern], places: "set[int]") -> "set[int]":
        """With those after each `...`, which may stand for no frame."""
        found = set(places)
        pending = list(places)
        while pending:
            place = pending.pop()
            if place < len(frames) and frames[place].what == _ANY and place + 1 not in found:
                found.add(place + 1)
                pending.append(place + 1)
        return found


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _found(pattern: Glob, frame: Frame) -> bool:
    return frame.type != "t" and any(
        name and pattern.matches(name) for name in (frame.function, frame.file, frame.object)
    )


class Suppressed(NamedTuple):
    """What suppressions do to a profile."""

    accounts: bytearray  # by account: 1 if it is suppressed
    by: Dict[int, int]  # by account: the place in the list of the first that suppresses it


def suppress(profile: Profile, suppressions: Sequence[Suppression]) -> Suppressed:
    """Accounts with a stack that any of them matches."""
    matchers = [_Matcher(profile, each) for each in suppressions]
    known: Dict[int, int] = {0: -1}  # by node: which matches its stack; -1: none
    found = Suppressed(bytearray(len(profile.accounts)), {})
    for account, (node, _, _) in enumerate(profile.accounts):
        if node not in known:
            known[node] = next((place for place, each in enumerate(matchers) if each.of_stack(node)), -1)
        if known[node] >= 0:
            found.accounts[account] = 1
            found.by[account] = known[node]
    return found
