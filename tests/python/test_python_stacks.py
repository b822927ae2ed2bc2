# SPDX-License-Identifier: GPL-2.0-or-later
"""Python frames in recorded stacks are those that the interpreter itself shows.

The scripts allocate blocks of sizes that nothing else has and note their own stacks; in the trace the accounts of these
blocks must have the same frames: file, qualified name and line, innermost first.
"""

import itertools
import subprocess
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from jmassif.units import size
from tests.harness import check_run, compile_c, record, recorded
from tests.python.noted import (
    INTERPRETER,
    STEP,
    Noted,
    accounts_by_size,
    embedding,
    frames_of,
    is_free_threaded,
    native_library,
    problems,
    run_noting,
    run_script,
    script,
    version,
)
from tests.tool.programs import print_report

# How many stacks each script notes, at least: a script that ended early would prove nothing.
NOTED = {
    "callbacks": 32,
    "calls": 11,
    "classes": 29,
    "comprehensions": 26,
    "coroutines": 27,
    "executed": 101,
    "finalisation": 5,
    "fork": 11,
    "generators": 38,
    "lines": 48,
    "modules": 18,
    "operators": 29,
    "parallel": 100,
    "recursion": 45,
    "replaced": 30,
    "spawn": 3,
    "subinterpreters": 6,
    "threads": 27,
    "unwinding": 26,
}

# Scripts whose blocks are bytearrays or code objects of the interpreter's own: without the GIL they are not malloc's.
MALLOCS = ("comprehensions", "executed", "finalisation", "lines", "modules", "replaced", "spawn")
with_gil = pytest.mark.skipif(is_free_threaded(), reason="objects of a free-threaded interpreter are not malloc's")


@pytest.mark.parametrize("name", sorted(NOTED))
def test_recorded_frames_are_those_that_the_interpreter_shows(name: str) -> None:
    if name == "subinterpreters" and version() < (3, 8):
        pytest.skip("this release makes no interpreters from Python")
    if name in MALLOCS and is_free_threaded():
        pytest.skip("objects of a free-threaded interpreter are not malloc's")
    recording, noted = run_script(name)
    for block in noted:
        assert block.python_frames == block.expected
    assert len(noted) >= NOTED[name]
    assert problems(recording) == {}


def in_turns(block: Noted) -> List[str]:
    """Functions of Python and of the native test library, innermost first."""
    return [
        frame.function if frame.type == "p" else f"native {frame.function}"
        for frame in block.frames
        if frame.type == "p" or Path(frame.object).name == native_library().name
    ]


@with_gil
def test_native_frames_stay_between_the_python_frames_that_they_connect() -> None:
    _, noted = run_script("interleaving")
    bounced, sorted_ = noted
    assert in_turns(bounced) == [
        "third",
        "second",
        "native bounce_object",
        "second_by_bounce",
        "first",
        "native bounce_object",
        "<module>",
    ]
    # sorted() lies between its caller and the key function. From 3.11 on there is nothing native elsewhere.
    functions = [frame.function if frame.type == "p" else "" for frame in sorted_.frames]
    key = next(i for i, function in enumerate(functions) if "<lambda>" in function)
    assert functions[key + 1] == "" and functions.index("by_sort") > key
    turns = [is_python for is_python, _ in itertools.groupby(functions, bool)]
    assert turns == [False, True] * (2 if version() >= (3, 11) else 5) + [False]


def test_evaluator_is_not_shown_where_its_python_frames_are() -> None:
    _, noted = run_script("callbacks")
    for block in noted:
        assert [frame for frame in block.frames if frame.function.startswith("_PyEval_EvalFrameDefault")] == []


def test_without_python_frames_there_are_none() -> None:
    recording, noted = run_script("calls", "--python=no")
    assert len(noted) == NOTED["calls"]
    assert [block for block in noted if block.python_frames] == []
    assert problems(recording) == {}


def test_interpreter_is_found_whatever_its_name(tmp_path: Path) -> None:
    check_run([INTERPRETER, "-m", "venv", "--without-pip", tmp_path / "venv"])
    interpreter = tmp_path / "venv" / "bin" / "train"
    interpreter.symlink_to((tmp_path / "venv" / "bin" / "python3").resolve())
    _, noted = run_noting([interpreter, script("calls")])
    assert [block.python_frames for block in noted] == [block.expected for block in noted]
    assert len(noted) == NOTED["calls"]


@pytest.mark.skipif(version() < (3, 7), reason="this release has no _PyRuntime")
def test_inconsistent_memory_costs_frames_but_no_crash() -> None:
    recording, (afterwards,) = run_script("corrupt")
    assert afterwards.python_frames == afterwards.expected
    assert [frame.function for frame in afterwards.frames if frame.type == "p"] == ["inner", "outer", "<module>"]
    assert recording.profile.counters["python-frame-unreadable"] > 20


@with_gil
def test_objects_at_the_end_of_a_mapping_are_read_no_further() -> None:
    recording, (afterwards,) = run_script("mapping_end")
    assert afterwards.python_frames == afterwards.expected
    assert recording.profile.counters["python-frame-unreadable"] > 10


