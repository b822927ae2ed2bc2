# SPDX-License-Identifier: GPL-2.0-or-later
"""The books of the whole board: they add up, whatever the trace says, and the report tells what is doubtful."""

from pathlib import Path
from typing import Dict, List

import pytest

from jmassif.analysis.balance import (
    MemoryBalance,
    memory_balance,
    device_balance,
    fullest,
    sampled,
    ledger_of_balance,
)
from jmassif.analysis.budgets import BudgetError, Meter
from jmassif.model.run import Profile
from jmassif.render.system import BALANCE
from jmassif.render.text import write
from jmassif.render.view import View
from tests.reporter.commands import jm_print, section as section_of
from tests.reporter.traces import Trace

MIB = 1 << 20

# A board of 4 GiB on which 1000 MiB were in use; the process began with 10 MiB of its own and 5 of files.
AT_START = {"mem-total": 4096, "mem-available": 3086, "process-resident": 15, "process-files": 5}
# Then: 300 of the process's pages, and 100 of device memory that is not among them.
LATER = {
    "mem-available": 2760,
    "process-resident": 300,
    "process-files": 60,
    "resident": 300,
    "resident-heap": 110,
    "resident-valgrind": 80,
    "resident-devices": 0,
    "resident-blocks": 5,
    "blocks-in-mappings": 8,
    "custom-blocks": 4,
    "heap-untouched": 30,
}


def figures(time: int, values: Dict[str, int]) -> List[str]:
    return [f"y {time} {figure} {n * MIB}" for figure, n in values.items()]


def trace(later: Dict[str, int], memory: str = "unified") -> Trace:
    made = Trace(memory=memory, **{"option.pages": "yes"})
    heap, overhead = made.account("heap", "app"), made.account("heap-overhead", "app")
    custom, pages = made.account("heap", "tensor", ["make (a.c:1)"]), made.account("file", "lib")
    pinned, device = made.account("pinned", "app"), made.account("device", "cudnn")
    made.lines += figures(0, AT_START)
    made.snapshot(0, "start")
    made.lines += figures(10, later)
    held = {
        heap: (90 * MIB, 9),
        overhead: (2 * MIB, 9),
        custom: (4 * MIB, 1),
        pages: (100 * MIB, 1),
        pinned: (4 * MIB, 1),
        device: (100 * MIB, 1),
    }
    made.snapshot(10, "time", held)
    made.snapshot(20, "time", {**held, heap: (200 * MIB, 10)}, {"total": (20, {})})
    return made


def sum_of(made: MemoryBalance) -> int:
    rows = [made.before, made.held, made.untouched, made.allocators, made.valgrind]
    return sum(rows) + made.unaccounted + made.elsewhere + made.free


def test_each_row_is_what_it_is_called() -> None:
    profile = trace(LATER).load()
    assert (sampled(profile), fullest(profile, 0)) == ([1], 1)
    made = memory_balance(profile, 1)
    assert made.before == 1000 * MIB
    assert made.held == ledger_of_balance(profile, made).total.bytes == 300 * MIB
    # malloc has 110 in memory where 92 are asked for, 30 of which have no pages; nor have 3 of the 8 that lie in mappings.
    assert made.allocators == (110 - (92 - 30)) * MIB
    assert made.untouched == -(30 + 8 - 5) * MIB
    assert made.valgrind == 80 * MIB
    assert made.unaccounted == (300 - 110 - 80 - 5 - 100) * MIB
    assert made.free == 2700 * MIB
    # 4096 - 2700 - 1000 are new; 300 the process's pages, 100 its device memory.
    assert made.elsewhere == -4 * MIB
    assert made.process == 400 * MIB
    assert sum_of(made) == made.board == 4096 * MIB
    assert made.share_of_peak == 300 / 410
    assert made.outside == 100 * MIB
    assert not made.is_off


def test_pages_of_a_driver_that_the_process_has_mapped_count_once() -> None:
    plain = memory_balance(trace(LATER).load(), 1)
    mapped = memory_balance(trace({**LATER, "resident": 330, "resident-devices": 30}).load(), 1)
    assert (mapped.unaccounted, mapped.held, mapped.process) == (plain.unaccounted, plain.held, plain.process)


