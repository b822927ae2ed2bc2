# SPDX-License-Identifier: GPL-2.0-or-later
"""The arm64 build records the frames of an arm64 interpreter, both emulated.

The emulator follows no exec, and Valgrind does not run there what makes a closure of libffi; so neither new processes nor
callbacks of ctypes are tested.
"""

from typing import Sequence

import pytest

from tests.harness import BUILD, arm64_build, compile_arm64, record_arm64
from tests.python.noted import NATIVE, problems, run_noting, script
from tests.python.test_python_stacks import NOTED

ROOT = BUILD / "compat" / "arm64-python"
LIBRARIES = [ROOT / directory / "aarch64-linux-gnu" for directory in ("lib", "usr/lib")]


@pytest.mark.parametrize(
    "names",
    [
        ("calls", "classes", "comprehensions", "executed", "lines", "modules", "recursion"),
        ("generators", "unwinding", "threads", "fork", "subinterpreters", "finalisation"),
    ],
    ids=["functions", "threads and processes"],
)
def test_recorded_frames_are_those_that_the_interpreter_shows(names: Sequence[str]) -> None:
    arm64_build()
    if not ROOT.exists():
        pytest.skip(f"no arm64 Python in {ROOT}: ./bootstrap check fetches it")
    recording, noted = run_noting(
        [ROOT / "usr/bin/python3.11", script("several"), *map(script, names)],
        env={
            "PYTHONHOME": str(ROOT / "usr"),
            "LD_LIBRARY_PATH": ":".join(map(str, LIBRARIES)),
            "WITNESS_LIBRARY": str(compile_arm64(NATIVE, "-shared", "-fpic", "-pthread")),
        },
        recorder=record_arm64,
    )
    for block in noted:
        assert block.python_frames == block.expected
    assert len(noted) >= sum(NOTED[name] for name in names)
    assert problems(recording) == {}
