# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the page's sources in Node.js, without a browser."""

import pytest

from tests.web.browser import build_page, need_node


@pytest.fixture(scope="session", name="built", autouse=True)
def fixture_built() -> None:
    need_node()
    build_page()
