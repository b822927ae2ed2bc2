# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces that no recorder wrote: golden ones, changed by what knows the format and means harm.

Most changes keep a trace readable, so that it reaches what comes after the reader; some add what a trace may hold in any amount (long
names, deep stacks, thousands of events of one moment), because time that grows with its square is a fault too.
"""

import gzip
import random
import re
from typing import Callable, List

from tests.records import apart_bytes
from tests.reporter.generate import generate
from tests.reporter.traces import ROOT, Trace, escape, random_run, small_training_run

Lines = List[bytes]

_NUMBERS = (b"0", b"1", b"7", b"4294967296", b"9223372036854775808", b"18446744073709551615", b"18446744073709551616")
_TEXTS = (
    "\x1b]0;title\x07\x1b[2J\x1b[31m",
    "=cmd|'/C calc'!A1",
    "@SUM(1+1)*cmd",
    "+1+1",
    "line one\nline two\r",
    "</script><script>alert(1)</script>",
    "\u202eelbasreverse\u202c\u200b",
    "\udcff\udcfe not UTF-8",
    "a" * 3000,
    "word " * 800,
    "/".join("d" * 1500),
    "/proc/self/environ",
    "/dev/zero",
    "../../../../etc/passwd",
    "%s%n%x {0} {} {owner}",
    "",
    " ",
    "\\",
    "::" * 500,
    "<" * 700 + ">" * 700,
    "(" * 900,
    "0" * 5000,
    "torch; rm -rf ~",
)
_PATHS = (
    "/usr/lib/python3/dist-packages/evil\x1b[2Jpackage/module.py",
    "/usr/lib/python3.11/site-packages/=1+1/module.py",
    "/" + "/".join(f"d{i}" for i in range(900)) + "/site-packages/p/m.py",
)


def _hostile_text(rng: random.Random) -> bytes:
    return escape(rng.choice(_TEXTS + _PATHS)).encode("utf-8", "surrogateescape")


def _kinds_of_everything() -> bytes:
    """What the other golden traces lack: memory that ran out, addresses that are mapped, regions, objects, pages."""
    trace = small_training_run("discrete")
    end = trace.lines.pop()
    cache = trace.account("device", "cache", ["py step (/home/u/train.py:12)"])
    handle = trace.account("vmm", "cache", ["py step (/home/u/train.py:13)"])
    for number in range(6):
        trace.block(1000, 0x7000000 + (number << 20), 1 << 20, cache)
    trace.block(1000, 0xABC, 2 << 20, handle)
    trace.lines += ["W 1000 8000000 2097152 abc", "w 1000 8000000 2097152", "l 1000 65536", "R 1 4 17"]
    figures = {"device-free": 1 << 20, "device-total": 4 << 30, "framework-request": 5 << 20}
    event = trace.exhaustion(1001, cache, 3 << 20, figures=figures)
    trace.snapshot(1001, "out-of-memory", {cache: (6 << 20, 6), handle: (2 << 20, 1)})
    trace.outcome(event, 1002, "raised")
    again = trace.exhaustion(1003, cache, 2 << 20, again=event, figures=figures)
    trace.outcome(again, 1004, "retried")
    trace.lines += [f"L 1004 7f0000000000 4096 {trace.string('libx.so')} /usr/lib/libx.so", "U 1005 7f0000000000"]
    trace.lines += ["y 1005 device-free 77", "y 1005 device-total 4294967296", "y 1005 device-ledger 8388608"]
    trace.snapshot(1006, "exit")
    trace.lines.append(end.replace("1000", "1006"))
    return trace.bytes()


class _Sink:
    def __init__(self) -> None:
        self.parts: Lines = []

    def write(self, data: bytes) -> None:
        self.parts.append(data)


def golden() -> List[Lines]:
    """The lines of each, with their ends."""
    sink = _Sink()
    generate(sink, 12, 200, 1)  # type: ignore[arg-type]
    with gzip.open(str(ROOT / "tests" / "data" / "small.jmassif.gz")) as stream:
        recorded = stream.read()
    # One with its checksums, which find nearly all changes; the others have none, so that readers see the changes.
    traces = [recorded, apart_bytes(recorded), b"".join(sink.parts), random_run(3).bytes(), _kinds_of_everything()]
    traces.append(small_training_run().bytes())
    return [trace.splitlines(True) for trace in traces]


# ---- one change each; `lines` is changed in place -----------------------------------------------


def _any(lines: Lines, rng: random.Random) -> int:
    return rng.randrange(1, len(lines))


def _drop(lines: Lines, rng: random.Random) -> None:
    del lines[_any(lines, rng)]


def _repeat(lines: Lines, rng: random.Random) -> None:
    at = _any(lines, rng)
    lines[at:at] = [lines[at]] * rng.choice((1, 2, 50, 2000))


def _swap(lines: Lines, rng: random.Random) -> None:
    one, other = _any(lines, rng), _any(lines, rng)
    lines[one], lines[other] = lines[other], lines[one]


def _cut(lines: Lines, rng: random.Random) -> None:
    at = _any(lines, rng)
    lines[at:] = [lines[at][: rng.randrange(len(lines[at]) + 1)]]


def _number(lines: Lines, rng: random.Random) -> None:
    at = _any(lines, rng)
    found = list(re.finditer(rb"\b\d+\b", lines[at]))
    if found:
        span = rng.choice(found)
        near = b"%d" % max(0, int(span.group()) + rng.choice((-1, 1, 2))) if len(span.group()) < 20 else b"3"
        new = rng.choice(_NUMBERS + (near, near, near, b"9" * 5000))
        lines[at] = lines[at][: span.start()] + new + lines[at][span.end() :]


def _letter(lines: Lines, rng: random.Random) -> None:
    at = _any(lines, rng)
    lines[at] = rng.choice(b"".join({line[:1] for line in lines[1:] if line})).to_bytes(1, "big") + lines[at][1:]


def _text(lines: Lines, rng: random.Random) -> None:
    """A string, or what the manifest says, becomes hostile: the trace stays readable."""
    found = [at for at, line in enumerate(lines) if line[:2] in (b"s ", b"m ")]
    if found:
        at = rng.choice(found)
        lines[at] = b" ".join(lines[at].split(b" ")[:2]) + b" " + _hostile_text(rng) + b"\n"


def _texts(lines: Lines, rng: random.Random) -> None:
    for at, line in enumerate(lines):
        if line[:2] == b"s " and rng.random() < 0.3:
            lines[at] = b" ".join(line.split(b" ")[:2]) + b" " + _hostile_text(rng) + b"\n"


def _bytes(lines: Lines, rng: random.Random) -> None:
    at = _any(lines, rng)
    line = bytearray(lines[at])
    for _ in range(rng.choice((1, 1, 4))):
        if line:
            line[rng.randrange(len(line))] = rng.randrange(256)
    lines[at] = bytes(line)


def _splice(lines: Lines, rng: random.Random) -> None:
    at, to = _any(lines, rng), _any(lines, rng)
    n_lines = rng.choice((1, 10, 300))
    lines[to:to] = lines[at : at + n_lines]


def _last(lines: Lines) -> int:
    """Where something may be added to a readable trace: before its last record."""
    return len(lines) - 1 if lines[-1][:1] == b"Z" else len(lines)


def _time(lines: Lines) -> int:
    """The last one of the snapshots; 0 where one of their times is none that a recorder writes, because it has been changed."""
    times = [line.split()[2] for line in lines if line[:2] == b"S " and len(line.split()) == 6]
    if not all(time.isdigit() and len(time) < 19 for time in times):
        return 0
    return max(map(int, times), default=0)


def _n_defined(lines: Lines, letter: bytes) -> int:
    return sum(line[:2] == letter + b" " for line in lines)


def _deep_stack(lines: Lines, rng: random.Random) -> None:
    if not _n_defined(lines, b"f"):
        return
    depth = rng.choice((300, 3000, 30000))
    n_types = _n_defined(lines, b"K") + 1
    stack = b"n" + b" 1" * depth + b"\n"
    lines[_last(lines) : _last(lines)] = [stack, b"K %d heap app\n" % n_types, b"a 1 %d\n" % n_types]
    account = _n_defined(lines, b"a")
    end = _last(lines)
    snapshot = b"%d" % (_n_defined(lines, b"S") + 1000000)
    host = next((line.split()[4:6] for line in reversed(lines) if line[:2] == b"S " and len(line.split()) == 6), None)
    if host and all(word.isdigit() and len(word) < 19 for word in host):
        opened = b"S %s %d time %d %s\n" % (snapshot, _time(lines), int(host[0]) + 512, host[1])
        lines[end:end] = [opened, b"c %d 512 1 512 1 0\n" % account, b"E " + snapshot + b"\n"]


def _many_events(lines: Lines, rng: random.Random) -> None:
    if not _n_defined(lines, b"a"):
        return
    time, text = _time(lines), 1 if _n_defined(lines, b"s") else 0
    n = rng.choice((100, 1500))
    kind = rng.randrange(5)
    added: Lines = []
    for number in range(n):
        if kind == 0:
            added.append(
                b"O %d %d 1 1 %d 2 4096 %d\n" % (900000 + number, time, text, 899999 + number if number else 0)
            )
        elif kind == 1:
            added.append(b"B %d 1 %d\n" % (time, text))
        elif kind == 2:
            added.append(b"M %d %d\n" % (time, text))
        elif kind == 3:
            added.append(b"x %d 0 1 %d %d 0 %d heap 1 1\n" % (800000 + number, time, time, text))
        else:
            added.append(b"+ %d %x 512 1\n" % (time, 0x7000000000 + 512 * number))
    lines[_last(lines) : _last(lines)] = added


_Change = Callable[[Lines, random.Random], None]
CHANGES: List[_Change] = [
    _drop,
    _repeat,
    _swap,
    _cut,
    _number,
    _number,
    _number,
    _letter,
    _text,
    _text,
    _texts,
    _bytes,
    _splice,
    _deep_stack,
    _many_events,
    _many_events,
]


def mutant(originals: List[Lines], rng: random.Random) -> bytes:
    """A changed copy of one of them."""
    lines = list(rng.choice(originals))
    for _ in range(rng.choice((1, 1, 2, 3))):
        if len(lines) > 2:
            rng.choice(CHANGES)(lines, rng)
    return b"".join(lines)
