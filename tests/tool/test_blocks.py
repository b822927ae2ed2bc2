# SPDX-License-Identifier: GPL-2.0-or-later
"""What became of the blocks: temporaries, leaks, and the records of large ones."""

import hashlib
import random
import subprocess
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

import pytest

from jmassif.model.run import Profile
from tests.harness import ROOT, compile_c
from tests.tool.programs import functions, run_both


def profile_of(text: str, *options: str) -> Profile:
    return run_both([compile_c(text, "-fno-builtin", "-pthread", "-w")], *options).profile


def temporaries(profile: Profile) -> Dict[str, Tuple[int, int]]:
    """By innermost function: temporaries, and blocks in all."""
    found: Dict[str, Tuple[int, int]] = {}
    for account, counts in profile.counts().items():
        node = profile.accounts[account].node
        if profile.accounts[account].kind == "heap":
            brief, in_all = found.get(functions(profile, node)[0], (0, 0))
            found[functions(profile, node)[0]] = (brief + counts.temporaries, in_all + counts.blocks)
    return found


def test_a_temporary_is_freed_before_its_thread_allocates_again() -> None:
    text = """
    #include <stdlib.h>
    static void temporary(void) { free(malloc(10)); }
    static void two(void) { char *p = malloc(10), *q = malloc(10); free(p); free(q); }
    static void long_lived(void) { char *p = malloc(10); temporary(); free(p); }
    static void resized(void) { free(realloc(malloc(10), 1000)); }
    int main(void)
    {
        for (int i = 0; i < 7; i++) {
            temporary();
            two();
            long_lived();
            resized();
        }
        return 0;
    }
    """
    found = temporaries(profile_of(text))
    assert found["temporary"] == (14, 14)
    # The second of the two is freed after the first was, but nothing was allocated in between.
    assert found["two"] == (7, 14)
    assert found["long_lived"] == (0, 7)
    assert found["resized"] == (7, 14)


def test_another_threads_allocations_do_not_matter() -> None:
    text = """
    #include <pthread.h>
    #include <stdlib.h>
    static pthread_barrier_t barrier;
    static void meet(void) { pthread_barrier_wait(&barrier); }
    static void *interferes(void *unused)
    {
        for (int i = 0; i < 5; i++) {
            meet();
            char *p = malloc(10), *q = malloc(20);
            free(p);
            free(q);
            meet();
        }
        return unused;
    }
    static void temporary(void) { char *p = malloc(10); meet(); meet(); free(p); }
    int main(void)
    {
        pthread_t thread;
        pthread_barrier_init(&barrier, NULL, 2);
        pthread_create(&thread, NULL, interferes, NULL);
        for (int i = 0; i < 5; i++)
            temporary();
        pthread_join(thread, NULL);
        return 0;
    }
    """
    assert temporaries(profile_of(text))["temporary"] == (5, 5)


def test_leaks_are_what_is_live_at_the_end_by_stack() -> None:
    text = """
    #include <stdlib.h>
    static void *make(size_t n) { return malloc(n); }
    static void forgets(void) { for (int i = 0; i < 3; i++) make(100); }
    static void remembers(void) { for (int i = 0; i < 3; i++) free(make(100)); }
    static void half(void) { for (int i = 0; i < 10; i++) { void *p = make(50); if (i % 2) free(p); } }
    int main(void) { forgets(); remembers(); half(); return 0; }
    """
    profile = profile_of(text)
    live = {
        tuple(functions(profile, profile.accounts[account].node)): held
        for account, held in profile.composition(len(profile.snapshots) - 1).items()
        if profile.accounts[account].kind == "heap"
    }
    assert live == {("make", "forgets", "main"): (300, 3), ("make", "half", "main"): (250, 5)}


# ---- records of single blocks -----------------------------------------------------------------


class Block(NamedTuple):
    function: str
    size: int
    is_freed: bool


