# SPDX-License-Identifier: GPL-2.0-or-later
"""jmassif check: what budgets are called, when they are kept, and what a build script gets to see."""

import json
import re
from pathlib import Path
from typing import Dict, List
from xml.etree import ElementTree

import pytest

from jmassif.analysis.budgets import COUNTERS, Meter
from jmassif.model.run import Profile
from jmassif.units import QuantityError, parse_allowance, parse_bytes
from tests.reporter.commands import Done, assert_one_line_error, documented, jmassif
from tests.reporter.test_growth import ending_with
from tests.reporter.traces import ROOT, Trace, small_training_run

MIB = 1 << 20


def check(*arguments: object) -> Done:
    return jmassif("check", *arguments)


def refused(*arguments: object) -> str:
    done = check(*arguments)
    assert_one_line_error("jmassif check", done)
    return done.err


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return small_training_run().save(tmp_path)


@pytest.fixture(scope="module")
def profile() -> Profile:
    return small_training_run().load()


# ---- names -------------------------------------------------------------------------------------

# Against the records of small_training_run.
VALUES: Dict[str, int] = {
    "peak.total": (80 + 50 + 60 + 40 + 3) * MIB + 48000,
    "peak.host": 43 * MIB + 48000,
    "peak.device": 190 * MIB,
    "peak-host.total": (100 + 60 + 43) * MIB + 48000,
    "peak-device.device": 190 * MIB,
    "start.total": 0,
    "end.total": 203 * MIB + 48000,
    "last.device": 160 * MIB,
    "peak.tensor": 80 * MIB,
    "end.tensor": 0,
    "peak.app": 0,
    "peak.cache": 50 * MIB,
    "peak.python": 3 * MIB + 48000,
    "peak.python.host": 3 * MIB + 48000,
    "peak.python.device": 0,
    "peak.group.yours": 80 * MIB,
    "peak.group.libraries": 43 * MIB + 48000,
    "peak.group.libraries.device": 0,
    "peak.kind.heap": 43 * MIB,
    "peak.kind.heap-overhead": 48000,
    "peak.kind.managed": 0,
    "peak.driver": 60 * MIB,
    "peak.role.parameter": 80 * MIB,
    "peak.role.gradient": 0,
    "peak.library.libcudnn.so": 40 * MIB,
    "peak.library.libcudnn*": 40 * MIB,
    "peak.library.lib*": 170 * MIB,
    "peak.library.lib*.host": 40 * MIB,
    "peak.library.lib*.heap": 40 * MIB,
    "peak.library.lib*.file": 0,
    "peak.group.yours.device": 80 * MIB,
    "peak.library.nothing*": 0,
    "end.leak.tensor": 0,
    "end.leak.cudnn": 40 * MIB,
    "end.leak": 43 * MIB,
    "end.leak.total": 203 * MIB,
    "end.leak.context": 60 * MIB,
    "growth": 0,
    "growth.tensor": 0,
    "end.leak.group.cached": 100 * MIB,
    "failures": 3,
    "failures.cudaMalloc": 3,
    "failures.cuInit": 0,
    "temporaries": 890000,
    "cuda-alloc-retries": 0,
    "unknown-ioctl": 2,
    "allocated": (200 + 100 + 60 + 40 + 9) * MIB + 48000,
    "allocations": 40 + 2 + 1 + 12 + 900000,
}


@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_name_is_a_figure_of_the_run(profile: Profile, name: str) -> None:
    assert Meter(profile).value(name).number == VALUES[name]


def test_an_allocation_that_the_heap_refuses_is_a_failure(tmp_path: Path) -> None:
    recorded = Trace(time_unit="ms", memory="unified")
    recorded.snapshot(1, "exit", {recorded.account("heap", "app", ["main (a.c:1)"]): (10, 1)})
    recorded.lines += ["k heap-allocation-failed 2", "Z 3 exit 1"]
    assert check("--max=failures=1", recorded.save(tmp_path)).out.startswith("OVER  failures  2, ")


