# SPDX-License-Identifier: GPL-2.0-or-later
"""The ladder from another tool's figure to the framework's own adds up, exactly and as it is shown."""

import random
import re
from typing import Dict, List

import pytest

from jmassif.analysis.ladder import LESS, PLUS, SHOWN, SUM, Ladder, Rung, ladders
from jmassif.analysis.moments import select
from jmassif.analysis.summary import build_report, moment_of
from jmassif.attribution.names import Names
from jmassif.model.run import Profile
from jmassif.render.graph import Point, graph
from jmassif.render.ladder import ladder_section, rows_of, shown_numbers
from jmassif.render.summary import findings
from jmassif.render.view import View
from tests.reporter.traces import Trace, small_training_run

MIB = 1 << 20


def adds_up(rungs: List[Rung], numbers: List[int]) -> bool:
    level = None
    for rung, number in zip(rungs, numbers):
        if rung.role in (LESS, PLUS):
            assert level is not None, "a step stands above the first figure"
            level += number if rung.role == PLUS else -number
        elif level is not None and level != number:
            return False
        else:
            level = number
    return True


def test_what_is_shown_adds_up_whatever_the_bytes() -> None:
    dice = random.Random(28)
    for _ in range(500):
        steps = [
            Rung("before", dice.choice((LESS, PLUS)), dice.randrange(1 << dice.randrange(1, 34))) for _ in range(9)
        ]
        level = sum(rung.bytes for rung in steps if rung.role == LESS) + dice.randrange(1 << 34)
        rungs = [Rung("jtop", SHOWN, level)]
        for number, rung in enumerate(steps):
            level += rung.bytes if rung.role == PLUS else -rung.bytes
            rungs += [rung] + ([Rung("program", SUM, level)] if number == 4 else [])
        rungs.append(Rung("allocated", SHOWN, level))
        assert adds_up(rungs, [rung.bytes for rung in rungs])
        assert adds_up(rungs, shown_numbers(Ladder("", 0, 0, rungs, {})))


# Of 4096 MiB, 600 were in use at the start, 20 of them the process's own; then 1,900, and 250 are its file pages.
AT_START = {
    "mem-total": 4096,
    "mem-available": 3300,
    "mem-free": 3000,
    "buffers": 96,
    "cached": 380,
    "slab-reclaimable": 20,
    "process-resident": 30,
    "process-files": 10,
}
AT_PEAK = {
    "mem-available": 2000,
    "mem-free": 1700,
    "process-resident": 700,
    "process-files": 250,
    "resident": 700,
    "resident-heap": 390,
    "resident-valgrind": 60,
    "heap-untouched": 50,
}


def board_trace(memory: str = "unified", cache: int = 92, tensors: int = 500) -> Trace:
    """A board's program with tensors, a workspace, a cache, a context, pages of a library, and memory it never wrote to."""
    trace = Trace(memory=memory, board="a board", pytorch="2.6", **{"option.pages": "yes"})
    for group, owners in (
        ("yours", "tensor data"),
        ("cached", "cache"),
        ("libraries", "workspace lib"),
        ("runtime", "context"),
    ):
        trace.group(group, *owners.split())
    held = {
        ("heap", "data"): 440,
        ("file", "lib"): 250,
        ("device", "tensor"): tensors,
        ("device", "workspace"): 8,
        ("device", "cache"): cache,
        ("driver", "context"): 60,
    }
    accounts = {trace.account(*key): (n * MIB, 1) for key, n in held.items()}
    trace.lines += [f"y 0 {figure} {n * MIB}" for figure, n in AT_START.items()]
    trace.snapshot(0, "start")
    trace.lines += [f"y 10 {figure} {n * MIB}" for figure, n in AT_PEAK.items()]
    trace.snapshot(10, "time", accounts, {"total": (10, {})})
    return trace


def board_run(memory: str = "unified") -> Profile:
    return board_trace(memory).load()


