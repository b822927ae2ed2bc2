# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts on allocations that failed: each from figures made by hand, at the edges between one verdict and the next."""

import json
import re
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

import pytest

from jmassif.analysis.oom import Hint, Incident, call_of, incidents_of
from jmassif.analysis.summary import build_report, moment_of
from jmassif.attribution.names import Names
from jmassif.cli.report import writer
from jmassif.reader.tokens import TraceError
from jmassif.render.failures import arithmetic, out_of_memory, reason
from jmassif.render.summary import action, findings
from jmassif.render.view import View
from jmassif.units import size
from tests.reporter.commands import jm_print, validator
from tests.reporter.traces import Trace

MIB = 1 << 20
BOARD = 4096 * MIB

Blocks = Sequence[Tuple[int, int]]  # in a segment: offset, bytes


class Run:
    """A program with a caching allocator on a board of 4 GiB."""

    def __init__(self, **manifest: str) -> None:
        self.trace = Trace(time_unit="ms", **{"memory": "unified", "pytorch": "2.1.0", **manifest})
        self.trace.group("yours", "tensor", "app")
        self.trace.group("cached", "cache")
        self.cache = self.trace.account("device", "cache", ["cudaMalloc (libcudart.so.12)", "grow (libc10_cuda.so)"])
        self.tensor = self.trace.account("device", "tensor", ["empty (libtorch.so)", "py f (/app/train.py:7)"])
        self.heap = self.trace.account("heap", "app", ["main (a.c:3)"])
        self.trace.snapshot(0, "start")
        self.reserved = self.used = 0
        self.extra: Dict[int, Tuple[int, int]] = {}

    def segment(self, address: int, n_bytes: int, blocks: Blocks = ()) -> "Run":
        self.trace.block(1, address, n_bytes, self.cache)
        self.reserved += n_bytes
        for offset, size in blocks:
            self.trace.block(1, address + offset, size, self.tensor)
            self.used += size
        return self

    def holds(self, account: int, n_bytes: int) -> "Run":
        self.extra[account] = (n_bytes, 1)
        return self

    def snapshot(self, time: int) -> None:
        held = {self.cache: (self.reserved - self.used, 1), self.tensor: (self.used, 1)}
        self.trace.snapshot(time, "out-of-memory", {**held, **self.extra})

    def fails(self, n_bytes: int, account: Optional[int] = None, again: int = 0, **figures: int) -> int:
        named = {name.replace("_", "-"): value for name, value in figures.items()}
        event = self.trace.exhaustion(2, self.cache if account is None else account, n_bytes, again=again)
        self.snapshot(2)
        self.trace.lines += [f"o {event} {figure} {value}" for figure, value in named.items()]
        return event

    def only(self) -> Incident:
        profile = self.trace.load()
        (incident,) = incidents_of(profile, Names(profile))
        return incident


def on_board(free: int) -> Dict[str, int]:
    return {"device_free": free, "device_total": BOARD}


# ---- verdicts --------------------------------------------------------------------------------


def test_pieces_that_together_are_enough_are_fragmentation() -> None:
    run = Run().segment(0x1000_0000, 100 * MIB, [(0, 40 * MIB), (70 * MIB, 30 * MIB)])
    run.segment(0x2000_0000, 50 * MIB, [(20 * MIB, 30 * MIB)])
    run.fails(45 * MIB, **on_board(0))
    incident = run.only()
    assert incident.verdict == "fragmentation"
    situation = incident.situation
    assert (situation.cached, situation.holes, situation.largest_hole) == (50 * MIB, 2, 30 * MIB)
    assert situation.missing == 45 * MIB


