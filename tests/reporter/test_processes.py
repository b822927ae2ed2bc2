# SPDX-License-Identifier: GPL-2.0-or-later
"""Several traces as one: a common clock, the tree of processes, and the sum of their proportional shares."""

import json
import re
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import pytest

from jmassif import api
from jmassif.analysis.processes import Processes, adjustments, build_job_report, join, ledger_of
from jmassif.analysis.oom import ALARM
from jmassif.cli.main import main
from jmassif.model.process_tree import FORKED, REPLACED, SPAWNED, newest_run
from jmassif.render import job as job_report
from jmassif.render.job import HAPPENED, Statement, statements, verdict
from jmassif.render.view import View
from tests import harness
from tests.reporter.commands import jm_print, validator
from tests.reporter.test_text import crowded
from tests.reporter.traces import Trace

START = 1_700_000_000_000


def trace_of(pid: int, start: int = 0, **manifest: str) -> Trace:
    facts = {"command": f"program {pid}", "time_unit": "ms", "memory": "unified", "host": "board"}
    facts.update({"pid": str(pid), "start_unix_ms": str(START + start)})
    facts.update(manifest)
    return Trace(**{key: value for key, value in facts.items() if value})


def joined(*traces: Trace) -> Processes:
    return join([(f"trace {number}", trace.load()) for number, trace in enumerate(traces)])


def holds(trace: Trace, time: int, n_bytes: int, reason: str = "time", total: Optional[int] = None) -> None:
    """A snapshot in which account 1, made when needed, holds one block."""
    if not trace._kinds:
        trace.account("heap", "app", ["main (a.c:1)"])
    total = n_bytes if total is None else total
    n_blocks = 1 if n_bytes else 0
    before = trace._live.get(1, (0, 0, 0, 0, 0))
    grown = max(n_bytes, before[0])
    peaks: Dict[str, Tuple[int, Dict[int, Tuple[int, ...]]]] = {}
    if n_bytes and (n_bytes > before[0] or reason == "fork"):
        peaks = {"total": (time, {}), "host": (time, {})}
    assert grown >= 0
    trace.snapshot(time, reason, {1: (n_bytes, n_blocks, total, max(1, n_blocks), 0)}, peaks)


def ends(trace: Trace, time: int) -> Trace:
    trace.lines.append(f"Z {time} exit 0")
    return trace


# ---- the clock and the tree ----------------------------------------------------------------------


def test_times_of_separate_processes_are_put_on_one_clock() -> None:
    one, two = trace_of(1), trace_of(2, 500, ppid="1")
    for trace in (one, two):
        holds(trace, 0, 0, "start")
        holds(trace, 100, 1000)
        holds(trace, 200, 0, total=1000)
        ends(trace, 300)
    job = joined(two, one)
    assert [(p.pid, p.begin, p.end) for p in job.members] == [(1, 0, 300), (2, 500, 800)]
    assert job.peak().on("total") == 1000  # one had freed its memory when the other began


def test_memory_held_at_the_same_time_adds_up() -> None:
    one, two = trace_of(1), trace_of(2, 50, ppid="1")
    for trace in (one, two):
        holds(trace, 0, 0, "start")
        holds(trace, 100, 1000)
        ends(trace, 300)
    peak = joined(one, two).peak()
    assert (peak.on("total"), peak.time) == (2000, 150)


def test_the_tree_names_who_started_whom_and_how() -> None:
    parent, forked, spawned, replaced = (
        trace_of(1),
        trace_of(2, ppid="1", forked_from="1"),
        trace_of(3, 70, ppid="2"),
        trace_of(2, 60, ppid="1"),
    )
    holds(parent, 0, 0, "start")
    holds(forked, 20, 0, "fork")
    holds(forked, 60, 0, "exec")
    holds(spawned, 0, 0, "start")
    holds(replaced, 0, 0, "start")
    job = joined(spawned, replaced, forked, parent)
    assert [(p.pid, p.depth, p.relation, p.parent) for p in job.members] == [
        (1, 0, "", None),
        (2, 1, FORKED, 0),
        (2, 2, REPLACED, 1),
        (3, 3, SPAWNED, 2),
    ]


