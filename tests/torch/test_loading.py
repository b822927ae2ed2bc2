# SPDX-License-Identifier: GPL-2.0-or-later
"""The peaks of loading and of running scripts/loads.py, against the bytes of its weights."""

import json

import pytest

from jmassif.analysis.loading import find_loading
from jmassif.attribution.names import Names
from tests.harness import PYTHON, need_module, recorded
from tests.tool.programs import print_report
from tests.torch.finished import SCRIPTS

MIB = 1 << 20
# The code of libraries that run first then, and one layer's temporary memory.
MORE = 16 * MIB


# Loading holds the weights twice; running them holds them once, and training also gradients and momenta.
@pytest.mark.parametrize("host", ["native", "valgrind"])
@pytest.mark.parametrize("what, held, words", [("run", 1, "running it takes"), ("train", 3, "training takes")])
def test_loading_and_the_time_since_differ_by_the_weights(what: str, held: int, words: str, host: str) -> None:
    need_module("torch")
    recording = recorded([PYTHON, SCRIPTS / "loads.py", what], timeout=600, host=host)
    weights = json.loads(recording.stdout)["weights"]
    found = find_loading(recording.profile, Names(recording.profile))
    assert found is not None and found.peak_at < found.until < found.steady_peak_at
    assert 0 <= found.steady_peak - (found.peak + (held - 2) * weights) < MORE
    assert max(found.peak, found.steady_peak) == recording.profile.peaks["total"].bytes
    text = " ".join(print_report(recording.trace).stdout.split())
    assert "Loading the model took " in text and (f"; {words} " in text)
