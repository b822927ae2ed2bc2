# SPDX-License-Identifier: GPL-2.0-or-later
"""Many traces at once: the work grows with their number and not with its square, and jm_diff has one in memory at a time."""

import gc
import time
import weakref
from pathlib import Path
from typing import Any, Callable, List

import pytest

from jmassif.analysis.processes import Processes, join
from jmassif.model.run import Profile
from jmassif.reader import builder
from tests.reporter.commands import jm_diff
from tests.reporter.traces import Trace


def a_run(pid: int, forked: bool = False, release: str = "32.7.1") -> Trace:
    """A process that another of pid 1 has started, or that was forked from it."""
    start = 1_700_000_000_000 if forked or pid == 1 else 1_700_000_000_000 + pid
    facts = {"forked_from": "1"} if forked else {"ppid": "1" if pid > 1 else "0"}
    trace = Trace(
        command="train", start_unix_ms=str(start), pid=str(pid), time_unit="ms", host="h", l4t=release, **facts
    )
    heap = trace.account("heap", "app", ["main (a.c:1)"])
    trace.snapshot(pid, "fork" if forked else "start", {heap: (1000, 1)} if forked else {})
    for number in range(1, 4):
        trace.snapshot(pid + 9 * number, "time", {heap: (1000 + pid % 7 * number, 1)}, {"total": (pid + number, {})})
    return trace


def seconds(work: Callable[[], Any]) -> float:
    """The least processor time of nine runs: of three, a moment of a busy machine decided."""

    def once() -> float:
        begin = time.process_time()
        work()
        return time.process_time() - begin

    return min(once() for _ in range(9))


# ---- jm_diff -----------------------------------------------------------------------------------------


def save(directory: Path, n: int, n_lost: int = 0) -> None:
    for number in range(n):
        whole = a_run(number + 2, release=("32.7.1", "35.4.1")[number % 2]).bytes()
        (directory / f"jmassif.out.{number}").write_bytes(whole[: len(whole) - n_lost])


@pytest.mark.parametrize("n_lost", [0, 3, 20])
def test_jm_diff_has_one_profile_in_memory_at_a_time(
    n_lost: int, tmp_path: Path, monkeypatch: "pytest.MonkeyPatch"
) -> None:
    """Without the garbage collector, which the command switches off; of traces that were cut off too."""
    save(tmp_path, 6, n_lost)
    read: "List[weakref.ref[Profile]]" = []
    load_file = builder.load_file

    def watched(*arguments: Any) -> Profile:
        assert [profile() for profile in read] == [None] * len(read)
        profile = load_file(*arguments)
        assert profile.is_complete is False and (profile.truncation is None) == (n_lost == 0)
        read.append(weakref.ref(profile))
        return profile

    monkeypatch.setattr(builder, "load_file", watched)
    gc.collect()
    gc.disable()
    try:
        done = jm_diff("--group-by=jetpack", tmp_path)
    finally:
        gc.enable()
    assert done.status == 0 and len(read) == 6, done.err


def test_jm_diff_leaves_out_processes_that_another_one_started(tmp_path: Path) -> None:
    save(tmp_path, 40)
    (tmp_path / "jmassif.out.parent").write_bytes(a_run(1).bytes() + b"Z 100 exit 0\n")
    done = jm_diff("--group-by=jetpack", tmp_path)
    # Those that began while the parent still ran.
    assert done.status == 0 and "left out 27 traces of child processes" in done.err


# ---- several processes -------------------------------------------------------------------------------


def asks(job: Processes) -> None:
    job.peak()
    job.timeline()


@pytest.mark.parametrize("forked", [False, True], ids=["spawned", "forked"])
def test_four_times_the_processes_are_four_times_the_work(forked: bool) -> None:
    def work(n: int) -> float:
        traces = [(str(pid), a_run(pid, forked and pid > 1).load()) for pid in range(1, n + 1)]
        return seconds(lambda: asks(join(traces)))

    work(10)
    # By the square it would be sixteen times.
    assert work(600) < 8 * work(150)
