# SPDX-License-Identifier: GPL-2.0-or-later
"""The page's data is as its records say, and the page's sources have types of these records."""

import json
import struct
from typing import Any, Callable, Dict, List

import pytest

from jmassif.analysis.compare import Column, Stacks, compare, measure
from jmassif.analysis.processes import build_job_report, join
from jmassif.export.json import merged_schema
from jmassif.html import page as html
from jmassif.html.data import report_of, run_data
from jmassif.html.diff_page import stacks_data
from jmassif.html.head import RUN, Together
from jmassif.html.job import job_data, together
from jmassif.html.typescript import typescript
from tests.reporter.test_exhaustion import two_failures
from tests.reporter.traces import ROOT, random_run, small_training_run

TYPES = ROOT / "reporter" / "web" / "src" / "runs" / "head.ts"


def faults(value: Any, *parts: Any) -> List[str]:
    validator = pytest.importorskip("jsonschema").Draft7Validator(merged_schema("page", parts))
    return ["/".join(map(str, error.absolute_path)) or error.message for error in validator.iter_errors(value)]


def head_of(packed: bytes) -> Dict[str, Any]:
    (length,) = struct.unpack_from("<I", packed)
    head: Dict[str, Any] = json.loads(packed[4 : 4 + length].decode("utf-8"))
    return head


def difference_of(*traces: Any) -> Any:
    views, stacks = ["owner", "scope"], Stacks()
    runs = [measure(str(number), each.load(), views, "peak", stacks) for number, each in enumerate(traces)]
    return compare([Column("old", runs[:2]), Column("new", runs[2:])], views, 0), stacks


def test_types_are_of_the_records() -> None:
    assert (
        TYPES.read_text(encoding="utf-8") == "\n".join(typescript()) + "\n"
    ), "write it again: html/typescript.py says how"


@pytest.mark.parametrize("make", [small_training_run, lambda: two_failures().trace, lambda: random_run(1)])
def test_a_run_is_as_its_records_say(make: Callable[[], Any]) -> None:
    (run,) = head_of(html.pack([run_data(report_of(make().load()))], "a title"))["runs"]
    assert faults(run, *RUN) == []


def test_a_sum_of_processes_is_as_its_record_says() -> None:
    job = join([("one", small_training_run().load()), ("other", random_run(1).load())])
    made = build_job_report(job)
    runs = job_data(made, [report_of(process.profile) for process in job.members], [None, None])
    head = head_of(html.pack(runs, "a title", together(made)))
    assert faults(head["together"], Together) == []
    assert [faults({**head["runs"][0], **run}, *RUN) for run in head["runs"]] == [[], [], []]


def test_a_difference_is_as_its_records_say() -> None:
    found, stacks = difference_of(small_training_run(), small_training_run(), random_run(1))
    head = head_of(html.pack([stacks_data(found, stacks)], "a title", difference=["old", "new"]))
    assert faults(head["runs"][0], *RUN) == []


def test_a_member_that_is_missing_or_unknown_or_of_another_type_is_found() -> None:
    (run,) = head_of(html.pack([run_data(report_of(small_training_run().load()))], "a title"))["runs"]
    del run["pid"]
    run["novel"] = 1
    run["kinds"][0]["is_handle"] = 3
    del run["scopes"][0]["begin"]
    assert len(faults(run, *RUN)) == 4
