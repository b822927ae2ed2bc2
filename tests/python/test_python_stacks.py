# SPDX-License-Identifier: GPL-2.0-or-later
"""Python frames in recorded stacks are those that the interpreter itself shows.

The scripts allocate blocks of sizes that nothing else has and note their own stacks (scripts/witness.py); in the trace
the accounts of these blocks must have the same frames: file, qualified name and line, innermost first.
"""

import ast
import itertools
import os
import tempfile
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

import pytest

from reporter.profile import Frame, Profile
from tests.harness import PYTHON, Argument, Recording, check_run, compile_c, record

SCRIPTS = Path(__file__).parent / "scripts"
STEP = 256  # witness.py's
INTERPRETER = os.environ.get("JMASSIF_PYTHON") or PYTHON
VERSION = tuple(map(int, check_run([INTERPRETER, "-c", "import sys; print(*sys.version_info[:2])"]).split()))

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
    "recursion": 45,
    "spawn": 3,
    "subinterpreters": 6,
    "threads": 27,
    "unwinding": 26,
}

NO_LIBRARY = 77  # embedding.c's

PythonFrame = Tuple[str, str, int]  # file, qualified name, line


class Noted(NamedTuple):
    """A block: the stack that the script noted for it, and the one that was recorded."""

    expected: List[PythonFrame]
    frames: List[Frame]

    @property
    def python_frames(self) -> List[PythonFrame]:
        return [(frame.file, frame.function, frame.line) for frame in self.frames if frame.type == "p"]


def native_library() -> Path:
    return compile_c(SCRIPTS / "native.c", "-shared", "-fpic", "-pthread")


def run_script(name: str, options: Sequence[str] = ()) -> Tuple[Recording, List[Noted]]:
    return run_noting([INTERPRETER, SCRIPTS / f"{name}.py"], options)


def run_noting(command: Sequence[Argument], options: Sequence[str] = ()) -> Tuple[Recording, List[Noted]]:
    """Records a command, and finds the blocks that it and its children noted."""
    with tempfile.TemporaryDirectory(prefix="jmassif-test-") as directory:
        recording = record(
            command,
            ["--trace-children=yes", "--large=64KiB", *options],
            env={
                "WITNESS": directory,
                "WITNESS_LIBRARY": str(native_library()),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
        )
        if recording.returncode == NO_LIBRARY:
            pytest.skip("this interpreter has no shared library")
        assert recording.returncode == 0, recording.stderr
        noted = [
            block
            for notes in sorted(Path(directory).iterdir())
            for block in noted_blocks(notes, recording.directory / f"jmassif.out.{notes.name}", recording)
        ]
    return recording, noted


def noted_blocks(notes: Path, trace: Path, recording: Recording) -> Iterator[Noted]:
    profile = recording.load(trace)
    account_of = accounts_by_size(trace)
    for line in notes.read_text().splitlines():
        noted_size, repeated = ast.literal_eval(line)
        expected = [frame for frame, times in repeated for _ in range(times)]
        accounts = account_of.get(noted_size, [])
        assert len(accounts) == 1, f"{len(accounts)} blocks of {noted_size} bytes; the stack was {expected}"
        yield Noted(expected, frames_of(profile, accounts[0]))


def accounts_by_size(trace: Path) -> Dict[int, List[int]]:
    """Of all large blocks; in the profile those that were freed have no size."""
    found: Dict[int, List[int]] = {}
    for line in trace.read_text(errors="replace").splitlines():
        if line.startswith("+ "):
            _, _, _, size, account = line.split()
            found.setdefault(int(size) // STEP * STEP, []).append(int(account))
    return found


def frames_of(profile: Profile, account: int) -> List[Frame]:
    return [profile.frame(frame) for frame in profile.stack(profile.accounts[account].node)]


def problems(profile: Profile) -> Dict[str, int]:
    return {name: count for name, count in profile.counters.items() if name.startswith("python-")}


@pytest.mark.parametrize("name", sorted(NOTED))
def test_recorded_frames_are_those_that_the_interpreter_shows(name: str) -> None:
    if name == "subinterpreters" and VERSION < (3, 8):
        pytest.skip("this release makes no interpreters from Python")
    recording, noted = run_script(name)
    for block in noted:
        assert block.python_frames == block.expected
    assert len(noted) >= NOTED[name]
    for trace in recording.traces:
        assert problems(recording.load(trace)) == {}


def test_evaluator_is_not_shown_where_its_python_frames_are() -> None:
    _, noted = run_script("callbacks")
    for block in noted:
        assert [frame.function for frame in block.frames if frame.function.startswith("_PyEval_EvalFrameDefault")] == []


def in_turns(block: Noted) -> List[str]:
    """Functions of Python and of the native test library, innermost first."""
    return [
        frame.function if frame.type == "p" else f"native {frame.function}"
        for frame in block.frames
        if frame.type == "p" or Path(frame.object).name == native_library().name
    ]


def test_native_frames_stay_between_the_python_frames_that_they_connect() -> None:
    _, noted = run_script("interleaving")
    assert len(noted) == 2
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
    assert turns == [False, True] * (2 if VERSION >= (3, 11) else 5) + [False]


def test_without_python_frames_there_are_none() -> None:
    recording, noted = run_script("calls", ["--python=no"])
    assert noted
    assert [block for block in noted if block.python_frames] == []
    assert problems(recording.profile) == {}


def shared_library() -> str:
    """The interpreter as a library, by its path or, where the loader knows it, its name."""
    code = "import sysconfig; print(*sysconfig.get_config_vars('LIBDIR', 'INSTSONAME'), sep='/')"
    path = Path(check_run([INTERPRETER, "-c", code]).strip())
    return str(path) if path.exists() else path.name


def test_embedded_interpreter_has_frames_while_it_runs() -> None:
    embedding = compile_c(Path(__file__).with_name("embedding.c"), "-ldl", "-pthread")
    recording, noted = run_noting([embedding, shared_library(), SCRIPTS])
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
    assert problems(recording.profile) == {}


def test_small_objects_are_told_apart_by_line_if_python_uses_malloc() -> None:
    script = SCRIPTS / "objects.py"
    blocks: Dict[int, Tuple[int, int]] = {}  # by line
    profile = record([INTERPRETER, script], env={"PYTHONMALLOC": "malloc"}).profile
    for account, counts in profile.counts().items():
        frames = [frame for frame in frames_of(profile, account) if frame.type == "p"]
        if profile.accounts[account].kind == "heap" and frames and frames[0].file == str(script):
            n_bytes, n_blocks = blocks.get(frames[0].line, (0, 0))
            blocks[frames[0].line] = (n_bytes + counts.bytes, n_blocks + counts.blocks)
    # The header of a bytes object and the byte that ends it are 33 bytes.
    assert blocks[10] == (1000 * (440 + 33), 1000)
    assert blocks[12] == (2000 * (441 + 33), 2000)
