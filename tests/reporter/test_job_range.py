# SPDX-License-Identifier: GPL-2.0-or-later
"""Ranges over several processes."""

import json
from pathlib import Path
from typing import Any, Dict, List, Set, Tuple

import pytest

from jmassif.analysis.moments import SelectionError
from jmassif.analysis.processes import join
from jmassif.analysis.range_diff import between
from tests.reporter.commands import Done, jm_print, validator
from tests.reporter.test_processes import ends, trace_of


def _family(directory: Path) -> List[Path]:
    """A process with a mark at 100 and at 200 ms, and two workers: one forked at 50, one at 150 ms, which ends at 180.

    In between the first gets 300 bytes and frees 1000; the worker frees 20 of its own 70 bytes and gets 5; the other allocates and loses 900.
    """
    root = trace_of(1)
    held = [root.account("heap", "app", [f"{name} (a.c:{line})"]) for line, name in enumerate(("load", "work"), 1)]
    load, work = held
    root.snapshot(0, "start", {})
    root.snapshot(40, "time", {load: (5000, 5)})
    root.mark(100, "first")
    root.snapshot(100, "mark", {})
    root.mark(200, "second")
    root.snapshot(200, "mark", {load: (4000, 4, 5000, 5, 0), work: (300, 3)})
    root.snapshot(250, "exit", {load: (0, 0, 5000, 5, 0), work: (0, 0, 300, 3, 0)})
    early, late = trace_of(2, forked_from="1"), trace_of(3, forked_from="1")
    for trace, begin in ((early, 50), (late, 150)):
        for line, name in enumerate(("load", "work"), 1):
            trace.account("heap", "app", [f"{name} (a.c:{line})"])
        trace.snapshot(begin, "fork", {load: (5000, 5)})
    early.snapshot(60, "time", {load: (2000, 2, 5000, 5, 0), work: (70, 7)})
    early.mark(190, "second")
    early.snapshot(190, "mark", {load: (1000, 1, 5000, 5, 0), work: (50, 5, 70, 7, 0)})
    early.snapshot(195, "time", {work: (55, 6, 75, 8, 0)})
    early.snapshot(240, "exit", {})
    late.snapshot(170, "time", {work: (900, 9)})
    late.snapshot(180, "exit", {work: (900, 9)})
    files = []
    for number, (trace, end) in enumerate(((root, 250), (early, 240), (late, 180)), 1):
        files.append(directory / f"jmassif.out.{number}")
        files[-1].write_text("\n".join(ends(trace, end).lines) + "\n")
    return files


def _print(directory: Path, *options: str) -> Done:
    return jm_print(*options, *_family(directory))


def _rows(text: str) -> Dict[str, List[str]]:
    """By its first word: a row of a table."""
    return {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}


def test_text_has_figures_of_each_process_and_their_sum(tmp_path: Path) -> None:
    done = _print(tmp_path, "--from=first", "--to=second")
    assert (done.status, done.err) == (0, "")
    rows = _rows(done.out)
    assert rows["1"][3:] == "4.88 KiB 300 B 1000 B 4.20 KiB 300 B 1000 B 300".split()
    # 20 of its own and 5 that came; whatever it does with what it inherited is nothing of its own.
    assert rows["2"][4:] == "70 B - 15 B 55 B 5 B 20 B 0".split()
    assert rows["3"][4:] == "- - - - 900 B 900 B 0".split()
    assert rows["total"][1:] == "4.95 KiB 300 B 1015 B 4.25 KiB 1.18 KiB 1.88 KiB 300".split()
    assert rows["load"][2:8] == "4.88 KiB - 1000 B 3.91".split()
    assert "Inherited memory counts with the parent alone" in " ".join(done.out.split())


@pytest.mark.parametrize(
    "ends_, moments",
    [
        (("first", "second"), ("100 ms", "200 ms")),
        (("40%", "0.2s"), ("100 ms", "200 ms")),
        (("start", "end"), ("0 ms", "100 ms")),
        (("first", "last"), ("100 ms", "250 ms")),
    ],
)
def test_ends_are_on_the_clock_of_all_processes(
    tmp_path: Path, ends_: Tuple[str, str], moments: Tuple[str, str]
) -> None:
    done = _print(tmp_path, f"--from={ends_[0]}", f"--to={ends_[1]}")
    assert done.status == 0, done.err
    title = done.out.splitlines()[0]
    assert all(moment in title for moment in moments), title


@pytest.mark.parametrize(
    "options, complaint",
    [
        (["--from=2"], 'no moment "2" of several processes: there are start, end, last, peak'),
        (["--from=nowhere"], '"first", "second"'),
        (["--from=second", "--to=first"], "goes backwards"),
        (["--from=first", "--to=first"], "is empty"),
        (["--from=first", "--include=a"], "--include"),
        (["--from=first", "--format=csv"], "--from is not supported"),
    ],
)
def test_what_is_no_range_of_several_processes_is_one_line(tmp_path: Path, options: List[str], complaint: str) -> None:
    done = _print(tmp_path, *options)
    assert done.status == 2 and complaint in done.err and done.err.count("\n") == 1 and not done.out


