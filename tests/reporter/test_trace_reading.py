# SPDX-License-Identifier: GPL-2.0-or-later
"""How records are read, and how a file that is no sound trace is refused."""

import io
import os
import re
from array import array
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from jmassif.model.records import Growth
from jmassif.model.run import Profile
from jmassif.reader import builder
from jmassif.reader.tokens import RECORDS, Corrupt, Reader, TraceError
from tests.reporter.traces import ROOT

HEAD = b"jmassif-trace 4\n"


def records_of(body: bytes) -> List[Tuple[Any, ...]]:
    """Every record as (letter, field…)."""
    found: List[Tuple[Any, ...]] = []

    def handler(letter: str) -> Any:
        return lambda *fields: found.append((letter,) + fields)

    handlers: Dict[str, Any] = {letter: handler(letter) for letter in RECORDS}
    reader = Reader(handlers)
    reader.read(io.BytesIO(HEAD + body))
    assert reader.truncation is None
    return found


def refusal(content: bytes) -> str:
    handlers: Dict[str, Any] = {letter: lambda *fields: None for letter in RECORDS}
    with pytest.raises(TraceError) as caught:
        Reader(handlers).read(io.BytesIO(content))
    message = str(caught.value)
    assert "\n" not in message and message.isprintable()
    return message


def test_every_record_of_the_documented_format_is_known() -> None:
    page = (ROOT / "docs" / "trace-format.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(\S) [A-Z]", page, re.MULTILINE)
    assert sorted(documented) == sorted(RECORDS)


@pytest.mark.parametrize(
    "line, record",
    [
        (b"s 7 at::empty(long, int)", ("s", 7, "at::empty(long, int)")),
        (b"s 7 ", ("s", 7, "")),
        (b"f 1 n 2 3 4 5 4005d0", ("f", 1, "n", 2, 3, 4, 5, 0x4005D0, None)),
        (b"f 1 n 2 3 0 0 4005d0 6 5d0", ("f", 1, "n", 2, 3, 0, 0, 0x4005D0, (6, 0x5D0))),
        (b"c 1 2 3 4 5 18446744073709551615", ("c", array("Q", [1, 2, 3, 4, 5, 2**64 - 1]))),
        (b"d 1 2 3 4 5 6", ("d", array("Q", [1, 2, 3, 4, 5, 6]))),
        (b"a 1 2 -3 4", ("a", array("q", [1, 2, -3, 4]))),
        (b"k odd 18446744073709551609", ("k", "odd", 18446744073709551609)),
        (b"k odd 17999999999999999999", ("k", "odd", 17999999999999999999)),
        (b"k odd 9999999999999999999", ("k", "odd", 9999999999999999999)),
        (b"r 7 activation", ("r", 7, "activation")),
        (b"m package.libcudnn8 8.2 1", ("m", "package.libcudnn8", "8.2 1")),
        (
            b"x 1 0 1 5 9 0 3 heap -20 -1 device 4096 1",
            ("x", 1, 0, 1, 5, 9, 0, 3, (Growth("heap", -20, -1), Growth("device", 4096, 1))),
        ),
        (b"X 3 12 400", ("X", 3, 12, 400, ())),
        (b"L 1 4000 20 0 /lib/a b.so", ("L", 1, 0x4000, 20, 0, "/lib/a b.so")),
    ],
)
def test_fields_come_converted(line: bytes, record: Tuple[Any, ...]) -> None:
    assert records_of(line + b"\n") == [record]


def test_text_is_unescaped() -> None:
    assert records_of(rb"s 1 a\x0ab\x5cx41\x7f" + b"\n") == [("s", 1, "a\nb\\x41\x7f")]


