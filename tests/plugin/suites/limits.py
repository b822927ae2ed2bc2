# SPDX-License-Identifier: GPL-2.0-or-later
"""Ten tests with limits, of which three break theirs: run by tests/plugin/test_plugin.py with a simulated GPU."""

import ctypes
from typing import Iterator, List

import pytest

MB = 1_000_000
KEPT: List[bytearray] = []


class Gpu:
    def __init__(self) -> None:
        self.runtime = ctypes.CDLL("libcudart.so.10.2")

    def take(self, n_bytes: int) -> ctypes.c_void_p:
        pointer = ctypes.c_void_p()
        assert self.runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(n_bytes)) == 0  # HERE: device
        return pointer

    def give_back(self, pointer: ctypes.c_void_p) -> None:
        assert self.runtime.cudaFree(pointer) == 0


@pytest.fixture(name="gpu", scope="session")
def fixture_gpu() -> Gpu:
    gpu = Gpu()
    gpu.give_back(gpu.take(64 * MB))  # the context, and a peak of the run that is none of a test
    return gpu


@pytest.fixture(name="thirty")
def fixture_thirty() -> Iterator[bytearray]:
    yield bytearray(30 * MB)


def make(n_bytes: int) -> bytearray:
    return bytearray(n_bytes)


@pytest.mark.limit_memory("device", "8 MB")
def test_device_within(gpu: Gpu) -> None:
    for _ in range(3):
        gpu.give_back(gpu.take(5 * MB))


@pytest.mark.limit_memory("device", "8 MB")
def test_device_beyond(gpu: Gpu) -> None:
    first = gpu.take(5 * MB)
    second = gpu.take(6 * MB)
    gpu.give_back(first)
    gpu.give_back(second)


@pytest.mark.limit_memory("device", "1 MB")
@pytest.mark.limit_memory("total", "30 MB")
def test_host_is_not_of_the_device(gpu: Gpu) -> None:
    assert len(make(20 * MB)) == 20 * MB


@pytest.mark.limit_memory("5 MB")
def test_host_within() -> None:
    assert len(make(3 * MB)) == 3 * MB
    assert len(make(3 * MB)) == 3 * MB


@pytest.mark.limit_memory("5 MB")
def test_host_beyond() -> None:
    small = make(1 * MB)
    large = bytes(7 * MB)  # HERE: host
    del small, large


@pytest.mark.limit_memory("host", "5 MB")
def test_what_a_fixture_holds_is_not_the_tests(thirty: bytearray) -> None:
    assert len(thirty) == 30 * MB


@pytest.mark.limit_leaks("1 MB")
def test_all_is_given_back() -> None:
    assert len(make(9 * MB)) == 9 * MB


@pytest.mark.limit_leaks("1 MB")
def test_leaks() -> None:
    KEPT.append(make(500_000))
    KEPT.append(bytearray(2 * MB))  # HERE: leak


@pytest.mark.limit_leaks("1 MB")
@pytest.mark.limit_memory("100 MB")
def test_cycles_are_no_leak() -> None:
    cycle: List[object] = [make(4 * MB)]
    cycle.append(cycle)


def test_without_limits() -> None:
    assert len(make(50 * MB)) == 50 * MB
