# SPDX-License-Identifier: GPL-2.0-or-later
"""jmassif doctor: what it says of machines with one fault each. A machine is a directory of files as the kernel and L4T have
them; limits are those of a process of its own."""

import errno
import json
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

import pytest

from jmassif.doctor import checks
from jmassif.doctor.checks import FAILS, LOST, OK, Machine, Verdict, check_kernel
from tests.harness import BUILD, VALGRIND


MEMINFO = (
    "MemTotal: {total} kB\nMemFree: 1000 kB\nMemAvailable: {available} kB\nSwapTotal: {swap} kB\nSwapFree: {swap} kB\n"
)


def put(root: Path, path: str, text: str) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def with_memory(root: Path, available_mib: int, swap_mib: int = 0, total_mib: int = 4096) -> None:
    figures = {"total": total_mib, "available": available_mib, "swap": swap_mib}
    put(root, "/proc/meminfo", MEMINFO.format(**{name: mib * 1024 for name, mib in figures.items()}))


def only(verdict: Optional[Verdict]) -> Verdict:
    assert verdict
    return verdict


def script(tmp_path: Path, text: str) -> List[str]:
    path = tmp_path / "train.py"
    path.write_text(text)
    return ["python3", str(path)]


# ---- memory ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "available, swap, text, state",
    [
        (2000, 0, "import torch\n", OK),
        (300, 0, "import torch\n", FAILS),
        (300, 2000, "from torch import nn\n", LOST),
        (300, 0, "import os\n", OK),
        (300, 0, "# import torch\nmytorch = 1\n", OK),
        (30, 0, "import os\n", FAILS),
    ],
)
def test_memory_at_hand_is_held_against_what_the_script_needs(
    tmp_path: Path, available: int, swap: int, text: str, state: str
) -> None:
    with_memory(tmp_path, available, swap)
    machine = Machine(str(tmp_path), program=script(tmp_path, text), recorder="valgrind")
    found = only(checks.check_memory(machine))
    assert found.state == state and f"{available} MiB" in found.text.replace("1.95 GiB", "2000 MiB").replace(".0", "")


def test_a_control_groups_limit_counts_where_it_leaves_less(tmp_path: Path) -> None:
    with_memory(tmp_path, 3000)
    put(tmp_path, "/sys/fs/cgroup/memory.max", str(100 << 20))
    put(tmp_path, "/sys/fs/cgroup/memory.current", str(90 << 20))
    found = only(checks.check_memory(Machine(str(tmp_path))))
    assert found.state == FAILS and "10.0 MiB" in found.text and "memory.max" in found.text
    put(tmp_path, "/sys/fs/cgroup/memory.max", "max")
    assert only(checks.check_memory(Machine(str(tmp_path)))).state == OK


@pytest.mark.parametrize(
    "line, group, limit, used",
    [
        ("4:cpu,memory:/outer/own\n", "/sys/fs/cgroup/memory/outer", "memory.limit_in_bytes", "memory.usage_in_bytes"),
        ("0::/outer/own\n", "/sys/fs/cgroup/outer", "memory.max", "memory.current"),
    ],
    ids=["version 1", "version 2"],
)
def test_the_limit_of_an_outer_control_group_counts_but_not_its_idle_files(
    tmp_path: Path, line: str, group: str, limit: str, used: str
) -> None:
    with_memory(tmp_path, 3000)
    put(tmp_path, "/proc/self/cgroup", "7:freezer:/elsewhere\n" + line)
    put(tmp_path, f"{group}/{limit}", str(100 << 20))
    put(tmp_path, f"{group}/{used}", str(95 << 20))
    put(tmp_path, f"{group}/memory.stat", f"file {60 << 20}\ninactive_file {15 << 20}\n")
    put(tmp_path, f"{group}/own/{limit}", str(200 << 20))
    put(tmp_path, f"{group}/own/{used}", str(1 << 20))
    found = only(checks.check_memory(Machine(str(tmp_path), recorder="valgrind")))
    assert found.state == FAILS and "20.0 MiB" in found.text and limit in found.text
    assert "the group's limit" in found.mend


def test_a_desktop_is_told_with_what_it_takes(tmp_path: Path) -> None:
    put(tmp_path, "/proc/812/comm", "gnome-shell\n")
    put(tmp_path, "/proc/812/statm", f"900000 {(300 << 20) // 4096} {(50 << 20) // 4096} 1 0 1 0\n")
    put(tmp_path, "/proc/900/comm", "sshd\n")
    found = only(checks.check_desktop(Machine(str(tmp_path))))
    assert found.state == LOST and "250 MiB" in found.text and "multi-user.target" in found.mend
    (tmp_path / "proc/812/comm").write_text("bash\n")
    assert not checks.check_desktop(Machine(str(tmp_path)))


