# SPDX-License-Identifier: GPL-2.0-or-later
"""The peaks of loading a model and of running it, by hand-made runs: both where the roles of tensors prove them, else neither."""

from pathlib import Path
from typing import List, Optional, Sequence, Tuple

import pytest

from jmassif.analysis.loading import Loading, find_loading
from jmassif.analysis.summary import build_report, moment_of
from jmassif.api import Profile
from jmassif.attribution.names import Names
from jmassif.render.summary import findings
from tests.reporter.traces import Trace

MIB = 1 << 20
LINE = "py <module> (/a/train.py:{})"

# At a snapshot each 10 ms: MiB of parameters, of weights read from a file, of activations, and the most since the one before.
Step = Tuple[int, int, int, int]
BUILDS: List[Step] = [(0, 0, 0, 0), (50, 0, 0, 50), (100, 0, 0, 100)]
READS: List[Step] = BUILDS + [(100, 60, 0, 160), (100, 100, 0, 205), (100, 0, 0, 200)]
RUNS: List[Step] = [(100, 0, 5, 105), (100, 0, 40, 140), (100, 0, 0, 150), (100, 0, 40, 145)]


def run(steps: Sequence[Step], has_gradients: bool = True, memory: str = "unified") -> Trace:
    trace = Trace(memory=memory, time_unit="ms")
    kind = "heap" if memory == "unified" else "device"
    names = ("parameter", "other", "activation")
    accounts = [trace.account(kind, "tensor", [LINE.format(i)], role) for i, role in enumerate(names, 1)]
    gradient = trace.account(kind, "tensor", [LINE.format(4)], "gradient" if has_gradients else "input")
    allocated = 0
    for index, (*held, most) in enumerate(steps):
        allocated += held[2]
        changes = {account: (n * MIB, 1) for account, n in zip(accounts, held)}
        changes[accounts[2]] = (held[2] * MIB, 1, allocated * MIB, 1, 0)  # type: ignore[assignment]
        changes[gradient] = (1 if has_gradients and allocated else 0, 1)
        sides = (0, most * MIB) if kind == "device" else (most * MIB, 0)
        trace.totals(10 * index + 5, *sides)
        trace.snapshot(10 * index + 10, "end" if index == len(steps) - 1 else "time", changes)
    trace.snapshot(10 * len(steps) + 10, "exit", {account: (0, 0) for account in (*accounts, gradient)})
    trace.lines.append(f"Z {10 * len(steps) + 10} exit 0")
    return trace


def found(trace: Trace) -> Optional[Loading]:
    profile = trace.load()
    return find_loading(profile, Names(profile))


def test_weights_read_after_the_build_belong_to_loading() -> None:
    assert found(run(READS + RUNS)) == Loading(70, 205 * MIB, 45, 150 * MIB, 85, True)


def test_a_model_that_is_built_and_trained_takes_more_then() -> None:
    assert found(run(BUILDS + RUNS)) == Loading(40, 100 * MIB, 25, 150 * MIB, 55, True)


def sentences(trace: Trace) -> List[str]:
    profile = trace.load()
    names = Names(profile)
    report = build_report(profile, moment_of(profile, names, None), names)
    return [finding.text for finding in findings(report) if finding.key == "loading"]


def test_one_sentence_has_both_peaks() -> None:
    assert sentences(run(READS + RUNS)) == [
        "Loading the model took 205 MiB, at 45 ms; training takes 150 MiB, at 85 ms."
    ]
    assert sentences(run(READS + RUNS, has_gradients=False)) == [
        "Loading the model took 205 MiB, at 45 ms; running it takes 150 MiB, at 85 ms."
    ]


def test_the_python_api_has_both(tmp_path: Path) -> None:
    made = Profile.load(run(READS + RUNS).save(tmp_path)).loading()
    assert made is not None and (made.peak, made.steady_peak) == (205 * MIB, 150 * MIB)


def test_peaks_that_are_about_the_same_are_no_finding() -> None:
    steps = [(100, 0, 5, 105), (100, 0, 6, 106), (100, 0, 0, 100)]
    assert found(run(BUILDS + steps)) is not None and sentences(run(BUILDS + steps)) == []


NOT_KNOWN = {
    "a run that ends while it loads": READS,
    "a run without parameters": [(0, 0, active, most) for _, _, active, most in BUILDS + RUNS],
    "modules made at the first run": BUILDS + [(100, 0, 2, 102)] + [(140, 0, 20, 180)] * 5,
    "a second model built later": BUILDS + RUNS + [(180, 0, 0, 180)] + [(200, 0, 40, 250)] * 6,
    "a second model built after the first ran once": BUILDS + RUNS[:2] + [(200, 0, 40, 250)] * 6,
    "a model in place of another": BUILDS + RUNS + [(0, 0, 0, 20), (60, 0, 0, 60), *RUNS],
    "a run of which much happened between two snapshots": READS[:5] + [(100, 0, 40, 230), *RUNS],
}


@pytest.mark.parametrize("case", NOT_KNOWN)
def test_nothing_is_said_of(case: str) -> None:
    assert found(run(NOT_KNOWN[case])) is None


def test_nothing_is_said_of_two_memories() -> None:
    assert found(run(READS + RUNS, memory="discrete")) is None


def test_parameters_replaced_while_training_are_no_second_model() -> None:
    replaced = [(100, 0, 30, 140), (105, 0, 30, 140), (95, 0, 30, 140), (100, 0, 30, 140)]
    made = found(run(READS + RUNS + replaced))
    assert made is not None and (made.peak, made.steady_peak) == (205 * MIB, 150 * MIB)


def test_what_returning_functions_free_is_no_second_model() -> None:
    made = found(run(READS + RUNS + [(100, 0, 0, 130), (0, 0, 0, 130)]))
    assert made is not None and (made.peak, made.steady_peak) == (205 * MIB, 150 * MIB)
