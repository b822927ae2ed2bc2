# SPDX-License-Identifier: GPL-2.0-or-later
"""Speedscope, as it is released, opens three of the formats in a browser and finds the same sums."""

import json
from typing import Dict, Iterator

import pytest

from jmassif.model.run import Profile
from tests.reporter.consumers import CHROMIUM, SPEEDSCOPE, Speedscope
from tests.reporter.test_formats import HOSTILE, RUNS, expected, pprof, written

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and SPEEDSCOPE.exists()), reason="chromium, or speedscope in build/consumers, is not there"
)

NAMES = ("training", "hostile", "recorded", "random", "generated")


@pytest.fixture(scope="module")
def speedscope() -> Iterator[Speedscope]:
    program = Speedscope()
    yield program
    program.close()


@pytest.fixture(scope="module")
def profiles() -> Dict[str, Profile]:
    return {name: RUNS[name]() for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_speedscope_opens_folded_and_pprof(speedscope: Speedscope, profiles: Dict[str, Profile], name: str) -> None:
    whole = expected(profiles[name])[0]
    (folded,) = speedscope.open("x.folded", written("folded", profiles[name]).encode())
    (packed,) = speedscope.open("x.pb.gz", pprof(profiles[name]))
    assert folded.total == packed.total == whole and packed.unit == "bytes"


@pytest.mark.parametrize("name", ["training", "hostile", "recorded", "generated"])
def test_speedscope_opens_the_slices_of_perfetto(
    speedscope: Speedscope, profiles: Dict[str, Profile], name: str
) -> None:
    text = written("perfetto", profiles[name])
    slices = [event for event in json.loads(text)["traceEvents"] if event["ph"] == "X"]
    opened = speedscope.open("x.json", text.encode())
    assert sum(len(profile.own) for profile in opened) > 0
    assert sum(profile.total for profile in opened) >= max(event["ts"] + event["dur"] for event in slices) - min(
        event["ts"] for event in slices
    )


def test_names_reach_speedscope_whole(speedscope: Speedscope, profiles: Dict[str, Profile]) -> None:
    (profile,) = speedscope.open("x.pb.gz", pprof(profiles["hostile"]))
    assert len(profile.own) == len(HOSTILE)
    assert "<script>alert(1)</script>" in profile.own
