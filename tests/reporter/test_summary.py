# SPDX-License-Identifier: GPL-2.0-or-later
"""The first screen's numbers and sentences, of runs made by hand of which the truth is known."""

import re
from collections import Counter
from typing import Any, Callable, Dict, List

import pytest

from jmassif.analysis import summary
from jmassif.analysis.advice import CacheCause
from jmassif.analysis.leaks import Growth, Leak
from jmassif.analysis.moments import select
from jmassif.analysis.summary import Report, build_report, moment_of
from jmassif.attribution.names import Names
from jmassif.model.run_info import short_command
from jmassif.render import text
from jmassif.render.summary import findings, remarks, verdict
from jmassif.render.view import View
from tests.reporter.test_exhaustion import MIB, Run, on_board
from tests.reporter.traces import Trace, small_training_run

TORCH = "py relu (/usr/lib/python3/dist-packages/torch/nn/functional.py:1457)"
IMPORT = [
    "dlopen (ld.so)",
    "py <module> (/usr/lib/python3/dist-packages/torch/__init__.py:9)",
    "py _call_with_frames_removed (<frozen importlib._bootstrap>:241)",
]


def of(trace: Trace, selector: str = "") -> Report:
    profile = trace.load()
    names = Names(profile)
    return build_report(profile, moment_of(profile, names, selector or None), names)


def ended(trace: Trace, how: str = "exit 0", time: int = 9) -> Trace:
    trace.lines.append(f"Z {time} {how}")
    return trace


def holding(**manifest: str) -> Trace:
    trace = Trace(time_unit="ms", **manifest)
    trace.group("yours", "app")
    trace.snapshot(5, "time", {trace.account("heap", "app", ["work (x.c:1)"]): (100 * MIB, 1)})
    return trace


# ---- the verdict ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how, severity, said",
    [
        ("exit 0", "note", "exit status 0"),
        ("exit 3", "warning", "exit status 3"),
        ("signal 9", "alarm", "killed by signal 9 (SIGKILL)"),
    ],
)
def test_the_verdict_has_the_peak_and_the_end(how: str, severity: str, said: str) -> None:
    report = of(ended(holding(command="/usr/bin/python3 /a/train.py --n 3"), how))
    # Without the command: that of a script "fits" would read as an answer.
    assert verdict(report) == f"Peak 100 MiB, after 5 ms; {said}" and report.run.name == "train.py --n 3"
    assert report.outcome.severity == severity and not remarks(report)


def test_a_trace_without_an_end_is_of_a_program_that_was_killed_or_runs_still() -> None:
    report = of(holding())
    assert report.outcome.severity == "alarm" and verdict(report).endswith("no end record: killed, or still running")


@pytest.mark.parametrize(
    "command, name",
    [
        ("/usr/bin/python3 /a/b/train.py --epochs 2", "train.py --epochs 2"),
        ("python3.11 -m pip list", "python3.11 -m pip list"),
        ("./a.out 'one two'", "a.out one two"),
        ("./a.out 'one", "a.out 'one"),
        ("./\x1b[2Jx", "\\x1b[2Jx"),
        ("", ""),
    ],
)
def test_a_command_goes_without_its_interpreter_and_directories(command: str, name: str) -> None:
    assert short_command(command) == name and len(short_command(command + " x" * 99)) <= 60


def test_out_of_memory_names_the_line_the_size_and_what_was_missing() -> None:
    run = Run(command="./a.out").segment(0x1000_0000, 3900 * MIB, [(0, 3900 * MIB)])
    run.fails(300 * MIB, account=run.tensor, **on_board(196 * MIB))
    report = of(ended(run.trace, "exit 1"))
    said = "OUT OF MEMORY at 2 ms: cudaMalloc of 300 MiB at train.py:7 was 104 MiB short; exit status 1"
    assert verdict(report) == said and not remarks(report)
    assert "That line holds most: train.py:7 (f), 3.81 GiB, 100 % of it." in [found.text for found in findings(report)]
    # Everything below is of that moment.
    assert (report.moment.name, report.moment.snapshot, report.failure) == ("the failure", 2, report.out_of_memory[0])
    assert report.ladders[0].time == 2 and report.ledger.total.bytes == 3900 * MIB


