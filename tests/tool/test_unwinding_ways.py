# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks that take more than simple rules: each must have the functions that the program was in, by its source.

The core's unwinder loses its way in some of them.
"""

import re
import resource
from typing import List, Set

import pytest

from tests.harness import ARCH, Recording, compile_c, record, written
from tests.tool.programs import DIRECTORY, heap_stacks, library, linked_to
from tests.tool.test_unwinding import EACH_MACHINE, HERE, SHAPES, Machine


def recorded(machine: Machine, *command: object) -> Recording:
    recording = machine.record(list(command))
    assert recording.returncode == 0, recording.stderr
    return recording


def stacks(recording: Recording) -> Set[str]:
    """The stacks down to main as text, innermost first; "?" is a frame without a name."""
    names = [" ".join(name or "?" for name in stack) for stack in heap_stacks(recording.profile)]
    return {re.sub(r" main\b.*", " main", stack) for stack in names}


@EACH_MACHINE
def test_a_handlers_stack_goes_on_in_what_the_signal_interrupted(machine: Machine) -> None:
    recording = recorded(machine, machine.compile(DIRECTORY / "unwind_signals.c", "-O1", "-fno-builtin"))
    assert stacks(recording) == {
        "allocate on_thread_stack ? trapping caller caller main",
        "allocate on_own_stack ? trapping caller caller caller main",
        "allocate with_own_way_back ? syscall sender main",
    }


@pytest.mark.parametrize("flags", ["-O1", "-O1 -fno-omit-frame-pointer", "-O0"])
@EACH_MACHINE
def test_tables_may_say_all_that_is_in_use(machine: Machine, flags: str) -> None:
    recording = recorded(machine, machine.compile(DIRECTORY / "unwind_tables.c", "-fno-builtin", *flags.split()))
    assert stacks(recording) == {
        "allocate by_register main",
        "allocate in_register main",
        "allocate by_expression main",
        "allocate use realigned main",
        "allocate by_arithmetic main",
        "allocate keeping needing main",
        "allocate inverting needing main",
    }


@EACH_MACHINE
def test_code_without_a_table_is_left_by_its_frame_pointer_or_by_the_return_address_on_the_stack(
    machine: Machine,
) -> None:
    recording = recorded(machine, machine.compile(DIRECTORY / "unwind_generated.c", "-O2", "-fno-builtin"))
    assert stacks(recording) == {"first ? outer main", "second ? outer main"}


@EACH_MACHINE
def test_a_coroutines_stack_ends_where_it_begins(machine: Machine) -> None:
    recording = recorded(machine, machine.compile(DIRECTORY / "unwind_coroutine.c", "-O1", "-fno-builtin"))
    assert stacks(recording) == {"allocate coroutine ?"}


def test_what_the_loader_calls_is_unwound_through_the_loader() -> None:
    source = DIRECTORY / "unwind_loaded.c"
    path = library(source, "libunwind_loaded.so", "-DLIBRARY", "-O1", "-fno-builtin", "-Wl,-z,lazy")
    recording = recorded(HERE, HERE.compile(source, "-O1", "-fno-builtin", "-pthread"), path)
    found = stacks(recording)

    def ways(innermost: str) -> List[str]:
        return [stack for stack in found if stack.startswith(f"{innermost} ")]

    assert all(" dlopen" in stack and stack.endswith(" load main") for stack in ways("constructed"))
    assert all(" dlclose" in stack and stack.endswith(" load main") for stack in ways("destructed"))
    assert all(stack.endswith(" function load main") for stack in ways("choose"))
    assert "function load main" in found
    assert [len(ways(name)) for name in ("constructed", "destructed", "choose", "thread")] == [1, 1, 1, 1]
    child = [trace for trace in recording.traces if trace != recording.trace]
    assert len(child) == 1


@EACH_MACHINE
def test_no_stack_stops_the_recorder(machine: Machine) -> None:
    n = 20000 if machine is HERE else 500
    program = machine.compile(DIRECTORY / "unwind_garbage.c", "-O1", "-fno-builtin")
    recording = machine.record([program, str(n)])
    assert recording.returncode == 0, recording.stderr
    assert {stack[0] for stack in heap_stacks(recording.profile)} == {"on_garbage"}


@pytest.mark.skipif(ARCH != "amd64", reason="its program is written for x86-64")
def test_the_outer_part_of_a_stack_may_have_been_unmapped() -> None:
    program = HERE.compile(DIRECTORY / "unwind_unmapped.c", "-O1", "-fno-builtin", "-fomit-frame-pointer")
    recording = HERE.record([program])
    assert recording.returncode == 0, recording.stderr
    assert stacks(recording) == {"allocate large_frame large_frame", "allocate large_frame"}


@pytest.mark.skipif(ARCH != "amd64", reason="the code models are those of x86-64")
@pytest.mark.parametrize("flags", ["-mcmodel=large -fno-pic -no-pie", "-mcmodel=large -fpie -pie", "-fno-pic -no-pie"])
def test_addresses_in_tables_may_be_encoded_in_any_way(flags: str) -> None:
    """GCC's own tables, instead of the assembler's: absolute, relative in eight bytes, and in four unsigned ones."""
    usual = HERE.compile(SHAPES, "-O1", "-fno-builtin")
    program = HERE.compile(SHAPES, "-O1", "-fno-builtin", "-fno-dwarf2-cfi-asm", *flags.split())
    recording = HERE.record([program])
    assert heap_stacks(recording.profile) == heap_stacks(HERE.record([usual]).profile)


def generated(n: int) -> str:
    return f"allocate at_depth {'? ' * n}enter run try_stacks main"


@EACH_MACHINE
def test_generated_code_that_comes_and_goes_is_in_its_place(machine: Machine) -> None:
    program = machine.compile(DIRECTORY / "unwind_jitted.c", "-fno-builtin", "-O1")
    recording = recorded(machine, program, "stacks")
    run = "enter run try_stacks main"
    assert stacks(recording) == {
        *(generated(n) for n in range(1, 6)),
        "allocate mixed ? ? ? ? ? enter try_stacks main",
        f"allocate before ? ? {run}",
        f"allocate moved ? ? {run}",
        f"allocate replaced ? ? ? {run}",
        f"allocate rewritten ? ? ? ? {run}",
        f"allocate elsewhere ? {run}",
        "allocate gone",
    }


@pytest.mark.skipif(ARCH != "amd64", reason="user time in an emulator measures the emulator")
def test_stacks_of_generated_code_cost_what_those_of_compiled_code_do() -> None:
    program = HERE.compile(DIRECTORY / "unwind_jitted.c", "-fno-builtin", "-O1")

    def user_s(*arguments: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        assert record([program, *arguments]).returncode == 0
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    ratios = []
    for _ in range(3):
        start = user_s("compiled", "1")
        ratios.append((user_s("generated", "600000") - start) / (user_s("compiled", "600000") - start))
    assert min(ratios) < 3, ratios


CONSTRUCTOR = """
#include <stdlib.h>
#include <time.h>

static void *volatile block;
long before_main;

long storm(void)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (int i = 0; i < 20000; i++) {
        block = malloc(16);
        free(block);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    return (end.tv_sec - begin.tv_sec) * 1000000L + (end.tv_nsec - begin.tv_nsec) / 1000;
}

__attribute__((constructor)) static void construct(void) { before_main = storm(); }
"""

MAIN = """
#include <stdio.h>
long storm(void);
extern long before_main;
int main(void) { return printf("%ld %ld\\n", before_main, storm()) < 0; }
"""


def test_stacks_before_main_cost_what_those_below_it_do() -> None:
    """The loader has no unwind table where it starts the program; further out are the arguments and the environment."""
    constructor = library(written(CONSTRUCTOR, "constructor.c"), "libconstructor.so")
    program = compile_c(written(MAIN, "main.c"), *linked_to(constructor))
    text = {f"TEXT_{i}": "words that are no addresses" for i in range(100)}
    recording = record([program], env=text, status=0)
    before_main, below_main = map(int, recording.stdout.split())
    assert before_main < 3 * below_main
