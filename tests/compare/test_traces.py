# SPDX-License-Identifier: GPL-2.0-or-later
"""tests/compare/traces leaves out what differs between two runs of one build, and nothing else."""

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).with_name("traces")

TRACE = """\
jmassif-trace 4
m process 4711.99
m pid 4711
m command ./a.out
m option.pages no
m start 2026-11-21T15:02:12Z
s 1 /home/me/build/jmassif/vgpreload.so
K 1 heap app
a 0 1
S 1 0 start 0 0
y 0 mem-free 1000
E 1
t 5 100 0 100
S 2 9 exit 100 0
c 1 100 1 100 1 0
y 9 mem-free 999
P total 5 100 0
E 2
"""

NORMALISED = """\
jmassif-trace 4
m process 1.1
m pid 1
m command ./a.out
m option.pages no
m start 1970-01-01T00:00:00Z
s 1 BUILD/jmassif/vgpreload.so
K 1 heap app
a 0 1
S 1 0 start 0 0
y 0 mem-free 0
E 1
t 5 100 0 100
S 2 9 exit 100 0
c 1 100 1 100 1 0
P total 5 100 0
E 2
"""


@pytest.fixture(scope="module", name="traces")
def fixture_traces() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("compare_traces", str(SCRIPT))
    spec = importlib.util.spec_from_loader("compare_traces", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_what_differs_from_run_to_run_is_replaced(traces: ModuleType) -> None:
    assert traces.normalise(TRACE, ["/home/me/build"]) == NORMALISED


def test_of_sampled_pages_nothing_stays_but_that_they_are_there(traces: ModuleType) -> None:
    with_pages = TRACE.replace("pages no", "pages yes").replace("a 0 1\n", "a 0 1\nK 2 file app\na 0 2\n")
    with_pages = with_pages.replace("E 2", "c 2 4096 1 4096 1 0\nv 2 8192 4096 0\nP total 5 9 0\nd 2 1 1\nE 2")
    kept = traces.normalise(with_pages, ["/home/me/build"])
    expected = NORMALISED.replace("pages no", "pages yes").replace("a 0 1\n", "a 0 1\nK 2 file app\na 0 2\n")
    for sampled in ("t 5 100 0 100\n", "P total 5 100 0\n"):
        expected = expected.replace(sampled, "")
    assert kept == expected.replace("S 2 9 exit 100 0", "S 2 9 exit 0 0")


@pytest.mark.parametrize("record", ["K 1 heap cudnn", "a 1 1", "c 1 100 1 101 1 0", "t 6 100 0 100", "P total 5 101 0"])
def test_another_record_is_a_difference(traces: ModuleType, record: str) -> None:
    before = next(line for line in TRACE.splitlines() if line[0] == record[0])
    other = traces.normalise(TRACE.replace(before, record), ["/home/me/build"])
    number = NORMALISED.splitlines().index(before) + 1
    assert traces.first_difference(NORMALISED, other) == f"line {number}\n    old: {before}\n    new: {record}"


def test_the_order_of_accounts_does_not_count_where_threads_take_turns(traces: ModuleType) -> None:
    frames = "s 1 main\ns 2 work\nf 1 n 1 0 0 5 10\nf 2 n 2 0 0 7 20\n"
    one = frames + "n 1 2\nK 1 heap app\na 1 1 1 1\nc 1 8 1 8 1 0 2 9 1 9 1 0\nP total 3 17 0\n"
    two = frames + "n 1 2\nK 1 heap app\na 2 1 -1 1\nc 1 9 1 9 1 4\nc 2 8 1 8 1 0\nP total 4 17 0\n"
    more = two.replace("c 1 9 1", "c 1 10 1")
    assert traces.in_any_order(one) == traces.in_any_order(two)
    assert traces.in_any_order(one) != traces.in_any_order(more)


def test_only_the_recorders_own_place_is_replaced(traces: ModuleType) -> None:
    text = "s 1 /b/jmassif/x.so\ns 2 /b/compare/program\ns 3 /b-new/jmassif/x.so\n"
    assert traces.normalise(text, ["/b"]) == text.replace("/b/jmassif/", "BUILD/jmassif/")
