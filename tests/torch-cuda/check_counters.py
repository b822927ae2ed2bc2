# SPDX-License-Identifier: GPL-2.0-or-later
"""jmassif's ledger against PyTorch's own counters, on PyTorch's CUDA build and the memory simulation.

`run` makes the root and starts this. Each script of scripts/ prints PyTorch's figures at every step and sets a mark there;
a test compares, mark by mark, one figure of the snapshot with PyTorch's, to the byte. Both recorders record each script. The
name keeps these tests out of `make check`: they need a root of 3.5 GB, and below Valgrind two minutes a program.
"""

import functools
import json
import os
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import pytest

from jmassif.analysis.ladder import ladders
from jmassif.analysis.moments import Moment as At
from jmassif.analysis.oom import incidents_of
from jmassif.attribution.names import Names
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from jmassif.render.ladder import shown_numbers
from moments import Moment, moments
from tests import trixie_root
from tests.reporter.test_ladder import adds_up

ROOT = Path(os.environ["JMASSIF_TORCH_ROOT"])
SCRIPTS = "/src/tests/torch-cuda/scripts"
KEPT = ("parameter", "gradient", "optimizer")  # from step to step
PASSING = ("activation", "input")
# A cuBLAS handle's: 2 x 4 MiB + 8 x 16 KiB, PyTorch's default. The main thread and autograd's have one each.
WORKSPACE_BYTES = 8519680
# Reports of the allocator that the ledger could not follow.
DISAGREEMENTS = (
    "tensor-without-segment",
    "tensor-free-unknown",
    "tensor-allocated-differs",
    "tensor-reserved-differs",
)

DEFAULT = ""
EXPANDABLE = "expandable_segments:True"
ASYNC = "backend:cudaMallocAsync"


class Program(NamedTuple):
    name: str
    script: Tuple[str, ...]
    allocator: str


TRAINING = (
    Program("sgd", ("train.py", "sgd"), DEFAULT),
    Program("adam", ("train.py", "adam"), DEFAULT),
    Program("sgd-expandable", ("train.py", "sgd"), EXPANDABLE),
    Program("adam-async", ("train.py", "adam"), ASYNC),
)
# These programs reckon roles.
RECKONING = TRAINING + (Program("roles", ("roles.py",), DEFAULT),)
# The training loops come first, for pytest to run each program once: it goes by places in these lists.
PROGRAMS = RECKONING + (
    Program("exhaust", ("exhaust.py",), DEFAULT),
    Program("exhaust-expandable", ("exhaust.py",), EXPANDABLE),
    Program("graph", ("graph.py",), DEFAULT),
    Program("graph-expandable", ("graph.py",), EXPANDABLE),
    Program("exhaust-async", ("exhaust.py",), ASYNC),
)


HOSTS = ("native", "valgrind")


@functools.lru_cache(maxsize=None)  # pytest runs the same object once
def on_host(program: Program, host: str) -> Tuple[Program, str]:
    return program, host


def each(programs: Tuple[Program, ...]) -> Any:
    runs = [on_host(program, host) for program in programs for host in HOSTS]
    return pytest.mark.parametrize(
        "finished", runs, indirect=True, scope="module", ids=[f"{program.name}-{host}" for program, host in runs]
    )


class Finished(NamedTuple):
    program: Program
    profile: Profile
    alone: List[Dict[str, Any]]  # what the script printed
    told: List[Dict[str, Any]]  # the same, under jmassif
    moments: List[Moment]

    def pairs(self) -> Iterator[Tuple[Dict[str, Any], Moment]]:
        assert [line["mark"] for line in self.told] == [moment.mark for moment in self.moments]
        return zip(self.told, self.moments)


def run_inside(program: Program, command: List[str]) -> List[Dict[str, Any]]:
    """Runs a command in the root, and returns the figures that it printed."""
    variables = {"LD_LIBRARY_PATH": "/opt/cuda", "PYTHONDONTWRITEBYTECODE": "1"}
    if program.allocator:
        variables["PYTORCH_CUDA_ALLOC_CONF"] = program.allocator
    done = trixie_root.run_inside(ROOT, command, variables, 1800)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def record(program: Program, host: str, script: List[str]) -> Tuple[Path, List[Dict[str, Any]]]:
    """The trace, and the figures that the script printed."""
    trace = ROOT / "out" / f"{program.name}-{host}.jmassif"
    trace.parent.mkdir(exist_ok=True)
    if trace.exists():
        trace.unlink()
    return trace, run_inside(program, ["jmassif", f"--{host}", f"--jmassif-out-file=/out/{trace.name}", *script])


@functools.lru_cache(maxsize=1)
def run_alone(program: Program, script: Tuple[str, ...]) -> List[Dict[str, Any]]:
    return run_inside(program, list(script))


@pytest.fixture(scope="module")
def finished(request: Any) -> Finished:
    program, host = request.param
    script = ("python3", f"{SCRIPTS}/{program.script[0]}", *program.script[1:])
    alone = run_alone(program, script)
    trace, told = record(program, host, list(script))
    profile = load_file(str(trace))
    return Finished(program, profile, alone, told, moments(trace, profile))


