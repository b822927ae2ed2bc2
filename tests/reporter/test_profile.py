# SPDX-License-Identifier: GPL-2.0-or-later
"""What the records add up to, and which of them contradict each other."""

import gc
import io
import weakref
from typing import Callable, List

import pytest

from jmassif.model.records import Counts, Mark, Region
from jmassif.reader.builder import load
from jmassif.reader.tokens import TraceError
from tests.records import apart
from tests.reporter.traces import Trace, documented_example, random_run, small_training_run


def test_the_documented_example_rebuilds_its_snapshots_and_peaks() -> None:
    profile = load(io.BytesIO(documented_example()))
    assert profile.composition(0) == {}
    assert profile.composition(1) == {3: (1048576, 1)}
    assert profile.peak_composition("total") == {1: (100, 1), 2: (20, 1), 3: (1048576, 1)}
    assert profile.peak_composition("host") == {1: (100, 1), 2: (20, 1)}
    assert profile.peak_composition("device") == {3: (1048576, 1)}
    assert [frame.function for frame in map(profile.frame, profile.stack(2))] == ["main"]
    assert profile.end and profile.end.reason == "exit" and profile.truncation is None


def test_a_snapshot_is_the_changes_up_to_it() -> None:
    trace = Trace()
    one, two = trace.account("heap", "app"), trace.account("device", "app")
    trace.snapshot(1, "time", {one: (10, 1)})
    trace.snapshot(2, "time", {two: (7, 2)})
    trace.snapshot(3, "time", {one: (0, 0)})
    profile = trace.load()
    assert [profile.composition(i) for i in range(3)] == [
        {one: (10, 1)},
        {one: (10, 1), two: (7, 2)},
        {two: (7, 2)},
    ]
    assert [(s.host, s.device) for s in profile.snapshots] == [(10, 0), (10, 7), (0, 7)]


def test_the_last_peak_of_a_kind_is_the_peak() -> None:
    trace = Trace()
    one = trace.account("heap", "app")
    trace.snapshot(5, "time", {one: (10, 1)}, {"total": (4, {one: (30, 3)})})
    trace.snapshot(9, "time", {one: (20, 2)}, {"total": (8, {one: (50, 5)})})
    profile = trace.load()
    assert profile.peaks["total"].time == 8 and profile.peaks["total"].host == 50
    assert profile.peak_composition("total") == {one: (50, 5)}


def test_counts_are_those_of_the_last_snapshot_that_has_them() -> None:
    trace = Trace()
    one, two = trace.account("heap", "app"), trace.account("heap", "lib")
    trace.snapshot(1, "time", {one: (1, 1, 100, 10, 3), two: (1, 1, 1, 1, 0)})
    trace.snapshot(2, "time", {one: (0, 0, 200, 20, 6)})
    profile = trace.load()
    assert profile.counts() == {one: Counts(200, 20, 6), two: Counts(1, 1, 0)}
    assert profile.lifetime().bytes.tolist()[one : two + 1] == [200, 1]


def test_an_unfinished_snapshot_is_dropped_as_a_whole() -> None:
    trace = Trace()
    one = trace.account("heap", "app")
    trace.snapshot(1, "time", {one: (10, 1)}, {"total": (1, {})})
    trace.snapshot(2, "time", {one: (70, 7)}, {"total": (2, {})})
    del trace.lines[-1]
    profile = trace.load()
    assert len(profile.snapshots) == 1 and profile.peaks["total"].host == 10
    assert profile.truncation == "snapshot 2 is unfinished and left out"


def test_a_trace_is_complete_with_the_programs_end_or_its_exec() -> None:
    trace = Trace()
    trace.snapshot(1, "time")
    assert not trace.load().is_complete
    trace.snapshot(2, "exec")
    assert trace.load().is_complete
    trace = Trace()
    trace.lines.append("Z 1 signal 9")
    assert trace.load().is_complete


