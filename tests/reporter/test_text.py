# SPDX-License-Identifier: GPL-2.0-or-later
"""The text report. Whole reports are compared with tests/reporter/golden/; JM_UPDATE_GOLDEN=1 writes those anew."""

import io
import json
import os
from typing import Any, Callable, Dict, List

import pytest

from jmassif.analysis.moments import select
from jmassif.analysis.summary import build_report
from jmassif.attribution.names import Names
from jmassif.attribution.views import LINE_VIEWS
from jmassif.model.records import DEVICE_KINDS, HOST_KINDS, side_of
from jmassif.model.run import Profile
from jmassif.reader.builder import load
from jmassif.html.data import report_of, run_data
from jmassif.render import text
from jmassif.render.layout import Line, Section, bounded, fitted, paragraph
from jmassif.render.system import mapped
from jmassif.render.view import BY, View
from tests.reporter.traces import ROOT, Trace, documented_example, random_run, small_training_run

TREES = [by for by in BY if by not in LINE_VIEWS]
GOLDEN = ROOT / "tests" / "reporter" / "golden"


def report(profile: Profile, by: str = "stack", threshold: float = 1, selector: str = "", fold: str = "") -> List[str]:
    return list(text.write(profile, View(selector or None, threshold, by, 70, fold or None)))


def section(lines: List[str], title: str) -> List[str]:
    """The section's lines, without its heading."""
    (begin,) = [number for number, line in enumerate(lines) if line.startswith(f"--- {title}")]
    rest = lines[begin + 1 :]
    ends = [number for number, line in enumerate(rest) if line.startswith("--- ")]
    return [line for line in rest[: (ends or [len(rest)])[0]] if line]


def brief(profile: Profile, columns: int = 100, **more: Any) -> List[str]:
    """As jm_print has it without options."""
    view = View(None, 1, "stack", 70, "internal", is_brief=True, with_stacks=False, file="jmassif.out.4711")
    return list(fitted(text.write(profile, view._replace(columns=columns, **more)), columns))


REPORTS: Dict[str, Callable[[], List[str]]] = {
    "brief": lambda: brief(small_training_run().load()),
    "training": lambda: report(small_training_run().load()),
    "training-discrete": lambda: report(small_training_run("discrete").load()),
    "training-by-owner-at-2": lambda: report(small_training_run().load(), by="owner", selector="2"),
    "training-by-line": lambda: report(small_training_run().load(), by="python-line"),
    "example": lambda: report(load(io.BytesIO(documented_example()))),
}


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_the_whole_report(name: str) -> None:
    golden = GOLDEN / f"{name}.txt"
    lines = REPORTS[name]()
    if os.environ.get("JM_UPDATE_GOLDEN"):
        golden.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert lines == golden.read_text(encoding="utf-8").splitlines()


# ---- two screens ---------------------------------------------------------------------------------


def crowded() -> Trace:
    """More of everything than two screens have room for, under names as long as C++ has them."""
    trace = small_training_run()
    end = trace.lines.pop()
    for number in range(200):
        api = trace.string(f"at::native::{'Worker<int, float>::' * 9}run{number}")
        frames = [f"{'part::' * 30}grow{number} (/usr/lib/libpart{number}.so)", f"py f (/home/u/train.py:{number + 1})"]
        account = trace.account("file" if number % 2 else "heap", f"owner{number}", frames)
        trace.lines.append(f"x {number + 9} 0 1 {number} {number} {trace.stack(frames)} {api} heap {number << 20} 1")
        trace.lines += [f"e {api} 2 1", f"k counter-{number} 1"]
        trace.mark(1000, f"{'mark ' * 40}{number}")
        trace.snapshot(1000, "time", {account: (1 << 20, 5000, 9 << 20, 9000, 8000)})
    trace.lines.append(end)
    return trace


