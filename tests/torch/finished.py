# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of scripts/ under jmassif, each recorded once for all tests: importing PyTorch takes most of a run."""

import collections
import functools
import json
from pathlib import Path
from typing import Any, Callable, Counter, Dict, List, NamedTuple

from jmassif.attribution.names import Names
from jmassif.model.records import LiveBytesByAccount
from jmassif.model.run import Profile
from tests.harness import BUILD, HOST, PYTHON, ROOT, Recording, need_module, recorded

SCRIPTS = Path(__file__).parent / "scripts"
LENET = ROOT / "tests" / "bench" / "lenet.py"
LIBRARY = BUILD / "jmassif" / "libjmassif.so"


class Finished(NamedTuple):
    told: List[Dict[str, Any]]  # what the script printed at each of its marks
    trace: Path
    profile: Profile
    names: Names

    def at_mark(self, name: str) -> LiveBytesByAccount:
        """Who held what at a mark: each has a snapshot of its own."""
        snapshots = [i for i, snapshot in enumerate(self.profile.snapshots) if snapshot.reason == "mark"]
        (number,) = (i for i, mark in enumerate(self.profile.marks) if mark.text == name)
        assert len(snapshots) == len(self.profile.marks)
        return self.profile.composition(snapshots[number])

    def tensors(self, held: LiveBytesByAccount, label: Callable[[int], str]) -> Counter[str]:
        """Bytes of tensors, by what `label` says of their accounts."""
        sums: Counter[str] = collections.Counter()
        for account, (n_bytes, _) in held.items():
            if self.profile.accounts[account].owner == "tensor" and self.profile.accounts[account].kind == "heap":
                sums[label(account)] += n_bytes
        return sums


@functools.lru_cache(maxsize=None)
def finished(script: str, host: str = HOST) -> Finished:
    need_module("torch")
    env = {"CENSUS_LIBRARY": str(LIBRARY), "PYTHONDONTWRITEBYTECODE": "1"}
    recording = recorded([PYTHON, SCRIPTS / script], env=env, timeout=600, host=host)
    told = [json.loads(line) for line in recording.stdout.splitlines()]
    return Finished(told, recording.trace, recording.profile, Names(recording.profile))


def trained(n_steps: int, *options: str) -> Recording:
    """LeNet."""
    need_module("torch")
    return recorded([PYTHON, LENET, str(n_steps)], options, timeout=1200)
