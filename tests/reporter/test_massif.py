# SPDX-License-Identifier: GPL-2.0-or-later
"""The massif output: its grammar, and the programs that are to open it."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Callable, Dict, List, Tuple

import pytest

from jmassif.analysis.moments import SelectionError
from jmassif.export import massif
from jmassif.model.records import LISTED_KINDS
from jmassif.model.run import Profile
from jmassif.render.view import BY, FOLDS, View
from tests.reporter.massif_grammar import GrammarError, MassifFile, every_node, parse
from tests.reporter.test_formats import large_numbers, recursive_run, start_only
from tests.reporter.traces import Trace, random_run, small_training_run

PEAK_TREE = """\
n3: 244318208 (jmassif) all memory by kind, owner and stack
 n2: 136314880 device
  n1: 83886080 tensor
   n1: 83886080 0x400004: cudaMalloc (in /usr/lib/libcudart.so.10.2)
    n1: 83886080 0x400003: torch::empty (in /usr/lib/libtorch.so)
     n1: 83886080 train.py:87 (<module>)
      n0: 83886080 0x400001: main (in /usr/bin/python3)
  n1: 52428800 cache
   n1: 52428800 0x400005: c10::grow (in /usr/lib/libc10_cuda.so)
    n1: 52428800 0x400003: torch::empty (in /usr/lib/libtorch.so)
     n1: 52428800 train.py:87 (<module>)
      n0: 52428800 0x400001: main (in /usr/bin/python3)
 n1: 62914560 driver
  n1: 62914560 context
   n1: 62914560 0x400006: cuInit (in /usr/lib/libcuda.so.1)
    n1: 62914560 train.py:87 (<module>)
     n0: 62914560 0x400001: main (in /usr/bin/python3)
 n1: 45088768 heap
  n1: 41943040 cudnn
   n1: 41943040 0x400008: malloc (in vgpreload_jmassif-arm64-linux.so)
    n1: 41943040 0x400007: cudnnCreate (in libcudnn.so.8)
     n1: 41943040 train.py:87 (<module>)
      n0: 41943040 0x400001: main (in /usr/bin/python3)
  n0: 3145728 in 1 place, below massif's threshold (05.00%)
