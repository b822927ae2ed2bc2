# SPDX-License-Identifier: GPL-2.0-or-later
"""One number, followed to each reader: the bytes of your code at the peak are the same in text, JSON, page, diff, check and top."""

import json
import re
from pathlib import Path
from typing import Callable, Dict, List

import pytest

from jmassif.analysis.budgets import Meter
from jmassif.html.data import report_of, run_data
from jmassif.live.run import LiveRun
from jmassif.reader.builder import load_file
from tests.live.test_following import read_all
from tests.reporter.commands import jm_diff, jm_print
from tests.reporter.test_exhaustion import MIB, Run, on_board
from tests.reporter.test_summary import ended
from tests.reporter.traces import Trace

YOURS = ("tensor", "data", "app")
TORCH = ["empty (libtorch.so)", "py f (/app/train.py:7)"]


def run_of(held: Dict[str, int], times: int = 1, **manifest: str) -> Trace:
    """It holds most at its end; by "kind owner"."""
    trace = Trace(time_unit="ms", memory="unified", **manifest)
    trace.group("yours", *YOURS)
    trace.group("cached", "cache")
    trace.group("libraries", "cudnn")
    accounts = {name: trace.account(name.split()[0], name.split()[1], TORCH) for name in held}
    for time in range(1, times + 1):
        part = {accounts[name]: (n_bytes * time // times, 1) for name, n_bytes in held.items()}
        trace.snapshot(time, "time", part, {"total": (time, {})})
    return ended(trace, time=times + 1)


def out_of_memory() -> Trace:
    run = Run().segment(0x1000_0000, 3000 * MIB + 77, [(0, 3000 * MIB + 7)]).holds(3, 31 * MIB + 1)
    run.fails(900 * MIB, **on_board(196 * MIB))
    return ended(run.trace, "exit 1")


TRACES: Dict[str, Callable[[], Trace]] = {
    "host": lambda: run_of({"heap app": 123_456_789, "heap cudnn": 9_999_999}),
    "board": lambda: run_of(
        {"device tensor": 300_000_001, "device cache": 40_000_003, "heap app": 5_000_007}, board="b"
    ),
    "python": lambda: run_of(
        {"heap data": 7_000_001, "heap tensor": 90_000_011, "anon cudnn": 3_000_001}, python="3.8"
    ),
    "growing": lambda: run_of({"heap app": 64_000_001, "pinned cudnn": 1_000_003}, times=9),
    "out of memory": out_of_memory,
}


@pytest.mark.parametrize("name", sorted(TRACES))
def test_your_code_holds_as_much_for_every_reader(name: str, tmp_path: Path) -> None:
    path = TRACES[name]().save(tmp_path)
    run = load_file(str(path))
    expected = sum(
        n_bytes
        for id_, (n_bytes, _) in run.composition(len(run.snapshots) - 1).items()
        if run.accounts[id_].owner in YOURS
    )

    (row,) = re.findall(r"^your code .* ([\d,]+) +[\d.]+ %$", jm_print(path).out, re.MULTILINE)
    groups = json.loads(jm_print("--format=json", path).out)["ledger"]["groups"]
    usage = next(group["usage"] for group in groups if group["name"] == "yours")
    (first, *_) = run_data(report_of(run)).head["reports"]
    rungs = [rung for ladder in first["ladders"] for rung in ladder["rows"]]
    found = json.loads(jm_diff("--format=json", "--by=group", path, path).out)
    (cells,) = [each["cells"] for view in found["views"] for each in view["rows"] if each["name"] == "yours"]
    meter = Meter(run)
    live = LiveRun(str(path))
    read_all(live)

    def ints(texts: List[str]) -> int:
        return sum(int(text.replace(",", "")) for text in texts)

    assert {
        "text": ints([row]),
        "json": usage["host_bytes"] + usage["device_bytes"],
        "page": sum(rung["bytes"] for rung in rungs if rung["key"] in ("own", "own-code", "allocated")),
        "diff": cells[0]["host"] + cells[0]["device"],
        "check": sum(
            meter.value(f"peak.{owner}").number
            for owner in YOURS
            if any(each.owner == owner for each in run.accounts.types)
        ),
        "top": sum(row.bytes for row in live.sums.owners() if row.name in YOURS),
    } == dict.fromkeys(("text", "json", "page", "diff", "check", "top"), expected)
