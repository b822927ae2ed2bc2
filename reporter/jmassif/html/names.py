# SPDX-License-Identifier: GPL-2.0-or-later
"""Names that cells are grouped by: all runs of a page share them, and the cells of each run refer to them by their places."""

from collections import Counter
from itertools import chain
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from jmassif.analysis.other_tools import ALLOCATED_OWNERS
from jmassif.attribution.blame import base_name
from jmassif.attribution.names import NO_TENSOR, Names
from jmassif.html import head
from jmassif.html.cells import NO_LINE, OTHERS, Cells, Columns, Index, index_of, shown, source_around
from jmassif.model.records import GROUPS, HANDLE_KINDS, KINDS, ROLES, side_of
from jmassif.model.run import Profile
from jmassif.render.sources import Sources
from jmassif.render.words import OWNERS

_MAX_SOURCE_BYTES = 400_000  # before they are deflated; beyond, frames have none


class SharedNames:
    """Each name has a place, in the order in which they come."""

    def __init__(self) -> None:
        self.kind, self.owner, self.role, self.library, self.thread = Index(), Index(), Index(), Index(), Index()
        self.line, self.through = Index(), Index()  # of columns of head.Lines, and of sets of lines
        self.frame = index_of([("", "", 0, 0, 0)])  # of columns of head.Frames; the first stands for no frame
        self.package, self.object, self.around = index_of([""]), index_of([""]), index_of([""])
        self._group_of: Dict[str, str] = {}
        self._changed: Dict[str, None] = {}
        self._n_source_bytes = 0

    def add_groups(self, profile: Profile) -> None:
        self._group_of = {**profile.group_of, **self._group_of}

    def frames(self, profile: Profile, names: Names, frames: Sequence[int], sources: Optional[Sources]) -> List[int]:
        """Their places."""
        places = []
        for frame in frames:
            fields = profile.frame(frame)
            around = source_around(sources, fields)
            if around not in self.around:
                self._n_source_bytes += len(around)
                around = around if self._n_source_bytes <= _MAX_SOURCE_BYTES else ""
            package = self.package[shown(names.folding.internal(frame).package)]
            library = self.object[shown(base_name(fields.object))]
            row = (shown(names.frame(frame)), fields.type, package, library, self.around[around])
            places.append(self.frame[row])
        return places

    def line_of(self, profile: Profile, names: Names, frame: int, sources: Optional[Sources]) -> int:
        """The place of a Python line that memory is charged to."""
        if frame in (NO_LINE, OTHERS):
            return self.line["(no Python line)" if frame == NO_LINE else "(other lines)", "", "", "", ""]
        fields = profile.frame(frame)
        source = shown(sources.line(fields.file, fields.line)) if sources else ""
        around = source_around(sources, fields) if source else ""
        if sources and source and fields.file in sources.changed:
            self._changed[shown(names.file(frame))] = None
        label = shown(f"{names.file(frame)}:{fields.line}")
        return self.line[label, shown(fields.function), shown(fields.file), source, around]

    def _groups(self) -> Iterator[Tuple[str, int]]:
        """Of each owner the group, and its place among all owners of that, whichever hold anything."""
        known: Dict[str, List[str]] = {}
        for owner in (*self._group_of, *self.owner):
            of_group = known.setdefault(self._group_of.get(owner, "other"), [])
            if owner not in of_group:
                of_group.append(owner)
        for owner in self.owner:
            group = self._group_of.get(owner, "other")
            yield group, known[group].index(owner)

    def cell_names(self) -> head.CellNames:
        columns = [[row[field] for row in self.frame] for field in range(5)]
        lines = [[row[field] for row in self.line] for field in range(5)]
        times = Counter(lines[0])
        lines[0] = [f"{label} ({function})" if times[label] > 1 else label for label, function in zip(*lines[:2])]
        through = [list(places) for places in self.through]
        return head.CellNames(
            [head.Kind(kind, side_of(kind) or "", kind in HANDLE_KINDS) for kind in self.kind],
            [
                head.Owner(owner, group, OWNERS.get(owner, ""), owner in ALLOCATED_OWNERS, place)
                for owner, (group, place) in zip(self.owner, self._groups())
            ],
            list(GROUPS + ("other",)),
            list(self.role),
            list(self.library),
            list(self.thread),
            head.Lines._make([*lines, list(self._changed), through]),
            head.Frames._make([*columns, list(self.package), list(self.object), list(self.around)]),
        )


def cells_data(
    profile: Profile,
    names: Names,
    found: Cells,
    sources: Optional[Sources],
    columns: Columns,
    shared: SharedNames,
) -> None:
    """The cells, what they are grouped by, and how they change."""
    columns.add("node.parent", found.parents)
    frames = index_of(profile.node_frame[node] for node in found.nodes[1:])
    place_of = dict(zip(frames, shared.frames(profile, names, list(frames), sources)))
    columns.add("node.frame", [0, *(place_of[profile.node_frame[node]] for node in found.nodes[1:])])
    shared.add_groups(profile)
    used = found.attributes
    line_of = {row.line: shared.line_of(profile, names, row.line, sources) for row in used}
    for frame in chain.from_iterable(row.through for row in used):
        line_of[frame] = shared.line_of(profile, names, frame, sources)
    by_name: Dict[str, List[int]] = {
        "kind": shared.kind.places((row.kind for row in used), KINDS.index),
        "owner": shared.owner.places(row.owner for row in used),
        "role": shared.role.places((row.role if row.role != NO_TENSOR else "" for row in used), (*ROLES, "").index),
        "library": shared.library.places(shown(row.library) for row in used),
        "thread": shared.thread.places(shown(row.thread) for row in used),
        "line": [line_of[row.line] for row in used],
        "through": [shared.through[tuple(map(line_of.__getitem__, row.through))] for row in used],
    }
    for name, places_of in by_name.items():
        columns.add(f"cell.{name}", [places_of[cell.attributes] for cell in found.cells])
    columns.add("cell.node", [cell.node for cell in found.cells])
    columns.add("cell.places", [cell.places for cell in found.cells])
    columns.add("cell.inherited", [int(cell.is_inherited) for cell in found.cells])
    if profile.chosen is not None:
        columns.add("cell.chosen", [int(used[cell.attributes].is_chosen) for cell in found.cells])
    columns.add("row.cell", found.cell)
    for name, rows in (("bytes", found.live_bytes), ("blocks", found.live_blocks), ("allocated", found.allocated)):
        columns.add(f"row.{name}", rows, "signed")