@pytest.mark.parametrize("columns", [40, 80, 100])
def test_a_report_without_options_is_two_screens_and_no_wider_than_it_may_be(columns: int) -> None:
    lines = brief(crowded().load(), columns, width=columns - 10)
    assert (
        max(len(line) for line in lines if "jmassif report" not in line) <= columns
    )  # commands can be run as they stand
    assert len(lines) <= 120 or columns < 80  # sentences that are wrapped again are longer
    assert len(brief(crowded().load(), 0)) <= 120


def test_what_finds_no_room_is_named_with_the_option_that_shows_it() -> None:
    lines = " ".join(brief(crowded().load()))
    assert "With --all also: " in lines or all(word in lines for word in (": --all", "--- Snapshots"))
    sections = [Section(1, ["", f"--- Section {number}: more ---", "a row"]) for number in range(5)]
    said = ["", "With --all also: Section 2; Section 3; Section 4."]
    assert bounded(sections, 8) == sections[0].lines + sections[1].lines + said
    assert bounded(sections, 15) == [line for section in sections for line in section.lines]


def test_what_says_least_is_left_out_first_and_the_rest_stays_in_order() -> None:
    ranks = [2, 0, 3, 1, 0]
    sections = [Section(rank, ["", f"--- Section {n} ---", "a row"]) for n, rank in enumerate(ranks)]
    lines = bounded(sections, 11)
    assert [line for line in lines if "---" in line] == [f"--- Section {n} ---" for n in (1, 3, 4)]
    assert lines[-1] == "With --all also: Section 0; Section 2."


def test_the_first_screen_says_what_to_run_next() -> None:
    lines = brief(small_training_run().load())
    assert "More: jmassif report jmassif.out.4711 --all | --by=python-line | --stacks" in lines[:25]
    assert "Page: jmassif report jmassif.out.4711 --html --open" in lines[:26]
    assert not any("More:" in line for line in brief(small_training_run().load(), file=""))


def test_a_row_that_is_too_long_keeps_the_place_of_its_frame() -> None:
    (line,) = fitted([Line("   ", ("void run<" + "int, " * 30 + "int>(long) (libtorch_cpu.so)", "python"))], 60)
    assert len(line) == 60 and line.endswith("… (libtorch_cpu.so)") and isinstance(line, Line)
    assert "".join(part for part, _ in line.parts) == line


def test_sentences_go_on_in_the_next_line_and_keep_figures_with_their_units() -> None:
    text_ = "It held 1.23 GiB, which is 70.4 % of all that there was, and 12.3 MiB of it were cached for 1.40 s or so."
    for width in range(20, 80):
        lines = list(fitted(paragraph(text_), width))
        assert " ".join(lines) == text_ and max(map(len, lines)) <= width
        assert not any(line.split(" ")[0] in ("%", "GiB,", "MiB", "s") for line in lines)


@pytest.mark.parametrize("seed", range(2 * len(TREES)))
def test_any_moment_of_any_run_can_be_shown(seed: int) -> None:
    profile, by = random_run(seed).load(), TREES[seed % len(TREES)]
    for selector in ("peak", "peak-host", "last", "1", "17"):
        held = select(profile, selector).composition
        total = sum(n for a, (n, _) in held.items() if side_of(profile.accounts[a].kind))
        lines = report(profile, by, 0, selector)
        assert not total or f" {total:,} " in next(line for line in lines if line.startswith("total "))
        assert section(lines, "All memory by")[0].startswith(f"100.0 % {total:,} B") or not total


def test_a_trace_of_nothing_has_a_report() -> None:
    assert report(Trace().load())[0].startswith("No memory on record; ")