def differences(finished: Finished, figure: str, ours: Any) -> Dict[str, Tuple[int, int]]:
    """By mark: PyTorch's figure and ours, where they are not the same. Marks at which PyTorch was not asked are left out."""
    pairs = ((told["mark"], told[figure], ours(moment)) for told, moment in finished.pairs() if figure in told)
    return {mark: (theirs, mine) for mark, theirs, mine in pairs if theirs != mine}


@each(PROGRAMS)
def test_pytorch_allocates_what_it_allocates_alone(finished: Finished) -> None:
    assert finished.told == finished.alone
    assert any(line["allocated"] for line in finished.told)


@each(PROGRAMS)
def test_tensors_and_workspaces_are_memory_allocated(finished: Finished) -> None:
    found = differences(finished, "allocated", lambda moment: moment.handed_out)
    if finished.program.allocator == ASYNC:
        # PyTorch's figure is the driver's, which rounds each block up to 512 bytes; the ledger has what was asked for.
        found = {mark: pair for mark, pair in found.items() if not 0 <= pair[0] - pair[1] < 5 * 512}
    assert found == {}


@each(PROGRAMS)
def test_with_the_cache_they_are_memory_reserved(finished: Finished) -> None:
    assert differences(finished, "reserved", lambda moment: moment.reserved) == {}


@each(PROGRAMS)
def test_the_ladder_ends_at_memory_allocated_and_adds_up(finished: Finished) -> None:
    snapshots = [number for number, snapshot in enumerate(finished.profile.snapshots) if snapshot.reason == "mark"]
    for (told, moment), number in zip(finished.pairs(), snapshots):
        at = At(moment.mark, 0, finished.profile.composition(number), number)
        for ladder in ladders(finished.profile, at):
            assert adds_up(ladder.rungs, shown_numbers(ladder))
            if "allocated" in told and finished.program.allocator != ASYNC:  # whose figure is rounded up by the driver
                # Before the first tensor there is no such figure.
                assert sum(rung.bytes for rung in ladder.rungs if rung.key == "allocated") == told["allocated"]


@each(RECKONING)
@pytest.mark.parametrize("role", KEPT)
def test_roles_are_what_pytorch_reckons(finished: Finished, role: str) -> None:
    assert any(line[role] for line in finished.told if role in line)
    assert differences(finished, role, lambda moment: moment.by_role[role]) == {}


@each(TRAINING)
@pytest.mark.parametrize("role", PASSING)
def test_roles_in_passing_are_what_pytorch_reckons(finished: Finished, role: str) -> None:
    assert any(role in line for line in finished.told)
    assert differences(finished, role, lambda moment: moment.by_role[role]) == {}


@each(TRAINING)
def test_workspaces_are_no_tensors(finished: Finished) -> None:
    assert finished.moments[-1].by_owner["tensor"] == 0
    assert finished.moments[-1].by_owner["workspace"] == 2 * WORKSPACE_BYTES


@each(TRAINING)
def test_nvtx_ranges_are_regions_and_know_what_was_reserved_in_them(finished: Finished) -> None:
    reserved = {line["mark"]: line["reserved"] for line in finished.told}
    regions = finished.profile.regions
    assert [region.text for region in regions] == ["forward 0", "forward 1", "forward 2"]
    # The first time libraries take memory of their own besides.
    for step, region in list(enumerate(regions))[1:]:
        growth = reserved[f"{step} forward"] - reserved[f"{step} input"]
        assert finished.profile.region_figures(region).device == growth


@each(PROGRAMS)
def test_retries_are_num_alloc_retries(finished: Finished) -> None:
    assert differences(finished, "retries", lambda moment: moment.counters.get("cuda-alloc-retries", 0)) == {}


@each(PROGRAMS)
def test_out_of_memory_is_num_ooms(finished: Finished) -> None:
    assert differences(finished, "ooms", lambda moment: moment.counters.get("framework-out-of-memory", 0)) == {}


@each(PROGRAMS)
def test_the_ledger_followed_every_report(finished: Finished) -> None:
    assert {key: finished.moments[-1].counters.get(key, 0) for key in DISAGREEMENTS} == dict.fromkeys(DISAGREEMENTS, 0)


# What exhaust.py does: once giving the cache back helps, or is not needed; once nothing helps.
INCIDENTS = {
    "exhaust": [("cache", "retried", 1), ("full", "raised", 2)],
    "exhaust-expandable": [("full", "raised", 2)],
    "exhaust-async": [("full", "", 1)],
}


@each(tuple(program for program in PROGRAMS if program.name in INCIDENTS))
def test_the_verdicts_are_what_the_script_did(finished: Finished) -> None:
    found = incidents_of(finished.profile, Names(finished.profile))
    assert [(incident.verdict, incident.outcome, len(incident.tries)) for incident in found] == INCIDENTS[
        finished.program.name
    ]
