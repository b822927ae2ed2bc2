# SPDX-License-Identifier: GPL-2.0-or-later
"""Choices of accounts: filters, and suppressions of known leaks.

A filter is a regular expression on functions, files, owners and threads. A pattern is searched for in the names of all frames of a stack, of its owner and of its thread, or with a word before it
("file:", "function:", "owner:", "thread:") in these alone. Names are matched once each, however many stacks share them.
"""

import re
from functools import lru_cache
from typing import Callable, Dict, List, NamedTuple, Pattern, Sequence, Set

from jmassif.attribution.views import WITHOUT_THREADS
from jmassif.model.run import Profile


FIELDS = ("function", "file", "owner", "thread")
_LONGEST = 1000
_END = "\0"  # no name has it inside


class FilterError(Exception):
    """Neither an expression nor a suppression. The message is one line."""


class Filter(NamedTuple):
    text: str  # as it was given
    fields: Sequence[str]  # of FIELDS
    pattern: "Pattern[str]"


def parse_filter(text: str) -> Filter:
    """Raises FilterError."""
    word, colon, rest = text.partition(":")
    fields, expression = ((word,), rest) if colon and word in FIELDS else (FIELDS, text)
    if not expression or len(expression) > _LONGEST:
        raise FilterError(f'invalid regular expression "{text[:60]}": not of 1 to {_LONGEST} characters')
    try:
        return Filter(text, fields, re.compile(expression))
    except (re.error, OverflowError, RecursionError, MemoryError) as error:
        raise FilterError(f'invalid regular expression "{text[:60]}": {error}')


def _first(profile: Profile, finds: Sequence[Callable[[int], bool]]) -> List[int]:
    """By stack: which of the functions is the first that finds something in any of its frames; their number where none does."""
    nothing = len(finds)
    by_frame = {id_: next((at for at, find in enumerate(finds) if find(id_)), nothing) for id_ in profile.frames}
    found = [nothing] * len(profile.node_parent)  # of the stack that ends there
    for node in range(1, len(found)):
        found[node] = min(by_frame[profile.node_frame[node]], found[profile.node_parent[node]])
    return found


def _matching(profile: Profile, filters: Sequence[Filter]) -> bytearray:
    """1 for each account in which any of them finds something."""

    def finder(each: Filter) -> Callable[[int], bool]:
        search = lru_cache(maxsize=None)(each.pattern.search)
        return lambda id_: any(map(search, _names_of(profile, id_, each.fields)))

    first = _first(profile, [finder(each) for each in filters])
    patterns = [each.pattern for each in filters if "owner" in each.fields]
    owners = {of.owner for of in profile.accounts.types if any(pattern.search(of.owner) for pattern in patterns)}
    return bytearray(first[node] < len(filters) or owner in owners for node, _, owner in profile.accounts)


def _names_of(profile: Profile, id_: int, fields: Sequence[str]) -> Set[str]:
    """The names of a frame."""
    frame = profile.frame(id_)
    if frame.type == "t":
        return {profile.thread(profile.frames[id_][4])} if "thread" in fields else set()
    place = f"{frame.file}:{frame.line}" if frame.line else ""
    names = {"function": (frame.function,), "file": (frame.file, frame.object), "place": (place,)}
    return {name for field in fields for name in names.get(field, ())} - {""}


def kept(profile: Profile, only: Sequence[Filter], but: Sequence[Filter]) -> bytearray:
    """By account: 1 where any of `only` finds something (all, if there are none) and none of `but` does. Raises FilterError."""
    if not profile.has_threads and any(each.fields == ("thread",) for each in [*only, *but]):
        raise FilterError(WITHOUT_THREADS)
    wanted = _matching(profile, only) if only else bytearray(b"\1") * len(profile.accounts)
    unwanted = _matching(profile, but) if but else bytearray(len(profile.accounts))
    return bytearray(a and not b for a, b in zip(wanted, unwanted))


# ---- suppressions ------------------------------------------------------------------------------

# Known leaks, which are not reported again: lines `leak:PATTERN` as LeakSanitizer takes them.
#
# PATTERN is found anywhere in the function, the source file, FILE:LINE or the object file of any frame of a stack; `*` stands for
# anything, `^` and `$` hold it to the ends of the name. `#` begins a comment.


class Suppression(NamedTuple):
    file: str
    line: int
    text: str  # "leak:foo"
    parts: Sequence[str]  # what stands between the stars; the ends of a name are _END

    def matches(self, name: str) -> bool:
        """Part by part, each as early as it is found: linear in the length of the name for any pattern."""
        at, name = 0, f"{_END}{name}{_END}"
        for part in self.parts:
            at = name.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return True


def parse_suppressions(file: str, text: str) -> List[Suppression]:
    """From the text of a file of that name. Raises FilterError."""
    found: List[Suppression] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if not line.startswith("leak:"):
            raise FilterError(f"{file}:{number}: expected leak:PATTERN")
        pattern = line[len("leak:") :]
        if not pattern.strip("*^$") or len(pattern) > _LONGEST:
            raise FilterError(f"{file}:{number}: leak: needs a pattern that is not everything")
        found.append(Suppression(file, number, line, re.sub(r"^\^|\$$", _END, pattern).split("*")))
    return found


def suppress(profile: Profile, suppressions: Sequence[Suppression]) -> Dict[int, int]:
    """The place in the list of the first that matches a frame of the stack, by account; without those that none matches."""
    names = {id_: _names_of(profile, id_, ("function", "file", "place")) for id_ in profile.frames}

    def finder(each: Suppression) -> Callable[[int], bool]:
        return lambda id_: any(map(each.matches, names[id_]))

    first = _first(profile, [finder(each) for each in suppressions])
    places = ((account, first[node]) for account, node in enumerate(profile.accounts.nodes))
    return {account: place for account, place in places if place < len(suppressions)}
