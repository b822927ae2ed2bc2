# SPDX-License-Identifier: GPL-2.0-or-later
"""The first sentences of a difference, from runs of which it is known by what they differ."""

import re
from pathlib import Path
from typing import Dict, List

import pytest

from tests.reporter.commands import jm_diff
from tests.reporter.traces import Trace

MIB = 1 << 20


def run(directory: Path, name: str, held: Dict[str, int], memory: str = "unified") -> Path:
    trace = Trace(memory=memory, time_unit="ms")
    trace.group("yours", "tensor", "app")
    kinds = {"tensor": "device", "app": "heap"}
    accounts = {trace.account(kinds[owner], owner, ["main (a.c:1)"]): (n * MIB, 1) for owner, n in held.items()}
    trace.snapshot(1, "exit", accounts, {which: (1, {}) for which in ("total", "host", "device")})
    path = directory / name
    path.write_text("\n".join(trace.lines) + "\n")
    return path


def sentences(*arguments: object) -> List[str]:
    """One paragraph a pool, before the tables."""
    out = jm_diff("--format=markdown", *arguments).out.partition("| | |")[0]
    return [re.sub(r"&#(\d+);", lambda found: chr(int(found[1])), text) for text in out.split("\n\n") if text]


def test_it_says_how_much_more_and_whose_that_is_most(tmp_path: Path) -> None:
    old = run(tmp_path, "a", {"tensor": 40, "app": 10})
    new = run(tmp_path, "b", {"tensor": 60, "app": 9})
    (text,) = sentences(old, new)
    assert text.startswith("new holds 19.0 MiB more than old at the peak: 50.0 MiB → 69.0 MiB, +38 %.")
    assert "Largest changes by owner: tensor +20.0 MiB, app -1.00 MiB. One run per side" in text and "--vs" in text
    for format_ in ("text", "markdown"):
        assert jm_diff(f"--format={format_}", old, new).out.startswith("new holds 19.0 MiB more than old")
    assert sentences(new, old)[0].startswith("new holds 19.0 MiB less than old")
    assert sentences(old, old)[0] == "new holds as much as old at the peak: 50.0 MiB."


def test_repeated_runs_tell_what_is_noise(tmp_path: Path) -> None:
    near = [run(tmp_path, f"n{n}", {"app": n}) for n in (10, 12, 11, 13)]
    far = [run(tmp_path, f"f{n}", {"app": n}) for n in (30, 31)]
    (text,) = sentences(*near[:2], "--vs", *near[2:])
    assert text.endswith("The difference is within run-to-run noise.")
    (text,) = sentences(*near, "--vs", *far)
    assert text.endswith("The difference is larger than run-to-run noise.")


def test_pools_of_a_discrete_gpu_have_a_sentence_each(tmp_path: Path) -> None:
    old = run(tmp_path, "a", {"tensor": 40, "app": 10}, "discrete")
    new = run(tmp_path, "b", {"tensor": 60, "app": 10}, "discrete")
    device, host = sentences(old, new)
    assert device.startswith("new holds 20.0 MiB of device memory more than old at the peak")
    assert host == "new holds as much of host memory as old at the peak: 10.0 MiB."


def script(directory: Path, name: str, lines: Dict[int, int], function: str = "step", memory: str = "unified") -> Path:
    """A run whose script holds so many MiB at lines of a function."""
    trace = Trace(memory=memory, time_unit="ms")
    trace.group("yours", "data")
    held = {
        trace.account("heap", "data", ["malloc (libc.so.6)", f"py {function} (/home/me/train.py:{line})"]): (n * MIB, 1)
        for line, n in lines.items()
    }
    trace.snapshot(1, "exit", held, {which: (1, {}) for which in ("total", "host")})
    path = directory / name
    path.write_text("\n".join(trace.lines) + "\n")
    return path


