# SPDX-License-Identifier: GPL-2.0-or-later
"""Known leaks in a file, in LeakSanitizer's lines; and filters."""

import json
import time
from pathlib import Path
from typing import List

import pytest

from jmassif.attribution.filters import FilterError, kept, parse_filter, parse_suppressions, suppress
from tests.reporter.commands import jm_print, jmassif
from tests.reporter.traces import Trace

STACKS = (
    (["make (cache.c:5)", "open_cache (cache.c:9)", "main (a.c:1)"], 1000),
    (["grow (/usr/lib/libfoo.so.2)", "main (a.c:2)"], 20000),
    (["py load (/home/u/data.py:7)", "main (/usr/bin/python3)"], 300000),
)


def _trace() -> Trace:
    trace = Trace(time_unit="ms", memory="unified", command="./a.out")
    trace.group("yours", "app", "data")
    held = {trace.account("heap", "app", frames): (n_bytes, 1) for frames, n_bytes in STACKS}
    trace.snapshot(5, "time", held)
    trace.snapshot(10, "exit", {})
    trace.lines.append("Z 10 exit 0")
    return trace


@pytest.mark.parametrize(
    "text, suppressed",
    [
        ("leak:open_cache", [1]),
        ("leak:cache", [1]),  # anywhere in the name
        ("leak:^cache", [1]),  # the file's
        ("leak:^pen_cache", []),
        ("leak:open_c$", []),
        ("leak:^open*che$", [1]),
        ("leak:libfoo", [2]),
        ("leak:data.py", [3]),
        ("leak:load", [3]),
        ("leak:main", [1, 2, 3]),
        ("# a comment\n\nleak:grow\nleak:load\n", [2, 3]),
        ("leak:data.py:7$", [3]),
        ("leak:a*c", [1, 2]),
        ("leak:^a.c:1$", [1]),
        ("leak:*data*py*", [3]),
        ("leak:^grow*grow$", []),
    ],
)
def test_what_is_suppressed(text: str, suppressed: List[int]) -> None:
    profile = _trace().load()
    found = suppress(profile, parse_suppressions("known.supp", text))
    assert [account for account in (1, 2, 3) if account in found] == suppressed


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("leek:foo", "known.supp:1: expected leak:PATTERN"),
        ("leak:", "known.supp:1: leak: needs a pattern"),
        ("leak:***", "known.supp:1: leak: needs a pattern"),
        ("leak:a\n{\nname\n", "known.supp:2: expected leak:PATTERN"),
    ],
)
def test_what_is_no_suppression_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(FilterError) as error:
        parse_suppressions("known.supp", text)
    assert str(error.value).startswith(complaint) and "\n" not in str(error.value)
    (tmp_path / "known.supp").write_text(text)
    path = _trace().save(tmp_path)
    done = jmassif("check", "--max=end.leak=1GiB", f"--suppressions={tmp_path / 'known.supp'}", path)
    assert done.status == 2 and done.err.count("\n") == 1


def test_no_pattern_takes_long() -> None:
    trace = Trace(time_unit="ms", memory="unified")
    trace.account("heap", "app", [f"{'a' * 3000} (x.c:1)"] * 3)
    trace.snapshot(1, "time", {1: (1, 1)})
    profile = trace.load()
    text = "leak:^" + "*a" * 400 + "*b$\n"
    begin = time.process_time()
    assert not suppress(profile, parse_suppressions("x", text))
    assert time.process_time() - begin < 5


def test_budgets_and_report_leave_out_what_is_known_and_tell_what_matched_nothing(tmp_path: Path) -> None:
    path = _trace().save(tmp_path)
    file = tmp_path / "known.supp"
    file.write_text("leak:load\nleak:grow\nleak:no_such_function\n")
    without = jmassif("check", "--max=end.leak=2KiB", path)
    assert without.status == 1
    done = jmassif("check", "--max=end.leak=1000B", f"--suppressions={file}", path)
    assert done.status == 0
    assert done.err == f"jmassif check: {file}:3: leak:no_such_function matched nothing\n"
    assert jmassif("check", "--max=end.leak=999B", f"--suppressions={file}", path).status == 1
    told = json.loads(jm_print("--format=json", f"--suppressions={file}", path).out)["leaks"]
    assert told["bytes"] == 1000 and {"key": "suppressed", "bytes": 320000} in told["not_counted"]


# ---- filters -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "only, but, seen",
    [
        (["cache"], [], [1]),
        (["function:cache"], [], [1]),
        (["file:cache"], [], [1]),
        (["owner:cache"], [], []),
        (["owner:^app$"], [], [1, 2, 3]),
        (["file:libfoo|data"], [], [2, 3]),
        ([], ["grow"], [1, 3]),
        (["main"], ["cache", "load"], [2]),
        (["grow", "load"], [], [2, 3]),
    ],
)
def test_filters_choose_stacks(only: List[str], but: List[str], seen: List[int]) -> None:
    profile = _trace().load()
    found = kept(profile, [parse_filter(text) for text in only], [parse_filter(text) for text in but])
    assert [account for account in (1, 2, 3) if found[account]] == seen


def test_a_report_of_a_part_adds_up_and_says_what_it_is_a_part_of(tmp_path: Path) -> None:
    path = _trace().save(tmp_path)
    done = jm_print("--include=grow", "--snapshot=last", path)
    assert done.status == 0 and "Filtered by --include=grow: 19.5 KiB, 6 % of 313 KiB" in done.out
    assert "open_cache" not in done.out
    folded = jm_print("--format=folded", "--exclude=grow", "--snapshot=last", path)
    assert sorted(int(line.split()[-1]) for line in folded.out.splitlines()) == [1000, 300000]
    new = jm_print("--include=load", "--from=start", "--to=last", path)
    assert "313 KiB" not in new.out and "(0)" in new.out  # it was there from the first snapshot on


@pytest.mark.parametrize("pattern", ["(", "", "owner:", "x" * 1001, "a{9999999999}"])
def test_what_is_no_expression_is_one_line(tmp_path: Path, pattern: str) -> None:
    done = jm_print(f"--include={pattern}", _trace().save(tmp_path))
    assert done.status == 2 and done.err.count("\n") == 1 and "regular expression" in done.err