def test_manifests_that_name_each_other_as_parent_are_borne() -> None:
    one, two, self_made = trace_of(1, ppid="2"), trace_of(2, ppid="1"), trace_of(3, ppid="3")
    job = joined(one, two, self_made)
    assert sorted(p.pid for p in job.members) == [1, 2, 3]


def test_a_process_of_the_same_number_on_another_machine_is_no_parent() -> None:
    job = joined(trace_of(1), trace_of(2, 10, ppid="1", host="other"))
    assert [p.parent for p in job.members] == [None, None]
    assert job.machines == ["board", "other"]


@pytest.mark.parametrize("unit", ["i", "B"])
def test_other_units_than_milliseconds_have_no_common_clock(unit: str) -> None:
    one, two = trace_of(1, time_unit=unit), trace_of(2, time_unit=unit)
    for trace, n_bytes in ((one, 1000), (two, 300)):
        holds(trace, 0, 0, "start")
        holds(trace, 100, n_bytes)
        ends(trace, 100)
    job = joined(one, two)
    assert "milliseconds" in job.no_clock
    assert not job.peak().parts and not job.timeline()
    said = verdict(job)
    assert "2 processes: no sum, because" in said and "The largest is program (process 1): peak 1000 B." in said


def test_traces_without_a_start_have_no_common_clock() -> None:
    assert "start" in joined(trace_of(1, start_unix_ms=""), trace_of(2)).no_clock


# ---- the sum of shares ---------------------------------------------------------------------------


def reads(trace: Trace, time: int, **shares: int) -> None:
    """A sample of pages: `pss` is the process's own share, `pid2` that of process 2."""
    for name, share in shares.items():
        trace.lines.append(f"y {time} {name.replace('pid', 'pss.')} {share}")


def family(*samples: Tuple[int, int, Dict[str, int]]) -> Processes:
    """A process that holds 1000 bytes forks two children at 100; they live until 300, it lives until 400. (pid, time, shares) of samples."""
    parent = trace_of(1)
    holds(parent, 0, 0, "start")
    holds(parent, 50, 1000)
    traces = [parent]
    for pid in (2, 3):
        traces.append(trace_of(pid, forked_from="1", ppid="1"))
        holds(traces[-1], 100, 1000, "fork")
    for pid, time, shares in samples:
        reads(traces[pid - 1], time, **shares)
        holds(traces[pid - 1], time, 1000)
    for trace, end in zip(traces, (400, 300, 300)):
        holds(trace, end, 1000, "exit")
        ends(trace, end)
    return joined(*traces)


def test_shares_that_were_read_at_once_add_up() -> None:
    job = family((1, 60, {"pss": 1010}), (2, 200, {"pss": 340, "pid1": 350, "pid3": 330}))
    assert job.peak().on("total") == 1020 and job.peak().time == 200
    assert [(part.process.pid, part.host, part.has_share) for part in job.peak().parts] == [
        (1, 350, True),
        (2, 340, True),
        (3, 330, True),
    ]


def test_pages_that_a_child_has_copied_count_twice() -> None:
    job = family((1, 60, {"pss": 1010}), (2, 200, {"pss": 900, "pid1": 950, "pid3": 90}))
    assert job.peak().on("total") == 1940


def test_a_reading_without_some_of_the_processes_counts_only_where_no_reading_has_all() -> None:
    # The parent's share is from before the fork: together with the child's they would be too much.
    early = (1, 60, {"pss": 1010})
    some = (2, 150, {"pss": 500})
    whole = (2, 200, {"pss": 340, "pid1": 340, "pid3": 340})
    assert family(early, some, whole).peak().on("total") == 1020
    assert family((2, 150, {"pss": 500})).peak().on("total") == 1500  # and the parent's ledger


