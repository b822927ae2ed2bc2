# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the page's sources in Node.js, without a browser and without the page being built."""

import pytest

from tests.web.browser import need_node


@pytest.fixture(scope="session", name="built", autouse=True)
def fixture_built() -> None:
    need_node()
