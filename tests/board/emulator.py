# SPDX-License-Identifier: GPL-2.0-or-later
"""An arm64 machine of its own: Debian's kernel and C library, emulated with all that a kernel gives and takes.

Emulated programs (tests/arm64) run on this machine's kernel; here page tables, control groups, swap and the killing of
processes are those of an arm64 kernel, and the seccomp notifications that simulate a board's devices come from one. A job
is a shell command in a directory of its own; `jm` in it is Valgrind with jmassif, `jm-native` the preloaded recorder.
"""

import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Tuple

import pytest

from tests import harness
from tests.harness import ARM64_PYTHON, ARM64_VALGRIND, BUILD, MADE, Argument, Recording, Run, check_run

COMPAT = BUILD / "compat"
LIBRARIES = COMPAT / "board-root"
GUEST = Path(__file__).resolve().parent / "guest"
TOOLS = ("qemu-system-aarch64", "mke2fs", "cpio", "fdtput")

# In the order in which they load, as far as a kernel has them apart. ext4 is part of it.
DISK_MODULES = ("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk")
SWAP_MODULES = ("zsmalloc", "lzo-rle", "zram")

# What jobs use of busybox, where the trees do not have it; with what maintainers' scripts of packages do.
APPLETS = tuple(
    "sh mount mkdir ip cat tar sync dmesg poweroff insmod mkswap swapon sleep readlink sed uname find rm ls env grep head wc true".split()
)

MODEL = "NVIDIA Jetson Nano Developer Kit"
MEMORY_MIB = 1024
SECONDS = 1800  # 150 where nothing else runs

JM = """#!/bin/sh
exec /usr/bin/valgrind.bin --tool=jmassif --jmassif-out-file=jmassif.out.%p "$@"
"""
JM_NATIVE = """#!/bin/sh
JMASSIF_NATIVE=$(printf '%s\\n' --pages=no --jmassif-out-file=jmassif.out.%p) LD_PRELOAD=/usr/lib/libjmassif-native.so exec "$@"
"""


class Board(NamedTuple):
    kernel: Path  # unpacked packages, as the others
    trees: Tuple[Path, ...]
    has_recorder: bool  # `jm`, from the build tree


BOOKWORM = Board(COMPAT / "board-kernel", (LIBRARIES, ARM64_PYTHON, ARM64_VALGRIND), True)
# Python, and what installs packages; nothing of Valgrind or ours.
BARE = {
    "bookworm": Board(BOOKWORM.kernel, (LIBRARIES, ARM64_PYTHON, COMPAT / "board-dpkg"), False),
    "bullseye": Board(COMPAT / "board-kernel-bullseye", (COMPAT / "board-root-bullseye",), False),
}


class Job(NamedTuple):
    command: str
    files: Mapping[str, Path] = {}  # by the name that the command knows them by, in /files


class Outcome(NamedTuple):
    jobs: Dict[str, Recording]
    seconds: Dict[str, float]  # of the board's own clock
    dmesg: str


def require(board: Board = BOOKWORM, whence: str = "./bootstrap check has it") -> None:
    """Skips where a board cannot be emulated."""
    if board.has_recorder:
        harness.arm64_build()
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    missing += [str(tree) for tree in (board.kernel, *board.trees) if not tree.exists()]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: {whence}")


def run_jobs(jobs: Mapping[str, Job], kept: Path, board: Board = BOOKWORM) -> Outcome:
    """Boots the board, which runs the jobs one after another in the order of their names. What came of them is kept in
    `kept`: processes of tests that name the same place run them once."""
    require(board)
    with harness.lock("board"):
        if not kept.exists():
            shutil.rmtree(str(kept.parent), ignore_errors=True)
            kept.parent.mkdir(parents=True)
            with tempfile.TemporaryDirectory(prefix="board-", dir=str(MADE)) as name:
                directory = Path(name)
                _make_disk(directory, jobs, board)
                _make_initial_memory(directory, board)
                _boot(directory, board)
                check_run(["cp", "--sparse=always", directory / "results.tar", kept])
    return _outcome(kept)


def _copy_modules(board: Board, names: Tuple[str, ...], to: Path) -> None:
    for name in names:
        for found in (board.kernel / "lib/modules").rglob(f"{name}.ko"):
            shutil.copy2(str(found), str(to))


def _merge(tree: Path, root: Path) -> None:
    """Packages have a /lib beside their /usr/lib."""
    check_run(["cp", "-a", "--reflink=auto", f"{tree}/.", f"{root}/"])


def _add_recorder(root: Path) -> None:
    in_place = harness.arm64_build() / ".in_place"
    for name in ("jmassif-arm64-linux", "vgpreload_jmassif-arm64-linux.so"):
        shutil.copy2(str(in_place / name), str(root / "usr/libexec/valgrind" / name))
    for name in ("libjmassif.so", "libjmassif-native.so"):
        shutil.copy2(str(harness.arm64_build() / "jmassif" / name), str(root / "usr/lib" / name))
    for name, text in (("jm", JM), ("jm-native", JM_NATIVE)):
        (root / "usr/bin" / name).write_text(text)
        (root / "usr/bin" / name).chmod(0o755)


def _make_disk(directory: Path, jobs: Mapping[str, Job], board: Board) -> None:
    root = directory / "root"
    for place in ("proc", "sys", "dev", "tmp", "root", "jobs", "files", "results", "modules", "bin"):
        (root / place).mkdir(parents=True)
    for tree in board.trees:
        _merge(tree, root)
    if board.has_recorder:
        _add_recorder(root)
    for applet in APPLETS:
        if not (root / "bin" / applet).exists():
            (root / "bin" / applet).symlink_to("busybox")
    if not (root / "usr/bin/env").exists():
        (root / "usr/bin/env").symlink_to("/bin/busybox")  # where scripts look for it
    (python,) = (root / "usr/bin").glob("python3.*")
    (root / "usr/bin/python3").symlink_to(python.name)
    _copy_modules(board, SWAP_MODULES, root / "modules")
    shutil.copy2(str(GUEST / "run-jobs"), str(root))
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


def _make_initial_memory(directory: Path, board: Board) -> None:
    root = directory / "initial"
    for place in ("bin", "modules"):
        (root / place).mkdir(parents=True)
    shutil.copy2(str(directory / "root/bin/busybox"), str(root / "bin"))
    shutil.copy2(str(GUEST / "init"), str(root))
    _copy_modules(board, DISK_MODULES, root / "modules")
    check_run(["sh", "-c", "find . | cpio --quiet -o -H newc >../initial.cpio"], cwd=root)


def _boot(directory: Path, board: Board) -> None:
    (kernel,) = (board.kernel / "boot").glob("vmlinuz-*")
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