@pytest.mark.parametrize(
    "used, asked, is_nearly_full",
    [(900 * MIB, 45 * MIB, True), (900 * MIB, 30 * MIB, False), (400 * MIB, 45 * MIB, False)],
)
def test_few_holes_that_would_not_hold_another_such_block_are_a_full_memory(
    used: int, asked: int, is_nearly_full: bool
) -> None:
    run = Run().segment(0x1000_0000, used + 60 * MIB, [(25 * MIB, used), (used + 50 * MIB, 10 * MIB)])
    run.fails(asked, **on_board(10 * MIB))
    incident = run.only()
    assert incident.verdict == "fragmentation"
    told = re.search(r"left ([\d.]+ \w+): the memory was nearly full", reason(incident, False))
    assert bool(told) == is_nearly_full
    if told:
        assert told.group(1) == size(50 * MIB + 10 * MIB - asked)


@pytest.mark.parametrize("free, verdict", [(0, "full"), (10 * MIB - 1, "full"), (10 * MIB, "fragmentation")])
def test_what_is_free_outside_of_segments_counts(free: int, verdict: str) -> None:
    run = Run().segment(0x1000_0000, 100 * MIB, [(0, 70 * MIB)]).holds(1, 0).holds(3, 3900 * MIB)
    run.fails(40 * MIB, **on_board(free))
    assert run.only().verdict == verdict


@pytest.mark.parametrize("free, verdict", [(20 * MIB, "cache"), (20 * MIB - 1, "fragmentation")])
def test_an_empty_segment_that_would_have_been_enough_is_the_caches_fault(free: int, verdict: str) -> None:
    run = Run().segment(0x1000_0000, 80 * MIB).segment(0x2000_0000, 100 * MIB, [(0, 50 * MIB)])
    run.fails(100 * MIB, **on_board(free))
    assert run.only().verdict == verdict


def test_a_pools_unused_reserve_is_a_cache() -> None:
    run = Run()
    run.fails(100 * MIB, pool_used=10 * MIB, pool_reserved=90 * MIB, **on_board(20 * MIB))
    incident = run.only()
    assert (incident.verdict, incident.situation.pool_unused) == ("cache", 80 * MIB)
    assert incident.hints == [Hint("trim-pools", 80 * MIB)]


@pytest.mark.parametrize("own, verdict", [(1900, "others"), (2200, "full")])
def test_others_are_to_blame_if_they_hold_more(own: int, verdict: str) -> None:
    run = Run().segment(0x1000_0000, own * MIB, [(0, own * MIB)])
    run.fails(100 * MIB, **on_board(50 * MIB))
    incident = run.only()
    assert incident.verdict == verdict
    assert incident.situation.others == (4096 - 50 - own) * MIB
    assert incident.hints == [Hint("stop-others", incident.situation.others)]


def test_others_that_hold_less_than_was_missing_are_no_remedy() -> None:
    run = Run().segment(0x1000_0000, 3900 * MIB, [(0, 3900 * MIB)])
    run.fails(600 * MIB, **on_board(50 * MIB))
    assert (run.only().verdict, run.only().hints) == ("full", [])


def test_more_than_there_is_is_too_large() -> None:
    run = Run()
    run.fails(BOARD + 1, **on_board(4000 * MIB))
    assert run.only().verdict == "too large"


def test_a_driver_that_refuses_what_it_has_is_not_explained_away() -> None:
    run = Run()
    run.fails(100 * MIB, **on_board(102 * MIB))
    assert run.only().verdict == "refused"


def test_a_framework_that_does_not_ask_keeps_to_a_limit_of_its_own() -> None:
    run = Run()
    run.trace.exhaustion(2, run.cache, 100 * MIB, "reportOutOfMemoryToProfiler", error=0)
    run.snapshot(2)
    assert run.only().verdict == "limit"


def test_without_a_word_of_the_driver_nothing_is_made_up() -> None:
    run = Run()
    run.fails(100 * MIB)
    incident = run.only()
    assert (incident.verdict, incident.situation.free, incident.situation.missing) == ("unknown", None, None)
    assert incident.hints == []


