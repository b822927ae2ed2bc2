# SPDX-License-Identifier: GPL-2.0-or-later
"""What is known of CPython's releases: the decoders of their line tables, and the offsets that they publish."""

import ctypes
import dis
import random
import re
import sys
import types
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import pytest

from tests.harness import ROOT, check_run, compile_c
from tests.python.noted import INTERPRETER, is_free_threaded, version

LNOTAB, TABLE_3_10, TABLE_3_11 = range(3)  # LineTable

# Of a function whose first line is 10, as the releases compile it: the table, and where its lines start.
EXAMPLES = [
    (LNOTAB, "0001 0401 0201 0201 02fe 0803 0a02", {0: 11, 4: 12, 6: 13, 8: 14, 10: 12, 18: 15, 28: 17}),
    (TABLE_3_10, "0401 0201 0201 0201 08fe 0a03 0402", {0: 11, 4: 12, 6: 13, 8: 14, 10: 12, 18: 15, 28: 17}),
    (TABLE_3_11, "8000 d80809 8041 dd0d0e d80809 d80809 f105020e0b", {0: 10, 2: 11, 6: 12, 18: 13, 20: 14, 22: 12}),
]


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    shim = Path(__file__).with_name("layout_shim.c")
    return ctypes.CDLL(str(compile_c(shim, "-shared", "-fpic", "-Wall", "-Werror", f"-I{ROOT / 'jmassif'}")))


def line(library: ctypes.CDLL, kind: int, table: bytes, first: int, at: int) -> int:
    return int(library.line_of_guarded_table(kind, table, ctypes.c_size_t(len(table)), first, at))


# ---- lines -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, table, starts", EXAMPLES)
def test_lines_of_the_examples(library: ctypes.CDLL, kind: int, table: str, starts: Dict[int, int]) -> None:
    expected = 10
    for at in range(0, max(starts) + 2):
        expected = starts.get(at, expected)
        assert line(library, kind, bytes.fromhex(table), 10, at) == expected


@pytest.mark.parametrize("kind", [LNOTAB, TABLE_3_10, TABLE_3_11])
def test_what_is_not_started_is_at_its_first_line(library: ctypes.CDLL, kind: int) -> None:
    assert line(library, kind, bytes.fromhex(EXAMPLES[kind][1]), 10, -2) == 10
    assert line(library, kind, b"", 10, 0) == 10


