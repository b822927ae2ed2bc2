# SPDX-License-Identifier: GPL-2.0-or-later
"""Bytes that are held twice, on the host and in a device copy: those that the script knows of, to the byte, and no others.

The script loads weights in four ways, copies them to the simulated GPU, and says what it holds at each of its marks.
"""

import re
from pathlib import Path
from typing import Dict, List, Set, Tuple

import pytest

from jmassif.analysis.budgets import Budget, judge
from jmassif.analysis.moments import select
from jmassif.analysis.summary import build_report
from jmassif.model.records import Copy
from jmassif.model.run import Profile
from jmassif.render.summary import held_twice_text
from tests.harness import BUILD, PYTHON, ROOT, Argument, compile_c, need_module, recorded, written

HOSTS = ("valgrind", "native")

LOADS = """
import ctypes, mmap, os, sys, tempfile
import numpy

runtime, jmassif, driver = map(ctypes.CDLL, sys.argv[1:])
held = {}

def mark(name):
    jmassif.jmassif_mark(name.encode())
    print("held", name, *sorted("%s=%d" % item for item in held.items()))

def check(code):
    assert code == 0, code

def malloc(n):
    pointer = ctypes.c_void_p()
    check(runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(n)))
    return pointer

def copied(name, source, n, to=None):
    to = to or malloc(n)
    check(runtime.cudaMemcpy(to, ctypes.c_void_p(source), ctypes.c_size_t(n), 1))
    held[name] = n
    return to

def free(name, to):
    check(runtime.cudaFree(to))
    del held[name]

N = {"mapped": 3000003, "read": 2000003, "numpy": 1600000, "pinned": 1234568, "late": 800000}
file = tempfile.NamedTemporaryFile()
file.write(os.urandom(4096) * 800)
file.flush()

weights = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
view = (ctypes.c_char * len(weights)).from_buffer(weights)
on_gpu = {"mapped": copied("mapped", ctypes.addressof(view) + 64, N["mapped"])}
mark("mapped")
storage = bytearray(N["read"])
with open(file.name, "rb") as opened:
    opened.readinto(storage)
inside = (ctypes.c_char * len(storage)).from_buffer(storage)
on_gpu["read"] = copied("read", ctypes.addressof(inside), N["read"])
mark("read")
array = numpy.arange(N["numpy"] // 8, dtype=numpy.float64)
on_gpu["numpy"] = copied("numpy", array.ctypes.data, N["numpy"])
mark("numpy")
page_locked = numpy.arange(N["pinned"] // 8, dtype=numpy.float64)
check(runtime.cudaHostRegister(ctypes.c_void_p(page_locked.ctypes.data), ctypes.c_size_t(N["pinned"]), 0))
on_gpu["pinned"] = copied("pinned", page_locked.ctypes.data, N["pinned"])
mark("pinned")
more = malloc(8000000)  # the peak
mark("peak")
check(runtime.cudaFree(more))

check(runtime.cudaHostUnregister(ctypes.c_void_p(page_locked.ctypes.data)))
del page_locked, held["pinned"]
mark("host freed")
free("numpy", on_gpu["numpy"])
mark("device freed")
array[:] = 0
on_gpu["numpy"] = copied("numpy", array.ctypes.data, N["numpy"])
array += 1
del held["numpy"]
mark("changed")
del inside, storage, held["read"]
mark("storage freed")
other = bytearray(N["mapped"])
copied("mapped", ctypes.addressof((ctypes.c_char * len(other)).from_buffer(other)), N["mapped"], on_gpu["mapped"])
held["again"] = held.pop("mapped")
mark("overwritten")
del view
weights.close()
mark("unmapped")
check(runtime.cudaMemcpy(on_gpu["mapped"], on_gpu["read"], ctypes.c_size_t(4096), 3))
del held["again"]
mark("device to device")
copied("again", ctypes.addressof((ctypes.c_char * len(other)).from_buffer(other)), N["mapped"], on_gpu["mapped"])
check(runtime.cudaMemset(on_gpu["mapped"], 0, ctypes.c_size_t(N["mapped"])))
del held["again"]
small = (ctypes.c_char * 65535)()
check(runtime.cudaMemcpy(on_gpu["read"], small, ctypes.c_size_t(65535), 1))
mark("small")
late = numpy.arange(N["late"] // 8, dtype=numpy.float64)
check(runtime.cudaHostRegister(ctypes.c_void_p(late.ctypes.data), ctypes.c_size_t(N["late"]), 0))
copied("late", late.ctypes.data, N["late"])
check(runtime.cudaHostUnregister(ctypes.c_void_p(late.ctypes.data)))
mark("unregistered")

# The driver's ways to fill memory count elements. Of each two pairs, the second begins where the filled bytes end.
n_elements, stream = 70000, ctypes.c_void_p()
ways = ("D8_v2", 1, ()), ("D16_v2", 2, ()), ("D32_v2", 4, ())
ways += ("D8Async", 1, (stream,)), ("D16Async", 2, (stream,)), ("D32Async", 4, (stream,))
for way, width, others in ways:
    filled = malloc(2 * width * n_elements)
    behind = ctypes.c_void_p(filled.value + width * n_elements)
    copied("set", late.ctypes.data, width * n_elements, filled)
    copied("behind" + way, late.ctypes.data, width * n_elements - 8 * width, behind)
    check(driver["cuMemset" + way](filled, 0, ctypes.c_size_t(n_elements), *others))
    del held["set"]
mark("filled")

# Rows: the first pair lies at the end of the last row, behind all that a wrong width, height or layer would reach.
class Pitched(ctypes.Structure):
    _fields_ = [("pointer", ctypes.c_void_p)] + [(name, ctypes.c_size_t) for name in ("pitch", "width", "height")]

class Extent(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("width", "height", "depth")]

def fill_rows(function, to, width, *others):
    n_bytes, n, two = ctypes.c_size_t(160000), ctypes.c_size_t(160000 // width), ctypes.c_size_t(2)
    return function(to, n_bytes, 0, n, two, *others)

def fill_layers(function, to, width, *others):
    return function(Pitched(to.value, 80000, 80000, 3), 0, Extent(80000, 1, 2), *others)

ways = [(runtime.cudaMemset2D, fill_rows, 1), (runtime.cudaMemset3D, fill_layers, 1)]
ways += [(driver["cuMemsetD2D%d_v2" % (8 * width)], fill_rows, width) for width in (1, 2, 4)]
ways += [(runtime.cudaMemset2DAsync, fill_rows, 1, stream), (runtime.cudaMemset3DAsync, fill_layers, 1, stream)]
ways += [(driver["cuMemsetD2D%dAsync" % (8 * width)], fill_rows, width, stream) for width in (1, 2, 4)]
for number, (function, fill, *arguments) in enumerate(ways):
    filled = malloc(320000 + 65544)
    copied("set", late.ctypes.data, 65536, ctypes.c_void_p(filled.value + 320000 - 65536))
    copied("row%d" % number, late.ctypes.data, 65544, ctypes.c_void_p(filled.value + 320000))
    check(fill(function, filled, *arguments))
    del held["set"]
mark("rows filled")
"""

