# SPDX-License-Identifier: GPL-2.0-or-later
"""The command jm_diff: which traces make which column, and what is written of the difference."""

import json
import re
from pathlib import Path
from typing import List, Tuple

import pytest

from jmassif.analysis.compare import VIEWS
from jmassif.units import size
from tests.reporter.commands import Done, assert_one_line_error, jm_diff
from tests.reporter.test_difference import called, held
from tests.reporter.traces import Trace

MIB = 1 << 20


def diff(*arguments: object) -> Done:
    done = jm_diff(*arguments)
    assert all(line.isprintable() for line in done.out.splitlines())
    return done


def refused(*arguments: object) -> str:
    done = diff(*arguments)
    assert_one_line_error("jm_diff", done)
    return done.err


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return held(40 * MIB, "8.2.1", 100 * MIB, l4t="32.7.1", board="Nano").save(tmp_path, "old.jmassif")


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return held(70 * MIB, "8.6.0", 100 * MIB, l4t="35.4.1", board="Nano").save(tmp_path, "new.jmassif")


# ---- columns -----------------------------------------------------------------------------------


def columns(*arguments: object) -> List[Tuple[str, List[str]]]:
    """Labels, and the names of files."""
    done = diff("--format=json", "--by=owner", *arguments)
    assert done.status == 0, done.err
    found = json.loads(done.out)["columns"]
    return [(column["label"], [Path(run["file"]).name for run in column["runs"]]) for column in found]


def test_two_traces_are_old_and_new(old: Path, new: Path) -> None:
    assert columns(old, new) == [("old", ["old.jmassif"]), ("new", ["new.jmassif"])]


def test_more_traces_are_columns_in_their_order(old: Path, new: Path) -> None:
    assert [label for label, _ in columns(old, new, old)] == ["run 1", "run 2", "run 3"]


def test_vs_stands_between_repeated_runs(old: Path, new: Path) -> None:
    assert columns(old, old, "--vs", new) == [("old", ["old.jmassif"] * 2), ("new", ["new.jmassif"])]
    assert columns(old, "--vs", new, "--vs", old, new)[2] == ("run 3", ["old.jmassif", "new.jmassif"])


def test_a_directory_is_repeated_runs(tmp_path: Path, new: Path) -> None:
    for number in (1, 2, 10):
        held(number, "8", 5).save(tmp_path / "runs", f"jmassif.out.{number}")
    (tmp_path / "runs" / "README").write_text("nothing of ours")
    (tmp_path / "runs" / "more").mkdir()
    assert columns(tmp_path / "runs", new)[0][1] == ["jmassif.out.1", "jmassif.out.2", "jmassif.out.10"]


def of_process(pid: int, parent: int, start: int, host: str = "board") -> Trace:
    manifest = {"pid": str(pid), "ppid": str(parent), "start_unix_ms": str(start), "host": host}
    return held(pid, "8", 5, python="3.8", **manifest)  # for 10 ms


@pytest.mark.parametrize("options", [[], ["--group-by=python"]])
def test_child_processes_are_no_runs(tmp_path: Path, options: List[str]) -> None:
    runs, other = tmp_path / "runs", held(1, "8", 5).save(tmp_path, "other")
    of_process(10, 1, 1000).save(runs, "1")
    of_process(11, 10, 1005).save(runs, "2")
    of_process(12, 11, 1009).save(runs, "3")
    of_process(13, 10, 1011).save(runs, "4")  # another 10, which was not recorded
    of_process(14, 10, 1005, "another board").save(runs, "5")
    of_process(1, 0, 5).save(runs, "6")  # as in a container
    done = diff("--format=json", *options, *(sorted(runs.iterdir()) if options else [runs]), other)
    assert done.err == "jm_diff: left out 2 traces of child processes\n"
    files = [Path(run["file"]).name for column in json.loads(done.out)["columns"] for run in column["runs"]]
    assert sorted(files) == ["1", "4", "5", "6", "other"]


