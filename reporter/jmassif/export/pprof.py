# SPDX-License-Identifier: GPL-2.0-or-later
"""A pprof profile: gzip around the message Profile of pprof's profile.proto.

A sample is an account: its stack, five values, and labels with its owner and where it was recorded, so that
profiles of many boards can be merged in one store and kept apart there. The first four values have the names of Go's heap
profiles, which pprof and the stores that are built on it know.
"""

import zlib
from typing import Dict, Iterable, Iterator, List, Tuple

from jmassif.analysis.aggregate import SampleFigures, samples
from jmassif.analysis.moments import Moment, select
from jmassif.attribution.names import describe
from jmassif.attribution.views import thread_naming
from jmassif.model.records import Account, side_of
from jmassif.model.run import Profile
from jmassif.model.run_info import labels_of_run
from jmassif.render.view import FormatError, View
from jmassif.units import moment, unicode_text
from jmassif.version import __version__


# ---- protobuf ----
# Protocol Buffers' wire format, as far as writing a message needs it: varints and length-delimited fields.
#
# A message is bytes; its fields are appended one after the other. Fields that hold their default, 0, are left out.

_VARINT, _DELIMITED = 0, 2


_SHORT = [bytes([number]) for number in range(0x80)]


def varint(number: int) -> bytes:
    """An unsigned number of at most 64 bits; a negative one as its two's complement."""
    if 0 <= number < len(_SHORT):
        return _SHORT[number]
    number &= (1 << 64) - 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def number(field: int, value: int) -> bytes:
    return varint(field << 3 | _VARINT) + varint(value) if value else b""


def delimited(field: int, content: bytes) -> bytes:
    """A string, a message in a message, or packed numbers."""
    return varint(field << 3 | _DELIMITED) + varint(len(content)) + content


def packed(field: int, values: Iterable[int]) -> bytes:
    content = b"".join(map(varint, values))
    return delimited(field, content) if content else b""


# ---- pprof ----

# Name and unit, in the order of aggregate.VALUES.
_SAMPLE_TYPES = (
    ("inuse_space", "bytes"),
    ("inuse_objects", "count"),
    ("alloc_space", "bytes"),
    ("alloc_objects", "count"),
    ("temporary_objects", "count"),
)

# Fields of the message Profile.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = 1, 2, 3, 4, 5, 6
_TIME, _DURATION, _PERIOD_TYPE, _PERIOD, _COMMENT, _DEFAULT_SAMPLE_TYPE = 9, 10, 11, 12, 13, 14

# The largest value, which is signed there.
_LARGEST = (1 << 63) - 1


class _Strings:
    """The table of strings, which ends the message."""

    def __init__(self) -> None:
        self._index: Dict[str, int] = {"": 0}

    def __call__(self, text: str) -> int:
        return self._index.setdefault(unicode_text(text), len(self._index))

    def message(self) -> Iterator[bytes]:
        for text in self._index:
            yield delimited(_STRING, text.encode("utf-8"))


class _Mappings:
    """The object files that frames are in: those that the trace saw mapped, and others by name alone."""

    def __init__(self, profile: Profile) -> None:
        self.ranges: List[Tuple[int, int, str]] = []
        self._by_path: Dict[str, Dict[Tuple[int, int], int]] = {}
        for loaded in profile.objects:
            self._add(loaded.address, loaded.address + loaded.size, loaded.path)

    def _add(self, start: int, limit: int, path: str) -> int:
        known = self._by_path.setdefault(path, {})
        index = known.setdefault((start, limit), len(self.ranges))
        if index == len(self.ranges):
            self.ranges.append((start, limit, path))
        return index

    def id(self, path: str, address: int) -> int:
        """The mapping's id, which counts from 1; 0: a frame without an object file."""
        if not path:
            return 0
        for (start, limit), index in self._by_path.get(path, {}).items():
            if start <= address < limit:
                return index + 1
        return self._add(0, 0, path) + 1

    def message(self, strings: _Strings) -> Iterator[bytes]:
        for index, (start, limit, path) in enumerate(self.ranges):
            fields = number(1, index + 1) + number(2, start) + number(3, limit) + number(5, strings(path))
            # All there is to know of functions, files, lines and inlined calls is here: nothing is to be looked up.
            yield delimited(_MAPPING, fields + b"".join(number(field, 1) for field in (7, 8, 9, 10)))


def _frames(profile: Profile, strings: _Strings, mappings: _Mappings) -> Iterator[bytes]:
    """Locations, with the ids of the frames, and functions."""
    functions: Dict[Tuple[str, str, str], int] = {}
    for id_ in profile.frames:
        frame = profile.frame(id_)
        name = frame.function or ("?" if frame.type == "p" else describe(frame))
        key = (name, frame.file, frame.object)
        if key not in functions:
            function = functions[key] = len(functions) + 1
            fields = number(1, function) + number(2, strings(name)) + number(3, strings(name))
            yield delimited(_FUNCTION, fields + number(4, strings(frame.file)))
        mapping = mappings.id(frame.object, frame.address)
        line = delimited(4, number(1, functions[key]) + number(2, frame.line))
        yield delimited(_LOCATION, number(1, id_) + number(2, mapping) + number(3, frame.address) + line)


