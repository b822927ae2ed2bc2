# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces of children that appear beside the one that is followed, and what became of a process."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, List

from jmassif.analysis.ladder import ladders
from jmassif.analysis.moments import select
from jmassif.live.run import Family, LiveRun
from jmassif.cli.top import Watching
from jmassif.reader.builder import load_file
from tests.reporter.commands import jm_print
from tests.reporter.traces import Trace, small_training_run


def trace_of(pid: int, ppid: int = 1, **manifest: str) -> Trace:
    trace = Trace(
        process=f"{pid}.1", pid=str(pid), ppid=str(ppid), memory="unified", time_unit="ms", host="board", **manifest
    )
    heap = trace.account("heap", "app", ["main (a.c:9)"])
    trace.snapshot(3, "time", {heap: (1000 * pid, 1)})
    trace.lines.append("k odd 1")  # so that it is no tail
    return trace


def settled(family: Family) -> List[int]:
    """The processes that are followed, by pid."""
    family.settle()
    return [run.pid for run in family.runs]


def test_children_that_appear_are_followed_and_others_are_not(tmp_path: Path) -> None:
    first = trace_of(10).save(tmp_path, "jmassif.out.10")
    family = Family([str(first)])
    assert settled(family) == [10]
    trace_of(11, 10).save(tmp_path, "jmassif.out.11")
    trace_of(12, 10, forked_from="10").save(tmp_path, "jmassif.out.12")
    trace_of(13, 11).save(tmp_path, "jmassif.out.13")
    trace_of(14, 99).save(tmp_path, "jmassif.out.14")
    trace_of(15, 10).save(tmp_path, "other.15")
    (tmp_path / "jmassif.out.16").write_text("nothing of the kind\n")
    (tmp_path / "jmassif.out.17").mkdir()
    assert settled(family) == [10, 11, 12, 13]


def test_a_forked_child_is_known_by_what_it_says_last(tmp_path: Path) -> None:
    """What it has copied of its parent's manifest comes first."""
    family = Family([str(trace_of(10).save(tmp_path, "jmassif.out.10"))])
    child = Trace(process="11.1", pid="10", ppid="1", memory="unified", time_unit="ms", host="board")
    path = child.save(tmp_path, "jmassif.out.11")
    assert settled(family) == [10]
    for key, value in (("pid", "11"), ("ppid", "10"), ("forked-from", "10")):
        child.manifest(key, value)
    heap = child.account("heap", "app", ["main (a.c:9)"])
    child.snapshot(3, "fork", {heap: (7000, 1)})
    child.snapshot(4, "time", {heap: (9000, 2)})
    path.write_bytes(child.bytes())
    assert settled(family) == [10, 11]
    assert family.runs[1].now().host == 9000


def test_the_reader_goes_from_process_to_process(tmp_path: Path) -> None:
    trace_of(11, 10).save(tmp_path, "jmassif.out.11")
    watching = Watching(Family([str(trace_of(10).save(tmp_path, "jmassif.out.10"))]))
    watching.family.settle()
    assert watching.screen().report.pid == 10 and [each.pid for each in watching.screen().processes] == [10, 11]
    assert watching.press("tab") and watching.screen().report.pid == 11
    assert watching.press("tab") and watching.screen().report.pid == 10
    assert not watching.press("q")


def test_a_paused_screen_stays_while_the_run_goes_on(tmp_path: Path) -> None:
    trace = trace_of(10)
    path = trace.save(tmp_path, "jmassif.out.10")
    watching = Watching(Family([str(path)]))
    watching.family.settle()
    assert watching.screen().report.pools[0].host == 10000
    watching.press("p")
    trace.snapshot(5, "time", {1: (77000, 1)})
    path.write_bytes(trace.bytes())
    watching.family.settle()
    assert watching.screen().is_paused and watching.screen().report.pools[0].host == 10000
    watching.press("p")
    assert not watching.screen().is_paused and watching.screen().report.pools[0].host == 77000


