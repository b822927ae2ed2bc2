# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory by part: nodes of ROS 2 composed in one process, phases of TensorRT. Their libraries are stand-ins with the real names.

GStreamer itself, and nodelets of ROS 1, are in tests/field.
"""

import re
from pathlib import Path
from typing import Dict

import pytest

from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.run import Profile
from tests.harness import compile_c, recorded
from tests.tool.programs import DIRECTORY, library, linked_to, print_report

PARTS = DIRECTORY / "parts"
MIB = 1 << 20


def held(profile: Profile, kind: str) -> Dict[str, int]:
    """Bytes by part at the peak."""
    part_of = naming(profile, Names(profile), "part")
    found: Dict[str, int] = {}
    for account, (n_bytes, _) in profile.peak_composition("total").items():
        if profile.accounts.kind(account) == kind and n_bytes:
            found[part_of(account)] = found.get(part_of(account), 0) + n_bytes
    return found


def by_owner(profile: Profile, part: str) -> Dict[str, int]:
    part_of = naming(profile, Names(profile), "part")
    found: Dict[str, int] = {}
    for account, (n_bytes, _) in profile.peak_composition("total").items():
        owner, kind = profile.accounts.owner(account), profile.accounts.kind(account)
        if part_of(account) == part and kind == "heap" and n_bytes >= MIB:
            found[owner] = found.get(owner, 0) + n_bytes
    return found


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_memory_of_composed_nodes_is_told_apart(level: str, sim: Path) -> None:
    cudart = sim / "libcudart.so.12"
    rclcpp = library(PARTS / "rclcpp.cc", "librclcpp.so", level)
    sizes = {"Camera": (3 * MIB, 4 * MIB), "Detector": (5 * MIB, 8 * MIB)}
    nodes = [
        library(
            PARTS / "node.cc",
            f"lib{name.lower()}_component.so",
            *(level, f"-DNODE={name}", f"-DSTART={start}", f"-DSTEP={step}"),
            *linked_to(rclcpp, cudart),
        )
        for name, (start, step) in sizes.items()
    ]
    recording = recorded([compile_c(PARTS / "container.cc", level, *linked_to(rclcpp, *nodes))])
    profile = recording.profile
    device = held(profile, "device")
    for name, (start, step) in sizes.items():
        assert by_owner(profile, f"node vision::{name}")["data"] == start + step + step // 2
        assert device[f"node vision::{name}"] == step
    assert set(device) == {"node vision::Camera", "node vision::Detector"}
    assert "node vision::Detector" in print_report(recording.trace, "--by=part").stdout


@pytest.mark.parametrize("flags", [["-O0"], ["-O2", "-g"]], ids=" ".join)
def test_phases_of_an_engine_are_told_apart(flags: "list[str]", sim: Path) -> None:
    cudart = sim / "libcudart.so.12"
    nvinfer = library(PARTS / "nvinfer.cc", "libnvinfer.so.10", "-O2", "-s", "-fvisibility=hidden", *linked_to(cudart))
    profile = recorded([compile_c(PARTS / "engines.cc", *flags, *linked_to(nvinfer, cudart))]).profile
    assert {re.sub(r"\(nvinfer1::\w+\*\)", "", part): n for part, n in held(profile, "device").items()} == {
        "TensorRT builder at main (engines.cc:28)": 2 * MIB,
        "TensorRT engine at first (engines.cc:12)": 8 * MIB,
        "TensorRT engine at second (engines.cc:18)": 4 * MIB,
        "TensorRT context at first (engines.cc:13)": 4 * MIB,
        "TensorRT run at main (engines.cc:32)": 3 * MIB,
        "(no part)": 2 * MIB,  # the program's own memory, for the second engine's activations
    }