def test_a_boards_own_bytes_are_those_of_the_kernels_files(tmp_path: Path) -> None:
    """Each figure once more by hand; nothing that no file proves."""
    machine = Machine(str(tmp_path))
    put(tmp_path, "/proc/meminfo", "MemTotal: 8000000 kB\nMemFree: 1000000 kB\nMemAvailable: 3000000 kB\n")
    assert checks.check_board_memory(machine) is None  # no board
    put(tmp_path, "/etc/nv_tegra_release", "# R39 (release), REVISION: 2.0\n")
    assert checks.check_board_memory(machine) is None  # nothing proven
    more = "Buffers: 1024 kB\nCached: 1047552 kB\nSReclaimable: 0 kB\nCmaTotal: 524288 kB\nCmaFree: 512000 kB\n"
    with (tmp_path / "proc/meminfo").open("a") as stream:
        stream.write(more + "SwapTotal: 4096000 kB\nSwapFree: 4014080 kB\n")
    put(tmp_path, "/proc/812/comm", "nvargus-daemon\n")
    put(tmp_path, "/proc/812/statm", f"900000 {(40 << 20) // 4096} {(10 << 20) // 4096} 1 0 1 0\n")
    put(tmp_path, "/proc/813/comm", "Xorg\n")
    put(tmp_path, "/proc/813/statm", f"900000 {(90 << 20) // 4096} {(20 << 20) // 4096} 1 0 1 0\n")
    put(tmp_path, "/sys/block/zram0/mm_stat", f"{9 << 20} {3 << 20} {4 << 20} 0 {5 << 20} 0 0 0\n")
    nodes = {"vpr": 3 << 30 | 1 << 20, "camdbg_carveout": 64 << 20, "off": 7 << 20, "linux,cma": 512 << 20}
    for name, n_bytes in nodes.items():
        node = tmp_path / "proc/device-tree/reserved-memory" / name
        node.mkdir(parents=True)
        (node / "reg").write_bytes((1 << 31).to_bytes(8, "big") + n_bytes.to_bytes(8, "big"))
    put(tmp_path, "/proc/device-tree/reserved-memory/off/status", "disabled\0")
    put(tmp_path, "/proc/device-tree/reserved-memory/linux,cma/reusable", "")
    found = only(checks.check_board_memory(machine))
    assert found.text == (
        "desktop 70.0 MiB, nvargus-daemon 30.0 MiB, CMA (500 MiB of it free) 512 MiB, reserved-memory nodes 3.06 GiB,"
        " zram 4.00 MiB, page cache 1.00 GiB, swap in use 80.0 MiB"
    )
    assert all(word in found.mend for word in ("systemctl stop nvargus-daemon", "cma=", "drop_caches", "swapoff"))
    assert found.state == OK


# ---- limits, of a process that has them ------------------------------------------------------