def test_device_memory_of_a_discrete_gpu_is_not_the_boards() -> None:
    profile = trace(LATER, "discrete").load()
    made = memory_balance(profile, 1)
    assert made.held == ledger_of_balance(profile, made).total.bytes == 200 * MIB
    assert (made.unaccounted, made.elsewhere, made.process) == (5 * MIB, 96 * MIB, 300 * MIB)
    assert sum_of(made) == made.board


def test_a_processors_free_pages_are_free() -> None:
    made = trace({**LATER, "mem-available": 2700, "free-per-cpu": 60})
    made.lines.insert(made.lines.index(f"y 0 mem-total {4096 * MIB}"), f"y 0 free-per-cpu {86 * MIB}")
    found, plain = memory_balance(made.load(), 1), memory_balance(trace(LATER).load(), 1)
    assert found.free == plain.free  # 2700 and 60
    assert found.before == plain.before - 86 * MIB
    assert sum_of(found) == found.board


@pytest.mark.parametrize("figure", sorted(LATER))
def test_they_add_up_whatever_the_kernel_says(figure: str) -> None:
    for n in (0, 1, 4096, 9999):
        made = memory_balance(trace({**LATER, figure: n}).load(), 1)
        assert sum_of(made) == made.board


def section(profile: Profile, selector: str = "peak") -> List[str]:
    lines = list(write(profile, View(selector, 1.0, "stack", 70, None, None)))
    return section_of(lines, "System memory")


def test_the_report_has_them() -> None:
    assert section(trace(LATER).load()) == [
        "--- System memory: all 4.00 GiB, at 10 ms --------------------------------------",
        "Pages were sampled when the process held 73 % of its peak.",
        "used before the run          1000 MiB   24.4 %   the system and other programs",
        "this process                  300 MiB    7.3 %   by owner:",
        "  cudnn                       100 MiB    2.4 %",
        "  lib                         100 MiB    2.4 %",
        "  app                        96.0 MiB    2.3 %",
        "  1 smaller owner            4.00 MiB    0.1 %",
        "allocated, never written    -33.0 MiB   -0.8 %   taken away: it has no pages",
        "free inside malloc           48.0 MiB    1.2 %",
        "profiler overhead            80.0 MiB    2.0 %   the recorder itself",
        "unexplained                  5.00 MiB    0.1 %",
        "freed by others since       -4.00 MiB   -0.1 %",
        "available                    2.64 GiB   65.9 %   MemAvailable",
        "total                        4.00 GiB  100.0 %",
    ]


def test_a_chosen_snapshot_has_its_own() -> None:
    assert section(trace(LATER).load(), "2")[1].startswith("used before the run")


def test_what_is_unaccounted_is_doubted_beyond_a_twentieth() -> None:
    at_limit = {**LATER, "resident-valgrind": 65}  # 20 of 400
    assert not memory_balance(trace(at_limit).load(), 1).is_off
    beyond = section(trace({**LATER, "resident-valgrind": 64}).load())
    assert any(line.startswith("21.0 MiB is unexplained, more than 5 %") for line in beyond)


def test_little_is_never_doubted() -> None:
    made = memory_balance(trace(LATER).load(), 1)
    small = made._replace(
        elsewhere=0, unaccounted=MIB, before=made.board - made.free - 2 * MIB
    )  # of a process of 2 MiB
    assert small.process == 2 * MIB and not small.is_off
    assert small._replace(unaccounted=MIB + 1).is_off


def test_a_negative_elsewhere_names_what_is_outside_of_the_process() -> None:
    text = " ".join(section(trace({**LATER, "mem-available": 2800}).load()))
    assert "Others use 44.0 MiB less than at the start. Or the kernel does not count 100 MiB of device memory" in text
    alone = " ".join(section(trace({**LATER, "mem-available": 2900}, "discrete").load()))
    assert "less than at the start." in alone and "Or the kernel" not in alone


def test_a_row_that_can_be_negative_has_a_name_to_take_away_by() -> None:
    made = memory_balance(trace(LATER).load(), 1)
    for row in BALANCE:
        if row.field not in ("allocators", "valgrind", "free"):  # sums of pages, or never less than none
            less, more = (made._replace(**{row.field: n}) for n in (-MIB, MIB))
            # What is never more than none is known by one name in all runs.
            assert row.named(more) == row.name and (row.named(more) != row.named(less)) == (row.field != "untouched")


