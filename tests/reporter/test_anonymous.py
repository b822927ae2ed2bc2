# SPDX-License-Identifier: GPL-2.0-or-later
"""What --anonymous writes is searched for each secret that was planted in the trace, in whatever way a format packs its text."""

import base64
import gzip
import re
import zlib
from pathlib import Path
from typing import List

import pytest

from jmassif.attribution.names import Names
from jmassif.attribution.redact import anonymize
from jmassif.cli.report import FORMATS
from tests import harness
from tests.reporter.commands import jm_diff, jm_print
from tests.reporter.traces import ROOT, Trace

HOME = "/home/alicesmith"
PROJECT = f"{HOME}/secretproject/moonshot"
SECRETS = [
    "alicesmith",
    "wintermute",
    "secretproject",
    "moonshot",
    "hunter2",
    "topsecret",
    "privatedata",
    "sekrit",
    "vaultdir",
]


def _planted(directory: Path) -> Trace:
    trace = Trace(
        time_unit="ms",
        memory="unified",
        command=f"/usr/bin/python3.11 {PROJECT}/train.py --token=hunter2",
        user="alicesmith",
        host="wintermute.example.org",
        cwd=PROJECT,
        pid="77",
        start="2026-01-02T03:04:05Z",
        start_unix_ms="1767323045000",
        process="77:123456",
        board="NVIDIA Jetson Nano Developer Kit",
        python="3.11.2",
        stopped=f"cannot write {PROJECT}/trace: no space",
    )
    trace.manifest("env.PYTHONPATH", "/opt/topsecret/lib")
    trace.manifest("env.API_KEY", "sekrit")
    trace.manifest("option.owners", f"{PROJECT}/owners.rules")
    trace.manifest("option.large", "65536")
    trace.manifest("something-new", "sekrit")
    trace.manifest("package.torch", "2.6.0")
    trace.group("yours", "app", "data")
    main = ["main (/usr/bin/python3.11)"]
    line = [f"py train ({PROJECT}/train.py:7)", f"py <module> ({PROJECT}/train.py:9)"] + main
    package = "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py"
    held = {
        trace.account("heap", "data", [f"py forward ({package}:11)"] + line): (70 << 20, 7),
        trace.account("heap", "app", [f"step ({PROJECT}/build/libmine.so)"] + line): (3 << 20, 3),
        trace.account("heap", "app", [f"step ({HOME}/vaultdir/libmine.so)"] + line): (2 << 20, 2),
        trace.account("heap", "data", ["py load (/mnt/privatedata/alicesmith.py:3)"] + main): (1 << 20, 1),
        trace.account("heap", "data", [f"py <lambda at {PROJECT}/f.py> (<string>:3)"] + main): (1 << 19, 1),
    }
    source = directory / "train.py"
    source.write_text("open('/mnt/privatedata/x')  # sekrit\n" * 20)
    trace.source(f"{PROJECT}/train.py", source.read_bytes())
    trace.lines.append(f"L 1 400000 4096 {trace.string('libmine.so')} {PROJECT}/build/libmine.so")
    trace.lines.append("L 1 500000 4096 0 /usr/bin/python3.11")
    trace.mark(2, "reading /mnt/privatedata/set.bin for alicesmith on wintermute")
    trace.region_begin(2, "data/vaultdir/epoch")
    trace.region_end(3, "data/vaultdir/epoch")
    trace.lines.append("k driver-ioctl-unknown 3")
    account = next(iter(held))
    trace.block(2, 0x1000, 70 << 20, account)
    weights = trace.account("device", "tensor", [f"py forward ({package}:11)"] + line)
    trace.block(2, 0x7000000, 1 << 20, weights)
    held[weights] = (1 << 20, 1)
    trace.snapshot(3, "mark", held, {"total": (3, {})})
    trace.snapshot(9, "exit", {})
    trace.lines.append("Z 9 exit 0")
    return trace