@pytest.mark.parametrize(
    "more, n", [([], 1), (["e {cuInit} 100 1", "e {cudnnCreate} 2 1"], 3), (["k heap-allocation-failed 5"], 6)]
)
def test_a_request_that_fails_is_one_failure_with_its_retries(more: List[str], n: int) -> None:
    """As PyTorch makes it: two calls of the runtime, each with one of the driver's inside."""
    recorded = Trace(time_unit="ms", memory="unified")
    tensor = recorded.account("device", "tensor", ["py f (/a/train.py:7)"])
    first = recorded.exhaustion(1, tensor, 300 * MIB)
    recorded.outcome(recorded.exhaustion(2, tensor, 300 * MIB, again=first), 3, "raised")
    calls = {name: recorded.string(name) for name in ("cudaMalloc", "cuMemAlloc_v2", "cuInit", "cudnnCreate")}
    failed = ["e {cudaMalloc} 2 2", "e {cuMemAlloc_v2} 2 2", "k out-of-memory 2", *more]
    recorded.lines += [line.format(**calls) for line in failed]
    meter = Meter(recorded.load())
    assert [meter.value(name).number for name in ("failures", "failures.cudaMalloc")] == [n, 2]


def test_a_mark_is_a_moment(tmp_path: Path) -> None:
    recorded = Trace(time_unit="ms", memory="unified")
    account = recorded.account("heap", "app", ["main (a.c:1)"])
    for time, text, n_bytes in ((1, "epoch 1", 10), (2, "epoch 1.5 done", 20), (3, "epoch 1", 30)):
        recorded.mark(time, text)
        recorded.snapshot(time, "mark", {account: (n_bytes, 1)})
    recorded.lines.append("Z 3 exit 0")
    path = recorded.save(tmp_path)
    done = check("--max", "epoch 1.total=29B", "--max", "epoch 1.5 done.app=20B", path)
    assert done.status == 1 and "OVER  epoch 1.total " in done.out and "ok    epoch 1.5 done.app" in done.out
    assert 'unknown budget "epoch 2.total"; try epoch 1.total' in refused("--max", "epoch 2.total=29B", path)


@pytest.mark.parametrize(
    "name, nearest",
    [
        ("peak.cudn", "peak.cudnn"),
        ("peek.cudnn", "peak.cudnn"),
        ("peak.group.library", "peak.group.libraries"),
        ("peak.kind.heep", "peak.kind.heap"),
        ("peak.role.gradients", "peak.role.gradient"),
        ("peak.tensor.gpu", "peak.tensor"),
        ("cudnn", "cudnn"),
        ("temporary", "temporaries"),
        ("peak", "peak"),
        ("start.leak.tensor", "leak.tensor"),
        ("", "peak.total"),
        ("π", "peak.total"),
    ],
)
def test_a_name_of_nothing_is_refused_with_what_is_nearest(trace: Path, name: str, nearest: str) -> None:
    message = refused("--max", f"{name}=1", trace) if name else refused("--max", "=1", trace)
    assert nearest in message or not name


def test_owners_that_hold_nothing_are_within_any_budget(trace: Path) -> None:
    assert check("--max", "peak.app=0", trace).status == 0
    assert "no such library was loaded" in check("--max", "peak.library.libfoo*=0", trace).out


def test_counters_are_those_of_the_recorder() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "jmassif").glob("*/*.c"))
    found = set(re.findall(r'jm_trace_(?:counter|nonzero|changed)\("([a-z-]+)"', sources))
    assert set(COUNTERS) == found


def test_the_total_of_a_discrete_gpu_says_what_it_adds_up(tmp_path: Path) -> None:
    path = small_training_run("discrete").save(tmp_path)
    assert "two pools" in check("--max", "peak.total=1GiB", path).out
    assert "two pools" not in check("--max", "peak.device=1GiB", path).out


# ---- limits ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, n_bytes",
    [
        ("0", 0),
        ("17", 17),
        ("17B", 17),
        ("1KiB", 1024),
        ("1.5 MiB", 3 << 19),
        ("3GiB", 3 << 30),
        ("1kB", 1000),
        ("2KB", 2000),
        ("1.1MB", 1100000),
        ("4GB", 4 * 10**9),
        ("0.1GiB", 107374182),
    ],
)
def test_sizes_have_units(text: str, n_bytes: int) -> None:
    assert parse_bytes(text) == n_bytes


@pytest.mark.parametrize("text", ["", "GiB", "-1", "1e9", "3M", "3 gib", "1..5MB", "٣", "1MiB2", "9" * 30])
def test_what_is_no_size_is_refused(trace: Path, text: str) -> None:
    with pytest.raises(QuantityError):
        parse_bytes(text)
    refused("--max", f"peak.total={text}", trace)


@pytest.mark.parametrize("text, most", [("+2%", 1020), ("2 %", 1020), ("0.05%", 1000), ("+1KiB", 2024), ("7B", 1007)])
def test_allowances_are_shares_or_sizes(text: str, most: int) -> None:
    assert parse_allowance(text).beyond(1000) == most


