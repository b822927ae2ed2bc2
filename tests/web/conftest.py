# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of real runs: the example on the simulated board, PyTorch on the CPU, and a fork with three processes."""

from pathlib import Path
from typing import Any

import pytest

from tests.harness import compile_c, recorded, sim_build
from tests.tool.test_exhaustion import ran
from tests.torch.finished import finished
from tests.web.browser import need_page, write_page
from tests.web.pages import Page, Shown, kept_page, train

FORKING = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *hold(size_t n) { return memset(malloc(n), 1, n); }

int main(void)
{
    void *shared = hold(3000000);
    for (int i = 1; i <= 2; i++)
        if (fork() == 0) {
            void *own = hold(i * 1000000);
            usleep(50000);
            free(own);
            exit(0);
        }
    while (wait(NULL) > 0)
        ;
    free(shared);
    return 0;
}
"""


@pytest.fixture(scope="session", name="built", autouse=True)
def fixture_built() -> None:
    need_page()


@pytest.fixture(scope="session", name="training")
def fixture_training() -> Page:
    """The example on the simulated board."""
    return kept_page("training", train().traces)


@pytest.fixture(scope="session", name="forking")
def fixture_forking() -> Page:
    traces = recorded([compile_c(FORKING)]).traces
    assert len(traces) == 3
    return kept_page("forking", traces)


@pytest.fixture(scope="session", name="pytorch")
def fixture_pytorch() -> Page:
    """A convolutional net, trained in several ways. Recorded once for all tests of PyTorch."""
    return kept_page("pytorch", [finished("train.py").trace])


@pytest.fixture(scope="session", name="failed")
def fixture_failed(tmp_path_factory: Any) -> Shown:
    """Three holes between tensors, on the simulated board."""
    recording = ran("shared", sim_build()).recording
    return Shown(write_page(tmp_path_factory.mktemp("failed"), recording.trace), recording.profile)


@pytest.fixture(scope="session", params=["training", "pytorch"], name="real")
def fixture_real(request: Any) -> Page:
    """What holds for one must for the other."""
    page: Page = request.getfixturevalue(request.param)
    return page
