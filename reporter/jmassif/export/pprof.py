# SPDX-License-Identifier: GPL-2.0-or-later
"""A pprof profile: gzip around the message Profile of pprof's profile.proto.

A sample is an account: its stack, five values, and labels with its owner and where it was recorded, so that
profiles of many boards can be merged in one store and kept apart there. The first four values have the names of Go's heap
profiles, which pprof and the stores that are built on it know.
"""

import zlib
from functools import lru_cache
from typing import Dict, Iterator, List, Sequence, Tuple, Union

from jmassif.analysis.aggregate import VALUES, SampleFigures, samples
from jmassif.analysis.moments import Moment, select
from jmassif.attribution.names import describe
from jmassif.attribution.views import thread_naming
from jmassif.model.records import side_of
from jmassif.model.run import Profile
from jmassif.model.run_info import labels_of_run
from jmassif.render.view import FormatError, View
from jmassif.units import moment, unicode_text
from jmassif.version import __version__


# ---- Protocol Buffers' wire format ----


@lru_cache(maxsize=1 << 16)
def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _message(*fields: Tuple[int, Union[int, bytes]]) -> bytes:
    """Fields by number. Bytes are a string, a message, or packed numbers; 0 is the default, and left out."""
    encoded = []
    for field, value in fields:
        if isinstance(value, bytes):
            encoded += [_varint(field << 3 | 2), _varint(len(value)), value]
        elif value:
            encoded += [_varint(field << 3), _varint(value)]
    return b"".join(encoded)


# ---- pprof ----

# The names of VALUES there.
_SAMPLE_TYPES = ("inuse_space", "inuse_objects", "alloc_space", "alloc_objects", "temporary_objects")

# Fields of the message Profile.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = 1, 2, 3, 4, 5, 6
_TIME, _DURATION, _PERIOD_TYPE, _PERIOD, _COMMENT, _DEFAULT_SAMPLE_TYPE = 9, 10, 11, 12, 13, 14


class _Strings(Dict[str, int]):
    """The table of strings, which ends the message."""

    def __missing__(self, text: str) -> int:
        return self.setdefault(text, len(self))


class _Mappings:
    """The object files that frames are in: those that the trace saw mapped, and others by name alone."""

    def __init__(self, profile: Profile) -> None:
        self.ids: Dict[Tuple[str, int, int], int] = {}  # by path, start and limit; they count from 1
        self._ranges: Dict[str, List[Tuple[int, int]]] = {}
        for loaded in profile.objects:
            range_ = loaded.address, loaded.address + loaded.size
            self._ranges.setdefault(loaded.path, []).append(range_)
            self._add(loaded.path, *range_)

    def _add(self, path: str, start: int, limit: int) -> int:
        return self.ids.setdefault((path, start, limit), len(self.ids) + 1)

    def id(self, path: str, address: int) -> int:
        """0: a frame without an object file."""
        ranges = [each for each in self._ranges.get(path, ()) if each[0] <= address < each[1]]
        return self._add(path, *(ranges[:1] or [(0, 0)])[0]) if path else 0


def _frames(profile: Profile, strings: _Strings) -> Iterator[bytes]:
    """Locations, with the ids of the frames; functions, and mappings."""
    mappings = _Mappings(profile)
    functions: Dict[Tuple[str, str, str], int] = {}
    for id_ in profile.frames:
        frame = profile.frame(id_)
        name = frame.function or ("?" if frame.type == "p" else describe(frame))
        key = (name, frame.file, frame.object)
        if key not in functions:
            function = functions[key] = len(functions) + 1
            fields = _message((1, function), (2, strings[name]), (3, strings[name]), (4, strings[frame.file]))
            yield _message((_FUNCTION, fields))
        line = _message((1, functions[key]), (2, frame.line))
        mapping = mappings.id(frame.object, frame.address)
        yield _message((_LOCATION, _message((1, id_), (2, mapping), (3, frame.address), (4, line))))
    for (path, start, limit), mapping in mappings.ids.items():
        # Functions, files, lines and inlined calls are here: nothing is to be looked up.
        has = [(field, 1) for field in (7, 8, 9, 10)]
        yield _message((_MAPPING, _message((1, mapping), (2, start), (3, limit), (5, strings[path]), *has)))