def test_later_values_replace_earlier_ones() -> None:
    trace = Trace(python="3.6")
    trace.manifest("python", "3.8")
    name = trace.string("cudaMalloc")
    trace.lines += [f"e {name} 2 1", f"e {name} 2 5", f"e {name} 1 1", "k odd 1", "k odd 4"]
    trace.lines += [f"X {name} 1 2 heap 3 4", f"X {name} 5 6 heap 7 8"]
    profile = trace.load()
    assert profile.manifest["python"] == "3.8"
    assert profile.failures == {("cudaMalloc", 2): 5, ("cudaMalloc", 1): 1}
    assert profile.counters == {"odd": 4}
    assert profile.scope_sums["cudaMalloc"].calls == 5


def test_regions_nest_by_thread() -> None:
    trace = Trace()
    trace.region_begin(1, "outer")
    trace.region_begin(2, "inner")
    trace.region_begin(3, "other", thread=2)
    trace.totals(3, 10, 0)
    trace.region_end(4, "inner")
    trace.region_end(5, "outer")
    trace.region_end(6, "never begun", thread=2)
    assert trace.load().regions == [
        Region(1, 5, 1, 0, "outer", 0, 1),
        Region(2, 4, 1, 1, "inner", 0, 1),
        Region(3, None, 2, 0, "other", 0, 0),
    ]


def test_blocks_objects_and_marks_are_kept() -> None:
    trace = Trace()
    one = trace.account("device", "app")
    trace.lines += [f"+ 1 ff 4096 {one}", f"- 2 ff {one}", "l 3 131072"]
    trace.mark(4, "epoch")
    trace.lines += [
        f"L 5 4000 512 {trace.string('libc.so.6')} /lib/libc.so.6",
        "L 6 8000 1 0 /lib/b.so",
        "U 7 4000",
        "U 8 9000",
    ]
    profile = trace.load()
    assert list(profile.blocks) == [1, 0xFF, 4096, one, 2, 0xFF, 0, one] and list(profile.frees) == [1]
    assert profile.block_thresholds == [(3, 131072)] and profile.marks == [Mark(4, "epoch")]
    assert [(o.soname, o.begin, o.end) for o in profile.objects] == [("libc.so.6", 5, 7), ("", 6, None)]


def test_tensors_have_roles_and_nothing_else_does() -> None:
    trace = Trace()
    one, two = trace.account("heap", "tensor", role="gradient"), trace.account("heap", "tensor")
    other = trace.account("heap", "cache")
    profile = trace.load()
    assert [profile.role(account) for account in (one, two, other)] == ["gradient", "other", None]


@pytest.mark.parametrize(
    "record, says",
    [
        ("r 2 gradient", "account 2 has a role, but its owner is cache"),
        ("r 3 gradient", "account 3 is not defined"),
        ("r 1 input", "the role of account 1 is defined twice"),
    ],
)
def test_a_role_that_cannot_be_is_refused(record: str, says: str) -> None:
    trace = Trace()
    trace.account("heap", "tensor", role="gradient")
    trace.account("heap", "cache")
    trace.lines.append(record)
    with pytest.raises(TraceError, match=says):
        trace.load()


def test_numbers_of_the_manifest_are_numbers_or_missing() -> None:
    profile = Trace(cpus="4", pid="²", ppid="-1", start="9" * 5000).load()
    assert [profile.number(key) for key in ("cpus", "pid", "ppid", "start", "none")] == [4, None, None, None, None]


def test_an_option_that_is_no_number_is_as_if_missing() -> None:
    profile = Trace(**{"option.threshold": "lots", "option.depth": "7", "option.x": "nan"}).load()
    assert profile.option("threshold", 1.5) == 1.5
    assert profile.option("depth", 1.5) == 7
    assert profile.option("x", 1.5) == 1.5
    assert profile.option("none", 1.5) == 1.5


def _replace(old: str, new: str) -> Callable[[List[str]], None]:
    def change(lines: List[str]) -> None:
        assert old in lines
        lines[lines.index(old)] = new

    return change


