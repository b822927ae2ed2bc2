# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif fit` on trainings with the simulated allocator: what it predicts against what a run of that batch has."""

import json
from pathlib import Path
from typing import Any, List, Tuple

import pytest

from jmassif.analysis.fit import steps_of
from jmassif.reader.builder import load_file
from tests.harness import PYTHON, ROOT, Argument, Recording, record
from tests.reporter.commands import assert_one_line_error, jmassif

MIB = 1 << 20
GIB = 1 << 30


def recorded(sim: Path, batch: int) -> Recording:
    """The example with this batch."""
    command: List[Argument] = [PYTHON, ROOT / "docs" / "examples" / "train.py", "--device=sim", f"--batch={batch}"]
    return record(command, [f"--owners={sim}/jmsim.rules"], env={"JMSIM_LIB": str(sim)}, timeout=300, status=0)


def fit(*arguments: object) -> Any:
    done = jmassif("fit", "--format=json", *arguments)
    assert done.status == 0, done.err
    return json.loads(done.out)


def test_two_batches_predict_what_a_third_reserves_and_the_largest_that_fits(sim: Path) -> None:
    recordings = [recorded(sim, batch) for batch in (2, 4, 8)]
    two, four, eight = (recording.trace for recording in recordings)
    steps = steps_of(load_file(str(eight)))
    of_eight = [two, four, "--batch=2,4", "--at=8"]
    found = fit(*of_eight, "--board=4GiB")["fit"]
    (need,) = found["batches"]
    assert need["reserved"] == steps.reserved
    assert need["allocated"] == pytest.approx(steps.allocated, rel=0.01)
    assert [line["label"].split(" ")[0] for line in found["lines"]] == ["train.py:147", "train.py:148", "train.py:146"]

    just = need["program"] + 4 * GIB - found["available"]
    for more, fits in ((-MIB, False), (MIB, True)):
        (need,) = fit(*of_eight, f"--board={just + more}B")["fit"]["batches"]
        assert need["fits"] is fits
    found = fit(four, two, "--batch=4,2", f"--board={just + MIB}B")["fit"]
    assert found["largest_batch"] >= 8 and [each["fits"] for each in found["batches"]] == [True, False]
    assert [each["batch"] for each in found["batches"]] == [found["largest_batch"], found["largest_batch"] + 1]

    settings = fit(eight)["settings"]
    assert settings["recorded"]["modelled"] == settings["recorded"]["reserved"] == steps.reserved
    assert settings["better"][0]["settings"] == "expandable_segments:True"
    assert steps.allocated <= settings["better"][0]["reserved"] < steps.reserved

    wrong: List[Tuple[List[object], str]] = [
        ([two, four], "--batch=A,B names"),
        ([two, "--batch=2,4"], "--batch=A,B names"),
        ([two, four, "--batch=2,2"], "same batch"),
        ([two, four, eight, "--batch=2,4"], "at most two"),
        ([Path(__file__)], "test_fit.py"),
    ]
    for words, says in wrong:
        assert_one_line_error("jmassif fit", jmassif("fit", *words), says)


def test_a_run_without_pytorchs_allocator_is_refused() -> None:
    recording = record(["/bin/true"], status=0)
    assert_one_line_error("jmassif fit", jmassif("fit", recording.trace), "no steps of PyTorch's CUDA allocator")
