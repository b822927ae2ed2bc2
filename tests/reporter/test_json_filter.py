# SPDX-License-Identifier: GPL-2.0-or-later
"""--include and --exclude in JSON: what is told is of that part, beside what it is a part of; what is of all is not told."""

import json
from pathlib import Path
from typing import Any, Dict

import pytest

from tests.reporter.commands import jm_print, validator
from tests.reporter.traces import Trace


def saved(tmp_path: Path) -> Path:
    trace = Trace(memory="unified", time_unit="ms", pid="7")
    net = trace.account("heap", "framework", ["malloc (libc.so.6)", "py forward (/app/net.py:7)", "main (m.c:1)"])
    data = trace.account("heap", "app", ["malloc (libc.so.6)", "py load (/app/data.py:3)", "main (m.c:1)"])
    pool = trace.account("device", "tensor", ["cudaMalloc (libcuda.so)", "py forward (/app/net.py:8)", "main (m.c:1)"])
    trace.snapshot(1, "time", {net: (100, 1), data: (2000, 3), pool: (30000, 2)})
    trace.snapshot(9, "exit", {net: (100, 1), data: (0, 0), pool: (0, 0)})
    return trace.save(tmp_path)


def told(path: Path, *options: str) -> Dict[str, Any]:
    done = jm_print("--format=json", *options, "-o", str(path) + ".json", path)
    assert done.status == 0, done.err
    made: Dict[str, Any] = json.loads(Path(str(path) + ".json").read_text(encoding="utf-8"))
    return made


@pytest.mark.parametrize(
    "options, host, device, accounts",
    [
        (["--include=forward"], 100, 30000, {1, 3}),
        (["--include=file:^/app/net"], 100, 30000, {1, 3}),
        (["--exclude=owner:tensor"], 2100, 0, {1, 2}),
        (["--include=forward", "--exclude=libcuda"], 100, 0, {1}),
        (["--include=nothing of that name"], 0, 0, set()),
    ],
)
def test_a_part_is_told_with_what_it_is_a_part_of(
    tmp_path: Path, options: Any, host: int, device: int, accounts: Any
) -> None:
    made = told(saved(tmp_path), *options, "--snapshot=peak")
    total = made["ledger"]["total"]
    assert (total["host_bytes"], total["device_bytes"]) == (host, device)
    assert made["filter"] == {"options": " ".join(options), "bytes": host + device, "of_bytes": 32100}
    assert {row[0] for row in made["accounts"]["rows"]} == accounts
    assert [made[of_all] for of_all in ("leaks", "growth", "balance", "others")] == [None] * 3 + [[]]
    validator().validate(made)


def test_without_a_filter_nothing_is_said_of_one(tmp_path: Path) -> None:
    made = told(saved(tmp_path))
    assert made["filter"] is None and made["peak"]["bytes"] == 32100 and len(made["accounts"]["rows"]) == 3