def test_runs_are_grouped_by_jetpack(tmp_path: Path, old: Path, new: Path) -> None:
    newer = held(1, "8", 1, l4t="36.4.3").save(tmp_path, "newer")
    bare = held(1, "8", 1).save(tmp_path, "bare")
    assert columns("--group-by=jetpack", newer, old, bare, new, old) == [
        ("unknown", ["bare"]),
        ("JetPack 4.6.1", ["old.jmassif"] * 2),
        ("JetPack 5.1.2", ["new.jmassif"]),
        ("JetPack 6.2", ["newer"]),
    ]


def test_runs_are_grouped_by_any_key_of_the_manifest(tmp_path: Path, old: Path) -> None:
    odd = held(1, "8", 1, l4t="32.7.1")
    odd.lines.insert(1, "m env.CUDA_MODULE_LOADING LAZY")
    path = odd.save(tmp_path, "odd")
    assert columns("--group-by=env.CUDA_MODULE_LOADING", path, old) == [
        ("unknown", ["old.jmassif"]),
        ("LAZY", ["odd"]),
    ]
    assert columns("--group-by=l4t", path, old) == [("L4T 32.7.1", ["odd", "old.jmassif"])]


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["{old}"], "diff needs two traces, or --group-by"),
        (["--group-by=jetpak", "{old}", "{new}"], 'no trace has the key "jetpak": try jetpack'),
        (["--group-by=jetpack", "{old}", "--vs", "{new}"], "leave one out"),
        (["{old}", "{new}", "--at=epoch 7"], 'old.jmassif: no snapshot "epoch 7"'),
        (["--by=scope", "--at=end", "{old}", "{new}"], "--at is not supported by --by=scope"),
        (["{old}", "{dir}/none"], "cannot be read"),
        (["{old}", "{dir}/empty"], "has no traces in it"),
        (["{old}", "{new}", "-o", "{new}"], "is the input too"),
        (["{old}", "{new}", "--by=colour"], "jm_diff --help"),
        (["{old}", "{new}", "--by=owner,"], "jm_diff --help"),
        (["{old}", "{new}", "--min=lots"], "is not a size"),
        (["{old}", "{new}", "--format=pdf"], "jm_diff --help"),
        ([], "jm_diff --help"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    old: Path, new: Path, tmp_path: Path, arguments: List[str], says: str
) -> None:
    (tmp_path / "empty").mkdir()
    assert says in refused(*[argument.format(old=old, new=new, dir=tmp_path) for argument in arguments])


def test_a_truncated_trace_is_compared_and_said_to_be_one(tmp_path: Path, old: Path) -> None:
    cut = held(1, "8", 1)
    del cut.lines[-1]
    path = cut.save(tmp_path, "cut")
    done = diff(old, path)
    assert done.status == 0 and f"new: {path} (truncated)\n" in re.sub(" +", " ", done.out)
    assert done.err.startswith(f"jm_diff: {path}: truncated: no end record") and done.err.count("\n") == 1


# ---- text and Markdown ---------------------------------------------------------------------------


def test_text(old: Path, new: Path) -> None:
    out = diff("--by=library", old, new).out
    assert out.startswith("new holds 30.0 MiB more than old at the peak: 140 MiB → 170 MiB, +21 %.")
    assert re.sub(" +", " ", out.partition("\n\n")[2]).splitlines() == [
        f"old: {old}",
        f"new: {new}",
        "JetPack: 4.6.1 → 5.1.2",
        "L4T: 32.7.1 → 35.4.1",
        "",
        "--- From the program to its allocator's, at the peak, in MiB -------------------",
        " old new change",
        "the program 140 170 +30",
        "- libraries 40 70 +30",
        "= its allocator's count of memory in use 100 100 0",
        "",
        "--- By calling library, at the peak --------------------------------------------",
        " old new change % host change device change blocks",
        "libcudnn.so 40.0 MiB 70.0 MiB +30.0 MiB +75 % +30.0 MiB 0",
        "1 other, each under 174 KiB 100 MiB 100 MiB 0 0 0",
        "total 140 MiB 170 MiB +30.0 MiB +21 % +30.0 MiB 0",
    ]


