# SPDX-License-Identifier: GPL-2.0-or-later
"""Real programs that leak are named, with line and slope, in text, on the page and by jmassif check; those that only look like it are
not. The programs say themselves by how much each of their steps leaks.
"""

import re
from pathlib import Path
from typing import Any, List, Tuple

import pytest

from jmassif.analysis.leaks import Growth, find_growth
from jmassif.attribution.names import Names
from tests.harness import PYTHON, ROOT, Recording, need_module, record, recorded
from tests.reporter.page_tables import page_rows
from tests.tool.programs import check, print_report, program

STEPS = 120
TEETH = 24  # of ten steps each: of enough of them the lowest point is seen, whenever a busy machine takes its samples
LEAKS: List[Tuple[str, str]] = [
    *((leak, how) for leak in ("pool", "trickle", "sawtooth") for how in ("none", "mark", "region")),
    ("second-half", "none"),
    ("second-half", "mark"),
    ("pool", "worker"),
]
NO_LEAKS = ("cache", "once", "warm-up", "arena", "random-cache")
# Enough work in a step that the run is longer than its start.
EFFORT = 60000


CHUNKS = 24  # of a pool, a chunk each 16 steps: likewise


def steps_of(behaviour: str) -> int:
    return {"sawtooth": 10 * TEETH, "pool": 16 * CHUNKS}.get(behaviour, STEPS)


def growing(behaviour: str, how: str, steps: int = 0) -> Recording:
    compiled = program("growth.c", "-fno-builtin", f"-I{ROOT / 'jmassif'}", "-isystem/usr/include/valgrind")
    # By instructions: where the samples lie does not depend on what else the machine does.
    arguments = [behaviour, str(steps or steps_of(behaviour)), how, str(EFFORT)]
    return recorded([compiled, *arguments], ["--time-unit=i"])


def grown(recording: Recording, trace: Path) -> Growth:
    profile = recording.load(trace)
    return find_growth(profile, Names(profile))


def page_labels(recording: Recording, trace: Path) -> List[Any]:
    """What the page shows as still growing."""
    return [row["line"] for row in page_rows(recording.load(trace), "Growing")]


@pytest.mark.parametrize("behaviour, how", LEAKS)
def test_a_leak_is_named_with_its_slope(behaviour: str, how: str) -> None:
    recording, n_steps = growing(behaviour, how), steps_of(behaviour)
    trace = recording.traces[-1]
    slope = float(recording.stdout)
    told = grown(recording, trace)
    (line,) = told.lines
    function = behaviour.replace("-", "_")
    assert re.fullmatch(rf"chain \(growth.c:\d+\), from {function} \(growth.c:\d+\)", line.label)
    share = 0.5 if behaviour == "second-half" else 1.0
    # Up to a chunk of the pool, and to a whole tooth, may be there at the last moment, or not yet.
    tolerance = {"pool": 65536, "sawtooth": 10 * 30000}.get(behaviour, 0.1 * slope * n_steps)
    assert line.grown == pytest.approx(slope * n_steps * share, abs=tolerance)
    if how in ("mark", "region"):
        # The end that is looked at is a snapshot, which may lie before the last steps.
        assert told.step == "step" and 0.95 * n_steps <= told.n_steps <= n_steps
        # A tooth is ten steps long: where the samples cut it is chance.
        assert line.bytes_per_step == pytest.approx(slope, rel=0.4 if behaviour == "sawtooth" else 0.15)
    text = " ".join(print_report(trace).stdout.split())
    assert f"Leak: {line.label} keeps what it allocates: " in text and "--- Still growing" in text
    assert page_labels(recording, trace) == [line.label]
    checked = check(trace, "growth=0")
    assert checked.returncode == 1 and line.label in checked.stdout


def assert_silent(recording: Recording) -> None:
    """Text, page and jmassif check have nothing that grows, and do not say that it is unknown."""
    text = print_report(recording.trace).stdout
    assert "Still growing" not in text and "Leak:" not in text
    assert page_labels(recording, recording.trace) == []
    checked = check(recording.trace, "growth=0")
    assert checked.returncode == 0 and "unknown" not in checked.stdout


@pytest.mark.parametrize("how", ["none", "mark"])
@pytest.mark.parametrize("behaviour", NO_LEAKS)
def test_what_only_looks_like_a_leak_is_not_named(behaviour: str, how: str) -> None:
    recording = growing(behaviour, how)
    told = grown(recording, recording.trace)
    assert told.lines == [] and told.unknown == ""
    assert_silent(recording)


@pytest.mark.parametrize("behaviour", ["inputs", "cache", "warm-up", "once"])
@pytest.mark.parametrize("steps", [6, 9])
def test_in_a_few_steps_too(behaviour: str, steps: int) -> None:
    """Above all inputs that are larger in each step: nothing of the steps before is left."""
    assert_silent(growing(behaviour, "mark", steps))


@pytest.mark.parametrize("steps", [6, 9])
def test_a_few_steps_of_which_all_is_kept_are_a_leak(steps: int) -> None:
    recording = growing("images", "mark", steps)
    (line,) = grown(recording, recording.trace).lines
    assert "from images (growth.c:" in line.label
    assert line.grown == sum(range(2, steps + 1)) * 100000 and line.n_steps == steps - 1


def test_three_steps_are_too_few_to_tell() -> None:
    recording = growing("pool", "mark", 3)
    told = grown(recording, recording.trace)
    assert told.lines == [] and (told.unknown, told.n_found) == ("few-steps", 3)
    assert 'unknown: "step" came 3 times, 5 are needed' in check(recording.trace, "growth=0").stdout


