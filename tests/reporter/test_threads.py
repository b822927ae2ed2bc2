# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports by thread: what each allocated, under the name that it had last."""

import csv
import json
from pathlib import Path
from typing import List

import pytest

from jmassif.attribution.views import NO_THREAD
from tests.reporter.commands import assert_one_line_error, jm_diff, jm_print, jmassif
from tests.reporter.traces import Trace

MAIN, LOADERS, UNNAMED, BEFORE = 1000, (20000, 300000), 4000000, 50000000


def _trace(is_asked_for: bool = True) -> Trace:
    """A main thread, two that share a name in the end, one without, and memory of none."""
    trace = Trace(time_unit="ms", memory="unified", command="./a.out")
    trace.manifest("option.threads", "yes" if is_asked_for else "no")
    trace.group("yours", "app")
    places = [trace.thread(1), trace.thread(2, "early"), trace.thread(3, "loader"), trace.thread(4)]
    ask = ["make (a.c:5)"]
    held = [trace.account("heap", "app", ask + [place]) for place in places]
    before = trace.account("file", "app", ["mapped (libc.so)"])
    trace.thread(2, "loader")
    sizes = (MAIN, *LOADERS, UNNAMED)
    changes = {account: (size, 1, 2 * size, 2, 0) for account, size in zip(held, sizes)}
    changes[before] = (BEFORE, 1, BEFORE, 1, 0)
    trace.snapshot(5, "time", changes, {"total": (5, {})})
    trace.snapshot(10, "exit", {})
    trace.lines.append("Z 10 exit 0")
    return trace


@pytest.fixture(name="trace")
def _fixture(tmp_path: Path) -> Path:
    return _trace().save(tmp_path)


def _rows(*arguments: object) -> "dict[str, List[int]]":
    """By name: live bytes and bytes allocated in all, from CSV."""
    done = jm_print("--format=csv", "--by=thread", *arguments)
    assert done.status == 0, done.err
    rows = csv.DictReader(done.out.splitlines())
    return {row["thread"]: [int(row["host_live_bytes"]), int(row["host_allocated_bytes"])] for row in rows}


def test_threads_go_by_the_name_that_they_had_last_and_those_that_share_it_are_one(trace: Path) -> None:
    assert _rows(trace) == {
        "main thread": [MAIN, 2 * MAIN],
        "loader": [sum(LOADERS), 2 * sum(LOADERS)],
        "thread 4": [UNNAMED, 2 * UNNAMED],
        NO_THREAD: [BEFORE, BEFORE],
    }


def test_unfolded_each_thread_stands_by_itself(trace: Path) -> None:
    rows = _rows("--fold=none", trace)
    assert rows["loader (thread 2)"][0] == LOADERS[0] and rows["loader (thread 3)"][0] == LOADERS[1]
    assert "main thread" in rows and "loader" not in rows


def test_the_text_tells_how_many_had_a_name_what_they_hold_and_what_they_had_in_all(trace: Path) -> None:
    lines = jm_print("--by=thread", trace).out.splitlines()
    begin = lines.index("--- By thread, at the peak " + "-" * 53)
    words = [line.split() for line in lines[begin + 2 : begin + 6]]
    assert words[0][:2] == ["(no", "thread)"]
    assert words[1] == ["thread", "4", "3.81", "MiB", "1", "4,000,000", "7.4", "%", "8,000,000"]
    assert words[2] == ["loader", "312", "KiB", "2", "320,000", "0.6", "%", "2", "640,000"]
    assert words[3][:2] == ["main", "thread"]
    unfolded = jm_print("--by=thread", "--fold=none", "--threshold=0", trace).out
    assert "loader (thread 2)" in unfolded and "make (a.c:5)" in unfolded


def test_stacks_begin_with_their_thread(trace: Path) -> None:
    folded = jm_print("--format=folded", "--threshold=0", trace).out.splitlines()
    assert f"thread loader;make (a.c:5) {sum(LOADERS)}" in folded
    assert f"main thread;make (a.c:5) {MAIN}" in folded
    assert f"thread 4;make (a.c:5) {UNNAMED}" in folded


def test_the_site_is_never_the_thread(tmp_path: Path) -> None:
    trace = Trace(time_unit="ms", memory="unified")
    trace.manifest("option.threads", "yes")
    thread = trace.thread(1, "worker")
    lost = trace.account("heap", "unknown", [thread])
    inside = trace.account("heap", "lib", ["malloc (libc.so.6)", thread])
    trace.snapshot(1, "exit", {lost: (5, 1), inside: (7, 1)})
    path = trace.save(tmp_path)
    done = jm_print("--format=csv", "--by=library", path)
    rows = {row["library"]: int(row["host_live_bytes"]) for row in csv.DictReader(done.out.splitlines())}
    assert rows == {"(memory without a stack)": 5, "libc.so.6": 7}


