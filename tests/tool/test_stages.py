# SPDX-License-Identifier: GPL-2.0-or-later
"""Stages that a program sets: each has peaks of its own, to the byte, and the run has the largest of them."""

import re
from typing import Dict, Tuple

from jmassif.model.records import LiveBytesByAccount, Stage
from jmassif.model.run import Profile
from tests.harness import ROOT, Recording, compile_c, record

# What it holds and allocates is known by its numbers: 3 MB stay from before, and each stage has a top of its own.
STAGES = """
#include <stdio.h>
#include <stdlib.h>
#include "jmassif.h"
static void *volatile kept;
static void use(size_t bytes) { void *volatile p = malloc(bytes); free(p); }
static void small(void) { use(100000); use(700000); use(200000); }
static void large(void) { use(9000000); use(5000000); }
static void keeping(void) { kept = malloc(2000000); }
static void show(void)
{
    unsigned long bytes[5];
    JMASSIF_USAGE(bytes);
    fprintf(stderr, "%lu %lu %lu %lu %lu\\n", bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]);
}
int main(void)
{
    setvbuf(stderr, NULL, _IONBF, 0);
    kept = malloc(3000000);
    use(8000000);
    JMASSIF_STAGE("small");
    small();
    JMASSIF_STAGE("large");
    large();
    JMASSIF_STAGE("keeping");
    keeping();
    show();
    JMASSIF_STAGE("nothing");
    JMASSIF_STAGE("end");
    use(50000);
    return 0;
}
"""


def recorded() -> Recording:
    include = ["-I", str(ROOT / "jmassif"), "-w", "-fno-builtin"]
    recording = record([compile_c(STAGES, *include)], status=0)
    return recording


def heap(profile: Profile, held: LiveBytesByAccount) -> int:
    return sum(n_bytes for account, (n_bytes, _) in held.items() if profile.accounts[account].kind == "heap")


def above_the_begin(profile: Profile, stage: Stage, which: str) -> int:
    return heap(profile, profile.composition_at(stage.peaks[which])) - heap(
        profile, profile.composition(stage.snapshot)
    )


def test_each_stage_has_its_own_peak_and_the_run_the_largest() -> None:
    profile = recorded().profile
    figures: Dict[str, Tuple[int, int]] = {
        stage.text: (above_the_begin(profile, stage, "host"), above_the_begin(profile, stage, "total"))
        for stage in profile.stages
    }
    tops = {"small": 700000, "large": 9000000, "keeping": 2000000, "nothing": 0, "end": 50000}
    assert figures == {name: (top, top) for name, top in tops.items()}
    assert heap(profile, profile.peak_composition("total")) == 3000000 + 9000000
    assert profile.peaks["host"].bytes == profile.peaks["total"].bytes == max(profile.timeline.maximum)
    assert [mark.text for mark in profile.marks] == list(tops)


def test_a_program_reads_what_the_trace_says_of_its_stage() -> None:
    recording = recorded()
    (stage,) = [stage for stage in recording.profile.stages if stage.text == "keeping"]
    (line,) = re.findall(r"^\d+ 0 \d+ 0 \d+$", recording.stderr, re.MULTILINE)
    now, _, host, _, total = map(int, line.split())
    profile = recording.profile
    sums = {
        which: sum(n_bytes for n_bytes, _ in profile.composition_at(stage.peaks[which]).values())
        for which in ("host", "total")
    }
    assert (host, total) == (sums["host"], sums["total"]) and now == host > 5000000


def test_the_peak_before_the_first_stage_is_the_runs_where_it_is_the_largest() -> None:
    include = ["-I", str(ROOT / "jmassif"), "-w", "-fno-builtin"]
    profile = record([compile_c(STAGES.replace("use(9000000)", "use(4000)"), *include)]).profile
    assert heap(profile, profile.peak_composition("total")) == 3000000 + 8000000
