# SPDX-License-Identifier: GPL-2.0-or-later
"""Driver memory below the CUDA API, on the simulated board of each release: what the kernel has committed is in the ledger
to the byte, as blocks of the API and what is around them."""

from pathlib import Path
from typing import Dict, List, Optional, Tuple

import pytest

from jmassif.analysis import balance as reconciliation
from tests import harness
from tests.harness import Recording
from tests.tool import board, cuda_ledger, programs
from tests.tool.test_cuda_lifetimes import STORIES

# Programs that print at each of their points what their kernel has committed: all of cuda_lifetime's stories on one release
# of each kind, the richest of them on the others.
ALL = (("cuda_driver",),) + tuple(("cuda_lifetime", story) for story in STORIES)
RICH = (("cuda_driver",), ("cuda_lifetime", "vmm_two_mappings"), ("cuda_lifetime", "device_reset"))
RUNS = [(release, run) for release in board.RELEASES for run in (ALL if release in ("r35", "rm580") else RICH)]
RUNS += [("r39", run) for run in RICH]


def compared(recording: Recording, release: str) -> List[Tuple[str, int, int]]:
    """Of each point its name, what the ledger has, and what the kernel had committed."""
    compositions = cuda_ledger.at_marks(recording.profile)
    points = list(cuda_ledger.points(recording.stdout))
    assert len(compositions) == len(points) > 0
    return [
        (name, board.committed(recording.profile, composition, release), figures["committed"])
        for composition, (name, figures) in zip(compositions, points)
    ]


@pytest.mark.parametrize("release,program", RUNS, ids=[f"{release}-{run[-1]}" for release, run in RUNS])
def test_blocks_and_slack_are_what_the_kernel_has_committed(sim: Path, release: str, program: Tuple[str, ...]) -> None:
    recording = board.recorded(sim, release, *program)
    rows = compared(recording, release)
    wrong = [row for row in rows if row[1] != row[2]]
    assert not wrong, wrong
    assert max(committed for _, _, committed in rows) >= 48 << 20  # a context's worth
    assert board.odd(recording.trace) == {}
    cuda_ledger.assert_totals_are_sums(recording.trace)


# ---- whose it is -----------------------------------------------------------------------------


@pytest.fixture(params=("r35", "rm580"))
def mixed(request: pytest.FixtureRequest, sim: Path) -> Recording:
    return board.recorded(sim, request.param, "cuda_mixed", "exit", options=["--pages=yes"], marks=False, status=7)


def driver_by_owner(recording: Recording) -> Dict[str, int]:
    profile = recording.profile
    held = cuda_ledger.held_by(
        profile,
        cuda_ledger.last(profile),
        lambda account: (
            profile.accounts[account].owner if profile.accounts[account].kind.startswith("driver") else None
        ),
    )
    return {owner: n_bytes for owner, (n_bytes, _) in held.items()}


def test_each_cause_has_its_driver_memory_and_the_rest_is_slack(mixed: Recording) -> None:
    held = driver_by_owner(mixed)
    assert 48 << 20 <= held.pop("context") < 49 << 20  # a context, a stream and events
    assert held.pop("module") > 0
    assert held.pop("slack") > 0
    assert not held


def test_a_scope_tells_what_its_call_committed(mixed: Recording) -> None:
    grown: Dict[str, int] = {}
    for scope in mixed.profile.scopes:
        grown[scope.name] = sum(growth.bytes for growth in scope.growths if growth.kind.startswith("driver"))
    assert grown["cuDevicePrimaryCtxRetain"] == 48 << 20


def test_the_books_add_up_with_mapped_buffers(mixed: Recording) -> None:
    made = reconciliation.memory_balance(mixed.profile, reconciliation.sampled(mixed.profile)[-1])
    assert abs(made.unaccounted) < 64 << 10


# ---- without it, and beside it ---------------------------------------------------------------


def test_a_mapped_buffer_counts_once(sim: Path) -> None:
    board.require_board(sim)
    recording = harness.record(
        [programs.program("nvmap_limit.c")],
        options=["--pages=yes"],
        env={"LD_PRELOAD": str(harness.BUILD / "jmassif" / "libjmassif.so")},
        launcher=board.launcher(sim, "r32"),
    )
    with_it, parted, without = (
        board.by_kind(recording.profile, held) for held in cuda_ledger.at_marks(recording.profile)
    )
    assert with_it["driver"] - without.get("driver", 0) == 5 << 20
    assert parted["driver"] == with_it["driver"]  # either part keeps all of the buffer
    # Two pages of anonymous memory, which count as a file's where the kernel has put them right behind its data.
    assert abs(with_it.get("anon", 0) - without.get("anon", 0)) < 64 << 10


def test_driver_no_leaves_it_out(sim: Path) -> None:
    recording = board.recorded(sim, "r35", "cuda_driver", options=["--driver=no"])
    assert recording.profile.manifest["option.driver"] == "no"
    for composition in cuda_ledger.at_marks(recording.profile):
        assert "driver" not in board.by_kind(recording.profile, composition)


