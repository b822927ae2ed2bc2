# SPDX-License-Identifier: GPL-2.0-or-later
"""The core does not read the unwind tables that the recorder reads itself, and what it prints is as good as before."""

import re
from typing import List

import pytest

from tests.harness import BUILD, VALGRIND, compile_c, record, run
from tests.tool.programs import DIRECTORY, heap_stacks
from tests.tool.test_unwinding import EACH_MACHINE, SHAPES, WITHOUT_TABLES, Machine


def backtrace(text: str) -> List[str]:
    """The functions of the only backtrace that Valgrind has printed, innermost first."""
    return re.findall(r"==\d+==    (?:at|by) 0x\w+: (\S+)", text)


@pytest.mark.parametrize(
    "way, functions",
    [
        ("function", ["crash"] * 4 + ["main"]),
        ("nothing", ["???", "call_nothing", "main"]),
        ("callback", ["crash", "compare"]),
        ("handler", ["crash", "crash", "handler"]),
        ("thread", ["crash", "crash", "thread", "start_thread"]),
        ("abort", []),
    ],
)
@pytest.mark.parametrize("flags", ["-O0", "-O2"])
def test_the_backtrace_of_a_crash_has_the_frames_that_other_tools_show(
    way: str, functions: List[str], flags: str
) -> None:
    program = compile_c(DIRECTORY / "crashes.c", "-pthread", "-fno-builtin", flags)
    ours = backtrace(record([program, way]).stderr)
    none = backtrace(
        run([VALGRIND, "--tool=none", program, way], env={"VALGRIND_LIB": str(BUILD / ".in_place")}).stderr
    )
    # Ours shows calls that were inlined too.
    frames = iter(ours)
    assert all(function in frames for function in none)
    assert ours[: len(functions)] == functions
    assert "main" in ours or way == "thread"


@EACH_MACHINE
def test_a_crash_below_a_signals_handler_shows_whom_the_signal_interrupted(machine: Machine) -> None:
    program = machine.compile(DIRECTORY / "crashes.c", "-pthread", "-fno-builtin", "-O1")
    shown = backtrace(machine.record([program, "handler"]).stderr)
    assert shown[:3] == ["crash", "crash", "handler"] and "main" in shown


@EACH_MACHINE
def test_the_core_reads_no_table_but_its_own(machine: Machine) -> None:
    program = machine.compile(SHAPES, "-fno-builtin")
    read = re.findall(r"^CFI info: name (.*)$", machine.record([program], ["--trace-cfi=yes"]).stderr, re.M)
    assert read and all("/jmassif-" in name for name in read)


@EACH_MACHINE
def test_segments_of_an_object_may_have_gaps_between_them(machine: Machine) -> None:
    """As where they are aligned to large pages: the table is in one, the code in another, and the header in a third."""
    program = machine.compile(SHAPES, "-fno-builtin", "-O1")
    apart = machine.compile(
        SHAPES, "-fno-builtin", "-O1", "-no-pie", "-Wl,-z,separate-code", "-Wl,-z,max-page-size=0x200000"
    )
    recording = machine.record([apart], ["--trace-cfi=yes"])
    read_by_core = re.findall(r"^CFI info: name (.*)$", recording.stderr, re.M)
    assert all("/jmassif-" in name for name in read_by_core)
    assert heap_stacks(recording.profile) == heap_stacks(machine.record([program]).profile)


@pytest.mark.parametrize(
    "usual, missing",
    [("-O1", "-Wl,--no-eh-frame-hdr"), ("-O1 -fomit-frame-pointer", WITHOUT_TABLES)],
    ids=["no index", "only the file has them"],
)
@EACH_MACHINE
def test_tables_that_are_not_all_there_are_left_to_the_core(machine: Machine, usual: str, missing: str) -> None:
    program, odd = (machine.compile(SHAPES, "-fno-builtin", *flags.split()) for flags in (usual, f"{usual} {missing}"))
    assert heap_stacks(machine.record([odd]).profile) == heap_stacks(machine.record([program]).profile)
