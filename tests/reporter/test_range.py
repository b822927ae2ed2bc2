# SPDX-License-Identifier: GPL-2.0-or-later
"""Ranges: what is told of two moments, against histories of which each block is known; and the options that ask for one."""

import json
import random
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

import pytest

from jmassif.analysis.moments import SelectionError
from jmassif.analysis.range_diff import Flow, between
from jmassif.cli import diff as jm_diff, report as jm_print
from tests.reporter.commands import call
from tests.reporter.traces import Trace


class Block(NamedTuple):
    place: int
    size: int
    born: int
    died: Optional[int]
    address: int
    has_record: bool


class History:
    """A random program: blocks of a few places come and go, and every now and then there is a snapshot."""

    def __init__(self, seed: int, recorded: float) -> None:
        """`recorded`: that share of the blocks has records."""
        numbers = random.Random(seed)
        self.trace = Trace(time_unit="ms", memory="unified")
        self.trace.group("yours", "app")
        self.places = [
            self.trace.account(kind, "app", [f"f{place} (a.c:{place})", "main (a.c:9)"])
            for place, kind in enumerate(("heap", "heap", "device", "heap"), 1)
        ]
        self.blocks: List[Block] = []
        self.snapshots: Dict[int, int] = {}  # number: step
        live: List[int] = []
        totals = {place: [0, 0] for place in self.places}
        peak: Tuple[int, int] = (0, 0)
        for step in range(400):
            if numbers.random() < 0.45 and live:
                index = live.pop(numbers.randrange(len(live)))
                block = self.blocks[index]
                if block.place != self.places[3]:
                    self.blocks[index] = block._replace(died=step)
                    if block.has_record:
                        self.trace.block_end(step, block.address, block.place)
            else:
                place = numbers.choice(self.places)
                size = numbers.choice((64, numbers.randrange(1, 5000)))
                block = Block(place, size, step, None, 4096 * (step + 1), numbers.random() < recorded)
                live.append(len(self.blocks))
                self.blocks.append(block)
                totals[place][0] += size
                totals[place][1] += 1
                if block.has_record:
                    self.trace.block(step, block.address, size, place)
            held = sum(block.size for block in self.blocks if block.died is None)
            peak = max(peak, (held, step))
            if step % 40 == 20 or numbers.random() < 0.01:
                self._snapshot(step, totals)
        self.peak = peak[1]
        differences = {place: self.held(place, self.peak) for place in self.places}
        self._snapshot(400, totals, {"total": (self.peak, differences)})

    def held(self, place: int, step: int) -> Tuple[int, int]:
        live = [b.size for b in self.blocks if b.place == place and b.born <= step and not (b.died or 1000) <= step]
        return sum(live), len(live)

    def _snapshot(
        self,
        step: int,
        totals: Dict[int, List[int]],
        peaks: Optional[Dict[str, Tuple[int, Dict[int, Tuple[int, int]]]]] = None,
    ) -> None:
        changes = {place: self.held(place, step) + (totals[place][0], totals[place][1], 0) for place in self.places}
        self.trace.snapshot(step, "time", changes, peaks)
        self.snapshots[len(self.snapshots) + 1] = step

    def truth(self, place: int, begin: int, end: int) -> Tuple[int, int, int]:
        """Bytes that are new, freed and passing."""
        new = freed = passing = 0
        for block in self.blocks:
            died = 1000 if block.died is None else block.died
            if block.place != place:
                continue
            if block.born <= begin:
                freed += block.size if begin < died <= end else 0
            elif block.born <= end:
                if died <= end:
                    passing += block.size
                else:
                    new += block.size
        return new, freed, passing


def assert_holds(flow: Flow, truth: Tuple[int, int, int]) -> None:
    new, freed, passing = truth
    assert flow.new <= new <= flow.new + flow.uncertain
    assert flow.freed <= freed <= flow.freed + flow.uncertain
    assert flow.passing <= passing <= flow.passing + flow.uncertain + flow.untold
    # The three are off by the same number of bytes.
    assert new - flow.new == freed - flow.freed


