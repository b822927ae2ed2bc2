# SPDX-License-Identifier: GPL-2.0-or-later
"""llama.cpp's CUDA builds, as two Node.js modules have them (CUDA 12 in one object, CUDA 13 in several): jmassif's ledger
against the sizes that llama.cpp prints and counts, to the byte, while it generates tokens on the simulated board.

`run` makes the root and starts this. The name keeps these tests out of `make check`.
"""

import json
from typing import Dict, List, NamedTuple, Tuple

import pytest

from jmassif.model.records import DEVICE_KINDS
from tests.field.inside import COMMITTED_KINDS, HOSTS, ROOT, Recorded, alone, figure, needs, recorded
from tests.field.model import HEADS, KV_HEADS, LAYERS, WIDTH

CONTEXT = 512  # as the scripts have it
ALIGNMENT = 128  # of what ggml's CUDA buffers hold
GRANULARITY = 2 << 20  # of cuMemCreate


class Build(NamedTuple):
    name: str
    script: str
    module: str
    compute: str  # capability that its kernels are built for


BUILDS = (
    Build("cuda-12", "generate.js", "/opt/field/fugood/node-llama-linux-x64-cuda/index.node", "89"),
    Build(
        "cuda-13", "breakdown.js", "/opt/field/node-llama-cpp/linux-x64-cuda/bins/linux-x64-cuda/llama-addon.node", "89"
    ),
)
each = pytest.mark.parametrize("host", HOSTS)
each_build = pytest.mark.parametrize("build", BUILDS, ids=[build.name for build in BUILDS])


def command(build: Build) -> Tuple[str, ...]:
    needs(build.module)
    return ("node", f"/src/tests/field/{build.script}", build.module, "/opt/field/model.gguf")


def run(build: Build, host: str) -> Recorded:
    made = recorded(host, command(build), JMSIM_COMPUTE=build.compute)
    assert made.ran.status == 0, made.ran.err[-4000:]
    return made


def blocks(made: Recorded, kind: str, owner: str, function: str = "") -> List[int]:
    """Bytes by call stack, of stacks with the function."""
    profile = made.profile
    return [
        n_bytes
        for account, (n_bytes, _) in profile.peak_composition("device").items()
        if profile.accounts[account][1:] == (kind, owner)
        and any(function in profile.frame(frame).function for frame in profile.stack(profile.accounts[account].node))
    ]


def weights() -> int:
    """All tensors but the embeddings, which stay on the host, in the mapped file."""
    sizes: Dict[str, int] = json.loads((ROOT / "opt/field/model.json").read_text("utf-8"))
    return sum(size for name, size in sizes.items() if name != "token_embd.weight")


def printed(buffer: str, err: str) -> float:
    return float(figure(rf"{buffer} buffer size = +([\d.]+) MiB", err))


def compute_bytes(device: str, err: str) -> int:
    """The only multiple of the alignment that llama.cpp prints so, with four digits behind the point: 105 bytes."""
    text = figure(rf"{device} compute buffer size is +([\d.]+) MiB, matches", err)
    near = int(float(text) * (1 << 20)) // ALIGNMENT * ALIGNMENT
    found = [size for size in (near - ALIGNMENT, near, near + ALIGNMENT) if f"{size / (1 << 20):.4f}" == text]
    assert len(found) == 1, (text, found)
    return found[0]


@each_build
@each
def test_llama_generates_the_tokens_that_it_generates_alone(build: Build, host: str) -> None:
    without = alone(command(build), JMSIM_COMPUTE=build.compute)
    assert without.status == 0 and run(build, host).ran.out == without.out
    assert json.loads(without.out.splitlines()[-1]).get("predicted", 23) == 23  # the first comes with the prompt


@each_build
@each
def test_weights_and_kv_cache_are_what_llama_prints(build: Build, host: str) -> None:
    made = run(build, host)
    held = made.at_peak()
    assert held["device", "model"] == weights()
    kv = 2 * 2 * LAYERS * CONTEXT * (WIDTH // HEADS * KV_HEADS)
    assert held["device", "kv-cache"] == kv
    assert f"{weights() / (1 << 20):.2f}" == f"{printed('CUDA0 model', made.ran.err):.2f}"
    assert f"{kv / (1 << 20):.2f}" == f"{printed('CUDA0 KV', made.ran.err):.2f}"


@each_build
@each
def test_compute_buffers_are_what_llama_prints(build: Build, host: str) -> None:
    made = run(build, host)
    assert compute_bytes("CUDA0", made.ran.err) in blocks(made, "device", "compute")
    logits = 4 * 312  # of one token
    held = made.at_peak()
    assert held["pinned", "compute"] == compute_bytes("CUDA_Host", made.ran.err) + logits


@each
def test_all_are_the_bytes_that_llama_counts(host: str) -> None:
    made = run(BUILDS[1], host)
    counted = json.loads(made.ran.out.splitlines()[-1])
    held = made.at_peak()
    assert held["device", "model"] == counted["model"]["gpuVram"]
    assert (
        held["device", "kv-cache"] + max(blocks(made, "device", "compute", "sched_reserve"))
        == counted["context"]["gpuVram"]
    )


@each
def test_the_pool_of_virtual_memory_is_named(host: str) -> None:
    held = run(BUILDS[0], host).at_peak()
    assert held["vmm", "compute"] and held["vmm", "compute"] % GRANULARITY == 0


@each_build
@each
def test_graphs_are_named(build: Build, host: str) -> None:
    """Their first launch commits memory, after the peak of one build."""
    profile = run(build, host).profile
    found = {
        account[1:]
        for account in map(profile.accounts.__getitem__, range(1, len(profile.accounts)))
        if any(profile.frame(frame).function == "cuGraphLaunch" for frame in profile.stack(account.node))
    }
    assert found == {("driver", "module")}


@each
def test_host_memory_that_llama_registers_is_known(host: str) -> None:
    needs(BUILDS[0].module)
    program = ("python3", "/src/tests/field/register.py", BUILDS[0].module)
    made = recorded(host, program, JMSIM_COMPUTE=BUILDS[0].compute)
    assert made.ran.out == alone(program, JMSIM_COMPUTE=BUILDS[0].compute).out == "registered\n"
    profile = made.profile
    (copy,) = profile.copies.values()
    registering = profile.stack(profile.accounts[copy.pinned_by].node)
    assert copy.bytes == 8 << 20
    assert "ggml_backend_cuda_register_host_buffer" in {profile.frame(frame).function for frame in registering}


@each_build
@each
def test_the_ledger_is_what_the_boards_kernel_has_committed(build: Build, host: str) -> None:
    made = run(build, host)
    held = made.at_peak()
    assert sum(n_bytes for (kind, _), n_bytes in held.items() if kind in COMMITTED_KINDS) == made.committed


@each_build
@each
def test_device_memory_has_owners(build: Build, host: str) -> None:
    held = run(build, host).at_peak()
    on_device = {(kind, owner): n_bytes for (kind, owner), n_bytes in held.items() if kind in DEVICE_KINDS and n_bytes}
    assert not {owner for _, owner in on_device} & {"app", "lib", "unknown"}


@each_build
def test_nothing_that_llama_calls_is_left_out(build: Build) -> None:
    assert run(build, HOSTS[0]).unknown == {}