def test_a_limit_is_kept_up_to_its_last_byte(trace: Path) -> None:
    peak = VALUES["peak.total"]
    assert check("--max", f"peak.total={peak}B", trace).status == 0
    done = check("--max", f"peak.total={peak - 1}B", trace)
    assert (done.status, done.err) == (1, "")
    assert done.out.splitlines()[0] == "OVER  peak.total  233 MiB, over the budget of 233 MiB (+1 B)"


def test_a_decimal_limit_is_shown_as_written_too(trace: Path) -> None:
    done = check("--max", "peak.total=3GB", "--max", "peak.cudnn=30MB", trace)
    assert done.out.splitlines()[:2] == [
        "ok    peak.total  233 MiB of 2.79 GiB (3GB), 2.57 GiB left (92 %)",
        "OVER  peak.cudnn  40.0 MiB, 1.4 x the budget of 28.6 MiB (30MB) (+11.4 MiB)",
    ]


def test_each_budget_has_a_line_with_value_limit_and_head_room(trace: Path) -> None:
    done = check(
        "--max", "peak.total=1GiB", "--max", "peak.cudnn=30MiB", "--max=failures=5", "--max=end.leak.tensor=0", trace
    )
    assert done.status == 1
    assert done.out.splitlines() == [
        "ok    peak.total       233 MiB of 1.00 GiB, 791 MiB left (77 %)",
        "OVER  peak.cudnn       40.0 MiB, 1.3 x the budget of 30.0 MiB (+10.0 MiB)",
        "        40.0 MiB: train.py:87 (<module>) (cudnn)",
        "ok    failures         3 of 5, 2 left (40 %)",
        "ok    end.leak.tensor  0 B of 0 B, 0 B left",
    ]


def test_budgets_come_from_files_too(trace: Path, tmp_path: Path) -> None:
    budgets = tmp_path / "budgets"
    budgets.write_text("# memory\n\npeak.total <= 1 GiB   # ample\n  peak.cudnn<=30MiB\n")
    done = check(f"--budgets={budgets}", "--max=failures=0", trace)
    assert [line[:18].split() for line in done.out.splitlines() if line[0] != " "] == [
        ["ok", "peak.total"],
        ["OVER", "peak.cudnn"],
        ["OVER", "failures"],
    ]


@pytest.mark.parametrize(
    "text, says",
    [
        ("peak.total <= 1GiB\npeak.cudnn <=\n", "line 2: "),
        ("<= 3\n", "line 1: "),
        ("peak.total = 1GiB\n", 'unknown budget "peak.total = 1GiB"'),
        ("# nothing\n", "has no budgets in it"),
        ("\x00\x1b[2J <= 3", "\\x1b"),
    ],
)
def test_a_wrong_file_of_budgets_is_refused(trace: Path, tmp_path: Path, text: str, says: str) -> None:
    budgets = tmp_path / "budgets"
    budgets.write_text(text)
    assert says in refused("--budgets", budgets, trace)
    assert "cannot be read" in refused("--budgets", tmp_path / "none", trace)


@pytest.mark.parametrize("text", ["300", "1.5", "+300"])
def test_a_size_without_a_unit_is_refused(trace: Path, text: str) -> None:
    baseline = ["--baseline", trace] if text.startswith("+") else []
    assert "has no unit: is it " in refused(*baseline, f"--max=peak.total={text}", trace)
    assert check("--max=failures=300", "--max=peak.app=0", trace).status == 0


# ---- leaks -------------------------------------------------------------------------------------


def leaking(tmp_path: Path, reason: str = "end") -> Path:
    """Ten epochs that keep a tensor of 1 MiB each, and an interpreter that then lets go of them."""
    recorded = Trace(time_unit="ms", memory="unified")
    recorded.group("yours", "tensor")
    kept = recorded.account("heap", "tensor", ["py <module> (/app/train.py:31)"])
    for epoch in range(10):
        recorded.mark(epoch * 100, f"epoch {epoch}")
        recorded.snapshot(epoch * 100, "mark", {kept: ((epoch + 1) * MIB, epoch + 1)})
    recorded.snapshot(990, reason)
    recorded.snapshot(1000, "exit", {kept: (0, 0)})
    recorded.lines.append("Z 1000 exit 0")
    return recorded.save(tmp_path)