# Sources overlap within blocks, and copies each other on the device. Each pair has its own number of bytes.
RANDOM = r"""
#include <jmassif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int cudaMalloc(void **, size_t);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaMemset(void *, int, size_t);
enum { BLOCKS = 150, PAIRS = 4000, LEAST = 65536, DEVICE = 128 << 20 };
static struct { char *start; size_t bytes; } blocks[BLOCKS];
static struct { char *to; int block; size_t bytes; } pairs[PAIRS];
static int n;

static size_t below(size_t limit) { return ((size_t)rand() << 16 ^ rand()) % limit; }

static void allocate(int i)
{
    blocks[i].bytes = 2 * LEAST + below(LEAST);
    memset(blocks[i].start = malloc(blocks[i].bytes), rand(), blocks[i].bytes);
}

static void end_if(const char *to, size_t bytes, int block)
{
    for (int i = n - 1; i >= 0; i--)
        if (pairs[i].block == block || (pairs[i].to < to + bytes && to < pairs[i].to + pairs[i].bytes))
            pairs[i] = pairs[--n];
}

int main(void)
{
    char *device;
    if (cudaMalloc((void **)&device, DEVICE))
        return 1;
    for (int i = 0; i < BLOCKS; i++)
        allocate(i);
    free(malloc(64 << 20)); // the peak: pairs that follow at once are taken to be part of it
    for (int step = 0; step < 9000; step++) {
        int block = below(BLOCKS), what = below(100);
        size_t bytes = LEAST + below(blocks[block].bytes - LEAST), offset = below(blocks[block].bytes - bytes + 1);
        char *to = device + below(DEVICE - bytes);
        if (what == 0) {
            end_if(NULL, 0, block);
            free(blocks[block].start);
            allocate(block);
        } else if (what < 10) {
            end_if(to, bytes, -1);
            if (cudaMemset(to, 0, bytes))
                return 2;
        } else {
            end_if(to, bytes, -1);
            if (cudaMemcpy(to, blocks[block].start + offset, bytes, 1))
                return 3;
            pairs[n].to = to, pairs[n].block = block, pairs[n].bytes = bytes, n++;
        }
        if (step % 1000 == 999) {
            usleep(20000);
            JMASSIF_MARK("held");
            usleep(20000);
            for (int i = 0; i < n; i++)
                printf("%zu ", pairs[i].bytes);
            puts("");
        }
    }
}
"""

