# SPDX-License-Identifier: GPL-2.0-or-later
"""The call stacks of several runs in one trie, under names that mean the same in every run.

A stack of one run and that of another are the same place if their functions have the same names, one after the other,
without what changes from release to release (alignment.py). Lines are left out: they move with every edit.

Runs are added as they are read and keep three numbers for each place they hold memory at, so that a directory of traces
needs little more memory than the largest of them.
"""

from array import array
from typing import Dict, List, NamedTuple

from jmassif.model.kinds import counted_blocks, side_of
from jmassif.model.profile import Profile
from jmassif.model.records import Composition
from jmassif.questions.compare.breakdown import frame_name
from jmassif.whose import alignment
from jmassif.whose.names import Names


class Frame(NamedTuple):
    name: str  # safe to show
    is_python: bool
    package: str  # whose internal frame it is; "" for the user's own


class Place(NamedTuple):
    """Memory of one kind that one stack holds."""

    node: int  # innermost; 0: there is no stack
    kind: str
    owner: str
    library: str  # of the frame to blame


class HeldStacks(NamedTuple):
    """What a run held: a row a place."""

    place: "array[int]"  # index in Stacks.places
    bytes: "array[int]"
    blocks: "array[int]"

    @property
    def total(self) -> int:
        return sum(self.bytes)


class Stacks:
    """Node 0 is the root, and a child's index is larger than its parent's."""

    def __init__(self) -> None:
        self.parent = array("Q", [0])
        self.frame = array("Q", [0])  # index in `frames`; of the root without meaning
        self.frames: List[Frame] = []
        self.places: List[Place] = []
        self.group_of: Dict[str, str] = {}  # by owner
        self._nodes: Dict[int, int] = {}  # by parent and frame
        self._known_frames: Dict[Frame, int] = {}
        self._known_places: Dict[Place, int] = {}

    def _node(self, parent: int, frame: int) -> int:
        key = parent << 32 | frame
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = len(self.parent)
            self.parent.append(parent)
            self.frame.append(frame)
        return node

    def _frame(self, profile: Profile, names: Names, frame_id: int) -> int:
        is_python = profile.frame(frame_id).type == "p"
        package = alignment.library(names.folding.internal(frame_id).package)
        frame = Frame(frame_name(profile, names, frame_id), is_python, package)
        index = self._known_frames.setdefault(frame, len(self.frames))
        if index == len(self.frames):
            self.frames.append(frame)
        return index

    def add(self, profile: Profile, names: Names, composition: Composition) -> HeldStacks:
        """What a run held, but for memory of kinds that are only listed."""
        self.group_of.update(profile.group_of)
        frame_of: Dict[int, int] = {}
        node_of = {0: 0}  # by node of the profile's own trie

        def aligned(innermost: int) -> int:
            node, inner = innermost, []
            while node not in node_of:
                inner.append(node)
                node = profile.node_parent[node]
            found = node_of[node]
            for node in reversed(inner):
                frame_id = profile.node_frame[node]
                if frame_id not in frame_of:
                    frame_of[frame_id] = self._frame(profile, names, frame_id)
                found = node_of[node] = self._node(found, frame_of[frame_id])
            return found

        sums: Dict[int, List[int]] = {}
        for account, (n_bytes, blocks) in composition.items():
            node, kind, owner = profile.accounts[account]
            if not side_of(kind):
                continue
            place = Place(aligned(node), kind, owner, alignment.library(names.library(account)))
            index = self._known_places.setdefault(place, len(self.places))
            if index == len(self.places):
                self.places.append(place)
            held = sums.setdefault(index, [0, 0])
            held[0] += n_bytes
            held[1] += counted_blocks(kind, blocks)
        rows = list(sums.values())
        return HeldStacks(array("Q", sums), array("Q", (row[0] for row in rows)), array("Q", (row[1] for row in rows)))
