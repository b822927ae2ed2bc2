# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of Debian's packages, by both recorders: what the ledger says against the program's own figures.

`debian` makes the root and starts this. The name keeps these tests out of `make check`: they need a root of 5 GB.
"""

import functools
import json
import os
import struct
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import pytest

from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.records import DEVICE_KINDS
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from tests import trixie_root

ROOT = Path(os.environ["JMASSIF_FIELD_ROOT"])
SCRIPTS = "/src/tests/field/scripts"
HOSTS = ("native", "valgrind")
each_host = pytest.mark.parametrize("host", HOSTS)


class Done(NamedTuple):
    output: str
    profile: Profile

    @property
    def said(self) -> Dict[str, Any]:
        found: Dict[str, Any] = json.loads(self.output.splitlines()[-1])
        return found


def inside(command: List[str], variables: Sequence[str] = (), status: int = 0) -> str:
    """Runs a command in the root, and returns what it prints."""
    given = {"LD_LIBRARY_PATH": "/opt/cuda:/opt/field", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}
    given.update(dict(each.split("=", 1) for each in variables))
    done = trixie_root.run_inside(ROOT, command, given, 900)
    assert done.returncode == status, done.stderr[-4000:]
    return done.stdout


@functools.lru_cache(maxsize=None)
def recorded(
    name: str, host: str, *command: str, within: Tuple[str, ...] = (), variables: Tuple[str, ...] = (), status: int = 0
) -> Done:
    """`within`: what runs the recorder."""
    trace = ROOT / "out" / f"{name}-{host}.jmassif"
    trace.parent.mkdir(exist_ok=True)
    if trace.exists():
        trace.unlink()
    recorder = ["jmassif", "-q", f"--{host}", "--threads=yes", f"--jmassif-out-file=/out/{trace.name}"]
    output = inside([*within, *recorder, *command], variables, status)
    return Done(output, load_file(str(trace)))


def frames_held(profile: Profile, part: str, size: int) -> Tuple[int, int]:
    """Blocks that hold a buffer of `size` bytes, and their bytes, of a part at the peak."""
    part_of = naming(profile, Names(profile), "part")
    rows = [
        (n_blocks, n_bytes)
        for account, (n_bytes, n_blocks) in profile.peak_composition("total").items()
        if part_of(account) == part and n_blocks and n_bytes / n_blocks >= size
    ]
    return sum(blocks for blocks, _ in rows), sum(n_bytes for _, n_bytes in rows)


@each_host
@pytest.mark.parametrize(
    "film,parts",
    [
        (
            "camera",
            {
                "camera": "camera",
                "smaller": "videoconvertscale (1 after frames)",
                "colours": "videoconvertscale (3 after frames)",
            },
        ),
        ("file", {"decoded": "jpeg (1 after multiqueue0)"}),
    ],
)
def test_an_elements_buffers_are_those_that_it_hands_on(film: str, parts: Dict[str, str], host: str) -> None:
    command = ["python3", f"{SCRIPTS}/pipeline.py", film]
    done = recorded(film, host, *command)
    assert done.said["result"] == json.loads(inside(command).splitlines()[-1])["result"]
    for element, part in parts.items():
        n_buffers, size = done.said[element]
        n_blocks, n_bytes = frames_held(done.profile, part, size)
        # GStreamer has its description of the memory in the same block.
        assert n_blocks == n_buffers and 0 <= n_bytes - n_buffers * size < 256 * n_buffers, (element, done.said)


@each_host
def test_arrays_of_numba_belong_to_the_lines_that_ask_for_them(host: str) -> None:
    script = f"{SCRIPTS}/numba_arrays.py"
    done = recorded("numba", host, "python3", script)
    assert done.output == inside(["python3", script])
    line_of = naming(done.profile, Names(done.profile), "python-line")
    held: Dict[str, int] = {}
    owners: Dict[str, int] = {}
    for account, (n_bytes, _) in done.profile.peak_composition("device").items():
        if done.profile.accounts.kind(account) in (*DEVICE_KINDS, "pinned") and n_bytes:
            line = line_of(account).rpartition(":")[2]
            held[line] = held.get(line, 0) + n_bytes
            owner = done.profile.accounts.owner(account)
            owners[owner] = owners.get(owner, 0) + n_bytes
    said = done.said["lines"]
    assert {line: held.get(line) for line in said} == said
    assert owners["data"] == sum(said.values()) and "app" not in owners


# Command, its exit status, and further variables. hashcat finds nothing, as no kernel runs.
COMPUTING = {
    "hashcat": (
        [
            "hashcat",
            "--hash-type=0",
            "--attack-mode=3",
            "--quiet",
            "--self-test-disable",
            "--potfile-disable",
            "--force",
        ]
        + ["--workload-profile=1", "5d41402abc4b2a76b9719d911017c592", "?d?d?d?d"],
        1,
        ["HOME=/tmp", "XDG_CACHE_HOME=/tmp/hashcat"],
    ),
    "mumax3": (
        ["mumax3", "-http", "", "-cache", "", "-f", "-o", "/tmp/strip.out", f"{SCRIPTS}/strip.mx3"],
        0,
        ["LD_PRELOAD=/opt/field/libcuda.so"],
    ),
}


def steady(output: str) -> List[str]:
    """Without the progress that mumax3 prints now and then."""
    return [line for line in output.splitlines() if not line.startswith("// Calculating demag kernel")]


@each_host
@pytest.mark.parametrize("name", list(COMPUTING))
def test_device_memory_is_what_a_library_below_the_program_counts(name: str, host: str) -> None:
    command, status, variables = COMPUTING[name]
    counts = ROOT / "out" / f"{name}.counts"
    if counts.exists():
        counts.unlink()
    variables = [*variables, f"FIELD_COUNTS=/out/{counts.name}"]
    done = recorded(name, host, *command, variables=tuple(variables), status=status)
    now, most = struct.unpack("NN", counts.read_bytes())
    assert steady(done.output) == steady(inside(command, variables, status))
    held = [
        n_bytes
        for account, (n_bytes, _) in done.profile.peak_composition("device").items()
        if done.profile.accounts.kind(account) == "device"
    ]
    assert sum(held) == most > 0
    at_end = done.profile.snapshots[-1].by_kind.get("device", 0)
    assert at_end == now


@each_host
def test_nodelets_of_one_process_are_told_apart(host: str) -> None:
    sizes = {"vision::Camera": (3000000, 4000000), "vision::Detector": (5000000, 8000000)}
    container = [
        "/opt/field/container",
        "/opt/field/libcamera.so=vision::Camera",
        "/opt/field/libdetector.so=vision::Detector",
    ]
    done = recorded("nodelets", host, *container, within=(f"{SCRIPTS}/with-master",))
    assert sorted(done.output.splitlines()) == sorted(inside([f"{SCRIPTS}/with-master", *container]).splitlines())
    assert sorted(line.split()[0] for line in done.output.splitlines()) == sorted(sizes)
    part_of = naming(done.profile, Names(done.profile), "part")
    held: Dict[Tuple[str, str, str], int] = {}
    for account, (n_bytes, _) in done.profile.peak_composition("total").items():
        _, kind, owner = done.profile.accounts[account]
        if n_bytes >= 1000000 and kind in ("heap", "device") and owner != "context":
            key = part_of(account), kind, owner
            held[key] = held.get(key, 0) + n_bytes
    assert held == {
        key: n_bytes
        for name, (start, step) in sizes.items()
        for key, n_bytes in (
            ((f"node {name}", "heap", "data"), start + step),
            ((f"node {name}", "device", "data"), step),
        )
    }
