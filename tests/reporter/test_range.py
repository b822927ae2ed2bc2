# SPDX-License-Identifier: GPL-2.0-or-later
"""Ranges: the difference of two moments, against a run of which each allocation is known; and the options that ask for one."""

import json
import random
import re
from pathlib import Path
from typing import List, Tuple

import pytest

from jmassif.analysis.moments import SelectionError
from jmassif.analysis.range_diff import Change, between
from jmassif.reader.builder import load_file
from tests.reporter.commands import jm_print
from tests.reporter.traces import Trace, small_training_run


@pytest.mark.parametrize("seed", range(6))
def test_a_range_is_the_second_moment_minus_the_first_and_the_allocations_in_between(seed: int) -> None:
    # Given a random run that counts itself what each place holds and has ever allocated, at each snapshot,
    numbers = random.Random(seed)
    trace = Trace(time_unit="ms", memory="unified")
    places = [
        trace.account(kind, "app", [f"f{place} (a.c:{place})"]) for place, kind in enumerate(("heap", "heap", "device"))
    ]
    live: List[Tuple[int, int]] = []
    totals = {place: [0, 0] for place in places}
    taken = []
    for step in range(300):
        if numbers.random() < 0.45 and live:
            live.pop(numbers.randrange(len(live)))
        else:
            place, size = numbers.choice(places), numbers.randrange(1, 5000)
            live.append((place, size))
            totals[place][0] += size
            totals[place][1] += 1
        if step % 30 == 29:
            held = {place: [size for at, size in live if at == place] for place in places}
            rows = {place: (sum(held[place]), len(held[place]), *totals[place], 0) for place in places}
            trace.snapshot(step, "time", rows)
            taken.append(rows)
    profile = trace.load()
    # when a range from one snapshot to another is asked for,
    first, second = sorted(numbers.sample(range(len(taken)), 2))
    found = between(profile, str(first + 1), str(second + 1))
    # then each place has what it has counted.
    for place in places:
        before, after = taken[first][place], taken[second][place]
        changes = [after[n] - before[n] for n in range(4)]
        expected = [
            Change(
                before[n],
                after[n],
                max(0, changes[n]),
                max(0, -changes[n]),
                changes[n + 2],
                changes[n + 2] - changes[n],
            )
            for n in (0, 1)
        ]
        row = found.places[place]
        assert [row.on(""), row.blocks, row.temporaries] == [*expected, 0]
    total = found.total.on("")
    assert total.before + total.allocated - total.freed == total.after
    assert total.after - total.before == total.new - total.gone


def test_json_and_massif_of_both_moments_differ_by_the_range(tmp_path: Path) -> None:
    path = small_training_run().save(tmp_path)
    held = []
    for snapshot in ("1", "2"):
        report = json.loads(jm_print("--format=json", f"--snapshot={snapshot}", path).out)
        columns = report["accounts"]["columns"]
        rows = [dict(zip(columns, row)) for row in report["accounts"]["rows"]]
        held.append(sum(row["live_bytes"] for row in rows))
        massif = jm_print("--format=massif", f"--snapshot={snapshot}", path).out
        sums = re.findall(
            rf"snapshot={int(snapshot) - 1}\n.*\n.*\nmem_heap_B=(\d+)\nmem_heap_extra_B=(\d+)\nmem_stacks_B=(\d+)",
            massif,
        )
        assert sum(map(int, sums[0])) == held[-1]
    change = between(load_file(str(path)), "1", "2").total.on("")
    assert (change.before, change.after) == tuple(held) and change.new


def test_a_peak_between_snapshots_is_exact_in_what_was_held_and_says_that_allocations_are_not() -> None:
    trace = Trace(time_unit="ms", memory="unified")
    place = trace.account("heap", "app", ["f (a.c:1)"])
    trace.snapshot(1, "time", {place: (100, 1)})
    trace.snapshot(9, "time", {place: (50, 1, 700, 7, 0)}, {"total": (5, {place: (400, 4)})})
    found = between(trace.load(), "1", "peak")
    assert not found.is_exact and found.places[place].host == Change(100, 400, 300, 0, 300, 0)


def test_a_tensor_whose_role_changes_is_neither_new_nor_freed() -> None:
    # Given two tensors from before the range, of which one turns out to be a gradient in it and one is freed, and one that is made
    trace = Trace(time_unit="ms", memory="unified")
    stack = ["empty (t.c:1)", "main (a.c:9)"]
    other = trace.account("device", "tensor", stack, "temporary")
    gradient = trace.account("device", "tensor", stack, "gradient")
    trace.block(1, 0x1000, 700, other)
    trace.block(1, 0x3000, 200, other)
    trace.snapshot(2, "time", {other: (900, 2)})
    trace.block_end(3, 0x1000, other)
    trace.block(3, 0x1000, 700, gradient)
    trace.block_end(3, 0x3000, other)
    trace.block(4, 0x2000, 300, other)
    trace.snapshot(5, "time", {other: (300, 1, 500, 2, 0), gradient: (700, 1)})  # its total moves with a block
    # Then only the third is allocated in between.
    (change,) = between(trace.load(), "1", "2").places.values()
    assert (change.device, change.blocks) == (Change(900, 1000, 100, 0, 300, 200), Change(2, 2, 0, 0, 1, 1))
    assert not change.temporaries


def test_what_comes_back_to_a_cache_is_no_allocation_beyond_what_it_grew_by() -> None:
    # A cache hands out a part of its segment before the range, and has it back in it: its totals stand still.
    trace = Trace(time_unit="ms", memory="unified")
    cache = trace.account("device", "cache", ["grow (t.c:1)"])
    trace.block(1, 0x1000, 1000, cache)
    trace.snapshot(2, "time", {cache: (600, 1, 1000, 1, 0)})
    trace.snapshot(5, "time", {cache: (1000, 1, 1000, 1, 0)})
    (change,) = between(trace.load(), "1", "2").places.values()
    assert change.device == Change(600, 1000, 400, 0, 400, 0)