@pytest.mark.parametrize("function, row", [("step", ["10.0 MiB", "30.0 MiB"]), ("other", ["10.0 MiB", "-"])])
def test_lines_of_a_renamed_script_are_compared(tmp_path: Path, function: str, row: List[str]) -> None:
    for name, n_mib, inner in (("train.py", 10, "step"), ("train2.py", 30, function)):
        trace = Trace(command=f"/usr/bin/python3 {name} --all")
        account = trace.account("heap", "data", [f"py {inner} (/a/{name}:8)"])
        trace.snapshot(1, "exit", {account: (n_mib << 20, 1)}, {"total": (1, {})})
        trace.lines.append("Z 1 exit 0")
        trace.save(tmp_path, name)
    done = jm_diff("--by=python-line", tmp_path / "train.py", tmp_path / "train2.py")
    line = next(line for line in done.out.splitlines() if line.lstrip().startswith("train.py:8"))
    assert [word for word in row if word in line] == row, done.out
    is_renamed = "train2.py is compared as train.py" in done.err
    assert is_renamed == (function == "step") and len(done.err.splitlines()) == 1


def test_pools_of_a_discrete_gpu_are_not_added_up(tmp_path: Path) -> None:
    traces = [held(n, "8", 77000, "discrete").save(tmp_path, str(n)) for n in (1000, 3000)]
    out = diff("--by=owner", *traces).out
    assert size(78000) not in out and size(80000) not in out and size(77000) in out
    assert "By owner, at the peak: host memory" in out and "By owner, at the peak: device memory" in out


def test_calls_are_shown_beneath_those_they_were_made_in(tmp_path: Path) -> None:
    one = called("x 1 2 1 0 1 0 'cuModuleLoadData' heap 10 1", "x 2 0 1 0 1 0 'cudnnCreate' heap 50 2").save(
        tmp_path, "1"
    )
    two = called("x 1 0 1 0 1 0 'cudnnCreate' heap 90 2", "X 'cuInit' 7 7 heap 70 7").save(tmp_path, "2")
    out = diff("--by=scope", "--min=0", one, two).out
    lines = [re.split(r" {2,}", line.rstrip()) for line in out.splitlines()]
    assert ["cuInit: further calls, not counted", "0 B", "70 B", "+70 B", "new", "+7"] in lines
    assert ["cudnnCreate", "50 B", "90 B", "+40 B", "+80 %"] in lines
    assert ["", "cuModuleLoadData", "10 B", "0 B", "-10 B", "gone", "-1"] in lines
    assert ["total", "50 B", "90 B", "+40 B", "+80 %"] in lines


def test_repeats_show_which_changes_are_within_noise(tmp_path: Path) -> None:
    for number, n_bytes in enumerate((100, 130, 110)):
        held(n_bytes, "8", 50).save(tmp_path / "old", str(number))
        held(n_bytes + 100, "8", 50).save(tmp_path / "new", str(number))
    out = diff("--by=owner", "--min=0", tmp_path / "old", tmp_path / "new").out
    assert re.search(r"^cudnn +110 B +210 B +\+100 B +\+91 % +\+100 B +0$", out, re.MULTILINE)
    assert re.search(r"^tensor +50 B +50 B +0 +within +0 +0$", out, re.MULTILINE)
    assert "medians" in out


def test_long_values_of_facts_show_where_they_differ(tmp_path: Path) -> None:
    start = "python3 /home/somebody/a/very/long/way/to/the/training/script/train.py --epochs=10 --batch="
    paths = [held(1, "8", 1, command=f"{start}{n}").save(tmp_path, str(n)) for n in (16, 32)]
    assert "Command: … --batch=16 → … --batch=32\n" in diff(*paths).out


# By thread takes traces that tell of threads: test_threads.py.
OF_ANY_TRACE = [view for view in VIEWS if view != "thread"]