def test_without_a_clock_in_common_a_range_is_refused() -> None:
    traces = [("a", trace_of(1, time_unit="i").load()), ("b", trace_of(2, time_unit="i").load())]
    with pytest.raises(SelectionError, match="--time-unit=ms"):
        between(join(traces), "start", "end")


def test_of_a_fork_whose_parent_is_not_here_what_it_inherited_counts(tmp_path: Path) -> None:
    _, early, late = _family(tmp_path)
    done = jm_print("--from=10ms", "--to=200ms", early, late)
    rows = _rows(done.out)
    assert rows["2"][3:9] == "4.88 KiB 55 B 3.91 KiB".split()
    assert "with the parent alone" not in done.out


# By process and in all: bytes before, new, gone, allocated, freed and after.
_TRUTH = {1: (5000, 300, 1000, 300, 1000, 4300), 2: (70, 0, 15, 5, 20, 55), 3: (0, 0, 0, 900, 900, 0)}


def _figures(flow: Dict[str, int]) -> Tuple[int, ...]:
    return tuple(flow[figure] for figure in ("before", "new", "gone", "allocated", "freed", "after"))


def _of_all(rows: List[Dict[str, Any]]) -> Tuple[int, ...]:
    return tuple(map(sum, zip(*(_figures(row["host"]) for row in rows))))


def test_json_has_figures_of_each_process_and_their_sum_by_its_schema(tmp_path: Path) -> None:
    done = _print(tmp_path, "--from=first", "--to=second", "--format=json")
    assert (done.status, done.err) == (0, "")
    report = json.loads(done.out)
    found = {part["process"]["pid"]: part for part in report["parts"]}
    whole = tuple(map(sum, zip(*_TRUTH.values())))
    assert {pid: _figures(process["total"]["host"]) for pid, process in found.items()} == _TRUTH
    assert _figures(report["total"]["host"]) == whole
    assert _of_all(report["table"]) == _of_all(report["lines"]) == whole
    assert {row["name"]: _figures(row["host"]) for row in report["lines"]} == {
        "load (a.c:1)": (5000, 0, 1000, 0, 1000, 4000),
        "work (a.c:2)": (70, 300, 15, 1205, 920, 355),
    }
    assert [found[pid]["first"] for pid in (1, 2, 3)] == [
        {"name": 'the mark "first"', "time": 100},
        {"name": "snapshot 2", "time": 60},
        {"name": "its beginning", "time": 150},
    ]
    of = found[3]["process"]
    assert (found[3]["second"]["name"], of["parent"], of["relation"]) == ("its end", 0, "forked")
    assert [process["pid"] for process in report["processes"]] == [1, 2, 3]
    schema = validator("jmassif-range")
    schema.validate(report)
    del report["parts"][0]["total"]
    assert not schema.is_valid(report)


@pytest.mark.parametrize(
    "value, lines",
    [
        ("new-bytes", {"process 1 (program 1);work (a.c:2) 300"}),
        ("gone-bytes", {"process 1 (program 1);load (a.c:1) 1000", "process 2 (program 2);work (a.c:2) 15"}),
        (
            "freed-blocks",
            {
                "process 3 (program 3);work (a.c:2) 9",
                "process 1 (program 1);load (a.c:1) 1",
                "process 2 (program 2);work (a.c:2) 2",
            },
        ),
    ],
)
def test_a_flame_graph_has_a_frame_for_each_process(tmp_path: Path, value: str, lines: Set[str]) -> None:
    ends_ = ("--from=first", "--to=second", f"--value={value}")
    assert set(_print(tmp_path, "--format=folded", *ends_).out.splitlines()) == lines
    found = json.loads(_print(tmp_path, "--format=speedscope", *ends_).out)
    assert sorted(found["profiles"][0]["weights"]) == sorted(int(line.split()[-1]) for line in lines)
    assert {frame["name"] for frame in found["shared"]["frames"]} >= {line.partition(";")[0] for line in lines}


def test_each_adds_tables_of_each_process_and_stacks_their_trees(tmp_path: Path) -> None:
    ends_ = ("--from=first", "--to=second")
    assert "Process 2 alone" not in _print(tmp_path, *ends_).out
    assert all(f"Process {pid} alone" in _print(tmp_path, *ends_, "--each").out for pid in (1, 2, 3))
    trees = _print(tmp_path, *ends_, "--stacks").out
    assert "100.0 % 300 B in 3 blocks" in trees
