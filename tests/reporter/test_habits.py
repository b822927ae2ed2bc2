# SPDX-License-Identifier: GPL-2.0-or-later
"""jm_print in a person's hands: on a terminal, with compressed traces, at the end of a pipe.

Whole reports in colour are compared with tests/reporter/golden/; JM_UPDATE_GOLDEN=1 writes those anew.
"""

import fcntl
import gzip
import io
import os
import pty
import re
import subprocess
import sys
import termios
import threading
import time
from array import array
from pathlib import Path
from types import GeneratorType
from typing import Any, Callable, Dict, IO, Iterator, List, Mapping, Optional, Sequence

import pytest

from jmassif.cli.report import FORMATS, writer
from jmassif.cli.terminal import coloured, while_working
from jmassif.render import layout as roles
from jmassif.render.layout import Line
from tests.reporter.commands import command
from tests.reporter.traces import ROOT, small_training_run

JM_PRINT = ROOT / "reporter" / "jm_print"
GOLDEN = ROOT / "tests" / "reporter" / "golden"


@pytest.fixture(name="trace")
def fixture_trace(tmp_path: Path) -> Path:
    return small_training_run().save(tmp_path)


def environment(more: Optional[Mapping[str, str]] = None) -> Dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "PAGER", "JMASSIF_PAGER", "LESS", "COLUMNS")}
    return {**kept, "TERM": "xterm", "PAGER": "cat", **(more or {})}


def piped(
    *arguments: object, stdin: Optional[bytes] = None, env: Optional[Mapping[str, str]] = None
) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [sys.executable, "-B", str(JM_PRINT)] + [str(argument) for argument in arguments],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(env),
        timeout=60,
    )


def wait_until_read(pipe: IO[bytes]) -> None:
    deadline = time.monotonic() + 60
    left = array("i", [1])
    while left[0] and time.monotonic() < deadline:
        fcntl.ioctl(pipe, termios.FIONREAD, left)
        time.sleep(0.02)


