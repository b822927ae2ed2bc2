# SPDX-License-Identifier: GPL-2.0-or-later
"""The model of PyTorch's caching allocator against the figures of PyTorch 2.6 itself, and `jmassif fit`.

golden/caching_allocator.json has a sequence for each setting, recorded by tests/torch-cuda/scripts/allocator.py, with what
PyTorch had reserved and handed out after each step. tests/torch-cuda/check_allocator.py compares with 500 such sequences.
"""

import json
import random
from array import array
from itertools import accumulate
from pathlib import Path
from typing import Any, Dict, List

import pytest

import jmassif
from jmassif.analysis.allocator_replay import Pools, replay, requests
from jmassif.analysis.allocator_steps import FitError, Steps, handed_out, steps_of
from jmassif.analysis.caching_allocator import (
    MIB,
    CachingAllocator,
    OutOfMemory,
    Pool,
    Settings,
    SettingsError,
    parse_settings,
)
from jmassif.analysis.fit import TRIED, _largest, fit_batches, try_settings
from jmassif.analysis.levers import levers_of
from jmassif.analysis.summary import build_report, default_moment
from jmassif.attribution.names import Names
from jmassif.html.tables import settings
from tests.reporter.commands import jmassif as run_jmassif
from tests.reporter.traces import Trace

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
    for wrong in (
        "backend:cudaMallocAsync",
        "max_split_size_mb:much",
        "roundup_power2_divisions:[256:1]",
        "pinned",
        "max_split_size_mb:-3",
        "garbage_collection_threshold:nan",
    ):
        with pytest.raises(SettingsError):
            parse_settings(wrong)


class Training:
    """A trace of tensors in one segment of 20 MiB, each by a line of its own."""

    BASE = 0x7F0000000000

    def __init__(self) -> None:
        self.trace = Trace(memory="unified")
        self.cache = self.trace.account("device", "cache")
        self.trace.block(1, self.BASE, 20 * MIB, self.cache)
        self.accounts: Dict[str, int] = {}

    def tensor(self, line: str, at: int, n_bytes: int) -> None:
        if line not in self.accounts:
            self.accounts[line] = self.trace.account("device", "tensor", [f"py {line} (/app/net.py:1)"])
        self.trace.block(2, self.BASE + at, n_bytes, self.accounts[line])

    def freed(self, line: str, at: int) -> None:
        self.trace.block_end(2, self.BASE + at, self.accounts[line])


def test_a_block_freed_and_allocated_again_is_two_steps_and_a_role_known_later_is_none() -> None:
    training = Training()
    training.tensor("loss", 0, 2 * MIB)
    training.freed("loss", 0)
    training.tensor("loss", 0, 2 * MIB)
    assert list(steps_of(training.trace.load()).order) == [0, ~0, 1]
    training.freed("loss", 0)
    training.accounts["loss"] = training.trace.account("device", "tensor", ["py loss (/app/net.py:1)"], "gradient")
    training.tensor("loss", 0, 2 * MIB)
    assert list(steps_of(training.trace.load()).order) == [0, ~0, 1]


