# SPDX-License-Identifier: GPL-2.0-or-later
"""Whichever way a program reaches CUDA, its memory is seen once, with its stack and owner."""

import re
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Set

import pytest

from jmassif.model.run import Profile
from tests import harness
from tests.harness import Recording
from tests.tool.cuda_ledger import Kinds, held_by, held_by_kind, last, objects, run_sim
from tests.tool.programs import functions, print_report

POOL_RESERVED = 32 << 20  # one chunk of the simulation's pool

# Functions that only cuGetProcAddress knows, in place of the exported ones.
TWINS = {"JMSIM_PROC_ADDRESS": "twin"}
ASKS_FOR_DRIVER = {"JMSIM_CUDART_PROC_ADDRESS": "1"}


class Way(NamedTuple):
    program: str
    arguments: List[str]
    env: Dict[str, str]
    caller: str  # the function of the program (or of its library) that allocates
    owner: str = "app"


WAYS = {
    "runtime linked into the program": Way("cuda_static", [], {}, "use_runtime"),
    "runtime linked into a library": Way("cuda_static_library", [], {}, "use_runtime", "lib"),
    "runtime by dlsym": Way("cuda_dlsym", ["runtime"], {}, "use_runtime"),
    "driver by dlsym": Way("cuda_dlsym", ["driver"], {}, "use_driver"),
    "driver by cuGetProcAddress": Way("cuda_dlsym", ["proc"], {}, "use_driver"),
    "driver by cuGetProcAddress_v2": Way("cuda_dlsym", ["proc_v2"], {}, "use_driver"),
    "twins by cuGetProcAddress": Way("cuda_dlsym", ["proc"], TWINS, "use_driver"),
    "twins by cuGetProcAddress_v2": Way("cuda_dlsym", ["proc_v2"], TWINS, "use_driver"),
    "runtime that asks cuGetProcAddress": Way("cuda_dlsym", ["runtime"], ASKS_FOR_DRIVER, "use_runtime"),
    "runtime that gets twins": Way("cuda_dlsym", ["runtime"], {**ASKS_FOR_DRIVER, **TWINS}, "use_runtime"),
    "static runtime that gets twins": Way("cuda_static", [], {**ASKS_FOR_DRIVER, **TWINS}, "use_runtime"),
}


def run_way(sim: Path, way: Way, *libraries: Path) -> Recording:
    path = ":".join(str(directory) for directory in [*libraries, sim])
    recording = run_sim(sim, way.program, *way.arguments, env={**way.env, "LD_LIBRARY_PATH": path})
    assert recording.returncode == 0, recording.stderr
    return recording


def expected(stdout: str) -> Kinds:
    live = {kind: (int(n_bytes), 1) for kind, n_bytes in re.findall(r"^expect (\w+) (\d+)$", stdout, re.MULTILINE)}
    assert live
    return live


def of_owner(profile: Profile, owner: str) -> Kinds:
    def kind_of(account: int) -> Optional[str]:
        _, kind, its_owner = profile.accounts[account]
        return kind if its_owner == owner and not kind.startswith("heap") else None

    return held_by(profile, last(profile), kind_of)


def ends_of_stacks(profile: Profile) -> Set[str]:
    """The outermost functions of all stacks that ever held memory."""
    return {functions(profile, profile.accounts[account].node)[-1] for account in used_accounts(profile)}


def used_accounts(profile: Profile) -> List[int]:
    return [account for account in profile.counts() if profile.accounts[account].node]


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_memory_is_seen_once_with_its_caller_and_owner(sim: Path, way: Way) -> None:
    recording = run_way(sim, way)
    profile = recording.profile
    live = expected(recording.stdout)
    assert of_owner(profile, way.owner) == live
    assert held_by_kind(profile, last(profile)) == {**live, "pool": (POOL_RESERVED, 1)}
    for account in last(profile):
        node, kind, owner = profile.accounts[account]
        if owner == way.owner and not kind.startswith("heap"):
            assert way.caller in functions(profile, node)
    assert ends_of_stacks(profile) == {"main"}
    # A block of 4096 bytes was freed before. Had a runtime call and the driver call inside it both counted, there were four.
    n_blocks = {account: counts.blocks for account, counts in profile.counts().items()}
    assert sum(n for account, n in n_blocks.items() if profile.accounts[account].kind == "device") == 2
    assert not profile.failures
    assert "cuda-free-of-unknown-pointer" not in profile.counters
    assert "cuda-block-ended-unseen" not in profile.counters