def test_an_event_without_its_snapshot_is_told_from_the_totals() -> None:
    run = Run()
    run.trace.totals(1, 10 * MIB, 3000 * MIB)
    event = run.trace.exhaustion(2, run.cache, 900 * MIB)
    run.trace.lines += [f"o {event} device-free {50 * MIB}", f"o {event} device-total {BOARD}"]
    incident = run.only()
    assert (incident.verdict, incident.situation.own) == ("full", 3010 * MIB)


def test_of_a_discrete_gpu_only_its_own_memory_counts() -> None:
    run = Run(memory="discrete").segment(0x1000_0000, 1000 * MIB, [(0, 1000 * MIB)]).holds(3, 2500 * MIB)
    run.fails(100 * MIB, **on_board(50 * MIB))
    situation = run.only().situation
    assert (situation.own, situation.others) == (1000 * MIB, 3046 * MIB)


@pytest.mark.parametrize(
    "available, limit, verdict",
    [(500, None, "refused"), (500, 1000, "limit"), (50, None, "full"), (50, 1000, "full"), (None, None, "unknown")],
)
def test_memory_of_the_host(available: Optional[int], limit: Optional[int], verdict: str) -> None:
    run = Run().holds(3, 3500 * MIB)
    run.trace.lines += [f"y 1 mem-total {BOARD}", f"y 1 process-resident {3600 * MIB}"]
    if available is not None:
        run.trace.lines.append(f"y 1 mem-available {available * MIB}")
    run.fails(100 * MIB, run.heap, **({} if limit is None else {"address_space_limit": limit * MIB}))
    assert run.only().verdict == verdict
    hints = run.only().hints
    assert (Hint("raise-limit", 100 * MIB, setting=1100 * MIB) in hints) == (verdict == "limit")