def test_processes_that_were_read_one_after_the_other_add_up() -> None:
    traces = [trace_of(1), trace_of(2, ppid="1")]
    reads(traces[0], 0, pss=10, pid2=10)  # the only moment at which both were read
    for trace, first, held in zip(traces, (100, 150), (1000, 2000)):
        holds(trace, 0, 0, "start")
        for time in (first, first + 100):
            reads(trace, time, pss=held + 10)
            holds(trace, time, held)
        reads(trace, 300, pss=10)
        holds(trace, 300, 0, "exit", total=held)
    assert joined(*(ends(trace, 300) for trace in traces)).peak().on("total") == 3020


def test_pages_that_changed_hands_between_two_readings_count_once() -> None:
    parent, child = trace_of(1), trace_of(2, forked_from="1", ppid="1")
    holds(child, 100, 1000, "fork")
    for trace, time, share in ((parent, 60, 1010), (child, 150, 500), (parent, 200, 510), (child, 250, 500)):
        reads(trace, time, pss=share)
        holds(trace, time, 1000)
    assert joined(ends(parent, 300), ends(child, 300)).peak().on("total") == 1010


def test_a_later_reading_in_the_same_millisecond_is_the_moments_only_one() -> None:
    # The child touched a file's pages that its parent has, after it had read both and before it read itself.
    parent, child = trace_of(1), trace_of(2, forked_from="1", ppid="1")
    holds(child, 100, 1000, "fork")
    reads(parent, 60, pss=1010)
    holds(parent, 60, 1000)
    for time, shares in ((150, {"pss": 10, "pid1": 1000}), (200, {"pss": 10, "pid1": 1000}), (200, {"pss": 510})):
        reads(child, time, **shares)
        holds(child, time, 1000)
    assert joined(ends(parent, 300), ends(child, 300)).peak().on("total") == 1010


def test_what_a_parent_gets_back_in_the_millisecond_of_a_childs_end_counts_once() -> None:
    before = (2, 200, {"pss": 510, "pid1": 510, "pid3": 10})
    assert family(before, (1, 300, {"pss": 1010})).peak().on("total") == 1030


def test_a_child_that_read_itself_alone_counts_with_its_ledger() -> None:
    # All of its share may be in the parent's, which was read only before the child began and after it had ended.
    readings = ((1, 60, {"pss": 1010}), (2, 150, {"pss": 500}), (1, 390, {"pss": 1010}))
    assert family(*readings).peak().on("total") == 1010


@pytest.mark.parametrize("still_unwritten, peak", [(0, 1010), (1000, 10)])
def test_a_block_that_was_written_by_the_next_reading_counts(still_unwritten: int, peak: int) -> None:
    one = trace_of(1)
    for time, held, unwritten in ((0, 0, 0), (100, 1000, 1000), (200, 1000 if still_unwritten else 0, still_unwritten)):
        reads(one, time, **{"pss": 10, "heap-untouched": unwritten})
        holds(one, time, held)
    at = joined(ends(one, 300), trace_of(2, 400)).peak()
    assert at.on("total") == peak == ledger_of(at).total.bytes + sum(adjustments(at))


def test_a_share_goes_to_the_process_that_had_the_pid_then() -> None:
    first, second, reader = trace_of(7), trace_of(7, 100, ppid="1"), trace_of(8)
    for trace in (first, second, reader):
        holds(trace, 0, 10, "start")
    reads(reader, 50, pss=5, pid7=40)
    holds(reader, 50, 10)
    holds(first, 90, 10, "exec")
    reads(reader, 200, pss=6, pid7=70, pid9=999)
    holds(reader, 200, 10)
    holds(second, 200, 10, "exit")
    peak = joined(ends(first, 90), second, ends(reader, 200)).peak()
    assert {(part.process.begin, part.host) for part in peak.parts} == {(0, 6), (100, 70)}


