# SPDX-License-Identifier: GPL-2.0-or-later
"""Call trees in columns, for text and exports: from the outermost frame inwards (`top_down`), or from the allocation outwards
(`BottomUp`).

The sum of a node is always that of its children and of what ends in it, to the byte: places below a threshold are folded into one
child, and where some stacks end at a frame that others continue from, a child stands for those that end.
"""

from array import array
from functools import lru_cache
from collections import defaultdict
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, TypeVar, Union

from jmassif.attribution.names import STACK_ENDS, Names
from jmassif.attribution.packages import Folding, FrameRun
from jmassif.model.records import AccountType, LiveBytesByAccount, counted_blocks
from jmassif.model.run import Profile
from jmassif.units import count

ROOT = 0
Parents = Union[Sequence[int], Dict[int, int]]
_Made = TypeVar("_Made")


class CallTree:
    """Columns by node. A child's index is larger than its parent's."""

    def __init__(self, n_values: int = 1) -> None:
        self.labels: List[str] = []  # safe to show
        self._known: Dict[str, int] = {}
        self.parent = array("q", [-1])
        self.label = array("q", [-1])  # index in `labels`; -1: the root has none
        self.own = [array("Q", [0]) for _ in range(n_values)]  # of the stacks that end in the node
        self.places: Dict[int, int] = {}  # of a node that stands for folded siblings: how many

    def label_of(self, text: str) -> int:
        index = self._known.setdefault(text, len(self.labels))
        if index == len(self.labels):
            self.labels.append(text)
        return index

    def add(self, parent: int, label: int) -> int:
        self.parent.append(parent)
        self.label.append(label)
        for column in self.own:
            column.append(0)
        return len(self.parent) - 1

    def text(self, node: int) -> str:
        return self.labels[self.label[node]]

    def totals(self) -> "List[array[int]]":
        """Totals of each node: its own and all below it."""
        return [summed(self.parent, column) for column in self.own]

    def children(self) -> List[List[int]]:
        """Children of each node, the largest first and the one of folded siblings last."""
        totals = self.totals()[0]
        found: List[List[int]] = [[] for _ in self.parent]
        for node, parent in enumerate(self.parent[1:], 1):
            found[parent].append(node)
        for nodes in found:
            nodes.sort(key=lambda node: (node in self.places, -totals[node], self.text(node)))
        return found

    def path(self, node: int) -> List[int]:
        """Indices of labels, outermost first."""
        labels = []
        while node:
            labels.append(self.label[node])
            node = self.parent[node]
        labels.reverse()
        return labels

    def stacks(self, threshold: float) -> Iterator[Tuple[List[int], int]]:
        """(path, value) of everything that counts. Places with less than `threshold` percent of all are folded."""
        totals = self.totals()[0]
        folded: Dict[int, List[int]] = {}  # by parent
        is_shown = bytearray(len(totals))
        is_shown[ROOT] = 1
        for node in range(1, len(totals)):
            parent = self.parent[node]
            if is_shown[parent] and totals[node]:
                is_shown[node] = totals[node] * 100 >= threshold * totals[ROOT]
                if not is_shown[node]:
                    folded.setdefault(parent, []).append(totals[node])
        for node, shown in enumerate(is_shown):
            if shown and self.own[0][node]:
                yield self.path(node), self.own[0][node]
        for node, values in folded.items():
            label = self.label_of(f"({count(len(values), 'place')} below {threshold:g} %)")
            yield self.path(node) + [label], sum(values)


def summed(parent: Sequence[int], column: "array[int]") -> "array[int]":
    """The column with all below each node added."""
    found = column[:]
    for node in range(len(found) - 1, 0, -1):
        if found[node]:
            found[parent[node]] += found[node]
    return found


def from_outer(parents: Parents, known: Dict[int, _Made], node: int, make: Callable[[_Made, int], _Made]) -> _Made:
    """The value of a node, made from that of its parent; all that are made are kept in `known`, which has the root's."""
    inner = []
    while node not in known:
        inner.append(node)
        node = parents[node]
    made = known[node]
    for node in reversed(inner):
        made = known[node] = make(made, node)
    return made


# ---- from the outermost frame inwards ---------------------------------------------------------

# Account: the node above its stack; None: there is none.
Level = Optional[Callable[[int], str]]


def top_down(tree: CallTree, names: Names, values: Iterable[Tuple[int, int]], level: Level, is_folded: bool) -> None:
    """Adds (account, value) of a run. An outer part that stacks share is walked once."""
    profile = names.profile
    groups: Dict[str, List[Tuple[int, int]]] = defaultdict(list)
    for account, value in values:
        groups[level(account) if level else ""].append((account, value))

    def label_of(key: Union[int, FrameRun]) -> int:
        return tree.label_of(key.name() if isinstance(key, FrameRun) else names.frame(key))

    step_label = lru_cache(maxsize=None)(label_of)
    for text, members in sorted(groups.items()):
        root = tree.add(ROOT, tree.label_of(text)) if level else ROOT
        children: Dict[int, int] = {}
        # The node of the tree at which the stack of each node of the trie ends; 0: not known.
        places = array("q", bytes(8 * len(profile.node_parent)))
        for account, value in members:
            at, kind, owner = profile.accounts[account]
            steps = []
            while at and not places[at]:
                ((key, outer, _),) = names.folding.steps([at], is_folded)
                steps.append((at, step_label(key)))
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
            tree.own[0][place] += value


