# SPDX-License-Identifier: GPL-2.0-or-later
"""Recording on the simulated board's device nodes: what the ledger says against what the board's kernel has committed."""

from pathlib import Path
from typing import Dict, List, Mapping, Sequence

import pytest

from jmassif.model.records import LiveBytesByAccount
from jmassif.model.run import Profile
from tests import harness
from tests.harness import Argument, Recording

TEGRA = ("r32", "r35", "r36")
RM = ("r38", "rm535", "rm580")
RELEASES = TEGRA + RM

# The launcher's status where the kernel does not let it supervise (seccomp user notification).
UNAVAILABLE = 77

COMMITTED = ("driver", "driver-host", "device", "array", "pool", "vmm")


def launcher(sim: Path, release: str, *options: str) -> List[Argument]:
    return [sim / "jmsim-board", f"--release={release}", *options, "--"]


def require_board(sim: Path) -> None:
    """Skips where the board cannot be simulated."""
    done = harness.run([*launcher(sim, "r35"), "true"])
    if done.returncode == UNAVAILABLE:
        pytest.skip(f"the simulated board's device nodes: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr


def record(
    sim: Path,
    release: str,
    program: str,
    *arguments: str,
    options: Sequence[str] = (),
    marks: bool = True,
    valgrind: str = harness.VALGRIND,
    build: Path = harness.BUILD,
    status: int = 0,
) -> Recording:
    """Runs a program of the simulation on the board, with a mark at each of its points."""
    env: Dict[str, str] = {}
    if marks:
        env["LD_PRELOAD"] = str(harness.BUILD / "jmassif" / "libjmassif.so")
    recording = harness.record(
        [sim / "programs" / program, *arguments],
        options=options,
        env=env,
        valgrind=valgrind,
        build=build,
        launcher=launcher(sim, release),
        timeout=300,
    )
    assert recording.returncode == status, recording.stderr
    return recording


def recorded(
    sim: Path,
    release: str,
    program: str,
    *arguments: str,
    options: Sequence[str] = (),
    marks: bool = True,
    status: int = 0,
) -> Recording:
    """The same, once for all tests that ask for it."""
    require_board(sim)
    return harness.recorded(
        [sim / "programs" / program, *arguments],
        options=options,
        env={"LD_PRELOAD": str(harness.BUILD / "jmassif" / "libjmassif.so")} if marks else {},
        launcher=launcher(sim, release),
        timeout=300,
        status=status,
    )


def by_kind(profile: Profile, composition: LiveBytesByAccount) -> Mapping[str, int]:
    sums: Dict[str, int] = {}
    for account, (n_bytes, _) in composition.items():
        kind = profile.accounts[account].kind
        sums[kind] = sums.get(kind, 0) + n_bytes
    return sums


def committed(profile: Profile, composition: LiveBytesByAccount, release: str) -> int:
    """What the ledger has of the kernel's memory. Above RM, pinned memory is the program's own and managed memory is
    addresses; on Tegra both are buffers."""
    held = by_kind(profile, composition)
    kinds = COMMITTED + (("pinned", "managed") if release not in RM else ())
    return sum(held.get(kind, 0) for kind in kinds)


def counters(trace: Path) -> Dict[str, int]:
    """The last of each `k` record."""
    found: Dict[str, int] = {}
    for line in trace.read_text("utf-8", "replace").splitlines():
        if line.startswith("k "):
            _, key, count = line.split(" ")
            found[key] = int(count)
    return found


def odd(trace: Path) -> Dict[str, int]:
    """The counters that say that something was not understood."""
    words = ("driver-ioctl", "driver-handle", "driver-size", "driver-block", "driver-objects")
    return {key: count for key, count in counters(trace).items() if key.startswith(words) and count}
