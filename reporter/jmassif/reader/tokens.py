# SPDX-License-Identifier: GPL-2.0-or-later
"""The grammar of a trace file, and the loop that reads one.

docs/trace-format.md is the contract; `RECORDS` below is its table of records. This module knows how a record is spelt
and nothing of what it means: each record's fields, converted, go to the handler of its letter. A trace has millions of
lines, so a line costs one regular expression and one call, and no object is made to carry its fields; the balances of a
snapshot, which come by the thousand and are most of a large trace, are read by the run.

A trace may end anywhere, because the program, or the whole board, may have died: a last line without its newline is
left out and reported. Whatever else does not fit is corruption, and ends the reading with one clear line.
"""

import io
import json
import re
import sys
from array import array
from functools import lru_cache, partial
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Mapping, Match, Optional, Tuple

from jmassif.model.records import Growth
from jmassif.units import printable


VERSION = 3
MAGIC = b"jmassif-trace "
CUT_AT_ONCE = "is cut off inside its first line: nothing was recorded"
EMPTY = "is empty: nothing was recorded; did the program start?"
# A recorder's longest lines are stacks, of half a megabyte at most.
MOST_LINE_BYTES = 16 << 20
# No line of the header, and no other tool's first line that we want to recognise, is longer.
_FIRST_LINE_BYTES = 256


class TraceError(Exception):
    """The input is no trace, or is a damaged one. The message is one line: what, where, and the mend."""


class Corrupt(Exception):
    """Raised by a handler whose record contradicts what came before. The reader adds the line number.

    `row` says which of them it was, where the handler was given a run of records.
    """

    def __init__(self, problem: str, row: int = 0) -> None:
        super().__init__(problem)
        self.row = row


def _hexadecimal(field: bytes) -> int:
    return int(field, 16)


@lru_cache(maxsize=4096)
def _name(field: bytes) -> str:
    return sys.intern(field.decode("ascii"))


_ESCAPE = re.compile(rb"\\x(..)")


def _text(field: bytes) -> str:
    """The text as it was in the program. Bytes that are no UTF-8 become surrogates, so that none is lost."""
    if b"\\" in field:
        field = _ESCAPE.sub(lambda escape: bytes([int(escape.group(1), 16)]), field)
    return field.decode("utf-8", "surrogateescape")


def _numbers(field: bytes) -> List[int]:
    return [int(word) for word in field.split()]


def _growths(field: bytes) -> Tuple[Growth, ...]:
    words = field.split()
    return tuple(
        Growth(words[i].decode("ascii"), int(words[i + 1]), int(words[i + 2])) for i in range(0, len(words), 3)
    )


def _numbers_up_to(limit: int) -> bytes:
    """A pattern for the decimal numbers from 0 to `limit`."""
    digits = str(limit)
    # As many digits as the limit has: equal to it up to some place and smaller there.
    smaller = [
        f"{digits[:place]}[0-{int(digit) - 1}]\\d{{{len(digits) - place - 1}}}"
        for place, digit in enumerate(digits)
        if digit != "0"
    ]
    return "|".join([f"(?:\\d{{1,{len(digits) - 1}}}"] + smaller + [f"{digits})"]).encode("ascii")


_NUMBER = _numbers_up_to(2**64 - 1)
_NAME = rb"[A-Za-z0-9_.+-]+"
_PLAIN = rb"[^\x00-\x1f\x7f\\]*"

# How a field of each type is spelt (with the space before it) and read.
_FIELDS: Dict[str, Tuple[bytes, Callable[[bytes], Any]]] = {
    "number": (rb" (" + _NUMBER + rb")", int),
    "address": (rb" ([0-9a-f]{1,16})", _hexadecimal),
    "name": (rb" (" + _NAME + rb")", _name),
    "text": (rb" (" + _PLAIN + rb"(?:\\x[0-9a-f]{2}" + _PLAIN + rb")*)", _text),
    "numbers": (rb"((?: " + _NUMBER + rb")+)", _numbers),
    "growths": (rb"((?: " + _NAME + rb" -?" + _NUMBER + rb" -?" + _NUMBER + rb")*)", _growths),
}

# Letter: the record's fields, as docs/trace-format.md has them.
RECORDS: Dict[str, str] = {
    "m": "name text",
    "g": "name name",
    "s": "number text",
    "f": "number name number number number number address",
    "h": "number name",
    "T": "number number",
    "n": "number numbers",
    "a": "number name name",
    "r": "number name",
    "t": "number number number number",
    "S": "number number name number number",
    "c": "number number number number number number",
    "v": "number number number number",
    "P": "name number number number",
    "d": "number number number",
    "E": "number",
    "+": "number address number number",
    "-": "number address number",
    "l": "number number",
    "W": "number address number address",
    "w": "number address number",
    "O": "number number number number number number number number",
    "o": "number name number",
    "q": "number number name",
    "x": "number number number number number number number growths",
    "X": "number number number growths",
    "e": "number number number",
    "k": "name number",
    "y": "number name number",
    "M": "number number",
    "A": "number",
    "B": "number number number",
    "D": "number number number",
    "R": "number number number",
    "L": "number address number number text",
    "U": "number address",
    "Z": "number name number",
}

