# SPDX-License-Identifier: GPL-2.0-or-later
"""Cells: accounts that the page does not tell apart, summed.

A run has accounts by the hundred thousand, most of them tiny. The page gets the branches of the trie of stacks that held
or allocated most, as many as its budget allows; an account deeper than that counts in the cell of the innermost node that
was kept, marked as folded. Whatever else a view groups by (kind, owner, role, library, Python line) is part of a cell, so
every view is a sum over the same cells and agrees with every other one, at every moment, to the byte.

A *moment* is a snapshot or a peak, in order. Each is told as rows, one a cell that changed since the moment before.
"""

from array import array
from operator import ge
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from jmassif.names import NO_TENSOR, Names
from jmassif.page.columns import fold
from jmassif.profile import PEAKS, Profile

# How many nodes are kept at most, and how many rows their cells may change in: what keeps a page below 15 MB and a click
# below a tenth of a second.
_NODES = (16000, 8000, 4000, 2000, 1000, 500, 250, 100)
_MAX_ROWS = 900000
_MAX_LINES = 2000
_MAX_LIBRARIES = 300
_SAMPLED_SNAPSHOTS = 24

# In the place of a line or a library that is not told apart from others of its like.
OTHERS = -1
NO_LINE = 0

OTHER_LIBRARIES = "(other libraries)"


class Attributes(NamedTuple):
    """What accounts are grouped by, besides their stacks."""

    kind: str
    owner: str
    role: str
    library: str
    line: int  # the Python frame charged; NO_LINE or OTHERS


class Cell(NamedTuple):
    node: int  # index in the kept nodes; 0: no stack
    attributes: int
    places: int  # > 0: the cell stands for that many accounts whose stacks go on beyond the node


class Moment(NamedTuple):
    time: int
    snapshot: Optional[int]  # index
    peak: str  # one of PEAKS, or "" for a snapshot
    n_rows: int


class Cells(NamedTuple):
    nodes: List[int]  # the trie's ids of the kept nodes, a parent before its children; [0] is 0
    parents: List[int]  # indices
    attributes: List[Attributes]
    cells: List[Cell]
    cell_of: List[int]  # by account; 0 for accounts that are not there
    moments: List[Moment]
    # By row, moment after moment. `cell` is told as the distance from the row before in the same moment.
    cell: "array[int]"
    live_bytes: "array[int]"  # folded, as the next two: what was added since the moment before
    live_blocks: "array[int]"
    allocated: "array[int]"


class _Weights(NamedTuple):
    account: List[float]
    node: List[float]


def _largest(profile: Profile) -> Tuple["array[int]", "array[int]"]:
    """By account: the most bytes it held at any moment, and all it ever allocated."""
    most = array("Q", bytes(8 * len(profile.accounts)))
    allocated = array("Q", most)
    for snapshot in profile.snapshots:
        rows = snapshot.changes
        for account, n_bytes, total in zip(rows[0::6], rows[1::6], rows[3::6]):
            if n_bytes > most[account]:
                most[account] = n_bytes
            allocated[account] = total
    for peak in profile.peaks.values():
        rows = peak.differences
        for account, n_bytes in zip(rows[0::3], rows[1::3]):
            if n_bytes > most[account]:
                most[account] = n_bytes
    return most, allocated


def _outermost_first(parents: Sequence[int]) -> Sequence[int]:
    """All nodes but the root; as a rule their ids are in that order already."""
    ids = range(1, len(parents))
    if not any(map(ge, parents[1:], ids)):
        return ids
    depths = [0] * len(parents)
    for node in ids:
        outer, depth = node, 0
        while outer and not depths[outer]:
            outer, depth = parents[outer], depth + 1
        depth += depths[outer]
        outer = node
        while outer and not depths[outer]:
            depths[outer] = depth
            outer, depth = parents[outer], depth - 1
    return sorted(ids, key=depths.__getitem__)