""".replace(
    " n1: 45088768 heap", " n2: 45088768 heap"
)


def output(profile: Profile, by: str = "stack", threshold: float = 1, selector: str = "", fold: str = "none") -> str:
    view = View(selector or None, threshold, by, 72, fold)
    return "".join(line + "\n" for line in massif.write(profile, view))


def parsed(
    profile: Profile, by: str = "stack", threshold: float = 1, selector: str = "", fold: str = "none"
) -> MassifFile:
    return parse(output(profile, by, threshold, selector, fold))


def odd_run() -> Trace:
    """Names that mean something to one reader or the other."""
    trace = Trace(command="python3 -c 'x = 1 # one\n'", time_unit="B")
    trace.manifest("option.depth", "30 # deep")
    frames = [
        "std::function<void (int)>::operator()(int) const::{lambda(char (*)(int))#1} (a b.c:5)",
        "operator\n<< (dir(x)/y)",
        "50%d %s ( (lib#1.so)",
        "\x1b[2J\u202e (evil.c:1)",
        "caf\udce9 (é.c:1)",
        "n3: 12 n0: 4 (x.c:1)",
    ]
    accounts = [trace.account("heap", "app", [frame, "main (a.c:1)"]) for frame in frames]
    trace.snapshot(5, "time", {account: (100 + account, 1) for account in accounts}, {"total": (5, {})})
    return trace


def python_run() -> Trace:
    trace = Trace(time_unit="ms", cwd="/home/u")
    relu = "py relu (/usr/lib/python3/dist-packages/torch/nn/functional.py:1457)"
    outer = ["py <module> (/home/u/train.py:99)", "Py_Main (/usr/bin/python3)"]
    tensor = trace.account(
        "heap", "tensor", ["c10::alloc_cpu (libc10.so)", relu, "py Net.f (/home/u/net.py:7)"] + outer
    )
    names = trace.account("heap", "python", ["py größe.<locals>.λ (/home/u/daten#1.py:3)"] + outer)
    trace.snapshot(5, "time", {tensor: (3000, 1), names: (1000, 9)}, {"total": (5, {})})
    return trace


RUNS: Dict[str, Callable[[], Trace]] = {
    "training": small_training_run,
    "random": lambda: random_run(3),
    "odd names": odd_run,
    "deep stack": recursive_run,
    "python": python_run,
    "large numbers": large_numbers,
    "start only": start_only,
    "nothing": Trace,
}


def test_the_peak_has_its_tree_by_kind_owner_and_stack() -> None:
    text = output(small_training_run().load(), threshold=5)
    assert PEAK_TREE in text
    file = parse(text)
    assert file.cmd == "python3 train.py --epochs 2" and file.time_unit == "ms"
    assert [snapshot.time for snapshot in file.snapshots] == [0, 250, 600, 1000]
    assert file.peak == 2


def test_overhead_and_stacks_are_massifs_other_sums() -> None:
    trace = Trace()
    heap, overhead, stack, mapped, imported = (
        trace.account(kind, "app") for kind in ("heap", "heap-overhead", "stack", "file", "imported")
    )
    trace.snapshot(
        1, "time", {heap: (1, 1), overhead: (20, 1), stack: (300, 1), mapped: (4000, 1), imported: (50000, 1)}
    )
    (snapshot,) = parsed(trace.load()).snapshots
    assert (snapshot.heap, snapshot.extra, snapshot.stacks) == (4001, 20, 300)
    assert {node.label for node in snapshot.root.children} == {"file", "in 1 place, below massif's threshold (01.00%)"}


@pytest.mark.parametrize("name", sorted(RUNS))
def test_any_run_keeps_the_grammar_and_its_sums(name: str) -> None:
    """Each run in each view, each view with each folding, at one threshold or the other."""
    profile = RUNS[name]().load()
    sums = {sum(n for kind, n in s.by_kind.items() if kind not in LISTED_KINDS) for s in profile.snapshots}
    sums |= {peak.host + peak.device for peak in profile.peaks.values()}
    for number, by in enumerate(BY, sorted(RUNS).index(name)):
        file = parsed(profile, by, threshold=30 * (number // 2 % 2), fold=FOLDS[number % len(FOLDS)])
        assert {snapshot.total for snapshot in file.snapshots} <= (sums or {0})
        assert max(snapshot.total for snapshot in file.snapshots) == max(sums or {0})
        assert (file.peak >= 0) == any(sums)


def test_a_peak_that_is_a_snapshot_is_not_told_twice() -> None:
    trace = Trace()
    heap = trace.account("heap", "app", ["main (a.c:1)"])
    trace.snapshot(5, "time", {heap: (100, 1)}, {"total": (5, {})})
    trace.snapshot(6, "time", {heap: (10, 1)})
    assert [(s.time, s.tree) for s in parsed(trace.load()).snapshots] == [(5, "peak"), (6, "empty")]


@pytest.mark.parametrize("n_allowed", [1, 2, 3, 7, 29])
def test_no_more_snapshots_than_allowed_and_always_the_peak(n_allowed: int) -> None:
    profile = random_run(5, options={"max-snapshots": str(n_allowed)}).load()
    file = parsed(profile)
    peak = profile.peaks["total"]
    assert len(file.snapshots) == n_allowed
    assert file.snapshots[file.peak].total == peak.host + peak.device
    if n_allowed >= 3:
        assert file.snapshots[0].time == 0 and file.snapshots[-1].time == profile.snapshots[-1].time


def test_every_tenth_snapshot_is_detailed() -> None:
    file = parsed(random_run(5).load())
    detailed = [number for number, snapshot in enumerate(file.snapshots) if snapshot.tree == "detailed"]
    assert detailed == [number for number in range(9, len(file.snapshots), 10) if number != file.peak]


def test_a_chosen_snapshot_is_the_only_detailed_one_besides_the_peak() -> None:
    profile = random_run(5, options={"max-snapshots": "5"}).load()
    file = parsed(profile, selector="12")
    (detailed,) = [snapshot for snapshot in file.snapshots if snapshot.tree == "detailed"]
    assert detailed.time == profile.snapshots[11].time
    with pytest.raises(SelectionError):
        output(profile, selector="99")


def test_names_reach_massif_visualizer_whole() -> None:
    """It takes for the function what stands between the address and the last parentheses."""
    labels = [node.label for node in every_node(parsed(odd_run().load()).snapshots[0].root)]
    functions = [re.fullmatch(r"0x[0-9A-F]+: (.*) \(([^()]*)\)", label) for label in labels]
    assert [found[1] for found in functions if found and found[1] != "main"] == [
        "n3: 12 n0: 4",
        "caf\\xe9",
        "\\x1b[2J\\u202e",
        "50%d %s (",
        "operator\\x0a<<",
        "std::function<void (int)>::operator()(int) const::{lambda(char (*)(int))$1}",
    ]


def test_python_lines_are_named_as_everywhere() -> None:
    def labels(by: str, fold: str) -> List[str]:
        return [node.label for node in every_node(parsed(python_run().load(), by, fold=fold).snapshots[0].root)]

    assert {"net.py:7 (Net.f)", "train.py:99 (<module>)", "daten$1.py:3 (größe.<locals>.λ)"} <= set(
        labels("stack", "none")
    )
    assert {"torch/nn/functional.py:1457 (relu)"} & set(labels("stack", "none"))
    assert {"… 2 frames of torch", "net.py:7 (Net.f)", "… 1 frame of python"} <= set(labels("stack", "internal"))
    assert {"net.py:7", "daten$1.py:3"} <= set(labels("python-line", "internal"))


def ms_print(file: Path) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(["ms_print", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)


@pytest.mark.parametrize("name", sorted(RUNS))
def test_ms_print_opens_it(name: str, tmp_path: Path) -> None:
    file = tmp_path / "massif.out"
    file.write_text(output(RUNS[name]().load()), encoding="utf-8")
    done = ms_print(file)
    assert (done.returncode, done.stderr) == (0, b"")
    n_snapshots = len(parse(file.read_text(encoding="utf-8")).snapshots)
    assert f"Number of snapshots: {n_snapshots}\n".encode() in done.stdout
    if name == "python":
        for line in ("net.py:7 (Net.f)", "train.py:99 (<module>)", "daten$1.py:3 (größe.<locals>.λ)"):
            assert f"{line}\n" in done.stdout.decode()


def shown_by_massif_visualizer(file: Path, directory: Path) -> str:
    """What the real program says about the file: it keeps running, so it is ended as soon as it has said it."""
    log = directory / "log"
    private = dict.fromkeys(("HOME", "XDG_RUNTIME_DIR", "TMPDIR"), str(directory))
    environment = dict(os.environ, LC_ALL="C.UTF-8", **private)
    command = ["xvfb-run", "-a", "massif-visualizer", str(file)]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=environment, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            if re.search(rb"peak cost|invalid line", log.read_bytes()):
                break
            time.sleep(0.1)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
    return log.read_text(encoding="utf-8", errors="replace")


@pytest.mark.skipif(
    not (shutil.which("massif-visualizer") and shutil.which("xvfb-run")), reason="massif-visualizer is not installed"
)
def test_massif_visualizer_opens_it_and_would_complain(tmp_path: Path) -> None:
    sound, broken = tmp_path / "sound", tmp_path / "broken"
    text = output(small_training_run().load())
    sound.write_text(text)
    broken.write_text(text.replace("snapshot=1\n#-----------", "snapshot=1\n#----------"))
    said = shown_by_massif_visualizer(sound, tmp_path)
    assert "snapshots: 4" in said and "peak: snapshot # 2 after 600" in said and "invalid" not in said
    assert "invalid line" in shown_by_massif_visualizer(broken, tmp_path)


BROKEN: List[Tuple[str, str]] = [
    ("desc: ", "description: "),
    ("desc: --tool=jmassif\n", "desc: --tool=jmassif\ndesc: more\n"),
    ("#-----------\nsnapshot=1", "#----------\nsnapshot=1"),
    ("snapshot=1", "snapshot=7"),
    ("time=600", "time=100"),
    ("\nmem_stacks_B=0", "\n\nmem_stacks_B=0"),
    ("244318208 (jmassif)", "244318207 (jmassif)"),
    ("n0: 83886080 0x400001: main", "n0: 83886081 0x400001: main"),
    ("  n1: 83886080 tensor", "   n1: 83886080 tensor"),
    ("tensor", "tensor # of rank 3"),
    ("time=250\nmem_heap_B=66060288", "time=250\nmem_heap_B=966060288"),
]


def test_the_grammar_used_here_would_notice() -> None:
    text = output(small_training_run().load())
    for old, new in BROKEN:
        assert old in text
        with pytest.raises(GrammarError):
            parse(text.replace(old, new, 1))
