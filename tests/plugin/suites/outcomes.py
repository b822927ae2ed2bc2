# SPDX-License-Identifier: GPL-2.0-or-later
"""Every outcome that pytest knows: tests/plugin/test_plugin.py compares them with and without --jmassif."""

import os
import warnings
from pathlib import Path
from typing import Callable

import pytest


def test_passes(record_property: Callable[[str, object], None]) -> None:
    print("captured")
    record_property("artifact", Path("/a/path") if "PYTEST_XDIST_WORKER" not in os.environ else "no path")


@pytest.mark.limit_memory("1 GB")
def test_fails() -> None:
    print("shown")
    assert [1] == [2]


@pytest.mark.xfail(reason="known")
def test_fails_as_it_should() -> None:
    assert [1] == [2]


@pytest.mark.xfail
@pytest.mark.limit_memory("1 GB")
def test_passes_against_expectation() -> None:
    pass


@pytest.mark.skip(reason="not now")
def test_skips() -> None:
    pass


def test_skips_itself() -> None:
    pytest.skip("not here")


@pytest.fixture(name="broken")
def fixture_broken() -> None:
    raise ValueError("broken")


def test_has_no_fixture(broken: None) -> None:
    pass


def test_warns() -> None:
    warnings.warn("careful")


@pytest.mark.limit_leaks("100 kB")
@pytest.mark.parametrize("number", range(2))
def test_with_a_number(number: int) -> None:
    pass


def test_fails_too() -> None:
    os.stat("/no/such/file")
