# SPDX-License-Identifier: GPL-2.0-or-later
"""How long CUDA memory lives: at every point of every story of cuda_lifetime the ledger is what the simulation counts.

The points are marks in the trace, and a mark has a snapshot.
"""

import re
from pathlib import Path
from typing import Dict

import pytest

from tests import harness
from tests.harness import Recording
from tests.tool.cuda_ledger import at_marks, held_by_kind, last, library_heap, points, run_sim, simulated_kinds

_SOURCE = harness.ROOT / "tests" / "sim" / "programs" / "cuda_lifetime.c"
STORIES = re.findall(r"^    STORY\((\w+)\)", _SOURCE.read_text(), re.MULTILINE)


def assert_every_point_agrees(recording: Recording) -> int:
    assert recording.returncode == 0, recording.stderr
    profile = recording.profile
    compositions = at_marks(profile)
    told = list(points(recording.stdout))
    assert [mark.text for mark in profile.marks] == [name for name, _ in told]
    assert len(compositions) == len(told)
    for (name, at_point), composition in zip(told, compositions):
        assert (name, held_by_kind(profile, composition)) == (name, simulated_kinds(at_point))
        assert (name, library_heap(profile, composition)) == (name, (at_point["heap"], at_point["heap_blocks"]))
    return len(told)


@pytest.mark.parametrize("story", STORIES)
def test_at_each_point_the_ledger_is_what_the_simulation_counts(sim: Path, story: str) -> None:
    recording = run_sim(sim, "cuda_lifetime", story, marks=True)
    assert assert_every_point_agrees(recording) >= 1
    assert "cuda-block-ended-unseen" not in recording.profile.counters


def test_the_list_of_stories_is_the_programs(sim: Path) -> None:
    assert harness.check_run([sim / "programs" / "cuda_lifetime", "--list"]).split() == STORIES


def test_a_driver_program_agrees_at_its_fullest_and_at_its_end(sim: Path) -> None:
    recording = run_sim(sim, "cuda_driver", marks=True)
    assert assert_every_point_agrees(recording) == 2


@pytest.mark.parametrize(
    "story, calls",
    [
        ("freed_twice", {("cudaFree", 1): 1, ("cuMemFree_v2", 1): 1}),
        (
            "unknown_pointer",
            {("cudaFree", 1): 2, ("cuMemFree_v2", 1): 2, ("cudaFreeHost", 1): 1, ("cuMemFreeHost", 1): 1},
        ),
    ],
)
def test_a_free_that_fails_is_counted_and_frees_nothing(sim: Path, story: str, calls: object) -> None:
    profile = run_sim(sim, "cuda_lifetime", story).profile
    assert profile.failures == calls
    assert "cuda-free-of-unknown-pointer" not in profile.counters
    assert held_by_kind(profile, last(profile)) == {}


def test_each_block_record_that_ends_has_begun_with_the_same_account(sim: Path) -> None:
    profile = run_sim(sim, "cuda_lifetime", "device_reset").profile
    live: Dict[int, int] = {}
    n_ended = 0
    for i in range(0, len(profile.blocks), 4):
        _, address, size, account = profile.blocks[i : i + 4]
        if profile.accounts[account].kind == "heap":
            continue
        if i // 4 in profile.frees:
            assert live.pop(address) == account
            n_ended += 1
        else:
            assert size > 0
            live[address] = account
    assert n_ended == 6 and not live  # one of each of make_one_of_each(), and the block of the second context