def test_what_was_kept_until_the_interpreters_end_has_leaked(tmp_path: Path) -> None:
    done = check("--max=end.leak.tensor=0", "--max=end.leak=10MiB", "--max=last.total=0", leaking(tmp_path))
    assert done.status == 1
    assert done.out.splitlines() == [
        "OVER  end.leak.tensor  10.0 MiB, over the budget of 0 B (+10.0 MiB)",
        "        10.0 MiB: train.py:31 (<module>) (tensor), by 1.00 MiB an epoch",
        "ok    end.leak         10.0 MiB of 10.0 MiB, 0 B left (0 %)",
        "ok    last.total       0 B of 0 B, 0 B left",
    ]


def test_what_a_program_held_as_it_became_another_has_not_leaked(tmp_path: Path) -> None:
    recorded = Trace(time_unit="ms", memory="unified")
    kept = recorded.account("heap", "app", ["read_arguments (/app/nice.c:4)"])
    recorded.snapshot(10, "time", {kept: (5000, 2)})
    recorded.snapshot(20, "exec")
    done = check("--max=end.leak=0", "--max=last.total=5000B", recorded.save(tmp_path))
    assert done.status == 0, done.out
    assert done.out.splitlines()[0] == "ok    end.leak    0 B of 0 B, 0 B left"


def test_growth_names_line_owner_and_slope(tmp_path: Path) -> None:
    done = check("--max=growth=0", "--max=growth.tensor=10MiB", leaking(tmp_path))
    assert done.status == 1
    assert done.out.splitlines()[:2] == [
        "OVER  growth         9.00 MiB, over the budget of 0 B (+9.00 MiB)",
        "        9.00 MiB: train.py:31 (<module>) (tensor), by 1.00 MiB an epoch",
    ]
    assert done.out.splitlines()[2].startswith("ok    growth.tensor")
    assert 'unknown budget "growth.nobody"' in refused("--max=growth.nobody=0", leaking(tmp_path))


def test_growth_of_none_says_what_a_brief_leak_has_left(tmp_path: Path) -> None:
    """A leak that is over within a tenth of the run is no growth, and is no less of a leak."""
    recorded = Trace(time_unit="ms", memory="unified")
    kept = recorded.account("heap", "app", ["leak (/app/leak.c:4)"])
    for step in range(20):
        recorded.snapshot(step * 10, "time", {kept: ((step + 1) * 1000, step + 1)})
    recorded.snapshot(3000, "time")
    recorded.snapshot(6000, "exit")
    recorded.lines.append("Z 6000 exit 0")
    path = recorded.save(tmp_path)
    done = check("--max=growth=0", "--max=growth.app=0", path)
    assert done.status == 0
    assert done.out.splitlines() == [
        "ok    growth      0 B of 0 B, 0 B left [none for a third of the run; end.leak is 19.5 KiB]",
        "ok    growth.app  0 B of 0 B, 0 B left [none for a third of the run; end.leak.app is 19.5 KiB]",
    ]


def test_growth_that_is_unknown_is_not_said_to_be_ok(trace: Path) -> None:
    done = check("--max=growth=0", "--max=failures=300", trace)
    assert done.status == 0, "a healthy run may be too short, or a list grow alone"
    unknown, kept = done.out.splitlines()
    assert unknown.startswith("unknown  growth    not checked against 0 B [unknown: 3 snapshots after the start, 6 are")
    assert kept.startswith("ok       failures  ")
    (suite,) = ElementTree.fromstring(check("--format=junit", "--max=growth=0", trace).out.encode())
    skipped = suite.find("testcase/skipped")
    assert suite.get("skipped") == "1" and skipped is not None and "3 snapshots" in skipped.get("message", "")
    assert json.loads(check("--format=json", "--max=growth=0", trace).out)["traces"][0]["budgets"][0]["known"] is False


def test_growth_says_how_much_of_it_was_freed(tmp_path: Path) -> None:
    done = check("--max=growth=0", ending_with(96).save(tmp_path))
    assert done.status == 1
    assert done.out.startswith(
        "OVER  growth  19.0 MiB, over the budget of 0 B (+19.0 MiB) [19.0 MiB of it was freed before the end]\n"
    )


# ---- a baseline --------------------------------------------------------------------------------


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """A run like `trace` with another 2 MiB of cuDNN at the peaks, and at the end."""
    recorded = small_training_run()
    more = recorded.bytes().decode()
    old, new = 40 * MIB, 42 * MIB
    for which in (f"c 4 {old} 12 {old} 12",):
        assert which in more
        more = more.replace(which, which.replace(str(old), str(new)))

    def grow(match: "re.Match[str]") -> str:
        return f"{match.group(1)} {int(match.group(2)) + 2 * MIB} "

    more = re.sub(r"^(S 3 1000 exit|P \w+ \d+) (\d+) ", grow, more, flags=re.MULTILINE)
    path = tmp_path / "grown"
    path.write_text(more)
    return path


