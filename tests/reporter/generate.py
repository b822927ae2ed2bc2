# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a trace of any size, as a long training run would: for what must hold, or be fast, on large input.

    python3 -m tests.reporter.generate --snapshots=2000 --stacks=300000 --seed=1 >large.jmassif     # about 200 MB

The same numbers give the same bytes. Stacks grow in a tree of Python and native frames, balances change at each snapshot, and
the peaks of all three kinds are true to what it says that accounts hold.
"""

import argparse
import random
import sys
from typing import BinaryIO, Dict, List, Tuple

# Kind, owner, how often, and what a block measures.
_MEMORY = (
    ("heap", "python", 40, 600),
    ("heap", "framework", 30, 200),
    ("heap", "cudnn", 5, 4000),
    ("heap", "app", 5, 20000),
    ("pinned", "app", 1, 1 << 20),
    ("device", "tensor", 14, 1 << 18),
    ("device", "cache", 3, 1 << 21),
    ("driver", "context", 1, 1 << 22),
    ("imported", "app", 1, 1 << 16),
)
_GROUPS = (
    ("python", "libraries"),
    ("framework", "libraries"),
    ("cudnn", "libraries"),
    ("app", "yours"),
    ("tensor", "yours"),
    ("cache", "cached"),
    ("context", "runtime"),
)
_HOST = ("heap", "pinned")
_DEVICE = ("device", "driver")
_ROLES = ("parameter", "gradient", "optimizer", "activation", "input")

_SEGMENT = 32 << 20
_SLOT = 1 << 19
_MOST_SEGMENTS = 40
_BLOCK_CHANGES = 25  # at each snapshot
_MACHINE = (("mem-total", 4 << 30), ("mem-available", 3 << 30), ("swap-total", 2 << 30), ("swap-free", 2 << 30))
_MAX_DEPTH = 70
_N_FUNCTIONS = 4000
_STEP_MS = 25
_MAX_ROWS_BYTES = 32 << 10  # of a line; trace.c


class _Writer:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lines: List[str] = []

    def line(self, text: str) -> None:
        """Balances that follow each other are rows of one line, as the recorder writes them."""
        last = self._lines[-1] if self._lines else ""
        if text[:2] in ("c ", "d ") and last[:2] == text[:2] and len(last) < _MAX_ROWS_BYTES:
            self._lines[-1] = last + text[1:]
        else:
            self._lines.append(text)
        if len(self._lines) >= 10000:
            self.flush()

    def flush(self) -> None:
        if self._lines:
            self._stream.write(("\n".join(self._lines) + "\n").encode())
            self._lines.clear()


def _define_frames(write: _Writer) -> int:
    """The number of frames, which have the ids from 1 on."""
    strings: Dict[str, int] = {}

    def string(text: str) -> int:
        if text not in strings:
            strings[text] = len(strings) + 1
            write.line(f"s {strings[text]} {text}")
        return strings[text]

    for number in range(1, _N_FUNCTIONS + 1):
        if number % 4 == 0:
            package = ("/usr/lib/python3/dist-packages/torch/nn", "/home/user/project")[number % 8 == 0]
            file = string(f"{package}/module{number % 60}.py")
            write.line(f"f {number} p {string(f'Class{number % 90}.method{number}')} 0 {file} {number % 700 + 1} 0")
        else:
            object_ = string(f"/usr/lib/libpart{number % 50}.so.{number % 9}")
            function = string(f"part{number % 50}::Worker<int, float>::run{number}(long, char const*)")
            write.line(f"f {number} n {function} {object_} 0 0 {0x400000 + 64 * number:x}")
    return _N_FUNCTIONS


class _Books:
    """What accounts hold, and what that adds up to."""

    def __init__(self) -> None:
        self.last_node = 0  # of the last account
        self.kinds: List[str] = [""]
        self.sizes: List[int] = [0]
        self.live: List[Tuple[int, int]] = [(0, 0)]
        self.total: List[Tuple[int, int]] = [(0, 0)]
        self.temporaries: List[int] = [0]
        self.sums = {"host": 0, "device": 0}
        self._of: Dict[str, List[int]] = {}

    def add(self, kind: str, owner: str, block_bytes: int) -> int:
        self.kinds.append(kind)
        self.sizes.append(block_bytes)
        self.live.append((0, 0))
        self.total.append((0, 0))
        self.temporaries.append(0)
        self._of.setdefault(owner, []).append(len(self.kinds) - 1)
        return len(self.kinds) - 1

    def of(self, owner: str) -> List[int]:
        return self._of.get(owner, [])

    def side(self, account: int) -> str:
        kind = self.kinds[account]
        return "host" if kind in _HOST else "device" if kind in _DEVICE else ""

    def set(self, account: int, blocks: int) -> str:
        """The `c` record of an account that holds so many blocks from now on."""
        old_bytes, old_blocks = self.live[account]
        n_bytes = blocks * self.sizes[account]
        side = self.side(account)
        if side:
            self.sums[side] += n_bytes - old_bytes
        made = max(1, blocks - old_blocks)
        all_bytes, all_blocks = self.total[account]
        self.total[account] = (all_bytes + made * self.sizes[account], all_blocks + made)
        self.temporaries[account] += made - 1 if blocks < old_blocks else 0
        self.live[account] = (n_bytes, blocks)
        return f"c {account} {n_bytes} {blocks} {' '.join(map(str, self.total[account]))} {self.temporaries[account]}"


def _grow(write: _Writer, rng: random.Random, depths: List[int], books: _Books) -> None:
    """A further account, with a stack that leaves those before somewhere."""
    node = rng.randrange(max(0, len(depths) - 4000), len(depths))
    for _ in range(min(rng.choice((1, 2, 3)), _MAX_DEPTH - depths[node])):
        write.line(f"n {node - len(depths)} {rng.randrange(1, _N_FUNCTIONS + 1)}")
        depths.append(depths[node] + 1)
        node = len(depths) - 1
    ((kind, owner, _, size),) = rng.choices(_MEMORY, [row[2] for row in _MEMORY])
    type_ = next(number for number, memory in enumerate(_MEMORY, 1) if memory[:2] == (kind, owner))
    write.line(f"a {node - books.last_node} {type_}")
    books.last_node = node
    account = books.add(kind, owner, rng.randrange(size // 2, size * 2))
    if owner == "tensor":
        write.line(f"r {account} {rng.choice(_ROLES)}")


class _Device:
    """Device memory as it lies: segments of a cache, in slots of which there are tensors."""

    def __init__(self) -> None:
        self._free: List[int] = []  # addresses of slots
        self._used: List[Tuple[int, int]] = []  # address, account
        self._n_segments = 0

    def step(self, write: _Writer, rng: random.Random, time: int, caches: List[int], tensors: List[int]) -> None:
        for _ in range(_BLOCK_CHANGES):
            if self._used and rng.random() < 0.48:
                address, account = self._used.pop(rng.randrange(len(self._used)))
                write.line(f"- {time} {address:x} {account}")
                self._free.append(address)
            elif not self._free and self._n_segments == _MOST_SEGMENTS:
                continue
            else:
                if not self._free:
                    self._n_segments += 1
                    base = 0x7F0000000000 + self._n_segments * 2 * _SEGMENT
                    write.line(f"+ {time} {base:x} {_SEGMENT} {rng.choice(caches)}")
                    self._free = list(range(base, base + _SEGMENT, _SLOT))
                address, account = self._free.pop(rng.randrange(len(self._free))), rng.choice(tensors)
                write.line(f"+ {time} {address:x} {rng.randrange(512, _SLOT, 512)} {account}")
                self._used.append((address, account))


def _write_machine(write: _Writer, rng: random.Random, time: int) -> None:
    for figure, n_bytes in _MACHINE:
        is_steady = figure.endswith("total")
        write.line(
            f"y {time} {figure} {n_bytes if is_steady else rng.randrange(n_bytes // 8192, n_bytes // 4096) * 4096}"
        )


def _write_peaks(write: _Writer, rng: random.Random, time: int, books: _Books, peaks: Dict[str, int]) -> None:
    """Of all that are higher than before. Some lie before the snapshot, when an account held more."""
    more = rng.randrange(1, len(books.kinds))
    side = books.side(more)
    extra = books.sizes[more] * 3 if side else 0
    for which in ("total", "host", "device"):
        host, device = books.sums["host"], books.sums["device"]
        is_before = bool(extra) and which in ("total", side)
        if is_before:
            host, device = host + extra * (side == "host"), device + extra * (side == "device")
        value = {"total": host + device, "host": host, "device": device}[which]
        if value <= peaks[which]:
            continue
        peaks[which] = value
        write.line(f"P {which} {time - 1 if is_before else time} {host} {device}")
        if is_before:
            n_bytes, blocks = books.live[more]
            write.line(f"d {more} {n_bytes + extra} {blocks + 3}")


def generate(stream: BinaryIO, n_snapshots: int, n_stacks: int, seed: int) -> None:
    """Writes the trace. Each account has a stack of its own; about a hundredth of all change at each snapshot."""
    rng = random.Random(seed)
    write = _Writer(stream)
    write.line("jmassif-trace 4")
    manifest = {
        "process": f"4711.{seed}",
        "command": f"python3 train.py --seed={seed}",
        "pid": "4711",
        "start": "2026-01-02T03:04:05Z",
        "start-unix-ms": str(1767323045000 + seed),
        "time-unit": "ms",
        "memory": "unified",
        "host": f"board-{seed}",
        "board": "NVIDIA Jetson Nano Developer Kit",
        "l4t": "32.7.1",
        "package.nvidia-jetpack": "4.6.1-b110",
    }
    for key, value in manifest.items():
        write.line(f"m {key} {value}")
    for owner, group in _GROUPS:
        write.line(f"g {owner} {group}")
    for number, (kind, owner, _, _) in enumerate(_MEMORY, 1):
        write.line(f"K {number} {kind} {owner}")
    _define_frames(write)
    write.line(f"s 100001 cudnnCreate\ns 100002 epoch\ns 100003 validated")
    depths = [0]
    books = _Books()
    peaks = {"total": -1, "host": -1, "device": -1}
    device = _Device()
    n_changes = max(10, n_stacks // 85)
    time, n_scopes = 0, 0
    for number in range(1, n_snapshots + 1):
        # Three quarters of all stacks come up in the first half of the run.
        wanted = n_stacks * (3 * number if 2 * number <= n_snapshots else n_snapshots + number) // (2 * n_snapshots)
        first_new = len(books.kinds)
        for _ in range(wanted + 1 - first_new):
            _grow(write, rng, depths, books)
        before = dict(books.sums)
        chosen = {rng.randrange(1, len(books.kinds)) for _ in range(n_changes)} | set(
            range(first_new, len(books.kinds))
        )
        if number > 1:
            for point in range(1, 5):
                at = time + point * _STEP_MS // 5
                write.line(f"t {at} {before['host']} {before['device']} {sum(before.values())}")
            n_scopes += 1
            write.line(f"B {time} 1 100002")
            write.line(f"x {n_scopes} 0 1 {time} {time + 3} 1 100001 heap 2000 3 device -64 1")
            write.line(f"M {time + 4} 100003")
            write.line(f"D {time + _STEP_MS - 1} 1 100002")
        time += _STEP_MS
        caches, tensors = books.of("cache"), books.of("tensor")
        if caches and tensors:
            device.step(write, rng, time, caches, tensors)
        _write_machine(write, rng, time)
        records = [books.set(account, rng.choice((0, 1, 1, 2, 3, 7))) for account in sorted(chosen)]
        write.line(
            f"S {number} {time} {'exit' if number == n_snapshots else 'time'} {books.sums['host']} {books.sums['device']}"
        )
        for record in records:
            write.line(record)
        _write_peaks(write, rng, time, books, peaks)
        write.line(f"E {number}")
    write.line(f"Z {time} exit 0")
    write.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes a trace to standard output.")
    for name, default in (("snapshots", 2000), ("stacks", 300000), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    generate(sys.stdout.buffer, arguments.snapshots, arguments.stacks, arguments.seed)


if __name__ == "__main__":
    main()
