# SPDX-License-Identifier: GPL-2.0-or-later
"""The simulated board's kernel side by itself, without any profiler: calls by release, lifetimes, and its books.

The books are held against sums by hand (board_cases.py), against brute force over random operations (driver_random), and
against what libcuda of the simulation says it took.
"""

import os
import re
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from tests.harness import PYTHON, ROOT, VALGRIND, Argument, Run, run
from tests.sim.board_cases import CASES, NVGPU
from tests.sim.board_client import RELEASES

MIB = 1 << 20


def on_board(sim: Path, release: str, *command: Argument, options: Tuple[Argument, ...] = ()) -> Run:
    done = run([sim / "jmsim-board", f"--release={release}", *options, "--", *command], cwd=ROOT, timeout=300)
    if done.returncode == 77 and done.stderr.startswith("jmsim-board: "):
        pytest.skip(f"this kernel lets nobody answer another's system calls: {done.stderr.strip()}")
    return done


def at_end(log: Path) -> str:
    return log.read_text().splitlines()[-1]


NOTHING_LEFT = "end committed 0 files 0 buffers 0 objects 0"


# ---- the launcher ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [(), ("--release=r35",), ("--release=r99", "--", "true"), ("--release=r35", "--memory=1x", "--", "true")],
)
def test_bad_usage_is_said_in_one_line(sim: Path, arguments: Tuple[str, ...]) -> None:
    done = run([sim / "jmsim-board", *arguments])
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("usage: jmsim-board")


@pytest.mark.parametrize("code, status", [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 128 + 15)])
def test_it_ends_as_its_command_does(sim: Path, code: str, status: int) -> None:
    assert on_board(sim, "r35", "sh", "-c", code).returncode == status


def test_a_command_that_is_not_there_is_said(sim: Path) -> None:
    done = on_board(sim, "r35", "/no/such/command")
    assert done.returncode == 127 and "/no/such/command" in done.stderr


# ---- calls and lifetimes ---------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
def test_calls_do_what_the_release_documents(sim: Path, release: str, tmp_path: Path) -> None:
    failed: List[str] = []
    log = tmp_path / "log"
    for name, (_, releases) in CASES.items():
        if release not in releases:
            continue
        options: Tuple[Argument, ...] = ("--log", log)
        if "does_not_fit" in name:
            options += (f"--memory={16 * MIB}",)
        done = on_board(sim, release, PYTHON, "-m", "tests.sim.board_cases", name, options=options)
        if done.returncode != 0 or at_end(log) != NOTHING_LEFT:
            failed.append(f"{name}: {at_end(log)}\n{done.stderr}")
    assert not failed, "\n".join(failed)


def test_managed_memory_is_the_devices_though_other_memory_has_its_inode(sim: Path) -> None:
    """Each file system numbers its own. The number of System V memory is its identifier, which may be asked for."""
    if not os.access("/proc/sys/kernel/shm_next_id", os.W_OK):
        pytest.skip("nobody may choose the number of System V memory here")
    code = (
        "import os\n"
        "from tests.sim.board_client import *\n"
        "fd, at = unified(), reserve(4 * PAGE)\n"
        "mmap(fd, 2 * PAGE, at, at)\n"
        "inode = os.fstat(fd).st_ino\n"
        "open('/proc/sys/kernel/shm_next_id', 'w').write(str(inode))\n"
        "system_v(PAGE)\n"
        "same = [line for line in open('/proc/self/maps') if int(line.split()[4]) == inode]\n"
        "assert len(same) == 2 and 'SYSV' in ''.join(same), same\n"
        "assert books().managed == 2 * PAGE, books()\n"
    )
    done = on_board(sim, "rm580", PYTHON, "-c", code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("seed", range(3, 6))
@pytest.mark.parametrize("release", RELEASES)
def test_the_books_are_those_of_brute_force(sim: Path, release: str, seed: int, tmp_path: Path) -> None:
    log, board_log = tmp_path / "log", tmp_path / "board"
    program = sim / "programs" / "driver_random"
    n = 3000
    command: List[Argument] = [
        program,
        str(n),
        str(seed),
        "--check",
        "--rare",
        f"--log={log}",
        f"--exec-at={n * 2 // 3}",
    ]
    done = on_board(sim, release, *command, options=("--log", board_log))
    assert done.returncode == 0, done.stderr
    lines = log.read_text().splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(n))
    operations = {line.split(" ", 3)[3] for line in lines}
    assert {"fork", "fork and exec"} & operations and len(operations) > 15
    assert max(int(line.split()[1]) for line in lines) > 3 * MIB
    assert at_end(board_log) == NOTHING_LEFT