# What version 1 spelt otherwise: its ids were written out. The handlers of these have the names of their letters with a 1.
# (Version 2 had one node in each record.)
RECORDS_OF_1: Dict[str, str] = {
    "n": "number number number",
    "a": "number number name name",
}

_LAST = "Z"

# What people hand us by mistake: how it begins, what it is, what to do.
_FOREIGN = (
    (b"desc: ", "a massif file", "open it with ms_print"),
    (b"\x1f\x8b", "compressed with gzip", "unpack it with gunzip"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "unpack it with unzstd"),
    (b"\xfd7zXZ", "compressed with xz", "unpack it with unxz"),
    (b"\x7fELF", "a program", "give the jmassif.out file that its run left"),
)

# The record that comes in runs of thousands, for which a call each would cost more than reading them: its handler is given
# the numbers of a run, or of a part of it, as one array.
_RUN = ord("c")
_RUN_BEGINS = b"\nc"
_RUN_ENDS = re.compile(rb"\n(?!c)")
_RUN_FIELDS = 6
_WITHOUT_DIGITS = b"c" + b" " * _RUN_FIELDS + b"\n"
_CHUNK_BYTES = 1 << 18
Handler = Optional[Callable[..., None]]  # None: lines of that letter are passed over, whatever is in them
# A line's match, or None; the converters, None if every field is a decimal number; the handler.
_Row = Tuple[
    Optional[Callable[[bytes], Optional[Match[bytes]]]], Optional[List[Callable[[bytes], Any]]], Callable[..., None]
]
_UNKNOWN: _Row = (lambda line: None, None, lambda *fields: None)
_PASSED_OVER: _Row = (None, None, lambda *fields: None)


def _compile(handlers: Mapping[str, Handler], version: int) -> List[_Row]:
    """By the first byte of a line."""
    rows = [_UNKNOWN] * 256
    for letter, shape in RECORDS.items():
        handler = handlers[letter]
        if version == 1 and letter in RECORDS_OF_1:
            shape, handler = RECORDS_OF_1[letter], handlers[letter + "1"]
        if handler is None:
            rows[ord(letter)] = _PASSED_OVER
            continue
        types = shape.split()
        pattern = re.escape(letter.encode("ascii")) + b"".join(_FIELDS[type_][0] for type_ in types)
        converters = [_FIELDS[type_][1] for type_ in types]
        only_numbers = all(converter is int for converter in converters)
        rows[ord(letter)] = (
            re.compile(pattern + rb"\n").fullmatch,
            None if only_numbers else converters,
            handler,
        )
    return rows


def _version(line: bytes) -> int:
    """That the first line of a trace tells. Raises TraceError for what this reader cannot read."""
    for known in range(1, VERSION + 1):
        if line == MAGIC + b"%d\n" % known:
            return known
    if not line:
        raise TraceError(EMPTY)
    version = re.fullmatch(re.escape(MAGIC) + rb"(\d{1,9})(\n?)", line)
    if (MAGIC.startswith(line) or version) and not line.endswith(b"\n"):
        raise TraceError(CUT_AT_ONCE)
    if version:
        raise TraceError(
            f"line 1: trace format version {int(version.group(1))}, and this jm_print reads versions up to"
            f" {VERSION}: use the jm_print that came with the recorder"
        )
    for beginning, what, mend in _FOREIGN:
        if line.startswith(beginning):
            raise TraceError(f"is {what}, not a jmassif trace: {mend}")
    raise TraceError("is not a jmassif trace: give the jmassif.out file that valgrind --tool=jmassif wrote")


def _excerpt(line: bytes) -> str:
    text = printable(line[:40].rstrip(b"\n").decode("utf-8", "surrogateescape"))
    return f'"{text}…"' if len(line) > 41 else f'"{text}"'


def _damaged(number: int, problem: object) -> TraceError:
    return TraceError(f"line {number}: {problem}: the file is damaged, record again")


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    """The rest of the trace, in order: runs of balances, or a part of one, and what is between them. Each is of whole lines.

    But for the last line, if it is cut off, and for one that is too long, after which nothing comes.
    """
    rest = b""
    for chunk in iter(partial(stream.read, _CHUNK_BYTES), b""):
        text = rest + chunk
        first = text.find(b"\n", max(0, len(rest) - 1)) + 1 or len(text)
        if first >= MOST_LINE_BYTES:
            yield text[:MOST_LINE_BYTES]
            return
        end = text.rfind(b"\n") + 1
        yield from _parts(text, 0, end)
        rest = text[end:]
    if rest:
        yield rest


def _parts(text: bytes, at: int, end: int) -> Iterator[bytes]:
    """What _pieces() yields of whole lines."""
    while at < end:
        if text[at] == _RUN:
            found = _RUN_ENDS.search(text, at, end)
            stop = found.end() if found else end
        else:
            stop = text.find(_RUN_BEGINS, at, end) + 1 or end
        yield text[at:stop]
        at = stop


