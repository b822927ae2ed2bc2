# SPDX-License-Identifier: GPL-2.0-or-later
"""The ranks of a distributed job side by side: whose variables count, the odd one out, and which one failed first."""

import json
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import pytest

from jmassif.analysis.processes import JobReport, build_job_report
from jmassif.attribution.redact import anonymize
from jmassif.cli.main import main
from jmassif.html.data import report_of
from jmassif.html.job import job_data
from jmassif.model.run_info import about
from jmassif.render.job import ODD, statements
from tests.reporter.commands import jm_print, validator
from tests.reporter.test_processes import START, joined
from tests.reporter.traces import Trace

MIB = 1 << 20
TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID")
MPI = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_JOB_ID")
PMI = ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "SLURM_JOB_ID")
SLURM = ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_JOB_ID")


def rank(
    number: int,
    end: str = "Z 900 exit 0",
    lines: Optional[Dict[str, int]] = None,
    names: Tuple[str, ...] = TORCHRUN,
    start: int = 0,
    world: int = 4,
    **manifest: str,
) -> Trace:
    """A process of 100 MiB, and of what `lines` of train.py hold."""
    facts = {"command": "train.py", "time_unit": "ms", "memory": "unified", "host": f"board-{number % 2}"}
    facts.update({"pid": str(100 + number), "ppid": "1", "start_unix_ms": str(START + start), **manifest})
    trace = Trace(**facts)
    values = zip(names, (str(number), str(world), str(number // 2), "job7"))
    trace.lines[1:1] = [f"m env.{name} {value}" for name, value in values]
    trace.group("yours", "data")
    held = {}
    for line, n_bytes in {"1": 100 * MIB, **(lines or {})}.items():
        held[trace.account("heap", "data", ["malloc (libc.so.6)", f"py main (/app/train.py:{line})"])] = (n_bytes, 1)
    trace.snapshot(500, "time", held, {"total": (500, {}), "host": (500, {})})
    trace.lines += [end] * bool(end)
    return trace


def made(*traces: Trace) -> JobReport:
    return build_job_report(joined(*traces))


def said(*traces: Trace) -> List[str]:
    return [each.text for each in statements(made(*traces))]


# ---- who is a rank -------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [TORCHRUN, MPI, PMI, SLURM])
def test_each_launchers_variables_name_rank_world_local_rank_and_job(names: Tuple[str, ...]) -> None:
    report = made(*(rank(number, names=names) for number in (3, 1, 0, 2)))
    found = [row.ended.process.rank for row in report.ranks]
    assert [tuple(each) for each in found if each] == [(n, 4, str(n // 2), "job7") for n in range(4)]
    assert [(row.rank, row.host, row.pid) for row in report.ranks] == [(n, f"board-{n % 2}", 100 + n) for n in range(4)]
    assert dict(about(rank(3, names=names).load()))["Rank"] == "3 of 4, local rank 1, job job7, on board-1"


def test_under_slurm_torchruns_own_process_is_no_rank() -> None:
    launcher = rank(0, names=SLURM, pid="1", ppid="9", world=2)
    report = made(launcher, *(rank(n) for n in range(4)))
    assert [(row.rank, row.pid) for row in report.ranks] == [(n, 100 + n) for n in range(4)]


@pytest.mark.parametrize("value", ["", "x", "-1", "4", "1" * 30])
def test_what_is_no_rank_is_none(value: str) -> None:
    strange = Trace(command="train.py", time_unit="ms", pid="7", start_unix_ms=str(START))
    strange.lines[1:1] = [f"m env.RANK {value}", "m env.WORLD_SIZE 4"]
    assert made(strange, rank(1)).ranks[0].pid == 101 and len(made(strange, rank(1)).ranks) == 1


def test_a_forked_worker_and_a_shell_around_it_are_not_the_rank() -> None:
    shell = rank(0, pid="50", command="sh run.sh", lines={"1": MIB})
    main_ = rank(0, ppid="50", start=10)
    worker = rank(0, "", pid="51", ppid="100", forked_from="100", start=10)
    worker.snapshot(600, "time", {1: (300 * MIB, 1)}, {"total": (600, {}), "host": (600, {})})
    report = made(shell, main_, worker, rank(1))
    assert [(row.rank, row.pid) for row in report.ranks] == [(0, 100), (1, 101)]


# ---- the odd one out -----------------------------------------------------------------------------


def test_the_odd_one_out_is_named_with_the_line_that_makes_the_difference() -> None:
    ranks = [rank(n, lines={"7": (40 if n == 2 else 3) * MIB, "9": n * MIB}) for n in range(4)]
    (odd,) = [each.text for each in statements(made(*ranks)) if each.about == ODD]
    assert odd == (
        "Rank 2 differs most: peak 142 MiB, +38.0 MiB against the median of 4 ranks, 104 MiB, above all at"
        " train.py:7 (main): 40.0 MiB, not 3.00 MiB."
    )


def test_a_rank_that_holds_less_is_odd_too_unless_it_failed() -> None:
    full = [rank(n, lines={"7": 40 * MIB}) for n in range(3)]
    found = made(*full, rank(3)).odd
    assert found and (found.row.rank, found.line, found.line_bytes) == (3, "train.py:7 (main)", 0)
    assert made(*full, rank(3, "Z 600 signal 9")).odd is None


@pytest.mark.parametrize("n_ranks, more", [(4, 4), (2, 40)])
def test_ranks_that_hardly_differ_and_two_alone_have_no_odd_one(n_ranks: int, more: int) -> None:
    assert made(*(rank(n, lines={"7": (n == 0) * more * MIB + 1}) for n in range(n_ranks))).odd is None


# ---- which failed first --------------------------------------------------------------------------


def test_the_first_failure_is_the_first_on_the_common_clock() -> None:
    # Rank 3 ended first by its own clock.
    report = made(rank(0), rank(1, "Z 900 signal 9"), rank(2), rank(3, "Z 700 signal 9", start=5000))
    assert report.first_failure and report.first_failure.process.pid == 101
    texts = said(rank(0), rank(1, "Z 900 signal 9"), rank(3, "Z 700 signal 9", start=5000))
    assert texts[0].startswith("Rank 1 failed first (on board-1, process 101): killed by signal 9")
    assert texts[1] == "Rank 3: killed by signal 9 (SIGKILL), after 5.70 s."


@pytest.mark.parametrize("effect", ["Z 600 exit 1", "Z 600 signal 15"])
@pytest.mark.parametrize("cause", ["Z 900 signal 9", ""])
def test_a_killed_rank_comes_before_those_that_ended_because_of_it(effect: str, cause: str) -> None:
    first = made(rank(0, effect), rank(1, effect), rank(2, cause), rank(3, effect)).first_failure
    assert first and first.process.pid == 102


def test_a_job_that_ended_well_has_no_first_failure() -> None:
    assert made(*map(rank, range(4))).first_failure is None


# ---- the report ----------------------------------------------------------------------------------


@pytest.fixture(name="files")
def fixture_files(tmp_path: Path) -> List[str]:
    for number in (0, 1, 3):
        lines = {"7": (50 if number == 3 else 5) * MIB}
        (tmp_path / f"jm.{number}").write_bytes(rank(number, "Z 900 exit 0" if number else "", lines).bytes())
    return sorted(map(str, tmp_path.iterdir()))


def test_the_report_shows_ranks_side_by_side(files: List[str], capsys: "pytest.CaptureFixture[str]") -> None:
    assert main(["report", *files]) == 0
    out = capsys.readouterr().out
    table = out[out.index("--- Ranks") :].splitlines()[1:5]
    assert table[0].split() == ["rank", "host", "pid", "peak", "your", "code", "cache", "end", "status"]
    assert table[3].split() == "3 board-1 103 150 MiB 150 MiB 0 B 900 ms exit status 0".split()
    assert table[1].endswith("no end record")
    text = " ".join(out.split())
    assert "Rank 0 failed first (on board-0, process 100): no end record" in text
    assert "Without a trace here: rank 2." in text
    assert "2 machines (board-0, board-1) are taken to agree: the order of events on different machines is" in text


def test_of_many_ranks_the_odd_one_and_the_first_that_failed_are_shown(
    tmp_path: Path, capsys: "pytest.CaptureFixture[str]"
) -> None:
    for n in range(40):
        end, lines = "Z 900 signal 9" if n == 37 else "Z 900 exit 0", {"7": (n == 31) * 50 * MIB + 1}
        (tmp_path / f"jm.{n}").write_bytes(rank(n, end, lines, world=40).bytes())
    assert main(["report", *map(str, tmp_path.iterdir())]) == 0
    out = capsys.readouterr().out
    rows = out[out.index("--- Ranks") :].splitlines()[2:15]
    assert [int(row.split()[0]) for row in rows[:-1]] == [*range(10), 31, 37] and rows[-1] == "and 28 more: --all"


def test_json_has_the_ranks(files: List[str]) -> None:
    found = json.loads(jm_print("--format=json", *files).out)
    validator("jmassif-job").validate(found)
    keys = ("rank", "host", "pid", "peak", "yours", "cached")
    assert found["ranks"][2] == dict(zip(keys, (3, "board-1", 103, 150 * MIB, 150 * MIB, 0)))
    assert found["odd"]["row"]["rank"] == 3 and found["odd"]["line"] == "train.py:7 (main)"
    assert found["first_failure"] == 0
    assert found["processes"][0]["process"]["rank"] == {"number": 0, "world": 4, "local": "0", "job": "job7"}


def test_an_anonymous_report_keeps_ranks_and_no_job() -> None:
    run = rank(2).load()
    anonymize(run)
    assert {key: value for key, value in run.manifest.items() if key.startswith("env.")} == {
        "env.RANK": "2",
        "env.WORLD_SIZE": "4",
        "env.LOCAL_RANK": "1",
    }


def test_an_error_comes_before_the_ranks_that_the_launcher_ended_because_of_it() -> None:
    texts = said(rank(0, "Z 620 signal 15"), rank(1, "Z 600 exit 1"), rank(2, "Z 620 signal 15"))
    assert texts[0].startswith("Rank 1 failed first (on board-1, process 101): exit status 1")
    assert texts[1].startswith("Rank 0: killed by signal 15")


def test_the_page_has_the_table_of_the_ranks() -> None:
    report = made(*(rank(n, "Z 900 exit 0" if n else "") for n in range(2)))
    reports = [report_of(process.profile) for process in report.job.members]
    whole = job_data(report, reports, [None, None])[0].head
    (table,) = [each for each in whole["tables"] if each["caption"] == "Ranks"]
    heads = ["rank", "host", "pid", "end", "status", "peak", "your code", "cache"]
    assert table["view"] == "about" and [head for head, _ in table["columns"]] == heads
    assert table["rows"][1] == ["1", "board-1", "101", "900 ms", "exit status 0", 100 * MIB, 100 * MIB, 0]
