# SPDX-License-Identifier: GPL-2.0-or-later
"""The grammar of a trace file, and the loop that reads one.

docs/trace-format.md is the contract; `RECORDS` below is its table of records. This module knows the spelling of a record
and nothing of its meaning: the fields, converted, go to the handler of the record's letter. Nodes, accounts and balances,
which come by the hundred thousand, have many rows in a line, and their handlers get all numbers of a line as one array.

A trace may end anywhere, because the program, or the whole board, may have died: a last line without its newline is
left out and reported. Anything else that does not fit is corruption, and ends the reading with one clear line.
"""

import json
import re
import sys
from array import array
from functools import lru_cache, partial
from itertools import repeat
from typing import Any, BinaryIO, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple
from zlib import adler32

from jmassif.model.records import Growth
from jmassif.units import printable


VERSION = 4
MAGIC = b"jmassif-trace "
# A recorder's longest lines are stacks, of half a megabyte at most.
MOST_LINE_BYTES = 16 << 20
# No line of the header, and no other tool's first line that we want to recognise, is longer.
_FIRST_LINE_BYTES = 256


class TraceError(Exception):
    """The input is no trace, or is a damaged one. The message is one line: what, where, and the mend."""


class Corrupt(Exception):
    """A record contradicts an earlier one: raised by its handler. The reader adds the line number."""


@lru_cache(maxsize=4096)
def _name(field: bytes) -> str:
    return sys.intern(field.decode("ascii"))


_ESCAPE = re.compile(rb"\\x(..)")


def _text(field: bytes) -> str:
    """The text as it was in the program. Bytes that are no UTF-8 become surrogates, so that none is lost."""
    if b"\\" in field:
        field = _ESCAPE.sub(lambda escape: bytes([int(escape.group(1), 16)]), field)
    return field.decode("utf-8", "surrogateescape")


_TOO_LARGE = 1 << 64


def _number(field: bytes) -> int:
    """Raises ValueError beyond 64 bits. (A pattern of these alone takes ten times as long to compile.)"""
    number = int(field)
    if -_TOO_LARGE < number < _TOO_LARGE:
        return number
    raise ValueError(number)


def _growths(field: bytes) -> Tuple[Growth, ...]:
    words = field.split()
    return tuple(
        Growth(words[i].decode("ascii"), _number(words[i + 1]), _number(words[i + 2])) for i in range(0, len(words), 3)
    )


def _line_place(field: bytes) -> Optional[Tuple[int, int]]:
    if not field:
        return None
    version, address = field.split()
    return _number(version), int(address, 16)


_NUMBER = rb"\d{1,20}"
_NAME = rb"[A-Za-z0-9_.+-]+"
_PLAIN = rb"[^\x00-\x1f\x7f\\]*"

# How a field of each type is spelt (with the space before it) and read.
_FIELDS: Dict[str, Tuple[bytes, Callable[[bytes], Any]]] = {
    "number": (rb" (" + _NUMBER + rb")", _number),
    "address": (rb" ([0-9a-f]{1,16})", partial(int, base=16)),
    "name": (rb" (" + _NAME + rb")", _name),
    "text": (rb" (" + _PLAIN + rb"(?:\\x[0-9a-f]{2}" + _PLAIN + rb")*)", _text),
    "place": (rb"((?: " + _NUMBER + rb" [0-9a-f]{1,16})?)", _line_place),
    "growths": (rb"((?: " + _NAME + rb" -?" + _NUMBER + rb" -?" + _NUMBER + rb")*)", _growths),
}

# Letter: the builder's method for the record, and its fields, as docs/trace-format.md has them.
RECORDS: Dict[str, Tuple[str, str]] = {
    "m": ("manifest", "name text"),
    "g": ("owner_group", "name name"),
    "s": ("string", "number text"),
    "f": ("frame", "number name number number number number address place"),
    "h": ("source", "number name"),
    "T": ("thread", "number number"),
    "n": ("nodes", "rows of 1 signed"),
    "K": ("account_type", "number name name"),
    "a": ("accounts", "rows of 2 signed"),
    "r": ("role", "number name"),
    "t": ("totals", "number number number number"),
    "S": ("snapshot", "number number name number number"),
    "c": ("changes", "rows of 6"),
    "v": ("pages", "number number number number"),
    "P": ("peak", "name number number number"),
    "d": ("at_peak", "rows of 3"),
    "E": ("snapshot_end", "number"),
    "+": ("block", "number address number number"),
    "-": ("block_end", "number address number"),
    "l": ("block_threshold", "number number"),
    "W": ("mapping", "number address number address"),
    "w": ("mapping", "number address number"),
    "O": ("exhaustion", "number number number number number number number number"),
    "o": ("exhaustion_figure", "number name number"),
    "q": ("outcome", "number number name"),
    "I": ("copy", "number number number number number number number address address"),
    "i": ("copy_end", "number number"),
    "C": ("copy_sum", "number number number"),
    "H": ("container", "number number number number number number name number"),
    "x": ("scope", "number number number number number number number growths"),
    "X": ("scope_sum", "number number number growths"),
    "e": ("failure", "number number number"),
    "k": ("counter", "name number"),
    "y": ("system", "number name number"),
    "M": ("mark", "number number"),
    "A": ("stage", "number"),
    "B": ("region", "number number number"),
    "D": ("region_end", "number number number"),
    "R": ("region_sum", "number number number"),
    "L": ("object", "number address number number text"),
    "U": ("object_end", "number address"),
    "#": ("", "address"),
    "Z": ("end", "number name number"),
}