@pytest.mark.parametrize("seed", range(12))
def test_what_is_told_holds_the_truth_of_a_random_history(seed: int) -> None:
    recorded = (0.5, 0.0, 1.0)[seed % 3]
    history = History(seed, recorded)
    profile = history.trace.load()
    numbers = sorted(history.snapshots)
    choice = random.Random(seed)
    for _ in range(8):
        begin, end = sorted(choice.sample(numbers, 2))
        found = between(profile, str(begin), str(end)).flows
        for place in history.places:
            flow = found.get(place, (Flow(), Flow()))[0]
            assert_holds(flow, history.truth(place, history.snapshots[begin], history.snapshots[end]))
            assert not flow.untold
            if recorded == 1.0:
                assert not flow.uncertain


@pytest.mark.parametrize("seed", range(12))
def test_an_end_that_is_a_peak_has_bounds_that_hold_the_truth(seed: int) -> None:
    recorded = (0.5, 0.0, 1.0)[seed % 3]
    history = History(seed, recorded)
    profile = history.trace.load()
    for begin, end, steps in (
        ("1", "peak", (history.snapshots[1], history.peak)),
        ("peak", "last", (history.peak, 400)),
    ):
        if steps[0] >= steps[1]:
            continue
        found = between(profile, begin, end).flows
        for place in history.places:
            assert_holds(found.get(place, (Flow(), Flow()))[0], history.truth(place, *steps))


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
    trace.snapshot(5, "time", {other: (300, 1, 500, 2, 0), gradient: (700, 1)})
    # Then only the third is new.
    found = between(trace.load(), "1", "2")
    assert list(found.flows.values()) == [(Flow(900, 1000, 300, 200, 0), Flow(2, 2, 1, 1, 0))]


def test_what_comes_back_to_a_cache_is_no_allocation_beyond_what_it_grew_by() -> None:
    # A cache hands out a part of its segment before the range, and has it back in it: its totals stand still.
    trace = Trace(time_unit="ms", memory="unified")
    cache = trace.account("device", "cache", ["grow (t.c:1)"])
    trace.block(1, 0x1000, 1000, cache)
    trace.snapshot(2, "time", {cache: (600, 1, 1000, 1, 0)})
    trace.snapshot(5, "time", {cache: (1000, 1, 1000, 1, 0)})
    (flows,) = between(trace.load(), "1", "2").flows.values()
    assert flows[0] == Flow(600, 1000, 400)


# ---- as users ask for it -------------------------------------------------------------------------


def _run(directory: Path) -> Path:
    """30 bytes of what stays are new from 100 to 200 ms, 1000 of what goes are freed, 500 pass."""
    trace = Trace(time_unit="ms", memory="unified", command="./a.out")
    trace.group("yours", "app")
    stays = trace.account("heap", "app", ["stays (a.c:1)", "main (a.c:9)"])
    goes = trace.account("heap", "app", ["goes (a.c:2)", "main (a.c:9)"])
    passes = trace.account("heap", "app", ["passes (a.c:3)", "main (a.c:9)"])
    trace.mark(100, "loaded")
    trace.snapshot(100, "mark", {stays: (70, 7), goes: (1500, 3)})
    trace.snapshot(200, "time", {stays: (100, 10), goes: (500, 1, 1500, 3, 0), passes: (0, 0, 500, 5, 0)})
    trace.snapshot(400, "exit", {})
    trace.lines.append("Z 400 exit 0")
    return trace.save(directory)


