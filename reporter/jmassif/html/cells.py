# SPDX-License-Identifier: GPL-2.0-or-later
"""Cells: sums of the accounts that the page keeps as one.

A run has accounts by the hundred thousand, most of them tiny. The page gets the branches of the trie of stacks that held
or allocated most, as many as its budget allows; an account deeper than that counts in the cell of the innermost node that
was kept, marked as folded. Whatever else a view groups by (kind, owner, role, library, thread, Python line) is part of a cell, so
every view is a sum over the same cells and agrees with every other one, at every moment, to the byte.

A *moment* is a snapshot or a peak, in order. Each has a row for each cell that changed since the moment before.
"""

import sys
from array import array
from collections import Counter
from heapq import nlargest
from itertools import chain, islice
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, TypeVar

from jmassif.attribution.blame import callers
from jmassif.attribution.names import NO_TENSOR, Names
from jmassif.attribution.views import thread_naming
from jmassif.html.head import ColumnSpec
from jmassif.model.records import PEAKS, Frame, Peak
from jmassif.model.run import Profile
from jmassif.render.sources import Sources
from jmassif.render.view import FormatError
from jmassif.units import printable


# ---- texts ----
# Texts of a trace on their way to the page.

_MAX_TEXT = 400


def shown(text: str, most: int = _MAX_TEXT) -> str:
    """Fit to be shown, and cut where no person would read on."""
    # Escapes make text longer: do not read the rest of a megabyte.
    safe = printable(text[: most + 1])
    return safe if len(safe) <= most else f"{safe[:most]}… ({len(text):,} characters)"


def source_around(sources: Optional[Sources], frame: Frame) -> str:
    """Source around the frame's line; "" without one. `sources` is None where no text is shown."""
    # No hash says that the text of a native frame's file is what ran.
    return sources.around(frame.file, frame.line) if sources and frame.type == "p" and frame.file else ""


# ---- columns ----
# Columns of numbers, packed so that they deflate well and a browser unpacks them in one pass each.
#
# A column is laid out in planes: the lowest bytes of all its numbers, then their second bytes, and so on; the highest planes,
# which are zero as a rule, are left out. Signed numbers are folded (0, -1, 1, -2, … become 0, 1, 2, 3, …).

# Beyond this, a browser's numbers have gaps.
MAX_EXACT = 2**53


class TooLarge(FormatError):
    """A figure that the page could not show exactly. The message is one line."""