def test_a_process_that_was_killed_before_a_snapshot_is_no_part_of_the_sum() -> None:
    one = trace_of(1)
    reads(one, 0, pss=10, pid2=5)
    holds(one, 0, 0, "start")
    assert joined(ends(one, 100), trace_of(2, ppid="1")).peak().on("total") == 10


def test_owners_and_what_the_ledgers_do_not_have_add_up_to_the_sum() -> None:
    at = family((1, 60, {"pss": 1010, "heap-untouched": 40}), (2, 200, {"pss": 900, "pid1": 900, "pid3": 90})).peak()
    rows = adjustments(at)
    assert ledger_of(at).total.bytes == 1000  # inherited memory once
    assert rows.unwritten == -40 and ledger_of(at).total.bytes + sum(rows) == at.on("total") == 1890


@pytest.mark.parametrize(
    "shares, said",
    [
        ({"pss": 900, "pid1": 1000, "pid3": 10}, ["About 910 B, 48 % of the sum, are pages that forks copied"]),
        ({"pss": 10, "pid1": 1000, "pid3": 10}, []),
        ({"pss": 340, "pid1": 340, "pid3": 340}, []),  # shared by the three
        ({"pss": 10, "pid1": 1900, "pid3": 10}, []),  # of the parent, inside malloc
    ],
)
def test_pages_that_forks_copied_are_a_sentence_where_they_are_much(shares: Dict[str, int], said: List[str]) -> None:
    job = family((1, 60, {"pss": 1010}), (2, 200, shares))
    texts = [each.text for each in statements(build_job_report(job)) if "copied" in each.text]
    assert [text.partition(" by ")[0] for text in texts] == said


def test_device_memory_is_added_to_shares() -> None:
    one = trace_of(1)
    heap, device = one.account("heap", "app", ["main (a.c:1)"]), one.account("device", "app", ["main (a.c:2)"])
    pinned = one.account("pinned", "app", ["main (a.c:3)"])
    one.snapshot(0, "start")
    reads(one, 100, pss=70)
    one.snapshot(100, "time", {heap: (50, 1), device: (1000, 1), pinned: (8, 1)})
    at = joined(ends(one, 200), trace_of(2, ppid="1")).peak()
    assert (at.on("host"), at.on("device")) == (78, 1000)  # pinned memory is in no pages of the process
    assert ledger_of(at).total.bytes + sum(adjustments(at)) == at.on("total")


def test_the_peak_of_each_pool_is_its_own() -> None:
    traces = []
    for pid in (1, 2):
        trace = trace_of(pid, memory="discrete")
        host, device = trace.account("heap", "app", ["main (a.c:1)"]), trace.account("device", "app", ["main (a.c:2)"])
        trace.snapshot(0, "start")
        peaks = ("total", "host", "device")
        trace.snapshot(100, "time", {host: (10, 1), device: (1000, 1)}, {which: (100, {}) for which in peaks})
        trace.snapshot(200, "time", {host: (300, 2), device: (0, 0, 1000, 1, 0)}, {"host": (200, {})})
        traces.append(ends(trace, 300))
    job = joined(*traces)
    assert job.is_discrete and job.measures == ["host", "device"]
    assert [(job.peak(which).on(which), job.peak(which).time) for which in job.measures] == [(600, 200), (2000, 100)]
    said = verdict(job)
    assert "peak 1.95 KiB of device memory" in said and "peak 600 B of host memory" in said


# ---- without shares ------------------------------------------------------------------------------


def test_without_shares_ledgers_count_and_inherited_memory_once() -> None:
    assert family().peak().on("total") == 1000
    assert "sum of ledgers, without PSS" in verdict(family())


def test_orphans_of_a_fork_are_named_and_count_with_what_they_inherited() -> None:
    child = trace_of(2, forked_from="1", ppid="1")
    holds(child, 100, 1000, "fork")
    job = joined(child, trace_of(9))
    assert [p.pid for p in job.orphans] == [2] and job.peak().on("total") == 1000


