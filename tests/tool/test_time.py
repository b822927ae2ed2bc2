# SPDX-License-Identifier: GPL-2.0-or-later
"""The clock behind --time-unit, and how often the ledger is told: the number of snapshots grows with the run's logarithm."""

import re
from pathlib import Path
from typing import Dict, List

from jmassif.model.run import Profile
from tests.harness import VALGRIND, compile_c, record, run
from tests.tool.programs import live_at

# Computes, with a few blocks; no system call in between.
COMPUTES = """
#include <stdlib.h>
int main(int argc, char **argv)
{
    volatile unsigned sum = 0;
    char *kept[10];
    for (int i = 0; i < 10; i++) {
        kept[i] = malloc(1000);
        for (unsigned k = 0; k < 300000; k++)
            sum += k ^ (unsigned)argc;
    }
    for (int i = 0; i < 10; i++)
        free(kept[i]);
    return sum == 42;
}
"""

ALLOCATES = """
#include <stdlib.h>
int main(int argc, char **argv)
{
    for (int i = atoi(argv[1]); i > 0; i--)
        free(malloc(500));
    return 0;
}
"""

SLEEPS = """
#include <time.h>
int main(void)
{
    for (int i = 0; i < 400; i++)
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    return 0;
}
"""


def reasons(profile: Profile) -> List[str]:
    return [snapshot.reason for snapshot in profile.snapshots]


def end_time(profile: Profile) -> int:
    assert profile.end is not None
    return profile.end.time


def test_instructions_are_counted_the_same_in_every_run() -> None:
    compiled = compile_c(COMPUTES)
    first = record([compiled], ["--time-unit=i"]).profile
    second = record([compiled], ["--time-unit=i"]).profile
    assert first.time_unit == "i"
    assert end_time(first) == end_time(second) > 10 * 300000
    assert list(first.timeline.time) == list(second.timeline.time)


def test_instructions_are_those_that_callgrind_counts(tmp_path: Path) -> None:
    compiled = compile_c(COMPUTES)
    out_file = tmp_path / "callgrind.out"
    done = run([VALGRIND, "--tool=callgrind", f"--callgrind-out-file={out_file}", compiled])
    assert done.returncode == 0, done.stderr
    total = re.search(r"^(?:totals|summary): (\d+)", out_file.read_text(), re.MULTILINE)
    assert total is not None
    counted = end_time(record([compiled], ["--time-unit=i"]).profile)
    # Start-up differs: here the preload libraries, which callgrind has none of, are loaded as well.
    assert abs(counted - int(total.group(1))) < 0.05 * counted


def test_bytes_are_those_allocated_and_freed() -> None:
    # --heap-admin=0 and sizes without rounding: what is counted is what is asked for.
    text = "#include <stdlib.h>\nint main(void) { void *p = malloc(160); free(malloc(320)); free(p); malloc(64); return 0; }"
    profile = record([compile_c(text, "-fno-builtin")], ["--time-unit=B", "--heap-admin=0"]).profile
    assert end_time(profile) == 2 * 160 + 2 * 320 + 64
    assert profile.peaks["total"].time == 160 + 320


def test_milliseconds_are_those_of_the_wall_clock() -> None:
    profile = record([compile_c(SLEEPS)]).profile
    assert profile.time_unit == "ms"
    assert 800 <= end_time(profile) < 30000


def test_snapshots_grow_with_the_logarithm_of_the_run() -> None:
    compiled = compile_c(ALLOCATES, "-fno-builtin")
    n_snapshots: Dict[int, int] = {}
    n_totals: Dict[int, int] = {}
    for n in (200, 2000, 20000, 200000):
        profile = record([compiled, str(n)], ["--time-unit=B", "--max-snapshots=50"]).profile
        n_snapshots[n] = len(profile.snapshots)
        n_totals[n] = len(profile.timeline.time)
    # The first thousand events have snapshots of their own.
    for n in (20000, 200000):
        assert 40 <= n_snapshots[n] - n_snapshots[n // 10] <= 60
        assert 400 <= n_totals[n] - n_totals[n // 10] <= 700


def test_max_snapshots_is_their_number_per_decade() -> None:
    compiled = compile_c(ALLOCATES, "-fno-builtin")

    def n_in_the_last_decade(most: int) -> int:
        profile = record([compiled, "20000"], ["--time-unit=B", f"--max-snapshots={most}"]).profile
        last = end_time(profile)
        return sum(1 for snapshot in profile.snapshots if snapshot.time > last // 10)

    for most in (10, 100, 500):
        assert 0.8 * most <= n_in_the_last_decade(most) <= 1.3 * most + 2


def test_interval_is_the_least_time_between_snapshots() -> None:
    compiled = compile_c(SLEEPS)

    def times(interval: int) -> List[int]:
        profile = record([compiled], [f"--interval={interval}", "--max-snapshots=1000"]).profile
        return [snapshot.time for snapshot in profile.snapshots if snapshot.reason == "time"]

    for interval in (50, 300):
        found = times(interval)
        assert len(found) >= 2
        assert all(later - earlier >= interval for earlier, later in zip(found, found[1:]))


def test_an_idle_program_is_still_told_about() -> None:
    profile = record([compile_c(SLEEPS)]).profile
    assert reasons(profile)[0] == "start" and reasons(profile)[-1] == "exit"
    assert reasons(profile).count("time") > 20


def test_every_early_event_of_a_short_program_can_be_seen() -> None:
    text = "#include <stdlib.h>\nint main(void) { for (int i = 0; i < 9; i++) malloc(100); return 0; }"
    profile = record([compile_c(text, "-fno-builtin")]).profile
    seen = {live_at(profile, index) for index in range(len(profile.snapshots))}
    assert {100 * i for i in range(10)} <= seen


FORBIDS = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) != 0)
        return 77; /* another machine's */
    pid_t child = fork();
    for (int i = 0; i < 20; i++) {
        for (int j = 0; j < 1000; j++)
            free(malloc(100000));
        usleep(2000);
    }
    int status = 0;
    if (child && (wait(&status) != child || status))
        return 9;
    puts("all the same");
    return child ? 7 : 0;
}
"""


def test_a_program_may_forbid_the_processors_counter() -> None:
    program = compile_c(FORBIDS, "-fno-builtin")
    recording = record([program])
    assert (recording.returncode, recording.stdout) == (7, 2 * "all the same\n"), recording.stderr
    assert len(recording.traces) == 2
    for trace in recording.traces:
        profile = recording.load(trace)
        assert end_time(profile) >= 20
        assert [snapshot.time for snapshot in profile.snapshots] == sorted(
            snapshot.time for snapshot in profile.snapshots
        )
