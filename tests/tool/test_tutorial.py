# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of docs/tutorial.md, in order, on the simulated board: they must print what the document shows.

Blocks of "sh" are run. Each line of a block of "text" must be in the output of the commands before it; one that ends in "…", the
beginning of a line.
"""

import os
import re
import stat
import subprocess
from pathlib import Path
from typing import List, NamedTuple, Tuple

import pytest

from tests.harness import BUILD, PYTHON, ROOT, VALGRIND
from tests.tool import board

TUTORIAL = ROOT / "docs" / "tutorial.md"
LAUNCHER = ROOT / "packaging" / "jmassif.in"

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Sampled, or of the whole board and of the recorder too.
VARIES = re.compile(
    r"^ *(?:jtop, tegrastats|.*\(about\)|- libraries|htop|was \d)|short; exit|missing|would have fit|was free and|lowers the peak by|peak.total .* left"
)
# Rows of the ladder that name their largest parts.
PARTS = re.compile(r"^( *- (?:runtime|libraries)): .*?  ")
# What Python itself needs while a line runs: the host memory and the blocks of a row of --by=python-line.
INTERPRETER = re.compile(r"(?<=\.py:\d\d\d) +(?:-|[\d.]+ K?i?B)(?= )|(?<=iB) +\d+ +(?=[-+])")
BAR = re.compile(r" +[#.]+$")
TIME = re.compile(r"\b[\d,.]+ m?s\b")


class Block(NamedTuple):
    language: str
    text: str


def blocks() -> List[Block]:
    return [Block(*found) for found in re.findall(r"^```(\w+)\n(.*?)^```$", TUTORIAL.read_text("utf-8"), re.M | re.S)]


def words_and_numbers(line: str) -> Tuple[str, List[float]]:
    """A line without its bar, times, and spaces; with its numbers apart, unless they vary."""
    line = TIME.sub("", PARTS.sub(r"\1  ", BAR.sub("", INTERPRETER.sub("", line.rstrip()))))
    numbers = [] if VARIES.search(line) else [float(number.replace(",", "")) for number in NUMBER.findall(line)]
    # The remainder of the ladder is added where the kernel's figures came early.
    words = NUMBER.sub("N", re.sub(r"^ *[-+] .* \(about\)", "(about)", line))
    return " ".join(words.split()), numbers


def is_close(shown: float, printed: float) -> bool:
    """Other releases of Python and of the C library take a little more or less."""
    return abs(shown - printed) <= max(1.0 if shown.is_integer() else 0.0, 0.03 * shown)


def is_printed(line: str, output: str) -> bool:
    words, numbers = words_and_numbers(line.rstrip("…"))
    is_cut = line.endswith("…")
    found_in = map(words_and_numbers, output.splitlines())
    candidates = [found for found in found_in if found[0] == words or (is_cut and found[0].startswith(words))]
    return any(all(map(is_close, numbers, found)) for _, found in candidates)


def commands_on_path(directory: Path, sim: Path) -> None:
    """What ./bootstrap demo and make install leave behind, below a directory."""
    (directory / "build").mkdir()
    for link, target in (
        ("build/sim", sim),
        ("docs", ROOT / "docs"),
        ("reporter", ROOT / "reporter"),
        ("bin/python3", Path(PYTHON)),
        ("share/jmassif/python", ROOT / "reporter"),
    ):
        (directory / link).parent.mkdir(parents=True, exist_ok=True)
        (directory / link).symlink_to(target)
    text = LAUNCHER.read_text().replace("@valgrind@", VALGRIND).replace("@tools@", str(BUILD / ".in_place"))
    launcher = directory / "bin" / "jmassif"
    launcher.write_text(text)
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)


def outputs(directory: Path, scripts: List[str]) -> List[str]:
    """What each script prints, all run by one shell."""
    separator = "end of the block\n"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "".join(f"{script}printf '{separator}'\n" for script in scripts)],
        cwd=str(directory),
        env={**os.environ, "PATH": f"{directory}/bin:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
    )
    text = done.stdout.decode("utf-8", "backslashreplace")
    assert done.returncode == 0, text[-4000:]
    return text.split(separator)


def test_the_commands_print_what_the_document_shows(sim: Path, tmp_path: Path) -> None:
    board.require_board(sim)
    commands_on_path(tmp_path, sim)
    printed = iter(outputs(tmp_path, [block.text for block in blocks() if block.language == "sh"]))
    so_far = ""
    missing = []
    for block in blocks():
        if block.language == "sh":
            so_far += next(printed)
        else:
            missing += [line for line in block.text.splitlines() if line and not is_printed(line, so_far)]
    (tmp_path / "printed.txt").write_text(so_far, "utf-8")
    assert not missing, f"not in {tmp_path}/printed.txt:\n" + "\n".join(missing)


def test_figures_in_sentences_are_those_that_commands_print() -> None:
    sentences = re.sub(r"^```\w+\n.*?^```$", "", TUTORIAL.read_text("utf-8"), flags=re.M | re.S)
    shown = {number for block in blocks() if block.language == "text" for number in NUMBER.findall(block.text)}
    figures = re.findall(rf"({NUMBER.pattern}) (?:[GMK]i?B|kB|%)", sentences)
    assert figures and [figure for figure in figures if figure not in shown] == []


@pytest.mark.parametrize(
    "printed, is_the_same",
    [
        ("  - allocator cache: reserved, unused                  1,494   ####", True),
        ("  - allocator cache: reserved, unused                  1,500   ######", True),
        ("  - allocator cache: reserved, unused                  1,600   ######", False),
        ("  - allocator cache: reserved                          1,494   ######", False),
    ],
)
def test_lines_are_compared_by_words_and_figures(printed: str, is_the_same: bool) -> None:
    assert is_printed("  - allocator cache: reserved, unused    1,494  #####", f"other\n{printed}\n") == is_the_same
