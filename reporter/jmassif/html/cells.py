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
from itertools import chain
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, TypeVar, Union

from jmassif.attribution.blame import callers
from jmassif.attribution.names import NO_TENSOR, Names
from jmassif.attribution.views import thread_naming
from jmassif.model.records import PEAKS, LiveBytesByAccount, Frame, Peak
from jmassif.model.run import Profile
from jmassif.render.sources import Sources
from jmassif.render.view import FormatError
from jmassif.units import printable


# ---- texts ----
# Texts of a trace on their way to the page.

_MAX_TEXT = 400


def shown(text: str) -> str:
    """Fit to be shown, and cut where no person would read on."""
    # Escapes make text longer: do not read the rest of a megabyte.
    safe = printable(text[: _MAX_TEXT + 1])
    return safe if len(safe) <= _MAX_TEXT else f"{safe[:_MAX_TEXT]}… ({len(text):,} characters)"


# ---- code ----
# Source around the lines of frames. A run has thousands of frames in a few hundred files: each text is there once.

_MAX_BYTES = 400_000  # of texts, before they are deflated; beyond, frames have none


class Code:
    """`sources` is None where no text is shown."""

    def __init__(self, sources: Optional[Sources]) -> None:
        self._sources = sources
        self._arounds: Dict[str, int] = {"": 0}
        self._n_bytes = 0
        self._around: List[int] = [0]

    def around(self, frame: Frame) -> str:
        """Source around the frame's line; "" without one."""
        # No hash says that the text of a native frame's file is what ran.
        if self._sources is None or frame.type != "p" or not frame.file or not frame.line:
            return ""
        return "\n".join(map(shown, self._sources.around(frame.file, frame.line).split("\n")))

    def add(self, frame: Frame) -> None:
        """The next frame of the columns; the first of all, no frame, is there."""
        around = self.around(frame)
        if around not in self._arounds:
            self._n_bytes += len(around)
            if self._n_bytes > _MAX_BYTES:
                around = ""
        self._around.append(self._arounds.setdefault(around, len(self._arounds)))

    @property
    def columns(self) -> Dict[str, List[Any]]:
        return {"around": self._around, "arounds": list(self._arounds)}


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


def fold(value: int) -> int:
    """A signed number as an unsigned one."""
    return value << 1 if value >= 0 else (-value << 1) - 1


class Columns:
    """Named columns, in one run of bytes."""

    def __init__(self) -> None:
        self.specs: Dict[str, Dict[str, Union[int, str]]] = {}
        self._planes: List[bytes] = []
        self._n_bytes = 0

    def add(self, name: str, numbers: Iterable[int], type_: str = "number") -> None:
        """`type_` is "number", "signed" (of folded numbers) or "address" (any 64 bits). Raises TooLarge."""
        try:
            column = numbers if isinstance(numbers, array) else array("Q", numbers)
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
        self.specs[name] = {"type": type_, "rows": len(column), "planes": len(planes), "at": self._n_bytes}
        self._planes += planes
        self._n_bytes += len(planes) * len(column)

    def bytes(self) -> bytes:
        return b"".join(self._planes)


# ---- attributes ----
# Attributes that cells are grouped by besides their stacks: kind, owner, role, library, thread and Python line.
#
# A run may have thousands of libraries, threads and lines; those that matter least become one.

_Key = TypeVar("_Key", int, str)

# In the place of a line or a library that is kept with the others of its like.
OTHERS = -1
NO_LINE = 0

OTHER_LIBRARIES, OTHER_THREADS = "(other libraries)", "(other threads)"


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


class Accounts(NamedTuple):
    """The distinct attributes, the place of each account's among them, and the weight of each."""

    attributes: List[Attributes]
    of_account: List[int]
    weights: List[float]


