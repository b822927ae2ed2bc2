# SPDX-License-Identifier: GPL-2.0-or-later
"""Every format on a generated trace of 200 MB: its sums, its time, its memory."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import pytest

from jmassif.cli.report import FORMATS
from jmassif.reader.builder import load_file
from tests.harness import BUILD
from tests.reporter.consumers import output_of
from tests.reporter.generate import generate
from tests.reporter.test_formats import expected
from tests.reporter.traces import ROOT


N_SNAPSHOTS, N_STACKS = 2000, 300000
_MAX_BYTES = 1 << 30

Outcome = Tuple[Path, float, int]


@pytest.fixture(scope="module")
def trace() -> Path:
    path = BUILD / "large.jmassif"
    if not path.exists():
        with path.open("wb") as stream:
            generate(stream, N_SNAPSHOTS, N_STACKS, 1)
    return path


@pytest.fixture(scope="module")
def sums(trace: Path) -> List[int]:
    return expected(load_file(str(trace)))


@pytest.fixture(scope="module")
def table() -> Iterator[Dict[str, str]]:
    lines: Dict[str, str] = {}
    yield lines
    print("\n" + "\n".join(lines.values()))


def run(form: str, trace: Path, directory: Path) -> Outcome:
    """(report, seconds of the processor, bytes of memory)"""
    report = directory / form
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "reporter" / "jm_print"), f"--format={form}", "-o", str(report), str(trace)]
    )
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    return report, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def own_sum(form: str, report: Path) -> List[int]:
    """What the report adds up to, in the order of samples.VALUES as far as it tells them."""
    if form == "folded":
        with report.open(encoding="utf-8") as stream:
            return [sum(int(line.rpartition(" ")[2]) for line in stream)]
    if form == "pprof":
        said = output_of("go", "tool", "pprof", "-top", "-unit=B", "-nodecount=1", report)
        return [int(found) for found in re.findall(r"of (\d+)B total", said)]
    file = json.loads(report.read_text(encoding="utf-8"))
    total = file["ledger"]["total"]
    return [total["host_bytes"] + total["device_bytes"]]


@pytest.mark.parametrize("form", [name for name in FORMATS if name not in ("text", "massif", "html")])
def test_a_large_trace(form: str, trace: Path, sums: List[int], table: Dict[str, str], tmp_path: Path) -> None:
    report, seconds, n_bytes = run(form, trace, tmp_path)
    table[form] = f"{form:<12}{seconds:6.1f} s {n_bytes >> 20:6} MiB of memory {report.stat().st_size / 1e6:8.1f} MB"
    assert n_bytes < _MAX_BYTES
    if form not in ("csv", "memory-viz", "perfetto") and (form != "pprof" or os.path.exists("/usr/bin/go")):
        found = own_sum(form, report)
        assert found and found == sums[: len(found)]


@pytest.fixture(scope="module")
def huge_trace() -> Path:
    if os.environ.get("JMASSIF_HUGE") != "1":
        pytest.skip("only with JMASSIF_HUGE=1: a trace of a gigabyte takes minutes to make")
    path = BUILD / "huge.jmassif"
    if not path.exists():
        with path.open("wb") as stream:
            generate(stream, 4500, 670000, 1)
    return path


@pytest.mark.parametrize("form, most_seconds, most_bytes", [("text", 90, 3 << 29), ("html", 150, 2 << 30)])
def test_a_trace_of_a_gigabyte(
    form: str, most_seconds: int, most_bytes: int, huge_trace: Path, table: Dict[str, str], tmp_path: Path
) -> None:
    _, seconds, n_bytes = run(form, huge_trace, tmp_path)
    table[f"huge {form}"] = f"{'huge ' + form:<12}{seconds:6.1f} s {n_bytes >> 20:6} MiB of memory"
    assert seconds < most_seconds and n_bytes < most_bytes
