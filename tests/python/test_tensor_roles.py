# SPDX-License-Identifier: GPL-2.0-or-later
"""What modules, optimizers and tensors say tensors are for, read from Python's objects, in each release of it. The classes
are scripts/tensors.py's, which lays them out as PyTorch does."""

import collections
import json
from pathlib import Path
from typing import Counter, List

import pytest

from tests.harness import ROOT, Argument, compile_c, record
from tests.python.noted import INTERPRETER, SCRIPTS

RULES = "tensor * allocate\n"
# Words before what is a C++ object's own, and where a Python tensor has its C++ one: by releases of PyTorch.
LAYOUTS = {"1.6": (3, 16), "1.13": (3, 24), "2.6": (2, 24)}


@pytest.mark.parametrize("release", sorted(LAYOUTS))
def test_roles_are_what_the_objects_say(release: str, tmp_path: Path) -> None:
    head, place = LAYOUTS[release]
    rules = tmp_path / "my.rules"
    rules.write_text(RULES)
    library = compile_c(SCRIPTS / "tensors.c", "-shared", "-fpic", "-g", "-I", str(ROOT / "jmassif"))
    command: List[Argument] = [INTERPRETER, SCRIPTS / "tensors.py", library, str(head), str(place)]
    recording = record(command, [f"--owners={rules}"], env={"PYTHONDONTWRITEBYTECODE": "1"}, timeout=300, status=0)
    told = [json.loads(line) for line in recording.stdout.splitlines()]
    profile = recording.profile
    at_marks = [i for i, snapshot in enumerate(profile.snapshots) if snapshot.reason == "mark"]
    assert len(at_marks) == len(told) == 10
    for line, number in zip(told, at_marks):
        found: Counter[str] = collections.Counter()
        for account, (n_bytes, _) in profile.composition(number).items():
            if profile.accounts[account].kind == "heap" and profile.role(account):
                found[str(profile.role(account))] += n_bytes
        mark = line.pop("mark")
        assert (mark, {role: found[role] for role in line}) == (mark, line)
