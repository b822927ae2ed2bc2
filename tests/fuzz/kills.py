# SPDX-License-Identifier: GPL-2.0-or-later
"""Kills a training program and its workers at random moments: each trace can be read, and has what the program had logged a
second before.

    python3 -m tests.fuzz.kills --runs=1000

What a trace must have is what the program itself says (programs/trains.py): bytes by function, and what the board's kernel
has committed.
"""

import io
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

from jmassif.cli.main import main as jmassif
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from tests.fuzz import searching
from tests.harness import BUILD, PYTHON, VALGRIND, compile_c, sim_build
from tests.tool.board import committed
from tests.tool.programs import functions

PROGRAMS = Path(__file__).parent / "programs"
RELEASE = "r35"
# Two runs at once, on machines of two processors.
N_AT_ONCE = 2
# What the script may take to come to its first batch, and how far beyond it is killed.
LONGEST_SECONDS = {"c": 5.0, "py": 8.0}
SECONDS_OF_TRAINING = (1.2, 4.0)  # later than what is late
LATE_NS = 1000000000


class Outcome(NamedTuple):
    faults: List[str]
    n_traces: int
    n_told: int  # by how many functions of how many processes something was logged in time


class Logged(NamedTuple):
    in_time: int  # the last figure of a second before the kill
    last: int


def command(sim: Path, language: str, directory: Path, seed: int) -> List[str]:
    log = str(directory / "log")
    if language == "py":
        program = [PYTHON, str(PROGRAMS / "trains.py"), str(sim), log]
    else:
        libraries = [str(sim / "libcudart.so.10.2"), str(sim / "libcuda.so.1"), f"-Wl,-rpath,{sim}"]
        program = [str(compile_c(PROGRAMS / "trains.c", *libraries)), log]
    board = [str(sim / "jmsim-board"), f"--release={RELEASE}", "--"]
    tool = [VALGRIND, "--tool=jmassif", "-q", f"--jmassif-out-file={directory}/trace.%p"]
    return [*board, *tool, *program, str(seed)]


def kill_at(seconds: float, in_training: bool, words: List[str], directory: Path) -> int:
    """Starts a session of its own and kills all of it, so long after its start or after its first line in the log. Returns
    when, as the log has times."""
    with open(directory / "errors", "wb") as errors:
        process = subprocess.Popen(
            words,
            env={**os.environ, "VALGRIND_LIB": str(BUILD / ".in_place")},
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            start_new_session=True,
        )
    try:
        while in_training and process.poll() is None and not (directory / "log").exists():
            time.sleep(0.05)
        time.sleep(seconds)
    finally:
        killed = time.monotonic_ns()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return killed


def logged(log: Path, killed: int) -> Dict[Tuple[int, str], Logged]:
    found: Dict[Tuple[int, str], Logged] = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        at, pid, what, n_bytes = line.split()
        before = found.get((int(pid), what), Logged(0, 0))
        in_time = int(n_bytes) if int(at) <= killed - LATE_NS else before.in_time
        found[int(pid), what] = Logged(in_time, int(n_bytes))
    return found


def told(profile: Profile, what: str) -> int:
    """What a trace has of a figure of the log."""
    if not profile.snapshots:
        return 0
    if what == "committed":
        return committed(profile, profile.composition(len(profile.snapshots) - 1), RELEASE)
    total = 0
    for account_id, counts in profile.counts().items():
        account = profile.accounts[account_id]
        wanted = account.owner == "tensor" if what == "make_tensor" else account.kind == "heap"
        if wanted and what in functions(profile, account.node):
            total += counts.bytes
    return total


def read(trace: Path) -> Tuple[int, str]:
    """The exit status of the text report, and what was printed instead."""
    err = io.StringIO()
    with redirect_stderr(err):
        status = jmassif(["report", str(trace), "-o", f"{trace}.txt"])
    return status, err.getvalue()


def judge(directory: Path, killed: int) -> Outcome:
    faults: List[str] = []
    traces = sorted(directory.glob("trace.*[0-9]"))
    for trace in traces:
        status, errors = read(trace)
        if status != 0:
            faults.append(f"{trace.name}: exit status {status}: {errors.strip()[:300]}")
    profiles = {int(trace.suffix[1:]): load_file(str(trace)) for trace in traces} if not faults else {}
    wanted = logged(directory / "log", killed)
    for (pid, what), bounds in wanted.items():
        if faults and pid not in profiles:
            continue
        n_bytes = told(profiles[pid], what) if pid in profiles else 0
        if n_bytes < bounds.in_time:
            missing = "" if pid in profiles else ", no trace"
            faults.append(f"{pid}: {what}: {n_bytes} bytes of {bounds.in_time} (at last {bounds.last}){missing}")
    return Outcome(faults, len(traces), sum(bounds.in_time > 0 for bounds in wanted.values()))


class Tally(NamedTuple):
    faults: List[str]
    n_runs: int
    n_traces: int
    n_told: int


def search(seed: int, n_runs: int, keep: Path, languages: Tuple[str, ...] = ("c", "py")) -> Tally:
    """So many runs, of these languages in turn. The files of those with a fault are kept in a directory."""
    sim = sim_build()
    choose = random.Random(seed)
    plans = []
    for number in range(n_runs):
        language = languages[number % len(languages)]
        in_training = number // len(languages) % 2 == 0
        bounds = SECONDS_OF_TRAINING if in_training else (0, LONGEST_SECONDS[language])
        plans.append((number, language, choose.uniform(*bounds), in_training, choose.randrange(1 << 20)))

    with tempfile.TemporaryDirectory(prefix="jmassif-kills-") as made:

        def run(plan: Tuple[int, str, float, bool, int]) -> int:
            number, language, seconds, in_training, programs_seed = plan
            directory = Path(made) / str(number)
            directory.mkdir()
            return kill_at(seconds, in_training, command(sim, language, directory, programs_seed), directory)

        for _, language, *_ in plans[: len(languages)]:
            command(sim, language, Path(made), 0)  # compiled once
        faults: List[str] = []
        n_traces = n_told = 0
        with ThreadPoolExecutor(N_AT_ONCE) as pool:
            for plan, killed in zip(plans, pool.map(run, plans)):
                directory = Path(made) / str(plan[0])
                outcome = judge(directory, killed)
                n_traces += outcome.n_traces
                n_told += outcome.n_told
                if outcome.faults:
                    kept = keep / f"kill-{seed}-{plan[0]}"
                    shutil.rmtree(kept, ignore_errors=True)
                    shutil.copytree(directory, kept)
                    faults += [f"{kept}: {plan[1]} at {plan[2]:.2f} s: {fault}" for fault in outcome.faults]
                shutil.rmtree(directory)
    return Tally(faults, n_runs, n_traces, n_told)


def main() -> int:
    parser = searching.parser(__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--language", choices=["c", "py"])
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"))
    arguments = parser.parse_args()
    arguments.keep.mkdir(parents=True, exist_ok=True)
    languages = (arguments.language,) if arguments.language else ("c", "py")
    tally = search(arguments.seed, arguments.runs, arguments.keep, languages)
    print(f"seed {arguments.seed}: {tally.n_runs} kills, {tally.n_traces} traces, {tally.n_told} figures held")
    return searching.ended(tally.faults)


if __name__ == "__main__":
    sys.exit(main())
