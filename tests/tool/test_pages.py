# SPDX-License-Identifier: GPL-2.0-or-later
"""Resident pages: what the program says of its own mappings, what /proc says of the whole process from outside."""

import contextlib
import functools
import re
import subprocess
import tempfile
from bisect import bisect_left
from collections import Counter
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Tuple

import pytest

from jmassif.analysis.system import libraries, mappings
from jmassif.analysis.moments import select
from jmassif.attribution.names import Names
from jmassif.model.records import growth_by_side
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from tests.harness import (
    HOST,
    ARM64_VALGRIND,
    BUILD,
    PYTHON,
    ROOT,
    Argument,
    Recording,
    compile_arm64,
    compile_c,
    made_once,
    need_module,
    massif,
    massif_peak,
    record,
    record_arm64,
    sim_build,
)
from tests.tool.programs import DIRECTORY, at_peak, functions, is_massifs_extra, print_report, program, start

PAGE = 4096
MIB = 1 << 20
WITH_PAGES = ["--pages=yes"]


class Said(NamedTuple):
    resident: int
    virtual: int
    n_mappings: int


# ---- what is unmapped soon ---------------------------------------------------------------------

PASSING = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static int sum;
static __attribute__((noinline)) void look(int file, size_t bytes)
{
    volatile char *all = mmap(NULL, 24 << 20, PROT_READ, MAP_SHARED, file, 0);
    for (size_t i = 0; i < bytes; i += 4096) sum += all[i];
    munmap((void *)all, 24 << 20);
}
int main(void)
{
    int file = fileno(tmpfile());
    if (ftruncate(file, 24 << 20)) return 1;
    look(file, 12 << 20);
    look(file, 16 << 20);
    look(file, 4 << 20);
    return sum;
}
"""


def test_a_file_that_is_unmapped_before_anybody_looks_is_in_the_peak() -> None:
    profile = record([compile_c(PASSING, "-O1")], WITH_PAGES).profile
    names, found = Names(profile), 0
    for account, (n_bytes, _) in profile.peak_composition("total").items():
        if profile.accounts[account].kind == "file" and "look" in functions(profile, profile.accounts[account].node):
            found += n_bytes
    # The kernel maps a few neighbours of a page with it.
    assert 16 * MIB <= found <= 17 * MIB, [names.line(account) for account in profile.peak_composition("total")]


# ---- a program that knows its own mappings ---------------------------------------------------


def steps(text: str) -> Iterator[Dict[str, Said]]:
    """What the program says of its mappings, by the function that made them, for each of its steps."""
    for part in text.split("step\n")[:-1]:
        rows = [line.split() for line in part.splitlines()]
        yield {name: Said(*map(int, numbers)) for name, *numbers in rows}


def held_by(profile: Profile, snapshot: int, names: List[str]) -> Dict[str, Said]:
    """The same of a snapshot."""
    composition, pages = profile.composition(snapshot), profile.pages(snapshot)
    found = {name: Said(0, 0, 0) for name in names}
    for account, (node, kind, _) in enumerate(profile.accounts):
        if not profile.is_sampled(kind):
            continue
        maker = next((function for function in functions(profile, node) if function in names), None)
        if maker:
            resident, n_mappings = composition.get(account, (0, 0))
            virtual = pages[account].virtual if account in pages else 0
            before = found[maker]
            found[maker] = Said(before.resident + resident, before.virtual + virtual, before.n_mappings + n_mappings)
    return found


@contextlib.contextmanager
def file_to_map() -> Iterator[str]:
    """Not a file in memory: those have mappings of another kind."""
    with tempfile.NamedTemporaryFile(dir=str(BUILD)) as file:
        file.write(bytes(MIB))
        file.flush()
        yield file.name


HEADERS = f"-I{ROOT / 'jmassif'}"


def run_pages_program(*options: str) -> Recording:
    with file_to_map() as name:
        recording = record([program("pages.c", HEADERS, "-pthread"), name], options)
    assert recording.returncode == 0, recording.stderr
    return recording


@pytest.fixture(scope="module")
def pages_run() -> Recording:
    return run_pages_program(*WITH_PAGES)


def requests(profile: Profile) -> List[int]:
    return [index for index, snapshot in enumerate(profile.snapshots) if snapshot.reason == "request"]


def assert_as_said(recording: Recording) -> List[Dict[str, Said]]:
    said = list(steps(recording.stdout))
    snapshots = requests(recording.profile)
    assert len(said) == len(snapshots) == 9
    for number, (expected, snapshot) in enumerate(zip(said, snapshots)):
        found = held_by(recording.profile, snapshot, list(expected))
        for name, row in expected.items():
            if name == "start_thread":
                continue
            assert abs(found[name].resident - row.resident) <= PAGE * max(row.n_mappings, 1), (number, name, found, row)
            assert found[name][1:] == row[1:], (number, name)
    return said


def test_what_is_resident_is_what_the_program_says(pages_run: Recording) -> None:
    said = assert_as_said(pages_run)
    # The program did what its steps are named after.
    assert [row["second_neighbour"].resident for row in said if "second_neighbour" in row][:2] == [2 * MIB, MIB]
    assert said[1]["reserved"] == (9 * PAGE, 64 * MIB, 1)


def swapped_at_last(profile: Profile) -> int:
    """Of the MiB that the program asks to be swapped out."""
    return sum(
        pages.swapped
        for account, pages in profile.pages(requests(profile)[-1]).items()
        if "second_neighbour" in functions(profile, profile.accounts[account].node)
    )


def test_what_is_swapped_out_is_told(pages_run: Recording) -> None:
    """What is no longer resident; nothing where there is no swap."""
    (resident,) = [row["second_neighbour"].resident for row in list(steps(pages_run.stdout))[-1:]]
    assert swapped_at_last(pages_run.profile) == MIB - resident


def test_it_is_so_on_an_emulated_machine() -> None:
    """The emulator shows the program the kernel's own files on the process, at the addresses of its own."""
    compiled = compile_arm64(DIRECTORY / "pages.c", HEADERS, f"-I{ARM64_VALGRIND / 'usr/include'}", "-pthread")
    with file_to_map() as name:
        assert_as_said(record_arm64([compiled, name], WITH_PAGES))


