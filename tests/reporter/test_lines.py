# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of Python lines, functions and modules: exact sums, the order, and the source text."""

import os
import re
from pathlib import Path
from typing import Dict, List, Optional, Sequence

import pytest

from jmassif.analysis.lines import line_rows
from jmassif.analysis.moments import SelectionError, select
from jmassif.analysis.summary import build_report, moment_of
from jmassif.attribution.names import Names
from jmassif.attribution.views import LINE_VIEWS, charges
from jmassif.model.records import PEAKS, side_of
from jmassif.model.run import Profile
from jmassif.render.lines import write_lines
from jmassif.render.sources import Sources
from jmassif.render.view import View
from tests.reporter.traces import Trace, random_run

KIB = 1 << 10
TORCH = "py conv (/usr/lib/python3/dist-packages/torch/nn/functional.py:9)"
FROZEN = "py _load (<frozen importlib._bootstrap>:5)"

SCRIPT = """\
import torch
net = Net().to(device)
out = net(x)
leak.append(out)
"""


def training(home: str = "/home/u", **manifest: str) -> Trace:
    """Line 2 holds most at the peak, line 4 leaks, line 3 only churns."""
    trace = Trace(cwd=home, memory=manifest.pop("memory", "unified"), **manifest)
    script = f"{home}/train.py"

    def line(number: int, function: str = "<module>") -> List[str]:
        return ["alloc (libtorch.so)", TORCH, f"py {function} ({script}:{number})", "main (/usr/bin/python3)"]

    weights = trace.account("device", "tensor", line(2))
    copies = trace.account("heap", "tensor", line(2))
    churn = trace.account("heap", "tensor", line(3, "train"))
    leak = trace.account("heap", "tensor", line(4, "train"))
    start = trace.account("heap", "python", ["malloc (libc.so.6)", FROZEN, "main (/usr/bin/python3)"])
    native = trace.account("heap", "lib", ["init (/usr/lib/libgomp.so.1)"])
    overhead = trace.account("heap-overhead", "tensor")
    trace.snapshot(
        9,
        "exit",
        {
            weights: (0, 0, 600 * KIB, 2, 0),
            copies: (0, 0, 100 * KIB, 1, 0),
            churn: (0, 0, 5000 * KIB, 50, 0),
            leak: (200 * KIB, 20, 200 * KIB, 20, 0),
            start: (3 * KIB, 3, 3 * KIB, 3, 0),
            native: (2 * KIB, 1, 2 * KIB, 1, 0),
            overhead: (KIB, 20, KIB, 20, 0),
        },
        {which: (5, {weights: (600 * KIB, 2), copies: (100 * KIB, 1), leak: (50 * KIB, 5)}) for which in PEAKS},
    )
    return trace


def table(
    profile: Profile,
    by: str = "python-line",
    selector: str = "",
    threshold: float = 1,
    fold: str = "",
    source: Optional[Sequence[str]] = None,
) -> List[str]:
    """The table's lines, its head first."""
    view = View(selector or None, threshold, by, 70, fold or None, source)
    lines = write_lines(build_report(profile, moment_of(profile, Names(profile), view.selector)), view)
    return lines[lines.index("", 1) + 1 :]


def cells(line: str) -> List[str]:
    return re.split(r"  +", line.strip())


def test_what_was_held_what_grew_and_what_was_allocated_by_line() -> None:
    assert table(training().load()) == [
        "                                 self host self device     share     total    blocks    growth allocated",
        "train.py:2                         100 KiB     600 KiB    92.6 %   700 KiB         3         0   700 KiB",
        "train.py:4                        50.0 KiB           -     6.6 %  50.0 KiB         5  +200 KiB   200 KiB",
        "train.py:3                               -           -     0.0 %       0 B         0         0  4.88 MiB",
        "(heap-overhead, without a stack)  1.00 KiB           -     0.1 %  1.00 KiB         0 +1.00 KiB  1.00 KiB",
        "(no Python line)                  5.00 KiB           -     0.7 %  5.00 KiB         4 +5.00 KiB  5.00 KiB",
        "total                              156 KiB     600 KiB   100.0 %   756 KiB        12  +206 KiB  5.77 MiB",
    ]