@pytest.mark.parametrize("n_bytes, is_said", [(9, False), (10, True)])
def test_a_line_that_holds_hardly_anything_is_not_the_largest_line(n_bytes: int, is_said: bool) -> None:
    traces = [trace_of(pid) for pid in (1, 2)]
    traces[0].group("yours", "data")
    line = traces[0].account("heap", "data", ["malloc (libc.so.6)", "py main (/app/train.py:24)"])
    other = traces[0].account("heap", "python", ["malloc (libc.so.6)", "main (python3)"])
    traces[0].snapshot(100, "time", {line: (n_bytes, 1), other: (1000 - n_bytes, 1)})
    said = [each.text for each in statements(build_job_report(joined(*traces)))]
    assert any(text.startswith("Largest line: train.py:24 (main) in ") for text in said) == is_said


@pytest.mark.parametrize("left, said", [(40 << 10, "!!! Process 1: Leak"), (0, "Process 1: Grows"), (None, "")])
def test_a_leak_of_a_process_is_a_warning_unless_the_end_frees_it(left: Optional[int], said: str) -> None:
    """None: it frees it, and it is little beside the rest."""
    traces = [trace_of(pid) for pid in (1, 2)]
    kept, rest = (
        traces[0].account("heap", "app", [place, "main (a.cc:9)"]) for place in ("add (a.cc:6)", "all (a.cc:7)")
    )
    for step in range(1, 41):
        traces[0].snapshot(
            100 * step,
            "time",
            {kept: (step << 10, step, 0, step), rest: (1 << (10 if left is not None else 26), 1, 0, 1)},
        )
    traces[0].snapshot(4100, "exit", {kept: (left or 0, 1, 0, 40), rest: (0, 0, 0, 1)})
    text = "\n".join(job_report.write(joined(*traces), lambda _: View(None, 1, "stack", 200)))
    found = re.findall(r"^(?:!!! )?Process 1: (?:Leak|Grows)", text, re.MULTILINE)
    assert found == [said] * bool(said)


# ---- workers that their parent ends --------------------------------------------------------------


def happened(job: Processes) -> List[Statement]:
    return [each for each in statements(build_job_report(job)) if each.about == HAPPENED]


def pool(parent_end: str, worker_end: str, n_workers: int = 2) -> Processes:
    parent = trace_of(1)
    holds(parent, 0, 1000, "start")
    workers = []
    for number in range(n_workers):
        worker = trace_of(2 + number, ppid="1", forked_from="1")
        holds(worker, 10, 1000, "fork")
        worker.lines.append(worker_end)
        workers.append(worker)
    parent.lines.append(parent_end)
    return joined(parent, *workers)


def test_workers_that_were_ended_when_their_work_was_done_are_a_sentence_below_the_headline() -> None:
    job = pool("Z 400 exit 0", "Z 300 signal 15")
    assert not happened(job)
    text = " ".join(job_report.write(job, lambda _: View(None, 1, "stack", 70)))
    assert "Ended by their parent after their work (SIGTERM): processes 2 and 3." in text and "!!!" not in text


@pytest.mark.parametrize(
    "parent_end, worker_end",
    [
        ("Z 400 exit 1", "Z 300 signal 15"),  # the job failed
        ("Z 400 signal 15", "Z 300 signal 15"),  # somebody ended all of it
        ("Z 200 exit 0", "Z 300 signal 15"),  # the parent was there no more
        ("Z 400 exit 0", "Z 300 signal 11"),  # nobody sends that to be done with a worker
        ("Z 400 exit 0", "Z 300 signal 9"),  # the kernel may have, for lack of memory
    ],
)
def test_other_ends_by_a_signal_stay_failures(parent_end: str, worker_end: str) -> None:
    happened_ = happened(pool(parent_end, worker_end))
    assert [each.text.partition(":")[0] for each in happened_ if each.severity == ALARM][:2] == (
        ["Process 1", "Process 2"] if "signal" in parent_end else ["Process 2", "Process 3"]
    )