def test_a_stack_is_a_mapping_of_its_own_kind(pages_run: Recording) -> None:
    profile = pages_run.profile
    (number,) = [n for n, said in enumerate(steps(pages_run.stdout)) if "start_thread" in said]
    expected = list(steps(pages_run.stdout))[number]["start_thread"]
    snapshot = requests(profile)[number]
    found = held_by(profile, snapshot, ["start_thread"])["start_thread"]
    assert expected.resident <= found.resident <= expected.resident + 8 * PAGE
    kinds = {account.kind for account in profile.accounts if "start_thread" in functions(profile, account.node)[:8]}
    assert "stack" in kinds
    # The main stack has no stack that made it.
    assert any(account.kind == "stack" and not account.node for account in profile.accounts)


def test_the_heap_is_not_counted_again(pages_run: Recording) -> None:
    profile = pages_run.profile
    for snapshot in requests(profile):
        assert profile.snapshots[snapshot].by_kind["heap"] == pytest.approx(3 * MIB, abs=64 * 1024)
        # The largest mapping of all holds 5 or 6 MiB, and the program's memory is in no other.
        rows = mappings(profile, Names(profile), select(profile, str(profile.snapshots[snapshot].id)))
        assert sum(row.resident for row in rows if row.kind == "anon") < 24 * MIB