def test_nothing_from_a_trace_reaches_the_terminal_as_it_is() -> None:
    evil = "\x1b[2J\x9b\u202e\r\n\x07"
    trace = Trace(command=evil, board=evil, memory=evil, time_unit="ms")
    for key in ("env.X", "package.x", "stopped", "python", "pid", "option.x"):
        trace.manifest(key, evil)
    trace.group("yours", "app")
    frames = [f"{evil} (e{evil}.so)", f"py {evil} (/x/{evil}.py:3)"]
    device = trace.account("device", "app", frames)
    name = trace.string(evil)
    trace.lines += [f"x 1 0 1 2 3 {trace.stack(frames)} {name} heap 5 1", f"X {name} 5 6", f"e {name} 2 1"]
    trace.mark(1, "\x1b[2J")
    for time in (2, 3):
        trace.region_begin(time, "\x1b[2J")
    trace.snapshot(9, "exit", {device: (10, 1, 9999, 5000, 5000)}, {"total": (9, {})})
    profile = trace.load()
    assert profile.marks[0].text == "\x1b[2J"
    for by in BY:
        lines = report(profile, by)
        assert any("\\x1b[2J\\x9b\\u202e" in line for line in lines)
        assert all(line.isprintable() for line in lines)


def test_a_program_without_device_memory_is_spared_the_talk_of_pools() -> None:
    trace = Trace(memory="discrete")
    trace.snapshot(5, "time", {trace.account("heap", "app"): (100, 1)})
    assert not any("device" in line for line in report(trace.load()) if "host (B)" not in line)


def test_failed_cuda_calls_are_put_in_words() -> None:
    trace = Trace()
    names = [trace.string(name) for name in ("cudaMalloc", "cuMemCreate", "malloc", "customThing")]
    trace.lines += [f"e {name} 2 {calls}" for name, calls in zip(names, (1, 4, 3, 2))]
    trace.lines += ["k unknown-ioctl 7", "k never-seen 0", "k reserved-bytes 4096"]
    assert section(report(trace.load()), "Failed calls") == [
        "4 calls of cuMemCreate failed with error 2 (out of memory)",
        "3 calls of malloc failed with error 2",
        "2 calls of customThing failed with error 2",
        "1 call of cudaMalloc failed with error 2 (out of memory)",
        "reserved-bytes: 4.00 KiB",
        "unknown-ioctl: 7",
    ]


def test_what_the_kernel_keeps_without_a_size_is_no_oddity() -> None:
    trace = Trace()
    trace.lines += ["k driver-channels 16", "k driver-rm-channels 1", "k driver-address-spaces 1"]
    lines = report(trace.load())
    assert not any("warnings" in line for line in lines)
    told = " ".join(section(lines, "Not counted"))
    assert told.endswith("Driver objects of unknown size: 1 GPU address space, 17 GPU channels.")


def test_a_long_list_of_failures_is_cut_short_and_counted() -> None:
    trace = Trace()
    name = trace.string("cudaMalloc")
    trace.lines += [f"e {name} {code} {code}" for code in range(1, 31)]
    lines = section(report(trace.load()), "Failed calls")
    assert lines[0] == "30 calls of cudaMalloc failed with error 30"
    assert len(lines) == 17 and lines[-1] == "and 14 other pairs of function and error"


def test_the_table_of_snapshots_keeps_to_what_tells() -> None:
    trace = Trace()
    heap = trace.account("heap", "app")
    for time in range(1000):
        trace.snapshot(time, "mark" if time == 77 else "time", {heap: (9999 if time == 501 else time, 1)})
    lines = section(report(trace.load()), "Snapshots")
    assert len(lines) < 30 and lines[-1].strip().endswith("more between these")
    assert any(line.endswith("mark") for line in lines) and any("9,999" in line for line in lines)


def test_how_the_program_ended() -> None:
    def run_line(*records: str) -> str:
        trace = Trace(pid="7")
        trace.snapshot(5, "start")
        trace.lines += records
        return next(line for line in report(trace.load()) if line.startswith("Run:"))

    assert run_line("Z 9 exit 3") == "Run:         pid 7, 9 ms, exit status 3"
    assert run_line("Z 9 signal 11") == "Run:         pid 7, 9 ms, killed by signal 11 (SIGSEGV)"
    assert run_line("Z 9 signal 0") == "Run:         pid 7, 9 ms, killed by a signal"
    assert run_line() == "Run:         pid 7, 5 ms, no end record: killed, or still running"
    assert run_line("S 9 8 exec 0 0", "E 9") == "Run:         pid 7, 8 ms, became another program (exec)"


