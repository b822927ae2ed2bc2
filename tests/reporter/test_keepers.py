# SPDX-License-Identifier: GPL-2.0-or-later
"""Variables that keep the objects of a leak, by hand-made runs: those whose containers grew meanwhile, and no others."""

import json
from typing import Any, List, Sequence

import pytest

from jmassif.analysis.leaks import Keeper
from jmassif.analysis.summary import Report, build_report, moment_of
from jmassif.attribution.names import Names
from jmassif.export.json import write
from jmassif.html.tables import leaks
from jmassif.model.run import Profile
from jmassif.reader.merging import merge_accounts
from jmassif.render.events import growing
from jmassif.render.summary import findings, keeper_text
from jmassif.render.view import View
from tests.reporter.traces import Trace

MIB = 1 << 20
IMPORTING = ["py _find_and_load (<frozen importlib._bootstrap>:1360)"]
VIEW = View(None, 5, "owner", 70, None, None)
GROWS, LATE, EARLY = range(1, 21), [0] * 10 + [5] * 10, [5] * 20


def traced(
    table: List[int],
    leak: List[int],
    of_type: int = 700,
    sort: str = "module",
    holder: str = "__main__",
    inner: Sequence[str] = (),
) -> Trace:
    """A line that holds MiB of objects, and a list whose table holds so many times 256 bytes; frames inside that line."""
    trace = Trace()
    modules = trace.account("heap", "python", IMPORTING)
    objects = trace.account("heap", "data", ["py f (/a/train.py:17)"])
    elements = trace.account("heap", "data", [*inner, "py f (/a/train.py:18)"])
    for step, (held, kib) in enumerate(zip(leak, table)):
        if step == 19:
            words = [trace.string(text) for text in ("list", "Tensor", "history")]
            trace.lines.append(f"H {elements} 700 {of_type} {' '.join(map(str, words))} {sort} {trace.string(holder)}")
        changes = {objects: (held * MIB, 1, held * MIB, held, 0), elements: (kib << 8, 1, kib << 8, kib, 0)}
        imported = {modules: (64 * MIB, 1, 64 * MIB, 64 * MIB, 0)} if step == 0 else {}
        trace.snapshot(step, "end" if step == 19 else "time", {**changes, **imported})
    trace.snapshot(20, "exit", {objects: (0, 0), elements: (0, 0)})
    return trace


def run(*arguments: Any, **keeper: Any) -> Profile:
    return traced(*arguments, **keeper).load()


def report_of(profile: Profile) -> Report:
    names = Names(profile)
    return build_report(profile, moment_of(profile, names, None), names)


def named(profile: Profile) -> List[Keeper]:
    found = report_of(profile).leaks
    assert found is not None
    return found.keepers


def test_a_list_that_grew_while_a_line_leaked_is_named_everywhere() -> None:
    profile = run(list(GROWS), list(GROWS))
    (keeper,) = named(profile)
    assert keeper == Keeper(700, 0, "Tensor", "list", "history", "module", "__main__", "train.py:18 (f)")
    text = "700 `Tensor` objects kept by the list `history`, at train.py:18 (f)."
    assert keeper_text(keeper) == text
    report = report_of(profile)
    (finding,) = (finding for finding in findings(report) if finding.key == "growth")
    assert finding.text.endswith(f" {text} {finding.to_do}")
    assert finding.to_do == "Remove from the list `history` what is no longer used."
    assert text in " ".join(map(str, growing(report, VIEW)))
    assert text in next(leaks(report)).note
    assert json.loads("".join(write(profile, VIEW)))["leaks"]["keepers"][0]["variable"] == "history"


def test_a_container_stays_with_its_account_when_native_lines_make_one_of_two() -> None:
    trace = Trace()
    kept, same, other = (trace.account("heap", "data", [f"py f (/a/train.py:{line})"]) for line in (17, 17, 18))
    for account in (same, other):
        trace.lines.append(f"H {account} 700 700 {trace.string('list')} 0 0 module 0")
    trace.snapshot(0, "exit", {same: (MIB, 1), other: (MIB, 1)})
    profile = trace.load()
    merge_accounts(profile)
    assert [each.account for each in profile.containers] == [kept, other]
    assert profile.composition(0)[kept] == (MIB, 1)


def test_what_grew_before_the_leak_or_with_none_is_not_named() -> None:
    assert named(run(EARLY, list(GROWS))) == []
    assert named(run(list(GROWS), EARLY)) == []
    assert named(run(LATE, list(GROWS))) != []


def test_what_grew_at_the_very_end_is_not_named() -> None:
    assert named(run([0] * 17 + [5] * 3, list(GROWS))) == []


def test_what_an_import_in_the_midst_of_the_leak_filled_is_not_named() -> None:
    assert named(run(LATE, list(GROWS), inner=IMPORTING)) == []


@pytest.mark.parametrize(
    "sort, holder, of_type, text",
    [
        ("module", "app.net", 700, "700 `Tensor` objects kept by the list `app.net.history`"),
        ("class", "Net", 1, "1 `Tensor` object and 699 other objects kept by the list `Net.history`"),
        ("instance", "Net", 699, "699 `Tensor` objects and 1 other object kept by the list `history` of a `Net`"),
        (
            "function",
            "f.<locals>.g",
            700,
            "700 `Tensor` objects kept by the list `history` of the function `f.<locals>.g`",
        ),
    ],
)
def test_a_holder_is_part_of_the_name(sort: str, holder: str, of_type: int, text: str) -> None:
    (keeper,) = named(run(list(GROWS), list(GROWS), of_type, sort, holder))
    assert keeper_text(keeper) == f"{text}, at train.py:18 (f)."
