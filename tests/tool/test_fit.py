# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif fit` on trainings with the simulated allocator: what it predicts against what a run of that batch has."""

import json
from pathlib import Path
from typing import Any, List, Optional, Tuple

import pytest

from jmassif.analysis.allocator_steps import steps_of
from jmassif.reader.builder import load_file
from tests.harness import PYTHON, ROOT, Argument, Recording, record
from tests.reporter.commands import assert_one_line_error, jmassif

MIB = 1 << 20
GIB = 1 << 30


def recorded(sim: Path, batch: int, libraries: Optional[Path] = None) -> Recording:
    """The example with this batch."""
    command: List[Argument] = [PYTHON, ROOT / "docs" / "examples" / "train.py", "--device=sim", f"--batch={batch}"]
    env = {"JMSIM_LIB": str(libraries or sim)}
    return record(command, [f"--owners={sim}/jmsim.rules"], env=env, timeout=300, status=0)


def fit(*arguments: object) -> Any:
    done = jmassif("fit", "--format=json", *arguments)
    assert done.status == 0, done.err
    return json.loads(done.out)


def test_two_batches_predict_what_a_third_reserves_and_the_largest_that_fits(sim: Path, tmp_path: Path) -> None:
    recordings = [recorded(sim, batch) for batch in (2, 4, 8)]
    two, four, eight = (recording.trace for recording in recordings)
    steps = steps_of(load_file(str(eight)))
    of_eight = [two, four, "--batch=2,4", "--at=8"]
    found = fit(*of_eight, "--board=4GiB")["fit"]
    (need,) = found["batches"]
    assert need["reserved"] == steps.reserved
    assert need["allocated"] == pytest.approx(steps.allocated, rel=0.01)
    assert [line["label"].split(" ")[0] for line in found["lines"]] == ["train.py:147", "train.py:148", "train.py:146"]

    just = need["program"] + 4 * GIB - found["available"]
    for more, fits in ((-MIB, False), (MIB, True)):
        (need,) = fit(*of_eight, f"--board={just + more}B")["fit"]["batches"]
        assert need["fits"] is fits
    found = fit(four, two, "--batch=4,2", f"--board={just + MIB}B")["fit"]
    assert found["largest_batch"] >= 8 and [each["fits"] for each in found["batches"]] == [True, False]
    assert [each["batch"] for each in found["batches"]] == [found["largest_batch"], found["largest_batch"] + 1]

    # From one run, by roles.
    found = fit(four, "--batch=4", "--at=8")
    (about,) = found["fit"]["batches"]
    assert about["least"] - about["rest"] <= steps.reserved <= about["most"] - about["rest"]
    assert about["allocated"] == pytest.approx(steps.allocated, rel=0.02)
    assert [lever["action"] for lever in found["levers"]] == ["inference", "8-bit-optimizer", "half-activations"]

    # With the start-up of another run, and as if recorded before a board was there.
    (replaced,) = fit(*of_eight, f"--startup-of={eight}")["fit"]["batches"]
    assert replaced["program"] == need["program"]
    dry = fit(four, "--dry", "--board=nano")["fit"]
    assert [row["trace"].split(" ")[0] for row in dry["measured"]] == [str(four)] * 4
    assert sum(row["bytes"] for row in dry["measured"][:3]) == dry["batches"][0]["program"]

    # A killed run counts up to where it came.
    cut = Path(tmp_path, "cut.jm")
    cut.write_bytes(four.read_bytes()[:-2000])
    done = jmassif("fit", two, cut, "--batch=2,4", "--at=8")
    assert done.status == 0 and "cut.jm ends at " in done.out and "before its program did" in done.out

    settings = fit(eight)["settings"]
    assert settings["recorded"]["modelled"] == settings["recorded"]["reserved"] == steps.reserved
    assert settings["better"][0]["settings"] == "expandable_segments:True"
    assert steps.allocated <= settings["better"][0]["reserved"] < steps.reserved

    wrong: List[Tuple[List[object], str]] = [
        ([two, four], "--batch=A,B names"),
        ([two, "--dry"], "--dry needs --board"),
        ([two, f"--startup-of={four}"], "needs --batch, or --dry"),
        ([two, "--batch=2", "--board=nino"], 'unknown board "nino": name a size such as 4GiB, or nano, '),
        ([two, "--batch=2,4"], "--batch=A,B names"),
        ([two, four, "--batch=2,2"], "same batch"),
        ([two, four, eight, "--batch=2,4"], "at most two"),
        ([Path(__file__)], "test_fit.py"),
    ]
    for words, says in wrong:
        assert_one_line_error("jmassif fit", jmassif("fit", *words), says)


def test_start_up_of_another_release_predicts_what_a_run_on_it_needs(sim: Path, tmp_path: Path) -> None:
    """On the simulated JetPack 4.6.1 and 5.1.2, which spend other amounts for themselves."""
    newer = sim / "jetpack-5.1.2"
    for name, there in (
        ("site-packages", sim / "site-packages"),
        ("libcuda.so.1", newer / "libcuda.so.1"),
        ("libcudart.so.10.2", newer / "libcudart.so.11.0"),
        ("libcudnn.so.8", newer / "libcudnn.so.8"),
        ("libcublas.so.10", newer / "libcublas.so.11"),
    ):
        (tmp_path / name).symlink_to(there)
    older, newer_runs = [recorded(sim, batch) for batch in (2, 4)], [recorded(sim, n, tmp_path) for n in (2, 8)]
    start_up, wanted = newer_runs[0].trace, load_file(str(newer_runs[1].trace))
    two, four = (recording.trace for recording in older)
    found = fit(two, four, "--batch=2,4", "--at=8", f"--startup-of={start_up}")["fit"]
    changed = {row["owner"] for row in found["startup"] if row["recorded"] != row["replaced"]}
    assert changed == {"context", "module", "cudnn", "cublas"}
    (need,) = found["batches"]
    # But for the interpreter's own heap, which the batch moves by some bytes.
    assert need["program"] == pytest.approx(wanted.peaks["total"].bytes, abs=4096)
    (plain,) = fit(two, four, "--batch=2,4", "--at=8")["fit"]["batches"]
    assert need["reserved"] == plain["reserved"] and need["program"] - plain["program"] > 8 * MIB


def test_two_batches_on_the_cpu_predict_the_heap_of_a_third() -> None:
    pytest.importorskip("torch")

    def trace(batch: int) -> Recording:
        script = ROOT / "tests" / "torch-cuda" / "scripts" / "fit.py"
        return record([PYTHON, script, "cnn", str(batch), "cpu"], ["--pages=yes"], host="native", timeout=300)

    two, four, eight = (trace(batch) for batch in (2, 4, 8))
    found = fit(two.trace, four.trace, "--batch=2,4", "--at=8")["fit"]
    (need,) = found["batches"]
    run = load_file(str(eight.trace))
    assert need["allocated"] == pytest.approx(steps_of(run, is_host=True).allocated, rel=0.01)
    assert need["least"] == pytest.approx(run.peaks["host"].host, rel=0.01)
    assert need["most"] == need["least"] + need["unused"] and found["lines"][0]["label"].endswith("(inputs)")


def test_a_run_without_pytorchs_allocator_is_refused() -> None:
    recording = record(["/bin/true"], status=0)
    assert_one_line_error("jmassif fit", jmassif("fit", recording.trace), "no steps of PyTorch's CUDA allocator")
