# SPDX-License-Identifier: GPL-2.0-or-later
"""Caches of translations that something has happened to: bits, bytes, blocks, cuts, records of another build.

What is in them is machine code that will run, so nothing less than every one must be passed over or right: the program's
output and exit status are those that it has without Valgrind, and nothing is said.

    python3 -m tests.fuzz.caches [--seed=N] [--caches=2000]
"""

import os
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Callable, List, NamedTuple, Optional, Sequence

from tests.fuzz.searching import ended, parser
from tests.harness import Argument, Run, compile_c, record, run

# Short, but with code of several libraries, and a result that most of it has a part in.
PROGRAM = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
    char text[200] = "";
    double sum = 0;
    for (int i = 1; i < 40; i++) {
        sum = sum / 3 + sin(i) * exp(i * 0.1) + cbrt(i) + fma(i, 0.5, sum);
        snprintf(text + strlen(text) % 150, 40, "%.6g;%d,", sum, i * i);
    }
    char *copy = strdup(text);
    printf("%.17g %s %ld\n", sum, copy, strtol(strchr(copy, ';') + 1, NULL, 10));
    free(copy);
    return 5;
}
"""

Damage = Callable[[bytearray, bytes, random.Random], None]  # what is kept, what another build has kept


def bits(data: bytearray, _other: bytes, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 1, 10, 300))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def single_bytes(data: bytearray, _other: bytes, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 1, 10, 300))):
        data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))


def words(data: bytearray, _other: bytes, chance: random.Random) -> None:
    """Sizes and places that are far too large, or nearly right."""
    for _ in range(chance.choice((1, 10, 100))):
        at = chance.randrange(len(data) // 8 - 1) * 8
        word = chance.choice((0, 1, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1, len(data), chance.getrandbits(64)))
        data[at : at + 8] = word.to_bytes(8, "little")


def blocks(data: bytearray, _other: bytes, chance: random.Random) -> None:
    """As a disk loses them."""
    for _ in range(chance.choice((1, 5, 20))):
        n = 512 * chance.choice((1, 1, 8))
        at = chance.randrange(max(1, (len(data) - n) // 512)) * 512
        data[at : at + n] = bytes(n) if chance.random() < 0.5 else bytes(chance.getrandbits(8) for _ in range(n))


def moved(data: bytearray, _other: bytes, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 5, 20))):
        n = min(chance.choice((64, 1024, 4096)), len(data) // 4)
        to, of = (chance.randrange(len(data) - n) for _ in range(2))
        data[to : to + n] = data[of : of + n]


def cut(data: bytearray, _other: bytes, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def cut_out(data: bytearray, _other: bytes, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    del data[at : at + chance.randrange(1, 5000)]


def of_another_build(data: bytearray, other: bytes, chance: random.Random) -> None:
    """All, the beginning, the end, or pieces of it."""
    n = chance.choice((len(data), len(data) // 2, 4096, 300))
    for _ in range(chance.choice((1, 1, 20))):
        to = chance.choice((0, 0, chance.randrange(len(data))))
        of = to if chance.random() < 0.5 else chance.randrange(len(other))
        piece = other[of : of + n]
        data[to : to + len(piece)] = piece


def twice(data: bytearray, other: bytes, chance: random.Random) -> None:
    """Appended: again, or what another build has, or the rest of it."""
    more = bytes(data) if chance.random() < 0.5 else other
    data += more[chance.choice((0, chance.randrange(len(more)))) :]


DAMAGES: Sequence[Damage] = (bits, single_bytes, words, blocks, moved, cut, cut_out, of_another_build, twice)


class Kept(NamedTuple):
    directory: Path
    code: str  # the file's name
    other: bytes  # what the same file of another build holds


def cached(command: Sequence[Argument], cache: Argument, *options: str) -> Run:
    """What it does with what is kept in a directory; "no": with nothing kept."""
    done = record(command, [f"--code-cache={cache}", "-q", *options])
    return Run(done.returncode, done.stdout, done.stderr)


def keep(program: Path, directory: Path) -> Kept:
    """A cache as it should be, and one of a build whose superblocks are others."""
    cached([program], directory / "kept")
    cached([program], directory / "other", "--vex-iropt-level=0")
    (code,), (other,) = ((directory / name).glob("*.code") for name in ("kept", "other"))
    return Kept(directory / "kept", code.name, other.read_bytes())


def damaged(kept: Kept, directory: Path, chance: random.Random) -> str:
    """Makes a damaged copy; what was done to it."""
    shutil.copytree(str(kept.directory), str(directory))
    done: List[str] = []
    data = bytearray((directory / kept.code).read_bytes())
    for damage in chance.sample(DAMAGES, chance.choice((1, 1, 1, 2))):
        if len(data) > 4096:
            damage(data, kept.other, chance)
            done.append(damage.__name__)
    (directory / kept.code).write_bytes(data)
    return ", ".join(done)


def fault(program: Path, cache: Path, alone: Run, n_runs: int) -> Optional[str]:
    """A second run meets what the first has written beside the damage."""
    for i in range(n_runs):
        done = cached([program], cache)
        if done != Run(alone.returncode, alone.stdout, ""):
            return f"run {i + 1}: status {done.returncode}, {done.stdout!r}, {done.stderr!r}"
    return None


def search(seed: int, n_caches: int, first: int = 0) -> List[str]:
    """The faults of so many damaged caches."""
    program = compile_c(PROGRAM, "-O1", "-lm")
    alone = run([program])
    faults: List[str] = []
    with tempfile.TemporaryDirectory(prefix="jmassif-caches-") as made:
        kept = keep(program, Path(made))
        for i in range(first, first + n_caches):
            chance = random.Random(f"{seed}.{i}")
            cache = Path(made) / "damaged"
            what = damaged(kept, cache, chance)
            found = fault(program, cache, alone, chance.choice((1, 1, 1, 2)))
            if found:
                faults.append(f"seed {seed}, cache {i} ({what}): {found}")
            shutil.rmtree(str(cache))
    return faults


def main(arguments: Optional[Sequence[str]] = None) -> int:
    options = parser(__doc__)
    options.add_argument("--caches", type=int, default=2000)
    options.add_argument("--first", type=int, default=0, help="the number of the first one")
    chosen = options.parse_args(arguments)
    faults = search(chosen.seed, chosen.caches, chosen.first)
    print(f"seed {chosen.seed}: {chosen.caches} caches, {len(faults)} faults")
    return ended(faults)


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