@pytest.mark.parametrize(
    "ends",
    [("1", "2"), ("loaded", "2"), ("25%", "50%"), ("120ms", "0.21s"), ("start", "2"), ("loaded", "last"), ("1", "")],
)
def test_a_range_in_text_and_for_programs(tmp_path: Path, ends: Tuple[str, str]) -> None:
    path = _run(tmp_path)
    asked = [f"--from={ends[0]}"] + ([f"--to={ends[1]}"] if ends[1] else [])
    text = call(jm_print.main, *asked, path)
    assert (text.status, text.err) == (0, "")
    rows = {
        line.split()[0]: line.split() for line in text.out.splitlines() if line.startswith(("stays", "goes", "passes"))
    }
    assert rows["stays"][2:] == ["70", "B", "30", "B", "-", "-", "100", "B", "30", "3"]
    assert rows["goes"][2:] == ["1.46", "KiB", "-", "1000", "B", "-", "500", "B", "0", "0"]
    assert rows["passes"][2:] == ["-", "-", "-", "500", "B", "-", "0", "0"]
    assert "exact to the byte" in text.out
    told = json.loads(call(jm_print.main, "--format=json", *asked, path).out)["range"]
    places = [dict(zip(told["places"]["columns"], row)) for row in told["places"]["rows"]]
    assert [(row["new_bytes"], row["freed_bytes"], row["passing_bytes"]) for row in places] == [
        (30, 0, 0),
        (0, 1000, 0),
        (0, 0, 500),
    ]


@pytest.mark.parametrize(
    "value, line",
    [
        ("new-bytes", "main (a.c:9);stays (a.c:1) 30"),
        ("freed-bytes", "main (a.c:9);goes (a.c:2) 1000"),
        ("passing-blocks", "main (a.c:9);passes (a.c:3) 5"),
    ],
)
def test_a_flame_graph_of_a_range(tmp_path: Path, value: str, line: str) -> None:
    path = _run(tmp_path)
    done = call(jm_print.main, "--format=folded", "--from=1", "--to=2", f"--value={value}", path)
    assert done.out.splitlines() == [line]
    told = json.loads(call(jm_print.main, "--format=speedscope", "--from=1", "--to=2", f"--value={value}", path).out)
    assert told["profiles"][0]["weights"] == [int(line.split()[-1])]


def test_what_is_new_in_two_runs_is_compared_and_both_ends_of_one(tmp_path: Path) -> None:
    path = _run(tmp_path)
    (tmp_path / "b").mkdir()
    other = _run(tmp_path / "b")
    other.write_text(
        other.read_text()
        .replace("c 1 100 10", "c 1 145 11")
        .replace("S 2 200 time 600", "S 2 200 time 645")
        .replace("S 3 400 exit 600", "S 3 400 exit 645")
    )
    two = json.loads(call(jm_diff.main, "--format=json", "--by=owner", "--from=1", "--to=2", path, other).out)
    cells = two["views"][0]["total"]["cells"]
    assert [cell["host"]["value"] if isinstance(cell["host"], dict) else cell["host"] for cell in cells] == [30, 75]
    one = json.loads(call(jm_diff.main, "--format=json", "--by=owner", "--from=1", "--to=2", path).out)
    cells = one["views"][0]["total"]["cells"]
    assert [cell["host"]["value"] if isinstance(cell["host"], dict) else cell["host"] for cell in cells] == [1570, 600]


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        (["--from=2", "--to=1"], "backwards"),
        (["--from=2", "--to=2"], "empty"),
        (["--from=nowhere"], 'no snapshot "nowhere"'),
        (["--from=140%"], 'no snapshot "140%"'),
        (["--from=1", "--snapshot=2"], "--snapshot"),
        (["--from=1", "--by=role"], "--by=role"),
        (["--from=1", "--format=massif"], "--from means nothing to --format=massif"),
        (["--from=1", "--format=folded", "--value=live-bytes"], "--value=live-bytes"),
        (["--format=folded", "--value=new-bytes"], "--from and --to"),
    ],
)
def test_what_is_no_range_is_one_line(tmp_path: Path, arguments: List[str], complaint: str) -> None:
    done = call(jm_print.main, *arguments, _run(tmp_path))
    assert done.status == 2 and complaint in done.err and done.err.count("\n") == 1 and not done.out


def test_a_trace_without_snapshots_has_no_range() -> None:
    with pytest.raises(SelectionError):
        between(Trace(time_unit="ms").load(), "start", "end")
