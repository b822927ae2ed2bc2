# SPDX-License-Identifier: GPL-2.0-or-later
"""The call tree from the outermost frame inwards, as flame graphs have it, in columns.

Frames of one label under one parent are one node. What is below the threshold is folded into one node beside its
siblings, so that sums stay exact. A stack's outer part is walked once, however many stacks share it.
"""

from array import array
from collections import defaultdict
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from jmassif.attribution.names import STACK_ENDS, Names
from jmassif.attribution.packages import Folding, FrameRun
from jmassif.model.records import Composition, counted_blocks, side_of
from jmassif.model.run import Profile


# ---- tree ----
# Trees over a composition: the allocation site first, then its callers, as massif has them.
#
# A node's bytes are always the sum of its children's, to the byte: what is too small to be shown is folded into one child
# that says how many places it stands for, and where some stacks end at a frame that others continue from, a child stands
# for those that end. Trees are built by need, breadth by breadth: only a node that is shown has its stacks walked any
# further, so a tree over ten thousand stacks of sixty frames costs little more than its visible part.


class Node:
    __slots__ = ("label", "bytes", "blocks", "places", "kind", "owner", "children")

    def __init__(self, label: str) -> None:
        self.label = label
        self.bytes = 0
        self.blocks = 0
        self.places = 0  # > 0: stands for that many folded siblings, and has no label
        self.kind: Optional[str] = None  # the kind of all memory in here, None where it is mixed
        self.owner: Optional[str] = None  # likewise
        self.children: List["Node"] = []


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


def _is_shown(n_bytes: int, total: int, threshold: float) -> bool:
    return not threshold or bool(total and n_bytes * 100 >= threshold * total)


def _split(items: List[_Item], level: int, shape: Shape, profile: Profile) -> Dict[Union[str, FrameRun], List[_Item]]:
    """The items of a node by the child they go to; empty if all stacks end in the node."""
    children: Dict[Union[str, FrameRun], List[_Item]] = {}
    if level < len(shape.levels):
        label_of = shape.levels[level]
        for item in items:
            children.setdefault(label_of(item[2]), []).append(item)
        return children
    if level - len(shape.levels) >= shape.max_frames:
        return children
    ended = [item for item in items if not item[3]]
    if ended:
        items = [item for item in items if item[3]]
    found: Dict[Union[int, FrameRun], List[_Item]] = defaultdict(list)
    steps = shape.folding.steps([item[3] for item in items], shape.is_folded)
    for (n_bytes, blocks, account, _, _), (key, outer, n_frames) in zip(items, steps):
        found[key].append((n_bytes, blocks, account, outer, n_frames))
    for key, members in found.items():
        children.setdefault(key if isinstance(key, FrameRun) else shape.frame(key), []).extend(members)
    if level > len(shape.levels):
        if children and ended:
            children.setdefault(STACK_ENDS, []).extend(ended)
        return children
    # No frame at all. What kind of memory and whose it is is all there is to say.
    for item in ended:
        _, kind, owner = profile.accounts[item[2]]
        children.setdefault(f"({kind} of {owner}, without a stack)", []).append(item)
    return children


def _label(label: Union[str, FrameRun], items: List[_Item]) -> str:
    if isinstance(label, str):
        return label
    numbers = [item[4] for item in items]
    return label.label(min(numbers), max(numbers))


def _fill(node: Node, items: List[_Item], profile: Profile) -> None:
    node.bytes = sum(item[0] for item in items)
    node.blocks = sum(item[1] for item in items)
    kinds = {profile.accounts[item[2]].kind for item in items}
    owners = {profile.accounts[item[2]].owner for item in items}
    node.kind = kinds.pop() if len(kinds) == 1 else None
    node.owner = owners.pop() if len(owners) == 1 else None


def build_site_tree(profile: Profile, composition: Composition, shape: Shape, title: str) -> Node:
    """The tree of `composition`, whose root is called `title`. Children are sorted, the largest first."""
    root = Node(title)
    items: List[_Item] = []
    for account, (n_bytes, blocks) in composition.items():
        node, kind, _ = profile.accounts[account]
        items.append((n_bytes, counted_blocks(kind, blocks), account, node, 0))
    _fill(root, items, profile)
    # Not recursive: a stack may be deeper than Python's.
    pending: List[Tuple[Node, List[_Item], int]] = [(root, items, 0)]
    while pending:
        parent, items, level = pending.pop()
        folded = Node("")
        folded_items: List[_Item] = []
        for label, members in _split(items, level, shape, profile).items():
            if _is_shown(sum(item[0] for item in members), root.bytes, shape.threshold):
                child = Node(_label(label, members))
                _fill(child, members, profile)
                parent.children.append(child)
                pending.append((child, members, level + 1))
            else:
                folded.places += 1
                folded_items.extend(members)
        parent.children.sort(key=lambda child: (-child.bytes, child.label))
        if folded.places:
            _fill(folded, folded_items, profile)
            parent.children.append(folded)
    return root