def test_descriptors_above_the_limit_are_the_drivers_alone(sim: Path) -> None:
    """r32's buffers are descriptors from 1024 on, and most shells have their limit just there."""
    command: List[Argument] = [sim / "programs" / "driver_random", "3000", "1", "--check"]
    done = on_board(sim, "r32", "sh", "-c", 'ulimit -Sn 1024; exec "$@"', "sh", *command)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("release", RELEASES)
def test_threads_at_once_get_what_they_asked_for(sim: Path, release: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = on_board(sim, release, sim / "programs" / "driver_threads", "30", "1", options=("--log", log))
    assert done.returncode == 0, done.stderr
    assert at_end(log) == NOTHING_LEFT


def test_brute_force_notices_what_is_wrong(sim: Path) -> None:
    """The process has a page that it did not take in its operations."""
    code = (
        "import os, sys\n"
        "from tests.sim.board_client import *\n"
        "fd = node('/dev/nvmap'); os.set_inheritable(fd, True); buffer(fd, PAGE)\n"
        "os.execv(sys.argv[1], [sys.argv[1], '10', '1', '--check'])\n"
    )
    done = on_board(sim, "r35", PYTHON, "-c", code, sim / "programs" / "driver_random")
    assert done.returncode == 1 and "it should be" in done.stderr


def test_valgrind_is_a_command_like_any_other(sim: Path, tmp_path: Path) -> None:
    for release in RELEASES:
        log = tmp_path / release
        program = sim / "programs" / "driver_random"
        command: List[Argument] = [VALGRIND, "-q", "--tool=none", program, "300", "7", "--check"]
        done = on_board(sim, release, *command, options=("--log", log))
        assert done.returncode == 0, done.stderr
        assert at_end(log) == NOTHING_LEFT


# ---- libcuda ---------------------------------------------------------------------------------


def figures(printed: str) -> List[Dict[str, int]]:
    """Of each point."""
    points: List[Dict[str, int]] = []
    for line in printed.splitlines():
        key, value = line.rsplit(" ", 1)
        if key == "point":
            points.append({})
        else:
            points[-1][key] = int(value)
    return points


def stories(sim: Path) -> List[str]:
    return run([sim / "programs" / "cuda_lifetime", "--list"]).stdout.split()


@pytest.mark.parametrize("release", RELEASES)
def test_libcuda_takes_its_memory_from_the_board(sim: Path, release: str, tmp_path: Path) -> None:
    """The program sees no difference, and the board's books are libcuda's: to the byte where nvmap has the memory."""
    program = sim / "programs" / "cuda_lifetime"
    log = tmp_path / "log"
    most = 0
    for story in stories(sim):
        plain = run([program, story])
        done = on_board(sim, release, program, story, options=("--log", log))
        assert done.returncode == 0, done.stderr
        assert re.sub(r"committed \d+\n", "", done.stdout) == plain.stdout
        for point in figures(done.stdout):
            taken = point["board_used"]
            if release in NVGPU:
                assert point["committed"] == taken, story
            else:  # wrapped, or only addresses; and the resource manager rounds large blocks
                own = point["pinned"] + point["managed"]
                rounding = 2 * MIB * point["device_blocks"]
                assert taken - own <= point["committed"] <= taken - own + rounding, story
            most = max(most, point["committed"])
        assert at_end(log) == NOTHING_LEFT
    assert most > 48 * MIB


@pytest.mark.parametrize("release", ("r35", "r36"))
def test_a_context_makes_the_calls_that_were_counted_on_a_board(sim: Path, release: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = on_board(sim, release, sim / "programs" / "cuda_lifetime", "unknown_pointer", options=("--log", log))
    assert done.returncode == 0
    before_more = [line.split()[1] for line in log.read_text().splitlines()]
    last_channel = len(before_more) - 1 - before_more[::-1].index("alloc_obj_ctx")
    counted = before_more[: last_channel + 1]
    for name, n in (("create", 171), ("alloc", 171), ("register_buffer", 171), ("map_buffer_ex", 138)):
        assert counted.count(name) == n, name
    for name, n in (("setup_bind", 16), ("alloc_obj_ctx", 16), ("alloc_space", 4)):
        assert counted.count(name) == n, name
    assert before_more.count("get_fd") >= 553


# ---- the machine's memory --------------------------------------------------------------------


def test_the_machines_memory_is_the_boards(sim: Path) -> None:
    script = "cat /proc/meminfo; cat /proc/buddyinfo; cat /proc/zoneinfo; head -1 /proc/self/status"
    done = on_board(sim, "r32", "sh", "-c", script, options=(f"--memory={4 << 30}", "--machine"))
    assert done.returncode == 0, done.stderr
    told = {name: int(kib) << 10 for name, kib in re.findall(r"^(\w+): +(\d+) kB$", done.stdout, re.MULTILINE)}
    assert told["MemTotal"] == 4 << 30 and told["SwapTotal"] == 0
    assert told["MemFree"] + told["Cached"] == told["MemAvailable"]
    # The system's 560 MiB, and what a shell's child has touched.
    assert 0 < (4 << 30) - (560 << 20) - told["MemAvailable"] < 16 * MIB
    counts = [int(word) for word in done.stdout.split("Normal")[1].split()[:11]]
    free = sum(n * (4096 << order) for order, n in enumerate(counts))
    assert abs(free - told["MemFree"]) < 16 * MIB
    # Pages that processors have at hand: the simulating machine's may be hundreds of MiB.
    assert re.findall(r"count: +(\d+)", done.stdout) == ["0"]
    assert "Name:\thead" in done.stdout


ASKS_WHAT_IS_FREE = """
import ctypes, re
cuda = ctypes.CDLL({libcuda!r})
context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
held = bytearray(b"x" * (300 << 20))
assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
available = int(re.search(r"MemAvailable: *(\\d+)", open("/proc/meminfo").read()).group(1)) << 10
print(free.value, total.value, available)
"""


def test_what_the_driver_says_is_free_is_what_the_machine_has_left(sim: Path) -> None:
    script = ASKS_WHAT_IS_FREE.format(libcuda=str(sim / "libcuda.so.1"))
    done = on_board(sim, "r32", PYTHON, "-c", script, options=(f"--memory={4 << 30}", "--machine"))
    assert done.returncode == 0, done.stderr
    free, total, available = map(int, done.stdout.split())
    # The system has taken 560 MiB, and the script 300; reading the file itself takes a little.
    assert total == 4 << 30 and free < (4 << 30) - (800 << 20)
    assert abs(free - available) < 1 << 20


def test_without_machine_the_kernels_figures_are_its_own(sim: Path) -> None:
    done = on_board(sim, "r32", "grep", "MemTotal", "/proc/meminfo", options=(f"--memory={4 << 30}",))
    (total,) = re.findall(r"^MemTotal:.*\n", Path("/proc/meminfo").read_text(), re.MULTILINE)
    assert done.stdout == total