def rows(ladder: Ladder) -> Dict[str, int]:
    """By key: MiB, negative where they are taken away."""
    return {rung.key: (-1 if rung.role == LESS else 1) * rung.bytes // MIB for rung in ladder.rungs}


def test_of_a_board_it_leads_from_jtop_to_torch() -> None:
    profile = board_run()
    (ladder,) = ladders(profile, select(profile, "peak"))
    assert rows(ladder) == {
        "jtop": 4096 - 1700 - 96 - 380 - 20,
        "before": -(4096 - 3000 - 96 - 380 - 20 - 20),
        "others": -(1900 - 580 + 250 + 50 - 1350),
        "files": 250,  # jtop counts them as cache
        "unwritten": 50,
        "program": 440 + 250 + 500 + 8 + 92 + 60,
        "runtime": -60,
        "libraries": -250,
        "cache": -92,
        "own": -440,
        "allocated": 508,
    }
    assert [rung.key for rung in ladder.rungs if rung.is_about] == ["others"]
    assert ladder.beside == {"resident": 700 * MIB, "profiler": 60 * MIB, "reserved": 600 * MIB}
    assert dict(ladder.rungs[-1].parts) == {"tensor": 500 * MIB, "workspace": 8 * MIB}


def test_of_a_pool_without_a_framework_s_tensors_no_count_is_given() -> None:
    """Other owners have what the pool has given out, so the count would be the cache's bytes alone."""
    trace = Trace()
    owners = {trace.account("device", owner): (90 * MIB, 1) for owner in ("cache", "app")}
    trace.snapshot(10, "time", owners, {"total": (10, {})})
    profile = trace.load()
    (ladder,) = ladders(profile, select(profile, "peak"))
    assert "reserved" not in ladder.beside


def test_memory_that_the_kernels_figures_came_too_early_for_is_no_other_programs() -> None:
    profile = board_trace(tensors=1800).load()
    lines = ladder_section(build_report(profile, select(profile, "peak")))
    (late,) = [line for line in lines if "(about)" in line]
    assert late.split()[:-1] == "+ allocated since that figure was read (about) 1,080".split()


def test_memory_of_between_two_samples_is_said_in_words() -> None:
    profile = board_run("discrete")
    lines = ladder_section(build_report(profile, select(profile, "peak")))
    assert any("- freed since it was read, or unexplained (about)" in line for line in lines)
    point = [Point(0, 1 << 20, 0, 1 << 20), Point(9, 1 << 20, 0, 4 << 20)]
    assert (
        " short peaks, over before the next record"
        in graph(point, False, "ms", View(None, 1, "stack", 40, None, None))[-1]
    )


def test_of_a_workstation_it_leads_from_htop_to_the_programs_own_code() -> None:
    profile = board_run("discrete")
    device, host = ladders(profile, select(profile, "peak"))
    assert rows(device) == {"program": 660, "runtime": -60, "cache": -92, "allocated": 508}
    # 700 resident, 60 of it the profiler's; the ledger's 690 have 50 that are not resident.
    assert rows(host) == {
        "htop": 700, "profiler": -60, "unexplained": 0, "unwritten": 50, "program": 690, "libraries": -250, "own-code": 440,
    }  # fmt: skip


@pytest.mark.parametrize(
    "highest, later, top",
    [
        (735, 700, {"highest": 735, "profiler": -60, "unexplained": 0, "unwritten": 15, "program": 690}),
        (755, 700, {"highest": 755, "profiler": -60, "unexplained": -5, "program": 690}),
        (800, 700, {"htop": 700, "unwritten": 50}),  # of another moment: more than was allocated at the peak
        (800, 795, {"htop": 700, "unwritten": 50}),
    ],
)
def test_pages_that_were_written_to_after_the_peak_was_made_count(
    highest: int, later: int, top: Dict[str, int]
) -> None:
    trace = board_trace("discrete")
    trace.lines += [f"y 20 resident {later * MIB}", f"y 20 process-highest {highest * MIB}"]
    profile = trace.load()
    *_, host = ladders(profile, select(profile, "peak"))
    assert {key: rows(host)[key] for key in top} == top and ("unwritten" in rows(host)) == ("unwritten" in top)
    assert adds_up(host.rungs, [rung.bytes for rung in host.rungs])


def test_what_was_written_by_the_next_sample_of_pages_is_not_called_never_written() -> None:
    trace = board_trace("discrete")
    # Held until 15; by then all of it was written to. More is resident at 30, of something else.
    trace.lines += [
        f"y 15 process-highest {750 * MIB}",
        f"y 20 resident {400 * MIB}",
        f"y 20 process-resident {400 * MIB}",
    ]
    trace.lines += [f"y 30 resident {740 * MIB}", f"y 30 process-highest {800 * MIB}"]
    profile = trace.load()
    *_, host = ladders(profile, select(profile, "peak"))
    assert list(rows(host).items())[:4] == [("highest", 750), ("profiler", -60), ("unexplained", 0), ("program", 690)]


@pytest.mark.parametrize("highest, unused", [(700, 0), (720, -20), (900, -30)])
def test_memory_that_was_free_inside_malloc_before_the_peak_used_it_is_not_taken_away(
    highest: int, unused: int
) -> None:
    trace = board_trace("discrete")
    trace.lines += [f"y 10 resident-heap {420 * MIB}", f"y 10 process-highest {highest * MIB}"]
    profile = trace.load()
    *_, host = ladders(profile, select(profile, "peak"))
    assert rows(host).get("unused", 0) == unused and rows(host)["unexplained"] == -unused
    assert adds_up(host.rungs, [rung.bytes for rung in host.rungs])


MORE_RESIDENT = "Resident memory is highest at 20 ms: 800 MiB, "


@pytest.mark.parametrize(
    "heap, text",
    [
        (390, "100 MiB more than at this peak. Pages are sampled: a short peak is missed."),
        (440, "100 MiB more than at this peak. Pages are sampled: a short peak is missed."),
        (540, "150 MiB of it free inside malloc. malloc_trim(0), after it was freed, can return it."),
    ],
)
def test_resident_memory_beyond_the_peak_is_explained_by_what_is_large_enough(heap: int, text: str) -> None:
    trace = Trace(memory="discrete", recorder="native", **{"option.pages": "yes"})
    held = {trace.account("heap", "data"): (440 * MIB, 1), trace.account("file", "lib"): (250 * MIB, 1)}
    trace.lines += [f"y 0 {figure} {n * MIB}" for figure, n in AT_START.items()]
    trace.snapshot(0, "start")
    trace.lines += [f"y 10 {figure} {n * MIB}" for figure, n in {**AT_PEAK, "resident-heap": heap}.items()]
    trace.snapshot(10, "time", held, {"host": (10, {})})
    trace.lines.append(f"y 20 process-highest {800 * MIB}")
    profile = trace.load()
    found = findings(build_report(profile, moment_of(profile, Names(profile), "")))
    assert [each.text for each in found if each.key == "resident"] == [MORE_RESIDENT + text]


def test_an_owner_without_a_group_is_taken_away_too() -> None:
    trace = Trace()
    trace.group("yours", "app")
    held = {trace.account("heap", "app"): (6 * MIB, 1), trace.account("heap", "stranger"): (2 * MIB, 1)}
    trace.snapshot(1, "time", held, {"total": (1, {})})
    profile = trace.load()
    (ladder,) = ladders(profile, select(profile, "peak"))
    assert rows(ladder) == {"program": 8, "other": -2, "own-code": 6}


@pytest.mark.parametrize("moment", ["peak", "end", "start"])
def test_the_lower_part_is_the_ledgers(moment: str) -> None:
    profile = small_training_run().load()
    chosen = select(profile, moment)
    for ladder in ladders(profile, chosen):
        assert adds_up(ladder.rungs, [rung.bytes for rung in ladder.rungs])
        program = next(rung for rung in ladder.rungs if rung.key == "program")
        assert program.bytes == sum(n_bytes for n_bytes, _ in chosen.composition.values())


def test_the_parts_of_a_rung_add_up_to_it() -> None:
    parts = [("python", 86 * MIB // 10), ("cublas", 46 * MIB // 10), ("cudnn", 36 * MIB // 10)]  # 16.8 in all
    libraries = Rung("libraries", LESS, sum(n for _, n in parts), parts=parts)
    total = Rung("program", SHOWN, 100 * MIB)
    (_, row, _) = rows_of(
        True, Ladder("", 0, 0, [total, libraries, Rung("own-code", SUM, 100 * MIB - libraries.bytes)], {})
    ).rows
    numbers = [int(number) for number in re.findall(r" (\d+)", row.label.partition(":")[2])]
    assert row.number == sum(numbers) and len(numbers) == 3


def test_no_line_is_wider_than_a_terminal_and_each_has_a_number() -> None:
    profile = small_training_run().load()
    lines = [line for line in ladder_section(build_report(profile, select(profile, "peak"))) if line.startswith("  ")]
    assert lines and all(len(line) <= 80 and re.search(r" [0-9,]+  [ .#]*$", line + " ") for line in lines)
