// SPDX-License-Identifier: GPL-2.0-or-later
//
// A process and three children that it forks, one of them before a range that two marks of the parent make and two in
// it. Each prints, of each function, the bytes that it has itself allocated and held at the first mark, those that are
// new at the second, those that are freed by then, and those that only passed. What the first child inherits it partly
// frees, in the range and before it: that is none of its own. A child sets a mark when it has done its part and says
// so, and nobody else does anything within 20 ms of a mark, so that whatever was done lies clearly on one side of it.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jmassif.h"

#define NOINLINE __attribute__((noinline))
enum { N = 24 };

typedef struct {
    unsigned long before, fresh, freed, passing;
} Truth;

typedef struct {
    Truth pool, comes, passes;
} Truths;

static Truths truth;
static void *pools[2][N];

static NOINLINE void *pool(size_t bytes)
{
    return malloc(bytes);
}

static NOINLINE void *comes(size_t bytes)
{
    return malloc(bytes);
}

static NOINLINE void passes(size_t bytes)
{
    void *volatile block = malloc(bytes);
    free(block);
    truth.passes.passing += bytes;
}

static size_t pool_bytes(int round, int i)
{
    return 101 + 7 * i + 1009 * round;
}

static void let_go(int round, int i)
{
    free(pools[round][i]);
    pools[round][i] = NULL;
}

static void print(void)
{
    const char *names[] = {"pool", "comes", "passes"};
    const Truth *all[] = {&truth.pool, &truth.comes, &truth.passes};
    for (int i = 0; i < 3; i++)
        dprintf(1, "%d %s %lu %lu %lu %lu\n", (int)getpid(), names[i], all[i]->before, all[i]->fresh, all[i]->freed,
                all[i]->passing);
}

static void wait_for(int from)
{
    char byte;
    if (read(from, &byte, 1) != 1)
        abort();
}

static void say(int to)
{
    if (write(to, "x", 1) != 1)
        abort();
}

// Of the child from before the range: in it, it frees of what it has inherited, and of its own.
static void changes_in_first(void)
{
    for (int i = 8; i < 16; i++)
        let_go(0, i);
    for (int i = 0; i < N; i += 3) {
        truth.pool.freed += pool_bytes(1, i);
        let_go(1, i);
    }
    for (int i = 0; i < 5; i++) {
        truth.comes.fresh += 3001 + i;
        comes(3001 + i);
        passes(701 + i);
    }
}

static void come_and_go(int n, size_t bytes, int ends)
{
    for (int i = 0; i < n; i++) {
        void *block = comes(bytes + i);
        if (i % 2)
            free(block);
        if (i % 2 || ends)
            truth.comes.passing += bytes + i;
        else
            truth.comes.fresh += bytes + i;
        passes(401 + i);
    }
}

// One that the parent forks in the range: it ends in it, or waits until the range is over.
static void child_of_range(int to, int from, int ends)
{
    truth = (Truths){0};
    for (int i = 16; i < 20; i++)
        let_go(0, i);
    come_and_go(9, ends ? 5003 : 6007, ends);
    JMASSIF_MARK("done");
    print();
    say(to);
    if (!ends)
        wait_for(from);
    _exit(0);
}

static void before_the_range(int is_child)
{
    for (int i = 0; i < N; i++)
        truth.pool.before += is_child ? pool_bytes(1, i) : pool_bytes(0, i) + pool_bytes(1, i);
    if (is_child)
        for (int i = 0; i < 4; i++)
            let_go(0, i);
}

int main(void)
{
    int up[2], down[2], is_child = 0;
    if (pipe(up) || pipe(down))
        return 1;
    for (int round = 0; round < 2; round++) {
        // In the second round by parent and child, from the same place.
        for (int i = 0; i < N; i++)
            pools[round][i] = pool(pool_bytes(round, i));
        if (!round)
            is_child = !fork();
    }
    before_the_range(is_child);
    if (is_child) {
        JMASSIF_MARK("ready");
        say(up[1]);
        wait_for(down[0]);
        changes_in_first();
        JMASSIF_MARK("changed");
        print();
        say(up[1]);
        wait_for(down[0]);
        _exit(0);
    }
    wait_for(up[0]);
    usleep(20000);
    JMASSIF_MARK("first");
    usleep(20000);
    say(down[1]);
    wait_for(up[0]);
    for (int i = 0; i < N; i += 4) {
        truth.pool.freed += pool_bytes(0, i);
        let_go(0, i);
    }
    Truths mine = truth;
    pid_t child = fork();
    if (!child)
        child_of_range(up[1], down[0], 1);
    waitpid(child, NULL, 0);
    wait_for(up[0]);
    if (!fork())
        child_of_range(up[1], down[0], 0);
    wait_for(up[0]);
    truth = mine;
    come_and_go(7, 9001, 0);
    usleep(20000);
    JMASSIF_MARK("second");
    usleep(20000);
    print();
    say(down[1]);
    say(down[1]);
    while (wait(NULL) > 0)
        ;
    return 0;
}
