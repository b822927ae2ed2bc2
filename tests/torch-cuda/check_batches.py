# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory of six trainings with batches of 4, 8 and 32, predicted from runs of 2 and 3, against PyTorch's own figures."""

import json
from typing import Any, Dict, NamedTuple, Optional, Sequence

import pytest

from check_counters import DEFAULT, SCRIPTS, Program, record, run_inside
from jmassif.analysis.fit import Fit, fit_batches
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file

TRAININGS = ("cnn", "lstm", "transformer", "embedding", "accumulation", "half")
RECORDED, ASKED = (2, 3), (4, 8, 32)
# PyTorch works on one sample in other ways: of 17 % of the transformer's bytes without a counterpart roles decide.
FEWEST = (1, 2)
LARGE_BOARD = 64 << 30
MARGIN = 0.05  # of the memory reserved: a board with so much more fits, one with so much less does not


class Finished(NamedTuple):
    name: str
    runs: Dict[int, Profile]
    truth: Dict[int, Dict[str, int]]


@pytest.fixture(scope="module", params=TRAININGS)
def finished(request: Any) -> Finished:
    words = {batch: ["python3", f"{SCRIPTS}/fit.py", request.param, str(batch)] for batch in (1, *RECORDED, *ASKED)}
    names = {batch: f"fit-{request.param}-{batch}" for batch in (1, *RECORDED)}
    traces = {batch: record(Program(names[batch], (), DEFAULT), "native", words[batch])[0] for batch in names}
    truth = {batch: run_inside(Program("", (), DEFAULT), words[batch])[0] for batch in ASKED}
    return Finished(request.param, {batch: load_file(str(trace)) for batch, trace in traces.items()}, truth)


def predicted(finished: Finished, batches: Sequence[int], asked: Sequence[int], board: Optional[int] = None) -> Fit:
    return fit_batches([finished.runs[batch] for batch in batches], batches, list(asked), board or LARGE_BOARD)


def test_two_runs_predict_what_pytorch_allocates_and_reserves(finished: Finished) -> None:
    fit = predicted(finished, RECORDED, ASKED)
    others = LARGE_BOARD - fit.room.available
    for need in fit.needs:
        truth = finished.truth[need.batch]
        print(json.dumps({"training": finished.name, **need._asdict(), "truth": truth}))
        assert need.allocated == pytest.approx(truth["allocated"], rel=0.01), need
        assert need.reserved == pytest.approx(truth["reserved"], rel=0.03), need
        for sign in (1, -1):
            board = others + need.rest + int((1 + sign * MARGIN) * truth["reserved"])
            judged = predicted(finished, RECORDED, [need.batch], board)
            assert judged.fits(judged.needs[0]) is (sign > 0), need


def test_batches_of_one_and_two_predict_it_too(finished: Finished) -> None:
    for need in predicted(finished, FEWEST, ASKED).needs:
        truth = finished.truth[need.batch]
        print(json.dumps({"training": finished.name, "recorded": FEWEST, **need._asdict(), "truth": truth}))
        assert need.allocated == pytest.approx(truth["allocated"], rel=0.01), need
        assert need.reserved == pytest.approx(truth["reserved"], rel=0.03), need


@pytest.mark.parametrize("recorded", RECORDED)
def test_the_range_of_one_run_has_what_pytorch_reserves(finished: Finished, recorded: int) -> None:
    for need in predicted(finished, [recorded], ASKED).needs:
        print(json.dumps({"training": finished.name, "recorded": recorded, **need._asdict()}))
        assert need.least <= need.rest + finished.truth[need.batch]["reserved"] <= need.most, need
