#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""usage: large_trace.py FILE [SNAPSHOTS STACKS CHANGES]      (default: 2000 300000 3700, about 200 MB)

Writes a trace of that many snapshots, stacks and accounts, with so many accounts changed in each snapshot: the size of a
long training run, made in seconds. Stacks share their outer frames, the outermost of which are lines of a script; sizes are
spread over five powers of ten; which accounts change is random, so memory comes and goes everywhere and all the time.
"""

import random
import sys
from typing import BinaryIO, List

_OWNERS = (
    ("app", "yours"),
    ("tensor", "yours"),
    ("cache", "cached"),
    ("cudnn", "libraries"),
    ("framework", "libraries"),
    ("python", "libraries"),
    ("context", "runtime"),
)
_FUNCTIONS = 4000
_LIBRARIES = 60


def write(stream: BinaryIO, n_snapshots: int, n_stacks: int, n_changes: int, seed: int = 1) -> None:
    random_ = random.Random(seed)
    lines: List[str] = ["jmassif-trace 2", "m command large run", "m pid 1", "m time-unit ms", "m memory unified"]
    lines += [f"g {owner} {group}" for owner, group in _OWNERS]
    n_strings = 0
    for number in range(_FUNCTIONS):
        n_strings += 1
        lines.append(f"s {n_strings} function_{number}_of_some_length")
    for number in range(_LIBRARIES):
        n_strings += 1
        lines.append(f"s {n_strings} /usr/lib/library_{number}.so.{number % 7}")
    n_strings += 1
    lines.append(f"s {n_strings} /home/user/train.py")
    n_frames = 2 * _FUNCTIONS
    for number in range(1, n_frames + 1):
        function = 1 + number % _FUNCTIONS
        if number % 9:
            library = _FUNCTIONS + 1 + function % _LIBRARIES
            lines.append(f"f {number} n {function} {library} 0 0 {4096 + number:x}")
        else:
            lines.append(f"f {number} p {function} 0 {n_strings} {1 + number // 9} 0")

    natives = [number for number in range(1, n_frames + 1) if number % 9]
    n_nodes = 0
    leaves: List[int] = [0]
    paths: List[List[int]] = [[]]
    sizes = [0] * (n_stacks + 1)
    kinds = bytearray(n_stacks + 1)
    for account in range(1, n_stacks + 1):
        # Go on from somewhere in the stack of an earlier account: the earlier ones are the trunks.
        base = paths[int(random_.random() ** 3 * len(paths))]
        path = base[: random_.randrange(len(base) + 1)]
        for _ in range(random_.choice((1, 2, 2, 3))):
            n_nodes += 1
            # The script's lines are where the stacks begin.
            frame = 9 * random_.randrange(1, 100) if len(path) < 2 else random_.choice(natives)
            lines.append(f"n {n_nodes - path[-1] if path else 0} {frame}")
            path.append(n_nodes)
        if len(paths) < 20000:
            paths.append(path)
        leaves.append(n_nodes)
        # Whose memory it is follows from the library that allocates it.
        owner = _OWNERS[(1 + frame % _FUNCTIONS) % _LIBRARIES % len(_OWNERS)][0]
        kind = "device" if owner in ("tensor", "cache") else "heap"
        lines.append(f"a 0 {kind} {owner}")
        kinds[account] = kind == "device"
        sizes[account] = int(10 ** random_.uniform(1.2, 6.5))
    stream.write(("\n".join(lines) + "\n").encode())

    live = [0] * (n_stacks + 1)
    blocks = [0] * (n_stacks + 1)
    totals = [0] * (n_stacks + 1)
    total_blocks = [0] * (n_stacks + 1)
    sums = [0, 0]
    time = largest = 0
    for snapshot in range(1, n_snapshots + 1):
        time += random_.randrange(20, 200)
        rows = []
        # Some places are busier than others: half of the changes are in a tenth of them.
        for account in sorted({1 + int(n_stacks * random_.random() ** 3.3) for _ in range(n_changes)}):
            n_blocks = random_.choice((0, 1, 1, 2, 3))
            now = n_blocks * sizes[account]
            sums[kinds[account]] += now - live[account]
            totals[account] += max(0, now - live[account]) + random_.choice((0, 0, sizes[account]))
            total_blocks[account] += n_blocks
            live[account], blocks[account] = now, n_blocks
            temporaries = total_blocks[account] // 3
            rows.append(f"c {account} {now} {n_blocks} {totals[account]} {total_blocks[account]} {temporaries}")
        peak = ""
        if sum(sums) > largest:
            largest = sum(sums)
            peak = f"P total {time} {sums[0]} {sums[1]}\n"
        head = f"t {time} {sums[0]} {sums[1]} {sum(sums)}\nS {snapshot} {time} time {sums[0]} {sums[1]}\n"
        stream.write((head + "\n".join(rows) + f"\n{peak}E {snapshot}\n").encode())
    stream.write(f"Z {time} exit 0\n".encode())


if __name__ == "__main__":
    if len(sys.argv) not in (2, 5):
        sys.exit(__doc__)
    with open(sys.argv[1], "wb") as file:
        write(file, *(map(int, sys.argv[2:]) if len(sys.argv) == 5 else (2000, 300000, 3700)))