@pytest.mark.parametrize("is_apart", [False, True])
def test_a_record_has_one_row_or_several(is_apart: bool) -> None:
    trace = Trace()
    main, f, g = (trace.frame(text) for text in ("main (a.c:1)", "f (a.c:2)", "g (a.c:3)"))
    records = [f"n {main} {f} -1 {g} -2 {g}", "K 1 heap app", "a 4 1 -1 1 -3 1", "S 1 5 time 31 0"]
    records += ["c 1 10 1 10 1 0 3 20 1 20 1 0", "P total 5 33 0", "d 2 1 1 3 22 1", "E 1"]
    trace.lines += apart("\n".join(records)).split("\n") if is_apart else records
    with pytest.raises(TraceError, match="snapshot 1 has 31 host bytes, but its accounts hold 30"):
        trace.load()
    trace.lines = [line.replace("31", "30") for line in trace.lines]
    profile = trace.load()
    assert [list(profile.stack(node)) for node in range(1, 5)] == [[main], [f, main], [g, f, main], [g, f, main]]
    assert [account.node for account in profile.accounts] == [0, 4, 3, 0]
    assert profile.composition(0) == {1: (10, 1), 3: (20, 1)}
    assert profile.peak_composition("total") == {1: (10, 1), 2: (1, 1), 3: (22, 1)}


@pytest.mark.parametrize(
    "change, says",
    [
        (_replace("s 3 a.c", "s 9 a.c"), "uses a string that is not defined"),
        (_replace("s 2 /home/u/a.out", "s 1 /home/u/a.out"), "string 1 is defined twice"),
        (_replace("f 1 n 1 2 3 5 4005d0", "f 1 z 1 2 3 5 4005d0"), "not a type of frame"),
        (_replace("f 1 n 1 2 3 5 4005d0", f"f {2**32} n 1 2 3 5 4005d0"), "is beyond 32 bits"),
        (_replace("n -2 2", "n -3 2"), "a node from 2 on has a caller before the first node"),
        (_replace("n -2 2", f"n -{2**63} 2"), "a node from 2 on has a caller before the first node"),
        (_replace("n -2 2", "n -2 -2 2"), "node 2 has two callers"),
        (_replace("n -2 2", "n 2 -2"), "node 3 has a caller and no frame"),
        (_replace("n -2 2", "n -2"), "node 2 has a caller and no frame"),
        (_replace("n 1", "n 9"), "frame 9 is not defined"),
        (_replace("n 1", "n 0"), "frame 0 is not defined"),
        (_replace("a 1 1", "a 3 1"), "node 3 is not defined"),
        (_replace("a 1 1", "a -1 1"), "an account's node lies before the first node"),
        (_replace("a 1 1", f"a {2**63 - 1} 1"), "an account's node"),
        (_replace("a 1 1", "a 1 4"), "an account's type is not defined"),
        (_replace("a 1 1", "a 1 -1"), "an account's type is not defined"),
        (_replace("K 1 heap app", "K 1 heapish app"), "not a kind of memory"),
        (_replace("K 1 heap app", "K 2 heap app"), "type 2 of accounts does not follow the last one"),
        (_replace("g app yours", "g app mine"), "not a group"),
        (_replace("+ 3 7f0000000 1048576 3", "+ 3 7f0000000 1048576 4"), "account 4 is not defined"),
        (_replace("t 3 120 1048576 1048696", "c 1 1 1 1 1 1"), "outside of its place"),
        (_replace("t 3 120 1048576 1048696", "d 1 1 1"), "outside of one"),
        (_replace("t 3 120 1048576 1048696", "E 1"), "outside of one"),
        (_replace("t 3 120 1048576 1048696", "t 10 0 0 0"), "time goes back"),
        (_replace("t 3 120 1048576 1048696", "S 2 3 time 0 0"), "begins inside another one"),
        (_replace("t 3 120 1048576 1048696", "x 1 1 1 0 1 0 1"), "scope 1 is written after"),
        (_replace("t 3 120 1048576 1048696", "x 1 0 1 2 1 0 1"), "ends before it begins"),
        (_replace("t 3 120 1048576 1048696", "x 1 0 1 0 1 0 99"), "string 99 is not defined"),
        (_replace("S 2 9 exit 0 1048576", "S 1 9 exit 0 1048576"), "snapshot 1 is defined twice"),
        (_replace("S 2 9 exit 0 1048576", "S 2 9 whim 0 1048576"), "not a reason"),
        (_replace("S 2 9 exit 0 1048576", "S 2 9 exit 1 1048576"), "has 1 host bytes, but its accounts hold 0"),
        (_replace("c 1 0 0 100 1 0", "c 9 0 0 100 1 0"), "account 9 is not defined"),
        (_replace("c 3 1048576 1 1048576 1 0", "c 3 1048575 1 1048576 1 0"), "has 1048576 device bytes"),
        (_replace("c 3 1048576 1 1048576 1 0", "d 3 1048576 1"), "stands before the peak"),
        (_replace("d 2 20 1", "c 2 20 1 0 0 0"), "outside of its place"),
        (_replace("d 3 0 0", "d 3 1 0"), "the host peak has 0 device bytes"),
        (_replace("P device 9 0 1048576", "P device 10 0 1048576"), "peak lies after its snapshot"),
        (_replace("P device 9 0 1048576", "P other 9 0 1048576"), "not a peak"),
        (_replace("E 2", "E 3"), "snapshot 2 is closed as 3"),
        (_replace("E 2", "Z 9 exit 0"), "ends inside a snapshot"),
        (_replace("Z 9 exit 0", "Z 9 boredom 0"), "not a way to end"),
        (_replace("t 3 120 1048576 1048696", f"t 3 {2**63} {2**63} 0"), "a sum beyond 64 bits"),
    ],
)
def test_a_contradiction_is_refused(change: Callable[[List[str]], None], says: str) -> None:
    lines = apart(documented_example().decode()).splitlines()
    change(lines)
    with pytest.raises(TraceError) as caught:
        load(io.BytesIO(("\n".join(lines) + "\n").encode()))
    assert says in str(caught.value) and str(caught.value).startswith("line ")


