# SPDX-License-Identifier: GPL-2.0-or-later
"""The model of PyTorch's caching allocator against the figures of PyTorch 2.6 itself, and `jmassif fit`.

golden/caching_allocator.json has a sequence for each setting, recorded by tests/torch-cuda/scripts/allocator.py, with what
PyTorch had reserved and handed out after each step. tests/torch-cuda/check_allocator.py compares with 500 such sequences.
"""

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

from jmassif.analysis.caching_allocator import MIB, CachingAllocator, OutOfMemory, SettingsError, parse_settings

CASES: List[Dict[str, Any]] = json.loads((Path(__file__).parent / "golden" / "caching_allocator.json").read_text())


def figures(case: Dict[str, Any]) -> List[List[int]]:
    model, live, found = CachingAllocator(parse_settings(case["settings"]), allowed=case["allowed"]), {}, []
    for number, step in enumerate(case["steps"]):
        if len(step) == 3:
            stream, n_bytes, address = step
            try:
                live[number] = model.malloc(n_bytes, stream, address)
            except OutOfMemory:
                assert not address
        elif step:
            model.free(live.pop(step[0]))
        else:
            model.empty_cache()
        found.append([model.reserved, model.allocated])
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['settings'] or 'default'}-{case['allowed']}")
def test_the_model_reserves_what_pytorch_reserves_at_every_step(case: Dict[str, Any]) -> None:
    assert figures(case) == case["figures"]


def test_settings_are_parsed_and_written_as_pytorch_has_them() -> None:
    text = "max_split_size_mb:128,expandable_segments:True,garbage_collection_threshold:0.8,roundup_power2_divisions:4"
    assert parse_settings(text).text == text
    assert parse_settings("backend:native, max_split_size_mb:64").max_split_size == 64 * MIB
    for wrong in ("backend:cudaMallocAsync", "max_split_size_mb:much", "roundup_power2_divisions:[256:1]", "pinned"):
        with pytest.raises(SettingsError):
            parse_settings(wrong)
