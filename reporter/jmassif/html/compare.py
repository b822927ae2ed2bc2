# SPDX-License-Identifier: GPL-2.0-or-later
"""The data of a difference's page: the JSON format's object, and the call stacks of every column.

The stacks look like a run's (html/data.py), with a moment for each column, so that the page draws them with the same code.
Those of repeated runs are the typical run's, as medians of places do not add up.
"""

from array import array
from html import escape
from itertools import chain
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from jmassif.analysis.compare import Difference, HeldStacks, Stacks
from jmassif.analysis.run_info import is_redundant, label
from jmassif.export.compare import as_json
from jmassif.html.cells import MAX_EXACT, OTHER_LIBRARIES, Columns, TooLarge, fold, shown
from jmassif.html.data import RunData
from jmassif.html.page import fill_page, pack
from jmassif.model.records import GROUPS, KINDS, OTHER, side_of
from jmassif.render.compare import ladder_table, sentences
from jmassif.render.words import OWNERS


def write(difference: Difference, stacks: Stacks) -> Iterator[str]:
    """The runs must have been measured with `stacks`. Raises FormatError."""
    title = shown(" → ".join(column.label for column in difference.columns))
    packed = pack([stacks_data(difference, stacks)], title, difference=comparison(difference))
    yield from fill_page(
        title, "".join(f'<p class="statement">{escape(text)}</p>' for text in _texts(difference)), packed
    )


def _texts(difference: Difference) -> List[str]:
    return [shown(" ".join(sentences(difference, finding))) for finding in difference.findings]


_MAX_NODES = 16000
_MAX_LIBRARIES = 300


def _held(difference: Difference) -> List[HeldStacks]:
    return [column.typical.held for column in difference.columns if column.typical.held]


def _weights(stacks: Stacks, columns: Sequence[HeldStacks]) -> List[float]:
    """The share of each node, with all below it, in bytes and blocks, summed over columns."""
    weights = [0.0] * len(stacks.parent)
    for held in columns:
        all_bytes, all_blocks = sum(held.bytes) or 1, sum(held.blocks) or 1
        for place, n_bytes, blocks in zip(held.place, held.bytes, held.blocks):
            weights[stacks.places[place].node] += n_bytes / all_bytes + blocks / all_blocks
    for node in range(len(weights) - 1, 0, -1):
        weights[stacks.parent[node]] += weights[node]
    return weights


class _Kept(NamedTuple):
    nodes: List[int]  # of the trie; [0] is the root
    parents: List[int]  # indices
    index_of: List[int]  # by node of the trie: of the innermost node around it that was kept


def _kept(stacks: Stacks, columns: Sequence[HeldStacks]) -> _Kept:
    weights = _weights(stacks, columns)
    # No node is lighter than one below it, and of equal ones the outer comes first: what is kept is a tree.
    ranked = sorted(range(1, len(weights)), key=weights.__getitem__, reverse=True)
    kept = set(ranked[:_MAX_NODES])
    nodes, parents, index_of = [0], [0], [0] * len(weights)
    for node in range(1, len(weights)):
        outer = index_of[stacks.parent[node]]
        index_of[node] = outer
        if node in kept and weights[node]:
            index_of[node] = len(nodes)
            nodes.append(node)
            parents.append(outer)
    return _Kept(nodes, parents, index_of)


def _libraries(stacks: Stacks, columns: Sequence[HeldStacks]) -> Dict[str, int]:
    """The largest, and their places in a list."""
    sums: Dict[str, int] = {}
    for held in columns:
        for place, n_bytes in zip(held.place, held.bytes):
            library = stacks.places[place].library
            sums[library] = sums.get(library, 0) + n_bytes
    largest = sorted(sums, key=lambda library: (-sums[library], library))[:_MAX_LIBRARIES]
    return {library: place for place, library in enumerate(largest)}


class _Cell(NamedTuple):
    node: int
    kind: str
    owner: str
    library: int
    is_folded: bool


def _frames(stacks: Stacks, used: Iterable[int]) -> Tuple[Dict[str, List[Any]], Dict[int, int]]:
    """The table, which begins with an empty row, and the place in it of each used frame."""
    places: Dict[int, int] = {}
    packages = {"": 0}
    table: Dict[str, List[Any]] = {"label": [""], "type": [""], "package": [0]}
    for index in used:
        if index in places:
            continue
        frame = stacks.frames[index]
        places[index] = len(table["label"])
        table["label"].append(shown(frame.name))
        table["type"].append("p" if frame.is_python else "n")
        table["package"].append(packages.setdefault(shown(frame.package), len(packages)))
    table["packages"] = list(packages)
    n_frames = len(table["label"])
    none = [0] * n_frames
    return dict(table, library=none, libraries=[""], around=none, arounds=[""]), places


