# SPDX-License-Identifier: GPL-2.0-or-later
"""The model of PyTorch's caching allocator against the allocator itself, at every step of random sequences on two streams."""

from typing import Any, Dict, List, NamedTuple

import pytest

from check_counters import SCRIPTS, Program, run_inside
from jmassif.analysis.caching_allocator import CachingAllocator, OutOfMemory, parse_settings

SEQUENCES = 500
SETTINGS = (
    "",
    "max_split_size_mb:32",
    "max_split_size_mb:200",
    "expandable_segments:True",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:8,max_split_size_mb:64",
    "expandable_segments:True,roundup_power2_divisions:4",
)
# Shares of the device's memory that the process may use; a small one makes the allocator run out and collect garbage.
FRACTIONS = (0.0, 0.25)


class Figures(NamedTuple):
    reserved: int
    allocated: int


def replay(settings: str, allowed: int, steps: List[List[int]]) -> List[Figures]:
    model = CachingAllocator(parse_settings(settings), allowed=allowed)
    live: Dict[int, Any] = {}
    figures = []
    for number, step in enumerate(steps):
        if len(step) == 3:
            stream, n_bytes, address = step
            try:
                # PyTorch takes the first in memory of free blocks of one size, so the place of a segment matters.
                live[number] = model.malloc(n_bytes, stream, address)
            except OutOfMemory:
                pass
        elif step:
            model.free(live.pop(step[0]))
        else:
            model.empty_cache()
        figures.append(Figures(model.reserved, model.allocated))
    return figures


@pytest.mark.parametrize("fraction", FRACTIONS)
@pytest.mark.parametrize("settings", (*SETTINGS, "garbage_collection_threshold:0.5"))
def test_the_model_reserves_what_pytorch_reserves_at_every_step(settings: str, fraction: float) -> None:
    program = Program("allocator", ("allocator.py",), settings)
    words = ["python3", f"{SCRIPTS}/allocator.py", "0", str(SEQUENCES)]
    lines = run_inside(program, words + ([str(fraction)] if fraction else []))
    assert len(lines) == SEQUENCES
    for line in lines:
        found = replay(settings, int(line["total"] * fraction), line["steps"])
        wanted = [Figures(*each) for each in line["figures"]]
        for number, (ours, theirs) in enumerate(zip(found, wanted)):
            assert ours == theirs, f"sequence {line['number']}, step {number}: {line['steps'][: number + 1]}"
