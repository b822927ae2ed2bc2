# SPDX-License-Identifier: GPL-2.0-or-later
"""What a recorded training would have reserved under other settings, against PyTorch's figure under each of them."""

import json
from typing import Any, Dict, List, NamedTuple

import pytest

from check_counters import DEFAULT, SCRIPTS, Program, record, run_inside
from jmassif.analysis.allocator_replay import replay, requests
from jmassif.analysis.allocator_steps import steps_of
from jmassif.analysis.caching_allocator import parse_settings
from jmassif.reader.builder import load_file

SETTINGS = (
    DEFAULT,
    "max_split_size_mb:32",
    "max_split_size_mb:128",
    "expandable_segments:True",
    "garbage_collection_threshold:0.5",
    "roundup_power2_divisions:8",
    "expandable_segments:True,roundup_power2_divisions:4",
    "max_split_size_mb:32,garbage_collection_threshold:0.6",
)
BATCHES = {
    "cnn": 4,
    "lstm": 4,
    "transformer": 4,
    "embedding": 4,
    "accumulation": 4,
    "half": 4,
    "lengths": 8,
    "batches": 2,
    "lifetimes": 1,
}


class Finished(NamedTuple):
    name: str
    trace: str
    share: float  # of the device's memory that PyTorch may use: garbage is collected from a part of it on
    truth: List[Dict[str, Any]]


@pytest.fixture(scope="module", params=BATCHES)
def finished(request: Any) -> Finished:
    words = ["python3", f"{SCRIPTS}/fit.py", request.param, str(BATCHES[request.param])]
    trace, (recorded,) = record(Program(f"fit-{request.param}", (), DEFAULT), "native", words)
    share = round(1.4 * recorded["reserved"] / recorded["total"], 4)
    return Finished(
        request.param, str(trace), share, run_inside(Program("", (), DEFAULT), [*words, str(share), *SETTINGS])
    )


def test_the_model_reserves_what_pytorch_reserves_under_each_setting(finished: Finished) -> None:
    steps = steps_of(load_file(finished.trace))
    sizes = requests(steps, replay(steps, steps.sizes, parse_settings(DEFAULT)))
    for settings, truth in zip(SETTINGS, finished.truth):
        made = replay(steps, sizes, parse_settings(settings), int(finished.share * truth["total"]))
        assert made.reserved == truth["reserved"], settings
        print(json.dumps({"training": finished.name, "settings": settings, "model": made.reserved, **truth}))