def test_a_run_is_held_against_a_baseline(trace: Path, grown: Path) -> None:
    done = check("--baseline", trace, grown)
    assert done.status == 1
    assert done.out.splitlines() == [
        "OVER     peak.total          235 MiB, over the budget of 233 MiB (+2.00 MiB); 2.00 MiB more than the baseline",
        "        2.00 MiB more than 40.0 MiB: train.py:87 (<module>) (cudnn)",
        "OVER     peak-host.host      45.0 MiB, over the budget of 43.0 MiB (+2.00 MiB); 2.00 MiB more than the baseline",
        "        2.00 MiB more than 40.0 MiB: train.py:87 (<module>) (cudnn)",
        "ok       peak-device.device  190 MiB of 190 MiB, 0 B left (0 %); as in the baseline",
        "unknown  growth              not checked against 0 B"
        " [unknown: 3 snapshots after the start, 6 are needed; end.leak is 45.0 MiB]",
    ]
    assert check("--baseline", grown, trace).status == 0
    assert check("--baseline", trace, "--allow=+2%", grown).status == 1
    assert check("--baseline", trace, "--allow=+5%", grown).status == 0
    assert check("--baseline", trace, "--allow=+2%", "--allow=+2MiB", grown).status == 0
    assert check("--baseline", trace, "--allow=+2097151B", grown).status == 1


def test_budgets_may_have_allowances_of_their_own(trace: Path, grown: Path) -> None:
    assert check("--baseline", trace, "--max=peak.cudnn", grown).status == 1
    assert check("--baseline", trace, "--max=peak.cudnn=+5%", grown).status == 0
    assert check("--baseline", trace, "--max=peak.cudnn=+4.9%", "--allow=+50%", grown).status == 1
    assert check("--baseline", trace, "--max=peak.cudnn=42MiB", grown).status == 0


def test_an_owner_that_only_one_of_both_knows_is_none_of_the_other(trace: Path, tmp_path: Path) -> None:
    other = Trace(time_unit="ms", memory="unified")
    other.snapshot(0, "exit", {other.account("heap", "special", ["main (a.c:1)"]): (5, 1)})
    other.lines.append("Z 0 exit 0")
    path = other.save(tmp_path, "other")
    assert check("--baseline", trace, "--max=peak.special=+5B", path).status == 0
    assert check("--baseline", path, "--max=peak.special", trace).status == 0


def test_what_needs_a_baseline_says_so(trace: Path) -> None:
    assert "give a --baseline" in refused("--max=peak.total", trace)
    assert "give a --baseline" in refused("--max=peak.total=+3%", trace)
    assert "--baseline" in refused("--max=peak.total=3B", "--allow=+2%", trace)
    assert "no budgets" in refused(trace)


@pytest.mark.parametrize("option", ["--baseline", "--budgets", "-o"])
def test_an_empty_value_does_not_leave_the_option_out(trace: Path, option: str) -> None:
    said = refused("--max", "peak.total=1GiB", option, "", trace)
    assert option in said and '""' in said


def test_a_mark_that_the_baseline_lacks_is_said_to_be_its(trace: Path, tmp_path: Path) -> None:
    recorded = Trace(time_unit="ms", memory="unified")
    recorded.mark(1, "warm")
    recorded.snapshot(1, "mark", {recorded.account("heap", "app", ["main (a.c:1)"]): (10, 1)})
    recorded.lines.append("Z 3 exit 0")
    path = recorded.save(tmp_path, "marked")
    assert 'the baseline: unknown budget "warm.total"' in refused("--baseline", trace, "--max=warm.total", path)


# ---- forms -------------------------------------------------------------------------------------

BUDGETS = ("--max", "peak.total=1GiB", "--max", "peak.cudnn=30MiB")


def test_json(trace: Path) -> None:
    done = check("--format=json", *BUDGETS, trace)
    found = json.loads(done.out)
    assert (found["format"], found["version"], found["within"], done.status) == ("jmassif-check", 1, False, 1)
    (of_trace,) = found["traces"]
    assert of_trace["file"] == str(trace) and of_trace["complete"] is True
    assert of_trace["budgets"][1] == {
        "name": "peak.cudnn",
        "unit": "bytes",
        "value": 40 * MIB,
        "limit": 30 * MIB,
        "left": -10 * MIB,
        "within": False,
        "known": True,
        "baseline": None,
        "note": "",
        "culprits": [
            {"label": "train.py:87 (<module>)", "owner": "cudnn", "bytes": 40 * MIB, "before": None, "rate": ""}
        ],
    }


