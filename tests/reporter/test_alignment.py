# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of two releases that mean the same are the same, and others are not."""

import pytest

from jmassif.attribution.names import function, library, scope

LIBRARIES = {
    "libcudnn_ops_infer.so": ["libcudnn_ops_infer.so.8.6.0", "libcudnn_ops_infer.so.8", "libcudnn_ops_infer.so"],
    "libcudnn_ops_train.so": ["libcudnn_ops_train.so.8"],
    "libcudart.so": ["libcudart.so.10.2.300", "libcudart-9335f6a2.so.11.0", "libcudart-d0da41ae.so.11.0"],
    "libc.so": ["libc.so.6", "libc-2.27.so", "libc-2.31.so"],
    "libm.so": ["libm-2.31.so", "libm.so.6"],
    "libstdc++.so": ["libstdc++.so.6", "libstdc++.so.6.0.28"],
    "libc10.so": ["libc10.so"],
    "libc10_cuda.so": ["libc10_cuda.so"],
    "ld.so": ["ld-2.27.so", "ld-linux-aarch64.so.1", "ld-linux-x86-64.so.2"],
    "libpython.so": ["libpython3.6m.so.1.0", "libpython3.8.so.1.0", "libpython3.11.so"],
    "python": ["python3.6", "python3.8", "python3"],
    "_ctypes.so": ["_ctypes.cpython-36m-aarch64-linux-gnu.so", "_ctypes.cpython-311-x86_64-linux-gnu.so"],
    "_C.so": ["_C.cpython-38-aarch64-linux-gnu.so", "_C.abi3.so"],
    "libopenblasp-r0.so": ["libopenblasp-r0-f650aae0.3.3.so", "libopenblasp-r0-32ff4d91.3.13.so"],
    "libgomp.so": ["libgomp-d22c30c5.so.1.0.0", "libgomp.so.1"],
    "libnvrm_gpu.so": ["libnvrm_gpu.so"],
    "train": ["train"],
    "a.out": ["a.out"],
    "-9335f6a2.so": ["-9335f6a2.so"],
    "(no object file)": ["(no object file)"],
    ".so": [".so", ".so.1"],
    "": [""],
}


@pytest.mark.parametrize("expected", sorted(LIBRARIES))
def test_a_library_goes_by_its_name_without_versions(expected: str) -> None:
    assert {library(name) for name in LIBRARIES[expected]} == {expected}


@pytest.mark.parametrize(
    "name, expected",
    [
        ("cuCtxCreate_v4", "cuCtxCreate"),
        ("cuCtxCreate", "cuCtxCreate"),
        ("cuMemAllocAsync_ptsz", "cuMemAllocAsync"),
        ("cublasCreate_v2", "cublasCreate"),
        ("cudnnCreate", "cudnnCreate"),
        ("dlopen libcudnn.so.8", "dlopen libcudnn.so"),
        ("dlopen /opt/my dir/libx.so.1", "dlopen /opt/my dir/libx.so"),
        ("_v2", ""),
    ],
)
def test_a_call_goes_by_its_name_without_revisions(name: str, expected: str) -> None:
    assert scope(name) == (expected or name)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("grow.constprop.0", "grow"),
        ("grow.isra.0.cold", "grow"),
        ("memcpy@@GLIBC_2.17", "memcpy"),
        ("std::vector<int>::reserve(unsigned long)", "std::vector<int>::reserve(unsigned long)"),
        (".cold", ".cold"),
    ],
)
def test_a_function_goes_by_what_its_source_calls_it(name: str, expected: str) -> None:
    assert function(name) == expected


@pytest.mark.parametrize("part", [".so", ".so.1", ".part", ".constprop.0", "_v2", "-1", "-9335f6a2", ".cpython-3"])
def test_a_name_made_to_be_slow_is_left_alone(part: str) -> None:
    name = part * 20000 + " !"
    assert (library(name), function(name), scope(name)) == (name, name, name)