# A run of `+` and `-` records, which come by the million: what sets a `+` apart, time, address, bytes of a `+`, account.
_BLOCKS = re.compile(rb"^(?:(\+)|-) (\d{1,19}) ([0-9a-f]{1,16}) (?(1)(\d{1,19}) )(\d{1,19})\n", re.MULTILINE).split
_LONGEST_RUN = 4096  # lines

_LAST = ord("Z")
_CHECKSUM = ord("#")

# Files given by mistake: their first bytes, a name for them, and the way out.
_FOREIGN = (
    (b"desc: ", "a massif file", "open it with ms_print"),
    (b"\x1f\x8b", "compressed with gzip", "unpack it with gunzip"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "unpack it with unzstd"),
    (b"\xfd7zXZ", "compressed with xz", "unpack it with unxz"),
    (b"\x7fELF", "a program", "give the jmassif.out file that its run left"),
)

# Takes the columns of a run; False, and nothing was taken: something is wrong with one of the records.
Columns = Callable[["array[int]", "array[int]", "array[int]", "array[int]", Sequence[Optional[bytes]]], bool]
Handler = Optional[Callable[..., None]]  # None: lines of that letter are passed over, whatever is in them
# From a line to its fields; None: it is no such record.
_Parser = Callable[[bytes], Optional[Iterable[Any]]]
_Row = Tuple[_Parser, Callable[..., None]]
_UNKNOWN: _Row = (lambda line: None, lambda: None)
_PASSED_OVER: _Row = (lambda line: (), lambda: None)


def _rows_parser(letter: str, width: int, typecode: str) -> _Parser:
    """For lines of rows: the numbers of all rows as one array.

    Nothing in Python reads a list of numbers as fast as the reader of JSON, which refuses empty ones and leading zeros too.
    """
    without_numbers = letter.encode("ascii") + b"\n"

    def parse(line: bytes) -> "Optional[Tuple[array[int]]]":
        if line.translate(None, b" -0123456789") != without_numbers or line[1:2] != b" ":
            return None
        try:
            numbers = array(typecode, json.loads("[%s]" % line[2:-1].replace(b" ", b",").decode("ascii")))
        except (OverflowError, ValueError):
            return None
        return (numbers,) if numbers and not len(numbers) % width else None

    return parse


def _fields_parser(letter: str, types: List[str]) -> _Parser:
    pattern = re.escape(letter.encode("ascii")) + b"".join(_FIELDS[type_][0] for type_ in types)
    match = re.compile(pattern + rb"\n").fullmatch
    converters = [_FIELDS[type_][1] for type_ in types]

    def parse(line: bytes) -> Optional[Iterable[Any]]:
        found = match(line)
        if found is None:
            return None
        try:
            return [convert(field) for convert, field in zip(converters, found.groups())]
        except ValueError:
            return None

    return parse


def _row(letter: str, handler: Handler) -> _Row:
    if handler is None and letter != "#":
        return _PASSED_OVER
    types = RECORDS[letter][1].split()
    if types[0] == "rows":
        parser = _rows_parser(letter, int(types[2]), "q" if types[3:] else "Q")
    else:
        parser = _fields_parser(letter, types)
    return parser, handler or _PASSED_OVER[1]


