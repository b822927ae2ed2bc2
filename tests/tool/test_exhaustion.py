# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that run out of memory: what the trace tells of it, and whether the report draws the right conclusion.

A caching allocator in small (programs/c10/caching.cc) says by itself what it had reserved and free, and in which holes; the
simulated board says what it had left.
"""

import re
import subprocess
from pathlib import Path
from typing import Dict, List, NamedTuple

import pytest

from jmassif.analysis.device_memory import Layout, layout_at
from jmassif.analysis.oom import Hint, Incident, call_of, incidents_of
from jmassif.attribution.names import Names
from jmassif.model.records import Exhaustion
from jmassif.model.run import Profile
from jmassif.render.failures import arithmetic, reason
from jmassif.render.summary import action
from jmassif.units import size
from tests.harness import BUILD, VALGRIND, Recording, compile_c, record, recorded
from tests.tool import board
from tests.tool.cuda_ledger import figures
from tests.tool.programs import functions, print_report
from tests.tool.test_tensors import build

MIB = 1 << 20
BOARD = {"JMSIM_BOARD_BYTES": str(4096 * MIB)}
TENSOR, ASKED = 300 * MIB, 850 * MIB


class Ran(NamedTuple):
    recording: Recording
    told: Dict[str, int]  # what the allocator printed
    incident: Incident

    @property
    def profile(self) -> Profile:
        return self.recording.profile

    @property
    def layout(self) -> Layout:
        return layout_at(self.profile, self.incident.last.position)


def ran(way: str, sim: Path) -> Ran:
    recording = recorded([build(20, sim) / "exhaust", way], env=BOARD)
    (incident,) = incidents_of(recording.profile, Names(recording.profile))
    return Ran(recording, figures(recording.stdout), incident)


def bars(report: str) -> List[str]:
    """The segments of a map as text."""
    return [found.group(1) for found in re.finditer(r"^ *[0-9a-f]+ .* %  ([A-Za-z-]+)$", report, re.MULTILINE)]


def printed_segments(stdout: str) -> List[List[int]]:
    """By segment: its blocks' bytes, those of holes negative."""
    return [
        [int(word) if word[0] == "+" else int(word) for word in line.split()[1:]]
        for line in stdout.splitlines()
        if line.startswith("segment")
    ]


def drawn_segments(layout: Layout) -> List[List[int]]:
    return [[part.bytes if part.account else -part.bytes for part in segment.parts] for segment in layout.reserving]


# ---- NvMap's own limit -----------------------------------------------------------------------

ASKS = """
#include <stdlib.h>
int cudaMalloc(void **, size_t), cudaMemGetInfo(size_t *, size_t *);
int main(int argc, char **argv)
{
    void *block;
    size_t free_bytes, total;
    return cudaMalloc(&block, 200 << 20) || cudaMemGetInfo(&free_bytes, &total) ||
           cudaMalloc(&block, strtoull(argv[1], NULL, 0) << 20) != 2;
}
"""


def asks(sim: Path, tmp_path: Path, mib: int, l4t: str, release: str, *board_options: str) -> Profile:
    """A board of 4 GiB that has the release, on which a second cudaMalloc of so much fails."""
    board.require_board(sim)
    major, _, revision = l4t.partition(".")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/nv_tegra_release").write_text(f"# R{major} (release), REVISION: {revision}, GCID: 0\n")
    options = [f"--memory={4096 * MIB}", "--machine", *board_options]
    program = compile_c(ASKS, f"-L{sim}", "-l:libcudart.so.13", f"-Wl,-rpath,{sim}")
    env = {"JMSIM_BOARD_BYTES": str(4096 * MIB)}
    launcher = board.launcher(sim, release, *options)
    return record([program, str(mib)], [f"--board-root={tmp_path}"], env=env, launcher=launcher, status=0).profile


