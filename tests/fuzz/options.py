# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules and options that nobody would write, and some that people do: the program runs as it does alone and leaves a trace that can be
read, or it does not begin, with one line that says why.

    python3 -m tests.fuzz.options [--seed=N] [--runs=N]

The same seed makes the same rules and options.
"""

import random
import re
import resource
import string
import sys
import tempfile
from pathlib import Path
from typing import Callable, List, NamedTuple, Optional, Tuple

from jmassif.reader.builder import load_file
from tests import harness
from tests.fuzz import searching

MOST_SECONDS = 20  # of the processor

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static char *take(size_t n) { return memset(malloc(n), 1, n); }
int LONG(int n) { return n ? LONG(n - 1) + *take(1000) : *take(100000); }
int main(void)
{
    char *pages = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 1, 1 << 16);
    free(take(5000));
    free(realloc(take(3), 70000));
    printf("%d\\n", LONG(12) + pages[77]);
    return 7;
}
""".replace(
    "LONG", "a_function_of_" + "a" * 180
)

# ---- rules -----------------------------------------------------------------------------------

_NAMES = (
    "net",
    "app",
    "tensor",
    "cache",
    "lib",
    "model",
    "-",
    "a" * 64,
    "a" * 65,
    "n.e.t",
    "ünï",
    "0",
    "_",
    "claim",
    "group",
)
_GLOBS = (
    "*",
    "?",
    "*?*?*",
    "*a*a*a*a*a*a*a*a*a*a*a*b",
    "program",
    "prog*|libc*|ld-*",
    "|",
    "||*",
    "py:*",
    "py:",
    "\\*",
    "\\",
    "[0-9]*",
    "a" * 255,
    "a" * 256,
    "|".join("b" * 255 for _ in range(40)),
    "malloc",
    "take|main",
    "nothing",
    "%s%n",
)
_WORDS = (
    "host",
    "device",
    "driver",
    "survivors",
    "own",
    "main",
    "library",
    "load",
    "import",
    "yours",
    "cached",
    "runtime",
)
_STARTS = ("", "", "", "", "group", "role", "code", "claim", "import", "rôle", "#")


def _some(rng: random.Random, choices: Tuple[str, ...]) -> str:
    return rng.choice(choices)


def _well_formed(rng: random.Random) -> str:
    """Mostly. What follows a keyword is of its sort."""
    start = _some(rng, _STARTS)
    if start == "group":
        return f"group {_some(rng, _WORDS)} " + " ".join(_some(rng, _NAMES) for _ in range(rng.choice((1, 3, 30, 31))))
    if start in ("role", "code"):
        tail = rng.choice(("", " survivors", " host"))
        return f"{start} {_some(rng, _WORDS + _NAMES)} {_some(rng, _GLOBS)} {_some(rng, _GLOBS)}{tail}"
    if start in ("claim", "import"):
        return f"{start} {_some(rng, _NAMES)} " + " ".join(_some(rng, _NAMES) for _ in range(rng.randrange(4)))
    return f"{start} {_some(rng, _NAMES)} {_some(rng, _GLOBS)} {_some(rng, _GLOBS)} {rng.choice(('', '', _some(rng, _WORDS)))}"


def _many(rng: random.Random) -> str:
    n = rng.choice((190, 260, 3000))
    return rng.choice(
        (
            "\n".join(f"owner{i} * nothing" for i in range(n)),
            "\n".join(f"role role{i} * *" for i in range(n)),
            "\n".join(f"code own object{i} *" for i in range(n)),
            "\n".join(f"claim net owner{i}" for i in range(n)),
            "\n" * n,
            "word " * n,
            "# " + "x" * n * 100,
        )
    )


def rules(rng: random.Random) -> bytes:
    """A file of them."""
    lines = [_well_formed(rng) if rng.random() < 0.95 else _many(rng) for _ in range(rng.choice((0, 1, 1, 2, 5, 20)))]
    data = bytearray(rng.choice(("\n", "\n", "\r\n")).join(lines).encode() + rng.choice((b"", b"\n")))
    for _ in range(rng.choice((0, 0, 0, 1, 5))):
        if data:
            data[rng.randrange(len(data))] = rng.choice((0, 9, 10, 13, 32, 35, 42, 124, 255, rng.randrange(256)))
    return bytes(data)


# ---- options ---------------------------------------------------------------------------------

_NUMBERS: Tuple[str, ...] = (
    "0",
    "1",
    "2",
    "8",
    "10",
    "1000",
    "-1",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "1e9",
    "",
)
_NUMBERS += ("nan", "inf", "0x10", "1.5", "9" * 400, " 7", "7 ", "lots")
_SIZES = (
    "0",
    "1",
    "64KiB",
    "1MiB",
    "16384PiB",
    "17179869184GiB",
    "18446744073709551615",
    "99999999999GiB",
    "KiB",
    "1kib",
    "-1",
)
_BOOLS = ("yes", "no", "maybe", "", "YES", "1")
_TEXTS = (
    "main",
    "take",
    "",
    "*",
    "a" * 5000,
    "\x1b[2J",
    "ü",
    "a,b",
    "%p",
    "%q{HOME}",
    "%q{NO_SUCH_VARIABLE}",
    "%q{",
    "%",
    "%%",
    "%z",
)
_FILES = (
    "trace",
    "trace.%p",
    "%p",
    "no/such/trace",
    "/",
    ".",
    "",
    "t" * 300,
    "/dev/null",
    "/dev/full",
    "a b\n",
    "%n.%n",
    "%q{HOME}%q{",
)


def _booleans(name: str) -> Callable[[random.Random], str]:
    return lambda rng: f"--{name}={_some(rng, _BOOLS[: rng.choice((2, 2, 2, 6))])}"