# More than are followed, of different sizes, from one block.
MANY = r"""
#include <jmassif.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int cudaMalloc(void **, size_t);
int cudaMemcpy(void *, const void *, size_t, int);
int main(void)
{
    char *device, *host = malloc(70000);
    memset(host, 1, 70000);
    if (cudaMalloc((void **)&device, 2500 * 70000))
        return 1;
    for (int i = 0; i < 2500; i++)
        if (cudaMemcpy(device + i * 70000, host, 65536 + i * 7919 % 2500, 1))
            return 2;
    usleep(20000);
    JMASSIF_MARK("held");
    usleep(20000);
    return 0;
}
"""
NAMES: Tuple[str, ...] = (
    "mapped",
    "read",
    "numpy",
    "pinned",
    "peak",
    "host freed",
    "device freed",
    "changed",
    "storage freed",
)
NAMES += ("overwritten", "unmapped", "device to device", "small", "unregistered", "filled", "rows filled")


def script_of(sim: Path) -> Tuple[Path, List[Argument]]:
    script = written(LOADS, "load.py")
    return script, [PYTHON, script, sim / "libcudart.so.12", BUILD / "jmassif" / "libjmassif.so", sim / "libcuda.so.1"]


def held_at(profile: Profile, time: int) -> List[Copy]:
    return [
        copy
        for copy in profile.copies.values()
        if copy.begin <= time <= (profile.copies_until if copy.until is None else copy.until)
    ]


def line(profile: Profile, account: int, script: Path) -> str:
    lines = [profile.frame(frame) for frame in profile.stack(profile.accounts[account].node)]
    numbers = [frame.line for frame in lines if frame.file == str(script)]
    return script.read_text().splitlines()[numbers[0] - 1].strip() if numbers else ""


def recording_of(sim: Path, host: str) -> Tuple[Profile, Dict[str, Dict[str, int]]]:
    need_module("numpy")
    _, command = script_of(sim)
    run = recorded(command, options=["--pages=yes"], host=host)
    said = {
        name: {key: int(n) for key, n in re.findall(r"(\w+)=(\d+)", rest)}
        for name, rest in re.findall(r"^held (\D*?)((?: \w+=\d+)*)$", run.stdout, re.MULTILINE)
    }
    assert tuple(said) == NAMES
    return run.profile, said


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("host", HOSTS)
def test_the_bytes_held_twice_are_those_that_the_script_knows(sim: Path, host: str, name: str) -> None:
    profile, said = recording_of(sim, host)
    time = next(mark.time for mark in profile.marks if mark.text == name)
    # The next step may begin in the same millisecond, and the one before end in it.
    found = sorted(copy.bytes for copy in held_at(profile, time))
    assert set(said[name].values()) <= set(found)
    snapshot = next(mark.snapshot for mark in profile.marks if mark.text == name)
    assert snapshot is not None
    after = profile.snapshots[snapshot].time
    lasting = [
        copy for copy in held_at(profile, time) if copy.begin < time and (copy.until is None or copy.until > after)
    ]
    assert {copy.bytes for copy in lasting} <= set(said[name].values())


@pytest.mark.parametrize("host", HOSTS)
def test_pairs_by_the_hundred_are_those_of_an_independent_account(sim: Path, host: str) -> None:
    libraries = str(sim / "libcudart.so.12"), f"-Wl,-rpath,{sim}"
    run = recorded([compile_c(RANDOM, "-w", "-I", str(ROOT / "jmassif"), *libraries)], host=host)
    said = [sorted(map(int, line.split())) for line in run.stdout.splitlines()]
    found = [sorted(copy.bytes for copy in held_at(run.profile, mark.time)) for mark in run.profile.marks]
    assert len(said) == 9 and min(map(len, said[2:])) > 200
    assert found == said


