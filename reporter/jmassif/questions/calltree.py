# SPDX-License-Identifier: GPL-2.0-or-later
"""The call tree from the outermost frame inwards, as flame graphs have it, in columns.

Frames of one label under one parent are one node. What is below the threshold is folded into one node beside its
siblings, so that sums stay exact. A stack's outer part is walked once, however many stacks share it.
"""

from array import array
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

from jmassif.model.profile import Profile
from jmassif.whose.folding import FrameRun
from jmassif.whose.names import Names

# Account: the node above its stack; None: there is none.
Level = Optional[Callable[[int], str]]


class Label(NamedTuple):
    text: str
    frame: int = 0  # the first that was called so; 0: it is no frame
    names: Optional[Names] = None  # of the run that it is of


class CallTree:
    """Node 0 is the root. A child's index is larger than its parent's."""

    def __init__(self) -> None:
        self.labels: List[Label] = []
        self.parent = array("q", [-1])
        self.label = array("q", [-1])  # index in `labels`
        self.own = array("Q", [0])  # of the stacks that end in the node
        self._known: Dict[str, int] = {}

    def label_of(self, text: str, frame: int = 0, names: Optional[Names] = None) -> int:
        index = self._known.get(text)
        if index is None:
            index = self._known[text] = len(self.labels)
            self.labels.append(Label(text, frame, names))
        return index

    def add(self, parent: int, label: int) -> int:
        self.parent.append(parent)
        self.label.append(label)
        self.own.append(0)
        return len(self.parent) - 1

    def totals(self) -> "array[int]":
        """By node: its own and all below it."""
        totals = self.own[:]
        for node in range(len(totals) - 1, 0, -1):
            totals[self.parent[node]] += totals[node]
        return totals

    def path(self, node: int) -> List[int]:
        """Indices of labels, outermost first."""
        labels = []
        while node:
            labels.append(self.label[node])
            node = self.parent[node]
        labels.reverse()
        return labels

    def stacks(self, threshold: float) -> Iterator[Tuple[List[int], int]]:
        """(path, value) of everything that counts. What has less than `threshold` percent of all is folded."""
        totals = self.totals()
        n_folded: Dict[int, int] = {}
        folded: Dict[int, int] = {}
        is_shown = bytearray(len(totals))
        is_shown[0] = 1
        for node in range(1, len(totals)):
            parent = self.parent[node]
            if not is_shown[parent] or not totals[node]:
                continue
            if totals[node] * 100 >= threshold * totals[0]:
                is_shown[node] = 1
            else:
                n_folded[parent] = n_folded.get(parent, 0) + 1
                folded[parent] = folded.get(parent, 0) + totals[node]
        for node, shown in enumerate(is_shown):
            if shown and self.own[node]:
                yield self.path(node), self.own[node]
        for node, value in folded.items():
            many = "1 place" if n_folded[node] == 1 else f"{n_folded[node]:,} places"
            yield self.path(node) + [self.label_of(f"({many} below {threshold:g} %)")], value


def build(profile: Profile, names: Names, values: Iterable[Tuple[int, int]], level: Level, is_folded: bool) -> CallTree:
    """The tree of `values`, which are (account, value)."""
    tree = CallTree()
    grow(tree, 0, names, values, level, is_folded)
    return tree


def grow(
    tree: CallTree, above: int, names: Names, values: Iterable[Tuple[int, int]], level: Level, is_folded: bool
) -> None:
    """Adds the tree of such values of a run below a node."""
    profile = names.profile
    groups: Dict[str, List[Tuple[int, int]]] = {}
    for account, value in values:
        groups.setdefault(level(account) if level else "", []).append((account, value))
    labels: Dict[Union[int, FrameRun], int] = {}
    parents, frames = profile.node_parent, profile.node_frame

    def label_of(key: Union[int, FrameRun]) -> int:
        if key not in labels:
            if isinstance(key, FrameRun):
                labels[key] = tree.label_of(key.name())
            else:
                labels[key] = tree.label_of(names.frame(key), key, names)
        return labels[key]

    def step(node: int) -> Tuple[Union[int, FrameRun], int]:
        if not is_folded:
            return frames[node], parents[node]
        ((key, outer, _),) = names.folding.steps([node], True)
        return key, outer

    for text, members in sorted(groups.items()):
        root = tree.add(above, tree.label_of(text)) if level else above
        children: Dict[int, int] = {}
        # Of a node of the trie: where in the tree its stack ends; 0: not known.
        places = array("q", bytes(8 * len(parents)))
        for account, value in members:
            at, kind, owner = profile.accounts[account]
            steps = []
            while at and not places[at]:
                key, outer = step(at)
                steps.append((at, label_of(key)))
                at = outer
            if not steps and not at:
                steps.append((0, tree.label_of(f"({kind} of {owner}, without a stack)")))
            place = places[at] if at else root
            for at, label in reversed(steps):
                edge = place << 32 | label
                place = children.get(edge, 0)
                if not place:
                    place = children[edge] = tree.add(edge >> 32, label)
                if at:
                    places[at] = place
            tree.own[place] += value