def _weigh(profile: Profile, order: Sequence[int]) -> _Weights:
    """How much each account, and each node with all below it, matters: what share it ever held, and ever allocated.

    A node never weighs less than one below it, so the heaviest nodes are a tree.
    """
    most, allocated = _largest(profile)
    all_most, all_allocated = sum(most) or 1, sum(allocated) or 1
    weights = [held / all_most + total / all_allocated for held, total in zip(most, allocated)]
    nodes = [0.0] * len(profile.node_parent)
    for (node, _, _), weight in zip(profile.accounts, weights):
        nodes[node] += weight
    nodes[0] = 0.0
    parents = profile.node_parent
    for node in reversed(order):
        nodes[parents[node]] += nodes[node]
    return _Weights(weights, nodes)


def _heaviest(weights: Dict[str, float], limit: int) -> Set[str]:
    return set(sorted(weights, key=lambda name: (-weights[name], name))[:limit])


def _attributes(profile: Profile, names: Names, weights: Sequence[float]) -> Tuple[List[Attributes], List[int]]:
    """The distinct ones, and which of them each account has."""
    libraries: Dict[str, float] = {}
    lines: Dict[int, float] = {}
    library_of, line_of = [""], [NO_LINE]
    for account in range(1, len(profile.accounts)):
        library, line = names.library(account), names.charged(account)
        library_of.append(library)
        line_of.append(line)
        libraries[library] = libraries.get(library, 0.0) + weights[account]
        lines[line] = lines.get(line, 0.0) + weights[account]
    kept_libraries = _heaviest(libraries, _MAX_LIBRARIES)
    kept_lines = set(sorted(lines, key=lambda line: (-lines[line], line))[:_MAX_LINES]) | {NO_LINE}

    index: Dict[Tuple[str, str, str, str, int], int] = {}
    of_account = [0]
    for account in range(1, len(profile.accounts)):
        _, kind, owner = profile.accounts[account]
        role = profile.role(account) or NO_TENSOR
        library = library_of[account] if library_of[account] in kept_libraries else OTHER_LIBRARIES
        line = line_of[account] if line_of[account] in kept_lines else OTHERS
        key = (kind, owner, role, library, line)
        of_account.append(index.setdefault(key, len(index)))
    return [Attributes(*key) for key in index], of_account


class _Assignment(NamedTuple):
    nodes: List[int]
    parents: List[int]
    cells: List[Cell]
    cell_of: List[int]


def _assign(
    profile: Profile, order: Sequence[int], ranked: Sequence[int], n_kept: int, attributes: Sequence[int]
) -> _Assignment:
    """The cells, if the first `n_kept` of the nodes in `ranked` are kept."""
    kept = set(ranked[:n_kept])
    nodes, parents = [0], [0]
    kept_of = [0] * len(profile.node_parent)
    trie_parents = profile.node_parent
    for node in order:
        outer = kept_of[trie_parents[node]]
        if node in kept:
            kept_of[node] = len(nodes)
            nodes.append(node)
            parents.append(outer)
        else:
            kept_of[node] = outer
    index: Dict[Tuple[int, bool, int], int] = {}
    cell_of = [0]
    places: List[int] = []
    for (node, kind, _), attribute in zip(profile.accounts[1:], attributes[1:]):
        if not kind:  # an id that no account has
            cell_of.append(0)
            continue
        is_folded = bool(node) and node not in kept
        cell = index.setdefault((kept_of[node], is_folded, attribute), len(index))
        if cell == len(places):
            places.append(0)
        places[cell] += is_folded
        cell_of.append(cell)
    cells = [Cell(node, attribute, n) for (node, _, attribute), n in zip(index, places)]
    return _Assignment(nodes, parents, cells, cell_of)


