# SPDX-License-Identifier: GPL-2.0-or-later
"""The headline: what a reader is told first, of runs made by hand of which it is known what is true."""

import json
from typing import List

import pytest

from jmassif.analysis.headline import HAPPENED, HELP, LEAK, PLACE, POOL, WHOSE, Headline, as_data, headline, words
from jmassif.analysis.moments import select
from jmassif.analysis.processes import join
from jmassif.attribution.names import Names
from jmassif.cli.formats import FORMATS
from jmassif.html.data import run_data, together
from jmassif.html.page import first_screen
from jmassif.render import processes, text as report
from jmassif.render.processes import headline_of_job
from jmassif.render.view import View
from tests.reporter.test_exhaustion import MIB, Run, on_board
from tests.reporter.test_processes import ends, holds, trace_of
from tests.reporter.traces import Trace, small_training_run

TORCH = "py relu (/usr/lib/python3/dist-packages/torch/nn/functional.py:1457)"
IMPORT = [
    "dlopen (ld.so)",
    "py <module> (/usr/lib/python3/dist-packages/torch/__init__.py:9)",
    "py _call_with_frames_removed (<frozen importlib._bootstrap>:241)",
]


def of(trace: Trace, selector: str = "") -> Headline:
    profile = trace.load()
    return headline(profile, Names(profile), select(profile, selector) if selector else None)


def texts(made: Headline, *abouts: str) -> List[str]:
    return [statement.text for statement in made.about(*abouts)]


def ended(trace: Trace, how: str = "exit 0", time: int = 9) -> Trace:
    trace.lines.append(f"Z {time} {how}")
    return trace


def holding(**manifest: str) -> Trace:
    trace = Trace(time_unit="ms", **manifest)
    trace.group("yours", "app")
    trace.snapshot(5, "time", {trace.account("heap", "app", ["work (x.c:1)"]): (100 * MIB, 1)})
    return trace


def test_the_order_is_that_in_which_a_reader_asks() -> None:
    run = Run()
    run.segment(0x1000_0000, 100 * MIB, [(0, 40 * MIB), (70 * MIB, 30 * MIB)])
    run.segment(0x2000_0000, 50 * MIB, [(20 * MIB, 30 * MIB)])
    run.fails(45 * MIB, **on_board(0))
    abouts = [statement.about for statement in of(run.trace).statements]
    assert abouts == sorted(abouts, key=(HAPPENED, POOL, WHOSE, LEAK, PLACE, HELP).index)
    assert {HAPPENED, POOL, WHOSE, PLACE} <= set(abouts)


# ---- what happened -------------------------------------------------------------------------------


def test_a_run_that_went_well_has_nothing_that_happened() -> None:
    assert not of(ended(holding())).about(HAPPENED)


def test_out_of_memory_names_the_line_the_size_and_what_was_missing() -> None:
    run = Run().segment(0x1000_0000, 3900 * MIB, [(0, 3900 * MIB)])
    run.fails(300 * MIB, account=run.tensor, **on_board(196 * MIB))
    made = of(ended(run.trace, "exit 1"))
    (statement,) = made.about(HAPPENED)
    assert statement.severity == "alarm" and made.incident == 1
    assert "cudaMalloc of 300 MiB failed, asked for by train.py:7 (f)" in statement.text
    assert "104 MiB too little" in statement.text and "exit status 1" in statement.text


def test_a_program_that_went_on_without_the_memory_is_no_alarm() -> None:
    run = Run().segment(0x1000_0000, 100 * MIB, [(0, 100 * MIB)])
    run.fails(300 * MIB, **on_board(196 * MIB))
    (statement,) = of(ended(run.trace)).about(HAPPENED)
    assert statement.severity == "warning" and "went on" in statement.text


def test_what_succeeded_at_a_further_try_is_only_mentioned() -> None:
    run = Run().segment(0x1000_0000, 100 * MIB, [(0, 100 * MIB)])
    event = run.fails(300 * MIB, **on_board(196 * MIB))
    run.trace.outcome(event, 3, "retried")
    (statement,) = of(ended(run.trace)).about(HAPPENED)
    assert statement.severity == "note" and statement.text.startswith("1 allocation failed")


