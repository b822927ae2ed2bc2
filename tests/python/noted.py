# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the scripts of this directory, and finds the blocks of which they noted the stack (scripts/witness.py).

JMASSIF_PYTHON names another interpreter than the distribution's.
"""

import ast
import os
import re
import tempfile
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

import pytest

from jmassif.model.records import Frame
from jmassif.model.run import Profile
from tests.harness import PYTHON, Argument, Recording, check_run, compile_c, record, run

INTERPRETER = os.environ.get("JMASSIF_PYTHON") or PYTHON
SCRIPTS = Path(__file__).parent / "scripts"
NATIVE = SCRIPTS / "native.c"
STEP = 256  # witness.py's
NO_LIBRARY = 77  # embedding.c's

PythonFrame = Tuple[str, str, int]  # file, qualified name, line


class Noted(NamedTuple):
    """A block: the stack that the script noted for it, and the one that was recorded."""

    expected: List[PythonFrame]
    frames: List[Frame]

    @property
    def python_frames(self) -> List[PythonFrame]:
        """Code from a string goes by the interpreter's name for it, without the line that ran it."""
        frames = [frame for frame in self.frames if frame.type == "p"]
        return [(re.sub(r"^(<\w+>) of .*", r"\1", frame.file), frame.function, frame.line) for frame in frames]


def version() -> Tuple[int, ...]:
    """Of the interpreter, major and minor."""
    code = "import sys; print(*sys.version_info[:2])"
    return tuple(int(number) for number in check_run([INTERPRETER, "-c", code]).split())


def is_free_threaded() -> bool:
    code = "import sys; print(getattr(sys, '_is_gil_enabled', lambda: True)())"
    return check_run([INTERPRETER, "-c", code]).strip() == "False"


def shared_library() -> str:
    """The interpreter as a library, by its path or, where the loader knows it, its name."""
    code = "import sysconfig; print(*sysconfig.get_config_vars('LIBDIR', 'INSTSONAME'), sep='/')"
    path = Path(check_run([INTERPRETER, "-c", code]).strip())
    return str(path) if path.exists() else path.name


def embedding() -> List[Argument]:
    """A program that starts the interpreter twice. Skips the test where that fails without a recorder, as 3.12.1 does."""
    program = compile_c(SCRIPTS.parent / "embedding.c", "-ldl", "-pthread")
    command: List[Argument] = [program, shared_library(), SCRIPTS]
    with tempfile.TemporaryDirectory(prefix="jmassif-test-") as directory:
        env = {"WITNESS": directory, "WITNESS_LIBRARY": str(native_library()), "PYTHONDONTWRITEBYTECODE": "1"}
        status = run(command, env).returncode
    if status == NO_LIBRARY:
        pytest.skip("this interpreter has no shared library")
    if status:
        pytest.skip(f"this interpreter cannot be started twice: status {status} without a recorder")
    return command


def native_library() -> Path:
    return compile_c(NATIVE, "-shared", "-fpic", "-pthread")


def script(name: str) -> Path:
    return SCRIPTS / f"{name}.py"


def run_noting(
    command: Sequence[Argument],
    options: Sequence[str] = (),
    env: Mapping[str, str] = {},
    recorder: Callable[..., Recording] = record,
) -> Tuple[Recording, List[Noted]]:
    """Records a command, and finds the blocks that it and its children noted."""
    with tempfile.TemporaryDirectory(prefix="jmassif-test-") as directory:
        env = {"WITNESS": directory, "PYTHONDONTWRITEBYTECODE": "1", **env}
        if "WITNESS_LIBRARY" not in env:
            env["WITNESS_LIBRARY"] = str(native_library())
        recording = recorder(command, ["--large=64KiB", *options], env=env, timeout=300)
        assert recording.returncode == 0, recording.stderr
        noted = [
            block
            for notes in sorted(Path(directory).iterdir())
            for block in noted_blocks(notes, recording.directory / f"jmassif.out.{notes.name}", recording)
        ]
    return recording, noted


def run_script(name: str, *options: str) -> Tuple[Recording, List[Noted]]:
    return run_noting([INTERPRETER, script(name)], ["--trace-children=yes", *options])


def noted_blocks(notes: Path, trace: Path, recording: Recording) -> Iterator[Noted]:
    profile = recording.load(trace)
    account_of = accounts_by_size(trace)
    for line in notes.read_text(encoding="utf-8").splitlines():
        size, repeated = ast.literal_eval(line)
        expected = [frame for frame, times in repeated for _ in range(times)]
        accounts = account_of.get(size, [])
        assert len(accounts) == 1, f"{len(accounts)} blocks of {size} bytes; the stack was {expected}"
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


def problems(recording: Recording) -> Dict[str, int]:
    """What the recorder counted as odd about Python, in all processes."""
    return {
        f"{trace.name} {name}": count
        for trace in recording.traces
        for name, count in recording.load(trace).counters.items()
        if name.startswith("python-")
    }