@pytest.mark.parametrize("l4t, release", [("36.4.7", "r36"), ("39.2.0", "r39")])
def test_nvmaps_limit_is_said_where_it_explains_the_failure(sim: Path, tmp_path: Path, l4t: str, release: str) -> None:
    profile = asks(sim, tmp_path, 3000, l4t, release, f"--cma={512 * MIB}")
    incident = [each for each in incidents_of(profile, Names(profile)) if each.call == "cudaMalloc"][-1]
    s, said = incident.situation, " ".join(reason(incident, False).split())
    assert incident.verdict == "limit" and s.granted is not None and s.available is not None
    left = s.available - 512 * MIB
    assert s.granted == left - left // 1000 < 3000 * MIB < s.available
    assert said == (
        f"NvMap grants at most {size(s.granted)} here: {size(s.available)} available minus 512 MiB of free CMA;"
        " 2.93 GiB were requested."
    )
    rows = {label: n_bytes for label, n_bytes, _ in arithmetic(s)}
    parts = ["free on the device", "this program", "everything else"] + ["page cache"] * ("page cache" in rows)
    assert rows["free on the device"] == incident.last.figures["device-free"]
    assert s.total == sum(rows[part] for part in parts)
    text = next(action(hint, False, incident) for hint in incident.hints if hint.action == "smaller-cma")
    assert text.startswith("A smaller cma= in /boot/extlinux/extlinux.conf gives NvMap up to 51")
    assert text.endswith(f" MiB more; {size(s.missing or 0)} was missing.")


def test_cached_files_are_named_and_not_everything_else(sim: Path, tmp_path: Path) -> None:
    """Without a release whose limit is known: cuMemGetInfo has no more than what is free without them."""
    profile = asks(sim, tmp_path, 3000, "34.1", "r36", f"--cma={512 * MIB}", f"--cached={2000 * MIB}")
    incident = [each for each in incidents_of(profile, Names(profile)) if each.call == "cudaMalloc"][-1]
    s = incident.situation
    assert s.granted is None and s.free is not None and s.total is not None and s.own is not None
    assert 0 < 2000 * MIB - s.page_cache < 32 * MIB  # but the program's own libraries
    assert s.others == s.total - s.free - s.own - s.page_cache
    assert ("page cache", s.page_cache, "the kernel can drop it") in arithmetic(s)
    assert f"; page cache: {size(s.page_cache)}; other programs" in reason(incident, False)
    text = next(action(hint, False, incident) for hint in incident.hints if hint.action == "drop-page-cache")
    assert "drop_caches" in text and size(s.page_cache) in text and incident.verdict == "page cache"


# ---- the experiment --------------------------------------------------------------------------


def test_three_freed_tensors_in_segments_of_their_own_make_room(sim: Path) -> None:
    own = ran("own", sim)
    assert own.told["succeeded"] == 1
    assert (own.incident.verdict, own.incident.outcome) == ("cache", "retried")
    assert own.incident.freed == 3 * TENSOR
    assert own.incident.situation.asked == ASKED
    # Before anything was given back: the map shows three segments without a letter.
    assert sorted(bars(print_report(own.recording.trace, "--segments=1").stdout)).count("-" * 46) == 3
    report = " ".join(print_report(own.recording.trace).stdout.split())
    assert "--- Out of memory" not in report
    assert "cudaMalloc of 850 MiB failed (error 2). Retry succeeded after 900 MiB was freed." in report


def test_three_holes_between_tensors_are_fragmentation(sim: Path) -> None:
    shared = ran("shared", sim)
    assert shared.told["succeeded"] == 0
    situation = shared.incident.situation
    assert (shared.incident.verdict, shared.incident.outcome) == ("fragmentation", "raised")
    told = shared.told
    assert situation.reserved == told["reserved"]
    assert (situation.cached, situation.holes) == (told["free"], told["holes"]) == (3 * TENSOR, 3)
    assert (situation.largest_hole, situation.returnable) == (told["largest"], told["returnable"]) == (TENSOR, 0)
    assert (situation.free, situation.total) == (told["device_free"], told["device_total"])
    assert situation.largest_hole < ASKED <= situation.cached
    # Larger than the tensors, smaller than the segments; and the holes are whole pages of 20 MiB.
    assert [hint.action for hint in shared.incident.hints] == ["expandable-segments", "max-split-size"]
    assert shared.incident.hints[1].setting == 512 * MIB


