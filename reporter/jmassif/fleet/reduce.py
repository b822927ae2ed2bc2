# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds traces, and reduces each to rows: the facts of its run, and bytes by owner, library, call and Python line at the peak.

The names are those by which jmassif diff compares runs. It runs in processes that read traces, on any machine of a cluster; these
need neither SQLAlchemy nor the database.
"""

import errno
import hashlib
import os
from itertools import chain
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple

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


class Read(NamedTuple):
    """A trace that was read."""

    rows: Dict[str, List[Row]]  # by table
    reason: str = ""  # why it is refused
    is_of_content: bool = True  # the reason stays until the file changes


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


def _reduced(name: str, profile: Profile) -> Dict[str, List[Row]]:
    manifest, peaks = profile.manifest, profile.peaks
    known = {key: _text(value) for key, value in sorted(facts(profile).items()) if value and key != "host"}
    setup, id_ = number_of("\n".join(f"{key}\0{value}" for key, value in known.items())), run_id(profile)
    run = {"run": number_of(id_), "id": id_, "file": _text(name), "setup": setup}
    run.update({key: _text(manifest.get(key, "")) for key in ("host", "board", "l4t", "pytorch", "command", "start")})
    run.update({key.replace("-", "_"): profile.number(key) or 0 for key in ("pid", "start-unix-ms")})
    run.update({f"peak_{of}": peaks[of].bytes if of in peaks else None for of in ("total", "host", "device")})
    run.update(is_complete=int(profile.is_complete), is_discrete=int(profile.is_discrete), end_time=profile.last_time)
    run["ended"] = f"cut off: {_text(profile.truncation)}" if profile.truncation else ending_of(profile)
    run["jetpack"] = _text(fact(profile, "jetpack"))
    parts, figures = [], []
    for (view, part), usage in _parts(name, profile).items():
        number = number_of(f"{view}\0{part}")
        parts.append({"part": number, "view": view, "name": part})
        held = {"host": usage.host_bytes, "device": usage.device_bytes, "number": usage.blocks}
        figures.append({"run": run["run"], "part": number, **held})
    setups = [{"setup": setup, "key": key, "value": value} for key, value in known.items()]
    return {"run": [run], "setup": setups, "part": parts, "figure": figures}


def _read(path: str) -> Read:
    try:
        rows = _reduced(path, load_file(path, has_lines=False))
        values = (value for row in chain(*rows.values()) for value in row.values())
        if any(isinstance(value, int) and abs(value) >> 63 for value in values):
            raise OverflowError
        return Read(rows)
    except TraceError as error:
        # EIO is also the reader's own error of a file whose compressed data are damaged.
        cause = error.__context__
        return Read({}, str(error), not isinstance(cause, OSError) or cause.errno == errno.EIO)
    except OverflowError:
        return Read({}, "a figure is beyond 63 bits, which databases cannot hold")
    except MemoryError:
        return Read({}, "there is not enough memory to read it")


def read(paths: List[str]) -> List[Read]:
    return list(map(_read, paths))


class File(NamedTuple):
    path: str
    size: int = 0
    mtime_ns: int = 0
    changed: float = 0.0  # in seconds; that of a file with an old date, too
    reason: str = ""  # why it cannot be read, file or directory


def _file(path: str) -> File:
    try:
        status = os.stat(path)
        return File(path, status.st_size, status.st_mtime_ns, status.st_ctime)
    except OSError as error:
        return File(path, reason=f"cannot be read: {error.strerror}")


def files(names: Iterable[str], database: str) -> Iterator[File]:
    """The named traces, and all files in directories but the database. Directories that are not for everybody are refused."""
    # SQLite keeps files beside a database while it is written to.
    own = {os.path.realpath(database) + end for end in ("", "-journal", "-wal", "-shm")}
    for name in names:
        name = os.path.abspath(name)
        if not os.path.isdir(name):
            yield _file(name)
            continue
        closed: List[OSError] = []
        for directory, inner, inside in os.walk(name, onerror=closed.append):
            inner.sort()
            paths = (os.path.join(directory, file) for file in sorted(inside))
            yield from (_file(path) for path in paths if os.path.isfile(path) and os.path.realpath(path) not in own)
        yield from (File(each.filename, reason=f"cannot be read: {each.strerror}") for each in closed)