def test_what_is_never_let_go_of_comes_first_when_asked_for() -> None:
    for selector in ("end", "last"):
        lines = table(training().load(), selector=selector)
        assert [cells(line)[0] for line in lines[1:4]] == ["train.py:4", "train.py:2", "train.py:3"]


def test_growth_is_up_to_the_chosen_moment_and_what_was_held_is_always_the_peaks() -> None:
    lines = table(training().load(), selector="peak")
    assert [cells(line)[1:] for line in lines[1:3]] == [
        ["100 KiB", "600 KiB", "92.6 %", "700 KiB", "3", "+700 KiB", "700 KiB"],
        ["50.0 KiB", "-", "6.6 %", "50.0 KiB", "5 +50.0 KiB", "200 KiB"],
    ]


def test_two_pools_are_never_added_up() -> None:
    lines = table(training(memory="discrete").load())
    heads = "self host share self device share host total device total blocks"
    heads += " host growth device growth host allocated device allocated"
    assert lines[0].split() == heads.split()
    assert cells(lines[1])[:4] == ["train.py:2", "100 KiB", "64.1 %", "600 KiB"]
    assert "700 KiB" not in lines[1]


def test_a_program_without_device_memory_has_one_column_for_what_is_held() -> None:
    trace = Trace()
    trace.snapshot(1, "exit", {trace.account("heap", "app", ["py f (/a/b.py:3)"]): (5, 1)})
    assert table(trace.load())[:2] == [
        "            self     share     total    blocks    growth allocated",
        "b.py:3       5 B   100.0 %       5 B         1      +5 B       5 B",
    ]


def test_functions_and_modules_have_the_same_sums() -> None:
    functions = table(training().load(), "python-function")
    assert [cells(line)[0] for line in functions[1:]] == [
        "<module> (train.py)",
        "train (train.py)",
        "(heap-overhead, without a stack)",
        "(no Python function)",
        "total",
    ]
    modules = table(training().load(), "module", threshold=0)
    assert [cells(line)[0] for line in modules[1:]] == [
        "train",
        "python3",
        "libgomp.so.1",
        "(heap-overhead, without a stack)",
        "total",
    ]
    assert functions[-1].split() == modules[-1].split() == table(training().load())[-1].split()


def test_modules_are_named_as_import_names_them() -> None:
    trace = Trace(cwd="/home/u/project/")
    paths = ["train.py", "/home/u/project/models/net/unet.py", "/home/u/project/data/__init__.py", "/opt/other/x.py"]
    paths += ["/usr/lib/python3/dist-packages/tqdm/std.py", "<string>"]
    accounts = [trace.account("heap", "app", [f"py f ({path}:1)"]) for path in paths]
    trace.snapshot(1, "exit", {account: (100 - account, 1) for account in accounts})
    found = [cells(line)[0] for line in table(trace.load(), "module")[1:-1]]
    assert found == ["train", "models.net.unet", "data", "x", "tqdm", "python"]


def test_without_folding_internal_lines_count_too() -> None:
    lines = table(training().load(), fold="none", threshold=2)
    assert [cells(line)[0] for line in lines[1:]] == [
        "torch/nn/functional.py:9",
        "train.py:2",
        "train.py:4",
        "1 more line below 2 %",
        "(heap-overhead, without a stack)",
        "(no Python line)",
        "total",
    ]


def test_small_lines_are_folded_unless_one_of_their_figures_is_large() -> None:
    trace = Trace()
    big, churn, small, tiny = (trace.account("heap", "app", [f"py f (/a/b.py:{line})"]) for line in (1, 2, 3, 4))
    held = {big: (9000, 1), churn: (1, 1, 90_000, 99, 0), small: (20, 1), tiny: (10, 2)}
    trace.snapshot(1, "exit", held, {"total": (1, {})})
    lines = table(trace.load())
    assert [cells(line)[0] for line in lines[1:]] == ["b.py:1", "b.py:2", "2 more lines below 1 %", "total"]
    assert cells(lines[3])[1:] == ["30 B", "0.3 %", "30 B", "3", "+30 B", "30 B"]