@pytest.mark.parametrize("in_memory", (110, 62, 61, 20))
def test_what_is_missing_of_small_blocks_was_not_touched(in_memory: int) -> None:
    plain, made = (memory_balance(trace({**LATER, "resident-heap": n}).load(), 1) for n in (110, in_memory))
    # Of 92 asked for 30 are known to be without pages.
    assert made.allocators == max(0, in_memory - 62) * MIB
    assert made.untouched == plain.untouched - max(0, 62 - in_memory) * MIB
    assert sum_of(made) == made.board


def test_of_moments_as_full_and_as_written_the_one_nearest_to_the_peak_is_told() -> None:
    """What was not touched at one may have been written to by the next, without a byte of difference in the ledger."""
    made = Trace(memory="unified", **{"option.pages": "yes"})
    heap = made.account("heap", "app", ["make (a.c:1)"])
    made.lines += figures(0, AT_START)
    made.snapshot(0, "start")
    for time, (held, untouched) in {10: (400, 390), 20: (396, 60), 30: (390, 40), 40: (300, 0)}.items():
        made.lines += figures(time, {**LATER, "custom-blocks": 0, "blocks-in-mappings": 0, "resident-blocks": 0})
        made.lines += figures(
            time, {"resident-heap": held - untouched, "heap-untouched": untouched, "resident": held - untouched + 200}
        )
        made.snapshot(
            time, "time", {heap: (held * MIB, 1)}, {"total": (32, {heap: (404 * MIB, 2)})} if time == 40 else None
        )
    profile = made.load()
    assert fullest(profile, 0) == 2 and fullest(profile, 32) == 3
    assert memory_balance(profile, 3).untouched == -40 * MIB
    assert any(line.startswith("allocated, never written    -40.0 MiB") for line in section(profile))


def test_what_is_elsewhere_is_doubted_and_nvmap_told() -> None:
    made = trace({**LATER, "mem-available": 2700, "nvmap-used": 150})
    made.lines.insert(made.lines.index(f"y 0 mem-total {4096 * MIB}"), f"y 0 nvmap-used {10 * MIB}")
    text = " ".join(section(made.load()))
    assert "Others use 56.0 MiB more than at the start: " in text
    assert "NvMap's use has changed by +140 MiB" in text


def test_a_gpus_own_memory_has_books_of_its_own() -> None:
    made = trace(LATER, "discrete")
    for time, (free, held) in {4: (7000, 100), 6: (6500, 550), 8: (6990, 120)}.items():
        made.lines += figures(time, {"device-total": 8192, "device-free": free, "device-ledger": held})
    profile = made.load()
    books_of_device = device_balance(profile)
    assert books_of_device is not None
    assert [n // MIB for n in books_of_device[1:]] == [8192, 1092, 550, 50, 6500]
    lines = list(write(profile, View("peak", 1.0, "stack", 70, None, None)))
    start = next(i for i, line in enumerate(lines) if "GPU memory: all 8.00 GiB, at 6 ms" in line)
    assert lines[start + 3] == "unexplained, since then      50.0 MiB    0.6 %   the driver, other programs"
    assert device_balance(trace(LATER).load()) is None


def test_they_have_budgets() -> None:
    meter = Meter(trace(LATER).load())
    names = ("peak.process", "peak.valgrind", "peak.untouched", "peak.allocators", "end.unaccounted", "last.elsewhere")
    assert [meter.value(name).number // MIB for name in names] == [400, 80, 33, 48, 5, 4]
    assert meter.value("peak.unaccounted").is_bytes


def test_without_samples_there_is_nothing() -> None:
    profile = trace({"mem-available": 2760}).load()
    with pytest.raises(BudgetError, match="no sample of the process's pages"):
        Meter(profile).value("peak.unaccounted")
    assert sampled(profile) == [] and fullest(profile, 0) is None
    assert section(profile) == []


def test_a_moment_between_two_samples_of_pages_says_so(tmp_path: Path) -> None:
    """A mark does not sample pages again when they were sampled shortly before."""
    traced = trace(LATER)
    file = traced.account("file", "lib", ["mapped (libm.so)"])
    traced.mark(200, "loaded")
    traced.snapshot(200, "mark", {file: (5 * MIB, 1)})
    path = traced.save(tmp_path)
    sampled_at = max(traced.load().system["resident"][0])
    done = jm_print("--snapshot=loaded", path)
    assert f"Pages of files and mappings are those of {sampled_at} ms, when they were sampled last." in " ".join(
        done.out.split()
    )
    assert "when they were sampled last" not in jm_print("--snapshot=2", path).out
