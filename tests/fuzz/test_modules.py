# SPDX-License-Identifier: GPL-2.0-or-later
"""A short search in each of the recorder's readers, from one seed (or JMASSIF_SEED); `python3 -m tests.fuzz.modules` searches longer."""

from pathlib import Path
from typing import Optional

import pytest

from tests.fuzz import modules, searching


@searching.extent(1, 20)
@pytest.mark.parametrize("target", sorted(modules.TARGETS))
def test_a_reader_survives_whatever_it_is_given(target: str, n_runs: int, tmp_path: Path) -> None:
    seed = searching.seed()
    tally = modules.search(target, seed, n_runs, tmp_path)
    print(f"seed {seed}: {tally.inputs} inputs, longest {tally.longest} us")
    assert not tally.faults, f"seed {seed}: {tally.faults}"
    assert tally.inputs > 20


# Inputs that have found something. Of frames: the release, then where and how it is damaged (frames.c).
FOUND = [
    ("frames", bytes([7, 0, 9, 3, 255]), "a published place of a field that is beyond the last that was thought of"),
    ("frames", bytes([7, 0, 7, 3, 255, 0, 10, 3, 250]), "likewise"),
    ("frames", bytes([4, 3, 2, 4, 0x7F, 3, 6, 4, 0x7F]), "an instruction whose place in bytes is no number"),
    ("python", b"\x00\x7f" * 64, "lines beyond the last number"),
]


@pytest.mark.parametrize(
    "target, data", [row[:2] for row in FOUND], ids=[f"{i}-{row[2]}" for i, row in enumerate(FOUND)]
)
def test_what_was_found_once_is_mended(target: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "found"
    path.write_bytes(data)
    built = modules.program(modules.SOURCE / f"{target}.c", modules.TARGETS[target])
    tally = modules.attempt(built, 1, 1, [path], tmp_path / "at")
    assert not tally.faults


FAULTY = """
#include "base/client_memory.h"
#include "host/host.h"
#include "shim.h"
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    volatile unsigned char *at = shim_segment(bytes, n, 0);
    volatile int number = 0x7fffffff;
    if (FAULT == 1)
        number = at[4096];
    else if (FAULT == 2)
        number = number + 1;
    else
        jm_assert(FAULT == 0 && jm_is_readable((Addr)at, 4096) && !jm_is_readable((Addr)at, 4097));
    shim_forget();
    return 0;
}
"""


@pytest.mark.parametrize(
    "fault, told", [(0, None), (1, "SEGV"), (2, "signed integer overflow"), (3, "jm_is_readable((Addr)at")]
)
def test_the_search_sees_a_reader_that_reads_too_far(fault: int, told: Optional[str], tmp_path: Path) -> None:
    path = tmp_path / "seed"
    path.write_text("seed " * 100)
    built = modules.program(FAULTY.replace("FAULT ", f"{fault} "), ["base/client_memory.c"])
    faults = modules.attempt(built, 3, 1, [path], tmp_path / "at").faults
    assert [told in said for said in faults if told] == ([True] if told else []), faults
