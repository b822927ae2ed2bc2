# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of real runs: the example on the simulated board, PyTorch on the CPU, and a fork with three processes."""

from typing import Any, Iterator

import pytest

from tests.harness import PYTHON, ROOT, Recording, compile_c, record, sim_build
from tests.torch.finished import finished
from tests.web.browser import need_page
from tests.web.pages import Page, page_of

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
def fixture_training(tmp_path_factory: Any) -> Page:
    """The example on the simulated board."""
    recording = record(
        [PYTHON, ROOT / "docs/examples/train.py", "--device=sim"], env={"JMSIM_LIB": str(sim_build())}, timeout=300
    )
    assert recording.returncode == 0, recording.stderr
    return page_of(tmp_path_factory.mktemp("training"), recording.trace)


@pytest.fixture(scope="session", name="forking")
def fixture_forking(tmp_path_factory: Any) -> Iterator[Page]:
    recording: Recording = record([compile_c(FORKING)])
    assert len(recording.traces) == 3
    yield page_of(tmp_path_factory.mktemp("forking"), *recording.traces)


@pytest.fixture(scope="session", name="pytorch")
def fixture_pytorch(tmp_path_factory: Any) -> Page:
    """A convolutional net, trained in several ways. Recorded once for all tests of PyTorch."""
    return page_of(tmp_path_factory.mktemp("pytorch"), finished("train.py").trace)


@pytest.fixture(params=["training", "pytorch"], name="real")
def fixture_real(request: Any) -> Page:
    """What holds for one must for the other."""
    page: Page = request.getfixturevalue(request.param)
    return page
