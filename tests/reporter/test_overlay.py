# SPDX-License-Identifier: GPL-2.0-or-later
"""A log of tegrastats, jtop or nvidia-smi beside a run: read as it is written, and laid on the run's clock."""

import json
import time
from pathlib import Path
from typing import Iterator, List

import pytest

from jmassif.model.run import Profile
from jmassif.reader.overlay import OverlayError, parse
from tests.reporter.commands import jm_print
from tests.reporter.traces import Trace

MIB = 1 << 20
START_MS = 1731587696000  # 2024-11-14 12:34:56 UTC


# Lines as boards print them, of L4T r28 (TX1), r32 (TX2), r36 (AGX Orin, Orin Nano).
R28 = "RAM 2350/3983MB (lfb 17x4MB) cpu [40%,45%,32%,42%]@1734 EMC 55%@1600 APE 25 NVDEC 716 MSENC 716 GR3D 0%@76"
R32 = (
    "RAM 2007/7852MB (lfb 180x4MB) SWAP 0/3926MB (cached 0MB) CPU [1%@345,off,off,0%@345,2%@346,0%@345] EMC_FREQ 16%@102"
    " GR3D_FREQ 0%@114 APE 150 PLL@35.5C MCPU@35.5C PMIC@100C Tboard@33C"
)
R36 = (
    "11-14-2024 12:34:56 RAM 3162/30536MB (lfb 6x4MB) SWAP 0/15268MB (cached 0MB) CPU [1%@729,0%@729,off] EMC_FREQ 0%@2133"
    " GR3D_FREQ 0%@[305] cpu@47.968C soc0@46.906C VDD_GPU_SOC 3175mW/3175mW"
)
ORIN_NANO = (
    "11-14-2024 12:34:57 RAM 2467/7471MB (lfb 2x4MB) SWAP 0/994MB (cached 0MB) CPU [2%@729,1%@729] NVDEC off APE 200"
)
JTOP = """time,uptime,CPU1,CPU2,RAM,SWAP,EMC,GPU,Temp CPU
2024-11-14 12:34:56.250000,1 day,10,OFF,0.5,0.0,0.1,3,47.5
2024-11-14 12:34:57.250000,1 day,10,OFF,0.75,0.0,0.1,3,47.5
"""
OLD_JTOP = "time,RAM,SWAP\n2024-11-14 12:34:56,2097152,0\n"
SMI = """timestamp, name, memory.used [MiB]
2024/11/14 12:34:56.613, NVIDIA A100-SXM4-40GB, 1234 MiB
2024/11/14 12:34:57.615, NVIDIA A100-SXM4-40GB, 1300 MiB
"""


@pytest.fixture(autouse=True, params=["UTC"])
def zone(request: "pytest.FixtureRequest", monkeypatch: "pytest.MonkeyPatch") -> Iterator[None]:
    """This machine's zone."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


def trace(memory: str = "unified") -> Trace:
    made = Trace(
        memory=memory,
        **{
            "time-unit": "ms",
            "start-unix-ms": str(START_MS),
            "mem-total-bytes": str(4096 * MIB),
            "option.pages": "yes",
        },
    )
    heap, device = made.account("heap", "app"), made.account("device", "cudnn")
    made.snapshot(0, "start")
    made.snapshot(2000, "time", {heap: (100 * MIB, 1), device: (900 * MIB, 1)}, {"total": (2000, {})})
    made.snapshot(3000, "exit", {heap: (1 * MIB, 1), device: (0, 0)})
    return made


def read(text: str) -> List[object]:
    found = parse(text.splitlines(), trace().load())
    return [found.tool, found.is_of_device, found.times, [n // MIB for n in found.values]]


def test_tegrastats_with_and_without_times() -> None:
    assert read(f"{R36}\n{ORIN_NANO}") == ["tegrastats", False, [0, 1000], [3162, 2467]]
    assert read(f"{R28}\n{R32}") == ["tegrastats", False, [0, 1000], [2350, 2007]]


def test_jtops_share_of_the_memory_and_the_older_kilobytes() -> None:
    assert read(JTOP) == ["jtop", False, [250, 1250], [2048, 3072]]
    assert read(OLD_JTOP) == ["jtop", False, [0], [2048]]


def test_nvidia_smi_is_of_the_device() -> None:
    assert read(SMI) == ["nvidia-smi", True, [613, 1615], [1234, 1300]]


def test_a_line_that_was_cut_off_is_passed_over() -> None:
    assert read(f"{R36}\n11-14-2024 12:34:5")[3] == [3162]
    assert read("\x00\x00\n99-99-2024 12:34:56 RAM 1/2MB\n" + R36)[3] == [3162]


@pytest.mark.parametrize("zone", ["XXX-5:45"], indirect=True)
def test_a_log_is_of_this_machines_zone() -> None:
    assert read(R36.replace("12:34:56", "18:19:57"))[2] == [1000]
    with pytest.raises(OverlayError, match="another time zone, name that in TZ"):
        read(R36)


@pytest.mark.parametrize(
    "text, said",
    [
        ("", 'begins with ""'),
        ("hello\nworld", 'not a log of tegrastats, jtop or nvidia-smi: it begins with "hello"'),
        ("time,uptime\n1,2", "not a log"),
        ("time,RAM\nyesterday,nan", "not a log"),
        ('time,RAM\n"' + "x\n" * 100000, "not a log"),
        (R36.replace("2024", "2023"), "its times are not those of the run"),
    ],
)
def test_what_is_no_log_of_the_run_is_refused(text: str, said: str) -> None:
    with pytest.raises(OverlayError, match=said.replace("(", r"\(")):
        read(text)


def write_both(tmp_path: Path, text: str, made: Trace) -> List[str]:
    log = tmp_path / "log"
    log.write_text(text)
    return [str(made.save(tmp_path)), f"--overlay={log}"]


def test_the_report_says_what_was_showed_at_the_peak(tmp_path: Path) -> None:
    arguments = write_both(tmp_path, R36.replace("12:34:56", "12:34:58"), trace())
    done = jm_print(*arguments)
    text = " ".join(done.out.split())
    assert "tegrastats showed 3.09 GiB in use at 2.00 s; the ledger explains 1000 MiB; the rest, 2.11 GiB, is" in text
    assert "tegrastats showed in use 3.09 GiB" in text
    found = json.loads(jm_print(*arguments, "--format=json").out)["overlay"]
    assert (found["tool"], found["time"]) == ("tegrastats", 2000)
    assert (found["showed"], found["held"]) == (3162 * MIB, 1000 * MIB)


def test_a_cards_memory_is_held_against_the_device_alone(tmp_path: Path) -> None:
    arguments = write_both(tmp_path, SMI, trace("discrete"))
    found = json.loads(jm_print(*arguments, "--format=json", "--snapshot=2").out)["overlay"]
    assert (found["showed"], found["held"]) == (1300 * MIB, 900 * MIB)


@pytest.mark.parametrize(
    "options, said",
    [
        (["--overlay=/nowhere/log"], "/nowhere/log: No such file"),
        (["--overlay=/dev/null"], "/dev/null: not a log of tegrastats"),
        (["--overlay=/dev/null", "--format=massif"], "--overlay is not supported by --format=massif"),
    ],
)
def test_a_bad_one_is_one_line(tmp_path: Path, options: List[str], said: str) -> None:
    done = jm_print(str(trace().save(tmp_path)), *options)
    assert done.status == 2 and done.out == ""
    assert said in done.err.splitlines()[-1]


def test_without_a_log_nothing_is_said() -> None:
    assert isinstance(trace().load(), Profile) and trace().load().overlay is None
