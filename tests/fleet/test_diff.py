# SPDX-License-Identifier: GPL-2.0-or-later
"""jmassif fleet diff: what was planted is found, with its size, and the figures are those of jm_diff."""

import json
import re
import statistics
from pathlib import Path
from typing import Any, Dict, List

import pytest

from tests.fleet.conftest import MadeFleet
from tests.fleet.test_load import a_trace, refused, rows
from tests.reporter.commands import Done, jm_diff, jmassif
from tests.reporter.traces import Trace


def asked(*arguments: object) -> Done:
    done = jmassif("fleet", *arguments)
    assert done.status == 0, done.err
    return done


def difference(fleet: MadeFleet, *arguments: object) -> Dict[str, Any]:
    found: Dict[str, Any] = json.loads(
        asked("diff", fleet.database, "--group-by=jetpack", "--format=json", *arguments).out
    )
    return found


def changes(found: Dict[str, Any], view: str) -> Dict[str, List[Any]]:
    """By name, the rows of parts with a change: those of the groups after the base."""
    of_view = [row for row in found["rows"] if row["view"] == view]
    names = {row["name"] for row in of_view if row["is_change"]}
    return {name: [row for row in of_view if row["name"] == name and row["group"] != found["base"]] for name in names}


def test_what_is_planted_is_found_with_its_size_and_nothing_else(fleet: MadeFleet) -> None:
    found = difference(fleet)
    groups = [group["value"] for group in found["groups"]]
    assert groups == ["4.6.1", "5.1.2", "6.0", "6.2"]
    assert sum(group["runs"] for group in found["groups"]) + found["left_out"] == 199
    by_owner = changes(found, "owner")
    assert set(by_owner) == {planted["owner"] for planted in fleet.truth["planted"]}
    for planted in fleet.truth["planted"]:
        for group, change in zip(groups[1:], by_owner[planted["owner"]]):
            is_there = groups.index(group) >= groups.index(planted["jetpack"])
            assert change["is_change"] == is_there
            low, high = change["interval"]
            assert low <= (planted["bytes"] if is_there else 0) <= high
    assert set(changes(found, "library")) <= {"libcudnn.so", "python"} and not changes(found, "scope")
    # The line that makes the vocabulary, and the one below which cuDNN is initialised.
    source = (Path(__file__).parent / "program.py").read_text().splitlines()
    lines = [number for number, text in enumerate(source, 1) if re.search(r"24 << 20|jmsim\.Device", text)]
    assert set(changes(found, "python-line")) == {f"program.py:{line}" for line in lines}


def test_of_groups_by_chance_nothing_is_a_change(fleet: MadeFleet) -> None:
    """The last digit of the host's name says nothing."""
    for board in ("*Nano*", "*Xavier*", "*AGX*"):
        where = "--where", f"board={board}", "--where=jetpack=5.1.2"
        done = asked("diff", fleet.database, "--group-by=pid", *where, "--format=json")
        assert not [row for row in json.loads(done.out)["rows"] if row["is_change"]]


def test_medians_and_percentiles_are_those_of_the_traces(fleet: MadeFleet) -> None:
    """Against the values of each run, and the rows of `jmassif diff`."""
    runs = rows(fleet.database, "SELECT id, file FROM run WHERE host GLOB 'board-000[01]*' AND is_complete")
    files = [str(fleet.traces / Path(file).name) for _, file in runs]
    assert len(files) > 15
    done = jm_diff("--group-by=jetpack", "--format=json", "--by=owner", *files)
    assert done.status == 0
    (view,) = json.loads(done.out)["views"]
    ours = difference(fleet, "--where=host=board-000[01]*")
    assert {row["name"] for row in view["rows"]} == {row["name"] for row in ours["rows"] if row["view"] == "owner"}
    by_run = runs_values(fleet, [id_ for id_, _ in runs])
    for row in (row for row in ours["rows"] if row["view"] in ("total", "owner")):
        values = sorted(by_run[ours["groups"][row["group"]]["value"]].get(row["name"], []))
        values = [0] * (row["n"] - len(values)) + values
        assert abs(row["median"] - statistics.median(values)) <= 0.5
        quartiles = statistics.quantiles(values, method="inclusive")
        assert abs(row["spread"] - quartiles[2] + quartiles[0]) <= 1


def runs_values(fleet: MadeFleet, names: List[str]) -> Dict[str, Dict[str, List[int]]]:
    """By JetPack and owner, as SQL has them."""
    figures = (
        "SELECT id, jetpack, name, f.host + f.device FROM figure f JOIN part USING (part) JOIN run USING (run)"
        " WHERE view IN ('owner', 'total')"
    )
    found: Dict[str, Dict[str, List[int]]] = {}
    for id_, jetpack, name, value in rows(fleet.database, figures):
        if id_ in names:
            found.setdefault(jetpack, {}).setdefault(name, []).append(value)
    return found


def test_text_begins_with_what_has_changed_and_by_how_much(fleet: MadeFleet) -> None:
    first = " ".join(asked("diff", fleet.database, "--group-by=jetpack").out.split("\n\n")[0].split())
    found = difference(fleet)
    assert first == found["headline"][0]
    assert re.match(
        r"JetPack 6\.2 needs [45]\.\d+ MiB more than JetPack 4\.6\.1 at the peak \(\+.* to \+.* MiB\): .*"
        r" By owner: cudnn \+[23]\.\d+ MiB, data \+[12]\.\d+ MiB\.$",
        first,
    )


def test_all_that_a_text_shows_is_fit_for_a_terminal(fleet: MadeFleet) -> None:
    out = asked("diff", fleet.database, "--group-by=jetpack").out
    assert all(line.isprintable() for line in out.splitlines())
    assert "libcudnn.so" in out and "package libssl" in out and "without a significant difference" in out


