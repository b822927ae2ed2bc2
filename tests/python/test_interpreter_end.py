# SPDX-License-Identifier: GPL-2.0-or-later
"""What a script held when it was done is told before the interpreter lets go of it, however the script came to its end."""

from typing import List

import pytest

from jmassif.analysis.moments import select
from jmassif.model.run import Profile
from tests.harness import record
from tests.python.noted import INTERPRETER, embedding, native_library, version

HELD = 5_000_000
# What a byte array needs beside its bytes: none or one that ends it; from 3.15 on it keeps a bytes object.
EXTRA = {33} if version() >= (3, 15) else {0, 1}
SCRIPT = f"held = bytearray({HELD}); freed = bytearray(2 * {HELD}); del freed\n"

# How a script ends, and the exit status of that.
ENDS = {
    "its last line": ("", 0),
    "sys.exit": ("import sys\ndef leave(): sys.exit(3)\nleave()", 3),
    "an exception": ("1 / 0", 1),
    "a function that atexit calls": (f"import atexit; atexit.register(lambda: bytearray(9 * {HELD}))", 0),
}


def byte_arrays(profile: Profile, selector: str) -> List[int]:
    """The large blocks of heap memory that were held at a moment."""
    composition = select(profile, selector).composition
    return sorted(n_bytes for n_bytes, _ in composition.values() if n_bytes >= HELD)


@pytest.mark.parametrize("end", sorted(ENDS))
def test_the_end_of_a_script_is_before_its_memory_is_freed(end: str) -> None:
    statements, status = ENDS[end]
    recording = record([INTERPRETER, "-S", "-c", SCRIPT + statements])
    assert recording.returncode == status
    assert [snapshot.reason for snapshot in recording.profile.snapshots].count("end") == 1
    (held,) = byte_arrays(recording.profile, "end")
    assert held - HELD in EXTRA
    assert byte_arrays(recording.profile, "last") == []


def test_a_process_that_leaves_without_an_end_frees_nothing() -> None:
    recording = record([INTERPRETER, "-S", "-c", SCRIPT + "import os; os._exit(4)"])
    assert recording.returncode == 4
    assert "end" not in [snapshot.reason for snapshot in recording.profile.snapshots]
    assert len(byte_arrays(recording.profile, "end")) == 1


def test_stacks_inside_the_end_show_nothing_of_the_recorder() -> None:
    script = f"import atexit\ndef late(): global held; held = bytearray({HELD})\natexit.register(late)"
    profile = record([INTERPRETER, "-S", "-c", script]).profile
    (account,) = (a for a, counts in profile.counts().items() if counts.bytes >= HELD)
    frames = [profile.frame(frame) for frame in profile.stack(profile.accounts[account].node)]
    assert "late" in [frame.function for frame in frames if frame.type == "p"]
    assert [frame for frame in frames if "vgpreload" in frame.object] == []


def test_a_program_that_goes_on_without_its_interpreter_ends_later() -> None:
    env = {"WITNESS": "/dev/shm", "WITNESS_LIBRARY": str(native_library()), "PYTHONDONTWRITEBYTECODE": "1"}
    recording = record(embedding(), env=env)
    assert [snapshot.reason for snapshot in recording.profile.snapshots].count("end") == 2