def test_the_map_is_the_allocators_own(sim: Path) -> None:
    for way in ("shared", "full"):
        told = printed_segments(ran(way, sim).recording.stdout)
        assert len(told) in (4, 12)
        assert drawn_segments(ran(way, sim).layout) == told


def test_the_text_shows_the_holes(sim: Path) -> None:
    ways: List[List[str]] = [[], ["--segments=1"], ["--segments", "--snapshot=last"]]
    for options in ways:
        report = print_report(ran("shared", sim).recording.trace, *options).stdout
        shown = bars(report)
        # Each letter or dash is 900/46 MiB, so a tensor is 15 of them and a third.
        assert len(shown) == 4
        assert shown.count("T" * 46) == 1
        assert len([bar for bar in shown if re.fullmatch(r"T{15}t-{15}T{15}|T{15}t?-{14,15}t?T{15}", bar)]) == 3
        assert "fragmentation 66.7 %" in report
        assert "T tensor" in report
        section = report[report.index("4 segments of") :]
        assert all(len(line) <= 80 for line in section.splitlines()[:12])


def test_a_cache_that_nobody_asks_to_give_back_is_the_cause(sim: Path) -> None:
    other = ran("other", sim)
    assert other.told["succeeded"] == 0
    assert (other.incident.verdict, other.incident.outcome) == ("cache", "")
    assert other.incident.situation.returnable == other.told["returnable"] == 3 * TENSOR
    assert other.incident.hints == [Hint("empty-cache", 900 * MIB)]


def test_a_full_board_is_full(sim: Path) -> None:
    full = ran("full", sim)
    assert full.told["succeeded"] == 0
    situation = full.incident.situation
    assert (full.incident.verdict, full.incident.outcome) == ("full", "raised")
    assert situation.missing == ASKED - full.told["device_free"] > 0
    assert situation.cached == 0
    assert {hint.action for hint in full.incident.hints} <= {"stop-others", "smaller-batch"}


@pytest.mark.parametrize("way", ["own", "shared", "other", "full", "pages", "nopages"])
def test_retries_and_ooms_are_counted_as_the_allocator_counts_them(way: str, sim: Path) -> None:
    counters = ran(way, sim).profile.counters
    assert counters.get("cuda-alloc-retries", 0) == ran(way, sim).told["retries"]
    assert counters.get("framework-out-of-memory", 0) == ran(way, sim).told["ooms"]
    assert not [key for key in counters if key.startswith("tensor")]


@pytest.mark.parametrize("way", ["shared", "full"])
def test_the_frameworks_own_figures_are_told(way: str, sim: Path) -> None:
    told, event = ran(way, sim).told, ran(way, sim).incident.last
    assert event.figures["framework-request"] == ASKED
    assert event.figures["framework-allocated"] == told["allocated"]
    assert event.figures["framework-reserved"] == told["reserved"]


def test_the_stack_is_that_of_who_asked(sim: Path) -> None:
    for way, asker in (("shared", "make_large"), ("other", "main")):
        profile, event = ran(way, sim).profile, ran(way, sim).incident.last
        stack = functions(profile, profile.accounts[event.account].node)
        assert asker in stack and stack[-1] == "main"
        assert call_of(profile, event) == "cudaMalloc"


def test_the_ledger_of_the_moment_is_a_snapshot(sim: Path) -> None:
    full = ran("full", sim)
    assert full.incident.last.snapshot is not None
    snapshot = full.profile.snapshots[full.incident.last.snapshot]
    assert snapshot.reason == "out-of-memory"
    assert full.incident.situation.by_owner["tensor"] == full.told["allocated"] == snapshot.by_kind["device"]