def test_embedded_interpreter_has_frames_while_it_runs() -> None:
    recording, noted = run_noting(embedding())
    on_main, on_thread = noted
    stack = [("<string>", "allocate", 4), ("<string>", "<module>", 5)]
    assert on_main.python_frames == on_main.expected == stack
    assert on_thread.python_frames == on_thread.expected == stack
    functions = [frame.function for frame in on_thread.frames]
    assert functions[functions.index("<module>") :].count("on_thread") == 1
    native = accounts_by_size(recording.trace)
    for n in (1002, 1003, 1005, 1006, 1007):
        (account,) = native[n * STEP]
        assert {frame.type for frame in frames_of(recording.profile, account)} == {"n"}
    assert problems(recording) == {}


@with_gil
def test_small_objects_are_told_apart_by_line_if_python_uses_malloc() -> None:
    objects = script("objects")
    blocks: Dict[Tuple[int, int], int] = {}  # by line and size
    profile = record([INTERPRETER, objects], env={"PYTHONMALLOC": "malloc"}).profile
    for account, counts in profile.counts().items():
        frames = [frame for frame in frames_of(profile, account) if frame.type == "p"]
        if profile.accounts[account].kind == "heap" and frames and frames[0].file == str(objects):
            key = frames[0].line, counts.bytes // counts.blocks
            blocks[key] = blocks.get(key, 0) + counts.blocks
    # The header of a bytes object and the byte that ends it are 33 bytes.
    assert blocks[10, 440 + 33] == 1000
    assert blocks[12, 441 + 33] == 2000


@with_gil
@pytest.mark.parametrize("allocator", ["", "malloc"])
def test_the_table_has_small_objects_by_line_or_says_where_they_are(allocator: str) -> None:
    recording = record([INTERPRETER, script("objects")], env={"PYTHONMALLOC": allocator} if allocator else {})
    table = print_report(recording.trace, "--by=python-line", "--threshold=0").stdout
    held = {row.split()[0]: " ".join(row.split()[1:3]) for row in table.splitlines() if row.startswith("objects.py:")}
    is_noted = "Python keeps them in arenas from mmap" in " ".join(table.split())
    if allocator:
        # The header of a bytes object and the byte that ends it are 33 bytes.
        assert (held["objects.py:10"], held["objects.py:12"]) == (size(1000 * (440 + 33)), size(2000 * (441 + 33)))
        assert not is_noted
    else:
        assert "objects.py:10" not in held and "objects.py:12" not in held
        assert is_noted


LOADED = """#include <dlfcn.h>
#include <stdlib.h>
static void *held[6];
static void take(int from)
{
    for (int i = from; i < from + 3; i++)
        held[i] = malloc(10000);
}
__attribute__((constructor)) static void begin(void)
{
    take(0);
    int state = ((int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure"))();
    ((int (*)(const char *))dlsym(RTLD_DEFAULT, "PyRun_SimpleString"))("called()");
    ((void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release"))(state);
    take(3);
}
"""
LOADING = """import ctypes, sys
held = []
def called():
    held.append(bytearray(70000))
def load(path):
    return ctypes.CDLL(path)
def load_another(path):
    return ctypes.CDLL(path)
load(sys.argv[1]), load_another(sys.argv[2])
"""


def test_stacks_inside_dlopen_have_its_callers_and_what_python_runs_inside() -> None:
    libraries = [compile_c(LOADED, "-shared", "-fPIC", f"-DNUMBER={n}") for n in (1, 2)]
    profile = recorded([INTERPRETER, "-c", LOADING, *libraries]).profile
    found: Dict[Tuple[str, ...], int] = {}
    for number, counts in profile.counts().items():
        frames = [profile.frame(frame) for frame in profile.stack(profile.accounts[number].node)]
        if "begin" in [frame.function for frame in frames]:
            functions = tuple(
                frame.function for frame in frames if frame.function in ("take", "called", "load", "load_another")
            )
            found[functions] = found.get(functions, 0) + counts.bytes
    for load in ("load", "load_another"):
        assert found["take", load] == 6 * 10000
        if not is_free_threaded():  # its bytearrays are not malloc's
            assert 70000 <= found["called", load] < 80000


@pytest.mark.skipif(not is_free_threaded(), reason="the interpreter has the GIL")
def test_a_free_threaded_interpreter_has_no_lines_of_its_objects_and_the_report_says_so(tmp_path: Path) -> None:
    asked = subprocess.run([INTERPRETER, "-c", ""], env={"PYTHONMALLOC": "malloc"}, stderr=subprocess.PIPE, check=False)
    assert asked.returncode != 0 and b"unknown allocator" in asked.stderr  # so it is no advice
    program = tmp_path / "program.py"
    program.write_text("kept = bytearray(24 << 20)\n")
    recording = record([INTERPRETER, program], ["--pages=yes"], status=0)
    said = print_report(recording.trace, "--by=python-line").stdout
    assert "A free-threaded Python keeps objects of all sizes in arenas" in said and "PYTHONMALLOC" not in said
