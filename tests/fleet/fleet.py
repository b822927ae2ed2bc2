# SPDX-License-Identifier: GPL-2.0-or-later
"""A fleet that never was: what is installed on its boards, how much each library costs there, and what is planted.

Every JetPack is on the same mix of boards, which no real fleet has, so that what differs between JetPacks is what was planted. A
library's cost is what was recorded, times a factor of the kind of board, times a factor of the run: log-normal, of the
spread in SPREADS.
"""

import json
import math
import random
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from tests.fleet.recorded import DETAILS, Detail
from tests.fleet.varied import Figures, Recorded

MIB = 1 << 20


class JetPack(NamedTuple):
    name: str
    l4t: str
    packages: Dict[str, str]


JETPACKS = (
    JetPack(
        "4.6.1", "32.7.1", {"cuda-cudart-10-2": "10.2.300-1", "libcudnn8": "8.2.1.32-1+cuda10.2", "libssl": "1.1.1"}
    ),
    JetPack(
        "5.1.2", "35.4.1", {"cuda-cudart-11-4": "11.4.298-1", "libcudnn8": "8.6.0.166-1+cuda11.4", "libssl": "1.1.1"}
    ),
    JetPack("6.0", "36.3", {"cuda-cudart-12-2": "12.2.140-1", "libcudnn8": "8.9.4.25-1+cuda12.2", "libssl": "3.0.2"}),
    JetPack("6.2", "36.4.3", {"cuda-cudart-12-6": "12.6.68-1", "libcudnn9": "9.3.0.75-1+cuda12.6", "libssl": "3.0.2"}),
)


class Board(NamedTuple):
    name: str
    memory_bytes: int
    factor: float  # of the context's and the libraries' cost: more multiprocessors need more


BOARDS = (
    Board("NVIDIA Jetson Nano Developer Kit", 4 << 30, 0.9),
    Board("NVIDIA Jetson Xavier NX", 8 << 30, 1.0),
    Board("NVIDIA Jetson Orin Nano", 8 << 30, 1.05),
    Board("NVIDIA Jetson AGX Orin", 32 << 30, 1.2),
)
_OF_BOARD = ("context", "module", "cudnn", "cublas")

# Standard deviation of the logarithm of an owner's cost from run to run. What is not here costs the same in every run.
SPREADS = {
    "context": 0.02,
    "module": 0.02,
    "cudnn": 0.03,
    "cublas": 0.03,
    "cache": 0.05,
    "python": 0.01,
    "data": 0.004,
    "loader": 0.01,
    "cudart": 0.01,
}

# What is planted: from which JetPack on, whose, and how many bytes of the largest of its accounts.
CUDNN, DATA = 3 * MIB, 2 * MIB
PLANTED = (("6.0", "cudnn", CUDNN), ("6.2", "data", DATA))

KILLED_OF_100 = 2


class Run(NamedTuple):
    """A board's run, before it is written."""

    number: int
    jetpack: JetPack
    board: Board
    base: int  # index in the details
    seed: int
    is_killed: bool
    is_damaged: bool


def runs(n: int, seed: int, details: Sequence[Detail] = DETAILS) -> List[Run]:
    """The same for the same seed. One trace is damaged, if there are ten."""
    random_ = random.Random(seed)
    bases = [base for base, detail in enumerate(details) for _ in range(detail.share)]
    damaged = random_.randrange(n) if n >= 10 else -1
    found = []
    for number in range(n):
        jetpack, board = JETPACKS[number % 4], BOARDS[number // 4 % 4]
        base, own_seed = random_.choice(bases), random_.randrange(1 << 30)
        is_killed = random_.randrange(100) < KILLED_OF_100 and number != damaged
        found.append(Run(number, jetpack, board, base, own_seed, is_killed, number == damaged))
    return found


def name_of(run: Run) -> str:
    return f"board-{run.number:05}.jmassif"


def _is_since(run: Run, jetpack: str) -> bool:
    names = [each.name for each in JETPACKS]
    return names.index(run.jetpack.name) >= names.index(jetpack)


def _manifest(run: Run) -> Dict[str, str]:
    start = 1_790_000_000_000 + run.number * 61_000
    facts = {
        "host": f"board-{run.number:05}",
        "process": f"{4000 + run.number % 97}.{run.number}",
        "pid": str(4000 + run.number % 97),
        "command": "python3 program.py 3",
        "cwd": "/srv/fleet",
        "start-unix-ms": str(start),
        "start": "2026-09-21T00:00:00Z",
        "memory": "unified",
        "arch": "aarch64",
        "board": run.board.name,
        "mem-total-bytes": str(run.board.memory_bytes),
        "l4t": run.jetpack.l4t,
        "pytorch": "2.1.0" if run.jetpack.name >= "6" else "1.13.0",
    }
    facts.update((f"package.{name}", version) for name, version in run.jetpack.packages.items())
    return facts


def figures_of(run: Run, recorded: Recorded, planted: Sequence[Tuple[str, str, int]]) -> Figures:
    random_ = random.Random(run.seed)
    factors = {owner: math.exp(random_.gauss(0, spread)) for owner, spread in SPREADS.items()}
    for owner in _OF_BOARD:
        factors[owner] *= run.board.factor
    extra: Dict[int, int] = {}
    for jetpack, owner, n_bytes in planted:
        if _is_since(run, jetpack):
            # Where no callers are told nothing is the script's: then it is among the rest of the heap.
            account = recorded.largest(owner if owner in recorded.owners else "python")
            extra[account] = extra.get(account, 0) + n_bytes
    return Figures(_manifest(run), lambda owner: factors.get(owner, 1.0), extra, {})


def text_of(run: Run, recorded: Recorded, planted: Sequence[Tuple[str, str, int]]) -> bytes:
    """The trace, whole, cut off, or damaged."""
    text = recorded.with_figures(figures_of(run, recorded, planted)).encode("utf-8", "surrogateescape")
    random_ = random.Random(run.seed + 1)
    if run.is_killed:
        return text[: int(len(text) * random_.uniform(0.5, 0.98))]
    if run.is_damaged:
        at = text.index(b"\nS ", len(text) // 2)
        return text[:at] + b"\nc 1 2" + text[at:]
    return text


def truth(found: Sequence[Run], planted: Sequence[Tuple[str, str, int]]) -> Dict[str, Any]:
    """What a comparison must find."""
    return {
        "runs": len(found),
        "killed": [name_of(run) for run in found if run.is_killed],
        "damaged": [name_of(run) for run in found if run.is_damaged],
        "planted": [{"jetpack": jetpack, "owner": owner, "bytes": n_bytes} for jetpack, owner, n_bytes in planted],
    }


def write(
    directory: Path, found: Sequence[Run], bases: Sequence[Path], planted: Sequence[Tuple[str, str, int]]
) -> None:
    """Of some runs the traces."""
    recorded = [Recorded(base.read_text("utf-8", "surrogateescape")) for base in bases]
    for run in found:
        (directory / name_of(run)).write_bytes(text_of(run, recorded[run.base], planted))


def write_truth(path: Path, found: Sequence[Run], planted: Sequence[Tuple[str, str, int]]) -> None:
    path.write_text(json.dumps(truth(found, planted), indent=1) + "\n")