def test_of_many_processes_that_died_the_first_are_named_and_the_others_counted() -> None:
    happened_ = happened(pool("Z 400 exit 1", "Z 300 signal 11", 40))
    assert len(happened_) == 5 and all(f"Process {2 + n}: " in happened_[n].text for n in range(3))
    assert happened_[3].severity == ALARM and "processes 5, 6, 7, 8 and 33 more" in happened_[3].text
    assert happened_[4].text == "Process 1: exit status 1, after 400 ms."


# ---- as text -------------------------------------------------------------------------------------


@pytest.fixture(name="files")
def fixture_files(tmp_path: Path) -> List[str]:
    names = []
    parent, child = trace_of(1), trace_of(2, forked_from="1", ppid="1")
    holds(parent, 0, 0, "start")
    holds(parent, 50, 1000 << 10)
    holds(child, 100, 1000 << 10, "fork")
    holds(child, 200, 1700 << 10, total=1700 << 10)
    for number, trace in enumerate((ends(parent, 400), ends(child, 300))):
        (tmp_path / f"jm.{number}").write_bytes(trace.bytes())
        names.append(str(tmp_path / f"jm.{number}"))
    return names


def test_several_traces_print_a_table_their_sum_and_the_largest(
    files: List[str], capsys: "pytest.CaptureFixture[str]"
) -> None:
    assert main(["report", *files]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines() if re.match(r" +\d .*program", line)]
    assert rows[0][0] == "1" and rows[0][-2:] == ["program", "1"]
    assert rows[1][0] == "2" and "fork:" in rows[1]
    (total,) = [line.split() for line in out.splitlines() if re.match(r" +sum ", line)]
    assert total == ["sum", "1.66", "MiB"]
    text = " ".join(out.split())
    assert (
        "2 processes: peak 1.66 MiB (sum of ledgers, without PSS), after 200 ms; 1000 KiB of it in program (process 1)"
        in text
    )
    # The child held more than its parent, but not of its own.
    assert "Process 1, the largest process" in out and "Process 2," not in out


