# SPDX-License-Identifier: GPL-2.0-or-later
"""A trace is followed while a recorder writes it: what is known then is what a reader of the whole file would know.

The file is written as a recorder writes: records are appended, and between two of them a tail may stand at the end, which the
next ones replace. The moments at which the follower looks are drawn from a fixed seed.
"""

import gzip
import os
import random
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from jmassif.live.run import LiveRun
from jmassif.model.records import LiveBytesByAccount, side_of
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from jmassif.reader.follow import settled_bytes
from jmassif.reader.tokens import TraceError
from tests.records import apart_bytes
from tests.reporter.traces import ROOT, Trace

SMALL = apart_bytes(gzip.decompress((ROOT / "tests/data/small.jmassif.gz").read_bytes()))


def owners_of(profile: Profile, composition: LiveBytesByAccount) -> Dict[str, Tuple[int, int]]:
    """By a walk through all accounts."""
    sums: Dict[str, List[int]] = {}
    for account, (n_bytes, _) in composition.items():
        side = side_of(profile.accounts[account].kind)
        if side and n_bytes:
            sums.setdefault(profile.accounts[account].owner, [0, 0])[side == "device"] += n_bytes
    return {owner: (host, device) for owner, (host, device) in sums.items()}


def known(run: LiveRun) -> Dict[str, Tuple[int, int]]:
    return {row.name: (row.usage.host_bytes, row.usage.device_bytes) for row in run.sums.owners()}


def read_all(run: LiveRun) -> None:
    run.poll()
    while not run.follower.is_all:
        run.poll()


def pieces(content: bytes) -> List[bytes]:
    """Snapshot by snapshot, each with what comes before it."""
    found, begin = [], 0
    while True:
        closing = content.find(b"\nE ", begin)
        end = content.find(b"\n", closing + 1) + 1 if closing >= 0 else len(content)
        found.append(content[begin:end])
        if closing < 0:
            return found
        begin = end


def tail_of(piece: bytes) -> bytes:
    """A tail as it may stand in the place of a piece: totals, and a group of balances alone, each group as the piece has it."""
    lines = piece.splitlines(keepends=True)
    first = max(at for at, line in enumerate(lines) if line.startswith(b"S "))
    _, id_, time, _, host, device = lines[first].split()
    opening = b"S %s %s time %s %s\n" % (id_, time, host, device)
    totals = b"t %s %s %s %d\n" % (time, host, device, int(host) + int(device))
    return totals + opening + b"".join(line for line in lines[first:] if line[:2] in (b"c ", b"E "))


def defines(piece: bytes) -> bytes:
    """Of a piece what a recorder has flushed before it writes a tail: all that comes before the group."""
    begin = piece.find(b"\nS ") + 1
    return piece[:begin]


@pytest.mark.parametrize("seed, has_sums", [(0, True), (1, True), (2, True), (0, False), (1, False)])
def test_what_is_held_is_what_a_walk_through_the_whole_file_says(tmp_path: Path, seed: int, has_sums: bool) -> None:
    """By owner, and without sums in all."""
    chance = random.Random(seed)
    path = tmp_path / "jmassif.out.1"
    settled = 0
    with path.open("wb") as file:
        run = LiveRun(str(path), has_sums)
        for piece in pieces(SMALL):
            if b"\nS " in piece and chance.random() < 0.5:
                file.seek(settled)
                file.truncate()
                file.write(defines(piece) + tail_of(piece))
                file.flush()
                read_all(run)
                there = load_file(str(path))
                assert not has_sums or known(run) == owners_of(there, there.composition(len(there.snapshots) - 1))
                assert (run.now().host, run.now().device) == (there.snapshots[-1].host, there.snapshots[-1].device)
            file.seek(settled)
            file.truncate()
            # In parts, whose ends are anywhere.
            for _ in range(chance.randrange(4)):
                n = chance.randrange(len(piece) + 1)
                file.write(piece[:n])
                file.flush()
                run.poll()
                piece = piece[n:]
                settled += n
            file.write(piece)
            file.flush()
            settled += len(piece)
            if chance.random() < 0.5:
                read_all(run)
                there = load_file(str(path))
                last = len(there.snapshots) - 1
                assert last < 0 or not has_sums or known(run) == owners_of(there, there.composition(last))
                now = run.now()
                assert last < 0 or (now.host, now.device) == (there.snapshots[last].host, there.snapshots[last].device)
    read_all(run)
    whole = load_file(str(path))
    assert path.read_bytes() == SMALL and len(whole.snapshots) == len(run.profile.snapshots) > 20
    peaks = [{(p.which, p.time, p.host, p.device) for p in each.peaks.values()} for each in (run.profile, whole)]
    assert peaks[0] == peaks[1] and (run.profile.peaks == whole.peaks or not has_sums)
    assert run.profile.end == whole.end is not None and run.profile.timeline == whole.timeline
    # What costs most, and nobody asks for.
    assert (len(run.profile.accounts) > 1) == bool(run.profile.node_parent[1:]) == has_sums