def on_terminal(
    *arguments: object,
    slowly: Optional[List[bytes]] = None,
    env: Optional[Mapping[str, str]] = None,
    program: Sequence[str] = (str(JM_PRINT),),
) -> str:
    """What appears on the terminal. `slowly` is fed to standard input, with a pause before each part but the first."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-B", *program] + [str(argument) for argument in arguments],
        stdin=subprocess.PIPE if slowly else slave,
        stdout=slave,
        stderr=slave,
        env=environment(env),
    )
    os.close(slave)
    for part in slowly or []:
        assert process.stdin
        process.stdin.write(part)
        process.stdin.flush()
        # However long it takes to start, or to be given the processor: a part goes out when the one before has been read.
        wait_until_read(process.stdin)
        time.sleep(1.2)
    if process.stdin:
        process.stdin.close()
    shown = b""
    while True:
        try:
            more_shown = os.read(master, 65536)
        except OSError:  # Linux' way to say that nobody writes any more
            break
        if not more_shown:
            break
        shown += more_shown
    os.close(master)
    process.wait(timeout=60)
    return shown.decode("utf-8").replace("\r\n", "\n")


def waiting(seconds: float, start: str = "jm_print") -> Dict[str, Any]:
    """For on_terminal(): the command as one that shows a sign of life after so long."""
    script = (
        f"import jmassif.cli.terminal as t; t._QUIET_SECONDS = {seconds}; import jmassif.cli.main as m; m.{start}()"
    )
    return {"program": ["-c", script], "env": {"PYTHONPATH": str(ROOT / "reporter")}}


def settled(shown: str) -> str:
    """What stays on the terminal: the sign of life comes, on a busy machine, also where little is read."""
    return re.sub(r"\r\x1b\[K(reading|making)[^\r]*", "", shown).replace("\r\x1b[K", "")


# ---- colours -------------------------------------------------------------------------------------


def test_text_is_coloured_on_a_terminal_and_else_the_same(trace: Path) -> None:
    shown = settled(on_terminal(trace, env={"COLUMNS": "100"}))
    assert "\x1b[1m--- From the program" in shown
    assert re.sub(r"\x1b\[\d+m", "", shown) == piped(trace).stdout.decode()


@pytest.mark.parametrize(
    "arguments, more",
    [([], {"NO_COLOR": "1"}), (["--color=never"], {}), ([], {"TERM": "dumb"}), (["--format=massif"], {})],
)
def test_colours_can_be_done_without(trace: Path, arguments: List[str], more: Dict[str, str]) -> None:
    assert "\x1b" not in settled(on_terminal(trace, *arguments, env=more))


def test_colours_go_into_pipes_and_files_on_request_only(trace: Path, tmp_path: Path) -> None:
    assert b"\x1b" not in piped(trace).stdout
    assert b"\x1b[36m" in piped(trace, "--color=always", env={"NO_COLOR": "1"}).stdout
    on_terminal(trace, "-o", tmp_path / "report")
    assert b"\x1b" not in (tmp_path / "report").read_bytes()


def cut_off_and_of_another_process(trace: Path) -> Path:
    """The same run under another pid, in a trace that ends in the middle of a line."""
    path = trace.with_name("jmassif.out.4712")
    path.write_bytes(trace.read_bytes().replace(b"m pid 4711\n", b"m pid 4712\n")[:-4])
    return path


@pytest.mark.parametrize(
    "name, arguments, n_traces",
    [
        ("coloured-job", ["--each"], 2),
        ("coloured-by-line", ["--by=python-line"], 1),
        ("coloured-by-owner", ["--by=owner", "--fold=internal"], 1),
        ("coloured-segments", ["--segments"], 1),
    ],
)
def test_the_whole_report_in_colour(
    name: str, arguments: List[str], n_traces: int, trace: Path, monkeypatch: "pytest.MonkeyPatch"
) -> None:
    monkeypatch.chdir(trace.parent)
    traces = [trace.name, cut_off_and_of_another_process(trace).name][:n_traces]
    shown = piped("--color=always", *arguments, *traces).stdout
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("JM_UPDATE_GOLDEN"):
        golden.write_bytes(shown)
    assert shown == golden.read_bytes()


def test_both_pools_and_lines_of_python_have_colours_of_their_own() -> None:
    bars = [(" 1.0 MiB ^  ", ""), ("::::", roles.HOST), ("@@@", roles.DEVICE), ("'", "")]
    lines = [Line(*bars), Line(" " * 8, ("train.py:87 (<module>)", roles.PYTHON)), "  ordinary --- text ---"]
    assert list(coloured(lines)) == [
        " 1.0 MiB ^  \x1b[36m::::\x1b[0m\x1b[35m@@@\x1b[0m'",
        "        \x1b[32mtrain.py:87 (<module>)\x1b[0m",
        "  ordinary --- text ---",
    ]


def test_what_only_looks_like_a_heading_or_a_sum_is_not_coloured() -> None:
    lines = [
        "--- a mark's text ---",
        "total (sums.py)    1.00 MiB",
        "Command:     rm",
        "  1.0 % 5 B",
        "        a.py:1 (f)",
    ]
    assert list(coloured(lines)) == lines


@pytest.mark.parametrize("role", roles.ROLES)
def test_each_role_has_a_look(role: str) -> None:
    line = Line("before ", ("it", role), Line(" after", ("!", roles.WARNING)))
    assert line == "before it after!" and line.parts[-1] == ("!", roles.WARNING)
    (shown,) = coloured([line])
    assert re.fullmatch(r"before \x1b\[\d+mit\x1b\[0m after\x1b\[31m!\x1b\[0m", shown)


# ---- pager and progress --------------------------------------------------------------------------


def test_the_report_is_paged_on_a_terminal_only_and_not_if_not_wanted(trace: Path) -> None:
    shouting = {"PAGER": "tr a-z A-Z"}
    assert "BY OWNER" in on_terminal(trace, env=shouting)
    assert "By owner" in on_terminal(trace, "--no-pager", env=shouting)
    assert b"By owner" in piped(trace, env=shouting).stdout


def test_the_pager_of_ones_own_comes_before_that_of_all_programs(trace: Path) -> None:
    own = {"JMASSIF_PAGER": "tr a-z A-Z", "PAGER": "false"}
    assert "BY OWNER" in on_terminal(trace, env=own)


def test_where_there_is_no_pager_and_none_was_asked_for_the_report_is_just_shown(trace: Path) -> None:
    assert "By owner" in on_terminal(trace, env={"PAGER": "no-such-pager"})


def test_a_pager_that_is_left_early_is_no_error(trace: Path) -> None:
    shown = settled(on_terminal(trace, "--color=never", env={"PAGER": "head -n 1"}))
    assert shown.startswith("Peak 233 MiB") and shown.count("\n") == 1


def test_a_long_read_shows_its_progress_on_a_terminal(trace: Path) -> None:
    content = trace.read_bytes()
    half = len(content) // 2
    # A pipe is read in the parts in which it is written.
    shown = on_terminal("-", "--color=never", slowly=[content[:half], content[half:-1], content[-1:]])
    assert "\r\x1b[Kreading standard input " in shown
    assert shown.index("reading standard input") < shown.index("train.py")
    assert re.search(r"reading standard input [\d.]+ (B|KiB)\r\x1b\[K", shown)


def test_a_short_read_shows_none(trace: Path) -> None:
    assert "reading" not in on_terminal(trace, **waiting(3600.0))


class Screen(io.StringIO):
    """A terminal that notes when something is written."""

    def __init__(self) -> None:
        super().__init__()
        self.is_written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.is_written.set()
        return super().write(text)


@pytest.mark.parametrize("is_shown", [True, False])
def test_what_takes_long_to_make_says_so_until_it_is_there(is_shown: bool, monkeypatch: "pytest.MonkeyPatch") -> None:
    screen = Screen()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen)

    def slow() -> Iterator[str]:
        assert screen.is_written.wait(60), "nothing was said"
        yield from ("first", "second")

    seen = []
    for line in while_working(slow(), "the page", is_shown):
        seen.append((line, screen.getvalue().endswith("\r\x1b[K")))
    assert seen == [("first", is_shown), ("second", is_shown)]
    assert re.match(r"\r\x1b\[Kmaking the page", screen.getvalue()) and screen.getvalue().endswith("\r\x1b[K")


def test_what_fails_takes_its_sign_of_life_away(monkeypatch: "pytest.MonkeyPatch") -> None:
    screen = Screen()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen)

    def failing() -> Iterator[str]:
        screen.is_written.wait(60)
        raise ValueError
        yield ""

    with pytest.raises(ValueError):
        list(while_working(failing(), "the report", True))
    assert "making the report" in screen.getvalue() and screen.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_is_made_before_the_sign_of_life_is_there(name: str) -> None:
    nothing: Any = None  # whoever looks at it fails
    assert isinstance(writer(name)(nothing, nothing), GeneratorType)
    several = writer(name, True)
    assert several is None or isinstance(several(nothing, nothing, nothing), GeneratorType)


def test_without_a_terminal_nothing_is_said(monkeypatch: "pytest.MonkeyPatch") -> None:
    monkeypatch.setattr("jmassif.cli.terminal._QUIET_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    def slow() -> Iterator[str]:
        time.sleep(0.3)
        yield ""

    assert list(while_working(slow(), "the page", False)) == [""]
    assert getattr(sys.stderr, "getvalue")() == ""


@pytest.mark.parametrize(
    "options", [[], ["--all"], ["--format=json", "-o", "{}/json"], ["--format=massif", "-o", "{}/massif"]]
)
def test_every_report_has_a_sign_of_life_that_leaves_no_trace(options: List[str], trace: Path, tmp_path: Path) -> None:
    words = [word.format(tmp_path) for word in options]
    shown = on_terminal(trace, *words, "--color=never", **waiting(0.0))
    assert re.search(r"\r\x1b\[Kmaking the report", shown)
    assert settled(shown) == settled(on_terminal(trace, *words, "--color=never"))


@pytest.mark.parametrize(
    "words, work", [(["check", "--max=peak.total=1TiB"], "checking"), (["diff", "{}"], "comparing")]
)
def test_work_between_reading_and_writing_has_a_sign_of_life_too(words: List[str], work: str, trace: Path) -> None:
    shown = on_terminal(*(word.format(trace) for word in words), trace, **waiting(0.0, "run"))
    assert f"\r\x1b[K{work} {trace}"[:60] in shown


# ---- inputs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_inputs_may_be_compressed_and_come_by_standard_input(
    trace: Path, tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    expected = piped(trace).stdout
    packed = tmp_path / "packed"
    packed.write_bytes(compress(trace.read_bytes()))
    assert piped(packed).stdout == expected.replace(str(trace).encode(), str(packed).encode())
    # Without a name there is nothing to run next.
    of_stream = re.sub(rb"\n\nMore: .*\nPage: .*\n", b"\n", expected)
    assert piped("-", stdin=packed.read_bytes()).stdout == of_stream


@pytest.mark.parametrize("damage", ["cut off", "damaged"])
def test_damaged_compressed_data_are_one_line(tmp_path: Path, trace: Path, damage: str) -> None:
    content = bytearray(gzip.compress(trace.read_bytes()))
    if damage == "cut off":
        del content[len(content) // 2 :]
    else:
        content[len(content) // 2 : len(content) // 2 + 40] = bytes(40)
    (tmp_path / "packed").write_bytes(content)
    done = piped(tmp_path / "packed")
    error = done.stderr.decode()
    assert done.returncode == 2 and error.count("\n") == 1
    assert error.startswith(f"jm_print: {tmp_path}/packed: ")
    assert "compressed data are" in error or re.search(r"line \d+: ", error)


def test_a_trace_compressed_with_zstd_says_how_to_unpack_it(tmp_path: Path) -> None:
    (tmp_path / "packed").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    assert b"compressed with zstd, not a jmassif trace: unpack it with unzstd" in piped(tmp_path / "packed").stderr


def test_errors_name_the_file_and_the_line(trace: Path, tmp_path: Path) -> None:
    lines = trace.read_bytes().split(b"\n")
    lines[9] = b"q 1 2 3"
    for name, content in (("plain", b"\n".join(lines)), ("packed", gzip.compress(b"\n".join(lines)))):
        (tmp_path / name).write_bytes(content)
        assert f"jm_print: {tmp_path}/{name}: line 10: ".encode() in piped(tmp_path / name).stderr
    assert b"jm_print: standard input: line 10: " in piped("-", stdin=b"\n".join(lines)).stderr


def test_a_directory_of_compressed_traces_is_compared_too(trace: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "one.gz").write_bytes(gzip.compress(trace.read_bytes()))
    (runs / "note.gz").write_bytes(gzip.compress(b"no trace"))
    done = subprocess.run(
        [*command("jm_diff"), str(trace), str(runs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