def test_the_line_that_most_of_it_is_at_is_named(tmp_path: Path) -> None:
    old, new = script(tmp_path, "a", {10: 5, 20: 8, 30: 40}), script(tmp_path, "b", {10: 5, 20: 78, 30: 41})
    assert "Most of that is at train.py:20 (step): +70.0 MiB (8.00 MiB → 78.0 MiB)." in sentences(old, new)[0]
    assert "Most of that is at train.py:20 (step): -70.0 MiB (78.0 MiB → 8.00 MiB)." in sentences(new, old)[0]


def test_lines_that_an_edit_has_moved_are_the_same_lines(tmp_path: Path) -> None:
    old, new = script(tmp_path, "a", {10: 5, 20: 8, 30: 400}), script(tmp_path, "b", {13: 5, 23: 78, 33: 400})
    assert "Most of that is at train.py:23 (step): +70.0 MiB (8.00 MiB → 78.0 MiB)." in sentences(old, new)[0]
    # One has come, and one has gone: they are named where they are, or were.
    more = script(tmp_path, "c", {13: 5, 18: 90, 23: 8, 33: 400})
    assert "Most of that is at train.py:18 (step): +90.0 MiB (0 B → 90.0 MiB)." in sentences(old, more)[0]
    assert "Most of that is at train.py:18 (step): -90.0 MiB (90.0 MiB → 0 B)." in sentences(more, old)[0]


def test_a_function_is_named_where_no_one_line_of_it_is_most(tmp_path: Path) -> None:
    old, new = script(tmp_path, "a", {n: 10 for n in range(5)}), script(tmp_path, "b", {n: 20 for n in range(5)})
    assert "Most of that is in step (train.py): +50.0 MiB (50.0 MiB → 100 MiB)." in sentences(old, new)[0]


def test_what_is_spread_or_went_both_ways_is_no_one_lines(tmp_path: Path) -> None:
    old = run(tmp_path, "a", {"tensor": 10})
    both = script(tmp_path, "b", {5: 100}, "new_one"), script(tmp_path, "c", {5: 90}, "old_one")
    assert (
        "It grew most at train.py:5 (new_one): +100 MiB (0 B → 100 MiB), and shrank most at train.py:5 (old_one):"
        " -90.0 MiB (90.0 MiB → 0 B)." in sentences(both[1], both[0])[0]
    )
    trace = Trace(time_unit="ms")
    trace.group("yours", "app")
    held = {trace.account("heap", "app", [f"f{n} (a.c:{n})"]): (5 * MIB, 1) for n in range(1, 5)}
    trace.snapshot(1, "exit", held, {"total": (1, {})})
    spread = tmp_path / "d"
    spread.write_text("\n".join(trace.lines) + "\n")
    assert "a.c" not in sentences(old, spread)[0].split("Most of that")[0]
    assert "at f" not in sentences(script(tmp_path, "e", {}), spread)[0]


def test_of_repeated_runs_it_is_the_line_of_their_medians(tmp_path: Path) -> None:
    near = [script(tmp_path, f"n{n}", {7: n, 9: 4}) for n in (1, 2, 9)]
    far = [script(tmp_path, f"f{n}", {8: n, 10: 4}) for n in (20, 52, 60)]
    (text,) = sentences(*near, "--vs", *far)
    assert "Most of that is at train.py:8 (step): +50.0 MiB (2.00 MiB → 52.0 MiB)." in text


@pytest.mark.parametrize("n_more, is_named", [(98, True), (99, False)])
def test_of_a_fleet_no_line_is_looked_for(tmp_path: Path, n_more: int, is_named: bool) -> None:
    old, new = (script(tmp_path, name, {3: mib}) for name, mib in (("old", 10), ("new", 50)))
    (text,) = sentences(old, "--vs", new, *[new] * n_more)
    assert text.startswith("new holds 40.0 MiB more") and ("train.py:3" in text) == is_named


def test_memory_of_the_host_has_no_name_where_there_is_no_other(tmp_path: Path) -> None:
    old, new = (script(tmp_path, name, {7: n}, memory="discrete") for name, n in (("a", 1), ("b", 3)))
    assert sentences(old, new)[0].startswith("new holds 2.00 MiB more than old")
