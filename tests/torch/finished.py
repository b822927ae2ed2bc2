# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of scripts/ under jmassif. To import PyTorch takes most of a run, so each script runs once for all tests, in
whatever process these are, and its trace is kept below the build tree until the recorder or the scripts change.
"""

import collections
import functools
import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable, Counter, Dict, List, NamedTuple

import pytest

from jmassif.model.profile import Profile
from jmassif.model.records import Composition
from jmassif.trace.builder import load_file
from jmassif.whose.names import Names
from tests.harness import BUILD, MADE, PYTHON, lock, record

SCRIPTS = Path(__file__).parent / "scripts"
LIBRARY = BUILD / "jmassif" / "libjmassif.so"


class Finished(NamedTuple):
    told: List[Dict[str, Any]]  # what the script printed at each of its marks
    trace: Path
    profile: Profile
    names: Names

    def at_mark(self, name: str) -> Composition:
        """Who held what at a mark: each has a snapshot of its own."""
        snapshots = [i for i, snapshot in enumerate(self.profile.snapshots) if snapshot.reason == "mark"]
        (number,) = (i for i, mark in enumerate(self.profile.marks) if mark.text == name)
        assert len(snapshots) == len(self.profile.marks)
        return self.profile.composition(snapshots[number])

    def tensors(self, held: Composition, label: Callable[[int], str]) -> Counter[str]:
        """Bytes of tensors, by what `label` says of their accounts."""
        sums: Counter[str] = collections.Counter()
        for account, (n_bytes, _) in held.items():
            if self.profile.accounts[account].owner == "tensor" and self.profile.accounts[account].kind == "heap":
                sums[label(account)] += n_bytes
        return sums


def key() -> str:
    parts = sorted(SCRIPTS.glob("*.py")) + sorted((BUILD / "jmassif").glob("*jmassif-*-linux*"))
    return hashlib.sha256(b"".join(part.read_bytes() for part in parts if part.is_file())).hexdigest()[:24]


@functools.lru_cache(maxsize=None)
def finished(script: str) -> Finished:
    if subprocess.run([PYTHON, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("PyTorch is not installed")
    directory = MADE / "torch" / script
    stem = directory / key()
    trace, printed = stem.with_suffix(".jmassif"), stem.with_suffix(".json")
    with lock(f"torch-{script}"):
        if not printed.exists():
            shutil.rmtree(str(directory), ignore_errors=True)
            directory.mkdir(parents=True)
            env = {"CENSUS_LIBRARY": str(LIBRARY), "PYTHONDONTWRITEBYTECODE": "1"}
            recording = record([PYTHON, SCRIPTS / script], env=env, timeout=600)
            assert recording.returncode == 0, recording.stderr
            shutil.copyfile(str(recording.trace), str(trace))
            printed.write_text(recording.stdout)
    profile = load_file(str(trace))
    told = [json.loads(line) for line in printed.read_text().splitlines()]
    return Finished(told, trace, profile, Names(profile))