def stacks_data(difference: Difference, stacks: Stacks) -> RunData:
    """The stacks of all columns; runs must have been measured with these. Raises TooLarge."""
    columns = _held(difference)
    kept = _kept(stacks, columns)
    library_index = _libraries(stacks, columns)
    cells: Dict[_Cell, int] = {}
    n_places: List[int] = []
    cell_of: Dict[int, int] = {}
    for place in sorted(set(chain.from_iterable(held.place for held in columns))):
        node, kind, owner, library = stacks.places[place]
        index = kept.index_of[node]
        is_folded = kept.nodes[index] != node
        key = _Cell(index, kind, owner, library_index.get(library, _MAX_LIBRARIES), is_folded)
        cell = cell_of[place] = cells.setdefault(key, len(cells))
        if cell == len(n_places):
            n_places.append(0)
        n_places[cell] += is_folded
    kinds = [kind for kind in KINDS if any(cell.kind == kind for cell in cells)]
    owners = sorted({cell.owner for cell in cells})
    frames, frame_places = _frames(stacks, (stacks.frame[node] for node in kept.nodes[1:]))
    packed = Columns()
    packed.add("node.parent", kept.parents)
    packed.add("node.frame", [0] + [frame_places[stacks.frame[node]] for node in kept.nodes[1:]])
    packed.add("cell.node", [cell.node for cell in cells])
    packed.add("cell.kind", [kinds.index(cell.kind) for cell in cells])
    packed.add("cell.owner", [owners.index(cell.owner) for cell in cells])
    packed.add("cell.library", [cell.library for cell in cells])
    packed.add("cell.places", n_places)
    for name in ("role", "line", "through", "inherited", "thread"):
        packed.add(f"cell.{name}", [0] * len(cells))
    _rows(columns, cell_of, len(cells), packed)
    head = {
        "unit": "ms",
        "is_discrete": difference.is_discrete,
        "kinds": [{"name": kind, "side": side_of(kind) or ""} for kind in kinds],
        "owners": [
            {"name": owner, "group": stacks.group_of.get(owner, OTHER), "about": OWNERS.get(owner, "")}
            for owner in owners
        ],
        "groups": list(GROUPS + (OTHER,)),
        "roles": [""],
        "libraries": [shown(library) for library in library_index] + [OTHER_LIBRARIES],
        "threads": [""],
        "lines": {"label": [""], "function": [""], "path": [""], "source": [""], "changed": [], "through": [[]]},
        "frames": frames,
        "leaks": None,
        "sizes": None,
        "reasons": ["column"],
        "at": {"first": len(columns) - 1, "peak": len(columns) - 1, "end": -1},
        "peaks": {},
        "columns": packed.specs,
    }
    return RunData(head, packed.bytes())


def _rows(columns: Sequence[HeldStacks], cell_of: Dict[int, int], n_cells: int, packed: Columns) -> None:
    """A moment a column: how each cell differs from the column before."""
    figures = [(array("q", bytes(8 * n_cells)), array("q", bytes(8 * n_cells)))]
    rows: Tuple[List[int], List[int], List[int]] = ([], [], [])
    numbers = []
    for held in columns:
        n_bytes, n_blocks = array("q", bytes(8 * n_cells)), array("q", bytes(8 * n_cells))
        for place, live_bytes, blocks in zip(held.place, held.bytes, held.blocks):
            n_bytes[cell_of[place]] += live_bytes
            n_blocks[cell_of[place]] += blocks
        before_bytes, before_blocks = figures[-1]
        previous, n_rows = 0, len(rows[0])
        for cell in range(n_cells):
            grown, made = n_bytes[cell] - before_bytes[cell], n_blocks[cell] - before_blocks[cell]
            if grown or made:
                for column, value in zip(rows, (cell - previous, fold(grown), fold(made))):
                    column.append(value)
                previous = cell
        numbers.append(len(rows[0]) - n_rows)
        figures.append((n_bytes, n_blocks))
    packed.add("row.cell", rows[0])
    packed.add("row.bytes", rows[1], "signed")
    packed.add("row.blocks", rows[2], "signed")
    packed.add("row.allocated", [0] * len(rows[0]), "signed")
    packed.add("moment.rows", numbers)
    for name in ("time", "id", "reason"):
        packed.add(f"moment.{name}", [0] * len(columns))


def _safe(value: Any) -> Any:
    """With every text fit to be shown, and figures that JavaScript has exactly. Raises TooLarge."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        return {shown(key): _safe(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_safe(inner) for inner in value]
    if isinstance(value, int) and abs(value) >= MAX_EXACT:
        raise TooLarge("a figure is beyond 8 PiB, which a page cannot show exactly")
    return value


def _common(difference: Difference) -> List[List[str]]:
    """Facts that are the same in all runs: names and texts, but for options, environment and packages."""
    first, *others = [run.facts for column in difference.columns for run in column.runs]
    return [
        [shown(label(key)), shown(value)]
        for key, value in first.items()
        if value and "." not in key and all(facts.get(key, "") == value for facts in others)
    ]


def comparison(difference: Difference) -> Dict[str, Any]:
    """The JSON format's object, with ladders as text has them, facts of all runs, and the runs of the stacks. Raises TooLarge."""
    data = as_json(difference)
    for column in data["columns"]:
        for run in column["runs"]:
            del run["facts"]
    for ladder, view in zip(data["ladders"], difference.ladders):
        ladder.update(ladder_table(difference, view)._asdict(), data=ladder["rows"])
    found: Dict[str, Any] = _safe(data)
    for fact, row in zip(difference.facts, found["facts"]):
        row["is_detail"] = is_redundant(fact.key) or "." in fact.key
    for column, row in zip(difference.columns, found["columns"]):
        row["stacks_of"] = shown(column.typical.name)
    found["common"], found["headline"] = _common(difference), _texts(difference)
    return found
