# SPDX-License-Identifier: GPL-2.0-or-later
"""Trees over a composition: the allocation site first, then its callers, as massif has them.

A node's bytes are always the sum of its children's, to the byte: what is too small to be shown is folded into one child
that says how many places it stands for, and where some stacks end at a frame that others continue from, a child stands
for those that end. Trees are built by need, breadth by breadth: only a node that is shown has its stacks walked any
further, so a tree over ten thousand stacks of sixty frames costs little more than its visible part.
"""

from collections import defaultdict
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from jmassif.model.kinds import counted_blocks
from jmassif.model.profile import Profile
from jmassif.model.records import Composition
from jmassif.whose.folding import Folding, FrameRun
from jmassif.whose.names import STACK_ENDS


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


def build(profile: Profile, composition: Composition, shape: Shape, title: str) -> Node:
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
