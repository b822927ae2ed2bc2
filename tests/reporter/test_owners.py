# SPDX-License-Identifier: GPL-2.0-or-later
"""Each built-in owner has a line that says what it is; what the rules call own code, the reporter calls the user's own."""

from fnmatch import fnmatchcase
from typing import Dict, List

import pytest

from jmassif.attribution.packages import OWN, classify
from jmassif.model.records import Frame
from jmassif.render.words import GROUPS, OWNERS
from tests.harness import ROOT

RULES = [
    line.split("#")[0].split()
    for line in (ROOT / "jmassif" / "attribution" / "owners.rules").read_text("utf-8").splitlines()
]


def named(word: str) -> List[List[str]]:
    return [words[1:] for words in RULES if words and words[0] == word]


def test_each_owner_of_a_group_is_described_and_no_other() -> None:
    owners: Dict[str, List[str]] = {}
    for group, *names in named("group"):
        owners.setdefault(group, []).extend(names)
    assert sorted(GROUPS) == sorted(owners)
    assert sorted(OWNERS) == sorted(name for names in owners.values() for name in names)
    for text in [*GROUPS.values(), *OWNERS.values()]:
        assert 0 < len(text) <= 100 and text == text.strip() and not text.endswith(".")


def sort_of_code(file: str, function: str) -> str:
    """What the recorder's rules say of a Python frame."""
    for sort, objects, functions in named("code"):
        globs = objects[len("py:") :].split("|") if objects.startswith("py:") else []
        if any(map(lambda glob: fnmatchcase(file, glob), globs)) and fnmatchcase(function, functions):
            return sort
    return ""


FILES = [
    ("/home/me/train.py", "own"),
    ("train.py", "own"),
    ("/home/me/lib/model.py", "own"),
    ("/tmp/ipykernel_4711/1234567.py", "own"),
    ("<ipython-input-3-0123456789ab>", "own"),
    ("<stdin>", "own"),
    ("<python-input-0>", "own"),
    ("<console>", "own"),
    ("<doctest train.loss[0]>", "own"),
    ("/home/me/bin/train.py", "own"),
    ("/usr/lib/python3.11/json/decoder.py", "library"),
    ("/usr/lib/python3/dist-packages/numpy/core/numeric.py", "library"),
    ("/home/me/.venv/lib/python3.8/site-packages/pandas/core/frame.py", "library"),
    ("/usr/lib64/python3.9/threading.py", "library"),
    ("/usr/lib/python311.zip/json/decoder.py", "library"),
    ("/usr/local/bin/torchrun", "library"),
    ("<frozen os>", "library"),
    ("<__array_function__ internals>", "library"),
    ("<eval_with_key>.3", "library"),
    ("<frozen importlib._bootstrap>", "import"),
    ("<frozen importlib._bootstrap_external>", "import"),
]


@pytest.mark.parametrize("file,sort", FILES)
def test_own_code_is_what_the_reporter_calls_the_users_own(file: str, sort: str) -> None:
    assert sort_of_code(file, "f") == sort
    assert (classify(Frame("p", "f", "", file, 1, 0)).rank == OWN) == (sort == "own")


def test_python_c_is_own_code_where_nothing_is_further_out() -> None:
    assert sort_of_code("<string>", "<module>") == "main"
    assert sort_of_code("<string>", "__init__") == "library"