def test_a_total_is_what_a_line_and_all_that_it_called_hold_whatever_came_in_between() -> None:
    main, step, deep = (f"py f (/a/b.py:{line})" for line in (1, 2, 3))
    trace = Trace()
    accounts = {
        trace.account("heap", "app", ["malloc (libc.so.6)", deep, TORCH, step, main]): (100, 1),
        trace.account("heap", "app", ["malloc (libc.so.6)", step, main]): (20, 1),
        trace.account("heap", "app", ["malloc (libc.so.6)", step, deep, step, main]): (3, 1),  # a recursion counts once
        trace.account("heap", "app", [main]): (4000, 1),
        trace.account("heap", "app", ["start (libc.so.6)"]): (70000, 1),
    }
    trace.snapshot(1, "exit", accounts, {"total": (1, {})})
    lines = table(trace.load(), threshold=0)
    assert [cells(line)[:4:2] + [cells(line)[3]] for line in lines[1:4]] == [
        ["b.py:1", "5.4 %", "4.03 KiB"],
        ["b.py:3", "0.1 %", "103 B"],
        ["b.py:2", "0.0 %", "123 B"],
    ]
    assert [cells(line)[1] for line in lines[1:4]] == ["3.91 KiB", "100 B", "23 B"]


def test_files_of_one_name_have_rows_of_their_own() -> None:
    trace = Trace()
    one, two = (trace.account("heap", "app", [f"py f (/a/{where}/b.py:3)"]) for where in ("x", "y"))
    trace.snapshot(1, "exit", {one: (2, 1), two: (1, 1)})
    assert [cells(line)[0] for line in table(trace.load())[1:3]] == ["x/b.py:3", "y/b.py:3"]


@pytest.mark.parametrize("seed", range(6))
def test_the_rows_of_a_random_run_add_up(seed: int) -> None:
    view, is_folded = sorted(LINE_VIEWS)[seed % 3], seed < 3
    profile = random_run(seed).load()
    peak, last = select(profile, "peak").composition, select(profile, "last").composition
    rows = line_rows(profile, charges(profile, Names(profile), view, is_folded), peak, last)
    assert len({row.charged.label for row in rows}) == len(rows) > 2
    for side in ("host", "device"):
        for at, held in ((peak, [row.held for row in rows]), (last, [row.growth for row in rows])):
            assert sum(usage.on(side) for usage in held) == sum(
                n for a, (n, _) in at.items() if side_of(profile.accounts[a].kind) == side
            )
        accounts = [a for a, account in enumerate(profile.accounts) if side_of(account.kind) == side]
        assert sum(row.allocated.on(side) for row in rows) == sum(profile.lifetime().bytes[a] for a in accounts)


@pytest.mark.parametrize("selector", ["peak", "end", "last", "1", "17"])
def test_the_table_of_any_moment_is_shown(selector: str) -> None:
    for view in LINE_VIEWS:
        assert table(random_run(1).load(), view, selector)[-1].startswith("total ")
    with pytest.raises(SelectionError):
        table(random_run(1).load(), selector="99")


def test_a_trace_without_python_says_so() -> None:
    for trace in (Trace(), random_run(1)):
        profile = trace.load()
        report = build_report(profile, select(profile, "peak"))
        lines = write_lines(report, View(None, 1, "python-line", 70))
        assert ("no Python frames" in " ".join(lines)) == (not profile.frames)


# ---- source text ---------------------------------------------------------------------------------


def ran(home: Path, content: str = SCRIPT) -> Trace:
    """The training, of a script with this text, which is there."""
    (home / "train.py").write_text(content, encoding="utf-8")
    trace = training(str(home))
    trace.source(str(home / "train.py"), content.encode())
    return trace


def test_lines_are_shown_with_their_text(tmp_path: Path) -> None:
    profile = ran(tmp_path).load()
    lines = table(profile, source=())
    assert [cells(line)[-1] for line in lines[1:4]] == ["net = Net().to(device)", "leak.append(out)", "out = net(x)"]
    assert lines[-1].startswith("total ")
    assert not any("append" in line for line in table(profile))