@pytest.mark.parametrize(
    "how, severity, text",
    [
        ("signal 9", "alarm", "The program was killed by signal 9 (SIGKILL) after 9 ms."),
        ("exit 3", "warning", "The program ended with exit status 3."),
    ],
)
def test_how_it_ended_is_told_if_not_well(how: str, severity: str, text: str) -> None:
    (statement,) = of(ended(holding(), how)).about(HAPPENED)
    assert (statement.severity, statement.text) == (severity, text)


def test_a_trace_without_an_end_is_of_a_program_that_was_killed() -> None:
    (statement,) = of(holding()).about(HAPPENED)
    assert statement.severity == "alarm" and "without the program's end" in statement.text


def test_where_memory_ran_short_it_is_said_that_this_probably_killed_it() -> None:
    trace = holding()
    trace.snapshot(7, "low-memory")
    trace.lines += ["y 7 mem-available 1048576"]
    (statement,) = of(trace).about(HAPPENED)
    assert "run short at 7 ms" in statement.text and "probably it was killed" in statement.text


# ---- the fullest pool ----------------------------------------------------------------------------


def test_memory_is_told_against_the_machines() -> None:
    made = of(ended(holding(mem_total_bytes=str(400 * MIB))))
    assert texts(made, POOL) == [
        "The program held 100 MiB at the fullest snapshot (5 ms), 25.0 % of the machine's 400 MiB."
    ]
    assert made.held == 100 * MIB and made.pool is not None and made.pool.capacity == 400 * MIB


def test_a_control_groups_limit_is_the_pool_where_it_is_less() -> None:
    trace = holding(mem_total_bytes=str(4000 * MIB))
    trace.lines += [f"y 5 cgroup-limit {120 * MIB}", f"y 5 cgroup-used {118 * MIB}"]
    made = of(ended(trace))
    (statement,) = made.about(POOL)
    assert statement.severity == "warning"
    assert "83.3 % of the control group's limit of 120 MiB" in statement.text
    assert "at most 98.3 % of it was in use" in statement.text


def test_on_a_discrete_gpu_the_devices_memory_is_told_against_the_gpus() -> None:
    trace = small_training_run("discrete")
    trace.lines[-1:-1] = [
        f"y 700 device-total {200 * MIB}",
        f"y 700 device-free {8 * MIB}",
        f"y 700 device-ledger {190 * MIB}",
    ]
    made = of(trace)
    first, second = texts(made, POOL)
    assert first.startswith(
        "The program held 190 MiB of device memory at the peak (600 ms), 95.0 % of the GPU's 200 MiB."
    )
    assert second == "It also held 43.0 MiB of host memory."
    assert made.place is not None and (made.place.bytes, made.place.whole) == (130 * MIB, 190 * MIB)


def test_a_unified_boards_memory_in_a_gpus_pool_is_the_devices_alone() -> None:
    """Where the GPU has less than the machine, the sentence says what the bar above it draws: 190 of 200 MiB."""
    trace = small_training_run()
    trace.lines[-1:-1] = [
        f"y 700 mem-total {9000 * MIB}",
        f"y 700 device-total {200 * MIB}",
        f"y 700 device-free {8 * MIB}",
        f"y 700 device-ledger {190 * MIB}",
    ]
    made = of(trace)
    assert made.pool is not None and made.pool.sides == ("device",)
    (told,) = texts(made, POOL)
    assert told.startswith(
        "The program held 233 MiB (43.0 MiB host + 190 MiB device) at the peak (600 ms);"
        " its device memory is 95.0 % of the GPU's 200 MiB. With everything else, at most 96.0 % of it was in use."
    )
    profile = trace.load()
    assert "190 MiB</span> of 200 MiB" in first_screen(join([("a", profile)]), None, [Names(profile)])


def test_a_unified_board_whose_gpu_has_all_of_its_memory_counts_both_sides() -> None:
    trace = small_training_run()
    trace.lines[-1:-1] = [
        f"y 700 mem-total {500 * MIB}",
        f"y 700 device-total {495 * MIB}",
        f"y 700 device-free {8 * MIB}",
    ]
    (told,) = texts(of(trace), POOL)
    assert "(43.0 MiB host + 190 MiB device) at the peak (600 ms), 46.6 % of the machine's 500 MiB." in told


def test_pools_of_a_discrete_gpu_are_not_added_up() -> None:
    assert "233 MiB" not in words(of(small_training_run("discrete")))


# ---- where to look -------------------------------------------------------------------------------


def place_of(trace: Trace) -> str:
    (text,) = texts(of(trace), PLACE)
    return text