def test_what_else_differs_is_told_with_versions(fleet: MadeFleet) -> None:
    facts = {fact["key"]: [each["value"] for each in fact["values"]] for fact in difference(fleet)["facts"]}
    assert facts["package.libssl"] == ["1.1.1", "1.1.1", "3.0.2", "3.0.2"]
    assert facts["pytorch"] == ["1.13.0", "1.13.0", "2.1.0", "2.1.0"] and "board" not in facts


def test_runs_that_lie_far_out_are_named(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    for number in range(40):
        trace = a_trace(pid=number + 1)
        if number == 17:
            trace = trace.replace(b"S 3 1000 exit 44088328 167772160", b"S 3 1000 exit 44088328 167772160")
        trace = trace.replace(b"m l4t 32.7.1", b"m l4t 35.4.1") if number % 2 else trace
        (tmp_path / f"traces/{number}").write_bytes(heavier(trace) if number == 17 else trace)
    asked("load", tmp_path / "f.db", tmp_path / "traces")
    found = json.loads(asked("diff", tmp_path / "f.db", "--group-by=l4t", "--format=json").out)
    assert [Path(each["file"]).name for each in found["outliers"]] == ["17"]
    (each,) = found["outliers"]
    assert each["bytes"] - each["median"] == 500 << 20 and each["group"] == 1


def heavier(trace: bytes) -> bytes:
    """With 500 MiB more in the account that holds most at the total peak."""
    lines = trace.decode().split("\n")
    more = 500 << 20
    for at, line in enumerate(lines):
        words = line.split(" ")
        if line.startswith("P total "):
            lines[at] = " ".join([*words[:4], str(int(words[4]) + more)])
            inner = lines[at + 1].split(" ")
            lines[at + 1] = " ".join([*inner[:2], str(int(inner[2]) + more), inner[3]])
    return "\n".join(lines).encode()


def test_killed_runs_are_left_out_unless_they_are_asked_for(fleet: MadeFleet) -> None:
    n_killed = len(fleet.truth["killed"])
    assert n_killed and difference(fleet)["left_out"] == n_killed
    found = difference(fleet, "--where=is_complete=*")
    assert found["left_out"] == 0 and sum(group["runs"] for group in found["groups"]) == 199


def test_another_base_turns_the_sign(fleet: MadeFleet) -> None:
    one, other = difference(fleet), difference(fleet, "--base=6.2")
    assert other["base"] == 3 and [row["group"] for row in other["rows"][:4]] == [0, 1, 2, 3]
    assert other["rows"][0]["bytes"] == -one["rows"][3]["bytes"] != 0
    assert other["rows"][3]["bytes"] == one["rows"][0]["bytes"] == 0


def test_few_runs_are_said_to_be_too_few(fleet: MadeFleet) -> None:
    out = asked("diff", fleet.database, "--group-by=jetpack", "--where=host=board-0000?").out
    assert "Not enough runs" in " ".join(out.split()) and "too few runs" in out
    # No test was made, so none has a result.
    assert "Mann-Whitney" not in out


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["diff"], "required: --group-by"),
        (["diff", "--group-by=jetpak"], 'no run has "jetpak"; keys: jetpack'),
        (["diff", "--group-by=jetpack", "--base=7"], 'no run has jetpack "7": there is 4.6.1, 5.1.2'),
        (["diff", "--group-by=command"], "there is nothing to compare"),
        (["diff", "--group-by=jetpack", "--where=jetpack"], "is not a condition"),
        (["diff", "--group-by=jetpack", "--where=jetpack=9"], "there is no such run"),
        (["diff", "--group-by=jetpack", "--format=csv"], "invalid choice: 'csv'"),
        (["diff", "--group-by=jetpack", "--jobs=2"], "unrecognized arguments: --jobs=2"),
        (["load"], "required: TRACE"),
    ],
)
def test_what_means_nothing_is_refused_in_a_line(fleet: MadeFleet, arguments: List[str], says: str) -> None:
    assert says in refused(arguments[0], fleet.database, *arguments[1:])


def held_on_the_host(directory: Path, command: str, n_bytes: int, **manifest: str) -> Path:
    """The trace of a run that has used no GPU."""
    trace = Trace(command=command, pid="1", host="desk", start_unix_ms=str(n_bytes), time_unit="ms", **manifest)
    app = trace.account("heap", "app", ["main (x)"])
    trace.snapshot(0, "start")
    trace.snapshot(9, "exit", {app: (n_bytes, 1)}, peaks={"total": (9, {}), "host": (9, {})})
    trace.lines.append("Z 9 exit 0")
    (directory / command).write_bytes(trace.bytes())
    return directory / command


def test_runs_without_a_gpu_are_compared_by_what_they_held_on_the_host(tmp_path: Path) -> None:
    traces = [held_on_the_host(tmp_path, name, n, memory="discrete") for name, n in (("one", 7000), ("two", 9000))]
    database = tmp_path / "runs.db"
    assert jmassif("fleet", "load", database, *traces).status == 0
    found = json.loads(asked("diff", database, "--group-by=command", "--format=json").out)
    totals = [row["median"] for row in found["rows"] if row["view"] == "total"]
    assert found["pool"] == "bytes" and totals == [7000, 9000]


@pytest.mark.parametrize("words", [["--group-by=jetpack"], ["--group-by=host", "--where=jetpack=6*"]])
def test_what_no_run_has_is_not_offered(words: List[str], tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    assert jmassif("fleet", "load", database, held_on_the_host(tmp_path, "one", 7000)).status == 0
    said = refused("diff", database, *words)
    assert 'no run has "jetpack"' in said and "jetpack" not in said.split("; keys: ")[1] and "command" in said