def test_text_that_is_no_utf8_keeps_its_bytes() -> None:
    ((_, _, text),) = records_of(b"s 1 caf\xe9 \xc3\xa9\n")
    assert text.encode("utf-8", "surrogateescape") == b"caf\xe9 \xc3\xa9"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"? 1",
        b"c 1 2 3 4 5",
        b"c 1 2 3 4 5 6 7",
        b"c 1 2 3 4 5  6",
        b"c 1 2 3 4 5 6 ",
        b"c 1 2 3 4 5 -6",
        b"c 1 2 3 4 5 +6",
        b"c 1 2 3 4 5 1_0",
        b"c 1 2 3 4 5 6\r",
        b"c 1 2 3 4 5 06",
        b"c 1 2 3 4 5 0.5",
        b"c 1 2 3 4 5 true",
        b"c 1 2 3 4 5 5,6",
        b"c1 2 3 4 5 6 ",
        b"c",
        b"c ",
        b"n 1 -",
        b"a 1-2 3",
        b"a 1 9223372036854775808",
        b"# 12345678901234567",
        b"k odd 18446744073709551616",
        b"k odd 20000000000000000000",
        b"k odd 100000000000000000000",
        b"f 1 n 2 3 4 5 4005D0",
        b"f 1 n 2 3 4 5 0x4005d0",
        b"f 1 n 2 3 0 0 4005d0 6",
        b"s 1 raw \x1b[2J",
        rb"s 1 bad \x4",
        rb"s 1 bad \n",
        rb"s 1 bad \x4G",
        b"m bad/key 1",
        b"x 1 0 1 5 9 0 3 heap 20",
        b"c " + b"9" * 5000 + b" 2 3 4 5 6",
    ],
)
def test_a_malformed_line_is_named(line: bytes) -> None:
    assert refusal(HEAD + b"k fine 1\n" + line + b"\nk fine 2\n").startswith("line 3: not a record")


def test_a_contradiction_is_named() -> None:
    def refuse(*_: Any) -> None:
        raise Corrupt("account 7 is not defined")

    handlers: Dict[str, Any] = {letter: refuse for letter in RECORDS}
    with pytest.raises(TraceError, match=r"^line 2: account 7 is not defined: .*record again$"):
        Reader(handlers).read(io.BytesIO(HEAD + b"k odd 1\n"))


def test_nothing_follows_the_last_record() -> None:
    assert refusal(HEAD + b"Z 9 exit 0\nk odd 1\n").startswith("line 3: a record after the last")


def test_a_line_without_its_end_is_left_out() -> None:
    found = []
    handlers: Dict[str, Any] = {letter: lambda *fields: None for letter in RECORDS}
    handlers["k"] = lambda *fields: found.append(fields)
    reader = Reader(handlers)
    reader.read(io.BytesIO(HEAD + b"k one 1\nk two 23"))
    assert reader.truncation == "line 3 is cut off"
    assert found == [("one", 1)]


@pytest.mark.parametrize(
    "content, says",
    [
        (b"", "is empty"),
        (b"jmass", "cut off inside its first line"),
        (b"jmassif-trace 1", "cut off inside its first line"),
        (b"jmassif-trace 3\n", "version 3, and this jmassif reads version 4"),
        (b"jmassif-trace 0\n", "version 0, and this"),
        (b"desc: --massif-out-file=x\ncmd: ls\ntime_unit: i\n", "ms_print"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01", "not a jmassif trace"),
        (b"\x00" * 5000, "not a jmassif trace"),
        (b"\x1f\x8b\x08\x00", "gunzip"),
        (b"\x7fELF\x02\x01\x01\x00", "a program"),
        (b"jmassif-trace 4\r\nm pid 1\r\n", "not a jmassif trace"),
        (b"x" * 1_000_000, "not a jmassif trace"),
    ],
)
def test_foreign_input_is_recognised(content: bytes, says: str) -> None:
    assert says in refusal(content)


def test_a_trace_whose_end_is_replaced_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    trace = tmp_path / "jmassif.out.1"
    old, new = HEAD + b"S 1 0 start 0 0\nE 1\nt 5 0 0 0\n", HEAD + b"S 1 0 start 0 0\nE 1\nS 2 9 time 0 0\nE 2\n"
    n_made = 0

    def replaced() -> Profile:
        """The first time the new end comes while half of the old one has been read."""
        nonlocal n_made
        n_made += 1
        trace.write_bytes(old[:-5] + new[len(old) - 5 :] if n_made == 1 else new)
        os.utime(str(trace), ns=(n_made, n_made))
        return Profile()

    assert len(builder.load_as(replaced, str(trace)).snapshots) == 2 and n_made == 2
    trace.write_bytes(old[:-5] + b"zzz\n")
    with pytest.raises(TraceError, match="damaged"):
        builder.load_file(str(trace))