# ---- as users ask for it -------------------------------------------------------------------------


def _run(directory: Path) -> Path:
    """From 100 to 200 ms `stays` gets 30 bytes, `goes` frees 1000, and `passes` allocates and frees 500, of which two blocks at once."""
    trace = Trace(time_unit="ms", memory="unified", command="./a.out")
    trace.group("yours", "app")
    stays = trace.account("heap", "app", ["stays (a.c:1)", "main (a.c:9)"])
    goes = trace.account("heap", "app", ["goes (a.c:2)", "main (a.c:9)"])
    passes = trace.account("heap", "app", ["passes (a.c:3)", "main (a.c:9)"])
    trace.mark(100, "loaded")
    trace.snapshot(100, "mark", {stays: (70, 7), goes: (1500, 3)})
    trace.snapshot(200, "time", {stays: (100, 10), goes: (500, 1, 1500, 3, 0), passes: (0, 0, 500, 5, 2)})
    trace.snapshot(400, "exit", {})
    trace.lines.append("Z 400 exit 0")
    return trace.save(directory)


@pytest.mark.parametrize(
    "ends",
    [("1", "2"), ("loaded", "2"), ("25%", "50%"), ("120ms", "0.21s"), ("start", "2"), ("loaded", "last"), ("1", "")],
)
def test_a_range_in_text(tmp_path: Path, ends: Tuple[str, str]) -> None:
    path = _run(tmp_path)
    asked = [f"--from={ends[0]}"] + ([f"--to={ends[1]}"] if ends[1] else [])
    text = jm_print(*asked, path)
    assert (text.status, text.err) == (0, "")
    rows = {
        line.split()[0]: line.split() for line in text.out.splitlines() if line.startswith(("stays", "goes", "passes"))
    }
    assert rows["stays"][2:] == "70 B 30 B - 100 B 30 B - 30".split()
    assert rows["goes"][2:] == "1.46 KiB - 1000 B 500 B - 1000 B 0".split()
    assert rows["passes"][2:] == "- - - - 500 B 500 B 0".split()
    assert "8 blocks allocated, 7 freed, 2 of them temporary" in " ".join(text.out.split())


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        (["--from=2", "--to=1"], "backwards"),
        (["--from=2", "--to=2"], "empty"),
        (["--from=nowhere"], 'no snapshot "nowhere"'),
        (["--from=140%"], 'no snapshot "140%"'),
        (["--from=1", "--snapshot=2"], "--snapshot"),
        (["--from=1", "--by=role"], "--by=role"),
        (["--from=1", "--format=massif"], "--from is not supported by --format=massif"),
        (["--from=1", "--format=json"], "--from is not supported by --format=json"),
    ],
)
def test_what_is_no_range_is_one_line(tmp_path: Path, arguments: List[str], complaint: str) -> None:
    done = jm_print(*arguments, _run(tmp_path))
    assert done.status == 2 and complaint in done.err and done.err.count("\n") == 1 and not done.out


def test_a_trace_without_snapshots_has_no_range() -> None:
    with pytest.raises(SelectionError):
        between(Trace(time_unit="ms").load(), "start", "end")


def _second(directory: Path) -> Path:
    """A run of another process, which holds 25 bytes more from 100 ms on, and has no mark."""
    trace = Trace(time_unit="ms", memory="unified", command="./b.out", pid="12")
    trace.group("yours", "app")
    grows = trace.account("heap", "app", ["grows (b.c:1)"])
    trace.snapshot(50, "time", {grows: (10, 1)})
    trace.snapshot(100, "time", {grows: (35, 2)})
    trace.snapshot(300, "exit", {})
    trace.lines.append("Z 300 exit 0")
    return trace.save(directory)


@pytest.fixture(name="pair")
def _pair(tmp_path: Path) -> List[Path]:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    return [_run(tmp_path / "first"), _second(tmp_path / "second")]


@pytest.mark.parametrize("options", [["--to=50%"], ["--to=end", "--by=owner"], ["--from=25%", "--all"]])
def test_the_range_of_several_traces_is_that_of_each(pair: List[Path], options: List[str]) -> None:
    both, *alone = (jm_print(*options, *traces) for traces in (pair, pair[:1], pair[1:]))
    assert (both.status, both.err) == (0, "")
    lines = both.out.splitlines()
    rulers = [n for n, line in enumerate(lines) if line and set(line) == {"="}]
    titles = ["".join(lines[rulers[n] : rulers[n + 1]]) for n in (0, 2)]
    assert [str(path) in title for path, title in zip(pair, titles)] == [True, True]
    bodies = [lines[rulers[1] + 1 : rulers[2] - 1], lines[rulers[3] + 1 :]]
    assert bodies == [each.out.splitlines() for each in alone]


def test_a_process_that_lacks_the_moment_says_so(pair: List[Path]) -> None:
    done = jm_print("--from=loaded", *pair)
    assert (done.status, done.err) == (0, "")
    assert jm_print("--from=loaded", pair[0]).out in done.out
    assert done.out.splitlines()[-2].startswith('No snapshot "loaded": there are ')


def test_a_moment_that_all_of_several_traces_lack_is_one_line(pair: List[Path]) -> None:
    done = jm_print("--from=nowhere", *pair)
    assert done.status == 2 and not done.out and done.err.count("\n") == 1
    assert f'{pair[0]}: no snapshot "nowhere"' in done.err
