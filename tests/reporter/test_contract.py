# SPDX-License-Identifier: GPL-2.0-or-later
"""Recorder, docs/trace-format.md and reporter have the same records and the same kinds of memory."""

import re
from typing import List, Tuple

from jmassif.model.records import side_of
from tests.reporter.traces import ROOT, Trace

PAGE = (ROOT / "docs" / "trace-format.md").read_text(encoding="utf-8")


def rows(header: str, table: str) -> List[Tuple[str, ...]]:
    """The arguments of each X(…) of a table in the recorder's source."""
    source = (ROOT / "jmassif" / header).read_text(encoding="utf-8")
    body = re.search(rf"#define {table}\(X\)(?:.*\\\n)+.*\n", source)
    assert body
    return [tuple(re.split(r",\s*", row)) for row in re.findall(r"\bX\(([^()]+)\)", body.group().split("\n", 1)[1])]


KINDS = [(name.strip('"'), side, is_sampled) for _, name, side, is_sampled in rows("attribution/kind.h", "JM_KINDS")]
SIDES = {"SIDE_HOST": "host", "SIDE_DEVICE": "device", "SIDE_NONE": None}


def test_the_page_has_the_recorder_s_records() -> None:
    letters = [letter.strip("'") for _, letter, _ in rows("trace/records.h", "JM_RECORDS")]
    assert sorted(re.findall(r"^\| `(\S) [A-Z]", PAGE, re.MULTILINE)) == sorted(letters)


def test_the_page_has_the_recorder_s_kinds() -> None:
    for side, word in (("SIDE_HOST", "host"), ("SIDE_DEVICE", "device"), ("SIDE_NONE", "neither[^|]*")):
        row = re.search(rf"^\| {word} \| (.*) \|$", PAGE, re.MULTILINE)
        assert row
        assert sorted(re.findall(r"`([^`]+)`", row.group(1))) == sorted(name for name, of, _ in KINDS if of == side)


def test_the_reporter_has_the_recorder_s_kinds() -> None:
    trace = Trace(**{"option.pages": "yes"})
    held = {trace.account(kind, "app"): (100, 1) for kind, _, _ in KINDS}
    trace.snapshot(1, "exit", held)
    profile = trace.load()
    assert profile.composition(0) == held and len(held) > 10
    for kind, side, is_sampled in KINDS:
        assert side_of(kind) == SIDES[side] and profile.is_sampled(kind) == (is_sampled == "True"), kind
