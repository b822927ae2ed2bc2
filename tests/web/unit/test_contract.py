# SPDX-License-Identifier: GPL-2.0-or-later
"""What the page is handed is of the types in reporter/web/src/runs/data.ts: each field, and no other. tsc compares them."""

import json
import struct
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

from jmassif.analysis.compare import Column, Stacks, compare, measure
from jmassif.analysis.processes import build_job_report, join
from jmassif.html import page as html
from jmassif.html.data import report_of, run_data, together
from jmassif.html.diff_page import comparison
from tests.harness import Run, run
from tests.reporter.test_exhaustion import two_failures
from tests.reporter.traces import random_run, small_training_run
from tests.web.browser import WEB


def head_of(packed: bytes) -> Dict[str, Any]:
    (length,) = struct.unpack_from("<I", packed)
    head: Dict[str, Any] = json.loads(packed[4 : 4 + length].decode("utf-8"))
    return head


def check(directory: Path, **values: Any) -> Run:
    """Has tsc check that values, by the names of their types, are of these."""
    source = f"import type * as data from '{WEB}/src/runs/data.js';\n"
    source += "".join(f"export const a{name}: data.{name} = {json.dumps(value)};\n" for name, value in values.items())
    (directory / "check.ts").write_text(source, encoding="utf-8")
    options = ["--noEmit", "--strict", "--module", "esnext", "--moduleResolution", "bundler", "--target", "es2022"]
    return run([WEB / "node_modules/.bin/tsc", *options, directory / "check.ts"], timeout=120)


@pytest.mark.parametrize("make", [small_training_run, lambda: two_failures().trace, lambda: random_run(1)])
def test_what_is_written_of_a_run_has_its_type(make: Callable[[], Any], tmp_path: Path) -> None:
    (head,) = head_of(html.pack([run_data(report_of(make().load()))], "a title"))["runs"]
    done = check(tmp_path, RunHead=head)
    assert done.returncode == 0, done.stdout


def test_what_is_written_of_several_processes_has_its_type(tmp_path: Path) -> None:
    job = join([("one", small_training_run().load()), ("other", random_run(1).load())])
    runs = [run_data(report_of(process.profile)) for process in job.members]
    head = head_of(html.pack(runs, "a title", together(build_job_report(job))))
    done = check(tmp_path, Together=head["together"])
    assert done.returncode == 0, done.stdout


def test_what_is_written_of_a_difference_has_its_type(tmp_path: Path) -> None:
    traces = [small_training_run().load(), small_training_run().load(), random_run(1).load()]
    views, stacks = ["owner", "scope"], Stacks()
    runs = [measure(str(number), profile, views, "peak", stacks) for number, profile in enumerate(traces)]
    found = compare([Column("old", runs[:2]), Column("new", runs[2:])], views, 0)
    done = check(tmp_path, Difference=comparison(found))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "change, fault",
    [
        (lambda head: head.pop("pid"), "'pid' is missing"),
        (lambda head: head.update(novel=1), "novel"),
        (lambda head: head.update(unit="fortnights"), "fortnights"),
        (lambda head: head["kinds"][0].update(is_handle=3), "'boolean'"),
        (lambda head: head["scopes"][0].pop("host"), "'host' is missing"),
    ],
)
def test_a_field_that_is_missing_or_unknown_or_of_another_type_is_found(
    change: Callable[[Any], Any], fault: str, tmp_path: Path
) -> None:
    (head,) = head_of(html.pack([run_data(report_of(small_training_run().load()))], "a title"))["runs"]
    change(head)
    done = check(tmp_path, RunHead=head)
    assert done.returncode != 0 and fault in done.stdout