def test_a_report_of_many_processes_is_two_screens_too(tmp_path: Path, capsys: "pytest.CaptureFixture[str]") -> None:
    parent = crowded()
    parent.lines[1:1] = [f"m start-unix-ms {START}", "m host board"]
    traces = [parent]
    for number in range(40):
        child = trace_of(5000 + number, 1, ppid="4711", command=f"worker --number={number} " * 9)
        holds(child, 0, 1000, "start")
        holds(child, 3, (30 if number == 17 else 20 - number % 9) << 20)
        child.lines.append("Z 20 signal 11")
        traces.append(child)
    names = [str(tmp_path / f"jm.{number}") for number in range(len(traces))]
    for name, trace in zip(names, traces):
        Path(name).write_bytes(trace.bytes())
    assert main(["report", *names]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 120 and max(len(line) for line in lines if "jmassif" not in line) <= 100
    assert sum("worker --number" in line for line in lines) < 16 and "and 29 smaller: --all" in lines
    assert any(line.split()[:1] == ["5017"] for line in lines)
    assert main(["report", "--all", *names]) == 0
    assert sum("worker --number" in line for line in capsys.readouterr().out.splitlines()) >= 40


def test_traces_of_earlier_runs_are_told_from_those_of_the_newest(
    files: List[str], tmp_path: Path, capsys: "pytest.CaptureFixture[str]"
) -> None:
    assert main(["report", *files]) == 0
    assert capsys.readouterr().err == ""
    # Its start is a second later, and the other's, of the same shell, while it ran.
    for pid, start in ((7, 1000), (8, 1100)):
        later = trace_of(pid, start, ppid="99")
        holds(later, 0, 1000)
        files.append(str(ends(later, 200).save(tmp_path, f"later {pid}")))
    assert main(["report", *files]) == 0
    said = capsys.readouterr().err
    alone = "; the newest alone: jmassif report " + " ".join(f"'{name}'" for name in files[2:])
    assert said.startswith("jmassif report: 2 of these 4 traces are of earlier runs, unrelated to the newest")
    assert said.endswith(f"{alone}\n") and said.count("\n") == 1
    assert main(["report", *files[2:]]) == 0 and not capsys.readouterr().err


def test_ranks_and_orphans_of_one_fork_are_one_run() -> None:
    ranks = [trace_of(n, 5000 * n) for n in (0, 1)]
    for number, rank in enumerate(ranks):
        rank.manifest("env.RANK", str(number))
        rank.manifest("env.WORLD_SIZE", "2")
        ends(rank, 100)
    orphans = [trace_of(n, forked_from="1", ppid="1") for n in (2, 3)]
    for n, orphan in enumerate(orphans, 1):
        holds(orphan, 5000 * n, 100, "fork")
        ends(orphan, 5000 * n + 9)
    for traces in (ranks, orphans):
        members = joined(*traces).members
        assert newest_run(members) == members


def test_each_prints_every_process(files: List[str], capsys: "pytest.CaptureFixture[str]") -> None:
    assert main(["report", "--each", *files]) == 0
    out = capsys.readouterr().out
    assert "Process 1, the trace" in out and "Process 2, the trace" in out


def test_a_trace_that_is_named_twice_is_one(files: List[str], capsys: "pytest.CaptureFixture[str]") -> None:
    assert main(["report", files[0], files[0]]) == 0
    assert "Processes" not in capsys.readouterr().out


def test_a_trace_and_its_copy_are_not_added_up(files: List[str], capsys: "pytest.CaptureFixture[str]") -> None:
    copy = Path(files[0]).with_name("copy")
    copy.write_bytes(Path(files[0]).read_bytes())
    assert main(["report", *files, str(copy)]) == 2
    assert f"{copy}: is of the same process as {files[0]}" in capsys.readouterr().err


def test_json_has_the_numbers_of_the_report(files: List[str]) -> None:
    made = json.loads(jm_print("--format=json", *files).out)
    validator("jmassif-job").validate(made)
    job = api.Processes.load(files)
    at = job.peak()
    assert made["format"] == "jmassif-job" and made["peaks"][made["peak"]] == {
        "time": 200,
        "host": 1700 << 10,
        "device": 0,
    }
    assert [row["at_peak"]["host"] for row in made["processes"]] == [part.host for part in at.parts]
    assert made["ledger"]["total"]["host_bytes"] + sum(made["adjustments"].values()) == at.on("total")
    assert max(made["timeline"]["host"]) == 1700 << 10 and made["largest"] == 1


def test_formats_of_one_process_refuse_several(files: List[str], capsys: "pytest.CaptureFixture[str]") -> None:
    assert main(["report", "--format=massif", *files]) == 2
    assert "one trace" in capsys.readouterr().err


# ---- real programs -------------------------------------------------------------------------------

THREE = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    int to_child[2], to_parent[2];
    char byte = 0;
    void *shared = calloc(1, 8 << 20);
    if (pipe(to_child) || pipe(to_parent))
        return 1;
    for (int i = 1; i <= 3; i++)
        if (fork() == 0) {
            void *own = calloc(1, i << 20);
            if (i == 1)
                free(shared);
            if (write(to_parent[1], &byte, 1) != 1 || read(to_child[0], &byte, 1) != 1)
                _exit(1);
            free(own);
            _exit(0);
        }
    void *mine = calloc(1, 5 << 20);
    for (int i = 0; i < 3; i++)
        if (read(to_parent[0], &byte, 1) != 1)
            return 1;
    // All four hold their memory for longer than a millisecond of the clock: shorter moments are in no trace.
    usleep(50000);
    for (int i = 0; i < 3; i++)
        if (write(to_child[1], &byte, 1) != 1)
            return 1;
    while (wait(NULL) > 0)
        ;
    free(mine);
    free(shared);
    return 0;
}
"""

WORKERS = """
import multiprocessing, sys, time
def work(n, barrier, is_past):
    held = bytearray(n << 20)
    barrier.wait()
    if n == 5:
        is_past.send(True)  # who is ended within the barrier keeps its lock from the others
        time.sleep(600)
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    held = bytearray(16 << 20)
    barrier = context.Barrier(4)
    past, is_past = context.Pipe(False)
    workers = [context.Process(target=work, args=(n, barrier, is_past)) for n in (3, 4, 5)]
    for worker in workers:
        worker.start()
    barrier.wait()
    past.recv()
    workers[-1].terminate()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, -15]