def all_shown(value: Any) -> Any:
    """A value for JSON with every text safe to show, and figures that JavaScript has exactly. Raises TooLarge."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        return {shown(key): all_shown(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [all_shown(inner) for inner in value]
    if isinstance(value, int) and abs(value) >= MAX_EXACT:
        raise TooLarge("a figure is beyond 8 PiB, which a page cannot show exactly")
    return value


class Columns:
    """Named columns, in one run of bytes."""

    def __init__(self) -> None:
        self.specs: Dict[str, ColumnSpec] = {}
        self._planes: List[bytes] = []
        self._n_bytes = 0

    def add(self, name: str, numbers: Iterable[int], type_: str = "number") -> None:
        """`type_` is "number", "signed" or "address" (any 64 bits). Raises TooLarge."""
        try:
            folded = [n << 1 if n >= 0 else ~n << 1 | 1 for n in numbers] if type_ == "signed" else numbers
            column = folded if isinstance(folded, array) else array("Q", folded)
        except OverflowError:
            raise TooLarge(f"column {name} has a figure beyond 64 bits, which a page cannot show")
        limit = MAX_EXACT * 2 if type_ == "signed" else MAX_EXACT
        if type_ != "address" and len(column) and max(column) >= limit:
            raise TooLarge(f"column {name} has a figure beyond 8 PiB, which a page cannot show exactly")
        if sys.byteorder == "big":
            column = array("Q", column)
            column.byteswap()
        raw = column.tobytes()
        planes = [raw[place :: column.itemsize] for place in range(column.itemsize)]
        while planes and not any(planes[-1]):
            planes.pop()
        self.specs[name] = ColumnSpec(type_, len(column), len(planes), self._n_bytes)
        self._planes += planes
        self._n_bytes += len(planes) * len(column)

    def bytes(self) -> bytes:
        return b"".join(self._planes)


# ---- attributes ----
# Attributes that cells are grouped by besides their stacks: kind, owner, role, library, thread and Python line.
#
# A run may have thousands of libraries, threads and lines; those that matter least become one.

_Value = TypeVar("_Value", int, str)

# In the place of a line or a library that is kept with the others of its like.
OTHERS = -1
NO_LINE = 0

OTHER_LIBRARIES, OTHER_THREADS = "(other libraries)", "(other threads)"


class Index(Dict[Any, int]):
    """Places of values, in the order in which they are first asked for."""

    def __missing__(self, value: Any) -> int:
        return self.setdefault(value, len(self))

    def places(self, values: Iterable[Any], order: Optional[Callable[[Any], Any]] = None) -> List[int]:
        """Those of several; values that have none yet get theirs in order."""
        found = list(values)
        for value in sorted(set(found), key=order):
            self[value]  # pylint: disable=pointless-statement
        return [self[value] for value in found]


def index_of(values: Iterable[Any]) -> Index:
    index = Index()
    for value in values:
        index.setdefault(value, len(index))
    return index


class Attributes(NamedTuple):
    """Attributes that accounts are grouped by besides their stacks."""

    kind: str
    owner: str
    role: str
    library: str
    line: int  # the Python frame charged; NO_LINE or OTHERS
    thread: str  # "" without a record
    through: Tuple[int, ...]  # the Python frames that have it in their totals
    is_chosen: bool = True  # by --include and --exclude


def _weights(profile: Profile) -> "array[float]":
    """How much each account matters: the share that it ever held, and ever allocated."""
    most, allocated = array("Q", bytes(8 * len(profile.accounts))), profile.lifetime().bytes
    columns = [(snapshot.changes.account, snapshot.changes.bytes) for snapshot in profile.snapshots]
    columns += [(peak.differences.account, peak.differences.bytes) for peak in profile.peaks.values()]
    for account, n_bytes in chain.from_iterable(zip(*each) for each in columns):
        if n_bytes > most[account]:
            most[account] = n_bytes
    all_most, all_allocated = sum(most) or 1, sum(allocated) or 1
    return array("d", (held / all_most + total / all_allocated for held, total in zip(most, allocated)))


def _heaviest_nodes(profile: Profile, weights: Sequence[float], limit: int) -> List[int]:
    """A node never weighs less than one below it, so they are a tree."""
    nodes = array("d", bytes(8 * len(profile.node_parent)))
    for node, weight in zip(profile.accounts.nodes, weights):
        nodes[node] += weight
    parents = profile.node_parent
    order = range(1, len(parents))  # callers come first
    for node in reversed(order):
        nodes[parents[node]] += nodes[node]
    return nlargest(limit, order, key=nodes.__getitem__)


class _Ranking:
    """The attributes of all accounts; nodes, lines, libraries and threads, those that matter most first.

    Lines go by what they are charged with, and once more by what was called through them.
    """

    def __init__(self, profile: Profile, names: Names, n_nodes: int) -> None:
        self.profile = profile
        passed = callers(profile, names.folding, True)
        chosen = profile.chosen
        thread_of = thread_naming(profile, True) if profile.has_threads else lambda account: ""
        index = Index()
        self.of_account = array("I", [0])  # places in `attributes`
        for account, (node, kind, owner) in enumerate(islice(profile.accounts, 1, None), 1):
            role = profile.role(account) or NO_TENSOR
            line = names.charged(account)
            through = passed(node) if line else ()
            is_chosen = chosen is None or bool(chosen[account])
            key = Attributes(kind, owner, role, names.library(account), line, thread_of(account), through, is_chosen)
            self.of_account.append(index[key])
        self.attributes: List[Attributes] = list(index)
        weights = _weights(profile)
        self.nodes = _heaviest_nodes(profile, weights, n_nodes)
        sums = [0.0] * len(index)
        for place, weight in zip(self.of_account[1:], weights[1:]):
            sums[place] += weight
        rows = list(zip(self.attributes, sums))
        self.lines = _heaviest((row.line, weight) for row, weight in rows)
        self.passed = _heaviest((frame, weight) for row, weight in rows for frame in row.through)
        self.libraries = _heaviest((row.library, weight) for row, weight in rows)
        self.threads = _heaviest((row.thread, weight) for row, weight in rows)


def _heaviest(weighed: Iterable[Tuple[_Value, float]]) -> List[_Value]:
    sums: Dict[_Value, float] = {}
    for value, weight in weighed:
        sums[value] = sums.get(value, 0.0) + weight
    return sorted(sums, key=lambda value: (-sums[value], value))


# ---- cells ----

# Most nodes, Python lines and libraries that are kept apart; the first budget that makes few enough rows is
# taken. That is what keeps a page below 15 MB and a click below a tenth of a second.
_BUDGETS = (
    (16000, 2000, 300),
    (8000, 1000, 200),
    (4000, 500, 100),
    (2000, 250, 60),
    (1000, 120, 40),
    (500, 60, 20),
    (250, 30, 12),
    (100, 15, 6),
    (70, 10, 5),
    (40, 6, 3),
)
_MAX_ROWS = 1700000
_SAMPLED_SNAPSHOTS = 24


class Cell(NamedTuple):
    node: int  # index in the kept nodes; 0: no stack
    attributes: int
    places: int  # > 0: the cell stands for that many accounts whose stacks go on beyond the node
    is_inherited: bool  # what a forked process had from its parent, and still has: in a sum over processes it counts there


class Moment(NamedTuple):
    time: int
    snapshot: Optional[int]  # index
    peak: str  # one of PEAKS, or "" for a snapshot
    n_rows: int


class Cells(NamedTuple):
    nodes: List[int]  # the trie's ids of the kept nodes, a parent before its children; [0] is 0
    parents: List[int]  # indices
    cells: List[Cell]
    cell_of: List[int]  # by account; 0 for accounts that are not there
    attributes: List[Attributes]
    moments: List[Moment]
    # Rows, moment after moment. `cell` is the distance from the row before in the same moment.
    cell: "array[int]"
    live_bytes: "array[int]"  # as the next two: what was added since the moment before
    live_blocks: "array[int]"
    allocated: "array[int]"  # beyond what live_bytes grew by


class _Kept:
    """What one budget keeps apart, and the key of each account's cell by that."""

    def __init__(self, ranking: _Ranking, n_nodes: int, n_lines: int, n_libraries: int) -> None:
        self._ranking = ranking
        self._lines = {NO_LINE, *ranking.lines[:n_lines], *ranking.passed[:n_lines]}
        self._libraries, self._threads = set(ranking.libraries[:n_libraries]), set(ranking.threads[:n_libraries])
        self._reduced: Dict[int, Attributes] = {}  # by place in ranking.attributes
        self._kept = set(ranking.nodes[:n_nodes])
        self.nodes, self.parents = [0], [0]
        self._node_of = [0]  # by node of the trie: the innermost one kept
        for node, parent in enumerate(islice(ranking.profile.node_parent, 1, None), 1):
            kept = self._node_of[parent]
            if node in self._kept:
                self.parents.append(kept)
                kept = len(self.nodes)
                self.nodes.append(node)
            self._node_of.append(kept)

    def _reduce(self, row: Attributes) -> Attributes:
        return row._replace(
            line=row.line if row.line in self._lines else OTHERS,
            library=row.library if row.library in self._libraries else OTHER_LIBRARIES,
            thread=row.thread if row.thread in self._threads else OTHER_THREADS,
            through=tuple(frame for frame in row.through if frame in self._lines),
        )

    def key(self, account: int) -> Tuple[int, bool, Attributes]:
        """The kept node, whether the stack goes on beyond it, and the attributes."""
        node, place = self._ranking.profile.accounts.nodes[account], self._ranking.of_account[account]
        attributes = self._reduced.get(place)
        if attributes is None:
            attributes = self._reduced[place] = self._reduce(self._ranking.attributes[place])
        return self._node_of[node], bool(node) and node not in self._kept, attributes

    def estimate_rows(self) -> int:
        """About how many rows the cells will have, from a few of the snapshots."""
        snapshots = self._ranking.profile.snapshots
        sampled = [each.changes for each in snapshots[:: max(1, len(snapshots) // _SAMPLED_SNAPSHOTS)]]
        n_rows = sum(len(set(map(self.key, changes.account))) for changes in sampled)
        n_changes, n_all = (sum(each.n_rows for each in found) for found in (sampled, [s.changes for s in snapshots]))
        return n_rows * n_all // (n_changes or 1)


_Change = Tuple[int, int, int, int]  # account, live bytes, live blocks, bytes allocated: as they are now


class _Walk:
    """Follows the accounts from moment to moment, and writes down how the cells change."""

    def __init__(
        self, profile: Profile, has_blocks: Sequence[bool], cell_of: Sequence[int], inherited: Dict[int, int]
    ) -> None:
        """`has_blocks`: by cell. `inherited`: by account, the cell of what it had at the first snapshot."""
        self._profile, self._has_blocks, self._cell_of, self._inherited = profile, has_blocks, cell_of, inherited
        self._opening = profile.composition(0) if inherited else {}
        self._bytes, self._blocks, self._allocated = (array("Q", bytes(8 * len(cell_of))) for _ in range(3))
        self.rows = (array("Q"), array("q"), array("q"), array("q"))
        # Sums by cell in one step: bytes, blocks, bytes allocated.
        self._grown = tuple([0] * len(has_blocks) for _ in range(3))

    def _move_inherited(self, changes: Sequence[_Change]) -> Iterator[int]:
        """Count what is left of inherited memory in its own cells; these."""
        more_bytes, more_blocks, _ = self._grown
        for account, n_bytes, blocks, _ in changes:
            if account in self._inherited:
                had_bytes, had_blocks = self._opening[account]
                grown = min(n_bytes, had_bytes) - min(self._bytes[account], had_bytes)
                grown_blocks = min(blocks, had_blocks) - min(self._blocks[account], had_blocks)
                for cell, sign in ((self._inherited[account], 1), (self._cell_of[account], -1)):
                    more_bytes[cell] += sign * grown
                    more_blocks[cell] += sign * grown_blocks
                    yield cell

    def _step(self, changes: Iterable[_Change]) -> int:
        """The number of rows."""
        live_bytes, live_blocks, allocated, cell_of = self._bytes, self._blocks, self._allocated, self._cell_of
        more_bytes, more_blocks, more_allocated = self._grown
        touched: Set[int] = set()
        if self._inherited:
            changes = list(changes)
            touched.update(self._move_inherited(changes))
        for account, n_bytes, blocks, total in changes:
            cell = cell_of[account]
            touched.add(cell)
            more_bytes[cell] += n_bytes - live_bytes[account]
            more_blocks[cell] += blocks - live_blocks[account]
            more_allocated[cell] += total - allocated[account]
            live_bytes[account] = n_bytes
            live_blocks[account] = blocks
            allocated[account] = total
        n_rows = len(self.rows[0])
        previous = 0
        add_cell, add_bytes, add_blocks, add_allocated = (column.append for column in self.rows)
        for cell in sorted(touched):
            n_bytes, blocks, total = more_bytes[cell], more_blocks[cell] * self._has_blocks[cell], more_allocated[cell]
            more_bytes[cell] = more_blocks[cell] = more_allocated[cell] = 0
            if n_bytes or blocks or total:
                add_cell(cell - previous)
                add_bytes(n_bytes)
                add_blocks(blocks)
                add_allocated(total - n_bytes if n_bytes > 0 else total)
                previous = cell
        return len(self.rows[0]) - n_rows

    def _at_peak(self, peak: Peak, now: Sequence[_Change]) -> Iterator[_Change]:
        """Memory at the peak of the accounts in `now`, the snapshot after it.

        A peak has no count of all that was allocated by then: it is no less than before, and than what was added since.
        """
        rows = peak.differences
        then = dict(zip(rows.account, zip(rows.bytes, rows.blocks)))
        for account, n_bytes, blocks, total in now:
            n_bytes, blocks = then.get(account, (n_bytes, blocks))
            before = self._allocated[account]
            least = before + max(0, n_bytes - self._bytes[account])
            yield account, n_bytes, blocks, max(before, min(least, total))

    def moments(self) -> Iterator[Moment]:
        for index, snapshot in enumerate(self._profile.snapshots):
            rows = snapshot.changes
            peaks = [self._profile.peaks[which] for which in PEAKS if which in self._profile.peaks]
            peaks = sorted((peak for peak in peaks if peak.snapshot == index), key=lambda peak: peak.time)
            changes = zip(rows.account, rows.bytes, rows.blocks, rows.all_bytes)
            if not peaks:
                yield Moment(snapshot.time, index, "", self._step(changes))
                continue
            now = list(changes)
            # A peak is recorded as differences from the snapshot after it: visit whatever differs in any of them, for each.
            differing = {account for peak in peaks for account in peak.differences.account}
            for account in differing.difference(rows.account):
                now.append((account, self._bytes[account], self._blocks[account], self._allocated[account]))
            for peak in peaks:
                yield Moment(peak.time, None, peak.which, self._step(self._at_peak(peak, now)))
            yield Moment(snapshot.time, index, "", self._step(now))


def cells(profile: Profile, names: Names, share: float = 1.0, has_parent: bool = False) -> Cells:
    """The cells of a run and how they change, with that share of a page's budget.

    `has_parent`: the process was forked from another one that is on the page; what it inherited is in cells of its own.
    """
    ranking = _Ranking(profile, names, int(_BUDGETS[0][0] * share) + 1)
    for budget in _BUDGETS:
        kept = _Kept(ranking, *(int(n * share) + 1 for n in budget))
        if kept.estimate_rows() <= _MAX_ROWS * share:
            break
    opening = profile.composition(0) if has_parent and profile.snapshots else {}
    index = Index()  # of keys, and whether a cell is of inherited memory
    places: "Counter[int]" = Counter()
    cell_of, inherited = [0], {}
    for account in range(1, len(profile.accounts)):
        key = kept.key(account)
        cell_of.append(index[key, False])
        places[cell_of[-1]] += key[1]
        if account in opening:
            inherited[account] = index[key, True]
            places[inherited[account]] += key[1]
    attributes = index_of(key[2] for key, _ in index)
    found = [
        Cell(node, attributes[row], places[cell], is_inherited)
        for cell, ((node, _, row), is_inherited) in enumerate(index)
    ]
    has_blocks = [key[2].kind != "heap-overhead" for key, _ in index]
    walk = _Walk(profile, has_blocks, cell_of, inherited)
    return Cells(kept.nodes, kept.parents, found, cell_of, list(attributes), list(walk.moments()), *walk.rows)
