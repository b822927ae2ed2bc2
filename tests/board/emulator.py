# SPDX-License-Identifier: GPL-2.0-or-later
"""An arm64 machine of its own: Debian's kernel and C library, emulated with all that a kernel gives and takes.

Emulated programs (tests/arm64) run on this machine's kernel; here page tables, control groups, swap and the killing of
processes are those of an arm64 kernel, and the seccomp notifications that simulate a board's devices come from one. A job
is a shell command in a directory of its own; `jm` in it is Valgrind with jmassif.
"""

import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple

import pytest

from tests import harness
from tests.harness import ARM64_PYTHON, ARM64_VALGRIND, BUILD, MADE, Argument, Recording, Run, check_run

KERNEL = BUILD / "compat" / "board-kernel"
LIBRARIES = BUILD / "compat" / "board-root"
GUEST = Path(__file__).resolve().parent / "guest"
TOOLS = ("qemu-system-aarch64", "mke2fs", "cpio", "fdtput")

# In the order in which they load. ext4 is part of the kernel.
DISK_MODULES = ("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk")
SWAP_MODULES = ("zsmalloc", "lzo-rle", "zram")

MODEL = "NVIDIA Jetson Nano Developer Kit"
MEMORY_MIB = 1024
SECONDS = 1800  # 150 where nothing else runs

JM = """#!/bin/sh
exec /usr/bin/valgrind.bin --tool=jmassif --jmassif-out-file=jmassif.out.%p "$@"
"""


class Job(NamedTuple):
    command: str
    files: Mapping[str, Path] = {}  # by the name that the command knows them by, in /files


class Outcome(NamedTuple):
    jobs: Dict[str, Recording]
    seconds: Dict[str, float]  # of the board's own clock
    dmesg: str


def require() -> None:
    """Skips where a board cannot be emulated."""
    harness.arm64_build()
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    missing += [str(tree) for tree in (KERNEL, LIBRARIES, ARM64_PYTHON) if not tree.exists()]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: ./bootstrap check has it")


def run_jobs(jobs: Mapping[str, Job], kept: Path) -> Outcome:
    """Boots the board, which runs the jobs one after another in the order of their names. What came of them is kept in
    `kept`: processes of tests that name the same place run them once."""
    require()
    with harness.lock("board"):
        if not kept.exists():
            shutil.rmtree(str(kept.parent), ignore_errors=True)
            kept.parent.mkdir(parents=True)
            with tempfile.TemporaryDirectory(prefix="board-", dir=str(MADE)) as name:
                directory = Path(name)
                _make_disk(directory, jobs)
                _make_initial_memory(directory)
                _boot(directory)
                check_run(["cp", "--sparse=always", directory / "results.tar", kept])
    return _outcome(kept)


def _module(name: str) -> Path:
    (found,) = (KERNEL / "lib/modules").rglob(f"{name}.ko")
    return found


def _merge(tree: Path, root: Path) -> None:
    """Packages have a /lib beside their /usr/lib."""
    check_run(["cp", "-a", "--reflink=auto", f"{tree}/.", f"{root}/"])