def test_a_line_of_the_users_own_comes_before_a_larger_import() -> None:
    trace = Trace()
    trace.group("yours", "tensor")
    trace.group("libraries", "framework")
    mine = trace.account("heap", "tensor", ["conv (libtorch.so)", TORCH, "py forward (/a/net.py:7)"])
    theirs = trace.account("file", "framework", IMPORT + ["py <module> (/a/train.py:1)"])
    trace.snapshot(1, "time", {mine: (20, 1), theirs: (80, 1)})
    assert place_of(trace) == (
        "Look first at net.py:7 (forward): 20 B, 20.0 % of all it held (tensor)."
        " The import at train.py:1 (<module>) holds 80 B (80.0 %)."
    )


def test_a_line_that_imports_late_is_told_by_what_it_made_itself() -> None:
    trace = Trace(time_unit="ms")
    trace.group("yours", "data")
    trace.group("libraries", "package")
    call = "py work (/a/nb.py:9)"
    own = trace.account("heap", "data", ["PyArray_NewFromDescr (numpy.so)", call])
    late = trace.account(
        "heap",
        "package",
        ["malloc (libc.so)"] + IMPORT + ["py compile (/usr/lib/python3/dist-packages/numba/x.py:1)", call],
    )
    for bytes_of_import, told in ((30, ""), (50, " What it imports holds 50 B (55.6 %) more.")):
        trace.snapshot(5, "time", {own: (40, 1), late: (bytes_of_import, 1)})
        (place,) = texts(of(trace, "last"), PLACE)
        share = "57.1" if bytes_of_import == 30 else "44.4"
        assert place == f"Look first at nb.py:9 (work): 40 B, {share} % of all it held (data).{told}"


def test_what_imports_hold_does_not_hide_the_line_that_can_be_changed() -> None:
    trace = Trace()
    trace.group("yours", "tensor", "data")
    trace.group("libraries", "framework")
    torch = trace.account("file", "framework", IMPORT + ["py <module> (/a/train.py:1)"])
    numpy = trace.account("file", "framework", IMPORT + ["py <module> (/a/train.py:2)"])
    mine = trace.account("heap", "tensor", ["conv (libtorch.so)", TORCH, "py forward (/a/net.py:7)"])
    tiny = trace.account("heap", "data", ["PyBytes (python)", "py forward (/a/net.py:7)"])
    trace.snapshot(1, "time", {torch: (7000, 1), numpy: (2500, 1), mine: (499, 1), tiny: (1, 1)})
    assert place_of(trace) == (
        "Look first at net.py:7 (forward): 500 B, 5.0 % of all it held (tensor)."
        " Imports hold 9.28 KiB (95.0 %), most of it that at train.py:1 (<module>)."
    )


def test_imports_that_hold_less_than_the_line_to_look_at_are_not_told() -> None:
    trace = Trace()
    trace.group("yours", "tensor")
    trace.group("libraries", "framework")
    torch = trace.account("file", "framework", IMPORT + ["py <module> (/a/train.py:1)"])
    mine = trace.account("heap", "tensor", ["conv (libtorch.so)", TORCH, "py forward (/a/net.py:7)"])
    trace.snapshot(1, "time", {torch: (40, 1), mine: (60, 1)})
    assert place_of(trace) == "Look first at net.py:7 (forward): 60 B, 60.0 % of all it held (tensor)."


def test_owners_of_next_to_nothing_at_a_place_are_not_named() -> None:
    trace = Trace(time_unit="ms")
    trace.group("yours", "app")
    trace.group("cached", "cache")
    stack = ["work (x.c:1)"]
    rows = {trace.account("heap", "app", stack): (100 * MIB, 1), trace.account("heap", "cache", stack): (1, 1)}
    trace.snapshot(5, "time", rows)
    (told,) = texts(of(ended(trace)), PLACE)
    assert told.endswith("work (x.c:1): 100 MiB, 100.0 % of all it held (app).")


def test_where_nothing_of_the_users_own_is_large_it_is_the_largest_of_all() -> None:
    trace = Trace()
    trace.group("yours", "tensor")
    trace.group("libraries", "framework", "python")
    mine = trace.account("heap", "tensor", ["conv (libtorch.so)", TORCH, "py forward (/a/net.py:7)"])
    one = trace.account("file", "framework", IMPORT + ["py <module> (/a/train.py:1)"])
    two = trace.account("heap", "python", ["malloc (libc.so)"] + IMPORT + ["py <module> (/a/train.py:1)"])
    trace.snapshot(1, "time", {mine: (4, 1), one: (886, 1), two: (110, 1)})
    assert place_of(trace) == (
        "The largest place is the import at train.py:1 (<module>): 996 B, 99.6 % of all it held (framework 886 B, python"
        " 110 B)."
    )


