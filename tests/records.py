# SPDX-License-Identifier: GPL-2.0-or-later
"""The records of a trace for tests that read or change them one by one, without the reporter's reader."""

from pathlib import Path
from typing import Dict, Iterator, List, Tuple

# Records of many rows, and the numbers of a row. In those of nodes a negative number goes with the next one.
_WIDTHS = {"n": 1, "a": 2, "c": 6, "d": 3}


def _rows(line: str) -> Iterator[str]:
    letter, *words = line.split(" ")
    width, row = _WIDTHS[letter], []
    for word in words:
        row.append(word)
        if len(row) >= width and not (letter == "n" and word.startswith("-")):
            yield " ".join([letter, *row])
            row = []


def apart(trace: str) -> str:
    """The same trace with one row a line and without checksums, so that lines can be changed, added and left out."""
    lines: List[str] = []
    for line in trace.split("\n"):
        if line[:1] in _WIDTHS:
            lines += _rows(line)
        elif not line.startswith("#"):
            lines.append(line)
    return "\n".join(lines)


def apart_bytes(trace: bytes) -> bytes:
    return apart(trace.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def records(path: Path) -> Iterator[List[str]]:
    """Each record's words, one row at a time. An account is ["a", NODE, KIND, OWNER]."""
    types: Dict[str, Tuple[str, str]] = {}
    node = 0
    for line in apart(path.read_text("utf-8", "surrogateescape")).split("\n"):
        words = line.split(" ")
        if words[0] == "K":
            types[words[1]] = words[2], words[3]
        elif words[0] == "a":
            node += int(words[1])
            words = ["a", str(node), *types[words[2]]]
        yield words
