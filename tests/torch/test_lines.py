# SPDX-License-Identifier: GPL-2.0-or-later
"""What each line of a script holds, against the books that the script itself keeps (scripts/census.py), to the byte."""

import re
from typing import Any, Callable, Counter, Dict, List

import pytest

from jmassif.attribution.views import charges
from jmassif.units import size
from tests.tool.programs import print_report
from tests.torch.finished import SCRIPTS, Finished, finished

SCRIPT = "inventory.py"
# By mark: 15 tags are alive, or were.
MARKS = ("peak", "end")


@pytest.fixture(scope="module")
def inventory() -> Finished:
    return finished(SCRIPT, "native")


def tags() -> Dict[str, List[str]]:
    """By place: the tags that its comment names, `x = y()  # tag tag`."""
    found = {}
    for name in (SCRIPT, "shelf.py"):
        for number, line in enumerate((SCRIPTS / name).read_text().splitlines(), 1):
            comment = re.search(r"  # ([a-z ]+)$", line)
            if comment:
                found[f"{name}:{number}"] = comment.group(1).split()
    return found


def expected(books: Dict[str, int]) -> Dict[str, int]:
    """From bytes by tag to bytes by place."""
    by_place = {place: sum(books.get(tag, 0) for tag in names) for place, names in tags().items()}
    assert sum(by_place.values()) == sum(books.values()), "a tag is on no line, or on two"
    return {place: n_bytes for place, n_bytes in by_place.items() if n_bytes}


def label(run: Finished, by: str = "python-line") -> Callable[[int], str]:
    charged = charges(run.profile, run.names, by, True)
    return lambda account: charged(account).label


def books(run: Finished, mark: str) -> Dict[str, Any]:
    (line,) = (line for line in run.told if line["mark"] == mark)
    return line


def test_the_script_is_as_long_as_a_real_one_and_each_of_its_lines_holds_something(inventory: Finished) -> None:
    assert len((SCRIPTS / SCRIPT).read_text().splitlines()) > 50
    assert len(expected(books(inventory, "end")["total"])) == len(tags()) >= 15


@pytest.mark.parametrize("mark", MARKS)
def test_lines_hold_what_their_tensors_hold(inventory: Finished, mark: str) -> None:
    held = inventory.tensors(inventory.at_mark(mark), label(inventory))
    assert held == expected(books(inventory, mark)["alive"])


def test_the_peak_is_exact(inventory: Finished) -> None:
    held = inventory.tensors(inventory.profile.peak_composition("total"), label(inventory))
    assert held == expected(books(inventory, "peak")["alive"])


def test_lines_have_allocated_what_their_tensors_were(inventory: Finished) -> None:
    counts = inventory.profile.counts()
    everything = {account: (count.bytes, count.blocks) for account, count in counts.items()}
    assert inventory.tensors(everything, label(inventory)) == expected(books(inventory, "end")["total"])


def test_functions_and_modules_hold_what_their_lines_hold(inventory: Finished) -> None:
    alive = inventory.profile.peak_composition("total")
    by_line = inventory.tensors(alive, label(inventory))
    modules: Counter[str] = inventory.tensors(alive, label(inventory, "module"))
    functions = inventory.tensors(alive, label(inventory, "python-function"))
    assert modules == {
        name[: -len(".py")]: sum(n for place, n in by_line.items() if place.startswith(name))
        for name in (SCRIPT, "shelf.py")
    }
    assert functions["fill (shelf.py)"] == books(inventory, "peak")["alive"]["fill"]
    assert functions["Net.__init__ (inventory.py)"] == sum(
        books(inventory, "peak")["alive"][tag] for tag in ("first", "second", "mean")
    )


def test_the_table_shows_the_lines_with_their_text(inventory: Finished) -> None:
    table = print_report(inventory.trace, "--by=python-line", "--threshold=0.05").stdout
    row = next(line for line in table.splitlines() if "# big" in line)
    n_bytes = books(inventory, "peak")["alive"]["big"]
    assert re.split(r"  +", row)[1] == size(n_bytes)
    assert row.endswith('big = made("big", torch.empty(50, 1000, 100))  # big')
