# SPDX-License-Identifier: GPL-2.0-or-later
"""Weights that PyTorch keeps beside their copies on the GPU are held twice, to the byte, until either side ends."""

import functools
from typing import Dict, Tuple

import pytest

from check_counters import DEFAULT, HOSTS, SCRIPTS, Program, record
from jmassif.analysis.moments import select
from jmassif.analysis.summary import build_report
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file


@functools.lru_cache(maxsize=None)
def recorded(host: str) -> Tuple[Profile, Dict[str, Dict[str, int]]]:
    """The run, and by mark the bytes that the script holds twice."""
    program = Program("held-twice", (), DEFAULT)
    trace, told = record(program, host, ["python3", f"{SCRIPTS}/held_twice.py"])
    return load_file(str(trace)), {line["mark"]: line["held"] for line in told}


@pytest.mark.parametrize("host", HOSTS)
def test_four_ways_of_loading_are_held_twice(host: str) -> None:
    profile, told = recorded(host)
    said = told["loaded"]
    twice = build_report(profile, select(profile, "peak-device")).held_twice
    assert twice and sorted(row.bytes for row in twice.rows) == sorted(said.values())
    assert {(row.bytes, row.kind, row.is_pinned) for row in twice.rows} == {
        (said["load"], "heap", False),
        (said["numpy"], "heap", False),
        (said["mmap"], "file", False),
        (said["pinned"], "pinned", True),
    }


@pytest.mark.parametrize("host", HOSTS)
def test_what_has_ended_is_not_held_twice(host: str) -> None:
    profile, told = recorded(host)

    for mark in profile.marks:
        assert mark.snapshot is not None
        after = profile.snapshots[mark.snapshot].time
        pairs = [(copy, profile.copies_until if copy.until is None else copy.until) for copy in profile.copies.values()]
        # What ended in the millisecond of the mark may be in the first list, and is not in the second.
        held = [copy.bytes for copy, until in pairs if copy.begin <= mark.time <= until]
        lasting = [copy.bytes for copy, until in pairs if copy.begin <= mark.time and until > after]
        said = set(told[mark.text].values())
        assert set(lasting) <= said <= set(held) and len(lasting) <= len(said), mark.text