def test_a_file_that_has_changed_is_left_out_unless_its_directory_is_named(tmp_path: Path) -> None:
    profile = ran(tmp_path).load()
    (tmp_path / "train.py").write_text(SCRIPT.replace("leak", "list"))
    text = " ".join(table(profile, source=()))
    assert "Changed since the run, and left out: train.py" in text and "--source=" in text and "append" not in text
    lines = table(profile, source=[str(tmp_path)])
    assert any("list.append(out)" in line for line in lines)
    assert lines[-1] == "Changed since the run, so the text may be another line's: train.py."


def test_a_file_that_a_trace_merely_names_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    assert not any("append" in line for line in table(training(str(tmp_path)).load(), source=()))
    trace = training(str(tmp_path))
    trace.source(str(tmp_path / "train.py"), b"a guess")
    assert not any("append" in line for line in table(trace.load(), source=()))


def test_sources_from_elsewhere_are_found_by_the_end_of_their_paths(tmp_path: Path) -> None:
    for path in ("project/net/train.py", "train.py", "secret.py"):
        (tmp_path / "checkout" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "checkout" / path).write_text(f"# {path}\n")
    (tmp_path / "outside.py").write_text("# outside\n")
    found = Sources(Trace().load(), [str(tmp_path / "checkout")])
    assert found.line("/home/board/project/net/train.py", 1) == "# project/net/train.py"
    assert found.line("/elsewhere/train.py", 1) == "# train.py"
    assert found.line("/home/../outside.py", 1) == "" and found.line("../outside.py", 1) == ""
    assert found.line("/home/board/other.py", 1) == ""


def source(path: object, number: int = 1, **manifest: str) -> str:
    """Of a file that has not changed since it ran, if it can be read at all."""
    trace = Trace(**manifest)
    try:
        place = os.path.join(manifest.get("cwd", ""), str(path))
        content = open(place, "rb").read(1 << 20) if os.path.isfile(place) else b""
    except (OSError, ValueError):
        content = b""
    trace.source(str(path), content)
    return Sources(trace.load()).line(str(path), number)


def test_a_relative_path_is_below_the_working_directory_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    assert source("train.py", 1, cwd=str(tmp_path)) == "import torch"
    assert source("train.py") == "" and source("train.py", cwd=".") == ""


def test_lines_are_counted_as_python_counts_them(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"# coding: latin-1\r\nx = '\xe9\x0c\x85'\r\ny = 2\n")
    assert source(tmp_path / "a.py", 3) == "y = 2"
    assert source(tmp_path / "a.py", 2) == "x = 'é\\x0c\\x85'"
    assert [source(tmp_path / "a.py", number) for number in (0, 4, 2**63)] == ["", "", ""]


def test_long_and_evil_text_is_cut_and_escaped(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = '" + "y" * 500 + "'\n\x1b[2J\u202e = 1\n")
    assert len(source(tmp_path / "a.py")) == 60 and source(tmp_path / "a.py").endswith("…")
    assert source(tmp_path / "a.py", 2) == "\\x1b[2J\\u202e = 1"


def test_what_is_no_readable_source_file_is_passed_over(tmp_path: Path) -> None:
    os.mkfifo(str(tmp_path / "fifo.py"))
    (tmp_path / "binary.py").write_bytes(bytes(range(128, 256)))
    (tmp_path / "null.py").symlink_to("/dev/zero")
    (tmp_path / "huge.py").touch()
    os.truncate(str(tmp_path / "huge.py"), 1 << 30)
    (tmp_path / "cookie.py").write_text("# coding: no-such-thing\n")
    names: Dict[str, str] = {name: source(tmp_path / name) for name in ("fifo.py", "binary.py", "null.py", "huge.py")}
    assert set(names.values()) == {""}
    for path in (tmp_path, tmp_path / "cookie.py", tmp_path / "none.py", "/a\0b.py", "/\udcff", "<string>", ""):
        assert source(path, cwd="/") == ""