# ---- from the allocation outwards --------------------------------------------------------------


class Shape(NamedTuple):
    """How a tree is to be laid out."""

    levels: Sequence[Callable[[int], str]]  # account → label; the levels above the stacks
    frame: Callable[[int], str]  # frame id → label; frames of one label under one parent are one node
    folding: Folding
    threshold: float  # percent of the tree's total below which a node is folded
    is_folded: bool = False  # runs of internal frames are one node
    max_frames: int = 1 << 30  # deeper stacks are cut: the node is a leaf


# An account on its way down the tree: bytes, blocks, account, the node of its stack that comes next, and how many frames
# the last step passed.
_Item = Tuple[int, int, int, int, int]


class BottomUp(CallTree):
    """A tree of bytes and blocks. Only a node that is shown has its stacks walked any further."""

    def __init__(self, profile: Profile, composition: LiveBytesByAccount, shape: Shape, title: str) -> None:
        super().__init__(2)
        self.label[ROOT] = self.label_of(title)
        self._profile, self._shape = profile, shape
        self._types: Dict[int, Set[AccountType]] = defaultdict(set)  # by node
        items: List[_Item] = []
        for account, (n_bytes, blocks) in composition.items():
            node, kind, _ = profile.accounts[account]
            items.append((n_bytes, counted_blocks(kind, blocks), account, node, 0))
        total = sum(item[0] for item in items)
        # Not recursive: a stack may be deeper than Python's.
        pending: List[Tuple[int, List[_Item], int]] = [(ROOT, items, 0)]
        while pending:
            parent, items, level = pending.pop()
            children = self._split(items, level)
            if not children:
                self._end(parent, items)
            folded: List[_Item] = []
            n_folded = 0
            for label, members in children.items():
                n_bytes = sum(item[0] for item in members)
                if not shape.threshold or (total and n_bytes * 100 >= shape.threshold * total):
                    pending.append((self.add(parent, self.label_of(_text(label, members))), members, level + 1))
                else:
                    folded += members
                    n_folded += 1
            if n_folded:
                node = self.add(parent, self.label_of(""))
                self.places[node] = n_folded
                self._end(node, folded)
        for node in range(len(self.parent) - 1, 0, -1):
            self._types[self.parent[node]] |= self._types[node]

    def _end(self, node: int, items: List[_Item]) -> None:
        self.own[0][node] = sum(item[0] for item in items)
        self.own[1][node] = sum(item[1] for item in items)
        accounts = self._profile.accounts
        self._types[node] = {accounts.types[accounts.type_numbers[item[2]]] for item in items}

    def kind(self, node: int) -> Optional[str]:
        """The kind of all memory in a node, None where it is mixed."""
        kinds = {type_.kind for type_ in self._types[node]}
        return kinds.pop() if len(kinds) == 1 else None

    def owner(self, node: int) -> Optional[str]:
        owners = {type_.owner for type_ in self._types[node]}
        return owners.pop() if len(owners) == 1 else None

    def _split(self, items: List[_Item], level: int) -> Dict[Union[str, FrameRun], List[_Item]]:
        """The items of a node by the child they go to; empty if all stacks end in the node."""
        shape, n_levels = self._shape, len(self._shape.levels)
        children: Dict[Union[str, FrameRun], List[_Item]] = defaultdict(list)
        if level < n_levels:
            for item in items:
                children[shape.levels[level](item[2])].append(item)
        elif level < n_levels + shape.max_frames:
            ended, items = [item for item in items if not item[3]], [item for item in items if item[3]]
            found: Dict[Union[int, FrameRun], List[_Item]] = defaultdict(list)
            steps = shape.folding.steps([item[3] for item in items], shape.is_folded)
            for (n_bytes, blocks, account, _, _), (key, outer, n_frames) in zip(items, steps):
                found[key].append((n_bytes, blocks, account, outer, n_frames))
            for key, members in found.items():
                children[key if isinstance(key, FrameRun) else shape.frame(key)] += members
            if level == n_levels:  # no frame at all: kind and owner are all there is to say
                for item in ended:
                    _, kind, owner = self._profile.accounts[item[2]]
                    children[f"({kind} of {owner}, without a stack)"].append(item)
            elif children and ended:
                children[STACK_ENDS] += ended
        return children


def _text(label: Union[str, FrameRun], items: List[_Item]) -> str:
    if isinstance(label, str):
        return label
    numbers = [item[4] for item in items]
    return label.label(min(numbers), max(numbers))
