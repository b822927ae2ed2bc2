# SPDX-License-Identifier: GPL-2.0-or-later
"""Hands changed traces to every command and format, and holds the commands to what they promise of any input:

exit status 0, or 2 with one line (check and diff may also end with 1), in bounded time and memory, and nothing in what they
print that a terminal, a spreadsheet or a browser would act on.

    python3 -m tests.fuzz.traces [--seed=N] [--runs=N] [--keep=DIRECTORY]

The same seed makes the same inputs. Each run is a forked child, which spares it Python's start.
"""

import csv
import io
import os
import random
import resource
import signal
import sys
import tempfile
from pathlib import Path
from typing import Callable, List, NamedTuple, Optional, Tuple

from jmassif.cli.report import FORMATS
from jmassif.cli.main import main as jmassif
from jmassif.html import page as html
from jmassif.render.view import BY, FOLDS, FormatError
from tests.fuzz import searching
from tests.fuzz.mutations import golden, mutant

MOST_SECONDS = 10
MOST_BYTES = 300 << 20
_ADDRESS_SPACE = 3 << 30  # what is beyond ends with a MemoryError instead of this machine


class Outcome(NamedTuple):
    status: int  # negative: the signal
    seconds: float  # of the processor
    peak_bytes: int  # beyond what this process has
    out: bytes
    err: str


def _child(command: Callable[[List[str]], int], arguments: List[str], out: str, err: str) -> None:
    """Never returns."""
    status = 99
    try:
        for descriptor, path in ((1, out), (2, err)):
            opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(opened, descriptor)
        sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), encoding="utf-8", errors="backslashreplace")
        sys.stderr = io.TextIOWrapper(open(2, "wb", closefd=False), encoding="utf-8", errors="backslashreplace")
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CPU, (3 * MOST_SECONDS, 3 * MOST_SECONDS))
        status = command(arguments)
        sys.stdout.flush()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 98
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(status)


def attempt(arguments: List[str], directory: Path, command: Callable[[List[str]], int] = jmassif) -> Outcome:
    """Run a subcommand in a child of its own."""
    out, err = directory / "out", directory / "err"
    # A child begins with its parent's pages.
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    child = os.fork()
    if not child:
        _child(command, arguments, str(out), str(err))
    _, ended, usage = os.wait4(child, 0)
    status = -os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended)
    seconds = usage.ru_utime + usage.ru_stime
    text = err.read_bytes().decode("utf-8", "replace")
    return Outcome(status, seconds, max(0, (usage.ru_maxrss << 10) - before), out.read_bytes(), text)


def _commands(trace: str, other: str, directory: Path, rng: random.Random) -> List[List[str]]:
    """Some of the ways to ask, reports by chance: all of them would take a second for each trace."""
    found: List[List[str]] = []
    has_page = True
    try:
        html.read_assets()
    except FormatError:
        has_page = False
    for name in rng.sample(sorted(FORMATS), 4):
        format_ = FORMATS[name]
        words = [f"--format={name}"]
        if name == "html" and not has_page:
            continue
        if format_.by and rng.random() < 0.6:
            words.append(f"--by={rng.choice(format_.by)}")
        if "fold" in format_.options and rng.random() < 0.6:
            words.append(f"--fold={rng.choice(FOLDS)}")
        if "snapshot" in format_.options and rng.random() < 0.4:
            words.append(f"--snapshot={rng.choice(('end', 'last', '3', 'peak-host', 'nonsense'))}")
        found.append(["report", *words, trace])
    found.append(["report", f"--by={rng.choice(BY)}", trace])
    if rng.random() < 0.3:
        found.append(["report", rng.choice(("--segments", "--segments=1")), trace])
    if rng.random() < 0.3:
        found.append(["report", trace, other])
    form = rng.choice(("text", "markdown", "json"))
    found.append(["diff", f"--format={form}", trace, other])
    found.append(["check", "--max", "peak.total=1GiB", trace])
    return found


def _is_harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


def fault(arguments: List[str], outcome: Outcome) -> Optional[str]:
    """What the command did that none may do; None if nothing."""
    allowed = (0, 2) if arguments[0] == "report" else (0, 1, 2)
    if outcome.status not in allowed:
        return f"exit status {outcome.status}"
    if outcome.seconds > MOST_SECONDS:
        return f"{outcome.seconds:.1f} s"
    if outcome.peak_bytes > MOST_BYTES:
        return f"{outcome.peak_bytes >> 20} MiB"
    if "Traceback" in outcome.err or not _is_harmless(outcome.err):
        return "not one plain line on standard error"
    lines = outcome.err.splitlines()
    if outcome.status == 2 and not (lines and lines[-1].startswith(f"jmassif {arguments[0]}: ") and not outcome.out):
        return "status 2 without one line that says why"
    form = next((word[9:] for word in arguments if word.startswith("--format=")), "text")
    if FORMATS.get(form, FORMATS["text"]).content != "text":
        return None
    text = outcome.out.decode("utf-8", "replace")
    if form in ("text", "markdown") and not _is_harmless(text):
        return "characters that a terminal acts on"
    if form == "csv":
        for row in csv.reader(io.StringIO(text)):
            for cell in row:
                if cell[:1] in ("=", "@", "+", "-", "\t") and not cell.lstrip("+-").replace(".", "").isdigit():
                    return f"a formula in a spreadsheet: {cell[:40]!r}"
    return None


class Tally(NamedTuple):
    runs: int
    faults: List[str]
    slowest: Tuple[float, str]
    largest: Tuple[int, str]


def search(seed: int, n_runs: int, keep: Path) -> Tally:
    """Looks for faults in so many changed traces. Inputs that show one are kept in a directory."""
    rng = random.Random(seed)
    originals = golden()
    faults: List[str] = []
    runs, slowest, largest = 0, (0.0, ""), (0, "")
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        other = directory / "other"
        other.write_bytes(b"".join(originals[0]))
        for number in range(1, n_runs + 1):
            trace = directory / "trace"
            trace.write_bytes(mutant(originals, rng))
            for arguments in _commands(str(trace), str(other), directory, rng):
                outcome = attempt(arguments, directory)
                runs += 1
                told = f"{seed}-{number}: {' '.join(arguments)}"
                slowest = max(slowest, (outcome.seconds, told))
                largest = max(largest, (outcome.peak_bytes, told))
                found = fault(arguments, outcome)
                if found:
                    keep.mkdir(parents=True, exist_ok=True)
                    kept = keep / f"{seed}-{number}.jmassif"
                    kept.write_bytes(trace.read_bytes())
                    last = outcome.err.strip().splitlines()[-1:] or [""]
                    faults.append(f"{kept}: {' '.join(arguments[:-1])}: {found}: {last[0][:300]}")
    return Tally(runs, faults, slowest, largest)


def main() -> int:
    parser = searching.counted_parser(__doc__, 100)
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"))
    arguments = parser.parse_args()
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    tally = search(arguments.seed, arguments.runs, arguments.keep)
    print(f"seed {arguments.seed}: {tally.runs} runs, {len(tally.faults)} faults")
    print(f"slowest: {tally.slowest[0]:.2f} s, {tally.slowest[1]}")
    print(f"largest: {tally.largest[0] >> 20} MiB, {tally.largest[1]}")
    return searching.ended(tally.faults)


if __name__ == "__main__":
    sys.exit(main())
