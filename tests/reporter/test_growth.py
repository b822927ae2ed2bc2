# SPDX-License-Identifier: GPL-2.0-or-later
"""What is still growing at the end of a run, by hand-made runs: leaks are, and nothing else that programs do."""

from itertools import accumulate
from typing import Dict, List

import pytest

from jmassif.analysis.leaks import Growth, find_growth
from jmassif.analysis.oom import Hint
from jmassif.analysis.summary import build_report, moment_of
from jmassif.attribution.names import Names
from jmassif.attribution.filters import parse_suppressions, suppress
from jmassif.render.lines import write_lines
from jmassif.render.summary import findings, growth_text, growth_unknown
from jmassif.render.text import write
from jmassif.render.view import View
from tests.reporter.traces import Trace

MIB = 1 << 20
IMPORT = "py _load (<frozen importlib._bootstrap>:5)"
SCRIPT = "py <module> (/a/b.py:{})"

# What a line holds at the snapshots of a run, after the import.
GROWS: Dict[str, List[int]] = {
    "a leak": list(range(20)),
    "a leak that starts late": [0] * 8 + list(range(12)),
    "a leak beside what comes and goes": [n if n % 2 == 0 else 90 for n in range(20)],
    "a leak that comes before something": [n // 2 for n in range(19)] + [50],
    "a leak that is cut back a little": [n + n % 3 for n in range(20)],
    "a leak after something large": [90] * 4 + [n // 2 for n in range(16)],
    "a leak every third time": [n // 3 for n in range(20)],
    "what the script's last function frees as it returns": list(range(19)) + [0],
}
DOES_NOT: Dict[str, List[int]] = {
    "what is made once": [0] * 6 + [5] * 14,
    "what is made once, late": [0] * 17 + [5] * 3,
    "what is made twice": [0] + [5] * 10 + [9] * 9,
    "what is made in a while": [0] * 5 + [1, 3, 5, 7, 9] + [9] * 10,
    "what is held for longer in the end": [0, 5] * 9 + [5, 5],
    "what is freed": list(range(20, 0, -1)),
    "what rises and stops": list(range(15)) + [15] * 5,
    "a full cache beside what comes and goes": [min(n, 40) + (2 if n % 3 else 0) for n in range(60)],
    "what rises until it is let go of": list(range(17)) + [0] * 3,
    "what fills up ever more slowly": [1000 - 1000 * 2**12 // 2**n // 2**12 for n in range(20)],
    "nothing": [0] * 20,
}


def run(**held: List[int]) -> Trace:
    """An import, then what the lines hold, in MiB; their names are those of the accounts, as _1 for the line 1."""
    trace = Trace()
    start = trace.account("heap", "python", ["malloc (libc.so.6)", IMPORT, SCRIPT.format(99)])
    for step in range(1, 11):
        trace.snapshot(step, "time", {start: (step * 10 * MIB, step)})
    accounts = {name: trace.account("heap", "tensor", [SCRIPT.format(name[1:])]) for name in held}
    n_snapshots = max((len(sizes) for sizes in held.values()), default=10)
    for step in range(n_snapshots):
        # Each step allocates, whatever it holds then.
        changes = {accounts[name]: (sizes[step] * MIB, 1, 0, step) for name, sizes in held.items()}
        trace.snapshot(20 + step, "time" if step < n_snapshots - 1 else "end", changes)
    trace.snapshot(20 + n_snapshots, "exit", {account: (0, 0) for account in accounts.values()})
    return trace


def grown(trace: Trace) -> Growth:
    profile = trace.load()
    return find_growth(profile, Names(profile))


def found(trace: Trace) -> List[str]:
    return [line.label for line in grown(trace).lines]


@pytest.mark.parametrize("fails, after, is_found", [(True, 19, True), (False, 19, False), (True, 20, False)])
def test_a_program_that_gives_up_has_not_stopped_to_grow(fails: bool, after: int, is_found: bool) -> None:
    """A traceback of PyTorch's takes as long as many steps. What asked for less and goes on has stopped."""
    trace = Trace()
    account = trace.account("heap", "tensor", [SCRIPT.format("1")])
    for step in range(20):
        trace.snapshot(20 + step, "time", {account: (step * MIB, 1, 0, step)})
    if fails:
        trace.exhaustion(40, account, 1 << 30)
        trace.snapshot(40, "out-of-memory")
    for time in range(41, 52):
        trace.snapshot(time, "time" if time < 51 else "end", {account: (after * MIB, 1, 0, time)})
    assert bool(found(trace)) == is_found


@pytest.mark.parametrize("what", sorted(GROWS))
def test_what_holds_more_and_more_grows(what: str) -> None:
    assert found(run(_7=GROWS[what])) == ["b.py:7 (<module>)"]


@pytest.mark.parametrize("what", sorted(DOES_NOT))
def test_what_does_not_is_no_leak(what: str) -> None:
    assert found(run(_7=DOES_NOT[what])) == []


@pytest.mark.parametrize("times, is_told", [(4, False), (20, True)])
def test_a_buffer_that_was_made_anew_a_few_times_is_no_leak(times: int, is_told: bool) -> None:
    """Each time larger, as those for images of a few sizes are; beside it the line leaves something small each time."""
    trace = run(_7=[0] * 20)
    buffer, handle = (trace.account("heap", "app", [alloc, SCRIPT.format(8)]) for alloc in ("a (x.so)", "b (x.so)"))
    for step in range(20):
        made = (step * times) // 20 + 1
        changes = {buffer: (made * MIB, 1, made * made * MIB, made), handle: (step * 900, step)}
        trace.snapshot(50 + step, "time", changes)
    assert found(trace) == (["b.py:8 (<module>)"] if is_told else [])


@pytest.mark.parametrize("owner, n_calls, is_told", [("context", 2, False), ("context", 20, True), ("app", 2, True)])
def test_what_the_runtime_takes_in_one_call_is_made_once(owner: str, n_calls: int, is_told: bool) -> None:
    """A context's heap comes in many snapshots, up to the end of a short run; a handle that each call leaks rises as often."""
    trace = run(_7=[0] * 20)
    trace.group("runtime", "context")
    taken = trace.account("heap", owner, ["take (libcuda.so.1)", "main (a.c:8)"])
    for step in range(20):
        trace.snapshot(50 + step, "time", {taken: (step * MIB, step)})
    length = 20 // n_calls
    name = trace.string("cuInit")
    for call in range(n_calls):
        trace.lines.append(f"x {call + 1} 0 1 {50 + call * length} {49 + (call + 1) * length} 1 {name} heap 1000 1")
    assert found(trace) == (["take (libcuda.so.1), from main (a.c:8)"] if is_told else [])


def test_what_grows_most_comes_first() -> None:
    leaks = run(_1=list(range(20)), _2=[n * 5 for n in range(20)], _3=[9] * 20, _4=[n // 2 for n in range(20)])
    assert found(leaks) == ["b.py:2 (<module>)", "b.py:1 (<module>)", "b.py:4 (<module>)"]


@pytest.mark.parametrize("times, first", [(100, "growth"), (101, "trim-heap")])
def test_what_returns_a_hundred_times_as_much_comes_before_a_leak(
    times: int, first: str, monkeypatch: "pytest.MonkeyPatch"
) -> None:
    trace = run(_1=list(range(20)))
    hint = Hint("trim-heap", times * 19 * MIB, variable="MALLOC_TRIM_THRESHOLD_", value="131072", is_trial=True)
    monkeypatch.setattr("jmassif.analysis.summary.hints_at", lambda *_: [hint])
    profile = trace.load()
    keys = [each.key for each in findings(build_report(profile, moment_of(profile, Names(profile), "")))]
    assert (keys[0], sorted(keys[:2])) == (first, ["growth", "trim-heap"])


def test_other_programs_come_last_however_much_they_hold(monkeypatch: "pytest.MonkeyPatch") -> None:
    monkeypatch.setattr("jmassif.analysis.summary.hints_at", lambda *_: [Hint("stop-others", 10000 * MIB)])
    trace = Trace(time_unit="ms")
    kept = trace.account("heap", "tensor", [SCRIPT.format(7)])
    for n in range(1, 25):
        trace.snapshot(100 * n, "time" if n < 24 else "exit", {kept: (n * MIB, n, 0, n)})
    profile = trace.load()
    keys = [each.key for each in findings(build_report(profile, moment_of(profile, Names(profile), "")))]
    assert keys == ["growth", "stop-others"]


def test_a_line_is_told_with_its_slope_its_owner_and_since_when() -> None:
    told = grown(run(_7=[3] * 8 + list(range(3, 15))))
    (line,) = told.lines
    assert (line.owner, line.grown, line.held, line.since) == ("tensor", 11 * MIB, 14 * MIB, 28)
    assert line.bytes_per_step == pytest.approx(MIB)  # a millisecond, for want of anything that the program repeats
    assert (told.step, told.unknown) == ("", "")


def test_what_lies_between_two_snapshots_is_no_pause() -> None:
    """Snapshots are rare at the end of a run, and each of them sees more."""
    trace = Trace(time_unit="ms")
    kept = trace.account("heap", "tensor", ["malloc (libc.so.6)", SCRIPT.format(7)])
    for time in (*range(100, 1500, 100), 2300, 2400):
        trace.snapshot(time, "time", {kept: (time // 100 * MIB, time // 100, 0, time // 100)})
    trace.snapshot(2401, "exit", {kept: (24 * MIB, 24, 0, 24)})
    assert found(trace) == ["b.py:7 (<module>)"]


def test_a_temporary_that_is_live_at_the_end_is_no_growth_of_a_full_cache() -> None:
    trace = Trace(time_unit="ms")
    kept, passing = (
        trace.account("heap", "data", [place, SCRIPT.format(7)]) for place in ("cast (np.so)", "fft (np.so)")
    )
    for n in range(28):
        is_live = n >= 25 or (n < 22 and n % 4 == 0)
        trace.snapshot(
            10 * n, "time", {kept: (min(n, 21) * MIB, min(n, 21), 0, n), passing: (4 * MIB * is_live, 1, 0, n)}
        )
    trace.snapshot(281, "exit", {passing: (0, 0, 0, 28)})
    assert found(trace) == []


def test_imports_are_no_leak_however_slowly_they_grow() -> None:
    trace = run(_1=[1] * 10)
    assert found(trace) == [] and grown(trace).unknown == ""


def test_a_module_of_the_programs_own_may_leak_while_it_is_imported() -> None:
    trace = Trace()
    account = trace.account("heap", "app", [SCRIPT.format(7), IMPORT, "py <module> (/a/main.py:1)"])
    for step in range(20):
        trace.snapshot(step, "time", {account: (step * MIB, step)})
    assert found(trace) == ["b.py:7 (<module>)"]


def test_pages_of_files_that_are_touched_in_the_end_are_no_import() -> None:
    trace = run(_7=list(range(20)))
    trace.manifest("option.pages", "yes")
    touched = trace.account("file", "python", ["x (libx.so)", IMPORT])
    trace.snapshot(50, "exit", {touched: (900 * MIB, 1)})
    assert found(trace) == ["b.py:7 (<module>)"]


def test_a_file_that_is_read_into_memory_is_no_leak() -> None:
    trace = Trace()
    trace.manifest("option.pages", "yes")
    account = trace.account("file", "app", [SCRIPT.format(7)])
    for step in range(20):
        trace.snapshot(step, "time", {account: (step * MIB, step)})
    assert found(trace) == []


def test_a_trickle_is_not_told() -> None:
    trace = Trace()
    held = trace.account("heap", "app", [SCRIPT.format(1)])
    trickle = trace.account("heap", "app", [SCRIPT.format(2)])
    for step in range(20):
        trace.snapshot(step, "time", {held: (100 * MIB, 1), trickle: (step * 300, step)})
    assert found(trace) == []


def test_a_run_with_few_snapshots_gives_no_verdict() -> None:
    told = grown(run(_1=list(range(4))))
    assert told.lines == [] and (told.unknown, told.n_found, told.n_needed) == ("few-snapshots", 5, 6)


# ---- repetitions -----------------------------------------------------------------------------


def stepped(sizes: List[int], how: str, times: List[int], name: str = "step {}") -> Trace:
    """A step at each of the times, and snapshots in between unless they are those of marks."""
    trace = Trace(time_unit="ms")
    account = trace.account("heap", "app", [SCRIPT.format(7)])
    trace.snapshot(0, "start")
    for number, (time, n_bytes) in enumerate(zip(times, sizes)):
        if how == "mark":
            trace.mark(time, name.format(number))
            trace.snapshot(time, "mark", {account: (n_bytes, number + 1)})
        else:
            trace.region_begin(time, name.format(number))
            trace.snapshot(time + 1, "time", {account: (n_bytes, number + 1)})
            trace.region_end(time + 2, name.format(number))
    trace.snapshot(times[-1] + 9, "exit")
    return trace


@pytest.mark.parametrize("how", ["mark", "region"])
@pytest.mark.parametrize("name", ["step", "step {}", "epoch {} of 20"])
def test_what_a_program_repeats_is_what_a_slope_is_by(how: str, name: str) -> None:
    slower_and_slower = [100 + 10 * n * n for n in range(20)]
    told = grown(stepped([1000 * n for n in range(20)], how, slower_and_slower, name))
    (line,) = told.lines
    assert told.n_steps == 20 and told.step in ("step", "epoch of")
    assert line.bytes_per_step == pytest.approx(1000, rel=0.001 if how == "mark" else 0.02)


def test_of_regions_that_come_often_those_that_were_left_out_count() -> None:
    """As the recorder does: 256 are told, then every second, and so on; a sum tells how many there were."""
    trace = Trace(time_unit="ms")
    account = trace.account("heap", "app", [SCRIPT.format(7)])
    step = 1
    for number in range(2000):
        while number // step >= 256:
            step *= 2
        if number % step == 0:
            trace.region_begin(number * 3, "step")
            trace.region_end(number * 3 + 2, "step")
        if number % 20 == 19:
            trace.snapshot(number * 3 + 2, "time", {account: (500 * (number + 1), number + 1)})
    trace.lines.append(f"R {trace.string('step')} 2000 4000")
    trace.snapshot(6000, "exit")
    told = grown(trace)
    (line,) = told.lines
    assert told.n_steps == 2000 and line.bytes_per_step == pytest.approx(500, rel=0.005)


def test_two_rises_at_one_moment_both_count() -> None:
    """Snapshots can be nearer to each other than the trace's unit of time."""
    trace = Trace(time_unit="ms")
    account = trace.account("heap", "app", [SCRIPT.format(7)])
    trace.snapshot(0, "start")
    for number in range(20):
        trace.region_begin(100 * number, "step")
        for n_bytes in (900, 1000):
            trace.snapshot(100 * number + 1, "time", {account: (1000 * number + n_bytes, number + 1)})
        trace.region_end(100 * number + 2, "step")
    trace.snapshot(2000, "exit")
    (line,) = grown(trace).lines
    assert line.bytes_per_step == pytest.approx(1000, rel=0.02)


def marked(held: List[int], allocated: List[int]) -> Growth:
    """Steps that are marked at their ends: MiB that a line holds then, and all that it has allocated by then."""
    trace = Trace(time_unit="ms")
    account = trace.account("heap", "app", [SCRIPT.format(7)])
    trace.snapshot(0, "start")
    for number, (n_mib, all_mib) in enumerate(zip(held, allocated), 1):
        trace.mark(100 * number, f"step {number}")
        trace.snapshot(100 * number, "mark", {account: (n_mib * MIB, 1, all_mib * MIB, number)})
    trace.snapshot(100 * len(held) + 9, "exit", {account: (0, 0, allocated[-1] * MIB, len(held))})
    return grown(trace)


@pytest.mark.parametrize("n_steps", [5, 6, 12])
@pytest.mark.parametrize("n_kept", [1, 2])
def test_inputs_that_are_larger_in_each_of_a_few_steps_are_no_leak(n_steps: int, n_kept: int) -> None:
    """Nothing that is alive at the end is older than the last step or, where the next batch is loaded meanwhile, two."""
    sizes = list(range(10, 10 + n_steps))
    held = [sum(sizes[max(0, step - n_kept + 1) : step + 1]) for step in range(n_steps)]
    growth = marked(held, list(accumulate(sizes)))
    assert growth.lines == [] and growth.unknown == ""


def test_a_few_steps_tell_of_a_leak_beside_a_little_that_comes_and_goes() -> None:
    (line,) = marked([10 * n for n in range(1, 9)], [11 * n for n in range(1, 9)]).lines
    assert line.grown == 70 * MIB


@pytest.mark.parametrize("n_steps, is_told", [(6, False), (20, True)])
def test_a_cache_that_gains_a_little_with_each_new_shape_is_no_leak_of_a_few_steps(n_steps: int, is_told: bool) -> None:
    """oneDNN keeps some kilobytes of kernels for each size of image."""
    trace = Trace(time_unit="ms")
    model = trace.account("heap", "framework", ["load (libtorch.so)"])
    kernels = trace.account("heap", "data", ["create (libdnnl.so)", SCRIPT.format(7)])
    trace.snapshot(0, "start", {model: (100 * MIB, 1)})
    for number in range(1, n_steps + 1):
        trace.mark(100 * number, f"step {number}")
        trace.snapshot(100 * number, "mark", {kernels: (number << 15, number)})
    trace.snapshot(100 * n_steps + 9, "end")
    assert found(trace) == (["b.py:7 (<module>)"] if is_told else [])
    unknown = growth_unknown(grown(trace))
    # A leak of as little would look the same.
    few = "b.py:7 (<module>) grew 5 times, by 160 KiB; below 1 % of all memory, 16 are needed"
    assert unknown == ("" if is_told else few)


# ---- how fast, where nothing tells of steps ------------------------------------------------------


def in_blocks(kind: str, blocks: int, steady: int = 0) -> str:
    """The sentence on a line that ends with 20 MiB in so many blocks; the first so many snapshots see nothing of it rise."""
    trace = Trace()
    account = trace.account(kind, "tensor", [SCRIPT.format(7)])
    for step in range(21):
        reached = max(step, steady)
        trace.snapshot(100 * step, "time", {account: (reached * MIB, blocks * reached // 20, 0, blocks + step)})
    profile = trace.load()
    return growth_text(grown(trace), profile.time_unit)


def test_a_slope_is_told_by_blocks_since_seconds_under_valgrind_are_not_the_programs() -> None:
    assert in_blocks("heap", 40) == "Leak: b.py:7 (<module>) keeps what it allocates: 40 blocks, 20.0 MiB at the end."


@pytest.mark.parametrize(
    "sizes, words",
    [
        ([MIB] * 20, "20 blocks of about 1.00 MiB"),
        ([4096] * 10 + [2 * MIB - 4096] * 10, "20 blocks of up to 2.00 MiB"),
    ],
)
def test_a_mean_size_is_said_only_of_blocks_of_nearly_that_size(sizes: List[int], words: str) -> None:
    trace = Trace()
    account = trace.account("heap", "app", ["add (a.cc:6)", "main (a.cc:9)"])
    for step, n_bytes in enumerate(sizes, 1):
        trace.block(100 * step, 0x1000 * step, n_bytes, account)
        trace.snapshot(100 * step, "time", {account: (sum(sizes[:step]), step, 0, step)})
    profile = trace.load()
    assert f"Leak: add (a.cc:6), from main (a.cc:9) keeps what it allocates: {words}, " in growth_text(
        grown(trace), profile.time_unit
    )


def test_memory_that_destructors_free_is_not_said_to_be_held_at_the_end() -> None:
    trace = Trace(time_unit="ms")
    store, lost = (
        trace.account("heap", "app", [place, "main (a.cc:9)"]) for place in ("add (a.cc:6)", "lost (a.cc:7)")
    )
    for step in range(1, 21):
        trace.snapshot(100 * step, "time", {store: (step * MIB, step, 0, step), lost: (2 * MIB, 1, 0, 1)})
    trace.snapshot(2100, "exit", {store: (0, 0, 0, 20)})
    trace.lines.append("Z 2100 exit 0")
    profile = trace.load()
    said = [each.text for each in findings(build_report(profile, moment_of(profile, Names(profile), None)))]
    assert said == [
        "Grows: add (a.cc:6), from main (a.cc:9) keeps what it allocates until 2.00 s: 20 blocks, 20.0 MiB; all of it was"
        " freed before the end. Free it, or drop what refers to it, once it is no longer used.",
        "Not freed at exit: 2.00 MiB in 1 block, at lost (a.cc:7).",
    ]


def ending_with(n_left: int) -> Trace:
    """A list of 20 MiB that a function has filled; it returns and leaves so many bytes."""
    trace = Trace(time_unit="ms")
    kept = trace.account("heap", "data", ["malloc (libc.so.6)", "py train (/a/b.py:7)"])
    for step in range(1, 21):
        trace.mark(100 * step, f"step {step}")
        trace.snapshot(100 * step, "mark", {kept: (step * MIB, step, 0, step)})
    trace.snapshot(2100, "exit", {kept: (n_left, 1, 0, 20)})
    trace.lines.append("Z 2100 exit 0")
    return trace


@pytest.mark.parametrize(
    "n_left, said",
    [
        (
            96,
            "Grows: b.py:7 (train) keeps what it allocates until 2.00 s: 1.00 MiB a step, 20.0 MiB; all but 96 B of it",
        ),
        (
            2 * MIB,
            "Leak: b.py:7 (train) keeps what it allocates: 1.00 MiB a step, 20.0 MiB at 2.00 s, 2.00 MiB of it left",
        ),
    ],
)
def test_what_a_function_kept_until_it_returned_is_no_leak_but_is_named(n_left: int, said: str) -> None:
    trace = ending_with(n_left)
    assert growth_text(grown(trace), trace.load().time_unit).startswith(said)


def test_the_callers_of_a_leak_are_a_line_below_it() -> None:
    outer = [f"py caller_{n} (/a/b.py:{n})" for n in range(8)]
    trace = Trace(time_unit="ms")
    stacks = (["py step (/a/b.py:12)", *outer], ["py once (/a/b.py:13)"])
    log, rare = (trace.account("heap", "data", ["malloc (libc.so.6)", "py log (/a/b.py:7)", *each]) for each in stacks)
    for step in range(1, 21):
        trace.snapshot(100 * step, "time", {log: (step * MIB, step, 0, step), rare: (step * 99, step, 0, step)})
    profile = trace.load()
    lines = list(write(profile, View("last", 1, "stack", 70)))
    (below,) = (line for line in lines if "called from" in line)
    assert below.startswith("  called from b.py:12 (step) < b.py:0 (caller_0) < b.py:1 (caller_1) < ")
    assert below.endswith(" < …") and len(below) <= 100
    assert lines[lines.index(below) + 1] == "" and "Leak: b.py:7 (log)" in "".join(lines[: lines.index(below)])


def test_a_little_that_the_end_frees_does_not_lead_the_report() -> None:
    trace = Trace(time_unit="ms")
    store, rest = (trace.account("heap", "app", [place, "main (a.cc:9)"]) for place in ("add (a.cc:6)", "all (a.cc:7)"))
    for step in range(1, 21):
        trace.snapshot(100 * step, "time", {store: (step * 2048, step, 0, step), rest: (200 * MIB, 1, 0, 1)})
    trace.snapshot(2100, "exit", {store: (0, 0, 0, 20), rest: (0, 0, 0, 1)})
    profile = trace.load()
    said = [each.text for each in findings(build_report(profile, moment_of(profile, Names(profile), None)))]
    assert [text for text in said if text.startswith("Small growth: add (a.cc:6), from main (a.cc:9) keeps")] == said[
        -1:
    ]


def test_blocks_and_their_size_make_up_the_bytes_that_are_told() -> None:
    """Also where some of them were there before the slope was."""
    assert in_blocks("heap", 40, steady=6) == in_blocks("heap", 40)


def test_a_block_that_grows_is_told_as_one() -> None:
    assert ": one block, " in in_blocks("heap", 1)


def test_pages_are_no_blocks() -> None:
    assert ": 10.0 MiB a second, " in in_blocks("anon", 40)


# ---- the table of lines ----------------------------------------------------------------------


def table(trace: Trace, selector: str) -> List[str]:
    profile = trace.load()
    report = build_report(profile, moment_of(profile, Names(profile), selector))
    return write_lines(report, View(selector or None, 5, "python-line", 70, None, None))


def test_the_leaking_line_is_named_above_the_table_of_lines() -> None:
    trace = run(_7=[1 + n // 3 for n in range(20)], _8=[50] * 20)
    lines = table(trace, "end")
    text = " ".join(" ".join(lines).split())
    assert "Leak: b.py:7 (<module>) keeps what it allocates: " in text
    rows = [line.split()[0] for line in table(trace, "") if line.startswith("b.py")]
    assert rows == ["b.py:99", "b.py:8"]


def test_a_leak_that_is_suppressed_does_not_grow() -> None:
    leak = GROWS["a leak"]
    profile = run(_1=leak, _2=leak).load()
    assert len(find_growth(profile, Names(profile)).lines) == 2
    known = suppress(profile, parse_suppressions("known", "leak:b.py:1$"))
    profile.suppressed = bytearray(account in known for account in range(len(profile.accounts)))
    assert [line.label.partition(" ")[0] for line in find_growth(profile, Names(profile)).lines] == ["b.py:2"]


def test_the_slope_of_marked_steps_is_what_each_of_them_keeps() -> None:
    """Marks stand at the beginning of steps, and memory that the last step holds for a while is none that it keeps."""
    trace = run()
    kept = trace.account("heap", "tensor", [SCRIPT.format(1)])
    for step in range(14):
        time = 100 + 10 * step
        trace.mark(time, f"step {step}")
        trace.snapshot(time, "mark", {kept: (9 * MIB * step, 1 + step, 0, 1 + step)})
    trace.snapshot(250, "end", {kept: (9 * MIB * 14 + 50 * MIB, 15, 0, 15)})
    growth = grown(trace)
    assert [(leak.bytes_per_step, leak.n_steps) for leak in growth.lines] == [(9 * MIB, 13)]


def test_a_function_that_leaks_little_from_each_of_many_callers_is_found() -> None:
    trace = run()
    accounts = [
        trace.account("heap", "lib", ["malloc (libc.so.6)", "keep (lib.so)", f"f{n} (lib.so)"]) for n in range(60)
    ]
    for step in range(20):
        trace.snapshot(50 + step, "time", {account: (300 * step, step + 1, 0, step + 1) for account in accounts})
    trace.snapshot(70, "end")
    growth = grown(trace)
    assert [(leak.label, leak.grown) for leak in growth.lines] == [("keep (lib.so)", 60 * 300 * 19)]
