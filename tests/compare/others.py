# SPDX-License-Identifier: GPL-2.0-or-later
"""One command under several of Valgrind's tools: what it printed, how it ended, what it cost, and whether its traces can be read."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence

ROOT = Path(__file__).resolve().parent.parent.parent
REPORTER = ROOT / "reporter" / "jm_print"
BUILD = Path(os.environ.get("JMASSIF_BUILD") or ROOT / "build").resolve()
VALGRIND = os.environ.get("VALGRIND") or "valgrind"

# In a script of the shell: where the tool is to stand.
TOOL = "TOOL"


class Outcome(NamedTuple):
    status: int  # negative: a signal; TIMED_OUT
    stdout: bytes
    stderr: str  # of the program, as far as it can be told from Valgrind's
    user_s: float
    peak_bytes: int
    faults: List[str]  # of the traces


TIMED_OUT = 1000


def programs_own(stderr: bytes) -> str:
    """Without what Valgrind says, and what is different each time."""
    lines = stderr.decode("utf-8", "backslashreplace").splitlines()
    own = [line for line in lines if not re.match(r"(==|--|\*\*)\d+(==|--|\*\*)|jmassif: |valgrind: ", line)]
    return re.sub(r"0x[0-9A-Fa-f]+|\b\d{3,}\b", "N", "\n".join(own))


def run(script: str, tool: str, cwd: Path, env: Optional[Dict[str, str]] = None, timeout_s: float = 120) -> Outcome:
    """A script of bash, in which TOOL is Valgrind with this tool ("": none at all)."""
    with tempfile.TemporaryDirectory(prefix="jmassif-others-") as made:
        out_files = {"jmassif": f"--jmassif-out-file={made}/trace.%p", "massif": f"--massif-out-file={made}/massif.%p"}
        # What Valgrind says is not the program's: in the midst of a line of its own it could not be told from it.
        words = [VALGRIND, f"--tool={tool}", f"--log-file={made}/log.%p", out_files.get(tool, "")] if tool else []
        command = re.sub(rf"\b{TOOL}\b", " ".join(words), script)
        surroundings = {**os.environ, **(env or {})}
        if tool == "jmassif":
            surroundings["VALGRIND_LIB"] = str(BUILD / ".in_place")
        out_path, err_path = Path(made) / "stdout", Path(made) / "stderr"
        with out_path.open("wb") as out, err_path.open("wb") as err:
            process = subprocess.Popen(
                ["bash", "-c", command],
                cwd=str(cwd),
                env=surroundings,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            until = time.monotonic() + timeout_s
            pid = 0
            while not pid and time.monotonic() < until:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                time.sleep(0.01)
            timed_out = not pid
            try:
                os.killpg(process.pid, signal.SIGKILL)  # also whom it has left behind
            except ProcessLookupError:
                pass
            if timed_out:
                _, status, usage = os.wait4(process.pid, 0)
            process.returncode = 0
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return Outcome(
            TIMED_OUT if timed_out else code,
            out_path.read_bytes(),
            programs_own(err_path.read_bytes()),
            usage.ru_utime,
            usage.ru_maxrss << 10,
            unreadable(Path(made)),
        )


def unreadable(directory: Path) -> List[str]:
    """Of the traces in a directory those that the reporter refuses, with what it says."""
    faults = []
    for trace in sorted(directory.glob("trace.*")):
        done = subprocess.run(
            [sys.executable, str(REPORTER), str(trace)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=120,
        )
        if done.returncode != 0:
            faults.append(f"{trace.name}: {done.stderr.decode('utf-8', 'replace').strip()[:200]}")
    return faults


def difference(one: Outcome, other: Outcome) -> str:
    """What differs first; "" if nothing does."""
    if one.status != other.status:
        return f"exit status {one.status} and {other.status}"
    # Where things lie is nobody's promise.
    out, others_out = (re.sub(rb"0x[0-9A-Fa-f]+", b"0x", outcome.stdout) for outcome in (one, other))
    if out != others_out:
        pairs = zip(out.splitlines(), others_out.splitlines())
        at = next((i for i, (line, mate) in enumerate(pairs, 1) if line != mate), 0)
        return f"standard output, line {at}" if at else "standard output's length"
    return "standard error" if one.stderr != other.stderr else ""


def missing(programs: Sequence[str]) -> List[str]:
    return [name for name in programs if not shutil.which(name)]