def _make_disk(directory: Path, jobs: Mapping[str, Job]) -> None:
    root = directory / "root"
    for place in ("proc", "sys", "dev", "tmp", "root", "jobs", "files", "results", "modules", "bin"):
        (root / place).mkdir(parents=True)
    for tree in (LIBRARIES, ARM64_PYTHON, ARM64_VALGRIND):
        _merge(tree, root)
    in_place = harness.arm64_build() / ".in_place"
    for name in ("jmassif-arm64-linux", "vgpreload_jmassif-arm64-linux.so"):
        shutil.copy2(str(in_place / name), str(root / "usr/libexec/valgrind" / name))
    shutil.copy2(str(harness.arm64_build() / "jmassif/libjmassif.so"), str(root / "usr/lib/libjmassif.so"))
    for applet in (
        "sh",
        "mount",
        "mkdir",
        "ip",
        "cat",
        "tar",
        "sync",
        "dmesg",
        "poweroff",
        "insmod",
        "mkswap",
        "swapon",
        "sleep",
    ):
        (root / "bin" / applet).symlink_to("busybox")
    for name in SWAP_MODULES:
        shutil.copy2(str(_module(name)), str(root / "modules"))
    shutil.copy2(str(GUEST / "run-jobs"), str(root))
    (root / "usr/bin/jm").write_text(JM)
    (root / "usr/bin/jm").chmod(0o755)
    for name, job in jobs.items():
        (root / "jobs" / name).write_text(job.command)
        for file_name, path in job.files.items():
            if path.is_dir():
                shutil.copytree(str(path), str(root / "files" / file_name), symlinks=True)
            else:
                shutil.copy2(str(path), str(root / "files" / file_name))
    check_run(["mke2fs", "-q", "-t", "ext4", "-d", root, directory / "disk", "1G"])
    with (directory / "results.tar").open("wb") as results:
        results.truncate(512 << 20)


def _make_initial_memory(directory: Path) -> None:
    root = directory / "initial"
    for place in ("bin", "modules"):
        (root / place).mkdir(parents=True)
    shutil.copy2(str(LIBRARIES / "bin/busybox"), str(root / "bin"))
    shutil.copy2(str(GUEST / "init"), str(root))
    for name in DISK_MODULES:
        shutil.copy2(str(_module(name)), str(root / "modules"))
    check_run(["sh", "-c", "find . | cpio --quiet -o -H newc >../initial.cpio"], cwd=root)


def _boot(directory: Path) -> None:
    (kernel,) = (KERNEL / "boot").glob("vmlinuz-*")
    machine: List[Argument] = ["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a57", "-m", str(MEMORY_MIB)]
    machine += ["-smp", "2", "-nodefaults", "-display", "none", "-no-reboot"]
    tree = directory / "board.dtb"
    check_run([*machine, "-M", f"virt,dumpdtb={tree}"])
    check_run(["fdtput", "-t", "s", tree, "/", "model", MODEL])
    log = directory / "console"
    command: List[Argument] = [*machine, "-kernel", kernel, "-initrd", directory / "initial.cpio", "-dtb", tree]
    command += ["-append", "console=ttyAMA0 quiet panic=-1 rdinit=/init"]
    command += ["-serial", f"file:{log}"]
    for name in ("disk", "results.tar"):
        command += ["-drive", f"file={directory / name},format=raw,if=none,id={name},cache=unsafe"]
        command += ["-device", f"virtio-blk-pci,drive={name}"]
    done = subprocess.run(
        [str(word) for word in command], timeout=SECONDS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    console = log.read_text("utf-8", "replace") if log.exists() else ""
    assert done.returncode == 0, done.stdout.decode("utf-8", "replace") + console[-2000:]
    with tarfile.open(str(directory / "results.tar")) as archive:
        assert "./dmesg" in archive.getnames(), console[-4000:]


def _outcome(archive: Path) -> Outcome:
    jobs, seconds = {}, {}
    with tempfile.TemporaryDirectory(prefix="jmassif-test-") as unpacked:
        check_run(["tar", "-xf", archive, "-C", unpacked])
        for results in sorted(path for path in Path(unpacked).iterdir() if path.is_dir()):
            kept = tempfile.TemporaryDirectory(prefix="jmassif-test-")
            check_run(["cp", "-a", f"{results}/.", kept.name])
            status = int((results / "status").read_text())
            printed = [(results / name).read_text("utf-8", "backslashreplace") for name in ("stdout", "stderr")]
            jobs[results.name] = Recording(Run(status, *printed), kept)
            begin, end = (results / "clock").read_text().split()
            seconds[results.name] = float(end) - float(begin)
        return Outcome(jobs, seconds, (Path(unpacked) / "dmesg").read_text("utf-8", "replace"))