def grouped(profile: Profile, names: Names, weights: Sequence[float]) -> Accounts:
    """`weights` are by account: how much each matters."""
    index: Dict[Attributes, int] = {}
    of_account = [0]
    passed = callers(profile, names.folding, True)
    chosen = profile.chosen
    thread_of = thread_naming(profile, True) if profile.has_threads else lambda account: ""
    for account in range(1, len(profile.accounts)):
        node, kind, owner = profile.accounts[account]
        role = profile.role(account) or NO_TENSOR
        line = names.charged(account)
        through = passed(node) if line else ()
        is_chosen = chosen is None or bool(chosen[account])
        key = Attributes(kind, owner, role, names.library(account), line, thread_of(account), through, is_chosen)
        of_account.append(index.setdefault(key, len(index)))
    sums = [0.0] * len(index)
    for place, weight in zip(of_account[1:], weights[1:]):
        sums[place] += weight
    return Accounts(list(index), of_account, sums)


def _heaviest(keys: Iterable[_Key], weights: Iterable[float], limit: int) -> Set[_Key]:
    sums: Dict[_Key, float] = {}
    for key, weight in zip(keys, weights):
        sums[key] = sums.get(key, 0.0) + weight
    return set(sorted(sums, key=lambda key: (-sums[key], key))[:limit])


def reduced(accounts: Accounts, n_lines: int, n_libraries: int) -> Tuple[List[Attributes], List[int]]:
    """The attributes with so many lines and libraries only, and which of these each of `accounts.attributes` becomes.

    Lines are those that are charged with most, and as many of those that most was called through.
    """
    rows = accounts.attributes
    through = [(frame, weight) for row, weight in zip(rows, accounts.weights) for frame in row.through]
    lines = _heaviest((row.line for row in rows), accounts.weights, n_lines) | {NO_LINE}
    lines |= _heaviest((frame for frame, _ in through), (weight for _, weight in through), n_lines)
    libraries = _heaviest((row.library for row in rows), accounts.weights, n_libraries)
    threads = _heaviest((row.thread for row in rows), accounts.weights, n_libraries)
    index: Dict[Attributes, int] = {}
    places = []
    for row in rows:
        line = row.line if row.line in lines else OTHERS
        library = row.library if row.library in libraries else OTHER_LIBRARIES
        passed = tuple(frame for frame in row.through if frame in lines)
        thread = row.thread if row.thread in threads else OTHER_THREADS
        key = row._replace(line=line, library=library, thread=thread, through=passed)
        places.append(index.setdefault(key, len(index)))
    return list(index), places


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
    live_bytes: "array[int]"  # folded, as the next two: what was added since the moment before
    live_blocks: "array[int]"
    allocated: "array[int]"  # beyond what live_bytes grew by


def _weigh(profile: Profile, order: Sequence[int]) -> Tuple["array[float]", "array[float]"]:
    """How much each account, and each node with all below it, matters: the share that it ever held, and ever allocated.

    A node never weighs less than one below it, so the heaviest nodes are a tree.
    """
    most, allocated = array("Q", bytes(8 * len(profile.accounts))), profile.lifetime().bytes
    columns = [(snapshot.changes.account, snapshot.changes.bytes) for snapshot in profile.snapshots]
    columns += [(peak.differences.account, peak.differences.bytes) for peak in profile.peaks.values()]
    for account, n_bytes in chain.from_iterable(zip(*each) for each in columns):
        if n_bytes > most[account]:
            most[account] = n_bytes
    all_most, all_allocated = sum(most) or 1, sum(allocated) or 1
    weights = array("d", (held / all_most + total / all_allocated for held, total in zip(most, allocated)))
    nodes = array("d", bytes(8 * len(profile.node_parent)))
    for (node, _, _), weight in zip(profile.accounts, weights):
        nodes[node] += weight
    nodes[0] = 0.0
    parents = profile.node_parent
    for node in reversed(order):
        nodes[parents[node]] += nodes[node]
    return weights, nodes


class _Assignment(NamedTuple):
    nodes: List[int]
    parents: List[int]
    cells: List[Cell]
    cell_of: List[int]
    inherited: Dict[int, int]  # by account: the cell of its memory from the parent


