# SPDX-License-Identifier: GPL-2.0-or-later
"""pytest --jmassif: the tests run below Valgrind, and a test that breaks its limits fails.

    @pytest.mark.limit_memory("device", "200 MB")     # also "host", "total"; "200 MB" alone is the host's
    @pytest.mark.limit_leaks("1 MB")

What pytest loads is this file alone, which imports nothing that pytest has not; without --jmassif it does nothing more. With it
this process shows what comes of the tests (testing/session.py), and a second one, below Valgrind, runs them (testing/child.py).
"""

import os
from typing import Any

import pytest

from jmassif.testing import CHANNEL

MARKERS = (
    "limit_memory([pool, ]size): with --jmassif, the test fails if it holds more than that beyond what was held at its "
    'begin; pool is "host" (the default), "device" or "total"',
    "limit_leaks(size): with --jmassif, the test fails if it leaves more than that behind",
)


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("jmassif", "memory of tests (jmassif)")
    group.addoption(
        "--jmassif", action="store_true", help="run the tests below Valgrind's tool jmassif, and hold their limits"
    )
    group.addoption("--jmassif-out-file", metavar="FILE", help="keep the trace of the run there")
    group.addoption(
        "--jmassif-options", metavar="OPTIONS", default="", help="further options of the recorder, in one word"
    )


@pytest.hookimpl(trylast=True)
def pytest_configure(config: Any) -> None:
    for text in MARKERS:
        config.addinivalue_line("markers", text)
    if not config.getoption("jmassif") or config.getoption("collectonly"):
        return
    if os.environ.get(CHANNEL):
        from jmassif.testing.child import Child

        config.pluginmanager.register(Child(config, os.environ.pop(CHANNEL)), "jmassif-child")
    else:
        from jmassif.testing.session import Session

        config.pluginmanager.register(Session(config), "jmassif-session")
