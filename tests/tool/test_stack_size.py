# SPDX-License-Identifier: GPL-2.0-or-later
"""--stacks=yes: the size of the threads' stacks, in a kind of its own."""

from typing import List

from tests.harness import compile_c, massif
from tests.tool.programs import at_peak, live_at, program, run_both

RECURSES = """
#include <stdio.h>
#include <stdlib.h>
static volatile int sink;
static int deep(int n)
{
    char room[1000];
    room[n % 1000] = (char)n;
    sink = room[5];
    return n ? deep(n - 1) + room[1] : 0;
}
int main(void)
{
    for (int i = 0; i < 100; i++)
        deep(i);
    void *p = malloc(100000);
    deep(1000);
    free(p);
    puts("done");
    return 0;
}
"""

# A frame is left without returning, a signal's handler has a stack of its own, and a large array is on none but main's.
LEAVES = """
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static jmp_buf out;
static char own_stack[65536];
static volatile int handled;
static void handler(int number)
{
    volatile char room[5000];
    room[number] = 1;
    handled += room[number];
}
static void dive(int n)
{
    volatile char room[2000];
    room[n] = 1;
    if (n == 0)
        longjmp(out, 1);
    dive(n - 1);
    room[n]++;
}
int main(void)
{
    stack_t alternate = {.ss_sp = own_stack, .ss_size = sizeof own_stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 50; i++) {
        if (!setjmp(out))
            dive(20);
        raise(SIGUSR1);
    }
    volatile char large[300000];
    memset((char *)large, 1, sizeof large);
    printf("%d handled\\n", handled);
    return large[77] != 1;
}
"""

OPTIONS = ["--stacks=yes"]


def test_the_stacks_at_the_peak_are_massifs() -> None:
    compiled = compile_c(RECURSES, "-fno-builtin")
    profile = run_both([compiled], *OPTIONS).profile
    expected = massif([compiled], ["--peak-inaccuracy=0.0", *OPTIONS])
    assert at_peak(profile, "stack") == expected.stacks > 1000 * 1000
    assert at_peak(profile, "heap") == expected.heap == 100000


def test_jumps_and_changes_of_the_stack_leave_nothing_behind() -> None:
    """massif cannot be asked: it ends this run with an assertion."""
    profile = run_both([compile_c(LEAVES, "-fno-builtin")], *OPTIONS).profile
    below_main = 5000
    assert 300000 + 21 * 2000 <= at_peak(profile, "stack") <= 300000 + 21 * 2100 + below_main
    assert live_at(profile, -1, "stack") < below_main


def test_threads_have_stacks_too() -> None:
    compiled = program("threads.c", "-pthread")
    profile = run_both([compiled], *OPTIONS).profile
    expected = massif([compiled], ["--peak-inaccuracy=0.0", *OPTIONS])
    assert at_peak(profile, "heap") == expected.heap
    # Where the other threads stand in their calls when the heap is largest is the scheduler's choice.
    assert abs(at_peak(profile, "stack") - expected.stacks) < 8192


def test_by_default_stacks_are_not_followed() -> None:
    profile = run_both([compile_c(RECURSES, "-fno-builtin")]).profile
    kinds: List[str] = [profile.accounts[account].kind for account in profile.counts()]
    assert "stack" not in kinds