@pytest.mark.parametrize(
    "manifest, shown",
    [
        ({"recorder": "native"}, "Recorded natively"),
        ({"recorder": "valgrind", "valgrind": "3.24.0"}, "Recorded below Valgrind 3.24.0"),
        ({"valgrind": "3.19.0"}, "Recorded below Valgrind 3.19.0"),  # from before there were two
        ({}, ""),
    ],
)
def test_the_recorder_is_named_and_what_it_cannot_see(manifest: Dict[str, str], shown: str) -> None:
    profile = Trace(command="train", **manifest).load()
    lines = brief(profile)
    assert [line for line in lines if line.startswith("Recorded ")] == [shown] * bool(shown)
    assert any("raw system calls" in line for line in report(profile)) == (
        "recorder" in manifest and "natively" in shown
    )
    head = run_data(report_of(profile))[0]
    assert shown.lower() in json.dumps(head).lower()


def test_a_program_that_is_known_to_run_is_nowhere_said_to_be_killed() -> None:
    trace = Trace(pid="7")
    trace.snapshot(5, "time", {trace.account("heap", "app", ["f (a.c:1)"]): (1 << 20, 1)})
    running = trace.load()
    running.is_running = True
    shown = "\n".join(report(running))
    assert "Run:         pid 7, 5 ms, still running" in shown and "killed" not in shown
    assert (
        run_data(report_of(running)).head["notes"][-1]["text"].startswith("Incomplete trace: the program still runs.")
    )


def test_never_freed_memory_shows_only_for_a_program_that_came_to_its_end() -> None:
    def trace(reason: str) -> List[str]:
        made = Trace()
        made.snapshot(5, reason, {made.account("heap", "app"): (10, 1)})
        return report(made.load())

    assert section(trace("exit"), "Still allocated at exit")
    assert not any(line.startswith("--- Still allocated at exit") for line in trace("time"))


def test_what_leaked_too_briefly_to_be_seen_growing_is_told_by_its_lines() -> None:
    made = Trace()
    table = made.account("heap", "app", ["main (leak.c:9)"])
    node = made.account("heap", "app", ["remember (leak.c:7)"])
    made.snapshot(5, "time", {table: (8 << 20, 1)})
    made.snapshot(1000, "exit", {table: (8 << 20, 1), node: (1000 * 4104, 1000)})
    lines = report(made.load())
    assert not any(line.startswith("--- Still growing") for line in lines)
    rows = [line.split() for line in section(lines, "Still allocated at exit")]
    assert ["8.00", "MiB", "1", "app", "main", "(leak.c:9)"] in rows
    assert ["3.91", "MiB", "1,000", "app", "remember", "(leak.c:7)"] in rows


def test_a_line_that_left_memory_of_several_kinds_is_one_row() -> None:
    made = Trace()
    accounts = [made.account(kind, "app", ["main (leak.c:9)"]) for kind in ("heap", "device", "pinned")]
    made.snapshot(5, "exit", {account: (100 << 10, 2) for account in accounts})
    rows = [line.split() for line in section(report(made.load()), "Still allocated at exit")]
    assert [row for row in rows if row[-1] == "(leak.c:9)"] == [["300", "KiB", "6", "app", "main", "(leak.c:9)"]]


def test_marks_and_regions_are_in_order_of_time() -> None:
    trace = Trace()
    trace.region_begin(1, "epoch")
    trace.totals(2, 1024, 0)
    trace.region_begin(2, "forward")
    trace.mark(3, "here")
    trace.totals(4, 1024, 2048, 4096)
    trace.region_end(4, "forward")
    trace.totals(5, 512, 2048)
    assert section(report(trace.load()), "Marks and regions") == [
        "        1 ms  region: epoch (thread 1, still open at the end; held at most 4.00 KiB, host +512 B, device"
        " +2.00 KiB)",
        "        2 ms  region:   forward (thread 1, took 2 ms; held at most 4.00 KiB, host 0, device +2.00 KiB)",
        "        3 ms  mark: here",
    ]