SCRIPT = """
import jmassif, sys
kept = []
for step in range(60):
    sum(float(n) for n in range(6000))
    for n in range(800):
        kept.append("%d of %d" % (n, step))  # leak
    with jmassif.region("step"):
        pass
print(sys.getsizeof(kept) + sum(map(sys.getsizeof, kept)))
"""


def test_a_list_that_grows_is_named_by_its_line(tmp_path: Path) -> None:
    script = tmp_path / "listing.py"
    script.write_text(SCRIPT)
    env = {"PYTHONPATH": str(ROOT / "reporter"), "PYTHONMALLOC": "malloc", "PYTHONDONTWRITEBYTECODE": "1"}
    recording = record([PYTHON, script], ["--time-unit=i"], env=env)
    told = grown(recording, recording.trace)
    line = told.lines[0]
    assert line.label == "listing.py:7 (<module>)"
    # Python's own sizes of the list and its strings, over 60 steps; the first may be over before the first sample.
    assert line.grown == pytest.approx(int(recording.stdout), rel=0.1)
    assert line.bytes_per_step == pytest.approx(int(recording.stdout) / 60, rel=0.05)
    table = print_report(recording.trace, "--by=python-line", "--snapshot=end").stdout.splitlines()
    assert [row for row in table if row.startswith("listing.py:")][0].startswith("listing.py:7 ")


# A list that one statement makes, which takes the rest of the run, and one to which a loop appends.
BUILDS = {
    "text = '[' + ', '.join('{\"id\": %d, \"name\": \"row %d\"}' % (n, n) for n in range(20000)) + ']'\n"
    "import json\nrows = json.loads(text)\nprint(len(rows))\n": "rows.py:3 (<module>) grew by",
    "rows = []\nwhile len(rows) < 40000:\n    rows.append(bytes(100))\nprint(len(rows))\n": "Leak: rows.py:3 (<module>) keeps",
}


@pytest.mark.parametrize("text", BUILDS)
def test_a_list_that_one_statement_builds_to_the_end_is_no_known_leak(text: str, tmp_path: Path) -> None:
    script = tmp_path / "rows.py"
    script.write_text(text)
    recording = record([PYTHON, "-S", script], ["--time-unit=i"], env={"PYTHONMALLOC": "malloc"}, status=0)
    report = " ".join(print_report(recording.trace).stdout.split())
    is_one = "json" in text
    assert ("Leak: " in report, "leaks is unknown" in report) == (not is_one, is_one)
    assert BUILDS[text] in report
    assert check(recording.trace, "growth=0").returncode == (0 if is_one else 1)


KEEPS = Path(__file__).parent / "programs" / "keeps.py"


def recorded_script(behaviour: str) -> Recording:
    """With pages, as users have them: small objects lie in them. By instructions, whatever else the machine does."""
    env = {"PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
    return recorded([PYTHON, KEEPS, behaviour], ["--pages=yes", "--time-unit=i"], env=env)


@pytest.mark.parametrize("behaviour", ["copies", "listing"])
def test_what_a_script_keeps_of_each_step_is_named_without_a_word_from_it(behaviour: str) -> None:
    if behaviour == "copies":
        need_module("numpy")
    recording = recorded_script(behaviour)
    kept = int(recording.stdout)
    before, after = KEEPS.read_text().split(f"def {behaviour}()")
    number = (before + after.split("# leak")[0]).count("\n") + 1
    line = grown(recording, recording.trace).lines[0]
    assert (line.label, line.owner) == (f"keeps.py:{number} ({behaviour})", "data")
    # The first steps may be over before the first snapshot.
    assert 0.85 * kept <= line.grown <= 1.01 * kept
    text = " ".join(print_report(recording.trace).stdout.split())
    assert f"Leak: {line.label} keeps what it allocates: " in text and "--- Still growing" in text
    assert page_labels(recording, recording.trace)[0] == line.label
    checked = check(recording.trace, "growth=0")
    assert checked.returncode == 1 and line.label in checked.stdout


@pytest.mark.parametrize("behaviour", ["cache", "once", "warm_up", "arena", "buffer"])
def test_a_script_that_only_seems_to_leak_is_not_named(behaviour: str) -> None:
    assert_silent(recorded_script(behaviour))


FORKS = """
import os
mine = [bytearray(n << 20) for n in (6, 4)]
child = os.fork()
if not child:
    del mine[0]
    kept = [bytearray(3 << 20)]
    mine.append(bytearray(2 << 20))
    os._exit(0)
os.waitpid(child, 0)
"""


def test_a_forked_child_leaks_only_what_it_allocated_itself(tmp_path: Path) -> None:
    script = tmp_path / "forks.py"
    script.write_text(FORKS)
    recording = record([PYTHON, script], status=0)
    for trace in recording.traces:
        is_child = "forked-from" in recording.load(trace).manifest
        bound = (5 << 20, 5.5 * (1 << 20)) if is_child else (10 << 20, 10.5 * (1 << 20))
        checked = {limit: check(trace, f"end.leak={limit}B").returncode for limit in map(int, bound)}
        assert checked == {int(bound[0]): 1, int(bound[1]): 0}, print_report(trace).stdout


SHORT = """
import numpy
kept = []
def step():
    kept.append(bytearray(20000))
    return sum(k * k for k in range(2500))
for number in range(40):
    step()
"""


def test_a_loop_that_is_short_beside_its_imports_has_snapshots_enough_to_tell(tmp_path: Path) -> None:
    script = tmp_path / "short.py"
    script.write_text(SHORT)
    recording = record([PYTHON, script], ["--time-unit=i"])  # a busy machine does not stretch it
    assert recording.returncode == 0, recording.stderr
    (line,) = grown(recording, recording.trace).lines
    assert line.label == "short.py:5 (step)" and line.grown == pytest.approx(40 * 20000, rel=0.2)
