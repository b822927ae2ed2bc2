# SPDX-License-Identifier: GPL-2.0-or-later
"""Step by step: the list below the map of device memory, and the map after a step, against an allocator that notes what it did."""

import re
from pathlib import Path
from typing import Any, List, Set, Tuple

import pytest

from tests.reporter.test_memory_viz import Allocator
from tests.reporter.test_segments import BASE, MIB, new_trace
from tests.web.browser import look, visit, write_page

SUMMARY = "#device .step-by-step summary"
STEPS = ["texts", "#device .step-list button"]
TOLD = ["text", "#device .step-by-step output"]
LABELS = ["attributes", "#device .segment .block", "aria-label"]
ROWS = ["count", "#device .map-row"]

Done = List[Tuple[str, int]]  # what was done, and where


@pytest.fixture(scope="module", name="run")
def fixture_run(tmp_path_factory: pytest.TempPathFactory) -> Tuple[Path, Done]:
    """A page, and what the allocator did: many steps in each millisecond."""
    trace, cache, tensor = new_trace()
    allocator = Allocator(trace, cache, tensor, 3)
    for number in range(300):
        allocator.act(number // 60)
    reserved, used = sum(allocator.segments.values()), sum(allocator.blocks.values())
    held = {cache: (reserved - used, len(allocator.segments)), tensor: (used, len(allocator.blocks))}
    trace.snapshot(300, "exit", held, {"total": (300, {}), "device": (300, {})})
    directory = tmp_path_factory.mktemp("steps")
    names = {"segment_alloc": "reserved", "segment_free": "released", "alloc": "allocated", "free_completed": "freed"}
    did = [(names[action], address) for action, address, _ in allocator.did if action in names]
    return write_page(directory, trace.save(directory)), did


def lying(did: Done) -> Tuple[int, Set[int]]:
    """How many segments there are then, and where blocks are in use."""
    blocks: Set[int] = set()
    n_segments = 0
    for what, address in did:
        n_segments += {"reserved": 1, "released": -1}.get(what, 0)
        if what == "allocated":
            blocks.add(address)
        elif what == "freed":
            blocks.remove(address)
    return n_segments, blocks


def parsed(text: str) -> Tuple[str, int]:
    found = re.search(r"(reserved|released|allocated|freed) .* at 0x([0-9a-f]+)", text)
    assert found, text
    return found.group(1), int(found.group(2), 16)


def addresses(labels: List[str]) -> Set[int]:
    return {int(label.rsplit("0x", 1)[1], 16) for label in labels}


def test_the_map_after_a_step_is_what_the_allocator_had_then(run: Tuple[Path, Done]) -> None:
    page, did = run
    steps: List[Any] = [["click", SUMMARY], STEPS, TOLD]
    backs = (1, 1, 40, 100)
    for n in backs:
        steps.append(
            [
                "evaluate",
                f"(async () => {{ for (let i = 0; i < {n}; i++) {{ document.querySelector('#device .step-by-step button').click();"
                " await new Promise((done) => setTimeout(done)); }})()",
            ]
        )
        steps += [TOLD, LABELS, ROWS, ["text", "#device .map-summary"]]
    results = look(page, *steps)
    assert [parsed(text) for text in results[1]] == did[-len(results[1]) :] and len(results[1]) == 13
    assert results[2].startswith(f"step {len(did)} of {len(did)}: ")
    number = len(did)
    for index, n in enumerate(backs):
        number -= n
        told, labels, rows, summary = results[4 + 5 * index : 8 + 5 * index]
        n_segments, blocks = lying(did[:number])
        assert told.startswith(f"step {number} of {len(did)}: ") and parsed(told) == did[number - 1]
        assert summary.startswith(f"after step {number} of {len(did)}: ")
        assert (rows, addresses(labels)) == (n_segments, blocks)


def test_a_step_of_the_list_is_chosen_and_another_moment_takes_its_place(run: Tuple[Path, Done]) -> None:
    page, did = run
    done = visit(
        page,
        ["click", SUMMARY],
        ["axe"],
        ["click", "#device .step-list li:nth-of-type(3) button"],
        TOLD,
        LABELS,
        ["texts", "#device .step-list button[aria-current]"],
        ["texts", "#device .stack li"],
        ["click", ".moment button:text-is('Device peak')"],
        ["text", "#device .map-summary"],
        TOLD,
    )
    _, axe, _, told, labels, current, stack, _, summary, after = done.results
    assert not done.trouble and axe == []
    number = len(did) - 13 + 3  # the last thirteen are shown
    assert told.startswith(f"step {number} of ") and parsed(told) == did[number - 1]
    assert addresses(labels) == lying(did[:number])[1]
    assert [parsed(text) for text in current] == [did[number - 1]]
    assert any("grow" in frame or "empty" in frame for frame in stack)
    assert summary.startswith("at device peak, 300 ms: ") and after.startswith(f"step {len(did)} of ")


def test_what_a_tensor_turns_out_to_be_for_is_no_step(tmp_path: Path) -> None:
    trace, cache, _ = new_trace()
    first = trace.account("device", "tensor", ["fill (libtorch.so)"], "temporary")
    kept = trace.account("device", "tensor", ["fill (libtorch.so)"], "gradient")
    trace.block(1, BASE, 2 * MIB, cache)
    trace.block(1, BASE, MIB, first)
    trace.block_end(1, BASE, first)
    trace.block(1, BASE, MIB, kept)
    trace.snapshot(4, "exit", {cache: (MIB, 1), kept: (MIB, 1)}, {"total": (4, {}), "device": (4, {})})
    shown = look(write_page(tmp_path, trace.save(tmp_path)), ["click", SUMMARY], STEPS)[1]
    assert [parsed(text) for text in shown] == [("reserved", BASE), ("allocated", BASE)]
