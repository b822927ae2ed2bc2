# SPDX-License-Identifier: GPL-2.0-or-later
"""What frames, stacks and accounts are called."""

import pytest

from jmassif.attribution.blame import NO_SYMBOLS
from jmassif.attribution.names import Names, describe, short_names
from jmassif.model.records import Frame
from tests.reporter.traces import Trace


@pytest.mark.parametrize(
    "frame, text",
    [
        (Frame("n", "main", "/bin/a.out", "/src/a.c", 5, 0x4005D0), "main (a.c:5)"),
        (Frame("n", "main", "/bin/a.out", "/src/a.c", 0, 0x4005D0), "main (a.c)"),
        (Frame("i", "inl", "/bin/a.out", "a.h", 7, 0x4005D0), "inl (a.h:7)"),
        (Frame("n", "cudnnCreate", "/usr/lib/libcudnn.so.8", "", 0, 1), "cudnnCreate (libcudnn.so.8)"),
        (Frame("n", "", "/usr/lib/libfoo.so", "", 0, 0x4005D0), "0x4005d0 (libfoo.so)"),
        (Frame("n", "", "", "", 0, 0x4005D0), "0x4005d0 (no object file)"),
        (Frame("n", NO_SYMBOLS, "/usr/lib/libfoo.so", "", 0, 0), "libfoo.so (no debug symbols)"),
        (Frame("p", "<module>", "", "/home/u/train.py", 87, 0), "train.py:87 (<module>)"),
        (
            Frame("p", "forward", "", "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py", 114, 0),
            "torch/nn/modules/linear.py:114 (forward)",
        ),
        (Frame("p", "open", "", "/usr/lib/python3.6/os.py", 3, 0), "os.py:3 (open)"),
        (
            Frame("p", "run", "", "/usr/local/lib/python3.8/site-packages/numpy/core.py", 3, 0),
            "numpy/core.py:3 (run)",
        ),
        (Frame("n", "\x1b[2J", "", "a\n.c", 1, 0), "\\x1b[2J (a\\x0a.c:1)"),
    ],
)
def test_a_frame_is_described(frame: Frame, text: str) -> None:
    assert describe(frame) == text


def test_files_of_one_name_are_told_apart_by_as_many_directories_as_it_takes() -> None:
    names = {
        "/a/p/train.py": "train.py",
        "/a/p/models/utils.py": "models/utils.py",
        "/a/p/x/data/utils.py": "x/data/utils.py",
        "/a/p/y/data/utils.py": "y/data/utils.py",
        "/usr/lib/python3/dist-packages/torch/utils/data.py": "torch/utils/data.py",
        "/usr/lib/python3.8/os.py": "python3.8/os.py",
        "os.py": "os.py",
        "/once.py": "/once.py",
        "once.py": "once.py",
        "": "",
    }
    assert short_names(names) == names


def test_python_frames_are_described_by_these_names() -> None:
    trace = Trace()
    trace.account("heap", "app", ["py f (/a/one/x.py:3)", "py g (/a/two/x.py:3)", "py h (/a/y.py:3)"])
    profile = trace.load()
    assert [Names(profile).frame(frame) for frame in sorted(profile.frames)] == [
        "y.py:3 (h)",
        "two/x.py:3 (g)",
        "one/x.py:3 (f)",
    ]


def test_the_site_is_the_first_frame_that_is_not_the_allocator() -> None:
    trace = Trace()
    host = trace.account(
        "heap", "app", ["malloc (vgpreload_x.so)", "_Znwm (libstdc++.so.6)", "work (libcudart.so.10.2)"]
    )
    by_cuda = [
        trace.account(kind, "app", [f"{function} (libcudart.so.10.2)", "cuda (libcuda.so.1)", "net (libnet.so)"])
        for kind, function in (("device", "cudaMalloc"), ("pinned", "cudaHostAlloc"))
    ]
    names = Names(trace.load())
    assert (names.site(host), names.library(host)) == ("work (libcudart.so.10.2)", "libcudart.so.10.2")
    assert [(names.site(each), names.library(each)) for each in by_cuda] == [("net (libnet.so)", "libnet.so")] * 2


def test_a_native_site_tells_the_python_line_it_was_called_from() -> None:
    trace = Trace()
    one = trace.account(
        "heap", "app", ["f (lib.so)", "py x (<frozen x>:1)", "py step (/a/train.py:9)", "py <module> (/a/train.py:20)"]
    )
    two = trace.account("heap", "app", ["py step (/a/train.py:9)", "py <module> (/a/train.py:20)"])
    only_internal = trace.account("heap", "app", ["f (lib.so)", "py x (<frozen x>:1)"])
    names = Names(trace.load())
    assert names.site(one) == "f (lib.so), from train.py:9 (step)"
    assert names.site(two) == "train.py:9 (step)"
    assert names.site(only_internal) == "f (lib.so), from <frozen x>:1 (x)"