# ---- a driver without unwind tables ------------------------------------------------------------


def heap_by_owner(profile: Profile) -> Kinds:
    return held_by(
        profile,
        last(profile),
        lambda account: profile.accounts[account].owner if profile.accounts[account].kind == "heap" else None,
    )


@pytest.mark.parametrize("env", [{}, {**ASKS_FOR_DRIVER, **TWINS}], ids=["exported", "twins"])
def test_without_unwind_tables_owners_and_bytes_are_the_same(sim: Path, env: Dict[str, str]) -> None:
    whole = run_sim(sim, "cuda_mixed", "_exit", env=env).profile
    broken = run_sim(sim, "cuda_mixed", "_exit", env={**env, "LD_LIBRARY_PATH": f"{sim / 'nounwind'}:{sim}"}).profile
    assert "stack-completed-from-api-call" not in whole.counters
    assert broken.counters["stack-completed-from-api-call"] > 600
    for owner in set(heap_by_owner(whole)) | {"cache"}:
        assert (owner, of_owner(broken, owner)) == (owner, of_owner(whole, owner))
    assert heap_by_owner(broken) == heap_by_owner(whole)


def test_a_stack_that_breaks_in_the_driver_is_completed_down_to_main(sim: Path) -> None:
    env = {"LD_LIBRARY_PATH": f"{sim / 'nounwind'}:{sim}"}
    profile = run_sim(sim, "cuda_mixed", "_exit", env=env).profile
    assert ends_of_stacks(profile) == {"main"}
    in_driver = [
        functions(profile, profile.accounts[account].node)
        for account in used_accounts(profile)
        if objects(profile, profile.accounts[account].node)[0] == "libcuda.so.1"
    ]
    # The driver's own frame, the wrapper of the call that it is in, and from there on the caller's.
    shapes = {tuple(stack[1:2] + stack[-2:]) for stack in in_driver}
    assert ("cuInit", "load_model", "main") in shapes
    assert ("cuDevicePrimaryCtxRetain", "load_model", "main") in shapes
    assert ("cuStreamCreateWithPriority", "load_libraries", "main") in shapes
    assert all(stack.count("main") == 1 for stack in in_driver)


# ---- one memory or two -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "env, options, memory",
    [
        ({}, [], "unified"),
        ({"JMSIM_DISCRETE": "1"}, [], "discrete"),
        ({}, ["--memory=discrete"], "discrete"),
        ({"JMSIM_DISCRETE": "1"}, ["--memory=unified"], "unified"),
    ],
    ids=["integrated", "discrete", "integrated, told discrete", "discrete, told unified"],
)
@pytest.mark.parametrize("program", ["cuda_driver", "cuda_static"])
def test_the_device_says_whether_it_shares_the_hosts_memory(
    sim: Path, program: str, env: Dict[str, str], options: List[str], memory: str
) -> None:
    recording = run_sim(sim, program, env=env, options=options)
    assert recording.profile.manifest["memory"] == memory
    report = print_report(recording.trace, "--all").stdout
    assert f"Memory:      {memory}" in report


@pytest.mark.parametrize("env, answer", [({}, "yes"), ({"JMSIM_NO_VMM": "1"}, "no")])
def test_the_device_says_whether_it_has_virtual_memory_management(sim: Path, env: Dict[str, str], answer: str) -> None:
    for program in ("cuda_driver", "cuda_static"):
        assert run_sim(sim, program, env=env).profile.manifest["cuda-vmm"] == answer


FROM_CACHE = """
#include <stddef.h>
int cudaMallocAsync(void **, size_t, void *), cudaFreeAsync(void *, void *), cudaDeviceSynchronize(void);
int main(void)
{
    for (int i = 0; i < 20; i++) {
        void *block;
        if (cudaMallocAsync(&block, 20 << 20, NULL) || cudaFreeAsync(block, NULL))
            return 1;
    }
    return cudaDeviceSynchronize();
}
"""


def test_a_block_out_of_a_pools_cache_makes_no_peak(sim: Path) -> None:
    """Which pool it is of is known only after the call."""
    program = harness.compile_c(FROM_CACHE, f"-L{sim}", "-l:libcudart.so.11.0", f"-Wl,-rpath-link,{sim}")
    recording = harness.record([program], env={"LD_LIBRARY_PATH": str(sim)}, status=0)
    peak = recording.profile.peaks["device"]
    assert peak.by_kind["pool"] == POOL_RESERVED