# NvMap's check by release, of 2881 MiB that are available and 512 MiB of free CMA.
@pytest.mark.parametrize(
    "l4t, board, granted",
    [
        ("32.7.1", "Nano", None),
        ("35.4.1", "Orin", 2369 * MIB * 15 // 16),
        ("36.4.3", "Orin", 2369 * MIB),
        ("36.4.7", "Orin", 2369 * MIB - 2369 * MIB // 1000),
        ("36.5", "Orin", 2369 * MIB - 2369 * MIB // 1000),
        ("39.2.0", "Orin", 2369 * MIB - 2369 * MIB // 1000),
        ("39.2.0", "NVIDIA Jetson AGX Thor Developer Kit", None),
        ("", "Orin", None),
    ],
)
@pytest.mark.parametrize("asked", [2400 * MIB, 2200 * MIB])
def test_nvmaps_limit_counts_where_the_release_has_it_and_the_request_is_beyond(
    l4t: str, board: str, granted: Optional[int], asked: int
) -> None:
    run = Run(l4t=l4t, board=board)
    run.trace.lines += [f"y 1 mem-total {BOARD}", f"y 1 mem-available {2881 * MIB}", f"y 1 cma-free {512 * MIB}"]
    run.trace.lines += [f"y 1 mem-free {2870 * MIB}"]
    run.fails(asked, **on_board(2870 * MIB))
    incident = run.only()
    if granted is None or asked <= granted:
        assert (incident.verdict, incident.situation.granted) == ("refused", None)
        assert "NvMap" not in reason(incident, False)
    else:
        assert (incident.verdict, incident.situation.granted) == ("limit", granted)
        said = f"NvMap grants at most {size(granted)} here: 2.81 GiB available minus 512 MiB of free CMA;"
        assert reason(incident, False) == f"{said} {size(asked)} were requested."


@pytest.mark.parametrize(
    "asked, others, hints", [(2600, 10, ["smaller-cma"]), (2880, 10, []), (2880, 700, ["stop-others"])]
)
def test_beyond_nvmaps_limit_the_rows_add_up_and_what_helps_is_named(asked: int, others: int, hints: List[str]) -> None:
    """On a release that grants 15/16: without CMA 2701 of the 2881 MiB that are available."""
    cached, free = 1000, 1881
    run = Run(l4t="35.4.1", board="Orin").holds(3, (4096 - cached - free - others) * MIB)
    run.trace.lines += [f"y 1 mem-total {BOARD}", f"y 1 mem-available {2881 * MIB}", f"y 1 cma-free {512 * MIB}"]
    run.trace.lines += [f"y 1 mem-free {free * MIB}", f"y 1 cached {cached * MIB}"]
    run.fails(asked * MIB, **on_board(free * MIB))
    incident = run.only()
    rows = {label: n_bytes for label, n_bytes, _ in arithmetic(incident.situation)}
    assert (incident.verdict, rows["NvMap grants at most"]) == ("limit", 2369 * MIB * 15 // 16)
    assert rows["free on the device"] == free * MIB
    assert BOARD == sum(rows[row] for row in ("free on the device", "page cache", "this program", "everything else"))
    assert [hint.action for hint in incident.hints] == hints
    if "smaller-cma" in hints:
        assert action(incident.hints[0], False, incident) == (
            "A smaller cma= in /boot/extlinux/extlinux.conf gives NvMap up to 480 MiB more; 379 MiB was missing."
        )


@pytest.mark.parametrize("free, counted", [(1000, 900), (1500, 500), (2000, 0)])
def test_cached_files_count_as_far_as_the_driver_does_not_call_them_free(free: int, counted: int) -> None:
    run = Run().holds(3, 500 * MIB)
    run.trace.lines += [f"y 1 mem-total {BOARD}", f"y 1 mem-available {2000 * MIB}", f"y 1 mem-free {1000 * MIB}"]
    run.trace.lines += [f"y 1 cached {900 * MIB}", f"y 1 slab-reclaimable {300 * MIB}"]
    run.trace.lines += [f"y 1 process-files {100 * MIB}"]
    run.fails(2500 * MIB, **on_board(free * MIB))
    situation = run.only().situation
    assert situation.page_cache == counted * MIB
    assert situation.others == BOARD - free * MIB - 500 * MIB - counted * MIB


def test_cached_files_that_would_have_been_enough_are_the_cause_and_have_an_action() -> None:
    run = Run().holds(3, 500 * MIB)
    run.trace.lines += [f"y 1 mem-total {BOARD}", f"y 1 mem-available {3000 * MIB}", f"y 1 mem-free {1000 * MIB}"]
    run.trace.lines += [f"y 1 cached {2000 * MIB}"]
    run.fails(2500 * MIB, **on_board(1000 * MIB))
    incident = run.only()
    assert (incident.verdict, incident.situation.missing) == ("page cache", 1500 * MIB)
    said = (
        "Try sync; echo 3 | sudo tee /proc/sys/vm/drop_caches: 1.46 GiB was missing, and cuMemGetInfo counts 1.95 GiB of"
        " cached files as in use."
    )
    assert action(incident.hints[0], False, incident) == said
    # A program that goes on has no first screen about the failure: its section has the action, in a short report too.
    run.trace.lines.append("Z 3 exit 0")
    profile = run.trace.load()
    names = Names(profile)
    report = build_report(profile, moment_of(profile, names, None), names)
    text = " ".join("\n".join(map(str, out_of_memory(report, View(None, 1, "stack", 70, is_brief=True)))).split())
    assert report.failure is None and said in text and ": page cache -" in text


# ---- tries -----------------------------------------------------------------------------------


def test_what_is_freed_between_tries_is_told_and_the_last_failure_judged() -> None:
    run = Run().segment(0x1000_0000, 300 * MIB).segment(0x2000_0000, 200 * MIB, [(0, 200 * MIB)])
    first = run.fails(500 * MIB, **on_board(100 * MIB))
    run.trace.block_end(2, 0x1000_0000, run.cache)
    run.reserved -= 300 * MIB
    second = run.fails(500 * MIB, again=first, **on_board(400 * MIB))
    run.trace.outcome(second, 3, "raised")
    incident = run.only()
    assert [event.id for event in incident.tries] == [first, second]
    assert (incident.freed, incident.outcome, incident.is_resolved) == (300 * MIB, "raised", False)
    # 400 are free now, and nothing in the cache.
    assert (incident.situation.free, incident.situation.cached) == (400 * MIB, 0)


def test_a_new_segment_at_an_old_address_hides_nothing() -> None:
    run = Run().segment(0x1000_0000, 300 * MIB)
    event = run.fails(350 * MIB, **on_board(100 * MIB))
    run.trace.block_end(2, 0x1000_0000, run.cache)
    run.trace.block(2, 0x1000_0000, 350 * MIB, run.cache)
    run.trace.outcome(event, 2, "retried")
    assert (run.only().verdict, run.only().freed) == ("cache", 300 * MIB)


def test_the_runtimes_function_is_named_where_the_program_called_that() -> None:
    run = Run()
    event = run.trace.exhaustion(2, run.cache, 1, "cuMemAlloc_v2")
    other = run.trace.exhaustion(2, run.tensor, 1, "cuMemAlloc_v2")
    profile = run.trace.load()
    assert [call_of(profile, profile.exhaustions[id_]) for id_ in (event, other)] == ["cudaMalloc", "cuMemAlloc_v2"]


# ---- what would have helped ------------------------------------------------------------------


def fragmented(**manifest: str) -> Run:
    """Two segments of 200 MiB, each with one block of 40 MiB in its middle."""
    run = Run(**manifest)
    for address in (0x1000_0000, 0x2000_0000):
        run.segment(address, 200 * MIB, [(80 * MIB, 40 * MIB)])
    return run


def remedies(run: Run) -> List[str]:
    return [hint.action for hint in run.only().hints]


def test_fragmentation_is_cured_by_pages_or_by_not_splitting() -> None:
    run = fragmented()
    run.fails(300 * MIB, **on_board(0))
    assert remedies(run) == ["expandable-segments", "max-split-size"]
    assert run.only().hints[1].setting == 64 * MIB


@pytest.mark.parametrize(
    "manifest, expected",
    [
        ({"pytorch": "1.13.1"}, ["max-split-size"]),
        ({"pytorch": "2.0.1"}, ["max-split-size"]),
        ({"env.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, ["max-split-size"]),
        ({"env.PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:512"}, ["expandable-segments"]),
        ({"pytorch": "2.10.0", "env.PYTORCH_ALLOC_CONF": "expandable_segments:True"}, ["max-split-size"]),
        ({"pytorch": "2.10.0", "env.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, ["max-split-size"]),
        ({"pytorch": "2.10.0", "env.PYTORCH_ALLOC_CONF": "max_split_size_mb:512"}, ["expandable-segments"]),
        # 2.9 reads the new variable, but not for the allocator of CUDA.
        (
            {"pytorch": "2.9.1", "env.PYTORCH_ALLOC_CONF": "expandable_segments:True"},
            ["expandable-segments", "max-split-size"],
        ),
        ({"cuda-vmm": "no"}, ["max-split-size"]),
        ({"cuda-vmm": "yes"}, ["expandable-segments", "max-split-size"]),
    ],
)
def test_what_is_set_already_or_too_new_is_not_proposed(manifest: Dict[str, str], expected: List[str]) -> None:
    run = fragmented()
    for key, value in manifest.items():
        run.trace.manifest(key, value)
    run.fails(300 * MIB, **on_board(0))
    assert remedies(run) == expected


@pytest.mark.parametrize(
    "pytorch, variable",
    [
        ("2.1.0", "PYTORCH_CUDA_ALLOC_CONF"),
        ("2.9.1", "PYTORCH_CUDA_ALLOC_CONF"),
        ("2.10.0a0+git", "PYTORCH_ALLOC_CONF"),
    ],
)
@pytest.mark.parametrize("memory, begin, can", [("unified", "Try ", ": it can"), ("discrete", "", " can")])
def test_advice_names_the_variable_of_the_release_and_is_a_trial_on_a_board(
    pytorch: str, variable: str, memory: str, begin: str, can: str
) -> None:
    run = fragmented(pytorch=pytorch, memory=memory)
    run.fails(300 * MIB, **on_board(0))
    incident = run.only()
    pages, split = (action(hint, True, incident) for hint in incident.hints)
    said = f"{begin}{variable}=expandable_segments:True{can} return 320 MiB, the whole pages in the holes."
    assert pages.startswith(said)
    assert ("cuMemCreate then fails" in pages) == (memory == "unified")
    assert split.startswith(f"{variable}=max_split_size_mb:64")


def test_advice_says_which_release_it_needs_where_the_programs_is_unknown() -> None:
    run = fragmented(pytorch="")
    run.fails(300 * MIB, **on_board(0))
    assert "expandable_segments:True (PyTorch 2.1 and later): it can" in action(run.only().hints[0], True, run.only())


@pytest.mark.parametrize(
    "settings, asked, value",
    [
        ("expandable_segments:True", "max-split-size", "expandable_segments:True,max_split_size_mb:64"),
        ("max_split_size_mb:512", "expandable-segments", "max_split_size_mb:512,expandable_segments:True"),
        ("expandable_segments:False", "expandable-segments", "expandable_segments:True"),
        (
            "roundup_power2_divisions:[256:1,>:8], expandable_segments:False",
            "max-split-size",
            "roundup_power2_divisions:[256:1,>:8],expandable_segments:False,max_split_size_mb:64",
        ),
    ],
)
def test_advice_keeps_what_the_variable_had(settings: str, asked: str, value: str) -> None:
    run = fragmented(pytorch="2.10.0")
    run.trace.manifest("env.PYTORCH_ALLOC_CONF", settings)
    run.fails(300 * MIB, **on_board(0))
    (hint,) = [hint for hint in run.only().hints if hint.action == asked]
    assert f"PYTORCH_ALLOC_CONF={value}:" in action(hint, True, run.only())


def test_pages_that_are_not_whole_do_not_count() -> None:
    run = Run()
    for n in range(30):
        run.segment(0x1000_0000 * (n + 1), 40 * MIB, [(15 * MIB, 10 * MIB)])
    run.fails(100 * MIB, **on_board(0))
    # 30 times two holes of 15 MiB hold no page of 20 MiB; but without the blocks of 10 MiB the segments would be free.
    assert (run.only().verdict, remedies(run)) == ("fragmentation", ["max-split-size"])
    assert run.only().hints[0].setting == 20 * MIB


def test_blocks_as_large_as_their_segments_are_not_cured_by_splitting_less() -> None:
    run = Run()
    run.segment(0x1000_0000, 100 * MIB, [(0, 60 * MIB)]).segment(0x2000_0000, 100 * MIB, [(0, 65 * MIB)])
    run.fails(60 * MIB, **on_board(0))
    # With 64 MiB one of the two would have been free, and more than the other's hole was asked for.
    assert remedies(run) == ["expandable-segments"]


def test_only_pytorch_is_told_of_pytorchs_options() -> None:
    run = fragmented()
    run.trace.lines = [line for line in run.trace.lines if not line.startswith("m pytorch")]
    run.fails(300 * MIB, **on_board(0))
    assert remedies(run) == []


@pytest.mark.parametrize(
    "cuda, env, workspace, expected",
    [
        ("11.8", "", 0, ["lazy-loading"]),
        ("11.4", "", 0, []),
        ("12.4", "", 0, []),
        ("12.4", "EAGER", 0, ["lazy-loading"]),
        ("11.8", "LAZY", 0, []),
        ("11.4", "", 60 * MIB, ["smaller-workspace"]),
        ("11.4", "", 40 * MIB, []),
    ],
)
def test_kernels_and_workspaces_are_named_if_they_hold_as_much_as_was_missing(
    cuda: str, env: str, workspace: int, expected: List[str]
) -> None:
    run = Run().segment(0x1000_0000, 3800 * MIB, [(0, 3800 * MIB)])
    module = run.trace.account("device", "module", ["cuModuleLoad (libcuda.so.1)"])
    work = run.trace.account("device", "workspace", ["gemm (libtorch.so)"])
    run.trace.manifest(f"package.cuda-cudart-{cuda.replace('.', '-')}", f"{cuda}.89-1")
    if env:
        run.trace.manifest("env.CUDA_MODULE_LOADING", env)
    run.holds(module, 100 * MIB).holds(work, workspace)
    run.fails(200 * MIB, **on_board(150 * MIB))
    assert [action for action in remedies(run) if action != "stop-others"] == expected


# ---- told elsewhere ---------------------------------------------------------------------------


def two_failures() -> Run:
    run = fragmented()
    first = run.fails(300 * MIB, **on_board(0))
    run.trace.outcome(first, 3, "raised")
    run.fails(BOARD + 1, **on_board(4000 * MIB))
    return run


def test_json_has_each_with_its_figures() -> None:
    profile = two_failures().trace.load()
    view = View(None, 1.0, "owner", 70)
    report = json.loads("".join(writer("json")(profile, view)))
    validator().validate(report)
    first, second = report["out_of_memory"]
    assert (first["verdict"], first["outcome"], second["verdict"]) == ("fragmentation", "raised", "too large")
    assert first["situation"]["missing"] == 300 * MIB
    assert [hint["action"] for hint in first["hints"]] == ["expandable-segments", "max-split-size"]
    layout = report["layouts"][0]
    assert layout["incident"] == 1
    assert [(segment["address"], segment["bytes"]) for segment in layout["segments"]] == [
        (0x10000000, 200 * MIB),
        (0x20000000, 200 * MIB),
    ]
    assert [tuple(part.values()) for part in layout["segments"][0]["parts"]] == [
        (0, 80 * MIB, 0),
        (80 * MIB, 40 * MIB, 2),
        (120 * MIB, 80 * MIB, 0),
    ]
    assert first["tries"][0]["account"] in {row[0] for row in report["accounts"]["rows"]}
    reasons = {snapshot["time"]: snapshot["reason"] for snapshot in report["snapshots"]}
    assert reasons[first["tries"][0]["time"]] == "out-of-memory"


def test_perfetto_has_an_instant_each() -> None:
    view = View(None, 1.0, "owner", 70)
    file = json.loads("".join(writer("perfetto")(two_failures().trace.load(), view)))
    found = [event for event in file["traceEvents"] if event.get("cat") == "out-of-memory"]
    assert [(event["ph"], event["name"], event["args"]["asked"]) for event in found] == [
        ("i", "out of memory: fragmentation", 300 * MIB),
        ("i", "out of memory: too large", BOARD + 1),
    ]


def test_the_text_has_a_section_each_and_lines_that_fit(tmp_path: Path) -> None:
    done = jm_print("--all", two_failures().trace.save(tmp_path))
    assert done.status == 0
    assert re.findall(
        r"^--- Out of memory at 2 ms \(failed allocation (\d)\): ([a-z ]+) -", done.out, re.MULTILINE
    ) == [
        ("1", "fragmentation"),
        ("2", "too large"),
    ]
    text = done.out[done.out.index("--- Out of memory") : done.out.index("--- By owner")]
    assert max(map(len, text.splitlines())) <= 80
    assert "train.py:7" not in text  # who asked was the cache
    assert "grow (libc10_cuda.so)" in text


def test_the_line_of_the_script_that_asked_is_named(tmp_path: Path) -> None:
    run = Run()
    inside = [f"at::inner{n} (libtorch.so)" for n in range(12)]
    outside = ["py step (/app/train.py:31)", "py <module> (/app/train.py:87)", "main (python3)"]
    segment = run.trace.account("device", "cache", ["cudaMalloc (libcudart.so.12)", *inside, *outside])
    run.fails(1 << 40, segment)
    done = jm_print(run.trace.save(tmp_path))
    asked = done.out[done.out.index("Requested at") :].split("\n--- ")[0].split("\n\n")[0].split("\n")
    assert [line.strip() for line in asked if line] == [
        "Requested at train.py:31:",
        "cudaMalloc (libcudart.so.12)",
        "at::inner0 (libtorch.so)",
        "… 11 frames",
        "train.py:31 (step)",
        "train.py:87 (<module>)",
        "… 1 frame",
    ]


def test_a_failure_of_the_dying_interpreter_does_not_hide_the_line_before_it(tmp_path: Path) -> None:
    run = Run()
    run.fails(1 << 40, run.trace.account("heap", "data", ["malloc (libc.so.6)", "py parse (/app/rows.py:3)"]))
    run.fails(1 << 40, run.trace.account("heap", "python", ["malloc (libc.so.6)", "(no debug symbols) (python3.11)"]))
    run.trace.lines.append("Z 3 exit 1")
    done = jm_print(run.trace.save(tmp_path))
    assert " at rows.py:3" in done.out.splitlines()[0] and "\nOne of 2 requests that failed.\n" in done.out


def test_hostile_names_are_escaped(tmp_path: Path) -> None:
    run = Run()
    run.trace.exhaustion(2, run.heap, 1, "cuda\x1b[2J\udcff" + "x" * 5000)
    done = jm_print(run.trace.save(tmp_path))
    assert done.status == 0 and "\x1b" not in done.out and "cuda\\x1b[2J\\xff" in done.out


# ---- reading ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "record, problem",
    [
        ("O 1 2 1 99 0 2 10 0", "account 99 is not defined"),
        ("O 1 2 1 1 99 2 10 0", "string 99 is not defined"),
        ("O 1 2 1 1 0 2 10 7", "event 7 is not defined"),
        ("o 1 device-free 3", "event 1 is not defined"),
        ("q 1 3 retried", "event 1 is not defined"),
        ("O 1 2 1 1 0 2 10 0\nq 1 3 forgotten", "forgotten"),
    ],
)
def test_what_contradicts_itself_is_refused(record: str, problem: str) -> None:
    run = Run()
    run.trace.lines.append(record)
    with pytest.raises(TraceError, match=problem):
        run.trace.load()


def test_of_several_processes_those_are_named_that_ran_out(tmp_path: Path) -> None:
    large, small = Run(pid="7", start="2026-01-02T03:04:05Z"), Run(pid="8", start="2026-01-02T03:04:05Z")
    large.holds(large.heap, 100 * MIB).snapshot(1)
    small.fails(BOARD + 1, **on_board(0))
    small.fails(MIB, **on_board(0))
    done = jm_print(*(run.trace.save(tmp_path, str(n)) for n, run in enumerate((large, small))))
    assert done.status == 0, done.err
    assert "Process 8: OUT OF MEMORY: cudaMalloc of 1.00 MiB at grow (libc10_cuda.so)" in " ".join(done.out.split())
    assert "\n7: " not in done.out


def test_a_short_report_has_the_actions_on_its_first_screen_alone() -> None:
    run = fragmented()
    run.fails(300 * MIB, **on_board(0))
    profile = run.trace.load()
    names = Names(profile)
    report = build_report(profile, moment_of(profile, names, None), names)
    views = (View(None, 1, "stack", 70, is_brief=is_brief) for is_brief in (True, False))
    short, full = ("\n".join(out_of_memory(report, view)) for view in views)
    assert "max_split_size_mb" in full and "max_split_size_mb" not in short
    assert [finding.key for finding in findings(report)] == ["expandable-segments", "max-split-size", "holds-most"]