HOSTILE = [
    "<script>alert(1)</script>",
    "a | b",
    "[click](javascript:alert(1))",
    "**bold** `code` $x$ @everyone #12 ![i](http://x)",
    "\x1b[2J\r\n\t\x00\x7f",
    "\u202etxt.exe\u200b",
    "\udcff\udcfe",
    "&lt;b&gt;",
    "=cmd|'/c calc'!A1",
    "z" * 100000,
]


def hostile(tmp_path: Path, name: str, n_bytes: int) -> Path:
    trace = Trace(time_unit="ms", memory="unified", command=HOSTILE[0] + name, board=HOSTILE[4] + name)
    live = {}
    for text in HOSTILE:
        file, function = trace.string(f"/tmp/{text}"), trace.string(text)
        frame = trace.frame_of_fields(text, f"n {function} {file} {file} 3 {function:x}")
        account = trace.account("heap", "app", [frame])
        live[account] = (n_bytes, 1)
        trace.lines.append(f"x {account} 0 1 0 1 0 {function} heap {n_bytes} 1")
    trace.snapshot(0, "exit", live)
    trace.lines.append("Z 0 exit 0")
    return trace.save(tmp_path, name)


def test_hostile_names_are_text_in_every_format(tmp_path: Path) -> None:
    sides = hostile(tmp_path, "a", 1), hostile(tmp_path, "b", 2)
    views = ",".join(OF_ANY_TRACE)
    text = diff(f"--by={views}", "--min=0", *sides).out
    assert max(map(len, text.splitlines())) < 400

    markdown = diff(f"--by={views}", "--min=0", "--format=markdown", *sides).out
    for line in markdown.splitlines():
        assert not re.search(r"<|\]\(|`|@|!\[|\$", line), line
        if line.startswith("|"):
            cells = line.count("|")
            assert cells in (3, 5, 7)  # the facts; the ladder; the tables

    for key in ("command", "board"):
        for form in ("text", "markdown"):
            assert diff("--group-by", key, f"--format={form}", *sides).status == 0

    exact = diff(f"--by={views}", "--format=json", *sides).out
    assert exact.encode("ascii") and len(json.loads(exact)["views"]) == len(OF_ANY_TRACE)


def test_markdown_tables(old: Path, new: Path) -> None:
    out = diff("--by=owner", "--format=markdown", old, new).out
    assert "| JetPack | 4.6.1 → 5.1.2 |" in re.sub(r"&#(\d+);", lambda m: chr(int(m.group(1))), out)
    assert "| cudnn | 40.0 MiB | 70.0 MiB | +30.0 MiB | +75 % | +30.0 MiB | 0 |  |" in out
    assert "| **total** | **140 MiB** | **170 MiB** |" in out


# ---- JSON --------------------------------------------------------------------------------------


def test_json_has_exact_figures(old: Path, new: Path) -> None:
    found = json.loads(diff("--format=json", "--by=owner,scope", old, new).out)
    assert (found["format"], found["version"], found["moment"], found["min_bytes"]) == (
        "jmassif-diff",
        1,
        "the peak",
        0,
    )
    assert {"key": "jetpack", "label": "JetPack", "values": ["4.6.1", "5.1.2"]} in found["facts"]
    owners, calls = found["views"]
    assert (owners["by"], owners["number_is"], calls["by"], calls["number_is"]) == ("owner", "blocks", "scope", "calls")
    assert owners["rows"][0] == {
        "name": "cudnn",
        "inside": [],
        "in_total": True,
        "cells": [
            {
                "host": 40 * MIB,
                "device": 0,
                "number": 1,
                "change": {"host": 0, "device": 0, "number": 0},
                "beyond_noise": None,
            },
            {
                "host": 70 * MIB,
                "device": 0,
                "number": 1,
                "change": {"host": 30 * MIB, "device": 0, "number": 0},
                "beyond_noise": None,
            },
        ],
    }
    assert owners["other"] is None and owners["rounding"] is None
    assert [cell["host"] for cell in owners["total"]["cells"]] == [40 * MIB, 70 * MIB]
