# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces that mean harm: what is in them is shown and not obeyed, and a small file costs little time and memory.

Each command runs in a child of its own, whose processor time and memory the kernel tells.
"""

import gzip
import re
from pathlib import Path
from typing import List

import pytest

from tests.fuzz.traces import MOST_BYTES, MOST_SECONDS, Outcome, attempt
from tests.reporter.traces import Trace, small_training_run

_FORMATS = ("text", "massif", "json", "csv", "folded", "perfetto")


def _print(tmp_path: Path, trace: bytes, *words: str) -> Outcome:
    path = tmp_path / "trace"
    path.write_bytes(trace)
    return attempt(["report", *words, str(path)], tmp_path)


def _assert_cheap(outcome: Outcome, seconds: float = MOST_SECONDS) -> None:
    assert outcome.status in (0, 2), outcome.err
    assert outcome.seconds < seconds and outcome.peak_bytes < MOST_BYTES


def _run(files: List[str], function: str = "f") -> Trace:
    trace = Trace(time_unit="ms", memory="unified")
    accounts = [trace.account("heap", "python", [f"malloc (libc.so)", f"py {function} ({file}:3)"]) for file in files]
    trace.snapshot(5, "exit", {account: (6000 - n, 1) for n, account in enumerate(accounts)}, {"total": (5, {})})
    trace.lines.append("Z 5 exit 0")
    return trace


# ---- what is shown ---------------------------------------------------------------------------


@pytest.mark.parametrize("by", ("stack", "owner", "kind", "library"))
def test_a_package_named_after_an_escape_sequence_is_shown_escaped(tmp_path: Path, by: str) -> None:
    trace = _run(["/usr/lib/python3/dist-packages/ev\x1b[2Jil\nforged line/m.py", "/home/u/own.py"])
    done = _print(tmp_path, trace.bytes(), "--fold=internal", f"--by={by}")
    assert done.status == 0 and all(line.isprintable() for line in done.out.decode().split("\n"))
    assert b"ev\\x1b[2Jil\\x0aforged line" in done.out or by != "stack"


# ---- what a small file may cost --------------------------------------------------------------


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    packed = gzip.compress(b"jmassif-trace 4\nm time-unit ms\nm command " + b"x" * (400 << 20), 1)
    done = _print(tmp_path, packed)
    assert done.status == 2 and "longer than" in done.err and done.err.count("\n") == 1
    _assert_cheap(done)


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(b"jmassif-trace 4\nm time-unit ms\n" + b"t 1 1 1 1\n" * (20 << 20), 5)
    assert len(packed) < 1 << 20
    done = _print(tmp_path, packed)
    assert done.status == 2 and "times its size" in done.err and done.err.count("\n") == 1
    _assert_cheap(done, 25)  # for the 26 MB that may be read, of 200 MB


def test_what_a_recorder_writes_unpacks_even_where_it_repeats_itself(tmp_path: Path) -> None:
    trace = _run(["/home/u/own.py"])
    trace.lines[-1:-1] = [f"t {5 + n} 6000 0 6000" for n in range(200000)]
    trace.lines[-1] = "Z 200005 exit 0"
    assert _print(tmp_path, gzip.compress(trace.bytes())).status == 0


def test_long_paths_that_end_alike_are_named_in_no_time(tmp_path: Path) -> None:
    deep = "/".join("d" * 100000)
    trace = _run([f"/{first}/{deep}/m.py" for first in "abcdefgh"])
    _assert_cheap(_print(tmp_path, trace.bytes(), "--by=python-line"), 3)


def test_regions_that_end_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    trace = Trace(time_unit="ms", memory="unified")
    account = trace.account("heap", "app", ["f (a.c:1)"])
    trace.snapshot(1, "time", {account: (100, 1)}, {"total": (1, {})})
    for number in range(40000):
        trace.region_begin(2, f"r{number}")
    for number in range(40000):
        trace.region_end(2, f"r{number}")
    trace.snapshot(5, "exit")
    _assert_cheap(_print(tmp_path, trace.bytes(), "--format=csv"), 5)


@pytest.mark.parametrize("form", _FORMATS + ("html",))
def test_hundreds_of_failures_among_many_blocks(tmp_path: Path, form: str) -> None:
    trace = Trace(time_unit="ms", memory="unified")
    account = trace.account("device", "cache", ["f (a.c:1)"])
    trace.snapshot(1, "time", {account: (100, 1)}, {"total": (1, {})})
    for number in range(4000):
        trace.block(1, 0x7000000000 + (number << 21), 1 << 21, account)
    for number in range(300):
        trace.block(2 + number, 0x9000000000 + (number << 21), 1 << 21, account)
        trace.exhaustion(2 + number, account, 4096 + number, figures={"device-free": 10, "device-total": 4 << 30})
        trace.snapshot(2 + number, "out-of-memory", {account: (101 + number, 1)})
    trace.lines.append("Z 2000 exit 0")
    _assert_cheap(_print(tmp_path, trace.bytes(), f"--format={form}"))


@pytest.mark.parametrize("letter", "sfaScteMxZ")
def test_a_number_of_thousands_of_digits_is_refused_in_one_line(tmp_path: Path, letter: str) -> None:
    lines = small_training_run().bytes().decode().splitlines()
    at = next(i for i, line in enumerate(lines) if re.match(re.escape(letter) + r" .*\d", line))
    for field in re.finditer(r"(?<= )\d+\b", lines[at].split('"')[0]):
        changed = lines[at][: field.start()] + "9" * 5000 + lines[at][field.end() :]
        done = _print(tmp_path, "\n".join([*lines[:at], changed, *lines[at + 1 :]]).encode() + b"\n")
        _assert_cheap(done, 3)
        assert done.status == 0 or done.err.count("\n") == 1 and len(done.err) < 400, done.err


@pytest.mark.parametrize("form", _FORMATS + ("pprof", "html"))
def test_a_stack_of_30_000_frames(tmp_path: Path, form: str) -> None:
    trace = Trace(time_unit="ms", memory="unified")
    frames = [f"f{number % 100} (a.c:{number % 90 + 1})" for number in range(30000)]
    held = {trace.account("heap", "app", frames[at:]): (1000 + at, 1) for at in range(0, 200, 4)}
    trace.snapshot(1, "time", held, {"total": (1, {})})
    trace.snapshot(5, "exit")
    trace.lines.append("Z 5 exit 0")
    _assert_cheap(_print(tmp_path, trace.bytes(), f"--format={form}"))


def test_long_words_are_wrapped_in_no_time(tmp_path: Path) -> None:
    word = "x" * (2 << 20)
    trace = Trace(time_unit="ms", memory="unified", command=word, machine=word, cpu=word)
    account = trace.account("device", word[:5000], [f"{word} (a.c:1)", f"py {word} (/{word}.py:3)"])
    trace.snapshot(1, "time", {account: (100, 1)}, {"total": (1, {})})
    trace.mark(2, word)
    trace.exhaustion(2, account, 4096, word, figures={"device-free": 10, "device-total": 4 << 30})
    trace.snapshot(2, "out-of-memory", {account: (101, 1)})
    trace.lines.append("Z 2000 exit 0")
    _assert_cheap(_print(tmp_path, trace.bytes()), 4)


def test_thousands_of_detailed_snapshots_of_massifs(tmp_path: Path) -> None:
    """Every tenth has its tree, of a thousand that are written."""
    n = 2500
    trace = Trace(time_unit="ms", memory="unified")
    trace.manifest("option.detailed-freq", "1")
    trace.manifest("option.max-snapshots", "1000000")
    accounts = [trace.account("heap", "app", [f"f{number} (a.c:{number + 1})", "main (a.c:1)"]) for number in range(n)]
    for time in range(n):
        trace.lines.append(f"S {time + 1} {time} time {time + 1} 0")
        trace.lines += [f"c {accounts[time]} 1 1 1 1 0", f"E {time + 1}"]
    trace.lines.append(f"Z {n} exit 0")
    done = _print(tmp_path, trace.bytes(), "--format=massif")
    _assert_cheap(done)
    assert done.status == 0 and 99 <= done.out.count(b"heap_tree=detailed") < 1000