def test_a_forked_child_starts_without_its_parents(sim: Path) -> None:
    board.require_board(sim)
    recording = harness.record([programs.program("nvmap_fork.c")], launcher=board.launcher(sim, "r35"), status=0)
    peaks: List[Tuple[bool, Optional[int]]] = []
    for trace in recording.traces:
        profile = recording.load(trace)
        held = board.by_kind(profile, cuda_ledger.last(profile))
        peaks.append(("forked-from" in profile.manifest, held.get("driver")))
    assert sorted(peaks, key=str) == [(False, 3 << 20), (True, 1 << 20)]


ASKS_FOR_TOO_MUCH = """
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#define CREATE 0xc0084e00
#define ALLOC 0x40104e03
static int take(int nvmap, uint32_t bytes)
{
    uint32_t handle[2] = {bytes, 0};
    if (ioctl(nvmap, CREATE, handle))
        exit(1);
    uint32_t alloc[4] = {handle[1], 1u << 30, 0, 4096};
    return ioctl(nvmap, ALLOC, alloc) ? errno : 0;
}
int main(void)
{
    int nvmap = open("/dev/nvmap", O_RDWR | O_CLOEXEC);
    return nvmap < 0 || take(nvmap, 20 << 20) || take(nvmap, 13 << 20) != ENOMEM;
}
"""


def test_nvmap_that_has_no_memory_left_is_told(sim: Path) -> None:
    board.require_board(sim)
    program = harness.compile_c(ASKS_FOR_TOO_MUCH)
    recording = harness.record([program], launcher=board.launcher(sim, "r35", f"--memory={32 << 20}"), status=0)
    (event,) = recording.profile.exhaustions.values()
    assert (event.api, event.bytes) == ("NVMAP_IOC_ALLOC", 13 << 20)
    assert "take" in programs.functions(recording.profile, recording.profile.accounts[event.account].node)


TAKES_ONE_BLOCK = r"""
int cudaMalloc(void **pointer, unsigned long bytes), cudaFree(void *pointer);
int main(void)
{
    void *block;
    return cudaMalloc(&block, 5 << 20) || cudaFree(block);
}
"""


def test_a_peak_has_the_last_block_and_not_what_was_committed_for_it(sim: Path) -> None:
    """The total is the same from the commit on, which is within the call."""
    board.require_board(sim)
    program = harness.compile_c(TAKES_ONE_BLOCK, "-w", str(sim / "libcudart.so.12"), f"-Wl,-rpath,{sim}")
    recording = harness.record([program], launcher=board.launcher(sim, "r36"))
    profile = recording.profile
    blocks = [
        n_bytes
        for account, (n_bytes, _) in profile.peak_composition("device").items()
        if profile.accounts[account].kind == "device"
    ]
    assert blocks == [5 << 20]


# ---- ioctls that nobody knows ----------------------------------------------------------------

CALLS_WHAT_IS_NEW = r"""
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
int main(int argc, char **argv)
{
    char bytes[4096] = {0};
    for (int i = 1; i + 2 < argc; i += 3) { /* device, number, how often */
        int device = open(argv[i], O_RDWR | O_CLOEXEC);
        for (int n = atoi(argv[i + 2]); n > 0; n--)
            if (device < 0 || ioctl(device, strtoul(argv[i + 1], NULL, 16), bytes))
                return i;
    }
    return 0;
}
"""


@pytest.mark.parametrize(
    "release,calls",
    [
        (
            "r35",
            [
                ("/dev/nvmap", "nvmap", 0xC0084EE0, 3),
                ("/dev/nvhost-ctrl-gpu", "nvgpu", 0xC01047E1, 2),
                ("/dev/nvhost-ctrl-gpu", "nvgpu", 0xC02047E1, 1),
            ],
        ),
        (
            "rm580",
            [
                ("/dev/nvidiactl", "rm", 0xC02046E0, 2),
                ("/dev/nvidia0", "rm", 0xC03046E1, 1),
                ("/dev/nvidia-uvm", "uvm", 0xE2, 4),
            ],
        ),
    ],
    ids=["r35", "rm580"],
)
def test_unknown_ioctls_are_told_by_number(sim: Path, release: str, calls: List[Tuple[str, str, int, int]]) -> None:
    board.require_board(sim)
    program = harness.compile_c(CALLS_WHAT_IS_NEW)
    arguments = [str(word) for path, _, number, times in calls for word in (path, f"{number:x}", times)]
    recording = harness.record([program, *arguments], launcher=board.launcher(sim, release, "--newer"), status=0)
    told = {f"driver-ioctl-unknown.{driver}.0x{number:x}": times for _, driver, number, times in calls}
    assert board.odd(recording.trace) == {"driver-ioctl-unknown": sum(told.values()), **told}
    report = programs.print_report(recording.trace).stdout
    for key, times in told.items():
        assert any(key in line and str(times) in line.split() for line in report.splitlines()), key


def test_of_unknown_ioctls_the_table_is_bounded(sim: Path) -> None:
    board.require_board(sim)
    program = harness.compile_c(CALLS_WHAT_IS_NEW)
    numbers = [0xC0004EE0 | size << 16 for size in range(40)]
    arguments = [word for number in numbers for word in ("/dev/nvmap", f"{number:x}", "1")]
    recording = harness.record([program, *arguments], launcher=board.launcher(sim, "r35", "--newer"), status=0)
    odd = board.odd(recording.trace)
    assert odd.pop("driver-ioctl-unknown") == 40
    assert list(odd) == [f"driver-ioctl-unknown.nvmap.0x{number:x}" for number in numbers[:32]]
