# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads traces as they arrive, for months: what was loaded is kept in the database alone, so memory does not grow with it.

A scan looks at all files, and reads those that changed since the scan before. A trace without an end waits until nothing has been
written to it for a while: its program may go on, or a copy of it may. A full scan now and then finds what the times of a file
system hide.
"""

import gc
import os
import re
import signal
import time
from itertools import chain
from typing import Any, Callable, Dict, Iterable, Iterator

from jmassif.fleet import Unavailable
from jmassif.fleet.database import opened
from jmassif.fleet.load import Processes, load

_FULL_SCAN_SECONDS = 3600
_CLOCKS_SECONDS = 60  # by which the clock of a file server may be behind
_LONGEST_PAUSE = 60
_MOST_NAMED = 10_000
# All that lie there; it gets what to call for a directory that is refused.
Paths = Callable[[Callable[[str, str], Any]], Iterable[str]]


def _has_end(path: str) -> bool:
    with open(path, "rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - 100))
        return bool(re.search(rb"\nZ [^\n]*\n\Z", stream.read()))


def _arrived(paths: Iterable[str], since: float, settle: float) -> Iterator[str]:
    """The paths that changed since a time, and are complete or were left alone for some seconds."""
    for path in paths:
        try:
            changed = os.stat(path).st_ctime  # that of a file with an old date, too
            if changed >= since and (time.time() - changed >= settle or _has_end(path)):
                yield path
        except FileNotFoundError:
            pass
        except OSError:
            yield path  # to be refused with the reason


def watch(
    database: str, paths: Paths, readers: Processes, every: float, settle: float, warn: Callable[[str], Any]
) -> int:
    """Load what arrives until SIGTERM; the number of traces loaded. Raises FleetError if the database is not there at first."""
    with opened(database, may_be_new=True):
        pass
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        return _until_the_end(database, paths, readers, every, settle, warn)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _has_ended(pause: float = 0) -> bool:
    """SIGTERM has come, or comes within so many seconds."""
    return signal.sigtimedwait([signal.SIGTERM], pause) is not None


def _until_the_end(
    database: str, paths: Paths, readers: Processes, every: float, settle: float, warn: Callable[[str], Any]
) -> int:
    named: Dict[str, str] = {}
    n_loaded, since, full, gone, pause = 0, 0.0, 0.0, 0.0, every

    def refuse(path: str, reason: str) -> None:
        if named.get(path) != reason and len(named) < _MOST_NAMED:
            named[path] = reason
            warn(f"{path}: {reason}")

    while True:
        begin = time.time()
        if begin - full >= _FULL_SCAN_SECONDS:
            since = 0
        arrived = _arrived(paths(refuse), since, settle)
        try:
            for path in arrived:
                with opened(database, may_be_new=True) as connection:
                    if gone:
                        warn(f"the database is back after {begin - gone:.0f} s")
                        gone = 0
                    for outcome in load(connection, chain([path], arrived), readers):
                        n_loaded += outcome.is_new and not outcome.reason
                        if outcome.is_new and outcome.reason:
                            refuse(outcome.path, outcome.reason)
                        if _has_ended():
                            return n_loaded
            full = full if since else begin
            since, pause = begin - settle - _CLOCKS_SECONDS, every
        except Unavailable as error:
            if not gone:
                warn(f"{error}; trying again")
                gone, pause = begin, 0.5
            pause = min(2 * pause, _LONGEST_PAUSE)
        gc.collect()
        if _has_ended(pause):
            return n_loaded
