# SPDX-License-Identifier: GPL-2.0-or-later
"""jmassif top: in a terminal, and without one."""

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

from tests.live.test_following import SMALL, pieces
from tests.reporter.commands import assert_one_line_error, command, jmassif, program

# A busy machine takes its time.
_PATIENCE_SECONDS = 60


class Terminal:
    """tmux with one window, in which `jmassif top` runs."""

    def __init__(self, directory: Path, *arguments: str, term: str = "") -> None:
        self._tmux = ["tmux", "-f", "/dev/null", "-S", str(directory / "tmux.socket")]
        top = map(shlex.quote, command("top"))
        words = " ".join([f"TERM={term}"] * bool(term) + [*top, *arguments])
        self._do("new-session", "-d", "-x", "80", "-y", "24", f"{words}; echo status $?; sleep 1000")

    def _do(self, *words: str) -> str:
        return subprocess.run([*self._tmux, *words], stdout=subprocess.PIPE, check=True).stdout.decode()

    def keys(self, *names: str) -> None:
        self._do("send-keys", *names)

    def resize(self, width: int, height: int) -> None:
        self._do("resize-window", "-x", str(width), "-y", str(height))

    def lines(self) -> List[str]:
        return self._do("capture-pane", "-p").rstrip("\n").split("\n")

    def wait(self, is_so: Callable[[str], bool]) -> str:
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            shown = "\n".join(self.lines())
            if is_so(shown):
                return shown
            assert time.monotonic() < end, shown
            time.sleep(0.1)

    def close(self) -> None:
        self._do("kill-server")


@pytest.fixture(name="terminal")
def fixture_terminal(tmp_path: Path) -> Iterator[Any]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    opened: List[Terminal] = []

    def open_terminal(*arguments: str, term: str = "") -> Terminal:
        opened.append(Terminal(tmp_path, *arguments, term=term))
        return opened[-1]

    yield open_terminal
    for each in opened:
        each.close()


@pytest.fixture(name="path")
def fixture_path(tmp_path: Path) -> Path:
    path = tmp_path / "jmassif.out.1"
    path.write_bytes(SMALL)
    return path


def test_a_growing_trace_in_a_terminal(tmp_path: Path, terminal: Any) -> None:
    path = tmp_path / "jmassif.out.1"
    parts = pieces(SMALL)
    path.write_bytes(b"".join(parts[:5]))
    screen = terminal(str(path))
    first = screen.wait(lambda text: "LINE" in text and "q quit" in text)
    assert "memory  [" in first and "LINE" in first
    with path.open("ab") as file:
        file.write(b"".join(parts[5:]))
    last = screen.wait(lambda text: "exit status 0" in text)
    assert last != first
    screen.keys("s")
    screen.wait(lambda text: "LINE, by growth" in text)
    screen.keys("p")
    screen.wait(lambda text: "PAUSED" in text)
    screen.resize(50, 12)
    screen.wait(lambda text: "LADDER" in text and max(map(len, text.split("\n"))) <= 50 and "+10 s" not in text)
    screen.keys("q")
    assert "status 0" in screen.wait(lambda text: "status" in text and "LADDER" not in text)


def test_a_terminal_that_goes_away_without_a_signal_ends_it(path: Path) -> None:
    """It is not the controlling terminal, so nobody is sent a SIGHUP."""
    master, slave = os.openpty()
    words = [*command("top"), str(path)]
    environment = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=-1, start_new_session=True, env=environment)
    os.close(slave)
    shown = b""
    while b"LADDER" not in shown:
        shown += os.read(master, 1 << 16)
    os.close(master)
    try:
        assert process.communicate(timeout=_PATIENCE_SECONDS)[1] == b"" and process.returncode == 0
    finally:
        process.kill()
        process.wait()


def test_an_interrupt_leaves_the_terminal_as_it_was(path: Path, terminal: Any) -> None:
    screen = terminal(str(path))
    screen.wait(lambda text: "LADDER" in text)
    screen.keys("C-c")
    assert screen.wait(lambda text: "status" in text and "LADDER" not in text).strip().startswith("status 0")


@pytest.mark.parametrize("term", ["dumb", "no-such-terminal"])
def test_a_terminal_that_cannot_be_drawn_on_is_one_line(path: Path, terminal: Any, term: str) -> None:
    screen = terminal(str(path), term=term)
    shown = screen.wait(lambda text: "status" in text)
    assert shown.replace("\n", "").startswith("jmassif top: ") and "--once" in shown and "status 2" in shown


def test_without_a_terminal_it_is_one_line(path: Path) -> None:
    assert_one_line_error("jmassif top", program("top", path), "not a terminal", "--once")


@pytest.mark.parametrize("content", [b"", b"jmassif-trace 99\n", b"jmassif-trace 4\nnonsense\nk x 1\n", b"desc: x\n"])
def test_bad_input_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad"
    path.write_bytes(content)
    done = jmassif("top", "--once", path)
    if content:
        assert_one_line_error("jmassif top", done, str(path))
    else:
        assert done.status == 0 and "waiting for the trace" in done.out


@pytest.mark.parametrize("arguments", [["missing"], ["/"], [], ["--interval=0", "x"], ["--sort=x", "x"]])
def test_bad_arguments_are_one_line(arguments: List[str]) -> None:
    assert_one_line_error("jmassif top", jmassif("top", *arguments))


def test_one_frame_is_printed(path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "30")
    done = jmassif("top", "--once", path)
    lines = done.out.splitlines()
    assert done.status == 0 and not done.err and len(lines) <= 30 and max(map(len, lines)) <= 100
    assert "\x1b" not in done.out and "exit status 0" in lines[0] and any(line.startswith("LADDER") for line in lines)