@pytest.mark.parametrize(
    "option, held",
    [
        ("--include=thread:^loader$", sum(LOADERS)),
        ("--include=thread:early", 0),
        ("--include=thread:main|4", MAIN + UNNAMED),
        ("--exclude=thread:.", BEFORE),
        ("--include=loader", sum(LOADERS)),
        ("--include=function:loader", 0),
    ],
)
def test_filters_know_threads(trace: Path, option: str, held: int) -> None:
    done = jm_print("--format=folded", "--threshold=0", option, trace)
    assert done.status == 0, done.err
    assert sum(int(line.rpartition(" ")[2]) for line in done.out.splitlines()) == held


def test_json_has_the_numbers_and_the_names(trace: Path) -> None:
    data = json.loads(jm_print("--format=json", "--by=thread", trace).out)
    columns = data["frames"]["columns"]
    frames = [dict(zip(columns, row)) for row in data["frames"]["rows"]]
    threads = {frame["line"]: frame["name"] for frame in frames if frame["type"] == "t"}
    assert threads == {1: "main thread", 2: "thread loader", 3: "thread loader", 4: "thread 4"}
    assert {row["name"] for row in data["table"]} == {"main thread", "loader", "thread 4", NO_THREAD}


@pytest.mark.parametrize("options", [["--by=thread"], ["--include=thread:a"], ["--format=csv", "--by=thread"]])
def test_a_trace_without_threads_says_how_to_record_them(tmp_path: Path, options: List[str]) -> None:
    done = jm_print(*options, _trace(False).save(tmp_path))
    assert_one_line_error("jm_print", done, "jmassif.out.1: ", "record it with jmassif --threads=yes")


def test_a_suppression_is_of_functions_not_of_threads(trace: Path, tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text("leak:loader\n")
    done = jmassif("check", "--max=end.leak=1MB", f"--suppressions={known}", trace)
    assert done.status == 1 and "matched nothing" in done.err + done.out


def test_names_are_shown_safely(tmp_path: Path) -> None:
    trace = Trace(time_unit="ms", memory="unified")
    trace.manifest("option.threads", "yes")
    account = trace.account("heap", "app", ["f (a.c:1)", trace.thread(1, "\x1b[31mred\n")])
    trace.snapshot(1, "exit", {account: (5, 1)})
    for format_ in ("text", "csv", "folded", "json", "massif"):
        done = jm_print(f"--format={format_}", "--by=thread", trace.save(tmp_path))
        assert done.status == 0 and "\x1b" not in done.out and "red" in done.out, done.err


def test_a_difference_tells_threads_and_only_of_traces_that_have_them(trace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    done = jm_diff("--by=thread", "--format=json", trace, _trace().save(other))
    assert done.status == 0, done.err
    rows = {row["name"]: row["cells"][1]["host"] for row in json.loads(done.out)["views"][0]["rows"]}
    assert rows == {"main thread": MAIN, "loader": sum(LOADERS), "thread 4": UNNAMED, NO_THREAD: BEFORE}
    untold = _trace(False).save(other)
    done = jm_diff("--by=thread", trace, untold)
    assert_one_line_error("jm_diff", done, str(untold), "--threads=yes")


def test_an_anonymous_report_has_no_name_of_the_user_in_a_threads(tmp_path: Path) -> None:
    trace = Trace(time_unit="ms", memory="unified", user="gisela")
    trace.manifest("option.threads", "yes")
    account = trace.account("heap", "app", ["f (a.c:1)", trace.thread(1, "worker of gisela /home/gisela/x")])
    trace.snapshot(1, "exit", {account: (5, 1)})
    done = jm_print("--anonymous", "--by=thread", trace.save(tmp_path))
    assert done.status == 0 and "worker of" in done.out and "gisela" not in done.out


@pytest.mark.parametrize(
    "words", ["report --all", "report --by=python-line", "report --by=library", "export --format=json", "diff"]
)
def test_a_stack_that_is_a_thread_alone_is_memory_without_a_stack(tmp_path: Path, words: str) -> None:
    # Given memory that grows, of which nothing but the thread is known,
    trace = Trace(time_unit="ms", memory="unified")
    trace.manifest("option.threads", "yes")
    account = trace.account("heap", "app", [trace.thread(1, "main")])
    for time in range(20):
        trace.snapshot(time, "time", {account: (1000000 * (time + 1), time + 1)})
    trace.snapshot(20, "exit", {account: (20000000, 20)})
    trace.lines.append("Z 20 exit 0")
    path = trace.save(tmp_path)
    # when it is reported, then all has an answer.
    done = jmassif(*words.split(), *[path] * (1 + (words == "diff")))
    assert done.status == 0, done.err