def limited(call: Callable[[Machine], Any], machine: Machine, limit: int) -> Any:
    """A call's result, as JSON has it, in a child of this process that has a limit of open files."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            os.write(theirs, json.dumps(call(machine)).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return json.loads(said.decode())


@pytest.mark.parametrize(
    "limit, board, state", [(64, False, LOST), (16, False, FAILS), (1024, False, OK), (1024, True, FAILS)]
)
def test_few_open_files(tmp_path: Path, limit: int, board: bool, state: str) -> None:
    if board:
        put(tmp_path, "/dev/nvmap", "")
    held = [
        os.open(os.devnull, os.O_RDONLY) for _ in range(limit if state == LOST else 0)
    ]  # it can open no more itself
    found = Verdict(*limited(checks.check_open_files, Machine(str(tmp_path)), limit))
    for descriptor in held:
        os.close(descriptor)
    assert found.state == state and str(limit) in found.text and (state == OK or found.mend)


def test_a_directory_that_cannot_be_written(tmp_path: Path, monkeypatch: "pytest.MonkeyPatch") -> None:
    assert only(checks.check_temporary(Machine(environment={"TMPDIR": str(tmp_path / "absent")}))).state == FAILS
    assert only(checks.check_temporary(Machine(environment={"TMPDIR": str(tmp_path)}))).state == OK
    monkeypatch.chdir(tmp_path)
    assert only(checks.check_trace(Machine())).state == OK
    monkeypatch.chdir("/proc/self")
    assert only(checks.check_trace(Machine())).state == FAILS


def test_little_room_for_the_trace_where_it_goes(tmp_path: Path, monkeypatch: "pytest.MonkeyPatch") -> None:
    monkeypatch.chdir(tmp_path)
    free = {".": 20 << 20, "/tmp": 1 << 30}
    monkeypatch.setattr(checks, "_free", free.__getitem__)
    for trace, state in (("", LOST), ("jmassif.out.%p", LOST), ("/tmp/trace.%p", OK)):
        assert only(checks.check_trace(Machine(trace=trace))).state == state
    assert "20.0 MiB" in only(checks.check_trace(Machine())).text
    for trace in ("/dev/null", "%q{HOME}/trace", "/absent/trace"):
        assert not checks.check_trace(Machine(trace=trace))


# ---- the board -------------------------------------------------------------------------------


def test_a_simulated_boards_releases_are_named(sim: Path) -> None:
    found = only(checks.check_board(Machine(str(sim / "jetpack-4.6.1" / "root"))))
    assert found.state == OK
    assert all(words in found.text for words in ("JetPack 4.6.1", "L4T 32.7.1", "CUDA 10.2", "cuDNN 8.2.1"))


@pytest.mark.parametrize("board", ["Orin", "Thor"])
def test_jetpack_7_2_is_named_and_what_is_unverified_is_said(sim: Path, board: str) -> None:
    found = only(checks.check_board(Machine(str(sim / "jetpack-7.2" / board))))
    assert found == (
        OK,
        f"NVIDIA Jetson AGX {board} Developer Kit, JetPack 7.2, L4T 39.2.0, CUDA 13.2.0-1, cuDNN 9.20.0-1,"
        " TensorRT 10.16.0-1+cuda13.2; its driver calls are read as those of L4T 36 (nvgpu) and 38 (nvmap, openrm); not verified on a board",
        "",
    )


def test_a_release_that_nobody_knows_yet(tmp_path: Path) -> None:
    assert not checks.check_board(Machine(str(tmp_path)))
    status = "Package: libcudnn8\nStatus: deinstall ok config-files\nVersion: 8.0\n\n"
    status += "Package: libcudnn42\nEssential: no\nStatus: install ok installed\nVersion: 1:42.1.0-1\n\n"
    put(tmp_path, "/var/lib/dpkg/status", status)
    found = only(checks.check_board(Machine(str(tmp_path))))
    assert found == (LOST, "cuDNN 42.1.0-1: device memory of cuDNN 42.1.0-1 may be missed", "")
    put(tmp_path, "/var/lib/dpkg/status", "")
    put(tmp_path, "/etc/nv_tegra_release", "# R99 (release), REVISION: 1.0, GCID: 1, BOARD: generic\n")
    found = only(checks.check_board(Machine(str(tmp_path))))
    assert found.state == LOST and found.text.startswith("L4T 99.1.0: ")


def test_a_device_that_this_user_may_not_open(tmp_path: Path, monkeypatch: "pytest.MonkeyPatch") -> None:
    assert only(checks.check_devices(Machine(str(tmp_path)))).state == OK
    put(tmp_path, "/dev/nvmap", "")
    assert only(checks.check_devices(Machine(str(tmp_path)))).state == OK
    refuse = lambda machine, node: errno.EACCES if node == "nvmap" else errno.ENOENT  # noqa: E731  root may open all
    monkeypatch.setattr(checks, "_refusal", refuse)
    found = only(checks.check_devices(Machine(str(tmp_path))))
    assert found.state == FAILS and "/dev/nvmap" in found.text and "video" in found.mend


def test_a_device_whose_driver_does_not_answer(tmp_path: Path) -> None:
    put(tmp_path, "/dev/nvidia0", "")
    with socket.socket(socket.AF_UNIX) as nobody:  # may be opened, says its mode, and cannot be
        nobody.bind(str(tmp_path / "dev/nvidiactl"))
    found = only(checks.check_devices(Machine(str(tmp_path))))
    assert found.state == FAILS and f"/dev/nvidiactl cannot be opened ({os.strerror(errno.ENXIO)})" in found.text
    assert "driver" in found.mend and "usermod" not in found.mend


# ---- processor and kernel --------------------------------------------------------------------


ORIN = "processor\t: 0\nFeatures\t: fp asimd aes pmull sha1 sha2 crc32 atomics asimddp\n"


@pytest.mark.parametrize("release, state", [((3, 22, 0), LOST), ((3, 27, 1), OK)])
def test_dot_products_need_a_valgrind_that_knows_them(tmp_path: Path, release: Tuple[int, ...], state: str) -> None:
    put(tmp_path, "/proc/cpuinfo", ORIN)
    found = only(checks.check_processor(Machine(str(tmp_path), environment={}), release))
    assert found.state == state and (state == OK or "OPENBLAS_CORETYPE=ARMV8" in found.mend)
    kept = {"OPENBLAS_CORETYPE": "ARMV8", "ATEN_CPU_CAPABILITY": "default", "OPENSSL_armcap": "0"}
    assert only(checks.check_processor(Machine(str(tmp_path), environment=kept), release)).state == OK


def test_valgrind_answers_for_a_desktop_processor(tmp_path: Path) -> None:
    put(tmp_path, "/proc/cpuinfo", "flags\t\t: fpu sse2 avx2 avx512f\n")
    assert not checks.check_processor(Machine(str(tmp_path)), (3, 27, 1))


def test_what_the_kernel_keeps_from_the_recorder(tmp_path: Path) -> None:
    machine = Machine(str(tmp_path))
    assert only(check_kernel(machine)).state == LOST
    put(tmp_path, "/proc/self/smaps", "00400000-00401000 r-xp\n")
    assert only(check_kernel(machine)).state == OK


# ---- software --------------------------------------------------------------------------------


def recorder(root: str = "", **more: Any) -> Machine:
    return Machine(root, str(BUILD / ".in_place"), VALGRIND, **more)


def test_the_native_recorder_is_tried(tmp_path: Path) -> None:
    assert only(checks.check_native(recorder())).state == OK
    missing = only(checks.check_native(Machine(tools=str(tmp_path))))
    assert missing.state == FAILS and str(tmp_path) in missing.text
    put(tmp_path, "/libjmassif-native.so", "for another processor")
    said = only(checks.check_native(Machine(tools=str(tmp_path))))
    assert said.state == FAILS and "does not record" in said.text


def test_the_recorder_is_tried(tmp_path: Path) -> None:
    found = only(checks.check_valgrind(recorder()))
    version = subprocess.check_output([VALGRIND, "--version"]).decode().strip().partition("-")[2]
    assert found.state == OK and found.text.startswith(version)
    missing = only(checks.check_valgrind(Machine(tools=str(tmp_path))))
    assert missing.state == FAILS and str(tmp_path) in missing.text
    broken = {**os.environ, "TMPDIR": str(tmp_path / "absent")}
    said = only(checks.check_valgrind(recorder(environment=broken)))
    assert said.state == FAILS and "does not record" in said.text


def fake_python(tmp_path: Path, *lines: str) -> Dict[str, str]:
    """An environment with a python3 that answers so."""
    put(tmp_path, "/bin/python3", "#!/bin/sh\ncat <<END\n" + "\n".join(lines) + "\nEND\n")
    (tmp_path / "bin/python3").chmod(0o755)
    return {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}


@pytest.mark.parametrize(
    "version, name, state", [("3.11.2", "cpython", OK), ("3.99.0", "cpython", LOST), ("3.9.1", "pypy", LOST)]
)
def test_an_interpreter_that_the_recorder_does_not_know(tmp_path: Path, version: str, name: str, state: str) -> None:
    environment = fake_python(tmp_path, version, name, sys.executable, "")
    assert only(checks.check_python(recorder(environment=environment))).state == state


def test_pytorch_is_named_with_the_interpreter(tmp_path: Path) -> None:
    put(tmp_path, "/torch/version.py", "__version__ = '2.6.0+cu124'\n")
    environment = fake_python(tmp_path, "3.11.2", "cpython", sys.executable, f"{tmp_path}/torch/__init__.py")
    found = only(checks.check_python(recorder(environment=environment)))
    assert found.state == OK and found.text.endswith("PyTorch 2.6.0+cu124")


def test_what_would_spoil_a_recording_comes_worst_first(tmp_path: Path) -> None:
    with_memory(tmp_path, 30, 2000)
    put(tmp_path, "/dev/nvmap", "")
    machine = Machine(str(tmp_path), program=["python3"], recorder="valgrind")
    found = limited(checks.urgent, machine, 1024)
    assert [(name, state) for name, (state, *_) in found] == [("open files", FAILS), ("memory", LOST)]
    # A native recording takes less memory, and no descriptors of the program's.
    with_memory(tmp_path, 10, 2000)
    found = limited(checks.urgent, machine._replace(recorder="native"), 1024)
    assert [(name, state) for name, (state, *_) in found] == [("memory", LOST)]