def _numbers(name: str) -> Callable[[random.Random], str]:
    return lambda rng: f"--{name}={_some(rng, _NUMBERS[: rng.choice((6, 6, 20))])}"


_OPTIONS: List[Callable[[random.Random], str]] = [
    *map(
        _booleans,
        (
            "heap",
            "pages",
            "driver",
            "stacks",
            "threads",
            "nvtx",
            "anonymize",
            "low-footprint",
        ),
    ),
    *map(_booleans, ("trace-children", "run-cxx-freeres", "read-inline-info", "merge-recursive-frames")),
    *map(_numbers, ("heap-admin", "depth", "interval", "max-snapshots", "low-memory", "alignment")),
    lambda rng: f"--large={_some(rng, _SIZES[: rng.choice((4, 11))])}",
    lambda rng: f"--alloc-fn={_some(rng, _TEXTS)}",
    lambda rng: f"--ignore-fn={_some(rng, _TEXTS)}",
    lambda rng: f"--python={rng.choice(('auto', 'no', 'yes'))}",
    lambda rng: f"--memory={rng.choice(('auto', 'unified', 'discrete', 'both'))}",
    lambda rng: f"--time-unit={rng.choice(('i', 'ms', 'B', 'b'))}",
    lambda rng: f"--board-root={rng.choice(('/', '', '/proc/self', '/no/such', 'x' * 5000, '.'))}",
    lambda rng: f"--jmassif-out-file={_some(rng, _FILES)}",
    lambda rng: f"--owners={rng.choice(('/no/such', '.', '', '/dev/null', '/bin/true'))}",
    lambda rng: rng.choice(("--=", "--heap", "--large", "--nonsense=1", "--" + "x" * 2000)),
]


def options(rng: random.Random) -> List[str]:
    """A few, most of them with values that can be taken."""
    return [rng.choice(_OPTIONS)(rng) for _ in range(rng.choice((0, 1, 1, 2, 4)))]


# ---- runs ------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    run: harness.Run
    seconds: float  # of the processor
    traces: List[Path]


def attempt(compiled: Path, words: List[str], directory: Path) -> Outcome:
    """Runs the program under jmassif in a directory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = harness.run(
        [harness.VALGRIND, "--tool=jmassif", *words, compiled],
        env={"VALGRIND_LIB": str(harness.BUILD / ".in_place")},
        cwd=directory,
        timeout=600,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    traces = [path for path in directory.iterdir() if path.name != "rules" and path.is_file()]
    return Outcome(done, seconds, traces)


def _is_refusal(done: harness.Run) -> bool:
    """One line of jmassif's own and status 2, or the core's way: status 1, what option, why, and where to look."""
    if done.returncode == 2:
        return len(re.findall(r"^valgrind: jmassif: ", done.stderr, re.MULTILINE)) == 1
    said = re.search(r"^(valgrind:|==\d+==) (Bad option|Unknown option|.*--)", done.stderr, re.MULTILINE)
    return done.returncode == 1 and said is not None and "the 'impossible' happened" not in done.stderr


def fault(alone: harness.Run, outcome: Outcome) -> Optional[str]:
    """What may not be; None if nothing."""
    done = outcome.run
    last = " | ".join(done.stderr.strip().splitlines()[-6:])[:600]
    if outcome.seconds > MOST_SECONDS:
        return f"{outcome.seconds:.1f} s"
    if any(char not in string.printable and ord(char) < 128 for char in done.stderr):
        return f"characters that a terminal acts on: {last!r}"
    if done.returncode != alone.returncode:
        if done.returncode not in (1, 2) or not _is_refusal(done):
            return f"exit status {done.returncode}: {last}"
        return "refused, and a trace" if outcome.traces else None
    if done.stdout != alone.stdout:
        return f"another result: {done.stdout[:100]!r}"
    for trace in outcome.traces:
        try:
            load_file(str(trace))
        except Exception as error:  # pylint: disable=broad-except
            return f"a trace that cannot be read: {error!r}"
    return None


class Tally(NamedTuple):
    runs: int
    refused: int
    faults: List[str]
    slowest: Tuple[float, str]


def search(seed: int, n_runs: int) -> Tally:
    """Looks for faults in so many runs."""
    rng = random.Random(seed)
    compiled = harness.compile_c(PROGRAM, "-fno-builtin")
    alone = harness.run([compiled])
    runs, refused, slowest = 0, 0, (0.0, "")
    faults: List[str] = []
    while runs < n_runs:
        with tempfile.TemporaryDirectory() as made:
            directory = Path(made)
            words = options(rng)
            if rng.random() < 0.7:
                (directory / "rules").write_bytes(rules(rng))
                words.append(f"--owners={directory / 'rules'}")
            outcome = attempt(compiled, words, directory)
            found = fault(alone, outcome)
            kept = (directory / "rules").read_bytes() if (directory / "rules").exists() else b""
        runs += 1
        refused += outcome.run.returncode != alone.returncode
        slowest = max(slowest, (outcome.seconds, f"{seed}-{runs}"))
        if found:
            faults.append(f"{seed}-{runs}: {words}, rules {kept[:300]!r}: {found}"[:1500])
    return Tally(runs, refused, faults, slowest)


def main() -> int:
    parser = searching.counted_parser(__doc__, 100)
    arguments = parser.parse_args()
    tally = search(arguments.seed, arguments.runs)
    print(f"seed {arguments.seed}: {tally.runs} runs, {tally.refused} refused, {len(tally.faults)} faults")
    print(f"slowest: {tally.slowest[0]:.2f} s, {tally.slowest[1]}")
    return searching.ended(tally.faults)


if __name__ == "__main__":
    sys.exit(main())
