# SPDX-License-Identifier: GPL-2.0-or-later
"""The planted faults themselves: each must still fit the code that it spoils. tests/faults/run plants them."""

import re
from pathlib import Path
from typing import List

import pytest

from tests.harness import ROOT, run

PATCHES = sorted(Path(__file__).parent.glob("*.patch"))


def header(patch: Path) -> str:
    return patch.read_text().partition("\ndiff --git ")[0]


def field(patch: Path, name: str) -> str:
    found = re.findall(rf"^{name}: (.+)$", header(patch), re.MULTILINE)
    assert len(found) == 1, f"{patch.name} has {len(found)} lines {name}:"
    return str(found[0])


def test_there_are_forty_with_numbers_of_their_own() -> None:
    assert [patch.name[:3] for patch in PATCHES] == [f"{number:02}-" for number in range(1, 41)]


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: str(patch.stem))
def test_a_fault_says_what_it_is_and_which_tests_see_it(patch: Path) -> None:
    assert field(patch, "Fault")
    seen_by = field(patch, "Seen by").partition("::")
    missing = [path for path in field(patch, "First").split() + [seen_by[0]] if not (ROOT / "tests" / path).exists()]
    assert not missing
    assert seen_by[2].startswith("test_")


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: str(patch.stem))
def test_a_fault_is_small_and_outside_of_the_tests(patch: Path) -> None:
    lines = patch.read_text().splitlines()
    changed: List[str] = [line for line in lines if re.match(r"[-+](?![-+]{2} )", line)]
    assert 1 <= len(changed) <= 5
    files = [line for line in lines if line.startswith("+++ ")]
    assert files and all(re.match(r"\+\+\+ b/(jmassif|reporter)/", line) for line in files)


def test_each_fault_applies_to_the_present_tree() -> None:
    stale = [patch.name for patch in PATCHES if run(["git", "apply", "--check", patch], cwd=ROOT).returncode != 0]
    assert not stale, f"the code has moved away from {', '.join(stale)}: make these anew"