@pytest.mark.parametrize("file, others", [("train.py", []), ("my train.py", ["holds-most"])])
def test_a_leak_that_ends_in_a_failure_comes_before_what_helps_once(file: str, others: List[str]) -> None:
    trace = Trace(time_unit="ms")
    trace.group("yours", "data")
    held, kept = (trace.account("heap", "data", [f"py load (/a/{name}:3)"]) for name in ("train.py", file))
    for step in range(1, 31):
        trace.snapshot(100 * step, "time", {held: (100 * MIB, 1, 0, 1), kept: (step * MIB, step, 0, step)})
    trace.exhaustion(3001, kept, MIB)
    trace.snapshot(3002, "end", {})
    report = of(ended(trace, "exit 1", 3003))
    found = findings(report)
    assert report.failure and found[0].text.startswith(f"Leak: {file}:3 (load) keeps what it allocates")
    # Its own line needs no second sentence; the other file's name only ends like it.
    assert report.hot_spot and report.hot_spot.label == "train.py:3 (load)"
    assert [finding.key for finding in found] == ["growth", *others]


def test_a_failure_has_one_time() -> None:
    """Its snapshot comes a little later; only the peak is of another moment, and has a command."""
    run = Run().segment(0x1000_0000, 3900 * MIB, [(0, 3900 * MIB)])
    run.trace.exhaustion(2, run.tensor, 300 * MIB)
    run.snapshot(7)
    profile = ended(run.trace, "exit 1").load()
    lines = list(text.write(profile, View(None, 1, "stack", 70, is_brief=True, file="a.jmassif")))
    first = lines[: next(number for number, line in enumerate(lines) if line.startswith("Page:")) + 1]
    peak = profile.peaks["total"].time if profile.peaks else profile.snapshots[1].time
    assert lines[1] == f"All figures below are of the failure; the peak, 3.81 GiB, was at {peak} ms."
    assert set(re.findall(r"\b\d+ ms", " ".join(first))) == {"2 ms", f"{peak} ms"}
    assert "Peak: jmassif report a.jmassif --snapshot=peak" in first


def test_what_scales_with_the_input_gives_the_batch_that_would_have_fit() -> None:
    run = Run()
    activation = run.trace.account("device", "tensor", ["py f (/app/train.py:8)"], "activation")
    run.holds(activation, 600 * MIB).fails(300 * MIB, account=run.tensor, **on_board(120 * MIB))
    (found,) = [finding for finding in findings(of(ended(run.trace, "exit 1"))) if finding.key == "smaller-batch"]
    # 180 of 900 MiB too much.
    assert found.text.startswith("With at most 80 % of the batch this request would have fit")


def test_a_program_that_went_on_without_the_memory_is_no_alarm() -> None:
    run = Run().segment(0x1000_0000, 100 * MIB, [(0, 100 * MIB)])
    run.fails(300 * MIB, **on_board(196 * MIB))
    report = of(ended(run.trace))
    remark = remarks(report)[0]
    assert report.failure is None and report.moment.is_peak is False and report.moment.name != "the failure"
    assert remark.severity == "warning" and remark.text.endswith("The program went on.")
    assert remark.text.startswith("cudaMalloc of 300 MiB")


def test_what_succeeded_at_a_further_try_is_only_mentioned() -> None:
    run = Run().segment(0x1000_0000, 100 * MIB, [(0, 100 * MIB)])
    event = run.fails(300 * MIB, **on_board(196 * MIB))
    run.trace.outcome(event, 3, "retried")
    remark = remarks(of(ended(run.trace)))[0]
    assert remark.severity == "note" and remark.text.startswith("1 allocation failed")


# ---- against the capacity ------------------------------------------------------------------------


def test_memory_is_told_against_the_machines() -> None:
    report = of(ended(holding(mem_total_bytes=str(400 * MIB))))
    assert verdict(report) == "Peak 100 MiB of the machine's 400 MiB, after 5 ms; exit status 0"
    # On a workstation that is far from full it would be noise.
    assert " of the " not in verdict(of(ended(holding(mem_total_bytes=str(4000 * MIB)))))


def test_a_control_groups_limit_is_the_pool_where_it_is_less() -> None:
    trace = holding(mem_total_bytes=str(4000 * MIB))
    trace.lines += [f"y 5 cgroup-limit {120 * MIB}", f"y 5 cgroup-used {118 * MIB}"]
    report = of(ended(trace))
    assert "Peak 100 MiB of the control group's limit of 120 MiB" in verdict(report)
    (remark,) = remarks(report)
    assert remark.text.startswith("At most 98 % of the control group's limit of 120 MiB was in use")


def test_a_long_cxx_function_is_cut_before_its_line() -> None:
    trace = Trace()
    function = "load(std::vector<Point, std::allocator<Point> >&)"
    held = {trace.account("heap", "app", [f"{function} (/app/a.cpp:7)", "main (/app/a.cpp:9)"]): (50 * MIB, 1)}
    trace.snapshot(1, "time", held, {"total": (1, {})})
    shown = "\n".join(text.write(trace.load(), View(None, 1, "stack", 70)))
    assert re.search(r"^load\(std::vector<Point, std::\w+… \(a\.cpp:7\) +50\.0 MiB", shown, re.M)