def _check_version(line: bytes) -> None:
    """Raise TraceError for the first line of a file that this reader cannot read."""
    if line == MAGIC + b"%d\n" % VERSION:
        return
    if not line:
        raise TraceError("is empty: nothing was recorded; did the program start?")
    version = re.fullmatch(re.escape(MAGIC) + rb"(\d{1,9})(\n?)", line)
    if (MAGIC.startswith(line) or version) and not line.endswith(b"\n"):
        raise TraceError("is cut off inside its first line: nothing was recorded")
    if version:
        raise TraceError(
            f"line 1: trace format version {int(version.group(1))}, and this jmassif reads version {VERSION}:"
            " use the one that came with the recorder"
        )
    for beginning, what, mend in _FOREIGN:
        if line.startswith(beginning):
            raise TraceError(f"is {what}, not a jmassif trace: {mend}")
    raise TraceError("is not a jmassif trace: give the jmassif.out file that jmassif wrote")


def _excerpt(line: bytes) -> str:
    text = printable(line[:40].rstrip(b"\n").decode("utf-8", "surrogateescape"))
    return f'"{text}…"' if len(line) > 41 else f'"{text}"'


class Reader:
    """Reads a trace, at once or bit by bit: calls the handler of each record's letter with the record's fields.

    Every letter of `RECORDS` needs a handler or None; it may raise Corrupt. `blocks` is for runs of block records.
    """

    def __init__(self, handlers: Mapping[str, Handler], blocks: Optional[Columns] = None) -> None:
        self._blocks = blocks
        self._rows = [_UNKNOWN] * 256  # by the first byte of a line
        for letter in RECORDS:
            self._rows[ord(letter)] = _row(letter, handlers[letter])
        self._number = 0  # of the line
        self._checksum = 1
        self._is_over = False
        self.truncation: Optional[str] = None  # where the trace was cut, if it was

    def read(self, stream: BinaryIO) -> None:
        """The next lines. Raises TraceError."""
        try:
            if not self._number:
                first = stream.readline(_FIRST_LINE_BYTES)
                _check_version(first)
                self._number, self._checksum = 1, adler32(first)
            self._read(iter(partial(stream.readline, MOST_LINE_BYTES), b""))
        except Corrupt as error:
            raise self._damaged(error)
        except OverflowError:
            raise self._damaged("a sum beyond 64 bits")
        except OSError as error:
            raise TraceError(f"cannot be read: {error.strerror}")

    def read_apart(self, stream: BinaryIO) -> None:
        """Lines that will be given again, or others in their place. Raises TraceError."""
        before = self._number, self._checksum
        try:
            self.read(stream)
        finally:
            self._number, self._checksum = before

    def _read(self, lines: Iterable[bytes]) -> None:
        rows = self._rows
        for line in self._without_runs(lines):
            self._number += 1
            letter = line[0]
            parse, handle = rows[letter]
            fields = parse(line)
            if fields is None:
                return self._refuse(line)
            if letter == _CHECKSUM:
                if fields != [self._checksum]:
                    raise Corrupt("the lines before it do not have this checksum")
                self._checksum = 1
                continue
            handle(*fields)
            self._checksum = adler32(line, self._checksum)
            if letter == _LAST:
                rows[:] = [_UNKNOWN] * 256
                self._is_over = True

    def _without_runs(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Hands runs of block records on; the lines that remain, with runs in which something is wrong."""
        run: List[bytes] = []
        for line in lines:
            if line[0] in b"+-" and self._blocks and len(run) < _LONGEST_RUN:
                run.append(line)
                continue
            if not self._hand_on(run):
                yield from run
            run = []
            yield line
        if not self._hand_on(run):
            yield from run

    def _hand_on(self, run: List[bytes]) -> bool:
        if not run:
            return True
        text = b"".join(run)
        fields = _BLOCKS(text)
        between, signs, times, addresses, sizes, accounts = (fields[place::6] for place in range(6))
        if not self._blocks or any(between) or len(signs) < len(run) or self._is_over:
            return False
        numbers = [array("Q", map(int, column)) for column in (times, [size or 0 for size in sizes], accounts)]
        if not self._blocks(numbers[0], array("Q", map(int, addresses, repeat(16))), numbers[1], numbers[2], signs):
            return False
        self._number += len(run)
        self._checksum = adler32(text, self._checksum)
        return True

    def _damaged(self, problem: object) -> TraceError:
        return TraceError(f"line {self._number}: {problem}: the file is damaged, record again")

    def _refuse(self, line: bytes) -> None:
        if len(line) >= MOST_LINE_BYTES:
            raise Corrupt(f"longer than {MOST_LINE_BYTES >> 20} MiB")
        if not line.endswith(b"\n"):
            self.truncation = f"line {self._number} is cut off"
            return
        raise Corrupt(
            f"{'a record after the last' if self._is_over else 'not a record of this format'}: {_excerpt(line)}"
        )