def test_a_segment_of_pages_gives_back_what_lies_between_tensors(sim: Path) -> None:
    pages = ran("pages", sim)
    assert pages.told["succeeded"] == 1
    assert (pages.incident.verdict, pages.incident.outcome) == ("cache", "retried")
    assert (pages.incident.last.api, pages.incident.last.bytes) == ("cuMemCreate", 20 * MIB)
    assert pages.incident.freed == 3 * TENSOR
    situation = pages.incident.situation
    # Pages that were had before the last one could not be; they are given back before the next try.
    assert situation.gathered > 0 and situation.gathered + (situation.free or 0) == pages.told["device_free"]
    assert pages.incident.last.figures["vmm-mapped"] == pages.told["reserved"]
    # Mappings one after the other are one segment.
    assert drawn_segments(pages.layout) == printed_segments(pages.recording.stdout)
    assert len(pages.layout.reserving) == 1
    after = layout_at(pages.profile, len(pages.profile.blocks) // 4)
    assert sum(segment.bytes for segment in after.reserving) == 9 * TENSOR + ASKED + 10 * MIB
    assert sum(segment.free for segment in after.reserving) == 0


def test_pages_that_are_had_at_the_second_try_do_not_make_it_a_success(sim: Path) -> None:
    full = ran("nopages", sim)
    assert full.told["succeeded"] == 0
    assert (full.incident.verdict, full.incident.outcome, len(full.incident.tries)) == ("full", "raised", 2)
    assert full.incident.situation.asked == ASKED + 10 * MIB
    assert full.incident.situation.missing == ASKED + 10 * MIB - full.told["device_free"]
    report = " ".join(print_report(full.recording.trace).stdout.split())
    assert "cuMemCreate of 20.0 MiB, of 860 MiB in all, failed twice (error 2)." in report


# ---- many failures ---------------------------------------------------------------------------


@pytest.fixture
def probed(sim: Path) -> Recording:
    recording = recorded([build(20, sim) / "probe"], env=BOARD)
    assert recording.stdout == "1004\n"
    return recording


def of_api(profile: Profile, *apis: str) -> List[Exhaustion]:
    return [event for event in profile.exhaustions.values() if event.api in apis]


def test_a_thousand_failures_of_one_place_are_counted_and_few_are_told(probed: Recording) -> None:
    profile = probed.profile
    assert profile.counters["out-of-memory"] == 1004
    told = [event.bytes // MIB for event in of_api(profile, "cuMemAlloc_v2") if event.bytes < 8192 * MIB]
    # The first four, then the 8th, 16th … 512th; the first asked for 8192 MiB.
    assert told == [8192 - n + 1 for n in (2, 3, 4, 8, 16, 32, 64, 128, 256, 512)]
    assert "and 989 more calls that the trace only counts" in print_report(probed.trace).stdout


def test_what_fails_after_them_elsewhere_is_told(probed: Recording) -> None:
    profile = probed.profile
    kinds = {event.api: profile.accounts[event.account].kind for event in profile.exhaustions.values()}
    assert kinds == {
        "cuMemAlloc_v2": "device",
        "cuMemAllocAsync": "pool",
        "cuMemHostAlloc": "pinned",
        "cuMemCreate": "vmm",
    }
    assert {event.bytes for event in of_api(profile, "cuMemAllocAsync", "cuMemHostAlloc", "cuMemCreate")} == {
        8192 * MIB
    }


def test_the_driver_is_not_asked_while_a_stream_is_captured(probed: Recording) -> None:
    profile = probed.profile
    asked = {}
    for event in profile.exhaustions.values():
        stack = functions(profile, profile.accounts[event.account].node)
        asked["captured" if "captured" in stack else "probe" if "probe" in stack else event.api] = (
            "device-free" in event.figures
        )
    assert asked.pop("captured") is False
    assert set(asked.values()) == {True} and "probe" in asked


# ---- memory of the host ----------------------------------------------------------------------

HOST = """
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void *block(size_t n) { return malloc(n); }

int main(int argc, char **argv)
{
    char *kept = block(1000);
    size_t huge = (size_t)1 << 45;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *mapped = mmap(NULL, 4096, PROT_READ, flags, -1, 0);
    printf("%d", block(huge) == NULL);
    printf("%d", calloc(huge, 2) == NULL);
    printf("%d", realloc(kept, huge) == NULL);
    /* Of sizes beyond any gap Valgrind says that they are invalid. Here it is the kernel that refuses. */
    struct rlimit limit = {(size_t)4 << 30, (size_t)4 << 30};
    setrlimit(RLIMIT_AS, &limit);
    printf("%d", mmap(NULL, (size_t)8 << 30, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED);
    printf("%d", mmap(NULL, 4 * huge, PROT_NONE, flags | MAP_NORESERVE, -1, 0) == MAP_FAILED);
    printf("%d", mremap(mapped, 4096, 4 * huge, MREMAP_MAYMOVE) == MAP_FAILED);
    printf("%d", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 77, 0) == MAP_FAILED); /* not for lack of memory */
    free(kept);
    return 0;
}
"""


def test_host_memory_that_cannot_be_had_is_told() -> None:
    recording = record([compile_c(HOST, "-fno-builtin", "-O0")])
    assert recording.stdout == "1111111", recording.stderr
    profile = recording.profile
    huge = 1 << 45
    told = [(event.api, profile.accounts[event.account].kind, event.bytes) for event in profile.exhaustions.values()]
    assert told == [
        ("malloc", "heap", huge),
        ("calloc", "heap", 2 * huge),
        ("realloc", "heap", huge),
        ("mmap", "anon", 8 << 30),
        ("mremap", "anon", 4 * huge - 4096),
    ]
    assert {event.error for event in profile.exhaustions.values()} == {12}
    stack = functions(profile, profile.accounts[profile.exhaustions[1].account].node)
    assert stack[:2] == ["block", "main"]
    assert [incident.verdict for incident in incidents_of(profile, Names(profile))][:3] == ["too large"] * 3
    assert [event.figures.get("address-space-limit") for event in profile.exhaustions.values()] == [None] * 3 + [
        4 << 30
    ] * 2


GROWS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *leak(size_t n) { return malloc(n); }
static char *other(size_t n) { return malloc(n); }

int main(int argc, char **argv)
{
    size_t n = strtoul(argv[1], NULL, 10), held = 0;
    for (int i = 0; i < 20; i++)
        memset(other(1000), 1, 1000);
    for (char *p; (p = leak(n)); held += n) {
        memset(p, 1, 4096);
        if (held % (64 * n) == 0) {
            printf("%zu\\n", held);
            fflush(stdout);
        }
    }
    abort();
}
"""


def limited(program: Path, n_bytes: int, kib: int, trace: Path) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        ["bash", "-c", 'ulimit -c 0 && ulimit -v "$1" && shift && exec "$@"', "-", str(kib), VALGRIND]
        + ["--tool=jmassif", "-q", f"--jmassif-out-file={trace}", str(program), str(n_bytes)],
        env={"PATH": "/usr/bin:/bin", "VALGRIND_LIB": str(BUILD / ".in_place")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=120,
    )


@pytest.mark.parametrize("n_bytes", [MIB, 100_000])
def test_a_program_that_dies_of_a_failed_malloc_leaves_the_reason_and_the_culprit(tmp_path: Path, n_bytes: int) -> None:
    trace = tmp_path / "trace"
    program = compile_c(GROWS, "-fno-builtin", "-O0")
    done = limited(program, n_bytes, 1_000_000, trace)
    assert done.returncode != 0
    held = int(done.stdout.split()[-1])
    assert held > 100 * MIB
    report = print_report(trace).stdout
    assert re.search(r"^--- Out of memory at .*: limit -", report, re.MULTILINE), done.stderr
    assert (
        "malloc of" in report and "exceeded ulimit -v (" in report and "Raise the limit of the address space" in report
    )
    found = re.search(r"^leak \(program.c:\d+\) .* (\d+) %$", report, re.MULTILINE)
    assert found, report
    assert float(found.group(1)) >= 95
