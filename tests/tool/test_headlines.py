# SPDX-License-Identifier: GPL-2.0-or-later
"""The first sentences on programs of which we know what they do: how much they held, where, and what came of them."""

import re
from pathlib import Path
from typing import Dict, List

import pytest

from jmassif.analysis.headline import HAPPENED, PLACE, POOL, WHOSE, headline
from jmassif.analysis.processes import join
from jmassif.attribution.names import Names
from jmassif.units import size
from tests.harness import PYTHON, ROOT, compile_c, record
from tests.reporter.commands import jm_diff

MIB = 1 << 20
HEADERS = """
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <jmassif.h>
#define filled(bytes) ({ void *block = malloc(bytes); memset(block, 1, bytes); block; })
"""

PROGRAMS: Dict[str, str] = {
    "threads": """
        static void *work(void *unused) { return filled(10 << 20); }
        int main(void)
        {
            pthread_t threads[4];
            for (int i = 0; i < 4; i++) pthread_create(threads + i, NULL, work, NULL);
            for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
            return 0;
        }""",
    "untouched": """
        static void *reserve(void) { return malloc(200 << 20); }
        int main(void) { char *much = reserve(); much[0] = 1; filled(20 << 20); JMASSIF_MARK("full"); return 0; }""",
    "later": """
        static void *reserve(void) { return malloc(200 << 20); }
        int main(void)
        {
            char *much = reserve();
            filled(20 << 20);
            JMASSIF_MARK("empty");
            memset(much, 3, 100 << 20);
            JMASSIF_MARK("full");
            return malloc(1 << 16) == NULL;
        }""",
    "small": """
        static void reserve(void) { for (int i = 0; i < 24 << 10; i++) malloc(1024); }
        int main(void) { reserve(); filled(20 << 20); JMASSIF_MARK("full"); return 0; }""",
    "touched": """
        static void *reserve(void) { return filled(40 << 20); }
        int main(void) { reserve(); filled(20 << 20); JMASSIF_MARK("full"); return 0; }""",
    "aborts": """
        static char *load(void) { return filled(24 << 20); }
        int main(void) { assert(load()[5] == 3); return 0; }""",
}
EXPECTED = {  # MiB, the function to look at, and what is told to have happened
    "threads": (40, "work", ""),
    "untouched": (220, "reserve", ""),
    "later": (220, "reserve", ""),
    "small": (44, "reserve", ""),
    "touched": (60, "reserve", ""),
    "aborts": (24, "load", "signal 6 (SIGABRT)"),
}
UNTOUCHED = {"untouched": 200, "later": 100, "small": 24}  # MiB, when it held most


def of(command: List[object]) -> Dict[str, str]:
    profile = record([str(word) for word in command], ["--pages=yes"]).profile
    made = headline(profile, Names(profile))
    said = {about: " ".join(each.text for each in made.about(about)) for about in (HAPPENED, POOL, WHOSE, PLACE)}
    return {**said, "held": str(made.held)}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_the_headline_of_a_program_in_c(name: str) -> None:
    includes = (f"-I{ROOT / 'jmassif'}", "-isystem/usr/include/valgrind")
    made = of([compile_c(HEADERS + PROGRAMS[name], "-fno-builtin", "-pthread", "-w", *includes)])
    mib, function, happened = EXPECTED[name]
    # Besides, the loader and libc have some hundred kilobytes.
    assert mib * MIB <= int(made["held"]) <= (mib + 3) * MIB
    assert f"Look first at {function} (" in made[PLACE], made[PLACE]
    assert (happened in made[HAPPENED]) if happened else not made[HAPPENED]
    untouched = re.search(r"About (\S+) MiB of it had been asked for and not touched", made[POOL])
    assert float(untouched[1] if untouched else 0) == pytest.approx(UNTOUCHED.get(name, 0), abs=2), made[POOL]
    assert ("not touched" in made[POOL]) == (name in UNTOUCHED)
    # "That" would be what was not touched.
    assert made[WHOSE].startswith(f"Of {'the ' + size(int(made['held'])) if untouched else 'that'} "), made[WHOSE]


