# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of the recorder share: their programs and libraries, compiled, and sums over a profile."""

import itertools
import os
import re
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

from jmassif.model.records import HOST_KINDS, Account, LiveBytesByAccount
from jmassif.model.run import Profile
from tests import harness
from tests.reporter.commands import jm_print, jmassif

DIRECTORY = Path(__file__).parent / "programs"


def program(name: str, *flags: str) -> Path:
    """Compiles programs/NAME."""
    return harness.compile_c(DIRECTORY / name, *flags)


def library(source: harness.Argument, soname: str, *flags: str) -> Path:
    """Compiles a shared library. The path's name is the soname, so that the loader finds it in its directory."""
    compiled = harness.compile_c(source, "-shared", "-fpic", f"-Wl,-soname,{soname}", *flags)
    named = compiled.with_name(soname)
    with harness.lock("library"):
        if not named.exists():
            named.symlink_to(compiled.name)
    return named


def linked_to(*libraries: Path) -> List[str]:
    """The flags that link a program to libraries, wherever it is started."""
    return [str(lib) for lib in libraries] + [f"-Wl,-rpath,{lib.parent}" for lib in libraries]


def sum_bytes(profile: Profile, held: LiveBytesByAccount, chosen: Callable[[Account], bool]) -> int:
    return sum(n_bytes for account, (n_bytes, _) in held.items() if chosen(profile.accounts[account]))


def at_peak(profile: Profile, kind: str) -> int:
    """Bytes of a kind at the peak of the total."""
    return sum_bytes(profile, profile.peak_composition("total"), lambda account: account.kind == kind)


def own_memory(recording: harness.Recording) -> Dict[str, int]:
    """Bytes of the recorder by cost centre, with --profile-heap=yes. They are said again whenever the arena has grown."""
    said = recording.stderr[recording.stderr.rindex('Arena "core"') :]
    return {
        centre: int(n_bytes.replace(",", ""))
        for n_bytes, centre in re.findall(r"^ +([\d,]+) in +[\d,]+: (jm\.\S+)", said, re.MULTILINE)
    }


# What the core's allocator gives with a block, because it is too small for a block of its own: less than this. In
# massif's runs any block may have got some, in ours only those that are not small.
LARGEST_REST = 48


def is_massifs_extra(profile: Profile, expected: int, peak: str = "total") -> bool:
    """The overhead at a peak is massif's but for the rests."""
    held = profile.peak_composition(peak)
    overhead = sum_bytes(profile, held, lambda account: account.kind == "heap-overhead")
    blocks = sum(n for account, (_, n) in held.items() if profile.accounts[account].kind == "heap")
    return expected - LARGEST_REST * blocks <= overhead <= expected


def live_at(profile: Profile, snapshot: int, kind: str = "heap") -> int:
    """Bytes of a kind at the snapshot with this index (-1: the last)."""
    index = snapshot % len(profile.snapshots)
    return sum_bytes(profile, profile.composition(index), lambda account: account.kind == kind)


def ends_for_lack_of_memory(profile: Profile) -> bool:
    """Whether it was cut off after it had told what was held for lack of memory. Another snapshot may have been due in the
    moment that was left."""
    return "low-memory" in [snapshot.reason for snapshot in profile.snapshots[-3:]] and not profile.is_complete


def functions(profile: Profile, node: int) -> List[str]:
    """The functions of a stack, innermost first."""
    return [profile.frame(frame).function for frame in profile.stack(node)]


def held_below(profile: Profile, function: str) -> int:
    """Bytes that stacks through a function held at the host's peak; it may be given without what its line adds to its name."""
    return sum(
        n_bytes
        for account, (n_bytes, _) in profile.peak_composition("host").items()
        if any(frame.startswith(function) for frame in functions(profile, profile.accounts[account].node))
    )


def heap_stacks(profile: Profile) -> Dict[Tuple[str, ...], int]:
    """By stack (function names, innermost first): the heap bytes it allocated in all."""
    sums: Dict[Tuple[str, ...], int] = {}
    for account_id, counts in profile.counts().items():
        account = profile.accounts[account_id]
        if account.kind == "heap":
            stack = tuple(functions(profile, account.node))
            sums[stack] = sums.get(stack, 0) + counts.bytes
    return sums


def stack_of(profile: Profile, innermost: str) -> Tuple[str, ...]:
    """The one stack of heap memory whose innermost function has this name."""
    found = [stack for stack in heap_stacks(profile) if stack and stack[0] == innermost]
    assert len(found) == 1, f"{len(found)} stacks end in {innermost}: {sorted(heap_stacks(profile))}"
    return found[0]


def print_report(trace: Path, *options: str) -> harness.Run:
    """jm_print, in this process."""
    return harness.Run(*jm_print(*options, trace))


def check(trace: Path, *budgets: str) -> harness.Run:
    """jmassif check, likewise."""
    return harness.Run(*jmassif("check", *(f"--max={budget}" for budget in budgets), trace))


def assert_readable(trace: Path) -> None:
    """The reporter reads it, and every sum in it holds (the reader checks)."""
    done = print_report(trace)
    assert done.returncode == 0, done.stderr


def host_total(profile: Profile, snapshot: int) -> int:
    return sum(profile.snapshots[snapshot].by_kind.get(kind, 0) for kind in HOST_KINDS)


def run_both(command: Sequence[harness.Argument], *options: str) -> "harness.Recording":
    """Records a program, and asserts that it prints and returns what it does without us."""
    native = harness.run(command)
    recording = harness.record(command, options)
    assert recording.stdout == native.stdout, recording.stderr
    assert recording.returncode == native.returncode, recording.stderr
    return recording


def start(out_file: harness.Argument, *words: harness.Argument, **how: Any) -> "subprocess.Popen[bytes]":
    """Begins to record, for tests that do something meanwhile: options, then the program. What it prints comes by a pipe."""
    options = list(itertools.takewhile(lambda word: str(word).startswith("-"), words))
    recorder, env = harness.recorder(out_file, [str(option) for option in options])
    how["env"] = {**os.environ, **env}
    how.setdefault("stdout", subprocess.PIPE)
    return subprocess.Popen([str(word) for word in (*recorder, *words[len(options) :])], **how)


def finish(process: "subprocess.Popen[bytes]") -> harness.Run:
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    return harness.Run(process.returncode, out.decode(), (err or b"").decode())
