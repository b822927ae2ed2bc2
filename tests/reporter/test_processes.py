# SPDX-License-Identifier: GPL-2.0-or-later
"""Several traces as one: a common clock, the tree of processes, and the bounds of what they held together."""

import random
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import pytest

from jmassif.analysis.headline import HAPPENED, POOL
from jmassif.analysis.processes import NamesOf, Processes, join
from jmassif.analysis.processes_headline import dismissed, headline_of_job
from jmassif.analysis.run_outcome import ALARM
from jmassif.cli.main import main
from jmassif.model.processes import FORKED, REPLACED, SPAWNED
from jmassif.render import processes
from jmassif.render.view import View
from tests import harness
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
    assert job.peak().at_most == 1000  # one had freed its memory when the other began


def test_memory_held_at_the_same_time_adds_up() -> None:
    one, two = trace_of(1), trace_of(2, 50, ppid="1")
    for trace in (one, two):
        holds(trace, 0, 0, "start")
        holds(trace, 100, 1000)
        ends(trace, 300)
    peak = joined(one, two).peak()
    assert (peak.at_least, peak.at_most) == (2000, 2000)
    assert 150 <= peak.time <= 300


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
    assert (job.peak().at_least, job.peak().at_most) == (1000, 1300)
    assert job.timeline() == []


def test_traces_without_a_start_have_no_common_clock() -> None:
    assert "started" in joined(trace_of(1, start_unix_ms=""), trace_of(2)).no_clock


# ---- what a fork shares --------------------------------------------------------------------------


def family(parent_frees: Optional[int], child_frees: Optional[int]) -> Processes:
    """A parent that holds 1000 bytes forks two children at 100; each lives until 300, the parent until 400."""
    parent = trace_of(1)
    holds(parent, 0, 0, "start")
    holds(parent, 50, 1000)
    children = []
    for pid in (2, 3):
        child = trace_of(pid, forked_from="1", ppid="1")
        holds(child, 100, 1000, "fork")
        if child_frees:
            holds(child, child_frees, 0, total=1000)
        holds(child, 300, 0 if child_frees else 1000, "exit", total=1000)
        children.append(ends(child, 300))
    if parent_frees:
        holds(parent, parent_frees, 0, total=1000)
    holds(parent, 400, 0 if parent_frees else 1000, "exit", total=1000)
    return joined(ends(parent, 400), *children)


@pytest.mark.parametrize("parent_frees", [None, 200])
@pytest.mark.parametrize("child_frees", [None, 150])
def test_inherited_memory_is_counted_once(parent_frees: Optional[int], child_frees: Optional[int]) -> None:
    job = family(parent_frees, child_frees)
    peak = job.peak()
    assert (peak.at_least, peak.at_most) == (1000, 1000)
    assert [p.inherited_bytes for p in job.members] == [0, 1000, 1000]


def test_what_children_keep_and_their_parent_has_freed_still_counts() -> None:
    def level(job: Processes, time: int) -> int:
        return [row.host for row in job.timeline() if row.time <= time][-1]

    assert level(family(parent_frees=200, child_frees=None), 250) == 1000
    assert level(family(parent_frees=200, child_frees=150), 250) == 0


def test_what_a_child_allocates_itself_adds_up() -> None:
    parent = trace_of(1)
    holds(parent, 0, 0, "start")
    holds(parent, 50, 1000)
    child = trace_of(2, forked_from="1", ppid="1")
    holds(child, 100, 1000, "fork")
    holds(child, 200, 1700, total=1700)
    peak = joined(ends(parent, 400), ends(child, 300)).peak()
    assert (peak.at_least, peak.at_most) == (1700, 1700)


def test_orphans_of_a_fork_are_named() -> None:
    child = trace_of(2, forked_from="1", ppid="1")
    holds(child, 100, 1000, "fork")
    other = trace_of(9)
    assert [p.pid for p in joined(child, other).orphans] == [2]


def test_the_peak_of_each_pool_has_bounds_of_its_own() -> None:
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
    assert job.is_discrete
    bounds = {measure: job.peak(measure) for measure in ("host", "device")}
    assert {which: (peak.at_least, peak.at_most) for which, peak in bounds.items()} == {
        "host": (600, 600),
        "device": (1000, 2000),
    }
    assert bounds["host"].time == 200 and bounds["device"].time == 100


