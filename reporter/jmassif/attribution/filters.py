# SPDX-License-Identifier: GPL-2.0-or-later
"""Filters of accounts: regular expressions on functions, files, owners and threads.

A pattern is searched for in the names of all frames of a stack, of its owner and of its thread, or with a word before it
("file:", "function:", "owner:", "thread:") in these alone. Names are matched once each, however many stacks share them, and all of it has a bound in processor time:
there are expressions that would not come to an end.
"""

import re
import signal
import threading
from typing import Any, Callable, NamedTuple, Pattern, Sequence, Set, TypeVar

from jmassif.attribution.views import WITHOUT_THREADS
from jmassif.model.run import Profile


FIELDS = ("function", "file", "owner", "thread")
_SECONDS = 3.0  # of processor time, for all expressions
_LONGEST = 1000
_Answer = TypeVar("_Answer")


class FilterError(Exception):
    """No expression, or one that takes too long. The message is one line."""


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


class _TooLong(Exception):
    pass


def _bounded(work: Callable[[], _Answer], complaint: str) -> _Answer:
    """The result of the work, which may take _SECONDS of processor time. Raises FilterError."""
    if threading.current_thread() is not threading.main_thread():
        return work()  # signals are the main thread's

    def stop(*_: Any) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
    try:
        return work()
    except _TooLong:
        raise FilterError(complaint)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _matching(profile: Profile, filters: Sequence[Filter]) -> bytearray:
    """1 for each account in which any of them finds something."""
    frames: Set[int] = set()
    owners: Set[str] = set()
    for each in filters:
        known = {text: bool(each.pattern.search(text)) for text in _names(profile, each.fields)}
        for id_ in profile.frames:
            if any(known[name] for name in _names_of(profile, id_, each.fields)):
                frames.add(id_)
        if "owner" in each.fields:
            owners |= {account.owner for account in profile.accounts if known.get(account.owner)}
    through = bytearray(len(profile.node_frame))  # by node: whether its stack has such a frame
    for node in range(1, len(through)):
        through[node] = profile.node_frame[node] in frames or through[profile.node_parent[node]]
    return bytearray(bool(through[node] or owner in owners) for node, _, owner in profile.accounts)


def _names(profile: Profile, fields: Sequence[str]) -> Set[str]:
    found: Set[str] = set()
    for id_ in profile.frames:
        found |= _names_of(profile, id_, fields)
    if "owner" in fields:
        found |= {account.owner for account in profile.accounts}
    return found


def _names_of(profile: Profile, id_: int, fields: Sequence[str]) -> Set[str]:
    """The names of a frame."""
    frame = profile.frame(id_)
    if frame.type == "t":
        return {profile.thread(profile.frames[id_][4])} if "thread" in fields else set()
    found = {frame.function} if "function" in fields else set()
    return (found | {frame.file, frame.object} if "file" in fields else found) - {""}


def kept(profile: Profile, only: Sequence[Filter], but: Sequence[Filter]) -> bytearray:
    """By account: 1 where any of `only` finds something (all, if there are none) and none of `but` does. Raises FilterError."""

    if not profile.has_threads and any(each.fields == ("thread",) for each in [*only, *but]):
        raise FilterError(WITHOUT_THREADS)

    def choose() -> bytearray:
        wanted = _matching(profile, only) if only else bytearray(b"\1") * len(profile.accounts)
        unwanted = _matching(profile, but) if but else bytearray(len(profile.accounts))
        return bytearray(a and not b for a, b in zip(wanted, unwanted))

    texts = ", ".join(f'"{each.text[:60]}"' for each in [*only, *but])
    return _bounded(
        choose,
        f"{texts}: takes more than {_SECONDS:g} s on the names of this trace: write it without nested repetition",
    )