def test_lines_are_sorted_as_the_reader_asks(tmp_path: Path) -> None:
    trace = Trace(process="10.1", pid="10", ppid="1", memory="unified", time_unit="ms")
    small = trace.account("device", "app", ["small (a.c:1)"])
    large = trace.account("heap", "app", ["large (a.c:2)"])
    trace.snapshot(3, "time", {small: (100, 1), large: (900, 1)})
    path = trace.save(tmp_path, "jmassif.out.10")
    watching = Watching(Family([str(path)]))
    watching.family.settle()

    def first() -> Any:
        return watching.screen().report.lines[0]

    assert first().name == "large (a.c:2)"
    trace.snapshot(20000, "time", {small: (300, 1)})
    path.write_bytes(trace.bytes())
    watching.family.settle()
    watching.press("s")
    assert (first().name, first().grown) == ("small (a.c:1)", 200)
    watching.press("s")
    assert first().name == "small (a.c:1)" and watching.order == "device"
    watching.press("s")
    assert first().name == "large (a.c:2)" and watching.order == "host"


def test_events_tell_of_failures_peaks_and_marks(tmp_path: Path) -> None:
    trace = Trace(process="10.1", pid="10", ppid="1", memory="unified", time_unit="ms")
    device = trace.account("device", "app", ["take (a.c:5)"])
    trace.snapshot(1000, "time", {device: (100 << 20, 1)}, {"total": (900, {})})
    trace.mark(2000, "epoch\x1b[2J 1")
    trace.exhaustion(3000, device, 512 << 20)
    trace.snapshot(3000, "out-of-memory")
    trace.snapshot(11000, "time", {device: (104 << 20, 1)}, {"total": (10900, {})})
    trace.snapshot(20000, "time", {device: (300 << 20, 1)}, {"total": (19000, {})})
    trace.lines.append("Z 20000 exit 3")
    run = LiveRun(str(trace.save(tmp_path, "jmassif.out.10")))
    while not run.follower.is_all:
        run.poll()
    texts = [event.text for event in run.report("held", 1).events]
    assert texts[0] == r"mark: epoch\x1b[2J 1"
    assert texts[1] == "out of memory: cudaMalloc, 512 MiB asked for, at take (a.c:5)"
    assert texts[2:] == ["peak: 300 MiB", "exit status 3"]


