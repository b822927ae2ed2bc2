# SPDX-License-Identifier: GPL-2.0-or-later
"""The package as programs use it: docs/reference.md holds, example by example."""

import gzip
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, Union

import pytest

import jmassif
from jmassif.analysis.aggregate import ledger
from tests.reporter.traces import ROOT, Trace, small_training_run

PAGE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")


def python(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-B"] + [str(argument) for argument in arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        env={"PYTHONPATH": str(ROOT / "reporter"), "PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "utf-8"},
        timeout=60,
    )


def example(after: str, directory: Path, *arguments: object) -> List[str]:
    """Runs the first Python example after that text; the lines it prints."""
    found = re.search(rf"{after}.*?```python\n(.*?)```", PAGE, re.DOTALL)
    assert found
    script = directory / "example.py"
    script.write_text(found.group(1))
    done = python(script, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(name="trace")
def fixture_trace(tmp_path: Path) -> Path:
    return small_training_run().save(tmp_path)


# ---- loading -------------------------------------------------------------------------------------


def test_a_profile_is_loaded_from_a_path_plain_or_compressed(trace: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    paths: List[Union[str, Path]] = [trace, str(trace), packed]
    for path in paths:
        profile = jmassif.Profile.load(path)
        assert isinstance(profile, jmassif.Profile) and profile.manifest["pid"] == "4711"


def test_what_cannot_be_loaded_has_one_error_that_names_file_and_line(trace: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad\n"
    bad.write_bytes(b"jmassif-trace 4\nq\n")
    with pytest.raises(jmassif.TraceError) as error:
        jmassif.Profile.load(bad)
    assert re.fullmatch(rf"{tmp_path}/bad\\x0a: line 2: .*", str(error.value))
    with pytest.raises(jmassif.TraceError, match=f"{tmp_path}/none: cannot be read: No such file"):
        jmassif.Profile.load(tmp_path / "none")


def test_a_trace_that_ends_early_is_read_as_far_as_it_goes(trace: Path) -> None:
    trace.write_bytes(trace.read_bytes()[:-5])
    profile = jmassif.Profile.load(trace)
    assert not profile.is_complete and profile.truncation


def test_several_traces_are_a_job(trace: Path) -> None:
    job = jmassif.Processes.load([trace])
    assert [process.pid for process in job.members] == [4711]


def test_a_training_script_pays_nothing_for_the_reader() -> None:
    done = python(
        "-c", "import sys; before = set(sys.modules); import jmassif; print(sorted(set(sys.modules) - before))"
    )
    imported = {name for name in re.findall(r"'([^']+)'", done.stdout) if name.startswith("jmassif")}
    assert imported == {"jmassif", "jmassif.annotate"}
    assert "argparse" not in done.stdout


def test_all_that_is_exported_is_there() -> None:
    assert all(getattr(jmassif, name) for name in jmassif.__all__)
    with pytest.raises(AttributeError):
        getattr(jmassif, "no_such_name")


# ---- the page ------------------------------------------------------------------------------------


def test_every_attribute_on_the_page_exists(trace: Path) -> None:
    profile = jmassif.Profile.load(trace)
    table = PAGE.partition("| attribute | content |\n|---|---|\n")[2].partition("\n\n")[0]
    first_cells = [row.split("|")[1] for row in table.splitlines()]
    named = [name for cell in first_cells for name in re.findall(r"`([a-z_]+)", cell)]
    assert len(named) >= 12
    for name in named:
        assert hasattr(profile, name), name


def test_the_example_of_the_peak_by_owner_agrees_with_the_ledger(trace: Path, tmp_path: Path) -> None:
    profile = jmassif.Profile.load(trace)
    table = ledger(profile, profile.peak_composition("total"))
    expected = {(row.name, group.name): row.bytes for group in table.groups for row in group.owners}
    printed: Dict[object, int] = {}
    for line in example("### Profiles", tmp_path, trace):
        n_bytes, owner, group = line.split()
        printed[(owner, group.strip("()"))] = int(n_bytes.replace(",", ""))
    assert printed == expected and len(expected) > 2


def test_the_example_of_leaks_names_the_line_that_grew(tmp_path: Path) -> None:
    trace = Trace(command="python3 train.py", time_unit="ms", memory="unified", pid="1")
    leak = trace.account(
        "heap", "python", ["malloc (libc.so.6)", "py keep (/app/train.py:9)", "py <module> (/app/train.py:20)"]
    )
    steady = trace.account("heap", "python", ["py load (/app/train.py:4)"])
    native = trace.account("heap", "lib", ["start (a.c:1)"])
    trace.snapshot(0, "start")
    trace.mark(10, "epoch 1")
    trace.snapshot(10, "mark", {leak: (100, 1), steady: (500, 1), native: (7, 1)})
    trace.snapshot(15, "time", {leak: (150, 2)})
    trace.mark(20, "epoch 2")
    trace.snapshot(20, "mark", {leak: (300, 3), native: (70, 2)})
    lines = example("A leak check", tmp_path, trace.save(tmp_path), "epoch 1", "epoch 2")
    assert [line.split(maxsplit=1) for line in lines] == [["+200", "/app/train.py:9 (keep)"]]