class Simulated:
    """A process that allocates and frees at random, and its trace. Blocks that a fork shares keep their numbers."""

    def __init__(self, pid: int, start: int, now: int, parent: "Optional[Simulated]" = None) -> None:
        self.start = start
        self.pid = pid
        self.blocks: Dict[int, Tuple[int, int]] = {}  # number: account, size
        self.totals = {account: [0, 0] for account in (1, 2, 3)}
        self.trace = trace_of(pid, start, forked_from=str(parent.pid) if parent else "")
        for account in (1, 2, 3):
            self.trace.account("heap", "app", [f"f{account} (a.c:{account})"])
        self.maximum = self.peak = -1
        self.at_peak: Tuple[int, Dict[int, Tuple[int, ...]]] = (0, {})
        if parent:
            self.blocks = dict(parent.blocks)
            self.totals = {account: list(counts) for account, counts in parent.totals.items()}
        self._note(now)
        self.snapshot(now, "fork" if parent else "start")

    def held(self) -> int:
        return sum(size for _, size in self.blocks.values())

    def balances(self) -> Dict[int, Tuple[int, ...]]:
        found: Dict[int, Tuple[int, ...]] = {}
        for account, (total, n) in self.totals.items():
            sizes = [size for of, size in self.blocks.values() if of == account]
            found[account] = (sum(sizes), len(sizes), total, n, 0)
        return found

    def _note(self, now: int) -> None:
        self.maximum = max(self.maximum, self.held())
        if self.held() > self.peak:
            self.peak = self.held()
            self.at_peak = (now - self.start, self.balances())

    def step(self, now: int, number: int, random_: random.Random) -> None:
        if self.blocks and random_.random() < 0.5:
            del self.blocks[random_.choice(sorted(self.blocks))]
        else:
            account, size = random_.choice((1, 2, 3)), random_.choice((8, 500, 10_000))
            self.blocks[number] = (account, size)
            self.totals[account][0] += size
            self.totals[account][1] += 1
        self._note(now)

    def row(self, now: int) -> None:
        self.trace.totals(now - self.start, self.held(), 0, self.maximum)
        self.maximum = self.held()

    def snapshot(self, now: int, reason: str = "time") -> None:
        self.row(now)
        peaks = {"total": self.at_peak, "host": self.at_peak} if self.peak > 0 else {}
        self.trace.snapshot(now - self.start, reason, self.balances(), peaks)


def random_job(seed: int) -> Tuple[Processes, int]:
    """And the largest sum that its processes held."""
    random_ = random.Random(seed)
    alive = [Simulated(1, 0, 0)]
    done: List[Simulated] = []
    largest = 0
    pids = iter(range(2, 100))
    events_per_millisecond = random_.choice((1, 3, 20))
    for number in range(1, 300):
        now = number // events_per_millisecond
        process = random_.choice(alive)
        chance = random_.random()
        if chance < 0.02 and len(alive) < 6:
            alive.append(Simulated(next(pids), process.start, now, process))
        elif chance < 0.03 and len(alive) < 6:
            alive.append(Simulated(next(pids), now, now))
        elif chance < 0.04 and len(alive) > 1:
            process.snapshot(now, "exit")
            ends(process.trace, now - process.start)
            done.append(process)
            alive.remove(process)
        elif chance < 0.15:
            process.snapshot(now)
        elif chance < 0.35:
            process.row(now)
        else:
            process.step(now, number, random_)
        union = {block: size for each in alive for block, (_, size) in each.blocks.items()}
        largest = max(largest, sum(union.values()))
    for process in alive:
        process.snapshot(now, "exit")
        ends(process.trace, now - process.start)
    return joined(*[process.trace for process in done + alive]), largest


@pytest.mark.parametrize("seed", range(24))
def test_the_largest_sum_of_a_random_job_lies_between_its_bounds(seed: int) -> None:
    job, largest = random_job(seed)
    for measure in ("total", "host"):
        peak = job.peak(measure)
        assert peak.at_least <= largest <= peak.at_most
    rows = job.timeline()
    assert max(row.maximum for row in rows) == job.peak().at_most
    assert all(row.host + row.device <= row.maximum for row in rows)
    assert job.peak("device").at_most == 0