def test_a_process_that_was_killed_is_said_to_be_gone(tmp_path: Path) -> None:
    """Of this machine only, and only if it is that process and no other with its number."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
    there = Trace(process=f"{process.pid}.{started}", pid=str(process.pid), host=socket.gethostname(), memory="unified")
    run = LiveRun(str(there.save(tmp_path, "jmassif.out.1")))
    while not run.follower.is_all:
        run.poll()
    assert run.state == "running"
    report = jm_print(run.name)
    assert "truncated: the program still runs" in report.err and "still running" in report.out
    watching = Watching(Family([run.name]))
    watching.family.settle()
    assert watching.screen().report.state == "running"
    process.kill()
    process.wait()
    assert watching.screen().report.state.startswith("killed")
    assert run.state == "killed (no end record)" and not run.is_running
    for name, key, host in (
        ("2", f"{os.getpid()}.1", socket.gethostname()),
        ("3", f"{process.pid}.{started}", "elsewhere"),
    ):
        run = LiveRun(str(Trace(process=key, host=host).save(tmp_path, name)))
        while not run.follower.is_all:
            run.poll()
        assert run.state == ("killed (no end record)" if name == "2" else "running")


def test_many_children_are_counted_and_not_followed(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("jmassif.live.run.MOST_RUNS", 3)
    family = Family([str(trace_of(10).save(tmp_path, "jmassif.out.10"))])
    family.settle()
    for pid in range(11, 17):
        trace_of(pid, 10).save(tmp_path, f"jmassif.out.{pid}")
    assert settled(family) == [10, 11, 12] and family.n_left_out == 4


def test_a_process_that_calls_exec_is_shown_as_its_next_program(tmp_path: Path) -> None:
    """Its last record is the snapshot before exec, and the process lives on."""
    process = f"{os.getpid()}.{Path('/proc/self/stat').read_text().rpartition(')')[2].split()[19]}"

    def program(number: int, n_bytes: int) -> Trace:
        trace = Trace(
            process=process,
            start_unix_ms=str(1000 * number),
            pid=str(os.getpid()),
            ppid="1",
            memory="unified",
            time_unit="ms",
            host=socket.gethostname(),
        )
        heap = trace.account("heap", "app", [f"main{number} (a.c:9)"])
        trace.snapshot(3, "time", {heap: (n_bytes, 1)})
        return trace

    shell = program(1, 7000)
    path = shell.save(tmp_path, "jmassif.out.10")
    name = str(path).replace(".10", f".{os.getpid()}")
    path.rename(name)
    watching = Watching(Family([name]))
    watching.family.settle()
    assert watching.screen().report.state == "running" and watching.screen().report.pools[0].host == 7000
    shell.snapshot(4, "exec")
    Path(name).write_bytes(shell.bytes())
    program(2, 9000).save(tmp_path, f"jmassif.out.{os.getpid()}.2")
    watching.family.settle()
    watching.screen()
    assert [run.state for run in watching.family.runs] == ["became another program (exec)", "running"]
    assert watching.screen().report.pools[0].host == 9000 and watching.screen().report.lines[0].name == "main2 (a.c:9)"
    watching.press("tab")
    assert watching.screen().report.state == "became another program (exec)"


def test_growth_is_that_of_the_last_ten_seconds_of_the_run(tmp_path: Path) -> None:
    """Also of a run that is over, and of one that was read at once."""
    trace = Trace(process="10.1", pid="10", ppid="1", memory="unified", time_unit="ms")
    leak, late = trace.account("heap", "app", ["leak (a.c:1)"]), trace.account("heap", "app", ["late (a.c:2)"])
    for second in range(60):
        trace.snapshot(1000 * second, "time", {leak: (100 * second, 1), late: (max(0, second - 57) * 7, 1)})
    trace.lines.append("Z 59500 exit 0")
    run = LiveRun(str(trace.save(tmp_path, "jmassif.out.10")))
    while not run.follower.is_all:
        run.poll()
    assert {line.name: line.grown for line in run.sums.lines("grown", 9)} == {"leak (a.c:1)": 1000, "late (a.c:2)": 14}


def test_mapped_files_and_functions_without_symbols_are_a_line_each(tmp_path: Path) -> None:
    trace = Trace(process="10.1", pid="10", ppid="1", memory="unified", time_unit="ms", option_pages="yes")
    stacks = [
        ("file", "map (libm.so)"),
        ("file", "map (libc.so)"),
        ("heap", "a (/lib/libtorch.so)"),
        ("heap", "b (/lib/libtorch.so)"),
        ("heap", "a (/lib/libtorch.so)", "torch::autograd::Engine::evaluate_function(Node*) (libtorch.so)"),
    ]
    held = {trace.account(kind, "lib", frames): (10**number, 1) for number, (kind, *frames) in enumerate(stacks, 1)}
    types = {trace.string("map"): "m", trace.string("a"): "n", trace.string("b"): "n"}
    for at, words in [(at, line.split()) for at, line in enumerate(trace.lines) if line.startswith("f ")]:
        if int(words[3]) in types:
            trace.lines[at] = " ".join([*words[:2], types[int(words[3])], "0", *words[4:]])
    trace.snapshot(5, "time", held)
    run = LiveRun(str(trace.save(tmp_path, "jmassif.out.10")))
    while not run.follower.is_all:
        run.poll()
    lines = {line.name: line.usage.bytes for line in run.sums.lines("held", 9)}
    engine = lines.pop("torch::autograd::Engine::evaluate_function(Node*) (libtorch.so)")
    assert engine == 100000 and lines == {"libtorch.so (no debug symbols)": 11000, "mapped files": 110}


def test_the_ladder_of_now_is_the_reports(tmp_path: Path) -> None:
    """To the byte, of a trace that ends in a tail."""
    trace = small_training_run()
    trace.lines = [line for line in trace.lines if not line.startswith("Z ")]
    path = trace.save(tmp_path, "jmassif.out.10")
    watching = Watching(Family([str(path)]))
    watching.family.settle()
    profile = load_file(str(path))
    chosen = select(profile, "last")
    assert watching.screen().report.ladders == ladders(profile, chosen)