def _balances(run: bytes) -> "Optional[array[int]]":
    """The numbers of whole lines of balances; None if they are not just that, and have to be looked at one by one.

    Nothing in Python reads a list of numbers as fast as the reader of JSON, which refuses empty ones and leading zeros too.
    """
    if run.translate(None, b"0123456789") != _WITHOUT_DIGITS * run.count(b"\n"):
        return None
    numbers = run[len(b"c ") : -len(b"\n")].replace(b"\nc ", b",").replace(b" ", b",").decode("ascii")
    try:
        return array("Q", json.loads(f"[{numbers}]"))
    except (OverflowError, ValueError):
        return None


class _Reading:
    """What has been read so far."""

    def __init__(self, rows: List[_Row], handlers: Mapping[str, Handler]) -> None:
        self.number = 1  # of the line
        self.truncation: Optional[str] = None
        self._rows = rows
        self._is_over = False
        self._last = handlers[_LAST]
        self._balances = handlers["c"]
        rows[ord(_LAST)] = rows[ord(_LAST)][:2] + (self._end,)

    def _end(self, *fields: Any) -> None:
        if self._last:
            self._last(*fields)
        self._is_over = True
        self._rows[:] = [_UNKNOWN] * 256

    def piece(self, piece: bytes) -> None:
        """Of those that _pieces() yields."""
        if piece[0] == _RUN:
            self.run(piece)
        else:
            self.lines(piece)

    def run(self, piece: bytes) -> None:
        """A run of balances, or what begins like one."""
        if self._balances is None and not self._is_over:
            self.number += piece.count(b"\n")
            return
        numbers = None if self._is_over else _balances(piece)
        if numbers is None or self._balances is None:
            return self.lines(piece)
        try:
            self._balances(numbers)
        except Corrupt as error:
            self.number += 1 + error.row
            raise
        self.number += len(numbers) // _RUN_FIELDS

    def lines(self, piece: bytes) -> None:
        rows = self._rows
        for self.number, line in enumerate(io.BytesIO(piece), self.number + 1):
            matched, converters, handle = rows[line[0]]
            if matched is None:
                continue
            match = matched(line)
            if match is None:
                return self._refuse(line)
            if line[0] == _RUN:
                handle(array("Q", map(int, match.groups())))
            elif converters is None:
                handle(*map(int, match.groups()))
            else:
                handle(*[convert(field) for convert, field in zip(converters, match.groups())])

    def _refuse(self, line: bytes) -> None:
        if len(line) >= MOST_LINE_BYTES:
            raise Corrupt(f"longer than {MOST_LINE_BYTES >> 20} MiB")
        if not line.endswith(b"\n"):
            self.truncation = f"line {self.number} is cut off"
            return
        raise Corrupt(
            f"{'a record after the last' if self._is_over else 'not a record of this format'}: {_excerpt(line)}"
        )


def read(stream: BinaryIO, handlers: Mapping[str, Handler]) -> Optional[str]:
    """Reads `stream` and calls the handler of each record's letter with the record's fields.

    Every letter of `RECORDS` needs a handler or None, and for a trace of version 1 those of `RECORDS_OF_1`; it may raise Corrupt.
    Returns None if the last line was complete, else a sentence that says where the trace was cut. Raises TraceError.
    """
    rows: List[_Row] = []
    reading: Optional[_Reading] = None
    try:
        rows += _compile(handlers, _version(stream.readline(_FIRST_LINE_BYTES)))
        reading = _Reading(rows, handlers)
        for piece in _pieces(stream):
            reading.piece(piece)
        return reading.truncation
    except Corrupt as error:
        raise _damaged(reading.number if reading else 1, error)
    except OverflowError:
        raise _damaged(reading.number if reading else 1, "a sum beyond 64 bits")
    except OSError as error:
        raise TraceError(f"cannot be read: {error.strerror}")
    finally:
        # What reads holds the rows, which hold it, and the handlers a whole profile: nobody else would ever free that.
        rows.clear()


class Feed:
    """read(), of a trace that comes bit by bit."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._rows: List[_Row] = []
        self._reading: Optional[_Reading] = None

    def apart(self, text: bytes) -> None:
        """Lines that will be given again, or others in their place. Raises TraceError."""
        number = self._reading.number if self._reading else 0
        self(text)
        if self._reading:
            self._reading.number = number

    def __call__(self, text: bytes) -> None:
        """The next lines, whole ones. Raises TraceError."""
        reading, begin = self._reading, 0
        try:
            if reading is None:
                begin = text.find(b"\n", 0, _FIRST_LINE_BYTES) + 1
                self._rows += _compile(self._handlers, _version(text[: begin or _FIRST_LINE_BYTES]))
                reading = self._reading = _Reading(self._rows, self._handlers)
            for piece in _parts(text, begin, len(text)):
                reading.piece(piece)
        except Corrupt as error:
            raise _damaged(reading.number if reading else 1, error)
        except OverflowError:
            raise _damaged(reading.number if reading else 1, "a sum beyond 64 bits")
