# SPDX-License-Identifier: GPL-2.0-or-later
"""The first sentences on programs of which we know what they do: how much they held, where, and what came of them."""

import re
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from jmassif.analysis.processes import join
from jmassif.analysis.summary import HotSpot, Report, build_report, moment_of
from jmassif.attribution.names import Names
from jmassif.model.run import Profile
from jmassif.render.summary import findings, remarks, verdict
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


def report_of(profile: Profile) -> Report:
    names = Names(profile)
    return build_report(profile, moment_of(profile, names, None), names)


def of(command: List[object]) -> Tuple[Report, HotSpot]:
    made = report_of(record([str(word) for word in command], ["--pages=yes"]).profile)
    assert made.hot_spot is not None
    return made, made.hot_spot


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_the_headline_of_a_program_in_c(name: str) -> None:
    includes = (f"-I{ROOT / 'jmassif'}", "-isystem/usr/include/valgrind")
    made, spot = of([compile_c(HEADERS + PROGRAMS[name], "-fno-builtin", "-pthread", "-w", *includes)])
    mib, function, happened = EXPECTED[name]
    # Besides, the loader and libc have some hundred kilobytes.
    assert mib * MIB <= made.ledger.total.bytes <= (mib + 3) * MIB
    assert spot.label.startswith(f"{function} (") and spot.is_yours
    assert made.lines[0].label == spot.label and made.lines[0].usage.bytes == spot.bytes
    assert (happened in verdict(made)) if happened else made.outcome.severity == "note"
    untouched = sum(rung.bytes for rung in made.ladders[0].rungs if rung.key == "unwritten")
    assert untouched == pytest.approx(UNTOUCHED.get(name, 0) * MIB, abs=2 * MIB)


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
    _, spot = of([compile_c(CONTAINERS, level, "-g", suffix=".cc")])
    assert spot.label.startswith("build(") and spot.is_yours


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
    "mapped": (4, 24, ""),
    "let go": (3, 24, ""),
    "refused": (1, 16, "of 64.0 TiB at script.py:3 failed"),
    "status": (2, 12, "exit status 3"),
    "thread": (3, 18, ""),
}


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_the_headline_of_a_script(name: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPTS[name])
    made, spot = of([PYTHON, script])
    line, mib, happened = TOLD[name]
    assert spot.label.startswith(f"script.py:{line} (") and spot.bytes == pytest.approx(mib * MIB, rel=0.005)
    said = " ".join([verdict(made)] + [remark.text for remark in remarks(made)])
    assert (happened in said) if happened else made.outcome.severity == "note"


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
        made = report_of(worker)
        own = made.inherited
        assert own is not None and own.parent == parent.manifest["pid"]
        assert own.shared_bytes == pytest.approx(60 * MIB, abs=3 * MIB)
        assert (own.own_bytes < MIB) == frees and own.most_own_bytes == pytest.approx(8 * MIB, abs=MIB)
        text = findings(made)[0].text
        assert ("Its own was largest at" in text) == frees and ("at least 8." in text) != frees, text
        assert made.hot_spot is not None and made.hot_spot.label.startswith("work (")
        assert made.hot_spot.bytes == 8 * MIB


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
        /* Other processes' shares are read at an end only if that costs little of the run. */
        if (left) for (clock_t begin = clock(); clock() - begin < CLOCKS_PER_SEC / 2;) sum++;
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
    own = report_of(worker).inherited
    assert own is not None and own.own_bytes == pytest.approx(2 * MIB, abs=MIB)
    assert own.shared_bytes == pytest.approx(24 * MIB, abs=4 * MIB)
    (parent,) = [of for of in members if "forked-from" not in of.manifest]
    spot = report_of(parent).hot_spot
    assert spot is not None and spot.label == "mapped-data (weights)" and spot.bytes == 24 * MIB
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


# ---- small objects of Python's ---------------------------------------------------------------------

KEPT = """
import sys
kept = []
for i in range(100000):
    temporary = [float(j) for j in range(i, i + 5)]
    kept.append((str(i), i + 1.5))
print(sum(sys.getsizeof(each) for row in kept for each in (row, *row)) + 16 * len(kept))
"""


@pytest.mark.parametrize("allocator", ["", "malloc"])
def test_arenas_of_small_objects_are_told(allocator: str) -> None:
    recording = record([PYTHON, "-S", "-c", KEPT], ["--pages=yes"], env={"PYTHONMALLOC": allocator}, status=0)
    told = [each.text for each in findings(report_of(recording.profile)) if each.key == "arenas"]
    assert len(told) == (allocator == "")
    for text in told:
        assert float(text.split(" MiB")[0]) == pytest.approx(int(recording.stdout) / MIB, rel=0.2)