# ---- workers that their parent ends --------------------------------------------------------------


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
    assert not headline_of_job(job).about(HAPPENED)
    text = " ".join(processes.write(job, lambda _: View(None, 1, "stack", 70, None)))
    assert "What had started processes 2 and 3 sent SIGTERM" in text and "!!!" not in text


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
    happened = headline_of_job(pool(parent_end, worker_end)).about(HAPPENED)
    assert [each.text.partition(":")[0] for each in happened if each.severity == ALARM][:2] == (
        ["Process 1", "Process 2"] if "signal" in parent_end else ["Process 2", "Process 3"]
    )


def test_of_many_processes_that_died_the_first_are_named_and_the_others_counted() -> None:
    happened = headline_of_job(pool("Z 400 exit 1", "Z 300 signal 11", 40)).about(HAPPENED)
    assert len(happened) == 5 and all(f"Process {2 + n}: " in happened[n].text for n in range(3))
    assert happened[3].severity == ALARM and "processes 5, 6, 7, 8 and 33 more" in happened[3].text
    assert happened[4].text == "Process 1: The program ended with exit status 1."


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
    rows = [line.split() for line in out.splitlines() if "program" in line]
    assert rows[0][0] == "1" and rows[0][-2:] == ["program", "1"]
    assert rows[1][0] == "2" and "fork:" in rows[1]
    assert "Together these 2 processes held 1.66 MiB at the peak (200 ms)" in out
    # The child held more than its parent, but not of its own.
    assert "Process 1, the largest process" in out and "Process 2," not in out
    out = " ".join(out.split())
    assert "The largest is process 1, with at most 1000 KiB. The fork, process 2, began with 1000 KiB of its" in out
    assert "of its own it held 700 KiB or more." in out


def test_the_largest_may_be_a_fork_by_what_is_its_own() -> None:
    parent, *children = trace_of(1), trace_of(2, forked_from="1", ppid="1"), trace_of(3, forked_from="1", ppid="1")
    holds(parent, 0, 0, "start")
    holds(parent, 50, 1000 << 10)
    for child, own in zip(children, (1200 << 10, 100 << 10)):
        holds(child, 100, 1000 << 10, "fork")
        holds(child, 200, (1000 << 10) + own, total=(1000 << 10) + own)
    text = " ".join(each.text for each in headline_of_job(joined(parent, *children)).about(POOL))
    assert "The largest is process 2, with at most 2.15 MiB, 1.17 MiB of it its own." in text
    assert "The other fork, process 3, began with 1000 KiB of its parent's; of its own it held 100 KiB or more." in text
    # Whose parent is not there has all that it inherited: nobody else counts it.
    orphans = " ".join(each.text for each in headline_of_job(joined(*children)).about(POOL))
    assert "The largest is process 2, with at most 2.15 MiB." in orphans and "own" not in orphans


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
    assert len(lines) <= 120 and max(len(line) for line in lines if "jm_" not in line) <= 100
    assert sum("worker --number" in line for line in lines) < 14 and "and 29 more, which held less: --all" in lines
    assert any(line.split()[:1] == ["5017"] for line in lines)
    assert main(["report", "--all", *names]) == 0
    assert sum("worker --number" in line for line in capsys.readouterr().out.splitlines()) >= 40


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
    // Here all four hold what they have, for longer than the clock's millisecond: within one, nothing tells that they did.
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
    peak = job.peak()
    # The blocks, and less than a kilobyte, or a page for a large block, of overhead.
    true = (8 + 5 + 1 + 2 + 3) << 20
    assert 0.85 * true < peak.at_least < true + 5 * 8192 and true <= peak.at_most < true + 5 * 8192
    assert [p.inherited_bytes >> 20 for p in job.members] == [0, 8, 8, 8]


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
    peak = job.peak()
    assert 0.6 * base < peak.at_least < base + around and base <= peak.at_most < base + around
    # That a parent ends a worker that it needs no more is no failure of the worker's.
    ended = [p for p in workers if p.profile.end and p.profile.end.reason == "signal"]
    assert len(ended) == 1 and not headline_of_job(job).about(HAPPENED)
    assert f"process {ended[0].pid} sent SIGTERM" in dismissed(job, NamesOf())