def test_junit(trace: Path) -> None:
    suites = ElementTree.fromstring(check("--format=junit", *BUDGETS, trace).out.encode())
    (suite,) = suites.findall("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    passed, failed = suite.findall("testcase")
    assert passed.get("name") == "peak.total" and passed.find("failure") is None
    failure = failed.find("failure")
    assert failure is not None and failure.get("message") == "40.0 MiB, 1.3 x the budget of 30.0 MiB (+10.0 MiB)"


@pytest.mark.parametrize("form", ["text", "json", "junit"])
def test_hostile_names_are_shown_as_text(tmp_path: Path, form: str) -> None:
    evil = "x\x1b[2J<script>]]>&\"'::error::\n%0A\u202e" + "y" * 100000
    recorded = Trace(time_unit="ms", memory="unified")
    recorded.mark(1, evil)
    recorded.snapshot(1, "mark", {recorded.account("heap", "app", ["main (a.c:1)"]): (10, 1)})
    path = recorded.save(tmp_path)
    for name in evil, evil + "z":
        done = check(f"--format={form}", "--max", f"{name}.total=1B", path)
        assert all(line.isprintable() for line in (done.out + done.err).splitlines())
        if form == "junit" and done.out:
            ElementTree.fromstring(done.out.encode())
        assert done.status in (1, 2) and len(done.err) < 1000


def test_several_traces_each_have_their_lines(trace: Path, grown: Path) -> None:
    done = check("--max=peak.cudnn=41MiB", trace, grown)
    assert done.status == 1
    ok, over, _ = done.out.splitlines()
    assert ok.startswith(f"{trace}: ok ") and over.startswith(f"{grown}: OVER ")


def test_the_result_goes_to_a_file(trace: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    assert check("--format=junit", "-o", report, *BUDGETS, trace).status == 1
    assert report.read_text().startswith("<?xml")
    assert "is the input too" in refused("-o", trace, *BUDGETS, trace)


# ---- truncated traces, and what is none ----------------------------------------------------------


def test_a_truncated_trace_fails_unless_it_is_allowed(tmp_path: Path) -> None:
    recorded = small_training_run()
    del recorded.lines[-1]
    path = recorded.save(tmp_path)
    done = check("--max=peak.total=1GiB", path)
    assert done.status == 1 and "CUT   the trace is truncated (no end record)" in done.out
    assert done.err == (
        f"jmassif check: {path}: truncated: no end record, the program was killed or still runs; judged on what came before\n"
    )
    assert check("--allow-truncated", "--max=peak.total=1GiB", path).status == 0
    done = check("--allow-truncated", *BUDGETS, path)
    assert done.status == 1 and "OVER  peak.cudnn" in done.out and "CUT" not in done.out


def test_a_truncated_trace_is_said_to_be_one_in_all_forms(tmp_path: Path) -> None:
    recorded = small_training_run()
    del recorded.lines[-1]
    path = recorded.save(tmp_path)
    told = json.loads(check("--format=json", "--max=peak.total=1GiB", path).out)
    assert told["traces"][0]["complete"] is False and told["within"] is False
    suites = ElementTree.fromstring(check("--format=junit", "--max=peak.total=1GiB", path).out.encode())
    (suite,) = suites.findall("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")


def test_a_trace_that_cannot_be_read_is_bad_input(trace: Path, tmp_path: Path) -> None:
    assert "cannot be read" in refused(*BUDGETS, tmp_path / "none")
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"something else\n")
    assert "is not a jmassif trace" in refused(*BUDGETS, trace, foreign)
    assert "is not a jmassif trace" in refused(*BUDGETS, "--baseline", foreign, trace)


@pytest.mark.parametrize(
    "arguments",
    [[], ["--max"], ["--format=html", "x"], ["--allow=many", "x"], ["--max=peak.total=", "x"], ["--compl", "x"]],
)
def test_a_wrong_option_is_refused_in_one_line(arguments: List[str]) -> None:
    assert "jmassif check --help" in refused(*arguments)


def test_the_manual_names_every_counter() -> None:
    assert [counter for counter in COUNTERS if counter not in documented("reference.md")] == []
