# SPDX-License-Identifier: GPL-2.0-or-later
"""The arm64 build records the frames of an arm64 interpreter, both emulated.

The emulator follows no exec, and Valgrind does not run there what makes a closure of libffi; so neither new processes nor
callbacks of ctypes are tested.
"""

from typing import Callable, Sequence

import pytest

from tests.harness import Recording, arm64_python, compile_arm64, record_arm64, record_arm64_natively
from tests.python.noted import NATIVE, problems, run_noting, script
from tests.python.test_python_stacks import NOTED


@pytest.mark.parametrize("record_there", [record_arm64, record_arm64_natively], ids=["valgrind", "native"])
@pytest.mark.parametrize(
    "names",
    [
        ("calls", "generators", "threads", "fork"),
        ("classes", "comprehensions", "executed", "lines", "modules", "recursion"),
        ("unwinding", "subinterpreters", "finalisation"),
    ],
    ids=["functions, threads and processes", "functions at_length", "ends at_length"],
)
def test_recorded_frames_are_those_that_the_interpreter_shows(
    names: Sequence[str], record_there: Callable[..., Recording]
) -> None:
    python, environment = arm64_python()
    recording, noted = run_noting(
        [python, script("several"), *map(script, names)],
        env={**environment, "WITNESS_LIBRARY": str(compile_arm64(NATIVE, "-shared", "-fpic", "-pthread"))},
        recorder=record_there,
    )
    for block in noted:
        assert block.python_frames == block.expected
    assert len(noted) >= sum(NOTED[name] for name in names)
    assert problems(recording) == {}