def test_on_a_discrete_gpu_the_devices_memory_is_told_against_the_gpus() -> None:
    trace = small_training_run("discrete")
    trace.lines[-1:-1] = [
        f"y 700 device-total {200 * MIB}",
        f"y 700 device-free {8 * MIB}",
        f"y 700 device-ledger {190 * MIB}",
    ]
    report = of(trace)
    assert "Peak 190 MiB of device memory of the GPU's 200 MiB, after 600 ms" in verdict(report)
    assert [(whole.of, whole.bytes) for whole in report.wholes] == [
        ("device", 190 * MIB),
        ("host", report.ledger.total.host_bytes),
    ]
    assert report.hot_spot is not None and report.hot_spot.bytes == 130 * MIB
    assert "233 MiB" not in " ".join(text.write(trace.load(), View(None, 1, "stack", 70)))


# ---- lines and imports ---------------------------------------------------------------------------


def lines_of(report: Report) -> List[Any]:
    return [(row.label, row.tensors, row.cache, row.imported, row.usage.bytes) for row in report.lines]


def test_lines_have_tensors_cache_and_imports_apart() -> None:
    trace = Trace()
    trace.group("yours", "tensor")
    trace.group("cached", "cache")
    trace.group("libraries", "framework")
    stack = ["conv (libtorch.so)", TORCH, "py forward (/a/net.py:7)"]
    held = {
        trace.account("device", "tensor", stack): (20, 1),
        trace.account("device", "cache", stack): (30, 1),
        trace.account("file", "framework", IMPORT + ["py <module> (/a/train.py:1)"]): (80, 1),
        trace.account("heap", "framework", ["grow (obmalloc.c:3)"]): (5, 1),
    }
    trace.snapshot(1, "time", held)
    assert lines_of(of(trace)) == [
        ("train.py:1", 0, 0, 80, 80),
        ("net.py:7", 20, 30, 0, 50),
        ("grow (obmalloc.c:3)", 0, 0, 0, 5),
    ]


def test_what_imports_hold_is_a_finding_with_its_line() -> None:
    trace = Trace()
    trace.group("yours", "tensor")
    trace.group("libraries", "framework")
    torch = trace.account("file", "framework", IMPORT + ["py <module> (/a/train.py:1)"])
    mine = trace.account("heap", "tensor", ["conv (libtorch.so)", TORCH, "py forward (/a/net.py:7)"])
    trace.snapshot(1, "time", {mine: (20, 1), torch: (80, 1)})
    found = {each.key: each.text for each in findings(of(trace))}
    assert found["imports"] == "80 % of it, 80 B, is libraries; the import at train.py:1 alone holds 80 B."
    # The loader's part belongs to the runtime, so the import holds more than the libraries do.
    trace.group("runtime", "loader")
    trace.snapshot(2, "time", {trace.account("heap", "loader", IMPORT + ["py <module> (/a/train.py:1)"]): (20, 1)})
    found = {each.key: each.text for each in findings(of(trace))}
    assert found["imports"] == "The import at train.py:1 alone holds 100 B, 83 % of it."
    trace.snapshot(3, "time", {mine: (1000, 1)})
    assert [each.key for each in findings(of(trace))] == ["nothing"]


def test_a_wrapper_says_how_what_it_executes_is_recorded() -> None:
    trace = Trace()
    trace.snapshot(1, "exec", {trace.account("heap", "app", ["main (a.c:1)"]): (20, 1)})
    assert "--trace-children=yes" in findings(of(trace))[0].text


# ---- actions -------------------------------------------------------------------------------------


def cached(empty_mib: int, native: bool = False, **manifest: str) -> Trace:
    """`native`: the latest allocation has no Python line."""
    run = Run(**manifest).segment(0x1000_0000, 100 * MIB, [(0, 100 * MIB)])
    run.segment(0x4000_0000, empty_mib * MIB)
    run.trace.block(2, 0x9000_0000, MIB, run.trace.account("device", "app", ["py g (/app/train.py:9)"]))
    if native:
        run.trace.block(3, 0xA000_0000, MIB, run.trace.account("device", "app", ["run (libtorch_cuda.so)"]))
    run.snapshot(4)
    return ended(run.trace)