def code_objects(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from code_objects(constant)


def library_code() -> Iterator[types.CodeType]:
    """Some thousand functions of the standard library."""
    for name in ("argparse", "ast", "inspect", "tarfile", "typing", "turtle", "tokenize", "_pydecimal"):
        path = Path(dis.__file__).with_name(f"{name}.py")
        if path.exists():
            yield from code_objects(compile(path.read_text(encoding="utf-8"), name, "exec"))


def test_lines_are_those_that_this_interpreter_tells(library: ctypes.CDLL) -> None:
    n_ranges = 0
    for code in library_code():
        if sys.version_info >= (3, 10):
            kind = TABLE_3_11 if sys.version_info >= (3, 11) else TABLE_3_10
            ranges, table = list(code.co_lines()), code.co_linetable
        else:
            kind, table = LNOTAB, code.co_lnotab
            ranges = [(start, start + 2, at_line) for start, at_line in dis.findlinestarts(code)]
        for start, end, at_line in ranges:
            for at in {start, end - 2}:
                expected = at_line or code.co_firstlineno  # some instructions of a module are on no line, or 0
                assert line(library, kind, table, code.co_firstlineno, at) == expected
                n_ranges += 1
    assert n_ranges > 10000


@pytest.mark.skipif(not (3, 11) <= sys.version_info < (3, 12), reason="other releases do not translate their tables")
def test_lines_in_the_oldest_form_are_those_in_the_newest(library: ctypes.CDLL) -> None:
    n_ranges = 0
    for code in library_code():
        table = code.co_lnotab
        for start, _, at_line in code.co_lines():
            if at_line:
                assert line(library, LNOTAB, table, code.co_firstlineno, start) == at_line
                n_ranges += 1
    assert n_ranges > 10000


def encode_3_10(ranges: List[Tuple[int, Optional[int]]], first: int) -> bytes:
    """From (bytes, line) of each range; bytes are even."""
    table, before = b"", first
    for n_bytes, at_line in ranges:
        delta = 0 if at_line is None else at_line - before
        while not -127 <= delta <= 127:
            step = max(-127, min(127, delta))
            table += bytes((0, step & 255))
            delta -= step
        while n_bytes > 254:
            table += bytes((254, 128 if at_line is None else delta & 255))
            n_bytes, delta = n_bytes - 254, 0
        table += bytes((n_bytes, 128 if at_line is None else delta & 255))
        before = before if at_line is None else at_line
    return table


def test_lines_of_3_10_at_any_distance(library: ctypes.CDLL) -> None:
    chance = random.Random(1)
    for _ in range(300):
        first = chance.randrange(1, 5000)
        ranges = [
            (2 * chance.choice((1, 5, 127, 128, 500)), chance.choice((None, first, chance.randrange(1, 9999))))
            for _ in range(20)
        ]
        table, start = encode_3_10(ranges, first), 0
        for n_bytes, at_line in ranges:
            for at in (start, start + n_bytes - 2):
                assert line(library, TABLE_3_10, table, first, at) == (at_line or first)
            start += n_bytes


@pytest.mark.parametrize("kind", [LNOTAB, TABLE_3_10, TABLE_3_11])
def test_no_table_is_read_past_its_end(library: ctypes.CDLL, kind: int) -> None:
    chance = random.Random(kind)
    for _ in range(3000):
        table = bytes(chance.randrange(256) for _ in range(chance.randrange(40)))
        assert 0 <= line(library, kind, table, 10, chance.randrange(-4, 300)) < 2**31


# ---- offsets ---------------------------------------------------------------------------------


def field_names() -> List[str]:
    header = (ROOT / "jmassif" / "python" / "layout.h").read_text()
    return re.findall(r"^    (?:UShort|UChar) (\w+);", header, re.MULTILINE)


class Layout:
    """A PythonLayout: one UShort, two UChar, and UShorts."""

    def __init__(self, library: ctypes.CDLL, major: int, minor: int) -> None:
        self.bytes = ctypes.create_string_buffer(2 * len(field_names()))
        self.is_known = bool(library.copy_layout(major, minor, self.bytes) & 255)

    def fields(self) -> Dict[str, int]:
        raw = self.bytes.raw
        numbers = [int.from_bytes(raw[i : i + 2], "little") for i in range(4, len(raw) - 2, 2)]
        return dict(zip(field_names()[3:], numbers))


# Where _Py_DebugOffsets of 3.13 has an entry, in bytes, and the field that it tells.
PUBLISHED_3_13 = {
    40: "interpreters_head",
    64: "interpreter_next",
    72: "interpreter_threads",
    168: "thread_next",
    176: "thread_interpreter",
    184: "thread_frame",
    192: "thread_id",
    232: "frame_previous",
    240: "frame_code",
    248: "frame_instruction",
    264: "frame_owner",
    280: "code_filename",
    288: "code_plain_name",
    296: "code_name",
    304: "code_lines",
    312: "code_firstlineno",
    344: "code_bytes",
    560: "string_ascii",
}


def published(
    offsets: Dict[str, int],
    version: int = 0x030D00F0,
    cookie: bytes = b"xdebugpy",
    threads: int = 0,
    positions: Mapping[int, str] = PUBLISHED_3_13,
) -> bytes:
    image = bytearray(max(positions) + 24)
    image[0:8] = cookie
    image[8:16] = version.to_bytes(8, "little")
    image[16:24] = threads.to_bytes(8, "little")
    for at, field in positions.items():
        image[at : at + 8] = offsets[field].to_bytes(8, "little")
    return bytes(image)


def apply(library: ctypes.CDLL, layout: Layout, image: bytes) -> bool:
    buffer = ctypes.create_string_buffer(image, len(image))
    library.set_image(buffer, ctypes.c_size_t(len(image)))
    return bool(library.jm_python_apply_debug_offsets(layout.bytes, ctypes.c_size_t(ctypes.addressof(buffer))) & 255)


def test_releases_from_3_6_to_3_15_are_known_and_no_others(library: ctypes.CDLL) -> None:
    known = [(major, minor) for major in (2, 3, 4) for minor in range(30) if Layout(library, major, minor).is_known]
    assert known == [(3, minor) for minor in range(6, 16)]


def told_by_headers(*arguments: str) -> Dict[str, int]:
    """What layout_headers.c says of the interpreter that is tested."""
    code = "import sysconfig; print(sysconfig.get_path('include'))"
    include = Path(check_run([INTERPRETER, "-c", code]).strip())
    if not (include / "Python.h").exists():
        pytest.skip("this interpreter has come without its headers")
    headers = Path(__file__).with_name("layout_headers.c")
    teller = compile_c(headers, "-w", f"-I{include}", f"-I{include / 'internal'}")
    return {field: int(offset) for field, offset in map(str.split, check_run([teller, *arguments]).splitlines())}


def test_known_offsets_are_those_of_the_release_s_headers(library: ctypes.CDLL) -> None:
    if is_free_threaded():
        pytest.skip("a free-threaded build's offsets are the published ones")
    told = told_by_headers()
    known = Layout(library, *version()).fields()
    assert {field: known[field] for field in told} == told
    assert [field for field, offset in known.items() if offset and field not in told] == []


def test_offsets_are_read_where_the_release_s_headers_publish_them(library: ctypes.CDLL) -> None:
    if version() < (3, 13):
        pytest.skip("older releases do not publish their offsets")
    positions = told_by_headers("published")
    layout = Layout(library, *version())
    # Each field has a number of its own, so that none can be taken for another.
    fields = {field: 8 * n for n, field in enumerate(sorted(positions), 1)}
    release = version()[0] << 24 | version()[1] << 16 | 0xF0
    image = published(fields, version=release, positions={at: field for field, at in positions.items()})
    assert apply(library, layout, image)
    assert {field: layout.fields()[field] for field in fields} == fields


def test_published_offsets_replace_the_known_ones(library: ctypes.CDLL) -> None:
    known = Layout(library, 3, 13).fields()
    for field in PUBLISHED_3_13.values():
        layout = Layout(library, 3, 13)
        moved = {**known, field: known[field] + 8}
        assert apply(library, layout, published(moved))
        if field == "string_ascii":
            moved["string_compact"] += 8
        assert layout.fields() == moved


@pytest.mark.parametrize(
    "changes",
    [{"cookie": b"xdebugpx"}, {"version": 0x030E00F0}, {"version": 0x031000F0}],
    ids=["no cookie", "another release", "an unknown release"],
)
def test_offsets_that_do_not_fit_are_refused(library: ctypes.CDLL, changes: Dict[str, Any]) -> None:
    layout = Layout(library, 3, 13)
    before = layout.bytes.raw
    assert not apply(library, layout, published(layout.fields(), **changes))
    assert layout.bytes.raw == before


def test_a_free_threaded_build_has_larger_heads_of_objects(library: ctypes.CDLL) -> None:
    with_gil, without = Layout(library, 3, 13), Layout(library, 3, 13)
    assert apply(library, with_gil, published(with_gil.fields()))
    assert apply(library, without, published(without.fields(), threads=1))
    assert (with_gil.fields()["object_more"], without.fields()["object_more"]) == (0, 16)


def test_offsets_that_are_absurd_or_cut_short_are_refused(library: ctypes.CDLL) -> None:
    layout = Layout(library, 3, 13)
    before, whole = layout.bytes.raw, published(layout.fields())
    assert not apply(library, layout, published({**layout.fields(), "thread_id": 1 << 40}))
    for at in (0, 8, 0xFFF8):
        assert not apply(library, layout, published({**layout.fields(), "string_ascii": at}))
    for n in range(0, 568, 8):
        assert not apply(library, layout, whole[:n])
    assert layout.bytes.raw == before


@pytest.mark.skipif(sys.version_info < (3, 13), reason="older releases do not publish their offsets")
def test_known_offsets_are_those_that_this_interpreter_publishes(library: ctypes.CDLL) -> None:
    layout = Layout(library, *sys.version_info[:2])
    known = layout.fields()
    runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    assert apply(library, layout, ctypes.string_at(runtime, 1024))
    assert layout.fields() == known