def unpacked(path: Path) -> str:
    """All that is in a file, and in what is packed in it."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data += gzip.decompress(data)
    for packed in re.findall(rb"[A-Za-z0-9+/=\s]{200,}", data):
        try:
            data += zlib.decompress(base64.b64decode(packed))
        except (ValueError, zlib.error):
            pass  # something else that is long
    return data.decode("utf-8", "replace")


def _formats() -> List[str]:
    return [name for name in FORMATS if name != "html" or (ROOT / "reporter/jmassif/assets/page.js").exists()]


@pytest.mark.parametrize("words", [*_formats(), "text --all", "html --no-source"])
def test_no_secret_is_in_any_format(tmp_path: Path, words: str) -> None:
    format_, *options = words.split()
    if format_ not in _formats():
        pytest.skip("the page is not built")
    directory = tmp_path / "alicesmith"
    directory.mkdir()
    trace = _planted(directory).save(directory)
    open_ = tmp_path / "open"
    anonymous = tmp_path / "anonymous"
    assert jm_print(f"--format={format_}", *options, "-o", open_, trace).status == 0
    done = jm_print(f"--format={format_}", "--anonymous", *options, "-o", anonymous, trace)
    assert done.status == 0, done.err
    # Of the report for oneself the test finds what it looks for, unless it is pixels,
    assert "alicesmith" in unpacked(open_) or format_ in ("csv", "folded", "perfetto")
    # in the other nothing of it.
    text = unpacked(anonymous)
    assert [secret for secret in SECRETS if secret in text.lower()] == []
    if format_ in ("text", "html", "json", "folded"):
        assert "train.py" in text and (format_ == "text" or "torch/nn/modules/linear.py" in text)


def test_several_processes_have_no_secrets_either(tmp_path: Path) -> None:
    for number in ("1", "2"):
        path = _planted(tmp_path).save(tmp_path / f"alicesmith{number}")
        path.write_text(path.read_text().replace("m pid 77", f"m pid {number}"))
    traces = sorted(tmp_path.glob("*/jmassif.out.1"))
    done = jm_print("--anonymous", "--each", *traces)
    assert done.status == 0, done.err
    assert [secret for secret in SECRETS if secret in done.out.lower()] == []


@pytest.mark.parametrize("format_", ["text", "json", "markdown", "html"])
def test_a_comparison_has_no_secrets_either(tmp_path: Path, format_: str) -> None:
    if format_ not in ("text", "json", "markdown", *_formats()):
        pytest.skip("the page is not built")
    old, new = _planted(tmp_path).save(tmp_path), _planted(tmp_path).save(tmp_path / "alicesmith")
    new.write_text(
        new.read_text().replace("m host wintermute", "m host wintermute2").replace("secretproject", "topsecret")
    )
    done = jm_diff("--anonymous", f"--format={format_}", "-o", tmp_path / "out", old, new)
    assert done.status == 0, done.err
    text = unpacked(tmp_path / "out")
    assert [secret for secret in SECRETS if secret in text.lower()] == [] and "trace 2" in text


def test_figures_owners_and_names_stay_apart(tmp_path: Path) -> None:
    profile, other = _planted(tmp_path).load(), _planted(tmp_path).load()
    anonymize(other)
    assert profile.composition(0) == other.composition(0)
    named, anonymous = Names(profile), Names(other)
    for account in range(1, len(profile.accounts)):
        # Lines and folding are as they were.
        assert bool(named.charged(account)) == bool(anonymous.charged(account))
        frames = list(profile.stack(profile.accounts[account].node))
        internal = [named.folding.internal(frame) for frame in frames]
        assert internal == [anonymous.folding.internal(frame) for frame in frames]
    # Two files of one name are two.
    assert (
        anonymous.frame(1)
        and len({other.frame(f).object for f in other.frames if "libmine" in other.frame(f).object}) == 2
    )
    assert other.manifest["option.large"] == "65536" and other.manifest["package.torch"] == "2.6.0"
    assert other.manifest["command"] == "python3.11"


SCRIPT = """
import os, sys
kept = [bytes(100000) for _ in range(20)]
assert os.environ["PLANTED"] == "sekrit" and sys.argv[1] == "hunter2"
"""


def test_a_real_run_has_none(tmp_path: Path) -> None:
    directory = tmp_path / "vaultdir"
    directory.mkdir()
    script = directory / "work.py"
    script.write_text(SCRIPT)
    recording = harness.record([harness.PYTHON, script, "hunter2"], env={"PLANTED": "sekrit"})
    assert recording.returncode == 0, recording.stderr
    secrets = ["vaultdir", "hunter2", "sekrit", str(tmp_path), str(tmp_path.name), str(recording.directory)]
    host = recording.profile.manifest.get("host", "")
    for format_ in ("text", "json") + (("html",) if "html" in _formats() else ()):
        out = tmp_path / "out"
        assert jm_print(f"--format={format_}", "--anonymous", "-o", out, recording.trace).status == 0
        text = unpacked(out)
        assert [secret for secret in secrets if secret in text] == []
        # The page's own script may have a word that is the host's name.
        assert format_ == "html" or not host or not re.search(rf"\b{re.escape(host)}\b", text)
        assert "work.py" in text


def test_source_cannot_be_asked_for_with_it(tmp_path: Path) -> None:
    done = jm_print("--anonymous", "--source=/", _planted(tmp_path).save(tmp_path))
    assert done.status == 2 and done.err.count("\n") == 1