def test_a_cache_that_holds_much_can_be_emptied_before_the_line_that_allocates_next() -> None:
    found = findings(of(cached(60), "last"))[0]
    assert found.bytes == 60 * MIB
    assert found.text == (
        "38 % of it, 60.0 MiB, is allocator cache: reserved by PyTorch, holding no tensor. `jmassif fit` tries its"
        " allocator's other settings, which may need less. torch.cuda.empty_cache() before train.py:9 returns 60.0 MiB"
        " of cache; the peak stays, since 160 MiB was held before it."
    )


def test_a_cache_is_emptied_before_a_line_that_somebody_wrote() -> None:
    """The latest allocation may be of a thread that has no Python line."""
    found = findings(of(cached(60, native=True), "last"))[0]
    assert "torch.cuda.empty_cache() before train.py:9 returns 60.0 MiB" in found.text


class Steps:
    """A caching allocator whose tensors are of these sizes in turn, in MiB; one after the other, and then a line 9."""

    def __init__(self, *sizes: int) -> None:
        self.run = Run()
        self.line = self.run.trace.account("device", "cache", ["grow (libc10_cuda.so)", "py f (/app/train.py:7)"])
        self.held: Dict[int, int] = {}  # MiB by address
        for number, n_mib in enumerate(sizes, 1):
            address = next((there for there, held in self.held.items() if held >= n_mib), 0)
            if not address:
                address = number << 32
                self.held[address] = n_mib
                self.run.trace.block(10 * number, address, n_mib * MIB, self.line)
                self.run.trace.totals(10 * number + 1, 0, sum(self.held.values()) * MIB)
            self.run.trace.block(10 * number + 2, address, n_mib * MIB, self.run.tensor)
            self.run.trace.block_end(10 * number + 3, address, self.run.tensor)

    def report(self, next_mib: int = 1) -> Report:
        trace = self.run.trace
        app = trace.account("device", "app", ["py g (/app/train.py:9)"])
        trace.block(990, 1 << 48, next_mib * MIB, app)
        trace.totals(990, 0, (sum(self.held.values()) + next_mib) * MIB)
        trace.snapshot(999, "exit", {self.line: (sum(self.held.values()) * MIB, 1), app: (next_mib * MIB, 1)})
        return of(ended(trace, time=999), "last")


def test_a_cache_of_pieces_that_were_too_small_says_so_with_the_line() -> None:
    report = Steps(40, 30, 60, 90, 130).report()
    cause = report.cache_cause
    # For 60 MiB there were 40, which is no proof: less than as much was free.
    assert cause == CacheCause(90 * MIB + 130 * MIB, 130 * MIB, "train.py:7", 0, 0, 0)
    assert (
        "Cause: fragmentation. 220 MiB was reserved for requests of up to 130 MiB, above all at train.py:7, while as much was free"
        in (findings(report)[0].text)
    )


def test_a_cache_that_was_in_use_before_says_so() -> None:
    run = Run().segment(1 << 32, 100 * MIB, [(0, 100 * MIB)]).segment(2 << 32, 20 * MIB)
    run.trace.block_end(5, 1 << 32, run.tensor)
    run.used = 0
    run.snapshot(6)
    report = of(ended(run.trace), "last")
    assert report.cache_cause == CacheCause(0, 0, "", 100 * MIB, 1, 0)
    assert "It was in use before: 100 MiB at 1 ms, then 0 B." in findings(report)[0].text


def test_of_a_cache_that_nothing_explains_no_cause_is_given() -> None:
    report = Steps(100).report()
    assert report.cache_cause is None and "holding no tensor. `jmassif fit` tries" in findings(report)[0].text


@pytest.mark.parametrize(
    "next_mib, said",
    [
        (
            1,
            "lowers the peak by 1.00 MiB at most, since 100 MiB was held before it; after it 100 MiB less is held.",
        ),
        (
            100,
            "returns 100 MiB of cache, in empty segments; the peak may stay, since later requests may need it again.",
        ),
    ],
)
def test_emptying_a_cache_after_it_was_full_does_not_lower_the_peak(next_mib: int, said: str) -> None:
    report = Steps(100).report(next_mib)
    assert f"torch.cuda.empty_cache() before train.py:9 {said}" in findings(report)[0].text


# ---- nothing to do -------------------------------------------------------------------------------


def quiet(n_snapshots: int, **manifest: str) -> Trace:
    trace = Trace(time_unit="ms", **manifest)
    account = trace.account("heap", "app", ["work (x.c:1)"])
    for number in range(n_snapshots):
        trace.snapshot(number, "time", {account: (100 * MIB, 1)})
    return ended(trace)


def test_a_run_without_a_finding_says_what_it_does_not_suffer_from() -> None:
    (found,) = findings(of(quiet(9)))
    assert found[:3] == ("nothing", 0, "Nothing stands out: no allocation failed, and no leak was found.")


