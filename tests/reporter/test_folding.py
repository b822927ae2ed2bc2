# SPDX-License-Identifier: GPL-2.0-or-later
"""Which frames are internal, whose they are, and which line memory is charged to."""

from typing import List, Set

import pytest

from jmassif.attribution.names import Names
from jmassif.attribution.packages import CORE, INSTALLED, OWN, FrameRun, Internal, classify, run_of
from jmassif.model.records import Frame
from tests.reporter.traces import Trace

TORCH = "py relu (/usr/local/lib/python3.8/site-packages/torch/nn/functional.py:1457)"
TQDM = "py Bar.next (/home/u/.local/lib/python3.8/site-packages/tqdm/std.py:70)"
IMPORT = "py _find_and_load (<frozen importlib._bootstrap>:1178)"
MAIN = "py main (/home/u/train.py:9)"
FORWARD = "py Net.forward (/home/u/net.py:20)"


@pytest.mark.parametrize(
    "path, internal",
    [
        ("/home/u/train.py", Internal(OWN, "")),
        ("train.py", Internal(OWN, "")),
        ("/home/u/torch/train.py", Internal(OWN, "")),
        ("/home/u/python3.8/train.py", Internal(OWN, "")),
        ("<stdin>", Internal(OWN, "")),
        ("<ipython-input-3-5bb2>", Internal(OWN, "")),
        ("", Internal(OWN, "")),
        ("/usr/lib/python3.6/os.py", Internal(CORE, "python")),
        ("/opt/conda/lib/python3.10/json/decoder.py", Internal(CORE, "python")),
        ("<frozen importlib._bootstrap>", Internal(CORE, "python")),
        ("/usr/lib/python3/dist-packages/torch/nn/functional.py", Internal(CORE, "torch")),
        ("/usr/lib/python3.6/dist-packages/torch/nn/functional.py", Internal(CORE, "torch")),
        ("/home/u/venv/lib/python3.8/site-packages/torchvision/models/vgg.py", Internal(CORE, "torch")),
        ("<eval_with_key>.3", Internal(CORE, "torch")),
        ("<__array_function__ internals>", Internal(CORE, "numpy")),
        ("/home/u/.local/lib/python3.6/site-packages/numpy/core/numeric.py", Internal(CORE, "numpy")),
        ("/usr/lib/python3/dist-packages/tqdm/std.py", Internal(INSTALLED, "tqdm")),
        ("/usr/lib/python3/dist-packages/six.py", Internal(INSTALLED, "six")),
        ("/usr/local/bin/yolo", Internal(INSTALLED, "yolo")),
        ("/home/u/bin/train.py", Internal(OWN, "")),
        ("<string>", Internal(INSTALLED, "python")),
        ("/home/\n/lib/python3.9/\n.py", Internal(CORE, "python")),
    ],
)
def test_python_frames_by_their_file(path: str, internal: Internal) -> None:
    assert classify(Frame("p", "f", "", path, 1, 0)) == internal


@pytest.mark.parametrize(
    "path, internal",
    [
        ("/usr/bin/python3.11", Internal(CORE, "python")),
        ("/usr/lib/aarch64-linux-gnu/libpython3.8.so.1.0", Internal(CORE, "python")),
        ("/usr/lib/python3.6/lib-dynload/_ctypes.cpython-36m-aarch64-linux-gnu.so", Internal(CORE, "python")),
        ("/usr/lib/libtorch_cpu.so", Internal(CORE, "torch")),
        ("/usr/lib/python3/dist-packages/torch/lib/libgomp-d22c30c5.so.1", Internal(CORE, "torch")),
        ("libc10.so.1.13.0", Internal(CORE, "torch")),
        ("/usr/lib/python3/dist-packages/numpy/core/_multiarray_umath.so", Internal(CORE, "numpy")),
        ("/usr/lib/python3/dist-packages/cv2.so", Internal(INSTALLED, "cv2")),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", Internal(CORE, "libc")),
        ("/lib64/ld-linux-x86-64.so.2", Internal(CORE, "libc")),
        ("/usr/lib/libcudnn.so.8", Internal(OWN, "")),
        ("/home/u/python/net.so", Internal(OWN, "")),
        ("", Internal(OWN, "")),
    ],
)
def test_native_frames_by_their_object(path: str, internal: Internal) -> None:
    assert classify(Frame("n", "f", path, "/usr/lib/python3.6/os.py", 1, 0)) == internal
    assert classify(Frame("i", "f", path, "", 1, 0)) == internal


@pytest.mark.parametrize(
    "packages, label",
    [
        ({"torch"}, "… 3 frames of torch"),
        ({"torch", "python", "libc"}, "… 3 frames of torch"),
        ({"python", "libc"}, "… 3 frames of python"),
        ({"libc"}, "… 3 frames of libc"),
        ({"torch", "numpy"}, "… 3 frames of numpy and torch"),
        ({"torch", "numpy", "tqdm", "python"}, "… 3 frames of numpy, torch and tqdm"),
    ],
)
def test_a_run_is_named_after_what_stands_highest_in_it(packages: Set[str], label: str) -> None:
    assert run_of(packages).label(3, 3) == label


def test_a_run_tells_how_many_frames_it_stands_for() -> None:
    assert FrameRun(("torch",)).label(1, 1) == "… 1 frame of torch"
    assert FrameRun(("torch",)).label(2, 1200) == "… 2 to 1,200 frames of torch"


@pytest.mark.parametrize(
    "stack, folded, unfolded",
    [
        (["c10::alloc_cpu (libc10.so)", TORCH, FORWARD, TORCH, MAIN], "net.py:20 (Net.forward)", TORCH),
        (["malloc (libc.so.6)", IMPORT, MAIN], "train.py:9 (main)", IMPORT),
        ([TQDM, MAIN], "train.py:9 (main)", TQDM),
        ([TORCH, TQDM, IMPORT, "py <module> (/usr/local/bin/train:3)"], "tqdm/std.py:70 (Bar.next)", TORCH),
        (["py __init__ (<string>:2)", MAIN], "train.py:9 (main)", "py __init__ (<string>:2)"),
        ([IMPORT, "py <module> (<string>:1)"], "<string>:1 (<module>)", IMPORT),
        ([IMPORT, "main (/usr/bin/python3)"], None, IMPORT),
        (["work (a.c:1)", "main (a.c:9)"], None, None),
        ([], None, None),
    ],
)
def test_memory_is_charged_to_the_innermost_line_of_the_users_own(stack: List[str], folded: str, unfolded: str) -> None:
    trace = Trace()
    accounts = [trace.account("heap", "app", ["f (x.so)"] * deeper + stack if stack else []) for deeper in (0, 2, 1)]
    unfolded_frame = trace.frame(unfolded) if unfolded else 0
    names = Names(trace.load())
    for account in accounts:
        frame = names.charged(account)
        assert (names.frame(frame) if frame else None) == folded
        assert names.charged(account, is_folded=False) == unfolded_frame
