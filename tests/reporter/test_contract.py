# SPDX-License-Identifier: GPL-2.0-or-later
"""Recorder, docs/trace-format.md and reporter have the same records and the same kinds of memory."""

import re
from typing import List, Tuple

import pytest

from jmassif.model.kinds import side_of
from jmassif.model.profile import Profile
from tests.reporter.traces import ROOT, Trace

PAGE = (ROOT / "docs" / "trace-format.md").read_text(encoding="utf-8")


def rows(header: str, table: str) -> List[Tuple[str, ...]]:
    """The arguments of each X(…) of a table in the recorder's source."""
    source = (ROOT / "jmassif" / header).read_text(encoding="utf-8")
    body = re.search(rf"#define {table}\(X\)(?:.*\\\n)+.*\n", source)
    assert body
    return [tuple(re.split(r",\s*", row)) for row in re.findall(r"\bX\(([^()]+)\)", body.group().split("\n", 1)[1])]


KINDS = [(name.strip('"'), side, is_sampled) for _, name, side, is_sampled in rows("base/kind.h", "JM_KINDS")]
SIDES = {"SIDE_HOST": "host", "SIDE_DEVICE": "device", "SIDE_NONE": None}


def test_the_page_has_the_recorder_s_records() -> None:
    letters = [letter.strip("'") for _, letter, _ in rows("trace/records.h", "JM_RECORDS")]
    assert sorted(re.findall(r"^\| `(\S) [A-Z]", PAGE, re.MULTILINE)) == sorted(letters)


def test_the_page_has_the_recorder_s_kinds() -> None:
    for side, word in (("SIDE_HOST", "host"), ("SIDE_DEVICE", "device"), ("SIDE_NONE", "neither[^|]*")):
        row = re.search(rf"^\| {word} \| (.*) \|$", PAGE, re.MULTILINE)
        assert row
        assert sorted(re.findall(r"`([^`]+)`", row.group(1))) == sorted(name for name, of, _ in KINDS if of == side)


@pytest.mark.parametrize("kind, side, is_sampled", KINDS, ids=[kind for kind, _, _ in KINDS])
def test_the_reporter_has_the_recorder_s_kind(kind: str, side: str, is_sampled: str) -> None:
    trace = Trace(**{"option.pages": "yes"})
    account = trace.account(kind, "app")
    trace.snapshot(1, "exit", {account: (100, 1)})
    profile: Profile = trace.load()
    assert profile.composition(0) == {account: (100, 1)}
    assert side_of(kind) == SIDES[side]
    assert profile.is_sampled(kind) == (is_sampled == "True")