def test_less_than_a_whole_block_was_asked_for_if_its_line_asked_for_less_elsewhere() -> None:
    training, half = Training(), MIB // 2
    for line, at, n_bytes in (("input", 0, 4), ("output", 4, 7), ("loss", 11, 4), ("mask", 15, 8), ("weight", 23, 4)):
        training.tensor(line, at * half, n_bytes * half)
    training.freed("output", 4 * half)
    training.tensor("weight", 4 * half, 7 * half)
    training.tensor("input", 27 * half, 4 * half)
    training.freed("mask", 15 * half)
    # 4 MiB are free: the rest is too small to be split off.
    training.tensor("output", 15 * half, 8 * half)
    steps = steps_of(training.trace.load())
    made = replay(steps, steps.sizes, Settings())
    assert made.reserved == steps.reserved == 20 * MIB
    assert [number for number, least in enumerate(made.above) if least] == [5, 7]
    assert [size // half for size in requests(steps, made)] == [4, 7, 4, 8, 4, 7, 4, 7]


def test_a_block_of_the_large_pool_was_no_request_for_a_small_one() -> None:
    training = Training()
    for line, at, n_bytes in (("mask", 0, 3 * MIB // 2), ("other", 3 * MIB // 2, 37 * MIB // 2)):
        training.tensor(line, at, n_bytes)
    training.freed("mask", 0)
    training.tensor("mask", 0, 3 * MIB // 2)
    steps = steps_of(training.trace.load())
    assert list(replay(steps, steps.sizes, Settings()).above) == [0, 18 * MIB - 1 - MIB // 2, MIB]


def test_what_was_asked_for_is_in_proportion_to_the_allocation_before() -> None:
    training, half = Training(), MIB // 2
    for line, at, n_bytes in (("input", 0, 3), ("output", 3, 6), ("input", 9, 4), ("output", 13, 8), ("mask", 21, 11)):
        training.tensor(line, at * half, n_bytes * half)
    training.tensor("input", 32 * half, 5 * half)
    training.freed("mask", 21 * half)
    training.tensor("output", 21 * half, 11 * half)
    steps = steps_of(training.trace.load())
    asked = requests(steps, replay(steps, steps.sizes, Settings()))
    assert [size // half for size in asked] == [3, 6, 4, 8, 11, 5, 10]


def repeated(seed: int, leaks: bool, n_times: int = 16) -> Steps:
    """A training whose steps repeat themselves, with tensors that live into the next, and an emptied cache; once one is larger."""
    chance, sizes, order, live = random.Random(seed), array("Q"), array("i"), []  # type: ignore[var-annotated]
    emptied = []
    for period in [0, *[1] * n_times, 2, *[1] * n_times]:
        chance.seed(seed + period)
        for _ in range(400):
            if chance.random() < 0.6 or not live:
                order.append(len(sizes))
                live.append(len(sizes))
                sizes.append(512 * chance.choice((1, 9, 700, 3000, 9000, 30000)))
            if chance.random() < 0.6:
                order.append(~live.pop(chance.choice((-1, -1, 0)) if len(live) > 1 else 0))
        while len(live) > 3:
            order.append(~live.pop(chance.randrange(len(live))))
        if leaks:
            live.clear()
        if period == 2:
            emptied.append(len(order))
    sizes[len(sizes) * 3 // 4] = 512 * 99999
    return Steps(sizes, array("I", sizes), array("I"), order, emptied, 0, 0, (len(order),) * 2, 0, False)


@pytest.mark.parametrize("leaks", (False, True))
@pytest.mark.parametrize("seed", range(3))
def test_pools_replay_what_the_allocator_does_and_repeated_steps_once(
    seed: int, leaks: bool, monkeypatch: "pytest.MonkeyPatch"
) -> None:
    steps, malloc, calls = repeated(seed, leaks), Pool.malloc, array("i")
    if seed == 2:
        steps.emptied.clear()

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return malloc(*arguments)

    monkeypatch.setattr("jmassif.analysis.allocator_replay._LONGEST_STRETCH", 256)
    monkeypatch.setattr(Pool, "malloc", counted)
    for settings in (*TRIED[::3], TRIED[-1], Settings(garbage_collection_threshold=0.5)):
        model, live, peak, whole = CachingAllocator(settings), {}, [0, 0], []
        for at, step in enumerate(steps.order):
            if at in steps.emptied:
                model.empty_cache()
            if step >= 0:
                pool, begin, size = live[step] = model.malloc(steps.sizes[step])
                whole.append(not pool.is_exact and begin + size not in pool.by_begin)
                peak = [max(peak[0], model.reserved), max(peak[1], model.allocated)]
            else:
                model.free(live.pop(~step))
        del calls[:]
        made = replay(steps, steps.sizes, settings)
        assert [made.reserved, max(handed_out(steps.order, made.blocks))] == peak, settings
        n_calls = len(calls)
        assert [least > 0 for least in made.above] == whole, settings
        pools = Pools(steps, steps.sizes)
        pools.replay(Settings())
        for enough in (peak[0] - 1, peak[0], peak[0] + 1):
            assert pools.reserved(settings, enough) == min(enough, peak[0]), settings
        asked = array("Q", (size + 512 * (number // 2) * (size > MIB) for number, size in enumerate(steps.sizes)))
        pools.sizes = asked
        assert pools.reserved(settings, 1 << 40) == replay(steps, asked, settings).reserved, settings
        if not leaks:
            assert n_calls < len(steps.sizes) / 2


def test_settings_are_replayed_as_far_as_they_make_a_difference(monkeypatch: "pytest.MonkeyPatch") -> None:
    """Four blocks of 9 MiB, or of 10 if sizes are rounded up, and small ones."""
    sizes, malloc, calls = array("Q", [9 * MIB, MIB // 2] * 4 + [MIB // 4] * 6), Pool.malloc, array("i")
    order = array("i", [*range(9), 9, ~8, ~9, 10, 11, ~11, ~10, 12, ~12, 13])
    steps = Steps(sizes, array("I", sizes), array("I"), order, [], 0, 0, (len(order),) * 2, 0, False)

    def counted(pool: Pool, size: int) -> Any:
        calls.append(pool.is_small)
        return malloc(pool, size)

    monkeypatch.setattr(Pool, "malloc", counted)
    pools = Pools(steps, sizes)
    assert pools.replay(Settings()).reserved == 44 * MIB
    assert list(calls) == [0] * 4 + [1] * 7  # 9, 11 and 12 are freed before another is taken
    del calls[:]
    assert pools.reserved(Settings(max_split_size=32 * MIB), 99 * MIB) == 44 * MIB and list(calls) == [0] * 4
    del calls[:]
    rounded = Settings(roundup_power2_divisions=4)
    # Three blocks of 10 MiB, with which the pool grew last, and two small segments are as much.
    assert pools.reserved(rounded, 34 * MIB) == 34 * MIB and not calls
    assert pools.reserved(rounded, 99 * MIB) == 44 * MIB and calls
    # Large segments are released before small blocks need theirs.
    sizes, order = array("Q", [18 * MIB] * 2 + [MIB // 2] * 10), array("i", [0, 1, ~0, ~1, *range(2, 12)])
    emptied = Pools(steps._replace(sizes=sizes, order=order, emptied=[4]), sizes)
    assert emptied.replay(Settings()).reserved == emptied.reserved(Settings(), 40 * MIB) == 36 * MIB


def test_a_pool_that_reserved_early_is_replayed_early(monkeypatch: "pytest.MonkeyPatch") -> None:
    sizes, order, calls = array("Q"), array("i"), array("i")
    for number in range(2000):
        sizes.append(5 * MIB + number * 512 if number > 1800 else 512 * (number % 97 + 1))
        order.extend((number, ~(number - 5)) if number >= 5 else (number,))
    steps = Steps(sizes, array("I", sizes), array("I"), order, [], 0, 0, (len(order), 1), 0, False)
    malloc, wholly = Pool.malloc, replay(steps, sizes[:], Settings()).reserved

    def counted(pool: Pool, size: int) -> Any:
        calls.append(pool.is_small)
        return malloc(pool, size)

    monkeypatch.setattr("jmassif.analysis.allocator_steps._LEAST_STEPS", 100)
    monkeypatch.setattr("jmassif.analysis.allocator_replay._SHORTEST_STRETCH", 64)
    monkeypatch.setattr(Pool, "malloc", counted)
    assert replay(steps, sizes, Settings()).reserved == wholly == 62 * MIB
    assert sum(calls) < 200 < len(calls)
    emptied = steps._replace(emptied=[3000])
    del calls[:]
    replay(emptied, sizes, Settings())
    assert sum(calls) > 1000


def test_the_search_for_the_largest_batch_begins_with_what_was_recorded() -> None:
    tried = []

    def left(batch: int) -> int:
        tried.append(batch)
        return 15000 - 107 * batch

    assert _largest(left, (2, 14800), (4, 14600)) == 140 and tried == [150, 140, 141]
    assert _largest(lambda batch: 4 - batch, (2, 2), (4, 0)) == 4  # the first that is tried
    assert _largest(lambda batch: -batch, (2, 100), (4, 90)) is None


def test_batches_before_the_largest_that_fits_fit_too() -> None:
    def left(batch: int) -> int:
        """Batches that are missing need as much as 60 more samples."""
        return 15000 - 107 * batch - (60 if batch in missing else 0) * 107

    missing = range(118, 120)
    assert _largest(left, (2, 14786), (4, 14572), 0) == 140
    assert _largest(left, (2, 14786), (4, 14572), 20) == 140
    assert _largest(left, (2, 14786), (4, 14572), 22) == 117
    missing = range(1, 140)
    assert _largest(left, (2, 14786), (4, 14572), 22) == 80
    assert _largest(lambda batch: batch - 9, (2, 1), (4, 1), 22) is None


def test_batches_that_are_asked_for_are_replayed_alone(monkeypatch: "pytest.MonkeyPatch") -> None:
    runs, replays = [training(batch).load() for batch in (2, 4)], array("i")

    def counted(*arguments: Any) -> Any:
        replays.append(1)
        return replay(*arguments)

    monkeypatch.setattr("jmassif.analysis.fit.replay", counted)
    fit = fit_batches(runs, [2, 4], [3, 9])
    assert [need.batch for need in fit.needs] == [3, 9] and len(replays) == 2
    assert fit.largest is None and (fit_batches(runs, [2, 4], []).largest or 0) > 9


def test_of_free_blocks_of_one_size_the_first_in_memory_is_taken() -> None:
    for falls in (False, True):
        model = CachingAllocator(falls=falls)
        first, second = (model.malloc(12 * MIB) for _ in range(2))
        model.free(first)
        model.free(second)
        taken = model.malloc(11 * MIB)
        assert taken[1] == min(first[1], second[1]) == (second if falls else first)[1]


def test_addresses_last_for_segments_of_many_terabytes_in_all() -> None:
    model = CachingAllocator(falls=True)
    for _ in range(100):
        block = model.malloc(80 << 30)
        assert block[2] == model.reserved == 80 << 30
        model.free(block)
        model.empty_cache()
        assert not model.reserved


def test_free_segments_are_released_where_the_limit_is_reached() -> None:
    model = CachingAllocator(allowed=40 * MIB)
    for block in [model.malloc(12 * MIB) for _ in range(3)]:
        model.free(block)
    model.malloc(30 * MIB)
    assert model.reserved == model.allocated == 30 * MIB


def test_a_tensor_larger_than_any_device_is_refused() -> None:
    training = Training()
    training.tensor("damaged", 0, 1 << 62)
    with pytest.raises(FitError, match="no device holds the 4.00 EiB of one of its tensors"):
        try_settings(training.trace.load())


def fragmented() -> Trace:
    """54 MiB in three segments: what is free in the first is in pieces, in the second too small."""
    training, half = Training(), MIB // 2
    for line, at, n_bytes in (("a", 0, 14), ("b", 14, 4), ("c", 18, 14), ("d", 32, 4)):
        training.tensor(line, at * half, n_bytes * half)
    training.freed("a", 0)
    training.freed("c", 18 * half)
    training.trace.block(3, training.BASE + 20 * MIB, 20 * MIB, training.cache)
    training.tensor("e", 40 * half, 16 * half)
    training.trace.block(3, training.BASE + 40 * MIB, 14 * MIB, training.cache)
    training.tensor("f", 80 * half, 25 * half)
    training.trace.snapshot(4, "end", {training.cache: (9 * MIB, 3)})
    return training.trace


def test_python_programs_get_the_answers_of_the_command(tmp_path: Path) -> None:
    path = fragmented().save(tmp_path)
    profile = jmassif.Profile.load(path)
    trials = profile.fit_settings(board=48 * MIB)
    assert trials.holds and (trials.reserved, trials.room) == (54 * MIB, 48 * MIB)
    best = trials.others[0]
    assert (best.settings.text, best.reserved) == ("expandable_segments:True", 40 * MIB)
    said = run_jmassif("fit", path, "--board=48MiB").out
    assert "as recorded the run runs out, 6.00 MiB missing" in said
    assert "expandable_segments:True would have needed 40.0 MiB instead of the 54.0 MiB reserved" in said
    assert (
        "less than all that were tried before them, the best first:\n    40.0 MiB  expandable_segments:True: fits"
        in said
    )
    (table,) = settings(build_report(profile, default_moment(profile, Names(profile))))
    assert table.view == "fragmentation" and table.rows[:2] == [
        ["default settings", 54 * MIB, 0],
        ["expandable_segments:True", 40 * MIB, -14 * MIB],
    ]
    with pytest.raises(jmassif.FitError, match="both runs have the same batch"):
        profile.fit(profile, (2, 2))


def training(
    batch: int,
    parameters: int = 40 * MIB,
    start_up: int = 100 * MIB,
    pages: int = 0,
    pinned_bytes: int = 24 * MIB,
    before_gradient: int = 0,
    kernel: int = 4,
    **manifest: str,
) -> Trace:
    """Two layers in regions, and page-locked buffers, on a board with CUDA's start-up."""
    trace = Trace(time_unit="ms", **{"command": "train.py", "memory": "unified", "pytorch": "2.6", **manifest})
    trace.group("yours", "tensor", "app")
    trace.group("libraries", "workspace")
    trace.group("cached", "cache")
    trace.group("runtime", "context")

    def tensor(line: int, role: str) -> int:
        return trace.account("device", "tensor", [f"py main (/app/train.py:{line})"], role)

    parameter, state, gradient = tensor(1, "parameter"), tensor(2, "optimizer"), tensor(3, "gradient")
    activation, temporary = tensor(kernel, "activation"), tensor(kernel + 1, "temporary")
    segment = trace.account("device", "cache", ["py main (/app/train.py:6)"])
    workspace = trace.account("device", "workspace", ["py main (/app/train.py:7)"])
    pinned = trace.account("pinned", "app", ["py main (/app/train.py:8)"])
    context = trace.account("driver", "context", ["cuInit (libcuda.so.1)"])
    held = {context: (start_up, 1)}
    blocks = [(parameter, parameters), (state, 2 * parameters), (gradient, parameters), (workspace, 8 * MIB)]
    blocks[2:2] = [(tensor(3, "temporary"), before_gradient)] if before_gradient else []
    layers = [(activation, 4 * MIB * batch), (activation, 2 * MIB * batch)] * 2 + [(temporary, MIB * batch)]
    trace.snapshot(0, "start")
    trace.totals(1, 0, start_up)
    trace.block(2, 1 << 44, pinned_bytes, pinned)
    address = 1 << 40
    for number, (account, n_bytes) in enumerate(blocks + layers):
        if number in (4, 6):
            trace.region_begin(3, f"layer {number // 2}")
        trace.block(3, address, n_bytes, segment)
        trace.block(3, address, n_bytes, account)
        address += n_bytes
        if number in (5, 7):
            trace.region_end(3, f"layer {number // 2 }")
    total = sum(n_bytes for _, n_bytes in blocks + layers)
    library = trace.account("file", "app", ["py main (/app/train.py:9)"])
    whole = {**held, segment: (0, 0), pinned: (pinned_bytes, 1), temporary: (total, 1)}
    whole.update({library: (pages, 1)} if pages else {})
    trace.totals(4, pinned_bytes + pages, total + start_up)
    trace.snapshot(5, "exit", whole, {which: (3, {}) for which in ("total", "device")})
    for figure, n_bytes in (("mem-total", 4 << 30), ("mem-available", 3 << 30)):
        trace.lines.append(f"y 0 {figure} {n_bytes}")
    trace.lines.append("Z 5 exit 0")
    return trace


def test_levers_have_the_bytes_at_the_peak_and_none_without() -> None:
    found = levers_of(training(4).load())
    assert found.allocated == (160 + 8 + 12 * 4 + 4) * MIB
    assert {lever.action: lever.bytes // MIB for lever in found.levers} == {
        "inference": 120,
        "8-bit-optimizer": 60,
        "half-activations": 24,
        "no-pinned-buffers": 24,
        # One of two layers, but what it hands to the next.
        "checkpointing": 16,
        "smaller-workspace": 8,
    }
    assert [lever.line for lever in found.levers if lever.action == "checkpointing"] == ["layer 2, layer 3"]
    of_desktop = training(4, memory="discrete").load()
    assert "no-pinned-buffers" not in {lever.action for lever in levers_of(of_desktop).levers}
    assert levers_of(of_desktop, is_one_memory=True) == found


def test_one_run_predicts_by_roles_within_a_range() -> None:
    (need,) = fit_batches([training(4).load()], [4], [16]).needs
    fixed, scaled = 168, 12 * 16
    assert need.allocated == (fixed + scaled + 16) * MIB  # temporaries grow, so it seems
    assert need.least - need.rest == (fixed + scaled + 4) * MIB
    assert need.most >= need.program and need.rest >= 124 * MIB
    (recorded,) = fit_batches([training(4).load()], [4], [4]).needs
    assert not recorded.is_about or recorded.least == recorded.program


def test_the_batch_explains_page_locked_memory_but_no_sampled_pages() -> None:
    runs = [training(batch, pages=pages * MIB).load() for batch, pages in ((2, 100), (3, 108))]
    assert {need.rest for need in fit_batches(runs, [2, 3], [3, 32]).needs} == {(100 + 24 + 108) * MIB}
    runs = [training(batch, pages=100 * MIB, pinned_bytes=batch * 10 * MIB).load() for batch in (2, 3)]
    (need,) = fit_batches(runs, [2, 3], [32]).needs
    assert need.rest == (200 + 32 * 10) * MIB


def on_the_cpu(batch: int) -> Trace:
    """Activations that are gone when the program holds most, 300 MiB of other memory."""
    trace = Trace(time_unit="ms", command=f"train.py {batch}", memory="unified", pytorch="1.13")
    trace.group("yours", "tensor", "app")
    layer = trace.account("heap", "tensor", ["py main (/app/train.py:4)"])
    other = trace.account("heap", "app", ["py main (/app/train.py:9)"])
    trace.snapshot(0, "start")
    for step in range(4):
        trace.block(2 + 4 * step, 1 << 40, batch * 4 * MIB, layer)
        trace.block_end(4 + 4 * step, 1 << 40, layer)
    trace.totals(20, 300 * MIB, 0)
    trace.snapshot(
        20,
        "exit",
        {layer: (0, 0, 16 * batch * MIB, 4), other: (300 * MIB, 9)},
        {which: (20, {}) for which in ("total", "host")},
    )
    for figure, n_bytes in (("mem-total", 4 << 30), ("mem-available", 3 << 30)):
        trace.lines.append(f"y 0 {figure} {n_bytes}")
    trace.lines.append("Z 21 exit 0")
    return trace


def test_what_is_held_when_no_tensor_is_does_not_grow_with_the_batch() -> None:
    (need,) = fit_batches([on_the_cpu(batch).load() for batch in (2, 4)], [2, 4], [64]).needs
    assert (need.rest, need.allocated) == (300 * MIB, 256 * MIB)


def test_blocks_without_a_record_are_supposed_of_the_same_program_alone(tmp_path: Path) -> None:
    paths: List[Path] = []
    for batch, script in ((2, "sums.py"), (4, "sums.py"), (4, "sorts.py")):
        trace = Trace(time_unit="ms", command=f"{script} {batch}", memory="unified", process=f"{len(paths)}.1")
        trace.lines.append("m option.large 65536")
        array_ = trace.account("heap", "data", [f"py main (/app/{script}:4)"])
        trace.block(2, 1 << 40, batch * 50000, array_)
        trace.snapshot(3, "exit", {array_: (batch * 50000, 1)}, {which: (3, {}) for which in ("total", "host")})
        trace.lines += [f"y 0 {figure} {4 << 30}" for figure in ("mem-total", "mem-available")] + ["Z 4 exit 0"]
        paths.append(trace.save(tmp_path, f"{len(paths)}.jm"))
    assert run_jmassif("fit", *paths[:2], "--batch=2,4", "--at=8").status == 0
    assert "more than the batch: 100% of" in refused(paths[0], paths[2], "--batch=2,4", "--at=8")


def test_start_up_is_that_of_another_trace() -> None:
    base = [training(2).load(), training(4).load()]
    other = training(4, start_up=300 * MIB)
    plain, replaced = (fit_batches(base, [2, 4], [8], startup_of=each) for each in (None, other.load()))
    assert [row._asdict() for row in replaced.startup] == [
        {"owner": "context", "recorded": 100 * MIB, "replaced": 300 * MIB}
    ]
    assert replaced.needs[0].program - plain.needs[0].program == 200 * MIB
    with pytest.raises(FitError, match="no context"):
        fit_batches(base, [2, 4], [8], startup_of=Trace(time_unit="ms").load())


@pytest.mark.parametrize(
    "other, says",
    [
        (training(4, parameters=50 * MIB), "parameters have 40.0 MiB and 50.0 MiB"),
        (training(4, l4t="35.4.1"), "the JetPack is unknown and 35.4.1"),
        (training(4, env_PYTORCH="x", arch="aarch64"), "the processor is unknown and aarch64"),
    ],
)
def test_runs_that_differ_in_more_than_the_batch_are_refused(other: Trace, says: str) -> None:
    with pytest.raises(FitError, match=says):
        fit_batches([training(2).load(), other.load()], [2, 4], [8])


def test_a_gradient_needs_no_counterpart_as_the_parameters_are_the_same() -> None:
    """The backward pass of a batch of 1 has other steps, and then the gradients of its stack are others by number."""
    runs = [training(1, before_gradient=MIB).load(), training(2).load()]
    found = fit_batches(runs, [1, 2], [8])
    assert found.needs[0].allocated == (168 + 12 * 8 + 8) * MIB and not found.unlike


def test_other_kernels_on_one_sample_hold_what_grows_with_the_batch() -> None:
    """Their activations and temporary tensors have no counterpart, and seem to grow as from one run."""
    runs = [training(1, kernel=20).load(), training(2).load()]
    found = fit_batches(runs, [1, 2], [4, 32])
    assert [need.allocated for need in found.needs] == [(168 + 12 * batch + batch) * MIB for batch in (4, 32)]
    assert found.unlike == pytest.approx(26 / 194)
    with pytest.raises(FitError, match="differ in more than the batch: 24% of"):
        fit_batches([training(2, kernel=20).load(), training(4).load()], [2, 4], [8])


def refused(*arguments: object) -> str:
    done = run_jmassif("fit", *arguments)
    assert done.status == 2 and "Traceback" not in done.err
    return done.err.splitlines()[-1]


def test_a_run_without_tensors_says_nothing_on_batches(tmp_path: Path) -> None:
    script = Trace(time_unit="ms", memory="unified", process="1.1")
    rows = script.account("heap", "data", ["py main (/app/rows.py:1)"])
    script.lines += [f"y 0 mem-total {4096 * MIB}", f"y 0 mem-available {3000 * MIB}"]
    script.snapshot(0, "start")
    script.block(2, 1 << 40, 9 * MIB, rows)
    script.snapshot(3, "time", {rows: (9 * MIB, 1)}, {"total": (3, {}), "host": (3, {})})
    script.lines.append("Z 5 exit 0")
    for words in (("--batch=2",), ("--batch=2", "--at=8")):
        said = refused(script.save(tmp_path, "script.jm"), *words)
        assert said == "jmassif fit: nothing grows with the batch: is the trace of a training with PyTorch?"


def test_traces_that_cannot_answer_are_refused_with_the_reason(tmp_path: Path) -> None:
    two, four = (training(batch, process=f"{batch}.1").save(tmp_path, f"{batch}.jm") for batch in (2, 4))
    copy = training(4, process="2.1").save(tmp_path, "copy.jm")
    assert "both traces are of the same run" in refused(two, copy, "--batch=2,4")
    cpu, killed = Trace(time_unit="ms"), Trace(time_unit="ms", memory="unified", pytorch="2.6", process="3.1")
    cpu.lines.append("Z 5 exit 0")
    assert "the run used no GPU" in refused(cpu.save(tmp_path, "cpu.jm"))
    path = killed.save(tmp_path, "killed.jm")
    assert "cut off before PyTorch allocated anything" in refused(path)
    killed.block(2, 1 << 40, 9 * MIB, killed.account("heap", "app", ["py main (/app/train.py:1)"]))
    path = killed.save(tmp_path, "killed.jm")
    assert "was the other killed before it did?" in refused(path, four, "--batch=2,4")
    assert 'unknown board "nanoo": name a size such as 4GiB, or nano, ' in refused(four, "--board=nanoo")
    assert '"4" has no unit' in refused(four, "--board=4") and "nano-2gb" not in refused(four, "--board=4")


def test_runs_of_one_batch_named_as_two_are_refused(tmp_path: Path) -> None:
    paths = [training(4, process=f"{process}.1").save(tmp_path, f"{process}.jm") for process in (1, 2)]
    for more in ((), ("--at=8",)):
        assert "are their batches those named?" in refused(*paths, "--batch=2,4", *more)


def test_batches_that_are_named_the_wrong_way_round_are_refused(tmp_path: Path) -> None:
    one, two = (training(batch, process=f"{batch}.1").save(tmp_path, f"{batch}.jm") for batch in (1, 2))
    for traces in ((one, two), (two, one)):
        batches = "2,1" if traces[0] == one else "1,2"
        assert refused(*traces, f"--batch={batches}") == (
            "jmassif fit: activations and inputs of batch 2 are smaller than those of batch 1: name the batches in the order of"
            " their runs"
        )


def test_no_setting_needs_less_than_the_best_though_replays_end_early() -> None:
    trials = try_settings(fragmented().load())
    sizes = requests(trials.steps, replay(trials.steps, trials.steps.sizes, trials.recorded))
    wholly = [replay(trials.steps, sizes, each).reserved for each in TRIED]
    found = [each.reserved for each in trials.others]
    assert found == sorted(set(found)) and found[0] == min(wholly) < max(wholly)
    assert found == [wholly[TRIED.index(each.settings)] for each in trials.others]


def test_runs_of_other_commands_or_sources_and_killed_before_training_are_named(tmp_path: Path) -> None:
    def said(first: Trace, second: Trace) -> str:
        paths = [trace.save(tmp_path, name) for trace, name in ((first, "two.jm"), (second, "four.jm"))]
        done = run_jmassif("fit", *paths, "--batch=2,4", "--at=8")
        assert done.status == 0
        return done.out

    of_net = "python2 fit.py cnn batch=2 4"
    alike = said(training(2, command=of_net), training(4, command="python2 fit.py cnn batch=4 4"))
    assert "differ in more" not in alike and "not the same" not in alike
    assert 'more than the batch: "cnn" and "rnn", "" and "--deep".' in said(
        training(2, command=of_net), training(4, command="python2 fit.py rnn batch=4 4 --deep")
    )
    runs = [training(2), training(4)]
    for number, run in enumerate(runs):
        run.lines.append(f"h {run.string('/app/train.py')} {number}")
        run.lines[-1], run.lines[-2] = run.lines[-2:]
    assert "/app/train.py is not the same in both runs" in said(*runs)

    for lost, says in (
        ((), ""),
        (("optimizer",), "was killed before its optimizer had any state"),
        (("optimizer", "gradient"), "was killed before training: it has no gradients, and the figures are too low."),
    ):
        killed = training(4)
        killed.lines = [line for line in killed.lines if not line.endswith(lost) and line[0] != "Z"]
        path = killed.save(tmp_path, "killed.jm")
        assert run_jmassif("fit", path).out.count("was killed before") == bool(says)
        assert says in run_jmassif("fit", path, "--batch=4", "--at=8").out


def test_a_desktops_run_is_judged_with_its_host_memory_and_no_other_programs() -> None:
    fit = fit_batches([training(4, memory="discrete").load()], [], [], board=1 << 30, is_dry=True)
    assert fit.room.available == 1 << 30 and fit.room.others is None
    (need,) = fit.needs
    assert need.program >= (220 + 100 + 24) * MIB and not need.is_about
