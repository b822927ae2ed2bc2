# SPDX-License-Identifier: GPL-2.0-or-later
"""What a trace tells of the software that it ran on, by the names that people use."""

from typing import Dict, Sequence

import pytest

from jmassif.model.run_info import JETPACKS, fact, facts, label, version_order
from tests.reporter.traces import Trace


def trace(manifest: Dict[str, str], loaded: Sequence[str] = ()) -> Trace:
    made = Trace()
    for key, value in manifest.items():
        made.manifest(key, value)
    for n, path in enumerate(loaded):
        soname, _, file = path.rpartition(" ")
        made.lines.append(f"L 0 {4096 * (n + 1):x} 4096 {made.string(soname)} {file}")
    return made


@pytest.mark.parametrize(
    "manifest, expected",
    [
        ({"l4t": "32.7.1"}, "4.6.1"),
        ({"l4t": "35.1.0"}, "5.0.2"),
        ({"l4t": "36.4.0"}, "6.1"),
        ({"l4t": "36.4.7"}, "6.2.1"),
        ({"l4t": "39.2.0"}, "7.2"),
        ({"l4t": "39.2.1"}, "7.2.1"),
        ({"l4t": "99.1.2"}, ""),
        ({"l4t": "99.1.2", "package.nvidia-jetpack": "9.1-b12"}, "9.1"),
        ({"package.nvidia-jetpack": "5.1.2-b104"}, "5.1.2"),
        ({}, ""),
    ],
)
def test_jetpack(manifest: Dict[str, str], expected: str) -> None:
    assert fact(trace(manifest).load(), "jetpack") == expected


def test_the_table_of_jetpacks_is_in_order() -> None:
    releases, names = list(JETPACKS), list(JETPACKS.values())
    assert releases == sorted(releases, key=version_order)
    assert names == sorted(names, key=version_order)


@pytest.mark.parametrize(
    "manifest, loaded, key, expected",
    [
        ({}, ["libcudart.so.10.2 /usr/local/cuda/lib64/libcudart.so.10.2.300"], "cuda", "10.2.300"),
        ({}, ["libcudart.so.11.0 /usr/local/cuda/lib64/libcudart.so.11.4.298"], "cuda", "11.4.298"),
        ({}, ["libcudart.so.11.0 /site-packages/nvidia/libcudart-9335f6a2.so.11.0"], "cuda", "11"),
        ({"package.cuda-cudart-11-4": "11.4.298-1"}, ["libcudart.so.11.0 /x/libcudart.so.11.0"], "cuda", "11.4.298"),
        ({"package.cuda-cudart-11-4": "11.4.298-1"}, ["libcudart.so.12 /x/libcudart.so.12"], "cuda", "12"),
        ({"package.cuda-cudart-10-2": "10.2.300-1"}, [], "cuda", "10.2.300"),
        ({}, ["libcudnn.so.8 /usr/lib/libcudnn.so.8.6.0", " /usr/lib/libcudnn_ops_infer.so.8.9.9"], "cudnn", "8.6.0"),
        ({"package.libcudnn8": "8.2.1.32-1+cuda10.2"}, [" /usr/lib/libcudnn.so.8"], "cudnn", "8.2.1.32"),
        ({}, ["libcublas.so.11 /usr/lib/libcublas.so.11.6.6.84"], "cublas", "11.6.6.84"),
        ({"package.libnvinfer8": "8.5.2-1+cuda11.4"}, [], "tensorrt", "8.5.2"),
        ({"pytorch": "1.10.0"}, [], "pytorch", "1.10.0"),
        ({"package.python3-torch": "1.13.1+dfsg-4"}, [], "pytorch", ""),
        ({}, [], "cuda", ""),
    ],
)
def test_versions(manifest: Dict[str, str], loaded: Sequence[str], key: str, expected: str) -> None:
    assert fact(trace(manifest, loaded).load(), key) == expected


def test_a_key_of_the_manifest_is_a_fact_too() -> None:
    profile = trace({"env.CUDA_MODULE_LOADING": "LAZY", "pid": "7", "mem-total-bytes": "4294967296"}).load()
    assert fact(profile, "env.CUDA_MODULE_LOADING") == "LAZY" and fact(profile, "pid") == "7"
    assert fact(profile, "no-such-key") == ""
    found = facts(profile)
    assert "pid" not in found and found["mem-total-bytes"] == "4.00 GiB"
    assert [label(key) for key in ("jetpack", "option.depth", "env.CUDA_X", "package.libc6", "other")] == [
        "JetPack",
        "--depth",
        "CUDA_X",
        "package libc6",
        "other",
    ]


def test_versions_have_an_order() -> None:
    versions = ["4.6", "4.6.1", "5.0 DP", "5.0.2", "5.1", "5.1.2", "10.2"]
    assert sorted(reversed(versions), key=version_order) == versions