@pytest.mark.parametrize("host", HOSTS)
def test_of_too_many_pairs_the_largest_are_followed_and_the_others_counted(sim: Path, host: str) -> None:
    program = compile_c(MANY, "-w", "-I", str(ROOT / "jmassif"), str(sim / "libcudart.so.12"), f"-Wl,-rpath,{sim}")
    profile = recorded([program], host=host).profile
    found = sorted(copy.bytes for copy in held_at(profile, profile.marks[0].time))
    assert found == list(range(65536 + 2500 - 2048, 65536 + 2500))
    assert profile.counters["copies-not-followed"] == 2500 - 2048


@pytest.mark.parametrize("host", HOSTS)
def test_at_the_peak_all_four_ways_count_to_the_byte_with_their_lines(sim: Path, host: str) -> None:
    profile, said = recording_of(sim, host)
    script, _ = script_of(sim)
    at_peak = held_at(profile, profile.peaks["device"].time)  # that of all depends on when pages are sampled
    assert sorted(copy.bytes for copy in at_peak) == sorted(said["peak"].values())
    assert sum(copy.bytes for copy in at_peak) == 7834574
    sources: Set[Tuple[str, str]] = {
        (profile.accounts[copy.host].kind, line(profile, copy.host, script)) for copy in at_peak
    }
    assert sources == {
        ("file", "weights = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)"),
        ("heap", 'storage = bytearray(N["read"])'),
        ("heap", 'array = numpy.arange(N["numpy"] // 8, dtype=numpy.float64)'),
        ("heap", 'page_locked = numpy.arange(N["pinned"] // 8, dtype=numpy.float64)'),
    }
    assert {line(profile, copy.copied_by, script) for copy in at_peak} == {
        "check(runtime.cudaMemcpy(to, ctypes.c_void_p(source), ctypes.c_size_t(n), 1))"
    }
    assert {profile.accounts[copy.device].kind for copy in at_peak} == {"device"}
    pinned = [copy for copy in at_peak if copy.pinned_by]
    assert [copy.bytes for copy in pinned] == [1234568]
    assert "cudaHostRegister" in line(profile, pinned[0].pinned_by, script)


@pytest.mark.parametrize("host", HOSTS)
def test_a_copy_counts_once_though_the_runtime_calls_the_driver(sim: Path, host: str) -> None:
    profile, _ = recording_of(sim, host)
    assert sum(n for n, _ in profile.copied.values()) == 40
    n_bytes = 3 * 3000003 + 2000003 + 2 * 1600000 + 1234568 + 800000 + 14 * (2 * 70000 - 8) + 10 * (65536 + 65544)
    assert sum(n_bytes for _, n_bytes in profile.copied.values()) == n_bytes


@pytest.mark.parametrize("host", HOSTS)
def test_memory_that_is_registered_no_more_is_not_pinned(sim: Path, host: str) -> None:
    profile, said = recording_of(sim, host)
    time = next(mark.time for mark in profile.marks if mark.text == "unregistered")
    (late,) = [copy for copy in held_at(profile, time) if copy.bytes == said["unregistered"]["late"]]
    assert not late.pinned_by


def test_both_hosts_hold_the_same(sim: Path) -> None:
    rows = []
    for host in HOSTS:
        profile, _ = recording_of(sim, host)
        script, _ = script_of(sim)
        # Of pairs that end before the next mark, those are written that a snapshot or a peak happens to meet.
        held = {copy for mark in profile.marks for copy in held_at(profile, mark.time)}
        rows.append(
            {
                (
                    copy.bytes,
                    profile.accounts[copy.host].kind,
                    line(profile, copy.copied_by, script),
                    copy.pinned_by > 0,
                )
                for copy in held
            }
        )
    assert rows[0] == rows[1]


@pytest.mark.parametrize("host", HOSTS)
def test_the_report_says_it_with_both_lines_and_a_budget_measures_it(sim: Path, host: str) -> None:
    profile, said = recording_of(sim, host)
    twice = sum(said["peak"].values())
    report = build_report(profile, select(profile, "peak-device"))
    assert report.held_twice and report.held_twice.bytes == twice
    text = held_twice_text(report)
    assert text.startswith(
        "7.47 MiB is held twice at the device peak, 2.86 MiB of it in host memory mapped by load.py:"
    )
    assert "unchanged in all samples. Dropping the host copy before load.py:" in text
    verdict, over = judge(
        [Budget("peak-device.held-twice", f"{twice}B"), Budget("peak-device.held-twice", f"{twice - 1}B")],
        profile,
        None,
        [],
    )
    assert (verdict.value, verdict.is_kept, over.is_kept) == (twice, True, False)
