# SPDX-License-Identifier: GPL-2.0-or-later
"""The first sentences of a difference, from runs of which it is known by what they differ."""

import json
from pathlib import Path
from typing import Dict, List

from jmassif.commands.jm_diff import main
from tests.reporter.commands import call
from tests.reporter.traces import Trace

MIB = 1 << 20


def run(directory: Path, name: str, held: Dict[str, int], memory: str = "unified") -> Path:
    trace = Trace(memory=memory, time_unit="ms")
    trace.group("yours", "tensor", "app")
    kinds = {"tensor": "device", "app": "heap"}
    accounts = {trace.account(kinds[owner], owner, ["main (a.c:1)"]): (n * MIB, 1) for owner, n in held.items()}
    trace.snapshot(1, "exit", accounts, {which: (1, {}) for which in ("total", "host", "device")})
    path = directory / name
    path.write_text("\n".join(trace.lines) + "\n")
    return path


def sentences(*arguments: object) -> List[str]:
    found: List[str] = json.loads(call(main, "--format=json", *arguments).out)["headline"]
    return found


def test_it_says_how_much_more_and_whose_that_is_most(tmp_path: Path) -> None:
    old = run(tmp_path, "a", {"tensor": 40, "app": 10})
    new = run(tmp_path, "b", {"tensor": 60, "app": 9})
    (text,) = sentences(old, new)
    assert text.startswith("new holds 19.0 MiB more than old at the peak: 50.0 MiB → 69.0 MiB, 38.0 %.")
    assert "most changed tensor +20.0 MiB, then app -1.00 MiB" in text and "--vs" in text
    for format_ in ("text", "markdown"):
        assert call(main, f"--format={format_}", old, new).out.startswith("new holds 19.0 MiB more than old")
    assert sentences(new, old)[0].startswith("new holds 19.0 MiB less than old")
    assert sentences(old, old)[0] == "new holds as much as old at the peak: 50.0 MiB."


def test_repeated_runs_tell_what_is_noise(tmp_path: Path) -> None:
    near = [run(tmp_path, f"n{n}", {"app": n}) for n in (10, 12, 11, 13)]
    far = [run(tmp_path, f"f{n}", {"app": n}) for n in (30, 31)]
    (text,) = sentences(*near[:2], "--vs", *near[2:])
    assert text.endswith("That is within what the runs of either side differ by, so it may be noise.")
    (text,) = sentences(*near, "--vs", *far)
    assert text.endswith("That is beyond what the runs of either side differ by.")


def test_pools_of_a_discrete_gpu_have_a_sentence_each(tmp_path: Path) -> None:
    old = run(tmp_path, "a", {"tensor": 40, "app": 10}, "discrete")
    new = run(tmp_path, "b", {"tensor": 60, "app": 10}, "discrete")
    device, host = sentences(old, new)
    assert device.startswith("new holds 20.0 MiB of device memory more than old at the peak")
    assert host == "new holds as much of host memory as old at the peak: 10.0 MiB."