class _Samples:
    """The samples of one profile, and the frames that stand for memory without a stack."""

    def __init__(self, profile: Profile, strings: _Strings) -> None:
        self._profile = profile
        self._strings = strings
        self._ids = {frame: varint(frame) for frame in profile.frames}
        self._n_locations = max(profile.frames, default=0)
        self._stackless: Dict[Tuple[str, str], int] = {}
        self._run = b"".join(self._label(key, text) for key, text in labels_of_run(profile))
        self._labels: Dict[Tuple[str, str, str, str], bytes] = {}
        self._thread_of = thread_naming(profile, True) if profile.has_threads else None
        self._node, self._frames = 0, b""  # the last stack of callers: neighbours share it

    def _label(self, key: str, text: str) -> bytes:
        return delimited(3, number(1, self._strings(key)) + number(2, self._strings(text)))

    def _labels_of(self, account: int, kind: str, owner: str) -> bytes:
        role = self._profile.role(account) or ""
        thread = self._thread_of(account) if self._thread_of else ""
        known = self._labels.get((kind, owner, role, thread))
        if known is None:
            labels = [("owner", owner), ("group", self._profile.group_of.get(owner, "other"))]
            labels += [("kind", kind), ("side", side_of(kind) or ""), ("role", role), ("thread", thread)]
            known = self._run + b"".join(self._label(key, text) for key, text in labels if text)
            self._labels[(kind, owner, role, thread)] = known
        return known

    def _outwards(self, node: int) -> Iterator[bytes]:
        parents, frames = self._profile.node_parent, self._profile.node_frame
        while node:
            yield self._ids[frames[node]]
            node = parents[node]

    def _stack(self, account: Account) -> bytes:
        """Locations, innermost first."""
        if account.node:
            outer = self._profile.node_parent[account.node]
            if outer != self._node:
                self._node, self._frames = outer, b"".join(self._outwards(outer))
            return self._ids[self._profile.node_frame[account.node]] + self._frames
        next_ = self._n_locations + len(self._stackless) + 1
        return varint(self._stackless.setdefault((account.kind, account.owner), next_))

    def message(self, account: int, figures: SampleFigures) -> bytes:
        of = self._profile.accounts[account]
        fields = delimited(1, self._stack(of)) + packed(2, figures) + self._labels_of(account, of.kind, of.owner)
        return delimited(_SAMPLE, fields)

    def locations(self, first_function: int) -> Iterator[bytes]:
        """The frames that stand for memory without a stack."""
        for function, ((kind, owner), location) in enumerate(self._stackless.items(), first_function):
            name = self._strings(f"({kind} of {owner}, without a stack)")
            yield delimited(_FUNCTION, number(1, function) + number(2, name) + number(3, name))
            yield delimited(_LOCATION, number(1, location) + delimited(4, number(1, function)))


def _about(profile: Profile, at: Moment, strings: _Strings) -> Iterator[bytes]:
    is_ms = profile.time_unit == "ms"
    start = profile.number("start-unix-ms")
    if start is not None:
        yield number(_TIME, (start + (at.time if is_ms else 0)) * 1000000)
    if is_ms:
        yield number(_DURATION, profile.last_time * 1000000)
    yield delimited(_PERIOD_TYPE, number(1, strings("space")) + number(2, strings("bytes")))
    yield number(_PERIOD, 1)
    comments = [f"jmassif {__version__}", f"inuse: {at.name} ({moment(at.time, profile.time_unit)})"]
    if profile.manifest.get("command"):
        comments.insert(0, profile.manifest["command"])
    for comment in comments:
        yield number(_COMMENT, strings(comment))
    yield number(_DEFAULT_SAMPLE_TYPE, strings(_SAMPLE_TYPES[0][0]))


def _message(profile: Profile, view: View) -> Iterator[bytes]:
    at = select(profile, view.selector or "peak")
    rows = list(samples(profile, at.composition))
    if any(sum(column) > _LARGEST for column in zip(*(figures for _, figures in rows))):
        raise FormatError("a sum is beyond 63 bits, which pprof cannot hold: choose another format")
    strings = _Strings()
    for name, unit in _SAMPLE_TYPES:
        yield delimited(_SAMPLE_TYPE, number(1, strings(name)) + number(2, strings(unit)))
    mappings = _Mappings(profile)
    yield from _frames(profile, strings, mappings)
    yield from mappings.message(strings)
    writer = _Samples(profile, strings)
    for account, figures in rows:
        yield writer.message(account, figures)
    yield from writer.locations(len(profile.frames) + 1)
    yield from _about(profile, at, strings)
    yield from strings.message()


def write(profile: Profile, view: View) -> Iterator[bytes]:
    """The compressed message, in pieces. Raises moments.SelectionError, FormatError."""
    # 31: gzip's own head and tail. Its time stamp is 0, so that the same trace gives the same file.
    compressor = zlib.compressobj(6, zlib.DEFLATED, 31)
    for piece in _message(profile, view):
        yield compressor.compress(piece)
    yield compressor.flush()
