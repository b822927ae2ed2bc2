# SPDX-License-Identifier: GPL-2.0-or-later
"""Wild ioctls on the simulated board's devices: after each the ledger has what the board's kernel has committed, whatever the
structures say.

    python3 -m tests.fuzz.ioctls [--seed=N] [--runs=N] [--steps=N]
"""

import random
import sys
import tempfile
from pathlib import Path
from typing import List, NamedTuple

from jmassif.reader.builder import load_file
from tests import harness
from tests.fuzz import searching
from tests.fuzz.sequences import SOURCE, at_marks, book_of, differs
from tests.harness import BUILD, ROOT
from tests.tool import board

_STEPS = 400


def program() -> Path:
    """Compiles the program."""
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-I", str(ROOT / "tests" / "sim"), "-I", str(ROOT / "jmassif")]
    return harness.compile_c(SOURCE / "ioctls.c", *flags)


def attempt(compiled: Path, sim: Path, release: str, steps: int, seed: int, directory: Path) -> List[str]:
    """Runs it on a release and returns what is wrong."""
    words: List[harness.Argument] = [compiled, str(steps), str(seed), directory / "log"]
    recording = harness.record(words, launcher=board.launcher(sim, release), timeout=600)
    if recording.returncode != 7:
        return [f"exit status {recording.returncode}: {' | '.join(recording.stderr.strip().splitlines()[-8:])}"]
    (log,) = directory.glob("log.*")
    profile = load_file(str(recording.trace))
    kind_of = {n: "driver" for n, row in enumerate(profile.accounts) if n and row.kind in ("driver", "driver-host")}
    told = list(at_marks(recording.trace, kind_of))
    lines = log.read_text().splitlines()
    if len(told) != len(lines):
        return [f"{len(told)} marks, {len(lines)} lines in the book"]
    for (number, ledger), line in zip(told, lines):
        difference = differs(book_of(line)[1], ledger)
        if difference:
            return [f"step {number}: {difference}"]
    return []


class Tally(NamedTuple):
    runs: int
    steps: int
    faults: List[str]


def search(seed: int, n_runs: int, sim: Path, steps: int = _STEPS) -> Tally:
    """Looks for differences in so many runs."""
    rng = random.Random(seed)
    compiled = program()
    runs, faults = 0, []
    while runs < n_runs:
        release, number = rng.choice(board.RELEASES), rng.randrange(1, 1 << 31)
        with tempfile.TemporaryDirectory() as directory:
            found = attempt(compiled, sim, release, steps, number, Path(directory))
        runs += 1
        faults += [f"{release}: ioctls {steps} {number}: {fault}" for fault in found]
    return Tally(runs, runs * steps, faults)


def main() -> int:
    parser = searching.counted_parser(__doc__, 20)
    parser.add_argument("--steps", type=int, default=_STEPS)
    parser.add_argument("--sim", type=Path, default=BUILD / "sim")
    arguments = parser.parse_args()
    tally = search(arguments.seed, arguments.runs, arguments.sim, arguments.steps)
    print(f"seed {arguments.seed}: {tally.runs} runs, {tally.steps} steps, {len(tally.faults)} faults")
    return searching.ended(tally.faults)


if __name__ == "__main__":
    sys.exit(main())