def test_regions_that_come_again_are_summed_by_name() -> None:
    trace = Trace()
    for time in (0, 10, 20):
        trace.totals(time, time * 1024, 0)
        trace.region_begin(time, "step")
        trace.totals(time + 6, time * 1024 + 1024, 0, 1 << 20)
        trace.region_end(time + 6, "step")
    trace.region_begin(30, "save")
    trace.region_end(32, "save")
    trace.lines.append(f"R {trace.string('step')} 500 3000")
    assert section(report(trace.load()), "Regions by name") == [
        "    times        took    at most       host     device  region",
        "      500      3.00 s   1.00 MiB  +3.00 KiB          0  step (sizes: of 3 of them)",
        "        1        2 ms   21.0 KiB          0          0  save",
    ]


def test_many_marks_are_cut_short_and_counted() -> None:
    trace = Trace()
    for time in range(1000):
        trace.mark(time, f"step {time}")
    lines = section(report(trace.load()), "Marks and regions")
    assert len(lines) == 41 and lines[-1] == "and 960 more"


def test_branches_are_indented_and_frames_without_a_branch_stand_below_each_other() -> None:
    trace = Trace()
    shared = ["malloc (m.so)", "work (a.c:1)"]
    one = trace.account("heap", "app", shared + ["left (a.c:2)", "main (a.c:9)"])
    two = trace.account("heap", "lib", shared + ["right (a.c:3)", "main (a.c:9)"])
    three = trace.account("device", "lib", ["dev (a.c:3)"])
    trace.snapshot(1, "time", {one: (100, 1), two: (300, 2), three: (599, 1), trace.account("heap", "app"): (1, 1)})
    assert section(report(trace.load()), "All memory by call stack") == [
        "100.0 % 1,000 B in 5 blocks",
        " 59.9 % 599 B in 1 block of device, lib",
        "        dev (a.c:3)",
        " 40.0 % 400 B in 3 blocks of heap",
        "        malloc (m.so)",
        "        work (a.c:1)",
        "   30.0 % 300 B in 2 blocks of lib",
        "          right (a.c:3)",
        "          main (a.c:9)",
        "   10.0 % 100 B in 1 block of app",
        "          left (a.c:2)",
        "          main (a.c:9)",
        "  0.1 % 1 B in 1 block, in 1 place below 1 %",
    ]


def test_the_columns_of_a_library_add_up_whatever_its_kinds() -> None:
    trace = Trace(**{"option.pages": "yes"})
    accounts = {kind: trace.account(kind, "app", ["take (libapp.so)"]) for kind in HOST_KINDS + DEVICE_KINDS}
    trace.snapshot(1, "exit", {account: (n << 20, 1) for n, account in enumerate(accounts.values(), 1)})
    profile = trace.load()
    names, at = Names(profile), select(profile, "end")
    table = mapped(build_report(profile, at, names), View(None, 1, "library", 70))
    heads, row = (line.split() for line in table[-2:])
    together, *columns = [float(figure) for figure, unit in zip(row[0::2], row[1::2]) if unit == "MiB"]
    assert heads[:6] == ["together", "file", "anon", "heap", "other", "device"]
    assert sum(columns[:5]) == together


def test_a_mapping_that_was_gone_at_the_next_sample_has_no_share() -> None:
    trace = Trace(**{"option.pages": "yes"})
    held, gone = (trace.account("file", "data", [f"mapped-data ({name})"]) for name in ("held.bin", "gone.bin"))
    trace.snapshot(1, "time", {held: (1 << 20, 1)}, {"host": (1, {gone: (32 << 20, 1)})})
    trace.lines.insert(-1, f"v {held} {2 << 20} {1 << 19} 0")
    profile = trace.load()
    names, at = Names(profile), select(profile, "peak-host")
    table = mapped(build_report(profile, at, names), View(None, 1, "stack", 70))
    assert [" ".join(line.split()) for line in table[-2:]] == [
        "32.0 MiB 32.0 MiB - - file gone.bin",
        "1.00 MiB 2.00 MiB 512 KiB - file held.bin",
    ]