def test_shared_memory_is_named_and_no_file(pages_run: Recording) -> None:
    profile = pages_run.profile
    moment = select(profile, str(profile.snapshots[requests(profile)[2]].id))
    rows = {(row.name.split(" ")[0], row.kind): row for row in mappings(profile, Names(profile), moment)}
    assert rows["memfd:pages", "anon"].resident == 11 * PAGE
    assert any(kind == "file" and row.resident >= MIB // 2 for (_, kind), row in rows.items())


def test_without_pages_there_are_none() -> None:
    profile = run_pages_program("--pages=no").profile
    assert {type_.kind for type_ in profile.accounts.types[1:]} <= {"heap", "heap-overhead"}
    assert "allocated" not in profile.peaks
    assert not any(snapshot.pages for snapshot in profile.snapshots)


# ---- what has an account of its own ----------------------------------------------------------

CUSTOM = """
#include <string.h>
#include <sys/mman.h>
#include <valgrind/valgrind.h>
#include "jmassif.h"
#define MIB (1 << 20)
int main(void)
{
    char *region = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(region, 1, 5 * MIB);
    JMASSIF_SNAPSHOT();
    VALGRIND_MALLOCLIKE_BLOCK(region + MIB, MIB, 0, 0);
    VALGRIND_MALLOCLIKE_BLOCK(region + 3 * MIB, MIB / 2, 0, 0);
    JMASSIF_SNAPSHOT();
    VALGRIND_FREELIKE_BLOCK(region + MIB, 0);
    JMASSIF_SNAPSHOT();
    return 0;
}
"""

PINNED = """
import ctypes, sys
cuda, jmassif = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
block = ctypes.c_void_p()
assert cuda.cudaMallocHost(ctypes.byref(block), ctypes.c_size_t(6 << 20)) == 0
ctypes.memset(block, 1, 6 << 20)
jmassif.jmassif_snapshot()
"""


def bytes_of(profile: Profile, snapshot: int, function: str) -> Dict[str, int]:
    """By kind: what is held of the memory whose stack has this function."""
    found: Dict[str, int] = Counter()
    for account, (n_bytes, _) in profile.composition(snapshot).items():
        node, kind, _ = profile.accounts[account]
        if function in functions(profile, node):
            found[kind] += n_bytes
    return found


def test_a_custom_allocators_blocks_are_taken_from_the_mapping_that_they_lie_in() -> None:
    compiled = compile_c(CUSTOM, HEADERS)
    profile = record([compiled], WITH_PAGES).profile
    held = [bytes_of(profile, snapshot, "main") for snapshot in requests(profile)]
    assert [(row["anon"], row.get("heap", 0)) for row in held] == [
        (5 * MIB, 0),
        (5 * MIB - 3 * MIB // 2, 3 * MIB // 2),
        (5 * MIB - MIB // 2, MIB // 2),
    ]


SPLIT = """
#include <string.h>
#include <sys/mman.h>
#include "jmassif.h"
#define MIB (1 << 20)
int main(void)
{
    char *region = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(region, 1, 6 * MIB);
    mprotect(region + MIB, MIB, PROT_READ);
    JMASSIF_SNAPSHOT();
    return 0;
}
"""


def test_of_a_mapping_that_the_kernel_has_in_parts_all_parts_count() -> None:
    profile = record([compile_c(SPLIT, HEADERS)], WITH_PAGES).profile
    assert bytes_of(profile, requests(profile)[0], "main")["anon"] == 6 * MIB


def test_pinned_memory_is_counted_once() -> None:
    sim = sim_build()
    command: List[Argument] = [PYTHON, "-c", PINNED, sim / "libcudart.so.10.2", BUILD / "jmassif" / "libjmassif.so"]
    recording = record(command, WITH_PAGES, env={"LD_LIBRARY_PATH": str(sim)}, status=0)
    profile = recording.profile
    (snapshot,) = requests(profile)
    held = bytes_of(profile, snapshot, "cudaMallocHost")
    assert held["pinned"] == 6 * MIB
    libraries_pages = sum(
        row.resident
        for row in mappings(profile, Names(profile), select(profile, str(profile.snapshots[snapshot].id)))
        if row.kind == "anon" and row.name.startswith("libcuda")
    )
    assert libraries_pages < MIB


FORKS = """
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "jmassif.h"
#define MIB (1 << 20)
static char *map(void)
{
    return mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static void of_parent(void) { memset(map(), 1, 3 * MIB); }
static void of_child(void) { memset(map(), 1, 2 * MIB); }
int main(void)
{
    of_parent();
    if (fork() == 0) {
        of_child();
        JMASSIF_SNAPSHOT();
        _exit(0);
    }
    wait(NULL);
    JMASSIF_SNAPSHOT();
    return 0;
}
"""


def test_a_forked_child_tells_its_own_pages() -> None:
    recording = record([compile_c(FORKS, HEADERS)], WITH_PAGES)
    profiles = sorted(map(recording.load, recording.traces), key=lambda profile: "forked-from" in profile.manifest)
    makers = ["of_parent", "of_child"]
    parent, child = (held_by(profile, requests(profile)[0], makers) for profile in profiles)
    assert parent == {"of_parent": (3 * MIB, 4 * MIB, 1), "of_child": (0, 0, 0)}
    assert child == {"of_parent": (3 * MIB, 4 * MIB, 1), "of_child": (2 * MIB, 4 * MIB, 1)}


NEIGHBOURS = """
#include <string.h>
#include <sys/mman.h>
#include "jmassif.h"
#define BYTES (16 * 4096)
static char *map(char *at)
{
    return mmap(at, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
}
static volatile int sum;
static void of_reader(char *at)
{
    char *pages = map(at);
    for (int i = 0; i < BYTES; i += 4096)
        sum += pages[i];
}
static void of_writer(char *at) { memset(map(at), 1, BYTES / 2); }
int main(void)
{
    // The kernel makes one mapping of them.
    char *at = mmap(NULL, 2 * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    of_reader(at);
    of_writer(at + BYTES);
    JMASSIF_SNAPSHOT();
    return 0;
}
"""


def test_memory_that_was_only_read_takes_no_page_from_its_neighbour() -> None:
    profile = record([compile_c(NEIGHBOURS, HEADERS)], WITH_PAGES).profile
    held = held_by(profile, requests(profile)[0], ["of_reader", "of_writer"])
    assert held == {"of_reader": (0, 16 * PAGE, 1), "of_writer": (8 * PAGE, 16 * PAGE, 1)}


# ---- the heap's figures stay massif's --------------------------------------------------------


@pytest.mark.parametrize("source", ["tree.c", "random_walk.c", "never_frees.c"])
def test_massifs_figures_do_not_change(source: str) -> None:
    compiled = program(source, "-fno-builtin", "-DNEVER_SHRINKS")
    expected = massif([compiled])
    recording = record([compiled], WITH_PAGES)
    profile = recording.profile
    held = profile.peak_composition("allocated")
    by_kind: Dict[str, int] = Counter()
    for account, (n_bytes, _) in held.items():
        by_kind[profile.accounts[account].kind] += n_bytes
    assert by_kind["heap"] == expected.heap and is_massifs_extra(profile, expected.extra, "allocated")
    expected = expected._replace(extra=by_kind["heap-overhead"])
    assert massif_peak(print_report(recording.trace, "--format=massif").stdout) == expected
    # Unless asked for.
    with_pages = massif_peak(print_report(recording.trace, "--format=massif", "--pages").stdout)
    assert with_pages.heap > expected.heap and with_pages.stacks > 0
    assert at_peak(profile, "file") > 0


# ---- PyTorch, from outside -------------------------------------------------------------------

# Between the snapshot and the reader's sample runs only what has run before, so no more pages of code are mapped.
IMPORT = """
import ctypes, sys
import {module}
snapshot = ctypes.CDLL(sys.argv[1]).jmassif_snapshot
for sample in (int, snapshot):
    sample()
    print("ready", flush=True)
    sys.stdin.readline()
"""


def client_mappings(smaps: str) -> Dict[str, int]:
    """By file ("" for none): the Rss of what the program itself has mapped.

    Valgrind's own memory and the heap that it keeps for the program are writable, executable and of no file; its tool's
    variables lie behind the tool's file.
    """
    found: Dict[str, int] = Counter()
    before = ""
    for block in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", smaps, flags=re.MULTILINE):
        head = block.split("\n")[0].split(None, 5)
        if not head:
            continue
        path = head[5] if len(head) > 5 else ""
        rss = re.search(r"^Rss:\s+(\d+) kB", block, re.MULTILINE)
        assert rss
        is_tools = "jmassif-" in Path(path).name or (not path and "jmassif-" in Path(before).name)
        if not is_tools and not (head[1].startswith("rwx") and not path):
            found[path] += int(rss.group(1)) * 1024
        before = path or before
    return found


Imported = Tuple[Profile, Dict[str, int], Path]  # with what smaps has


def import_module(code: str, directory: Path) -> None:
    words = (PYTHON, "-c", code, BUILD / "jmassif" / "libjmassif.so")
    process = start(directory / "trace", "-q", *words, stdin=subprocess.PIPE)
    try:
        assert process.stdin and process.stdout
        assert process.stdout.readline() == b"ready\n"
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"ready\n"
        (directory / "smaps").write_text(Path(f"/proc/{process.pid}/smaps").read_text())
        process.communicate(b"\n", timeout=120)
    finally:
        process.kill()
        process.wait()


def imported(module: str) -> Imported:
    need_module(module)
    code = IMPORT.format(module=module)
    made = made_once(("import", code), functools.partial(import_module, code))
    return load_file(str(made / "trace")), client_mappings((made / "smaps").read_text()), made / "trace"


@pytest.fixture(scope="module")
def torch_run() -> Imported:
    return imported("torch")


@pytest.mark.parametrize("module", ["numpy", "torch"])
def test_the_sum_is_what_an_independent_reader_finds(module: str) -> None:
    profile, from_outside, _ = imported(module)
    (snapshot,) = requests(profile)
    by_kind = profile.snapshots[snapshot].by_kind
    pages = sum(n_bytes for kind, n_bytes in by_kind.items() if profile.is_sampled(kind))
    assert pages == pytest.approx(sum(from_outside.values()), rel=0.02)


def test_every_large_library_is_named_with_its_bytes(torch_run: Imported) -> None:
    profile, from_outside, _ = torch_run
    moment = select(profile, str(profile.snapshots[requests(profile)[0]].id))
    rows = mappings(profile, Names(profile), moment)
    found = {row.name: row.resident for row in rows if row.kind == "file"}
    large = {Path(path).name: rss for path, rss in from_outside.items() if "/" in path and rss > MIB}
    assert len(large) > 10 and any("libtorch_cpu" in name for name in large)
    for name, rss in large.items():
        # Outside a library's variables without bytes in its file have no name.
        assert rss * 0.98 <= found[name] <= rss + 8 * MIB, name


def test_libraries_belong_to_the_owners_of_their_frames(torch_run: Imported) -> None:
    profile, _, _ = torch_run
    owner_of: Dict[str, set] = {}
    names = Names(profile)
    for account, (node, kind, owner) in enumerate(profile.accounts):
        if kind == "file" and node:
            owner_of.setdefault(names.library(account), set()).add(owner)
    by_glob = {
        glob: {owner for name, owners in owner_of.items() if re.match(glob, name) for owner in owners}
        for glob in (r"libtorch_cpu", r"python3", r"ld-linux", r"_multiarray_umath", r"libdnnl")
    }
    assert by_glob == {
        "libtorch_cpu": {"framework"},
        "python3": {"python"},
        "ld-linux": {"loader"},
        "_multiarray_umath": {"package"},
        "libdnnl": {"package"},
    }


def test_pythons_arenas_are_pages_of_python(torch_run: Imported) -> None:
    profile, _, trace = torch_run
    composition = profile.composition(requests(profile)[0])
    arenas = sum(
        n_bytes
        for account, (n_bytes, _) in composition.items()
        if profile.accounts[account].kind == "anon" and profile.accounts[account].owner == "python"
    )
    assert arenas > 20 * MIB
    assert "anon memory of the line that needed it" in " ".join(print_report(trace, "--all").stdout.split())


def test_a_dlopen_tells_what_its_libraries_made_resident(torch_run: Imported) -> None:
    profile, _, _ = torch_run
    scopes = [scope for scope in profile.scopes if scope.name.startswith("dlopen _C.")]
    if not scopes and HOST == "valgrind":
        pytest.skip("no dlopen scopes: the C library's debug package is not installed")
    kinds = {growth.kind: growth.bytes for growth in scopes[0].growths}
    file_bytes = profile.snapshots[requests(profile)[0]].by_kind["file"]
    assert 0.5 * file_bytes < kinds["file"] <= file_bytes
    assert growth_by_side(scopes[0].growths)[0] >= kinds["file"] + kinds["heap"]


def test_a_library_is_one_sum_of_file_and_heap(torch_run: Imported) -> None:
    profile, _, trace = torch_run
    moment = select(profile, "peak")
    names = Names(profile)
    rows = {row.name: row for row in libraries(profile, names, moment.composition, mappings(profile, names, moment))}
    (torch,) = [row for name, row in rows.items() if name.startswith("libtorch_cpu")]
    assert torch.by_kind["file"] > 10 * MIB and torch.by_kind["heap"] > 10 * MIB
    assert torch.virtual > torch.by_kind["file"]
    assert sum(row.bytes for row in rows.values()) == sum(
        n_bytes for account, (n_bytes, _) in moment.composition.items()
    )
    shown = print_report(trace, "--by=library").stdout
    assert re.search(r"^ +[\d.]+ MiB +[\d.]+ MiB +.*MiB  libtorch_cpu", shown, re.MULTILINE)


MARKED = """
#include <sys/mman.h>
#include "jmassif.h"
int main(void)
{
    for (int i = 0; i < 3; i++) {
        char *p = mmap(0, 20 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int at = 0; at < 20 << 20; at += 4096)
            p[at] = 1;
        JMASSIF_MARK("made");
        munmap(p, 20 << 20);
        JMASSIF_MARK("unmapped");
    }
    return 0;
}
"""


def test_at_the_first_marks_pages_are_sampled_however_soon_they_come() -> None:
    profile = record([compile_c(MARKED, HEADERS)], WITH_PAGES).profile
    held = [profile.snapshots[mark.snapshot or 0].by_kind.get("anon", 0) for mark in profile.marks]
    times = profile.system["resident"][0]
    assert [mark.text for mark in profile.marks] == ["made", "unmapped"] * 3
    assert all(mark.time <= times[bisect_left(times, mark.time)] <= mark.time + 1000 for mark in profile.marks)
    assert all(made - left == pytest.approx(20 * MIB, abs=MIB) for made, left in zip(held[::2], held[1::2]))


LATE = """
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 100003; i++)
        free(malloc(100));
    char *pages = mmap(0, 100 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 1, 100 << 20);
    usleep(300000);
    char *block = malloc(100 << 20);
    memset(block, 1, 100 << 20);
    usleep(300000);
    free(block);
    return pages[1] - 1;
}
"""


def test_a_large_block_makes_a_peak_with_the_pages_of_that_moment() -> None:
    profile = record([compile_c(LATE, "-fno-builtin")], WITH_PAGES, status=0).profile
    assert 200 * MIB <= profile.peaks["total"].host < 210 * MIB


SLOWLY = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    char *block = malloc(64 << 20);
    for (int i = 0; i < 4; i++) {
        memset(block + (i << 24), 1, 1 << 24);
        usleep(250000);
    }
    free(block);
    return 0;
}
"""


def test_pages_are_seen_that_are_touched_while_nothing_is_allocated() -> None:
    profile = record([compile_c(SLOWLY, "-fno-builtin")], WITH_PAGES, status=0).profile
    assert any(8 * MIB <= held <= 56 * MIB for held in profile.system["resident-heap"][1])


# ---- copies of a file's pages ------------------------------------------------------------------

COPIES = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
void jmassif_snapshot(void);
enum { MIB = 1 << 20 };
int main(int argc, char **argv)
{
    FILE *file = fopen(argv[1], "w+");
    ftruncate(fileno(file), 24 * MIB);
    volatile char *all = mmap(NULL, 24 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    int sum = 0;
    for (long i = 0; i < 24 * MIB; i += 4096)
        sum += all[i];
    jmassif_snapshot();
    for (long i = 0; i < 8 * MIB; i += 4096)
        all[i] = 1;
    mprotect((void *)(all + 4 * MIB), 16 * MIB, PROT_READ); /* parts of it, each a mapping of the kernel's */
    jmassif_snapshot();
    char line[512];
    long kib, sums[2] = {0, 0};
    FILE *smaps = fopen("/proc/self/smaps", "r");
    int is_own = 0;
    while (fgets(line, sizeof line, smaps)) {
        if (strchr(line, '-') && strchr(line, ':') > strchr(line, '-'))
            is_own = strstr(line, argv[1]) != NULL;
        if (is_own && sscanf(line, "Rss: %ld", &kib) == 1)
            sums[0] += kib;
        if (is_own && sscanf(line, "Anonymous: %ld", &kib) == 1)
            sums[1] += kib;
    }
    printf("%ld %ld\n", sums[0] << 10, sums[1] << 10);
    fflush(stdout);
    _exit(sum != 0);
}
"""


def test_pages_that_a_private_mapping_has_copied_are_no_pages_of_the_file(tmp_path: Path) -> None:
    library = BUILD / "jmassif" / "libjmassif.so"
    copies = compile_c(COPIES, str(library), f"-Wl,-rpath,{library.parent}")
    recording = record([copies, tmp_path / "weights.safetensors"], WITH_PAGES, status=0)
    resident, anonymous = map(int, recording.stdout.split())
    assert (resident, anonymous) == (24 * MIB, 8 * MIB)
    profile = recording.profile
    read, written = (i for i, snapshot in enumerate(profile.snapshots) if snapshot.reason == "request")

    def rows(position: int) -> Dict[Tuple[str, str], int]:
        held: Dict[Tuple[str, str], int] = {}
        for account, (n_bytes, _) in profile.composition(position).items():
            node, kind, owner = profile.accounts[account]
            frame = next(iter(profile.stack(node)), 0)
            if frame and n_bytes and profile.frame(frame).object.endswith("weights.safetensors"):
                held[kind, owner] = held.get((kind, owner), 0) + n_bytes
        return held

    assert rows(read) == {("file", "model"): 24 * MIB}
    assert rows(written) == {("file", "model"): resident - anonymous, ("anon", "model"): anonymous}
    last = mappings(profile, Names(profile), select(profile, str(profile.snapshots[written].id)))
    held = {row.kind: row for row in last if row.name == "weights.safetensors"}
    assert (held["file"].resident, held["anon"].resident) == (resident - anonymous, anonymous)
    assert (held["file"].pages.shared, held["anon"].pages.shared) == (resident - anonymous, anonymous)
    said = " ".join(print_report(recording.trace).stdout.split())
    assert "8.00 MiB of weights.safetensors are private copies, made by writing to its mapping or pinning it." in said