def test_a_byte_that_was_changed_is_found() -> None:
    """But in the last record, which no checksum follows."""
    content = documented_example()
    assert load(io.BytesIO(content)).end
    for at in range(content.rindex(b"#")):
        changed = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        with pytest.raises(TraceError) as caught:
            load(io.BytesIO(changed))
        assert "\n" not in str(caught.value)


def test_a_wrong_checksum_is_named_by_its_line() -> None:
    changed = documented_example().replace(b"m pid 4711", b"m pid 4712")
    with pytest.raises(TraceError, match="^line 8: the lines before it do not have this checksum: the file is damaged"):
        load(io.BytesIO(changed))


def test_a_trace_cut_at_any_byte_is_read_up_to_there_or_refused_as_empty() -> None:
    content = small_training_run().bytes()
    first_line = content.index(b"\n") + 1
    n_snapshots = 0
    for length in range(len(content) + 1):
        stream = io.BytesIO(content[:length])
        if length < first_line:
            with pytest.raises(TraceError, match="is empty|cut off inside its first line"):
                load(stream)
            continue
        profile = load(stream)
        assert len(profile.snapshots) >= n_snapshots
        n_snapshots = len(profile.snapshots)
        is_at_line_end = content[length - 1 : length] == b"\n"
        assert is_at_line_end or profile.truncation
    assert n_snapshots == 3


@pytest.mark.parametrize("n_lost", [0, 1, 200])
def test_a_profile_is_freed_without_the_garbage_collector(n_lost: int) -> None:
    """The commands switch it off, and read traces by the dozen."""
    whole = random_run(1).bytes()
    gc.disable()
    try:
        profile = load(io.BytesIO(whole[: len(whole) - n_lost]))
        assert (profile.truncation is None) == (n_lost == 0)
        freed = weakref.ref(profile)
        del profile
        assert freed() is None
    finally:
        gc.enable()