def test_a_program_that_allocates_nothing_is_told_so_and_not_to_look_at_its_own_pages() -> None:
    trace = Trace()
    trace.group("yours", "app")
    trace.group("runtime", "loader")
    libc = trace.account("file", "loader", ["mapped (libc.so.6)"])
    own = trace.account("file", "app", ["mapped (tiny)"])
    stack = trace.account("stack", "app", [])
    tables = trace.account("anon", "loader", ["mapped (anonymous)"])
    trace.snapshot(1, "time", {libc: (80, 1), own: (13, 1), stack: (5, 1), tables: (2, 1)})
    assert place_of(trace) == (
        "It held nothing that it had allocated: this is what every program holds. The largest place is mapped (libc.so.6): 80 B,"
        " 80.0 % of all it held (loader)."
    )


def test_a_frame_of_nobodys_script_is_a_place_but_not_one_to_mend() -> None:
    trace = Trace()
    trace.group("libraries", "python")
    trace.snapshot(1, "time", {trace.account("heap", "python", ["grow (obmalloc.c:3)"]): (20, 1)})
    assert place_of(trace).startswith("The largest place is grow (obmalloc.c:3): 20 B")


# ---- what would help -----------------------------------------------------------------------------


def cached(empty_mib: int) -> Trace:
    run = Run(pytorch="1.10.0").segment(0x1000_0000, 100 * MIB, [(0, 100 * MIB)])
    run.segment(0x4000_0000, empty_mib * MIB)
    run.snapshot(4)
    return ended(run.trace)


def test_a_cache_that_holds_much_could_give_it_back() -> None:
    (text,) = texts(of(cached(60)), HELP)
    assert text == (
        "60.0 MiB (37.5 % of all it held) are cached and not in use; torch.cuda.empty_cache() before would have given"
        " 60.0 MiB of it back: segments that hold nothing."
    )


def test_a_small_cache_is_no_advice() -> None:
    assert not of(cached(10)).about(HELP)


# ---- everywhere the same -------------------------------------------------------------------------


def test_all_formats_have_the_same_statements() -> None:
    profile = small_training_run().load()
    made = as_data(headline(profile, Names(profile)))
    view = View(None, 1, "owner", 70, None)
    assert json.loads("\n".join(FORMATS["json"].write(profile, view)))["headline"] == made
    assert run_data(profile).head["headline"] == made
    text = " ".join(" ".join(report.write(profile, View(None, 1, "stack", 70, None))).split())
    # Whose it is stands in the ladder's rows.
    assert all(statement["text"] in text for statement in made["statements"] if statement["about"] != "whose")


def test_several_processes_have_one_peak_in_headline_and_sum() -> None:
    one, two = trace_of(1), trace_of(2, 50, ppid="1")
    for trace in (one, two):
        holds(trace, 0, 0, "start")
        holds(trace, 100, 1000)
        ends(trace, 300)
    job = join([("a", one.load()), ("b", two.load())])
    made = headline_of_job(job)
    peak = job.peak("host")
    assert (made.time, made.held, made.at_most) == (peak.time, peak.on("host"), 2000) == (150, 2000, 2000)
    data = together(job, headline_of_job(job))
    assert data["headline"]["held"] == data["peaks"]["host"]["at_least"]
    report_ = " ".join(" ".join(processes.write(job, lambda _: View(None, 1, "stack", 70, None))).split())
    assert report_.startswith(
        "2 processes: peak 1.95 KiB (sum of ledgers, without PSS), 1000 B of it in process 1, program"
    )
    assert "process 1" in texts(made, PLACE)[0] and "50.0 % of the sum" in texts(made, PLACE)[0]


def test_of_a_job_every_process_that_died_is_named() -> None:
    one, two = trace_of(1), trace_of(2, 50, ppid="1")
    for trace in (one, two):
        holds(trace, 0, 1000, "start")
    made = headline_of_job(join([("a", ended(one).load()), ("b", ended(two, "signal 11").load())]))
    assert texts(made, HAPPENED) == ["Process 2: The program was killed by signal 11 (SIGSEGV) after 9 ms."]