def _estimate_rows(profile: Profile, cell_of: Sequence[int]) -> int:
    """About how many rows the cells will have, from a few of the snapshots."""
    step = max(1, len(profile.snapshots) // _SAMPLED_SNAPSHOTS)
    n_rows = n_changes = 0
    for snapshot in profile.snapshots[::step]:
        accounts = snapshot.changes[0::6]
        n_changes += len(accounts)
        n_rows += len({cell_of[account] for account in accounts})
    n_all = sum(len(snapshot.changes) // 6 for snapshot in profile.snapshots)
    return n_rows * n_all // (n_changes or 1)


class _Ledger:
    """Follows the accounts from moment to moment, and writes down how the cells change."""

    def __init__(self, profile: Profile, cell_of: Sequence[int]) -> None:
        n_accounts = len(profile.accounts)
        self._cell_of = cell_of
        self._no_blocks = {
            account for account in range(n_accounts) if profile.accounts[account].kind == "heap-overhead"
        }
        self.bytes = array("Q", bytes(8 * n_accounts))
        self.blocks = array("Q", self.bytes)
        self.allocated = array("Q", self.bytes)
        self.rows = (array("Q"), array("Q"), array("Q"), array("Q"))

    def step(self, changes: Iterable[Tuple[int, int, int, int]]) -> int:
        """`changes` are (account, live bytes, live blocks, bytes allocated) as they are now. The number of rows."""
        live_bytes, live_blocks, allocated, cell_of = self.bytes, self.blocks, self.allocated, self._cell_of
        grown: Dict[int, List[int]] = {}
        for account, n_bytes, blocks, total in changes:
            cell = cell_of[account]
            sums = grown.get(cell)
            if sums is None:
                sums = grown[cell] = [0, 0, 0]
            sums[0] += n_bytes - live_bytes[account]
            if account not in self._no_blocks:
                sums[1] += blocks - live_blocks[account]
            sums[2] += total - allocated[account]
            live_bytes[account] = n_bytes
            live_blocks[account] = blocks
            allocated[account] = total
        previous = n_rows = 0
        add_cell, add_bytes, add_blocks, add_allocated = (column.append for column in self.rows)
        for cell in sorted(grown):
            n_bytes, blocks, total = grown[cell]
            if n_bytes or blocks or total:
                add_cell(cell - previous)
                add_bytes(fold(n_bytes))
                add_blocks(fold(blocks))
                add_allocated(fold(total))
                previous = cell
                n_rows += 1
        return n_rows


def _walk(profile: Profile, ledger: _Ledger) -> List[Moment]:
    moments = []
    for index, snapshot in enumerate(profile.snapshots):
        rows = snapshot.changes
        changes: Iterable[Tuple[int, int, int, int]] = zip(rows[0::6], rows[1::6], rows[2::6], rows[3::6])
        peaks = sorted(
            (peak for peak in profile.peaks.values() if peak.snapshot == index and peak.which in PEAKS),
            key=lambda peak: (peak.time, PEAKS.index(peak.which)),
        )
        if peaks:
            # A peak is told against the snapshot after it, so all that differs in any of them is gone through for each.
            now = {account: (n_bytes, blocks, total) for account, n_bytes, blocks, total in changes}
            for peak in peaks:
                for account in peak.differences[0::3]:
                    now.setdefault(account, (ledger.bytes[account], ledger.blocks[account], ledger.allocated[account]))
            allocated = {account: ledger.allocated[account] for account in now}
            for peak in peaks:
                then = {account: (n_bytes, blocks) for account, (n_bytes, blocks, _) in now.items()}
                rows = peak.differences
                then.update({account: (n, blocks) for account, n, blocks in zip(rows[0::3], rows[1::3], rows[2::3])})
                n_rows = ledger.step((account, *held, allocated[account]) for account, held in then.items())
                moments.append(Moment(peak.time, None, peak.which, n_rows))
            changes = [(account, *numbers) for account, numbers in now.items()]
        moments.append(Moment(snapshot.time, index, "", ledger.step(changes)))
    return moments


def cells(profile: Profile, names: Names, share: float = 1.0) -> Cells:
    """The cells of a run and how they change, with that share of a page's budget."""
    order = _outermost_first(profile.node_parent)
    weights = _weigh(profile, order)
    attributes, attribute_of = _attributes(profile, names, weights.account)
    ranked = sorted(order, key=weights.node.__getitem__, reverse=True)
    for n_kept in _NODES:
        assigned = _assign(profile, order, ranked, max(1, int(n_kept * share)), attribute_of)
        if _estimate_rows(profile, assigned.cell_of) <= _MAX_ROWS * share:
            break
    ledger = _Ledger(profile, assigned.cell_of)
    moments = _walk(profile, ledger)
    return Cells(
        assigned.nodes,
        assigned.parents,
        attributes,
        assigned.cells,
        assigned.cell_of,
        moments,
        *ledger.rows,
    )