def _assign(
    profile: Profile,
    order: Sequence[int],
    ranked: Sequence[int],
    n_kept: int,
    attributes: Sequence[int],
    opening: LiveBytesByAccount,
) -> _Assignment:
    """The cells, if the first `n_kept` of the nodes in `ranked` are kept."""
    kept = set(ranked[:n_kept])
    nodes, parents = [0], [0]
    kept_of = [0] * len(profile.node_parent)
    for node in order:
        kept_of[node] = kept_of[profile.node_parent[node]]
        if node in kept:
            parents.append(kept_of[node])
            kept_of[node] = len(nodes)
            nodes.append(node)
    index: Dict[Tuple[int, bool, int, bool], int] = {}
    places: "Counter[int]" = Counter()
    cell_of = [0]
    inherited: Dict[int, int] = {}
    for account, ((node, kind, _), attribute) in enumerate(zip(profile.accounts, attributes)):
        if not kind:  # an id that no account has
            if account:
                cell_of.append(0)
            continue
        is_folded = bool(node) and node not in kept
        cell_of.append(index.setdefault((kept_of[node], is_folded, attribute, False), len(index)))
        places[cell_of[-1]] += is_folded
        if account in opening:
            inherited[account] = index.setdefault((kept_of[node], is_folded, attribute, True), len(index))
            places[inherited[account]] += is_folded
    cells = [Cell(key[0], key[2], places[cell], key[3]) for key, cell in index.items()]
    return _Assignment(nodes, parents, cells, cell_of, inherited)