"""


def recorded(recording: harness.Recording) -> Processes:
    assert recording.returncode == 0, recording.stderr
    return join([(str(trace), recording.load(trace)) for trace in recording.traces])


def test_a_program_that_forks_three_children() -> None:
    job = recorded(harness.record([harness.compile_c(THREE)]))
    assert [p.relation for p in job.members] == ["", FORKED, FORKED, FORKED]
    # The blocks, and less than a kilobyte, or a page for a large block, of overhead.
    true = (8 + 5 + 1 + 2 + 3) << 20
    assert true <= job.peak().on("total") < true + 5 * 8192


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pythons_worker_processes(method: str, tmp_path: Path) -> None:
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    job = recorded(harness.record([harness.PYTHON, script, method], ["--trace-children=yes"], cwd=tmp_path))
    workers = [p for p in job.members if p.depth == 1 and "resource_tracker" not in p.profile.manifest["command"]]
    assert {p.relation for p in workers} == {FORKED if method == "fork" else SPAWNED} and len(workers) == 3
    base = (16 + 3 + 4 + 5) << 20
    # Besides, each interpreter that was started anew holds some megabytes of its own.
    around = 4 << 20 if method == "fork" else 4 * (4 << 20)
    assert 0.9 * base < job.peak().on("total") < base + around
    # That a parent ends a worker that it needs no more is no failure of the worker's.
    ended = [p for p in workers if p.profile.end and p.profile.end.reason == "signal"]
    assert len(ended) == 1 and not happened(job)
    assert [each.process for each in build_job_report(job).ended if each.is_dismissed] == ended


def region(trace: Trace, begin: int, end: int, text: str, n_bytes: int) -> None:
    """Grows by bytes while it is open."""
    trace.region_begin(begin, text)
    trace.lines.append(f"t {end} {n_bytes} 0 {n_bytes}")
    trace.region_end(end, text)


def test_regions_of_all_processes_are_named_with_their_process(
    tmp_path: Path, capsys: "pytest.CaptureFixture[str]"
) -> None:
    files = []
    for pid, name, n_bytes in ((10, "load", 5 << 20), (20, "train", 3 << 20)):
        trace = trace_of(pid, command=f"worker{pid}.py")
        holds(trace, 0, 1)
        region(trace, 10, 30, name, n_bytes)
        holds(trace, 50, n_bytes)
        files.append(str(ends(trace, 60).save(tmp_path, f"{pid}.jm")))
    assert main(["report", "--no-pager", *files]) == 0
    section = capsys.readouterr().out.partition("Regions of all processes")[2].splitlines()[2:4]
    rows = [line.split() for line in section]
    assert [[row[0], row[1], *row[-2:]] for row in rows] == [
        ["10", "1", "load", "(worker10.py)"],
        ["20", "1", "train", "(worker20.py)"],
    ]
    assert "5.00 MiB" in section[0] and "3.00 MiB" in section[1] and all("20 ms" in line for line in section)
