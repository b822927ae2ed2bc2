# SPDX-License-Identifier: GPL-2.0-or-later
"""Reduces a trace to rows of the database: the facts of its run, and bytes by owner, library, call and Python line at the peak.

The names are those by which jmassif diff compares runs. It runs in processes that read traces, on any machine of a cluster; these
need neither SQLAlchemy nor the database.
"""

import errno
import hashlib
import os
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple, Union

from jmassif.analysis.aggregate import Usage, sum_of
from jmassif.analysis.compare import measure
from jmassif.analysis.moments import SelectionError
from jmassif.fleet import TOTAL, VIEWS
from jmassif.model.run import Profile
from jmassif.model.run_info import ending_of, fact, facts, run_id
from jmassif.reader.builder import load_file
from jmassif.reader.tokens import TraceError
from jmassif.units import unicode_text
from jmassif.version import __version__

Row = Dict[str, Any]  # of a table, by column


class Record(NamedTuple):
    run: Row
    setup: List[Row]
    parts: List[Row]
    figures: List[Row]


class Refused(NamedTuple):
    reason: str
    is_of_content: bool = True  # stays until the file changes


def _text(value: str) -> str:
    return unicode_text(value).replace("\0", "\\x00")


def number_of(text: str) -> int:
    """A hash of 63 bits, which every database has: a million texts collide in one of ten million fleets."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _parts(name: str, profile: Profile) -> Dict[Tuple[str, str], Usage]:
    """Memory by view and name; nothing of a program that was killed before it had a peak."""
    try:
        run = measure(name, profile, VIEWS, "peak")
    except SelectionError:
        return {}
    found = {(TOTAL, TOTAL): sum_of(run.views["owner"].values())}
    for view in VIEWS:
        for key, usage in run.views[view].items():
            # A nested call has its callers' names before it.
            part = (view, _text(" > ".join((*key.inside, key.name)) + (" (further calls)" if key.is_listed else "")))
            found[part] = found.get(part, Usage()) + usage
    return found


def _reduced(name: str, profile: Profile) -> Record:
    manifest, peaks = profile.manifest, profile.peaks
    known = {key: _text(value) for key, value in sorted(facts(profile).items()) if value and key != "host"}
    setup = number_of("\n".join(f"{key}\0{value}" for key, value in known.items()))
    id_ = run_id(profile)
    run = {
        "run": number_of(id_),
        "id": id_,
        "file": _text(name),
        **{key: _text(manifest.get(key, "")) for key in ("host", "board", "l4t", "pytorch", "command", "start")},
        "jetpack": _text(fact(profile, "jetpack")),
        "pid": profile.number("pid") or 0,
        "start_unix_ms": profile.number("start-unix-ms") or 0,
        "is_complete": int(profile.is_complete),
        "ended": f"cut off: {_text(profile.truncation)}" if profile.truncation else ending_of(profile),
        "end_time": profile.last_time,
        "is_discrete": int(profile.is_discrete),
        **{f"peak_{which}": peaks[which].bytes if which in peaks else None for which in ("total", "host", "device")},
        "setup": setup,
    }
    setups = [{"setup": setup, "key": key, "value": value} for key, value in known.items()]
    parts, figures = [], []
    for (view, part), usage in _parts(name, profile).items():
        number = number_of(f"{view}\0{part}")
        parts.append({"part": number, "view": view, "name": part})
        bytes_ = {"host": usage.host_bytes, "device": usage.device_bytes}
        figures.append({"run": run["run"], "part": number, **bytes_, "number": usage.blocks})
    return Record(run, setups, parts, figures)


def host_of(path: str) -> str:
    """Return the host of HOST:/PATH, a path on one machine of a cluster; "" for other paths."""
    host, colon, _ = path.partition(":/")
    return host if colon and "/" not in host else ""


def _read(path: str) -> Union[Record, Refused]:
    try:
        host = host_of(path)
        found = _reduced(path, load_file(path[len(host) + 1 :] if host else path, has_lines=False))
        numbers = [value for row in (found.run, *found.figures) for value in row.values() if isinstance(value, int)]
        if any(abs(number) >> 63 for number in numbers):
            raise OverflowError
        return found
    except TraceError as error:
        # EIO is also the reader's own error of a file whose compressed data are damaged.
        cause = error.__context__
        return Refused(str(error), not isinstance(cause, OSError) or cause.errno == errno.EIO)
    except OverflowError:
        return Refused("a figure is beyond 63 bits, which databases cannot hold")
    except MemoryError:
        return Refused("there is not enough memory to read it")


def read(paths: List[str]) -> List[Union[Record, Refused]]:
    return list(map(_read, paths))


Status = Tuple[int, int]  # a file's size, and when it changed, in ns


def status_of(path: str) -> Status:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


Refuse = Callable[[str, str], Any]  # with a path and the reason


def files(name: str, refuse: Refuse) -> Iterator[str]:
    """A trace itself, or all files in a directory.

    A large tree may have directories that are not for everybody (lost+found); these are refused, and the others are read all the same.
    """

    def pass_over(error: OSError) -> None:
        refuse(os.path.abspath(error.filename), f"cannot be read: {error.strerror}")

    name = os.path.abspath(name)
    if not os.path.isdir(name):
        yield name
        return
    for directory, inner, names in os.walk(name, onerror=pass_over):
        inner.sort()
        paths = (os.path.join(directory, file) for file in sorted(names))
        yield from (path for path in paths if os.path.isfile(path))


def listed(name: str) -> Tuple[List[Tuple[str, Status]], List[Tuple[str, str]]]:
    """As a worker finds them: the files, and what is refused."""
    found: List[Tuple[str, Status]] = []
    refused: List[Tuple[str, str]] = []

    def refuse(path: str, reason: str) -> None:
        refused.append((path, reason))

    for path in files(name, refuse):
        try:
            found.append((path, status_of(path)))
        except OSError as error:
            refuse(path, f"cannot be read: {error.strerror}")
    return found, refused


def version() -> str:
    return __version__