def _samples(profile: Profile, rows: Sequence[Tuple[int, SampleFigures]], strings: _Strings) -> Iterator[bytes]:
    """And the frames that stand for memory without a stack."""
    n_frames = max(profile.frames, default=0)
    stackless: Dict[Tuple[str, str], int] = {}  # the location of a kind and owner
    thread_of = thread_naming(profile, True) if profile.has_threads else lambda account: ""

    @lru_cache(maxsize=1 << 10)
    def stack(node: int) -> bytes:
        """Locations, innermost first. Neighbours have the same callers."""
        return b"".join(map(_varint, profile.stack(node)))

    @lru_cache(maxsize=None)
    def labels(kind: str, owner: str, role: str, thread: str) -> bytes:
        found = labels_of_run(profile) + [("owner", owner), ("group", profile.group_of.get(owner, "other"))]
        found += [("kind", kind), ("side", side_of(kind) or ""), ("role", role), ("thread", thread)]
        return _message(*((3, _message((1, strings[key]), (2, strings[text]))) for key, text in found if text))

    for account, figures in rows:
        node, kind, owner = profile.accounts[account]
        if node:
            locations = _varint(profile.node_frame[node]) + stack(profile.node_parent[node])
        else:
            locations = _varint(stackless.setdefault((kind, owner), n_frames + len(stackless) + 1))
        values = b"".join(map(_varint, figures))
        fields = _message((1, locations), (2, values))
        yield _message((_SAMPLE, fields + labels(kind, owner, profile.role(account) or "", thread_of(account))))
    for (kind, owner), location in stackless.items():
        # Functions have no more numbers than frames.
        name = strings[f"({kind} of {owner}, without a stack)"]
        yield _message((_FUNCTION, _message((1, location), (2, name), (3, name))))
        yield _message((_LOCATION, _message((1, location), (4, _message((1, location))))))


def _about(profile: Profile, at: Moment, strings: _Strings) -> Iterator[bytes]:
    is_ms = profile.time_unit == "ms"
    start = profile.number("start-unix-ms")
    if start is not None:
        yield _message((_TIME, (start + (at.time if is_ms else 0)) * 1000000))
    if is_ms:
        yield _message((_DURATION, profile.last_time * 1000000))
    yield _message((_PERIOD_TYPE, _message((1, strings["space"]), (2, strings["bytes"]))), (_PERIOD, 1))
    command, creator = profile.manifest.get("command", ""), f"jmassif {__version__}"
    for comment in (command, creator, f"inuse: {at.name} ({moment(at.time, profile.time_unit)})"):
        yield _message((_COMMENT, strings[comment]))
    yield _message((_DEFAULT_SAMPLE_TYPE, strings[_SAMPLE_TYPES[0]]))


def _pieces(profile: Profile, view: View) -> Iterator[bytes]:
    at = select(profile, view.selector or "peak")
    rows = list(samples(profile, at.composition))
    if any(sum(column) >= 1 << 63 for column in zip(*(figures for _, figures in rows))):
        raise FormatError("a sum is beyond 63 bits, which pprof cannot hold: choose another format")
    strings = _Strings({"": 0})
    for name, unit in zip(_SAMPLE_TYPES, VALUES.values()):
        yield _message((_SAMPLE_TYPE, _message((1, strings[name]), (2, strings[unit]))))
    yield from _frames(profile, strings)
    yield from _samples(profile, rows, strings)
    yield from _about(profile, at, strings)
    for text in strings:
        yield _message((_STRING, unicode_text(text).encode("utf-8")))


def write(profile: Profile, view: View) -> Iterator[bytes]:
    """The compressed message, in pieces. Raises moments.SelectionError, FormatError."""
    # 31: gzip's own head and tail. Its time stamp is 0, so that the same trace gives the same file.
    compressor = zlib.compressobj(6, zlib.DEFLATED, 31)
    for piece in _pieces(profile, view):
        yield compressor.compress(piece)
    yield compressor.flush()
