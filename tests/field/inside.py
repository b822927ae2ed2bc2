# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs in the root that `run` makes: alone, and recorded by each host on the simulated board's device nodes."""

import collections
import functools
import os
import re
from pathlib import Path
from typing import Any, Counter, Dict, List, NamedTuple, Tuple

import pytest

from jmassif.model.records import DEVICE_KINDS
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from tests import trixie_root

ROOT = Path(os.environ["JMASSIF_FIELD_ROOT"])
HOSTS = ("native", "valgrind")
MIB = 1 << 20
COMMITTED_KINDS = (*DEVICE_KINDS, "pinned")  # on a board both are the kernel driver's


class Ran(NamedTuple):
    status: int
    out: str
    err: str


class Recorded(NamedTuple):
    ran: Ran
    profiles: List[Profile]  # of the program and its children, in the order of their process ids
    committed: int  # by the board's kernel at most
    unknown: Dict[str, int]  # calls of functions that are not simulated

    @property
    def profile(self) -> Profile:
        """The process with most memory on the device."""
        return max(
            self.profiles, key=lambda profile: profile.peaks["device"].device if "device" in profile.peaks else 0
        )

    def at_peak(self, which: str = "device") -> Counter[Tuple[str, str]]:
        """Its bytes by kind and owner."""
        profile = self.profile
        found: Counter[Tuple[str, str]] = collections.Counter()
        for account, (n_bytes, _) in profile.peak_composition(which).items():
            found[profile.accounts[account].kind, profile.accounts[account].owner] += n_bytes
        return found


def needs(path: str) -> None:
    """Skips the test if the root lacks the file."""
    if not (ROOT / path.lstrip("/")).exists():
        pytest.skip(f"{path} could not be had when tests/field/run made {ROOT}")


def run_inside(command: List[str], variables: Dict[str, str], limit: float = 1200) -> Ran:
    """Runs a command in the root, in mounts of its own, on a board of 4 GiB, whose books go to /out/board."""
    (ROOT / "out").mkdir(exist_ok=True)
    given = {"LD_LIBRARY_PATH": "/opt/cuda", "JMSIM_UNKNOWN": "/out/unknown", "HOME": "/root", **variables}
    board = ["/opt/sim/jmsim-board", "--release=r36", f"--memory={4096 * MIB}", "--log", "/out/board", "--"]
    done = trixie_root.run_inside(ROOT, command, given, limit, board)
    return Ran(done.returncode, done.stdout, done.stderr)


@functools.lru_cache(maxsize=None)
def alone(command: Tuple[str, ...], **variables: str) -> Ran:
    return run_inside(list(command), variables)


@functools.lru_cache(maxsize=None)
def recorded(host: str, command: Tuple[str, ...], **variables: str) -> Recorded:
    for old in (ROOT / "out").glob("*"):
        old.unlink()
    options = [f"--{host}", "-q", "--jmassif-out-file=/out/trace.%p"]
    ran = run_inside(["jmassif", *options, *command], variables)
    traces = sorted((ROOT / "out").glob("trace.*"), key=lambda path: int(path.suffix[1:]))
    board = (ROOT / "out" / "board").read_text("utf-8")
    unknown = ROOT / "out" / "unknown"
    calls: Counter[str] = collections.Counter()
    for line in unknown.read_text("utf-8").splitlines() if unknown.exists() else ():
        name, n_calls = line.split()
        calls[name] += int(n_calls)
    return Recorded(
        ran,
        [load_file(str(trace)) for trace in traces],
        max(map(int, re.findall(r"committed (\d+)", board)), default=0),
        dict(calls),
    )


def figure(pattern: str, text: str) -> Any:
    """The groups of the only place that matches; of one group its text."""
    found = re.findall(pattern, text)
    assert len(found) == 1, (pattern, found)
    return found[0]