CONTAINERS = """
#include <map>
#include <string>
#include <vector>
struct Row { std::string name; double values[16]; };
static __attribute__((noinline)) void build(std::map<int, Row> &rows)
{
    for (int i = 0; i < 20000; i++) rows[i].name = std::string(40, 'x');
}
int main() { std::map<int, Row> rows; build(rows); std::vector<double> more(1 << 16); return rows.size() + more.size() == 0; }
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_of_cxx_containers_the_line_that_fills_them_is_told(level: str) -> None:
    made = of([compile_c(CONTAINERS, level, "-g", suffix=".cc")])
    assert "Look first at build(" in made[PLACE], made[PLACE]


SCRIPTS: Dict[str, str] = {
    "mapped": "import mmap\ndef fill(m):\n    for i in range(0, len(m), 4096): m[i] = 1\nm = mmap.mmap(-1, 24 << 20)\nfill(m)\n",
    # As numpy.memmap does it in a function: it is unmapped when the sum is known.
    "let go": "import mmap\ndef total(f):\n    m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)\n    return sum(m[::4096])\n"
    "with open(__file__ + '.data', 'wb+') as f:\n    f.truncate(24 << 20)\n    print(total(f))\n",
    "refused": "keep = bytearray(16 << 20)\ntry:\n    bytearray(1 << 46)\nexcept MemoryError:\n    pass\n",
    "status": "import sys\nrows = [bytearray(1 << 20) for _ in range(12)]\nsys.exit(3)\n",
    "thread": "import threading\ndef work():\n    return len(bytearray(18 << 20))\nt = threading.Thread(target=work)\nt.start()\nt.join()\n",
}
TOLD = {  # the line, its bytes, and what is told to have happened
    "mapped": (4, "24.0 MiB", ""),
    "let go": (3, "24.0 MiB", ""),
    "refused": (1, "16.0 MiB", "64.0 TiB failed, asked for by script.py:3"),
    "status": (2, "12.0 MiB", "exit status 3"),
    "thread": (3, "18.0 MiB", ""),
}


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_the_headline_of_a_script(name: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPTS[name])
    made = of([PYTHON, script])
    line, held, happened = TOLD[name]
    assert f"Look first at script.py:{line} (" in made[PLACE] and f": {held}, " in made[PLACE], made[PLACE]
    assert (happened in made[HAPPENED]) if happened else not made[HAPPENED]


def compiled(source: str) -> Path:
    """With the client requests, and calls of malloc that no compiler leaves out."""
    includes = (f"-I{ROOT / 'jmassif'}", "-isystem/usr/include/valgrind")
    return compile_c(HEADERS + source, "-fno-builtin", "-w", *includes)


FORKS = """
#include <sys/wait.h>
#include <unistd.h>
static void *inherit(void) { return filled(60 << 20); }
static void *work(void) { return filled(8 << 20); }
int main(int argc, char **argv)
{
    void *inherited = inherit();
    for (int i = 0; i < 3; i++)
        if (fork() == 0) {
            if (argc > 1) free(inherited);
            void *own = work();
            JMASSIF_MARK("full");
            free(own);
            _exit(0);
        }
    while (wait(NULL) > 0) ;
    return 0;
}"""


@pytest.mark.parametrize("frees", (False, True))
def test_a_forks_own_memory_is_told_apart_from_its_parents(frees: bool) -> None:
    """A worker that frees what it inherited held most at the moment of the fork, which says nothing of it."""
    recording = record([compiled(FORKS), *["free"] * frees], ["--pages=yes"])
    members = sorted((recording.load(trace) for trace in recording.traces), key=lambda of: "forked-from" in of.manifest)
    parent, *workers = members
    assert len(workers) == 3
    for worker in workers:
        made = headline(worker, Names(worker))
        told = " ".join(each.text for each in made.about(POOL))
        shared = f"of it is inherited from process {parent.manifest['pid']}, and shared with it"
        assert ("ll " if frees else "MiB ") + shared in told and ("At most 6" in told) != frees, told
        assert ("Of its own it held most, 8." in told) == frees, told
        assert ("at least 8." in told) != frees, told
        (place,) = made.about(PLACE)
        assert place.text.startswith("Look first at work (") and ": 8.00 MiB, " in place.text, place.text
        assert "of its own memory" in place.text


# It forks at once, or as long after its pages were seen that they may be looked at again.
WEIGHTS = """
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    const char *weights = mmap(0, 24 << 20, PROT_READ, MAP_PRIVATE, open(argv[1], O_RDONLY), 0);
    long sum = 0, left = strchr(argv[2], 'h') ? 12 << 20 : 0;
    for (long i = 0; i < (24 << 20) - left; i += 4096) sum += weights[i];
    if (strchr(argv[2], 's')) JMASSIF_SNAPSHOT();
    if (strchr(argv[2], 'r')) for (clock_t begin = clock(); clock() - begin < CLOCKS_PER_SEC / 2;) sum++;
    if (fork() == 0) {
        JMASSIF_SNAPSHOT();
        void *own = filled(2 << 20);
        JMASSIF_SNAPSHOT();
        for (long i = left; i < 24 << 20; i += 4096) sum += weights[i];
        JMASSIF_SNAPSHOT();
        free(own);
        _exit(sum & 1);
    }
    while (wait(NULL) > 0) ;
    return 0;
}"""


@pytest.mark.parametrize("does", ("fork", "see, fork", "run, fork", "see, run, fork"))
def test_pages_of_a_file_that_its_parent_has_read_are_not_a_forks_own(tmp_path: Path, does: str) -> None:
    """The kernel gives a child none of a file's pages until it touches them."""
    weights = tmp_path / "weights"
    weights.write_bytes(bytes(24 << 20))
    forks = compiled(WEIGHTS)
    recording = record([forks, weights, does.replace("fork", "")], ["--pages=yes", "--interval=5000"])
    members = list(map(recording.load, recording.traces))
    (worker,) = [of for of in members if "forked-from" in of.manifest]
    told = " ".join(each.text for each in headline(worker, Names(worker)).about(POOL))
    assert "At most 2" in told and "of it is inherited from process" in told and "at least 2." in told, told
    (parent,) = [of for of in members if "forked-from" not in of.manifest]
    (place,) = headline(parent, Names(parent)).about(PLACE)
    assert "every program" not in place.text and "mapped-data (weights): 24.0 MiB" in place.text, place.text
    assert 24 << 20 <= join([(str(n), of) for n, of in enumerate(members)]).peak().on("total") < 29 << 20


