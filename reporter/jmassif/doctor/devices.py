# SPDX-License-Identifier: GPL-2.0-or-later
"""The nodes of NVIDIA's drivers, and NVIDIA's releases on a board."""

import errno
import os
import re
from typing import Dict, Optional

from jmassif.doctor.machine import LOST, OK, Finding, Findings, Machine, fails, ok

# Those of a Jetson's GPU and those of other boards'; a program needs all that are there.
_NODES = (
    "/dev/nvmap",
    "/dev/nvhost-ctrl",
    "/dev/nvhost-ctrl-gpu",
    "/dev/nvhost-gpu",
    "/dev/nvhost-as-gpu",
    "/dev/nvgpu/igpu0/ctrl",
    "/dev/nvgpu/igpu0/channel",
    "/dev/nvidiactl",
    "/dev/nvidia0",
    "/dev/nvidia-uvm",
)
# These are opened, as a container's rules and a simulated board show in nothing else. The others may wake the GPU.
_OPENED = ("/dev/nvmap", "/dev/nvidiactl")
_MENDS = {
    errno.EACCES: "sudo usermod -aG video $USER, and log in again",
    errno.EPERM: "in a container: start it with --runtime=nvidia",
    errno.EBUSY: "close the program that has it",
}


def _is_there(machine: Machine, node: str) -> bool:
    return machine.exists(node) or (node in _OPENED and machine.refusal(node) is None)


def is_nvmap_board(machine: Machine) -> bool:
    return _is_there(machine, "/dev/nvmap")


def _refusal(machine: Machine, node: str) -> Optional[OSError]:
    if not machine.may_use(node) and machine.exists(node):
        return PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return machine.refusal(node) if node in _OPENED else None


def check_nodes(machine: Machine) -> Findings:
    """Whether the program may open them."""
    nodes = [node for node in _NODES if _is_there(machine, node)]
    for node in nodes:
        error = _refusal(machine, node)
        if error:
            mend = _MENDS.get(error.errno or 0, "see dmesg: the driver does not answer")
            return fails("devices", f"{node} cannot be opened ({error.strerror}): CUDA will not start", mend)
    if not nodes:
        return ok("devices", "no NVIDIA device: host memory is recorded")
    return ok("devices", f"{', '.join(nodes[:3])}{' and others' if len(nodes) > 3 else ''} may be used")


def _l4t(machine: Machine) -> str:
    """ "# R32 (release), REVISION: 7.1, …" → "32.7.1" """
    found = re.search(r"R(\d+).*REVISION: *([\d.]+)", machine.text("/etc/nv_tegra_release"))
    return f"{found.group(1)}.{found.group(2)}" if found else ""


def _packages(machine: Machine) -> Dict[str, str]:
    """Version by package that is installed."""
    found = {}
    name, is_installed = "", False
    for line in machine.text("/var/lib/dpkg/status").splitlines():
        key, _, value = line.partition(": ")
        if key == "Package":
            name, is_installed = value, False
        elif key == "Status":
            is_installed = value.endswith(" installed")
        elif key == "Version" and is_installed:
            found[name] = value
    return found


# By name for people: the packages that bring it, the oldest and newest major version that the wrappers know.
_LIBRARIES = {
    "CUDA": (r"cuda-cudart-\d+-\d+|cuda-runtime-\d+-\d+", 9, 13),
    "cuDNN": (r"libcudnn\d+(-cuda-\d+)?", 7, 9),
    "TensorRT": (r"libnvinfer\d+", 5, 10),
}


def check_board(machine: Machine) -> Findings:
    """The board, its JetPack, and what is installed of CUDA."""
    from jmassif.questions.facts import JETPACKS  # not in the quick part

    found = []
    model = machine.text("/proc/device-tree/model").strip("\0\n ")
    release = _l4t(machine)
    packages = _packages(machine)
    if release or model:
        short = release[:-2] if release.count(".") == 2 and release.endswith(".0") else release
        jetpack = JETPACKS.get(short) or packages.get("nvidia-jetpack", "").partition("-")[0]
        words = [model or "a board without a name"]
        words += [f"JetPack {jetpack}"] if jetpack else []
        words += [f"L4T {release}"] if release else []
        known = not release or release.partition(".")[0] in ("32", "34", "35", "36", "38")
        text = ", ".join(words) + ("" if known else ": the driver's memory is not decoded for this release")
        found.append(Finding("board", OK if known else LOST, text))
    for name, (pattern, oldest, newest) in _LIBRARIES.items():
        versions = sorted({packages[package] for package in packages if re.fullmatch(pattern, package)})
        for version in versions:
            major = re.match(r"(?:\d+:)?(\d+)", version)
            known = major is None or oldest <= int(major.group(1)) <= newest
            limits = "" if known else f": the wrappers know {oldest} to {newest}"
            found.append(Finding(name, OK if known else LOST, f"{version}{limits}"))
    return found