def test_what_a_python_frame_allocates_is_the_interpreters() -> None:
    trace = Trace()
    frames = ["malloc (libc.so.6)", "py f (/a/b.py:1)", "py g (/a/b.py:2)", "PyEval_EvalCode (/usr/bin/python3.11)"]
    whole, cut = trace.account("heap", "app", frames), trace.account("heap", "app", frames[:2])
    names = Names(trace.load())
    assert [names.library(account) for account in (whole, cut)] == ["python3.11", "python"]
    assert names.site(whole) == "b.py:1 (f)"


def test_a_stack_of_allocators_alone_is_its_own_site() -> None:
    trace = Trace()
    only = trace.account("heap", "lib", ["malloc (libc.so.6)", "fopen (libc.so.6)"])
    none = trace.account("heap", "lib")
    names = Names(trace.load())
    assert (names.site(only), names.library(only)) == ("malloc (libc.so.6)", "libc.so.6")
    assert (names.site(none), names.library(none)) == (None, "(memory without a stack)")


def test_functions_without_names_are_one_for_each_object_file() -> None:
    """In tables; call stacks keep their addresses, for tools that find names elsewhere."""
    trace = Trace()
    first, second = (trace.account("heap", "app", [f"{name} (/opt/app)", "main (a.c:1)"]) for name in "ab")
    other = trace.account("heap", "app", ["c (/opt/lib.so)", "main (a.c:1)"])
    engine = "torch::autograd::Engine::evaluate_function(Node*) (libtorch_cpu.so)"
    stack = ["c (/opt/lib.so)", "at::empty (libtorch_cpu.so)", engine, "run (libtorch_cpu.so)"]
    backward = trace.account("device", "tensor", stack)
    of_python = trace.account("device", "tensor", [*stack, "py f (/usr/lib/python3.8/abc.py:7)"])
    unnamed = {str(trace.string(name)) for name in "abc"}
    for at, words in [(at, line.split()) for at, line in enumerate(trace.lines) if line.startswith("f ")]:
        trace.lines[at] = " ".join([*words[:3], "0" if words[3] in unnamed else words[3], *words[4:]])
    profile = trace.load()
    names = Names(profile)
    assert names.site_id(first) == names.site_id(second) != names.site_id(other)
    assert (
        names.frame(names.site_id(first)) == "app (no debug symbols)"
        and names.line(other) == "lib.so (no debug symbols)"
    )
    assert [names.frame(frame) for frame in profile.stack(profile.accounts[first].node)][0].startswith("0x")
    # PyTorch's threads for backward() have no Python line, and this says more than its allocator's library.
    assert (names.line(backward), names.library(backward)) == (engine, "lib.so")
    assert names.site_id(of_python) == names.site_id(other)


def test_code_from_strings_is_named_by_the_line_that_ran_it() -> None:
    """python -c, exec and .pth files all have lines of "<string>"."""
    inner = ["malloc (libc.so.6)", "py <module> (<string>:1)"]
    trace = Trace()
    stacks = {
        "-c": inner,
        "exec": [*inner, "builtin_exec (python3)", "py run (/app/train.py:12)"],
        "twice": ["malloc (libc.so.6)", "py f (<string>:3)", *inner[1:], "py run (/app/train.py:12)"],
        "exec in -c": [*inner, "py <module> (<string>:2)"],
        "exec in exec": [*inner, "py <module> (<string>:2)", "py run (/app/train.py:12)"],
        ".pth": [
            *inner,
            "py addpackage (/usr/lib/python3.11/site.py:186)",
            "py main (/usr/lib/python3.11/site.py:600)",
        ],
    }
    accounts = {name: trace.account("heap", "app", stack) for name, stack in stacks.items()}
    profile = trace.load()
    names = Names(profile)

    def innermost(name: str) -> str:
        return next(
            names.frame(id_)
            for id_ in profile.stack(profile.accounts[accounts[name]].node)
            if profile.frame(id_).type == "p"
        )

    assert {name: innermost(name) for name in stacks} == {
        "-c": "<string>:1 (<module>)",
        "exec": "<string> of train.py:12:1 (<module>)",
        "twice": "<string> of train.py:12:3 (f)",
        "exec in -c": "<string> of <string>:2:1 (<module>)",
        "exec in exec": "<string> of <string> of train.py:12:2:1 (<module>)",
        ".pth": "<string> of site.py:186:1 (<module>)",
    }