def test_what_is_unknown_is_not_claimed() -> None:
    (found,) = findings(of(quiet(3)))
    assert "no leak" not in found.text and "Whether it leaks is unknown: 3 snapshots" in found.text


def test_of_a_board_it_says_how_full_it_was() -> None:
    trace = quiet(9, mem_total_bytes=str(4000 * MIB), board="NVIDIA Jetson Nano Developer Kit")
    trace.lines[-1:-1] = [f"y 9 mem-total {4000 * MIB}", f"y 9 mem-available {2000 * MIB}"]
    (found,) = findings(of(trace))
    assert found.text.endswith("and the board was at most 50 % full.")


@pytest.mark.parametrize(
    "sonames, heap, said",
    [
        (["", "libc.so.6"], "yes", "Nothing stands out: no allocation failed, and no leak was found."),
        (["", "libc.so.6"], "no", "and no leak was found beside the heap, which was not recorded."),
        ([""], "yes", "The heap was not seen, since the program is linked statically:"),
    ],
)
def test_of_a_heap_that_was_not_seen_nothing_is_claimed(sonames: List[str], heap: str, said: str) -> None:
    trace = quiet(9, recorder="valgrind")
    trace.manifest("option.heap", heap)
    trace.lines += [f"L 0 {1 + n << 20:x} 4096 {trace.string(name)} /a/{n}" for n, name in enumerate(sonames)]
    trace.lines.append(trace.lines.pop(trace.lines.index("Z 9 exit 0")))
    report = of(trace)
    (text,) = [each.text for each in findings(report)] + [each.text for each in remarks(report)]
    assert said in text


@pytest.mark.parametrize(
    "how, said",
    [
        ("exit 1", "The program failed (exit status 1)."),
        ("signal 11", "The program was killed by signal 11 (SIGSEGV)."),
        ("", "The program was killed, or still runs."),
    ],
)
def test_a_run_that_ended_badly_says_so_before_what_it_does_not_suffer_from(how: str, said: str) -> None:
    trace = quiet(9)
    trace.lines.pop()
    (found,) = findings(of(ended(trace, how) if how else trace))
    assert found.text == f"{said} No allocation failed, and no leak was found."


def test_a_small_cache_is_no_advice() -> None:
    assert [found.key for found in findings(of(cached(10), "last"))] == ["nothing"]


# ---- the model -----------------------------------------------------------------------------------


def test_the_text_has_the_reports_sentences() -> None:
    profile = small_training_run().load()
    report = build_report(profile, select(profile, "peak"))
    said = " ".join(" ".join(text.write(profile, View(None, 1, "stack", 70))).split())
    assert verdict(report) in said and all(finding.text in said for finding in findings(report))


ANALYSES = (
    "ledger",
    "roles",
    "ladders",
    "by_place",
    "largest_lines",
    "hot_spot",
    "hints_at",
    "others",
    "machine",
    "mappings",
    "pools",
)


def count_analyses(monkeypatch: "pytest.MonkeyPatch") -> "Counter[str]":
    """Calls of each analysis of a report from now on."""
    calls: "Counter[str]" = Counter()

    def counted(name: str, of: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            calls[name] += 1
            return of(*arguments)

        return call

    for name in ANALYSES:
        monkeypatch.setattr(summary, name, counted(name, getattr(summary, name)))
    return calls


# The ledger of the moment, and that of memory still allocated at exit.
ONCE_EACH = {**{name: 1 for name in ANALYSES}, "ledger": 2, "roles": 2}


def test_one_report_computes_each_analysis_once(monkeypatch: "pytest.MonkeyPatch") -> None:
    calls = count_analyses(monkeypatch)
    profile = small_training_run().load()
    list(text.write(profile, View(None, 1, "stack", 70, is_brief=True, with_stacks=False)))
    assert calls == ONCE_EACH


def test_a_leak_comes_first_and_other_programs_last() -> None:
    report = Steps(40, 30, 60, 90, 130).report()
    hint = report.hints[0]
    leak = Leak("train.py:3", 0, 0, "data", 10.0 * MIB, 9, 90 * MIB, 90 * MIB, 1, 9, 10 * MIB, 90 * MIB)
    changed = report._replace(
        hints=[hint._replace(action=name, bytes=n * MIB) for name, n in (("stop-others", 500), ("smaller-batch", 120))],
        growth=Growth([leak], "step", 9),
    )
    changed.__dict__.update(report.__dict__)
    assert [each.key for each in findings(changed)] == ["growth", "smaller-batch", "stop-others"]
