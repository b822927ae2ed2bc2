# SPDX-License-Identifier: GPL-2.0-or-later
"""A strict reader of massif files: what massif-visualizer insists on, and what ms_print and massif's own files imply.

Fixed order of lines, one `desc:`, separators of exactly one form, no comments and no blank lines; snapshots numbered from
0; times that do not fall; one peak at most, and no snapshot above it; a tree for mem_heap_B whose every node is the sum of
its children.
"""

import re
from typing import Iterator, List, NamedTuple, Tuple

SEPARATOR = "#-----------"


class Node(NamedTuple):
    bytes: int
    label: str
    children: Tuple["Node", ...]


class Snapshot(NamedTuple):
    time: int
    heap: int
    extra: int
    stacks: int
    tree: str
    root: Node

    @property
    def total(self) -> int:
        return self.heap + self.extra + self.stacks


class MassifFile(NamedTuple):
    desc: str
    cmd: str
    time_unit: str
    snapshots: List[Snapshot]

    @property
    def peak(self) -> int:
        """Its number; -1 if there is none."""
        return ([number for number, snapshot in enumerate(self.snapshots) if snapshot.tree == "peak"] or [-1])[0]


class GrammarError(Exception):
    pass


class _Lines:
    def __init__(self, content: str) -> None:
        if not content.endswith("\n"):
            raise GrammarError("the last line has no end")
        self._lines = content[:-1].split("\n")
        self._next = 0

    def __bool__(self) -> bool:
        return self._next < len(self._lines)

    def take(self, pattern: str) -> "re.Match[str]":
        line = self._lines[self._next] if self else None
        self._next += 1
        found = re.fullmatch(pattern, line) if line is not None else None
        if not found:
            raise GrammarError(f"line {self._next}: {line!r} where {pattern!r} is expected")
        return found


def _node(lines: _Lines, depth: int) -> Node:
    # ms_print would take a # for the beginning of a comment.
    found = lines.take(r" {%d}n(\d+): (\d+) ([^\s#][^#]*)" % depth)
    children = tuple(_node(lines, depth + 1) for _ in range(int(found[1])))
    if children and sum(child.bytes for child in children) != int(found[2]):
        raise GrammarError(f"{found[0]!r} is not the sum of its children")
    return Node(int(found[2]), found[3], children)


def _snapshots(lines: _Lines) -> Iterator[Snapshot]:
    number = 0
    while lines:
        lines.take(SEPARATOR)
        lines.take(f"snapshot={number}")
        lines.take(SEPARATOR)
        time = int(lines.take(r"time=(\d+)")[1])
        heap, extra, stacks = (
            int(lines.take(rf"{name}=(\d+)")[1]) for name in ("mem_heap_B", "mem_heap_extra_B", "mem_stacks_B")
        )
        tree = lines.take(r"heap_tree=(empty|detailed|peak)")[1]
        root = Node(heap, "", ()) if tree == "empty" else _node(lines, 0)
        if root.bytes != heap:
            raise GrammarError(f"snapshot {number}: the tree has {root.bytes} bytes, mem_heap_B is {heap}")
        yield Snapshot(time, heap, extra, stacks, tree, root)
        number += 1


def parse(content: str) -> MassifFile:
    """Raises GrammarError."""
    lines = _Lines(content)
    desc = lines.take(r"desc: ([^#]+)")[1]
    cmd = lines.take(r"cmd: ([^#]+)")[1]
    time_unit = lines.take(r"time_unit: (i|ms|B)")[1]
    snapshots = list(_snapshots(lines))
    if not snapshots:
        raise GrammarError("no snapshot")
    if any(later.time < earlier.time for earlier, later in zip(snapshots, snapshots[1:])):
        raise GrammarError("time goes back")
    peaks = [snapshot.total for snapshot in snapshots if snapshot.tree == "peak"]
    if len(peaks) > 1 or any(snapshot.total > peak for peak in peaks for snapshot in snapshots):
        raise GrammarError("the peak is not the one peak")
    return MassifFile(desc, cmd, time_unit, snapshots)


def every_node(root: Node) -> List[Node]:
    found = [root]
    for node in found:
        found.extend(node.children)
    return found