def blocks(profile: Profile) -> List[Block]:
    """In the order of their allocation. Every end must be that of a block that lives."""
    rows = profile.blocks
    found: List[Block] = []
    live: Dict[int, int] = {}
    ends = set(profile.frees)
    last_time = 0
    for row in range(len(rows) // 4):
        time, address, size, account = rows[4 * row : 4 * row + 4]
        assert time >= last_time
        last_time = time
        if row in ends:
            index = live.pop(address)
            found[index] = found[index]._replace(is_freed=True)
        else:
            assert address not in live
            live[address] = len(found)
            found.append(Block(functions(profile, profile.accounts[account].node)[0], size, False))
    return found


LARGE = """
#include <stdlib.h>
static char *kept(size_t n) { return malloc(n); }
static void brief(size_t n) { free(malloc(n)); }
static char *grown(size_t n) { return realloc(malloc(n), 2 * n); }
static char *shrunk(size_t n) { return realloc(malloc(n), n / 2); }
int main(void)
{
    kept(100000);
    kept(65536);
    kept(65535);
    brief(70000);
    brief(60000);
    free(grown(50000));
    grown(80000);
    free(shrunk(90000));
    free(shrunk(200000));
    free(calloc(100, 1000));
    void *p;
    posix_memalign(&p, 4096, 66000);
    free(p);
    return 0;
}
"""


def test_large_blocks_are_recorded_one_by_one() -> None:
    assert blocks(profile_of(LARGE)) == [
        Block("kept", 100000, False),
        Block("kept", 65536, False),
        Block("brief", 70000, True),
        Block("grown", 100000, True),
        Block("grown", 80000, True),
        Block("grown", 160000, False),
        Block("shrunk", 90000, True),
        Block("shrunk", 200000, True),
        Block("shrunk", 100000, True),
        Block("main", 100000, True),
        Block("main", 66000, True),
    ]


def test_the_threshold_may_be_set() -> None:
    assert [block.size for block in blocks(profile_of(LARGE, "--large=150KiB"))] == [160000, 200000]
    assert len(blocks(profile_of(LARGE, "--large=0"))) == 15


def test_new_ones_are_told_apart_by_their_times() -> None:
    text = """
    #include <stdlib.h>
    int main(void)
    {
        char *a = malloc(100000), *b = malloc(200000);
        free(a);
        a = malloc(100000);
        free(b);
        free(a);
        return 0;
    }
    """
    profile = profile_of(text, "--time-unit=B", "--heap-admin=0")
    times = profile.blocks[0::4]
    assert [profile.blocks[4 * row + 2] for row in range(6)] == [100000, 200000, 0, 100000, 0, 0]
    assert list(times) == sorted(times) and len(set(times)) == 6


def test_too_many_records_double_the_threshold() -> None:
    text = """
    #include <stdio.h>
    #include <stdlib.h>
    int main(void)
    {
        char *kept = malloc(100000), *larger = malloc(10000000);
        for (int i = 0; i < 20000; i++)
            free(malloc(70000));
        free(kept);
        free(malloc(20000000));
        free(larger);
        puts("done");
        return 0;
    }
    """
    profile = profile_of(text)
    thresholds = [n_bytes for _, n_bytes in profile.block_thresholds]
    assert thresholds[0] == 128 * 1024
    found = blocks(profile)
    assert profile.end is not None
    assert len(found) <= 2001 * (1 + profile.end.time // 1000) < 20000  # two thousand a second
    # What was recorded is told to its end, also if it is smaller than what is recorded now.
    assert [block for block in found if block.size != 70000] == [
        Block("main", 100000, True),
        Block("main", 10000000, True),
        Block("main", 20000000, True),
    ]
    assert all(block.is_freed for block in found)
    # Only the records are fewer.
    assert temporaries(profile)["main"] == (20001, 20003)


# ---- the table of blocks ---------------------------------------------------------------------

HUGE, MANY = 1 << 30, 1 << 25  # the first size and the first account that do not fit into eight bytes


def table_driver() -> Path:
    sources = [ROOT / "jmassif" / name for name in ("heap/blocks.c", "base/map.c")]
    texts = "".join(path.read_text() for path in sorted((ROOT / "jmassif").glob("*/*.[ch]")))
    flags = [f"-I{ROOT / 'jmassif'}", f"-DSOURCES={hashlib.sha256(texts.encode()).hexdigest()}", *map(str, sources)]
    return compile_c(
        Path(__file__).with_name("programs") / "blocks_driver.c", "-O1", "-w", "-fsanitize=address", *flags
    )


class Entry(NamedTuple):
    bytes: int
    account: int
    has_record: int
    is_custom: int


@pytest.mark.parametrize("has_odd", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_the_table_of_blocks_agrees_with_a_dictionary(seed: int, has_odd: bool) -> None:
    """Blocks lie close together or far apart and have all sizes; some have odd addresses."""
    r = random.Random(seed)
    steps = (8, 16, 4096, 1) if has_odd else (8, 16, 4096)
    sizes = (1000, 100000, HUGE, HUGE + 1, 1 << 40) if has_odd else (1000, 100000, HUGE)
    accounts = (0, 1, 7, MANY - 1, MANY) if has_odd else (0, 1, 7, MANY - 1)
    live: Dict[int, Entry] = {}
    places = [base + r.choice(steps) * r.randrange(500) for base in range(0, 1 << 44, 1 << 40) for _ in range(250)]
    calls: List[str] = []
    expected: List[str] = []
    for step in range(30000):
        address = r.choice(places)
        is_custom = int(r.random() < 0.1)
        size = r.choice(sizes)
        n_bytes = r.choice((size - 1, r.randrange(size)))
        block = Entry(n_bytes, r.choice(accounts), step & 1, is_custom)
        call = r.choices("atfe", (6 if len(live) < r.choice((10, 1000)) else 3, 5, 3, 0.2))[0]
        calls.append(f"{call} {address} {is_custom} {block.bytes} {block.account} {block.has_record}")
        if call == "e":
            found = [
                (at, b.bytes)
                for at, b in live.items()
                if b.is_custom == is_custom and b.bytes >= block.bytes and (b.account or is_custom)
            ]
            expected.append(str(sorted(found)))
            continue
        was = live.get(address)
        if call == "t":
            was = live.pop(address) if was and was.is_custom == is_custom else None
        if call == "a":
            live[address] = block
        expected.append(" ".join(map(str, was)) if was else "none")
    printed = subprocess.run(
        [table_driver()], input="\n".join(calls), stdout=subprocess.PIPE, check=True, universal_newlines=True
    ).stdout.splitlines()
    for call, line, should in zip(calls, printed, expected):
        if call[0] == "e":
            words = list(map(int, line.split()))
            line = str(sorted(zip(words[::2], words[1::2])))
        assert line == should, call
    assert len(printed) == len(expected)