def test_by_library_names_the_object_of_the_site() -> None:
    trace = Trace()
    one = trace.account("heap", "app", ["malloc (libc.so.6)", "init (libfoo.so)", "main (a.out)"])
    trace.snapshot(1, "time", {one: (100, 1)})
    assert section(report(trace.load(), by="library"), "All memory by library") == [
        "100.0 % 100 B in 1 block of heap, app",
        "100.0 % 100 B in 1 block: libfoo.so",
        "  100.0 % 100 B in 1 block",
        "          malloc (libc.so.6)",
        "          init (libfoo.so)",
        "          main (a.out)",
    ]


def test_by_role_begins_with_roles_and_has_the_rest_apart() -> None:
    trace = Trace()
    weight = trace.account("heap", "tensor", ["py main (/a/t.py:1)"], "parameter")
    other = trace.account("heap", "app", ["py main (/a/t.py:2)"])
    trace.snapshot(1, "time", {weight: (100, 1), other: (50, 1)})
    assert section(report(trace.load(), by="role"), "All memory by role") == [
        "100.0 % 150 B in 2 blocks of heap",
        " 66.7 % 100 B in 1 block of tensor: parameter",
        "   66.7 % 100 B in 1 block",
        "          t.py:1 (main)",
        " 33.3 % 50 B in 1 block of app: (no tensor)",
        "   33.3 % 50 B in 1 block",
        "          t.py:2 (main)",
    ]


def test_internal_frames_are_folded_on_demand() -> None:
    trace = Trace()
    torch = "py relu (/usr/lib/python3/dist-packages/torch/nn/functional.py:1457)"
    frames = ["c10::alloc_cpu (libc10.so)", torch, "py main (/a/train.py:9)", "Py_Main (python3.11)"]
    trace.snapshot(1, "time", {trace.account("heap", "app", frames): (100, 1)})
    for fold in ("", "none"):
        assert any("alloc_cpu" in line for line in report(trace.load(), fold=fold))
    assert section(report(trace.load(), fold="internal"), "All memory by call stack, at")[1:] == [
        "100.0 % 100 B in 1 block",
        "        … 2 frames of torch",
        "        train.py:9 (main)",
        "        … 1 frame of python",
    ]


@pytest.mark.parametrize(
    "manifest, is_noted",
    [
        ({}, False),
        ({"python": "3.8.10"}, True),
        ({"python": "3.8.10", "env.PYTHONMALLOC": "pymalloc_debug"}, True),
        ({"python": "3.8.10", "env.PYTHONMALLOC": "malloc"}, False),
        ({"python": "3.8.10", "env.PYTHONMALLOC": "malloc_debug"}, False),
    ],
)
def test_objects_that_python_keeps_in_arenas_are_noted(manifest: Dict[str, str], is_noted: bool) -> None:
    trace = Trace()
    for key, value in manifest.items():
        trace.manifest(key, value)
    trace.snapshot(1, "time", {trace.account("heap", "python"): (100, 1)})
    for by in ("stack", "python-line"):
        assert (
            any(line.startswith("Objects up to 512 bytes of owners") for line in report(trace.load(), by)) == is_noted
        )


def test_a_free_threaded_python_is_not_to_run_with_an_allocator_that_it_refuses() -> None:
    trace = Trace()
    trace.manifest("python", "3.14t")
    account = trace.account("anon", "python", ["mapped (libpython3.14t.so.1.0)"])
    trace.snapshot(1, "time", {account: (100, 1)})
    text = " ".join(report(trace.load(), "python-line"))
    assert "A free-threaded Python keeps objects of all sizes in arenas" in text and "PYTHONMALLOC" not in text
