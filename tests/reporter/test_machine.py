# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine's figures in the model and in the report."""

from typing import List

from jmassif.analysis.moments import select
from jmassif.analysis.other_tools import others
from jmassif.analysis.system import machine, sources
from jmassif.model.run_info import was_short
from jmassif.render.text import write
from jmassif.render.view import View
from tests.reporter.commands import section as section_of
from tests.reporter.traces import Trace

MIB = 1 << 20


def trace(reason: str = "time") -> Trace:
    made = Trace(mem_total_bytes=str(4096 * MIB))
    account = made.account("heap", "app")
    made.lines += [f"y 0 mem-available {3000 * MIB}", "y 0 swap-total 0", "y 0 swap-free 0"]
    made.lines += [f"y 0 cgroup-limit {2000 * MIB}", f"y 0 cgroup-used {500 * MIB}"]
    made.snapshot(0, "start")
    made.lines += [f"y 10 mem-available {100 * MIB}", f"y 10 cgroup-used {2100 * MIB}"]
    made.snapshot(10, reason, {account: (10 * MIB, 1)}, {"total": (10, {})})
    made.lines += [f"y 20 mem-available {2000 * MIB}", f"y 20 process-resident {7 * MIB}"]
    made.snapshot(20, "time", {account: (0, 0)})
    return made


def section(made: Trace) -> List[str]:
    return section_of(list(write(made.load(), View(None, 1.0, "stack", 70, None, None))), "--- The machine")


def test_a_figure_is_what_was_said_last() -> None:
    profile = trace().load()
    assert profile.system_at("mem-available", 5) == 3000 * MIB
    assert profile.system_at("mem-available", 10) == 100 * MIB
    assert profile.system_at("process-resident", 19) is None
    assert profile.system_at("no such figure", 19) is None


def test_what_a_tool_shows_holds_until_the_snapshot_at_which_it_was_read_anew() -> None:
    made = Trace()
    account = made.account("heap", "app")
    made.lines += [f"y 0 process-resident {50 * MIB}"]
    made.snapshot(0, "start", {account: (30 * MIB, 1)}, {"total": (0, {})})
    made.snapshot(24, "request")
    made.lines += [f"y 25 process-resident {4 * MIB}"]
    made.snapshot(25, "exit", {account: (0, 0)})
    profile = made.load()
    (row,) = [row for row in others(profile, select(profile, "2")) if row.figure == "RES"]
    assert (row.bytes, row.sampled_at) == (50 * MIB, None)


def test_figures_know_when_they_were_worst_and_zeros_are_left_out() -> None:
    figures = {figure.label: figure for figure in machine(trace().load(), 10)}
    assert list(figures) == ["available", "left of the control group's limit", "this process, with profiler"]
    available = figures["available"]
    assert (available.first, available.chosen, available.last) == (3000 * MIB, 100 * MIB, 2000 * MIB)
    assert (available.worst, available.worst_at) == (100 * MIB, 10)
    group = figures["left of the control group's limit"]
    assert (group.first, group.chosen, group.worst) == (1500 * MIB, 0, 0)
    assert figures["this process, with profiler"].chosen is None


def test_the_report_has_a_table_of_them() -> None:
    assert section(trace()) == [
        "--- The machine, with 4.00 GiB of memory ---------------------------------------",
        "                                        start    at peak        end min or max",
        "available                            2.93 GiB    100 MiB   1.95 GiB    100 MiB",
        "left of the control group's limit    1.46 GiB        0 B        0 B        0 B",
        "this process, with profiler          7.00 MiB              7.00 MiB   7.00 MiB",
        "Source: /proc/self/status, the control group.",
    ]
    assert section(Trace()) == []


def test_a_program_that_ended_when_memory_was_short_was_probably_killed() -> None:
    made = trace("low-memory")
    assert was_short(made.load()) == 10
    said = " ".join(write(made.load(), View(None, 1.0, "stack", 70)))
    assert "The machine ran short of memory at 10 ms" in said and "probably killed for that" in said
    assert section(made)[1] == "Memory ran short 10 ms after the start."


def test_nvmap_is_told_by_debugfs_where_meminfo_does_not_have_it() -> None:
    made = trace()
    made.lines.insert(1, f"y 0 nvmap-used {MIB}")
    assert sources(made.load()) == ["/proc/self/status", "/sys/kernel/debug/nvmap", "the control group"]
    made.lines.insert(1, f"y 0 nvmap-free {MIB}")
    assert "/sys/kernel/debug/nvmap" not in sources(made.load())


def test_a_boards_own_bytes_are_named_and_of_no_other_machine() -> None:
    for board, is_named in (("Simulated Jetson", True), ("", False)):
        made = Trace(mem_total_bytes=str(4096 * MIB), memory="unified", **({"board": board} if board else {}))
        account = made.account("heap", "app")
        made.lines += [f"y 0 mem-available {3000 * MIB}", f"y 0 cached {700 * MIB}", f"y 0 cma-free {256 * MIB}"]
        made.lines += [f"y 0 swap-total {100 * MIB}", f"y 0 swap-free {60 * MIB}"]
        made.snapshot(0, "start", {account: (10 * MIB, 1)}, {"total": (0, {})})
        named = "The board's own bytes then: swap in use 40.0 MiB, CMA free 256 MiB, page cache (Cached) 700 MiB;"
        assert (named in " ".join(" ".join(section(made)).split())) == is_named
