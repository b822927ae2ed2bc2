# SPDX-License-Identifier: GPL-2.0-or-later
"""Which variable keeps the objects of a script that leaks, against what scripts/keepers.py counts itself, in each release."""

import pytest

from jmassif.analysis.leaks import Keeper, keepers
from jmassif.attribution.names import Names
from tests.harness import Recording, recorded
from tests.python.noted import INTERPRETER, SCRIPTS
from tests.tool.programs import print_report

N = 2000
# How it leaks: type, container, variable, and sort and name of its holder.
KEPT = {
    "list": ("Record", "list", "history", "module", "__main__"),
    "dict": ("Record", "dict", "cache", "module", "__main__"),
    "set": ("Record", "set", "seen", "module", "__main__"),
    "deque": ("Record", "deque", "queue", "module", "__main__"),
    "closure": ("Record", "list", "found", "function", "collector.<locals>.add"),
    "instance": ("Record", "list", "losses", "instance", "Trainer"),
    "class": ("Record", "list", "shared", "class", "Trainer"),
    "callbacks": ("function", "list", "callbacks", "module", "__main__"),
    "mixed": ("Record", "list", "mixed", "module", "__main__"),
}


def run(how: str) -> Recording:
    # By bytes, so that snapshots do not depend on the machine.
    return recorded([INTERPRETER, "-S", SCRIPTS / "keepers.py", how], ["--time-unit=B"])


@pytest.mark.parametrize("how", KEPT)
def test_the_variable_that_keeps_them_is_named_with_type_and_number(how: str) -> None:
    recording = run(how)
    n_data, n_kept, n_gone = map(int, recording.stdout.split())
    others = n_kept - N
    found = {
        each.variable: each
        for each in recording.profile.containers
        if each.sort != "module" or each.holder == "__main__"
    }
    kept = found.pop(KEPT[how][2])
    assert (kept.elements, kept.of_type) == (n_kept, N)
    assert (kept.type, kept.container, kept.variable, kept.sort, kept.holder) == KEPT[how]
    assert (found["DATA"].elements, found["DATA"].of_type, found["DATA"].type) == (n_data, n_data, "Record")
    assert "gone" not in found and n_gone < 64
    (named,) = keepers(recording.profile, Names(recording.profile))
    assert named == Keeper(N, others, *KEPT[how], named.label) and named.label.startswith("keepers.py:")


def test_they_are_named_where_sigint_is_ignored() -> None:
    """As in what a script runs in the background: an interpreter then resets no signal as it begins to end."""
    command = [INTERPRETER, "-S", str(SCRIPTS / "keepers.py"), "list"]
    recording = recorded(command, ["--time-unit=B"], launcher=["sh", "-c", 'trap "" INT; exec "$@"', "-"])
    (named,) = keepers(recording.profile, Names(recording.profile))
    assert (named.objects, named.variable) == (N, "history")


def test_the_report_says_it_in_a_sentence() -> None:
    text = " ".join(print_report(run("dict").trace).stdout.split())
    assert f" {N:,} `Record` objects kept by the dict `cache`, at keepers.py:" in text


def test_where_nothing_leaks_nothing_is_named() -> None:
    recording = run("nothing")
    assert [each.variable for each in recording.profile.containers if each.type == "Record"] == ["DATA"]
    assert keepers(recording.profile, Names(recording.profile)) == []
    assert " kept by " not in print_report(recording.trace).stdout
