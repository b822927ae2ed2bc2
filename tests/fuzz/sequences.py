# SPDX-License-Identifier: GPL-2.0-or-later
"""Random sequences of calls that make, change and end memory, with threads, children, signals and exec between: after every
step the ledger must be what an independent book says.

The program (sequences/) keeps the book: its own heap, what the kernel says is resident of its mappings, what the simulation
says of CUDA. It is also run alone, and must print the same and end alike.

    python3 -m tests.fuzz.sequences [--seed=N] [--runs=N] [--steps=N]
"""

import hashlib
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from tests import harness
from tests.fuzz import searching
from tests.harness import BUILD, ROOT
from tests.records import records

SOURCE = Path(__file__).parent / "sequences"
_STEPS = 400
_DEVICE = ("device", "array", "managed", "pinned", "pool", "vmm", "imported")
_MAPS = {"map_pages", "move", "move_break"}  # functions of the program

Sums = Dict[str, Tuple[int, int]]  # by kind: bytes and blocks


def program(sim: Path) -> Path:
    """Compiles the program; it is found again by what its parts say."""
    texts = "".join(path.read_text() for path in sorted(SOURCE.glob("*.[ch]")))
    return harness.compile_c(
        SOURCE / "main.c",
        *["-std=gnu11", "-O1", "-fno-builtin", "-Wall", "-Wextra", "-pthread"],
        *["-I", str(ROOT / "tests" / "sim"), "-I", str(ROOT / "jmassif")],
        *(str(SOURCE / name) for name in ("heap.c", "maps.c", "cuda.c")),
        *(str(sim / name) for name in ("libcudart.so.10.2", "libcuda.so.1")),
        f"-Wl,-rpath,{sim}",
        f"-DSOURCES={hashlib.sha256(texts.encode()).hexdigest()}",
    )


class Case(NamedTuple):
    seed: int
    steps: int
    parts: List[str]
    options: List[str]
    env: Dict[str, str]

    def told(self) -> str:
        env = " ".join(f"{name}={value}" for name, value in self.env.items())
        return f"{env} [{' '.join(self.options)}] sequences {self.steps} {self.seed} LOG {' '.join(self.parts)}"


def case_of(rng: random.Random, steps: int) -> Case:
    """What to run, and how: all parts or a few, in one of the simulation's ways, with one of the options."""
    parts = ["heap", "maps", "cuda", "threads", "fork", "signals", "exec"]
    if rng.random() < 0.5:
        parts = sorted({"heap", *rng.sample(parts, rng.randrange(1, 5))})
    env = {}
    for name, value in (
        ("JMSIM_DISCRETE", "1"),
        ("JMSIM_RESERVED", "1"),
        ("JMSIM_PROC_ADDRESS", "twin"),
        ("JMSIM_CUDART_PROC_ADDRESS", "1"),
    ):
        if rng.random() < 0.25:
            env[name] = value
    options = ["--trace-children=yes", f"--pages={'yes' if 'maps' in parts else 'no'}"]
    for option, share in (
        ("--large=1", 0.2),
        ("--time-unit=B", 0.1),
        ("--time-unit=i", 0.1),
        ("--low-footprint=yes", 0.2),
        ("--anonymize=yes", 0.1),
        ("--max-snapshots=10", 0.2),
        ("--fair-sched=yes", 0.1),
        ("--vgdb=no", 0.3),
    ):
        if rng.random() < share:
            options.append(option)
    return Case(rng.randrange(1, 1 << 31), steps, parts, options, env)


# ---- what the trace says ---------------------------------------------------------------------


def _chosen(profile: Profile, compiled: Path) -> Dict[int, str]:
    """By account: the kind that the book has it under; others are not the program's own."""
    found = {}
    for account, (node, kind, _) in enumerate(profile.accounts):
        frames = [profile.frame(frame) for frame in profile.stack(node)]
        innermost = Path(frames[0].object).name if frames else ""
        if kind in _DEVICE:
            found[account] = kind
        elif kind == "heap" and innermost == compiled.name:
            found[account] = kind
        elif kind == "anon" and harness.user_function(profile, node, compiled) in _MAPS:
            if not any("libcuda" in frame.object for frame in frames):
                found[account] = kind
    return found


def at_marks(trace: Path, kind_of: Dict[int, str]) -> Iterator[Tuple[int, Sums]]:
    """The step of each mark, and the sums of the accounts that are in `kind_of`, at the snapshot that was asked for next."""
    texts: List[str] = [""]
    live: Dict[int, Tuple[int, int]] = {}
    mark: Optional[str] = None
    snapshot = ""
    for words in records(trace):
        if words[0] == "s":
            texts.append(" ".join(words[2:]))
        elif words[0] == "M":
            mark = texts[int(words[2])]
        elif words[0] == "S":
            snapshot = words[3]
        elif words[0] == "c" and int(words[1]) in kind_of:
            live[int(words[1])] = int(words[2]), int(words[3])
        elif words[0] == "E" and snapshot == "request" and mark is not None:
            sums: Sums = {}
            for account, (n_bytes, n_blocks) in live.items():
                before = sums.get(kind_of[account], (0, 0))
                sums[kind_of[account]] = before[0] + n_bytes, before[1] + n_blocks
            yield int(mark), sums
            mark = None


