# SPDX-License-Identifier: GPL-2.0-or-later
"""The trie of stacks, branch by branch: what each holds at a moment with all that it called, to the last frame and block.

A page has the branches that hold most; here is every one. Branches that are asked for are few and the trie is large, so what a
moment's accounts hold is summed towards the root once, and a branch is then a look at its children.
"""

from array import array
from typing import Iterator, List, NamedTuple, Tuple

from jmassif.model.kinds import counted_blocks, side_of
from jmassif.model.profile import Profile
from jmassif.model.records import Composition

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