def test_lines_add_up_to_what_is_held(tmp_path: Path) -> None:
    path = tmp_path / "jmassif.out.1"
    path.write_bytes(SMALL)
    run = LiveRun(str(path))
    read_all(run)
    lines = run.sums.lines("held", 1 << 20)
    assert len(lines) > 10 and sum(line.usage.bytes for line in lines) == run.now().host + run.now().device > 0


def test_nothing_is_read_twice_but_the_tail(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "jmassif.out.1"
    n_read: List[int] = []

    def counted(*arguments: Any) -> bytes:
        found = pread(*arguments)
        n_read.append(len(found))
        return found

    pread = os.pread
    monkeypatch.setattr(os, "pread", counted)
    groups = 0
    with path.open("wb") as file:
        run = LiveRun(str(path))
        for piece in pieces(SMALL):
            file.write(piece)
            file.flush()
            read_all(run)
            groups += len(piece) - len(defines(piece))
    # Each group that ended a file was read again when more came.
    assert sum(n_read) <= len(SMALL) + groups + 100 * len(n_read)
    before = len(n_read)
    assert not run.poll() and len(n_read) == before


def test_a_run_that_is_started_again_is_followed_anew(tmp_path: Path) -> None:
    path = tmp_path / "jmassif.out.1"
    path.write_bytes(SMALL)
    run = LiveRun(str(path))
    read_all(run)
    trace = Trace(memory="unified")
    heap = trace.account("heap", "app", ["main (a.c:9)"])
    trace.snapshot(3, "time", {heap: (4711, 1)})
    path.write_text("\n".join(trace.lines) + "\n")
    read_all(run)
    assert known(run) == {"app": (4711, 0)}
    other = tmp_path / "other"
    trace.snapshot(4, "time", {heap: (815, 1)})
    other.write_text("\n".join(trace.lines) + "\n")
    other.rename(path)
    read_all(run)
    assert known(run) == {"app": (815, 0)}


def test_only_a_file_can_be_followed() -> None:
    for name in ("/dev/null", "/proc/self/fd", "-"):
        with pytest.raises(TraceError):
            LiveRun(name)


@pytest.mark.parametrize(
    "text, settled",
    [
        (b"m pid 1\nm ppid 2\n", b"m pid 1\nm ppid 2\n"),
        (b"m pid 1\nm pp", b"m pid 1\n"),
        (b"m pid 1\nt 1 2 3 4\n", b"m pid 1\n"),
        (b"t 1 2 3 4\n", b""),
        (b"k x 1\nt 1 2 3 4\nS 1 1 time 2 3\nc 1 2 3 4 5 6\n", b"k x 1\n"),
        (b"k x 1\nt 1 2 3 4\nS 1 1 time 2 3\nc 1 2 3 4 5 6\nE 1\n", b"k x 1\n"),
        (b"S 1 1 time 2 3\nE 1\n", b""),
        (b"t 0 2 3 4\nk x 1\nS 1 1 time 2 3\nE 1\n", b"t 0 2 3 4\nk x 1\n"),
        (b"S 1 1 time 2 3\nE 1\nk x 1\n", b"S 1 1 time 2 3\nE 1\nk x 1\n"),
        (b"S 1 1 time 2 3\nE 1\nt 1 2 3 4\n", b"S 1 1 time 2 3\nE 1\n"),
        (b"S 1 1 time 2 3\nE 1\nk", b"S 1 1 time 2 3\nE 1\n"),
        (b"S 1 1 time 2 3\nE 1\nS 2 1 time 2 3\nE 2\n", b"S 1 1 time 2 3\nE 1\n"),
        (b"", b""),
    ],
)
def test_what_may_be_a_tail_is_held_back(text: bytes, settled: bytes) -> None:
    assert text[: settled_bytes(text)] == settled


@pytest.mark.parametrize(
    "content, says", [(b"desc: x\n", "a massif file"), (b"\x7fELF\2\n", "a program"), (b"x\n" * 9, "not a jm")]
)
def test_what_is_no_trace_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(TraceError) as caught:
        read_all(LiveRun(str(path)))
    assert says in str(caught.value)


def test_a_damaged_record_says_its_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.write(b"jmassif-trace 4\nm pid 1\n")
        file.flush()
        run = LiveRun(str(path))
        read_all(run)
        file.write(b"m ppid 1\nnonsense\nm x y\n")
        file.flush()
        with pytest.raises(TraceError) as caught:
            read_all(run)
    assert "line 4" in str(caught.value)
