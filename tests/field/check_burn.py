# SPDX-License-Identifier: GPL-2.0-or-later
"""gpu-burn and nvbandwidth of Debian: what the ledger says against what they print.

`run` makes the root and starts this. The name keeps these tests out of `make check`.
"""

import re
from typing import List, Tuple

import pytest

from tests.field.inside import COMMITTED_KINDS, HOSTS, Ran, Recorded, alone, figure, needs, recorded

each = pytest.mark.parametrize("host", HOSTS)
MATRICES = 2  # that are multiplied
BURN = ("/usr/sbin/gpu-burn", "-stts", "1", "-m", "1100", "2")
# It asks nvidia-smi for temperatures, and kills its children, with what is in their buffers.
GIVEN = {
    "PATH": "/src/tests/field/scripts:/usr/bin",
    "LD_PRELOAD": "/usr/libexec/coreutils/libstdbuf.so",
    "_STDBUF_O": "L",
}
COPY = ("/usr/bin/nvbandwidth", "-t", "host_to_device_memcpy_ce")


def burn(host: str) -> Recorded:
    needs(BURN[0])
    return recorded(host, BURN, **GIVEN)


def settled(ran: Ran) -> Tuple[int, List[str]]:
    """Its output without progress, times, temperatures, and whether a child ends before it is killed."""
    lines = re.split(r"[\r\n]+", ran.out)
    kept = [line for line in lines if re.match(r"Initialized|Results|Tested|\tGPU|Burning", line)]
    return ran.status, sorted(set(kept))


@each
def test_gpu_burn_finds_the_gpu_as_it_does_alone(host: str) -> None:
    needs(BURN[0])
    without = settled(alone(BURN, **GIVEN))
    assert without[0] == 0 and "\tGPU 0: OK" in without[1] and len(without[1]) == 5
    assert settled(burn(host).ran) == without


@each
def test_its_results_and_matrices_are_its_device_memory(host: str) -> None:
    made = burn(host)
    each_bytes, n_results = map(
        int, figure(r"Results are (\d+) bytes each, thus performing (\d+) iterations", made.ran.out)
    )
    held = made.at_peak()
    # And a counter of faulty elements.
    assert held["device", "app"] == (n_results + MATRICES) * each_bytes + 4
    assert held["device", "cublas"] == (4096 + 64) << 10
    assert sum(n_bytes for (kind, _), n_bytes in held.items() if kind in COMMITTED_KINDS) == made.committed


@each
def test_nothing_that_gpu_burn_calls_is_left_out(host: str) -> None:
    assert burn(host).unknown == {}


@each
def test_nvbandwidth_fails_as_it_does_alone(host: str) -> None:
    """NVIDIA's runtime is linked into it, and asks the driver for tables that no header documents."""
    needs(COPY[0])
    without, made = alone(COPY), recorded(host, COPY)
    assert made.ran.out == without.out and made.ran.status == without.status != 0
    assert "cudaSetDevice(0) returned" in without.out + without.err
    assert made.unknown == {"cuGetExportTable": made.unknown["cuGetExportTable"]}