def _estimate_rows(profile: Profile, cell_of: Sequence[int]) -> int:
    """About how many rows the cells will have, from a few of the snapshots."""
    step = max(1, len(profile.snapshots) // _SAMPLED_SNAPSHOTS)
    n_rows = n_changes = 0
    for snapshot in profile.snapshots[::step]:
        accounts = snapshot.changes.account
        n_changes += len(accounts)
        n_rows += len({cell_of[account] for account in accounts})
    n_all = sum(snapshot.changes.n_rows for snapshot in profile.snapshots)
    return n_rows * n_all // (n_changes or 1)


_Change = Tuple[int, int, int, int]  # account, live bytes, live blocks, bytes allocated: as they are now


class _Ledger:
    """Follows the accounts from moment to moment, and writes down how the cells change."""

    def __init__(self, profile: Profile, assigned: _Assignment, opening: LiveBytesByAccount) -> None:
        n_accounts = len(profile.accounts)
        self._no_blocks = {
            account for account in range(n_accounts) if profile.accounts[account].kind == "heap-overhead"
        }
        # Inherited memory of an account is followed as an account of its own, behind all others.
        self._opening = opening
        self._second: Dict[int, int] = {}
        self._cell_of = list(assigned.cell_of)
        for account, cell in assigned.inherited.items():
            self._second[account] = len(self._cell_of)
            self._cell_of.append(cell)
            if account in self._no_blocks:
                self._no_blocks.add(self._second[account])
        self.bytes = array("Q", bytes(8 * len(self._cell_of)))
        self.blocks = array("Q", self.bytes)
        self.allocated = array("Q", self.bytes)
        self.rows = (array("Q"), array("Q"), array("Q"), array("Q"))
        # Sums by cell in one step: bytes, blocks, bytes allocated.
        self._grown = tuple([0] * len(assigned.cells) for _ in range(3))

    def held(self, account: int) -> Tuple[int, int]:
        """Bytes and blocks, with what was inherited."""
        second = self._second.get(account)
        if second is None:
            return self.bytes[account], self.blocks[account]
        return self.bytes[account] + self.bytes[second], self.blocks[account] + self.blocks[second]

    def _parted(self, changes: Iterable[_Change]) -> Iterator[_Change]:
        for account, n_bytes, blocks, total in changes:
            second = self._second.get(account)
            if second is None:
                yield account, n_bytes, blocks, total
                continue
            had_bytes, had_blocks = self._opening[account]
            yield second, min(n_bytes, had_bytes), min(blocks, had_blocks), 0
            yield account, max(0, n_bytes - had_bytes), max(0, blocks - had_blocks), total

    def step(self, changes: Iterable[_Change]) -> int:
        """The number of rows."""
        live_bytes, live_blocks, allocated, cell_of = self.bytes, self.blocks, self.allocated, self._cell_of
        no_blocks = self._no_blocks
        more_bytes, more_blocks, more_allocated = self._grown
        touched = set()
        for account, n_bytes, blocks, total in self._parted(changes) if self._second else changes:
            cell = cell_of[account]
            touched.add(cell)
            more_bytes[cell] += n_bytes - live_bytes[account]
            if account not in no_blocks:
                more_blocks[cell] += blocks - live_blocks[account]
            more_allocated[cell] += total - allocated[account]
            live_bytes[account] = n_bytes
            live_blocks[account] = blocks
            allocated[account] = total
        previous = n_rows = 0
        add_cell, add_bytes, add_blocks, add_allocated = (column.append for column in self.rows)
        for cell in sorted(touched):
            n_bytes, blocks, total = more_bytes[cell], more_blocks[cell], more_allocated[cell]
            more_bytes[cell] = more_blocks[cell] = more_allocated[cell] = 0
            if n_bytes or blocks or total:
                add_cell(cell - previous)
                add_bytes(fold(n_bytes))
                add_blocks(fold(blocks))
                add_allocated(fold(total - n_bytes if n_bytes > 0 else total))
                previous = cell
                n_rows += 1
        return n_rows


def _at_peak(peak: Peak, now: Dict[int, Tuple[int, int, int]], ledger: _Ledger) -> Iterator[_Change]:
    """Memory at the peak of the accounts in `now`, the snapshot after it.

    A peak has no count of all that was allocated by then: it is no less than before, and than what was added since.
    """
    rows = peak.differences
    then = {account: (n_bytes, blocks) for account, n_bytes, blocks in zip(rows.account, rows.bytes, rows.blocks)}
    for account, (n_bytes, blocks, total) in now.items():
        n_bytes, blocks = then.get(account, (n_bytes, blocks))
        least = ledger.allocated[account] + max(0, n_bytes - ledger.held(account)[0])
        yield account, n_bytes, blocks, max(ledger.allocated[account], min(least, total))


def _walk(profile: Profile, ledger: _Ledger) -> List[Moment]:
    moments = []
    for index, snapshot in enumerate(profile.snapshots):
        rows = snapshot.changes
        changes: Iterable[_Change] = zip(rows.account, rows.bytes, rows.blocks, rows.all_bytes)
        peaks = sorted(
            (peak for peak in profile.peaks.values() if peak.snapshot == index and peak.which in PEAKS),
            key=lambda peak: (peak.time, PEAKS.index(peak.which)),
        )
        if peaks:
            # A peak is recorded as differences from the snapshot after it: visit whatever differs in any of them, for each.
            now = {account: (n_bytes, blocks, total) for account, n_bytes, blocks, total in changes}
            for peak in peaks:
                for account in peak.differences.account:
                    now.setdefault(account, (*ledger.held(account), ledger.allocated[account]))
            for peak in peaks:
                n_rows = ledger.step(list(_at_peak(peak, now, ledger)))
                moments.append(Moment(peak.time, None, peak.which, n_rows))
            changes = [(account, *numbers) for account, numbers in now.items()]
        moments.append(Moment(snapshot.time, index, "", ledger.step(changes)))
    return moments


def cells(profile: Profile, names: Names, share: float = 1.0, has_parent: bool = False) -> Cells:
    """The cells of a run and how they change, with that share of a page's budget.

    `has_parent`: the process was forked from another one that is on the page; what it inherited is in cells of its own.
    """
    opening = profile.composition(0) if has_parent and profile.snapshots else {}
    order = range(1, len(profile.node_parent))  # callers come first
    weights, node_weights = _weigh(profile, order)
    accounts = grouped(profile, names, weights)
    ranked = nlargest(int(_BUDGETS[0][0] * share) + 1, order, key=node_weights.__getitem__)
    for n_nodes, n_lines, n_libraries in _BUDGETS:
        attributes, places = reduced(accounts, int(n_lines * share) + 1, int(n_libraries * share) + 1)
        of_account = [places[place] for place in accounts.of_account] if places else accounts.of_account
        assigned = _assign(profile, order, ranked, int(n_nodes * share) + 1, of_account, opening)
        if _estimate_rows(profile, assigned.cell_of) <= _MAX_ROWS * share:
            break
    ledger = _Ledger(profile, assigned, opening)
    moments = _walk(profile, ledger)
    return Cells(*assigned[:-1], attributes, moments, *ledger.rows)