# ---- branches ----
# The trie of stacks, branch by branch: what each holds at a moment with all that it called, to the last frame and block.
#
# A page has the branches that hold most; here is every one. Branches that are asked for are few and the trie is large, so what a
# moment's accounts hold is summed towards the root once, and a branch is then a look at its children.

ROOT = 0


class Amount(NamedTuple):
    host: int  # bytes
    device: int
    blocks: int

    @property
    def bytes(self) -> int:
        return self.host + self.device


class Branch(NamedTuple):
    node: int
    frame: int
    held: Amount  # with all that it called
    n_children: int  # that hold anything


class Block(NamedTuple):
    begin: int  # time
    address: int
    bytes: int
    account: int


class Held(NamedTuple):
    """Columns by node: what ends there, and with all below."""

    own: Tuple["array[int]", "array[int]", "array[int]"]
    all: Tuple["array[int]", "array[int]", "array[int]"]

    def amount(self, node: int) -> Amount:
        return Amount(*(column[node] for column in self.all))

    def own_amount(self, node: int) -> Amount:
        return Amount(*(column[node] for column in self.own))


class Branches:
    """Of a trie as it is when this is made."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        parents = profile.node_parent
        self.n_nodes = len(parents)
        # Children by their parents: where those of each begin, and one after the other.
        self._begin = array("I", bytes(4 * (self.n_nodes + 1)))
        for parent in parents[1:]:
            self._begin[parent + 1] += 1
        for node in range(1, self.n_nodes + 1):
            self._begin[node] += self._begin[node - 1]
        place = self._begin[:]
        self._children = array("I", bytes(4 * max(0, self.n_nodes - 1)))
        for node in range(1, self.n_nodes):
            self._children[place[parents[node]]] = node
            place[parents[node]] += 1

    def _inner_first(self) -> Iterator[int]:
        """All nodes but the root, each before its parent. As a rule that is the order of their ids, backwards."""
        parents = self._profile.node_parent
        if all(parent < node for node, parent in enumerate(parents[1 : self.n_nodes], 1)):
            return iter(range(self.n_nodes - 1, 0, -1))
        order, pending = [], [ROOT]
        while pending:
            node = pending.pop()
            order.append(node)
            pending.extend(self._below(node))
        return reversed(order[1:])

    def _below(self, node: int) -> "array[int]":
        return self._children[self._begin[node] : self._begin[node + 1]]

    def at(self, composition: Composition) -> Held:
        """What the accounts of a composition hold. Those that are in no sum are left out."""
        own = tuple(array("q", bytes(8 * self.n_nodes)) for _ in Amount._fields)
        for account, (n_bytes, blocks) in composition.items():
            node, kind, _ = self._profile.accounts[account]
            side = side_of(kind)
            if side and node < self.n_nodes:
                own[side == "device"][node] += n_bytes
                own[2][node] += counted_blocks(kind, blocks)
        sums = tuple(column[:] for column in own)
        parents = self._profile.node_parent
        for column in sums:
            for node in self._inner_first():
                if column[node]:
                    column[parents[node]] += column[node]
        return Held((own[0], own[1], own[2]), (sums[0], sums[1], sums[2]))

    def children(self, held: Held, node: int) -> List[Branch]:
        """Those that hold anything, the largest first. Raises IndexError for a node that is none."""
        if not 0 <= node < self.n_nodes:
            raise IndexError(node)
        found = []
        for child in self._below(node):
            amount = held.amount(child)
            if amount.bytes or amount.blocks:
                below = sum(1 for each in self._below(child) if any(held.amount(each)))
                found.append(Branch(child, self._profile.node_frame[child], amount, below))
        return sorted(found, key=lambda branch: (-branch.held.bytes, -branch.held.blocks, branch.node))

    def stack(self, node: int) -> List[int]:
        """The frames on the way to a node, outermost first."""
        return list(self._profile.stack(node))[::-1]

    def blocks(self, node: int, position: int, time: int) -> List[Block]:
        """The blocks of a branch that had records and lived after so many of these, or at that time; the largest first."""
        profile = self._profile
        inside = {ROOT: node == ROOT, node: True}

        def is_inside(at: int) -> bool:
            passed = []
            while at not in inside:
                passed.append(at)
                at = profile.node_parent[at]
            for each in passed:
                inside[each] = inside[at]
            return inside[at]

        live = {}
        rows, frees = profile.blocks, set(profile.frees)
        for row, (when, address, n_bytes, account) in enumerate(zip(rows.time, rows.address, rows.size, rows.account)):
            if row >= position or when > time:
                break
            if not is_inside(profile.accounts[account].node):
                continue
            if row not in frees:
                live[address, account] = Block(when, address, n_bytes, account)
            else:
                live.pop((address, account), None)
        return sorted(live.values(), key=lambda block: (-block.bytes, block.begin, block.address))


# ---- calltree ----

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


def build_call_tree(
    profile: Profile, names: Names, values: Iterable[Tuple[int, int]], level: Level, is_folded: bool
) -> CallTree:
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