def test_a_fork_may_touch_other_pages_of_a_file_than_its_parent(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.write_bytes(bytes(24 << 20))
    recording = record([compiled(WEIGHTS), weights, "half"], ["--pages=yes"])
    peak = join([(str(trace), recording.load(trace)) for trace in recording.traces]).peak()
    assert 24 << 20 <= peak.on("total") < 29 << 20


FREED = """
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    free(filled(32 << 20));
    usleep(20000);
    if (fork() == 0) {
        free(filled(2 << 20));
        _exit(0);
    }
    wait(NULL);
    return 0;
}"""


def test_what_was_freed_before_a_fork_is_no_matter_of_the_child() -> None:
    recording = record([compiled(FREED)])
    members = list(map(recording.load, recording.traces))
    (child,) = [of for of in members if "forked-from" in of.manifest]
    for which, peak in child.peaks.items():
        assert peak.bytes < 3 << 20, which


LEFT = """
#include <sys/wait.h>
#include <unistd.h>
static void *inherit(void) { return filled(24 << 20); }
static void *again(void *old) { free(old); return inherit(); }
int main(int argc, char **argv)
{
    void *inherited = inherit();
    int ends[2];
    pipe(ends);
    if (fork() == 0) {
        char c;
        close(ends[1]);
        read(ends[0], &c, 1); /* until the parent has ended */
        usleep(20000);
        if (argc > 1) inherited = again(inherited);
        void *own = filled(2 << 20);
        JMASSIF_SNAPSHOT();
        free(own);
        free(inherited);
        _exit(0);
    }
    _exit(0);
}"""


@pytest.mark.parametrize("argument", ([], ["again"]))
def test_memory_that_only_a_fork_still_has_counts(argument: List[str]) -> None:
    recording = record([compiled(LEFT), *argument], ["--pages=yes"])
    members = list(map(recording.load, recording.traces))
    job = join([(str(n), of) for n, of in enumerate(members)])
    last = [row for row in job.timeline() if row.time >= job.members[0].end + 20]
    assert 26 << 20 <= max(row.host for row in last) < 28 << 20


def test_of_two_runs_the_line_that_has_grown_is_named(tmp_path: Path) -> None:
    """Edited above and at the line that grew: the figures are the script's own."""
    recordings = []
    for head, n in (("import json\n", 4), ("# more\n\nimport json\n", 40)):
        path = tmp_path / "grow.py"
        path.write_text(
            head + f"kept = [bytearray(1 << 20) for _ in range(9)]\ncache = [bytes(1 << 20) for _ in range({n})]\n"
        )
        recordings.append(record([PYTHON, path]))
    out = jm_diff(*(each.trace for each in recordings)).out
    text = " ".join(out.split())
    assert re.search(r"Most of that is at grow\.py:5 \(.*\): \+36\.\d MiB \(4\.\d\d MiB → 40\.\d MiB\)\.", text), text
