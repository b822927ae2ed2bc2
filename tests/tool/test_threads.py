# SPDX-License-Identifier: GPL-2.0-or-later
"""--threads=yes: what each thread has allocated is what the program itself has counted, under the thread's name."""

import re
from collections import Counter
from typing import Dict, Tuple

import pytest

from jmassif.attribution.views import Threads
from jmassif.model.run import Profile
from tests.harness import compile_c, record
from tests.tool.programs import assert_readable, functions, print_report, program

THREADS = "--threads=yes"


def by_thread(profile: Profile, through: str) -> Dict[str, Tuple[int, int]]:
    """By name: heap bytes that were allocated in all, and are held at the end, by stacks with a function."""
    threads, held = Threads(profile), profile.composition(len(profile.snapshots) - 1)
    sums: Dict[str, Tuple[int, int]] = {}
    for account, counts in profile.counts().items():
        node, kind, _ = profile.accounts[account]
        if kind == "heap" and through in functions(profile, node):
            name = threads.name(threads.numbers[account])
            all_, live = sums.get(name, (0, 0))
            sums[name] = all_ + counts.bytes, live + held.get(account, (0, 0))[0]
    return sums


def names(profile: Profile) -> "Counter[str]":
    """Of all threads that began, how many have each."""
    return Counter(profile.thread(frame[4]) for frame in profile.frames.values() if frame[0] == "t")


@pytest.mark.parametrize("pages", ["no", "yes"])
def test_a_hundred_named_threads_have_what_they_have_counted(pages: str) -> None:
    recording = record([program("named_threads.c", "-pthread", "-fno-builtin")], [THREADS, f"--pages={pages}"])
    told: Dict[str, Tuple[int, int]] = {}
    for name, allocated, held in re.findall(r"(.*)\t(\d+)\t(\d+)\n", recording.stdout):
        all_, live = told.get(name, (0, 0))
        told[name] = all_ + int(allocated), live + int(held)
    assert len(told) == 91 and by_thread(recording.profile, "ask") == told
    counted = names(recording.profile)
    assert counted.pop("main thread") == 1 and counted.pop("named_threads") == 10
    assert set(counted.values()) == {1} and len(counted) == 90
    assert_readable(recording.trace)


def test_a_team_of_openmp_has_what_it_has_counted() -> None:
    recording = record([program("openmp.c", "-fopenmp", "-fno-builtin")], [THREADS], status=0)
    main, *others = [(int(n), int(n)) for n in recording.stdout.split()]
    found = by_thread(recording.profile, "main._omp_fn.0")
    assert found.pop("main thread") == main
    assert sorted(found.values()) == sorted(others) and set(found) == {"thread 2", "thread 3", "thread 4"}


FORKS = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static void *ask(size_t bytes) { return malloc(bytes); }
static void *later(void *argument)
{
    prctl(PR_SET_NAME, "later");
    return ask(*(int *)argument);
}
static void new_thread(int bytes)
{
    pthread_t thread;
    pthread_create(&thread, NULL, later, &bytes);
    pthread_join(thread, NULL);
}
static void *forks(void *argument)
{
    prctl(PR_SET_NAME, "forks");
    ask(1000);
    pid_t child = fork();
    ask(child ? 20000 : 300000);
    new_thread(child ? 4000000 : 5000000);
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return NULL;
}
int main(void)
{
    pthread_t thread;
    ask(7);
    pthread_create(&thread, NULL, forks, NULL);
    pthread_join(thread, NULL);
    return 0;
}
"""


def test_the_thread_that_forks_goes_on_in_the_child_and_others_are_new() -> None:
    recording = record([compile_c(FORKS, "-pthread", "-fno-builtin")], [THREADS])
    profiles = [recording.load(trace) for trace in recording.traces]
    parent, child = sorted(profiles, key=lambda profile: "forked-from" in profile.manifest)
    assert by_thread(parent, "ask") == {
        "main thread": (7, 7),
        "forks": (21000, 21000),
        "later": (4000000, 4000000),
    }
    held = {name: live for name, (_, live) in by_thread(child, "ask").items()}
    assert held == {"main thread": 7, "forks": 301000, "later": 5000000}


MANY = """
#include <pthread.h>
#include <stdlib.h>
static void *work(void *argument) { return malloc((size_t)argument); }
int main(void)
{
    for (size_t i = 1; i <= 10050; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)i))
            abort();
        pthread_join(thread, NULL);
    }
    return 0;
}
"""


def test_threads_beyond_the_first_ten_thousand_are_not_told_apart() -> None:
    recording = record([compile_c(MANY, "-pthread", "-fno-builtin")], [THREADS])
    found = by_thread(recording.profile, "work")
    assert found["thread 2"] == (1, 1) and found["thread 10000"] == (9999, 9999)
    beyond = sum(range(10000, 10051))
    assert found["further threads"] == (beyond, beyond) and len(found) == 10000


def test_nothing_of_threads_is_in_a_trace_that_was_not_asked_for_it() -> None:
    recording = record([program("named_threads.c", "-pthread", "-fno-builtin")])
    assert not re.search(rb"^(T|f \d+ t) ", recording.trace.read_bytes(), re.MULTILINE)
    assert not recording.profile.has_threads
    done = print_report(recording.trace, "--by=thread")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert "record it with jmassif --threads=yes" in done.stderr