def book_of(line: str) -> Tuple[int, Sums]:
    number, *words = line.split(" #")[0].split()
    sums = {}
    for kind, n_bytes, n_blocks in zip(words[::3], words[1::3], words[2::3]):
        sums[kind] = int(n_bytes), -1 if n_blocks == "-" else int(n_blocks)
    return int(number), sums


def differs(book: Sums, ledger: Sums) -> Optional[str]:
    for kind, (n_bytes, n_blocks) in book.items():
        held = ledger.get(kind, (0, 0))
        if held[0] != n_bytes or n_blocks not in (-1, held[1]):
            return f"{kind}: the book has {n_bytes} bytes in {n_blocks} blocks, the ledger {held[0]} in {held[1]}"
    return None


def _traces_of(traces: List[Path], pid: str) -> List[Path]:
    """Of one process, oldest first: it may have become another program."""
    found = [trace for trace in traces if re.fullmatch(rf"jmassif\.out\.{pid}(\.\d+)?", trace.name)]
    return sorted(found, key=lambda trace: [int(word) for word in re.findall(r"\d+", trace.name)])


# ---- runs ------------------------------------------------------------------------------------


class Result(NamedTuple):
    steps: int
    faults: List[str]


def _is_alike(alone: harness.Run, ours: harness.Run) -> bool:
    """Each process prints its own line, in whatever order they end."""
    lines = [Counter(run.stdout.splitlines()) for run in (alone, ours)]
    return lines[0] == lines[1] and alone.returncode == ours.returncode == 7


def attempt(compiled: Path, case: Case, directory: Path) -> Result:
    """Runs a case alone and under jmassif, and compares the ledgers with the books."""
    words: List[harness.Argument] = [compiled, str(case.steps), str(case.seed)]
    alone = harness.run([*words, directory / "alone", *case.parts], env=case.env)
    recording = harness.record([*words, directory / "log", *case.parts], case.options, env=case.env, timeout=600)
    if not _is_alike(alone, harness.Run(recording.returncode, recording.stdout, recording.stderr)):
        last = recording.stderr.strip().splitlines()[-8:] or [""]
        return Result(0, [f"exit status {recording.returncode} ({alone.returncode} alone): {' | '.join(last)}"])
    steps, faults = 0, []
    seen: Set[Path] = set()
    for log in sorted(directory.glob("log.*")):
        pid = log.name[4:]
        traces = _traces_of(recording.traces, pid)
        seen.update(traces)
        told = [mark for trace in traces for mark in at_marks(trace, _chosen(load_file(str(trace)), compiled))]
        books = [book_of(line) for line in log.read_text().splitlines()]
        if [number for number, _ in told] != [number for number, _ in books]:
            faults.append(f"process {pid}: {len(told)} marks in {len(traces)} traces, {len(books)} lines in its book")
            continue
        for (number, ledger), (_, book), line in zip(told, books, log.read_text().splitlines()):
            steps += 1
            difference = differs(book, ledger)
            if difference:
                faults.append(f"process {pid}, step {number} ({line.split(' # ')[1]}): {difference}")
                break
    if set(recording.traces) - seen:
        faults.append(f"traces without a book: {sorted(path.name for path in set(recording.traces) - seen)}")
    return Result(steps, faults)


class Tally(NamedTuple):
    runs: int
    steps: int
    faults: List[str]
    slowest: Tuple[float, str]


def search(seed: int, n_runs: int, sim: Path, steps: int = _STEPS) -> Tally:
    """Looks for differences in so many runs."""
    rng = random.Random(seed)
    compiled = program(sim)
    runs, done, slowest = 0, 0, (0.0, "")
    faults: List[str] = []
    while runs < n_runs:
        case = case_of(rng, steps)
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as directory:
            result = attempt(compiled, case, Path(directory))
        runs, done = runs + 1, done + result.steps
        slowest = max(slowest, (time.monotonic() - began, case.told()))
        faults += [f"{case.told()}: {fault}" for fault in result.faults]
    return Tally(runs, done, faults, slowest)


def main() -> int:
    parser = searching.counted_parser(__doc__, 20)
    parser.add_argument("--steps", type=int, default=_STEPS)
    parser.add_argument("--sim", type=Path, default=BUILD / "sim")
    arguments = parser.parse_args()
    tally = search(arguments.seed, arguments.runs, arguments.sim, arguments.steps)
    print(f"seed {arguments.seed}: {tally.runs} runs, {tally.steps} steps, {len(tally.faults)} faults")
    print(f"slowest: {tally.slowest[0]:.1f} s, {tally.slowest[1]}")
    return searching.ended(tally.faults)


if __name__ == "__main__":
    sys.exit(main())
