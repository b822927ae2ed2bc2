# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything the page knows of a run, as one JSON object and the columns it names.

Its fields are those of RunHead in reporter/web/src/runs/data.js, and docs/page.md says what is in the columns. Every text is
fit to be shown and of a bearable length.
"""

from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.model.kinds import GROUPS, HANDLE_KINDS, KINDS, PEAKS, ROLES, side_of
from jmassif.model.profile import Profile
from jmassif.questions.about import about, where_arenas_are
from jmassif.questions.answer import answer
from jmassif.questions.blocks import blocks
from jmassif.questions.job.processes import Processes
from jmassif.questions.headline import Headline, as_data, headline
from jmassif.questions.leaks import as_data as leaks_data
from jmassif.questions.ledger import hottest_temporaries, ledger
from jmassif.questions.oddities import counted
from jmassif.questions.moments import main_peak, select
from jmassif.questions.overlay import overlay_at
from jmassif.questions.reconciliation import BEFORE, BESIDE_LEDGER, BESIDE_PROCESS, books, doubts, sampled
from jmassif.whose.names import NO_TENSOR, Names
from jmassif.whose.owners import OWNERS
from jmassif.whose.sites import base_name
from jmassif.writers.editor import Editor
from jmassif.writers.page.attributes import NO_LINE, OTHERS
from jmassif.writers.page.cells import Cells, cells
from jmassif.writers.page.code import Code
from jmassif.writers.page.columns import Columns
from jmassif.writers.page.exhaustion import exhaustion
from jmassif.writers.page.history import events, machine_figures, scopes
from jmassif.writers.page.mapped import MappedFigures, mapped
from jmassif.writers.page.others import others
from jmassif.writers.page.sizes import sizes
from jmassif.writers.page.texts import shown
from jmassif.writers.sources import Sources

_MAX_TEMPORARIES = 100
_MAX_COUNTS = 200
_MAX_TIMELINE_ROWS = 20000


class RunData(NamedTuple):
    head: Dict[str, Any]  # fit for JSON
    columns: bytes  # what head["columns"] describes


class _Index:
    """Gives values their places in a list, in the order in which they come."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self.places: Dict[Any, int] = {}
        for value in values:
            self.place(value)

    def place(self, value: Any) -> int:
        return self.places.setdefault(value, len(self.places))

    @property
    def values(self) -> List[Any]:
        return list(self.places)


# Directories of sources, as view.View has them.
_Source = Optional[Sequence[str]]

# ---- where memory was allocated --------------------------------------------------------------


def _frames(
    profile: Profile, names: Names, frames: Sequence[int], directories: _Source, editor: Optional[Editor]
) -> Dict[str, List[Any]]:
    """Columns, by place in `frames`. The first stands for no frame."""
    packages, libraries = _Index([""]), _Index([""])
    code = Code(profile, directories, editor)
    table: Dict[str, List[Any]] = {"label": [""], "type": [""], "package": [0], "library": [0], "line": [0]}
    for frame in frames[1:]:
        fields = profile.frame(frame)
        code.add(fields)
        table["label"].append(shown(names.frame(frame)))
        table["type"].append(fields.type)
        table["package"].append(packages.place(shown(names.folding.internal(frame).package)))
        table["library"].append(libraries.place(shown(base_name(fields.object))))
        table["line"].append(fields.line)
    table["packages"] = packages.values
    table["libraries"] = libraries.values
    return {**table, **code.columns}


def _lines(
    profile: Profile, names: Names, frames: Sequence[int], directories: _Source, editor: Optional[Editor]
) -> Dict[str, List[Any]]:
    """Columns, by place in `frames`, of the Python lines that memory is charged to."""
    sources = Sources(profile, directories or ())
    table: Dict[str, List[Any]] = {"label": [], "function": [], "path": [], "source": [], "around": [], "open": []}
    home = profile.manifest.get("cwd", "")
    changed: Dict[str, None] = {}
    for frame in frames:
        if frame in (NO_LINE, OTHERS):
            label = "(no Python line)" if frame == NO_LINE else "(other lines)"
            function = path = source = around = link = ""
        else:
            fields = profile.frame(frame)
            label = shown(f"{names.file(frame)}:{fields.line}")
            function, path = shown(fields.function), shown(fields.file)
            source = "" if directories is None else shown(sources.line(fields.file, fields.line))
            around = sources.around(fields.file, fields.line) if source else ""
            link = editor.link(fields.file, fields.line, home) if editor else ""
            if source and fields.file in sources.changed:
                changed[shown(names.file(frame))] = None
        for name, text in zip(table, (label, function, path, source, around, link)):
            table[name].append(text)
    table["changed"] = list(changed)
    return table


def _kind(profile: Profile, kind: str) -> Dict[str, Any]:
    is_sampled, is_handle = profile.is_sampled(kind), kind in HANDLE_KINDS
    return {"name": kind, "side": side_of(kind) or "", "is_sampled": is_sampled, "is_handle": is_handle}


def _cells(
    profile: Profile, names: Names, found: Cells, directories: _Source, editor: Optional[Editor], columns: Columns
) -> Dict[str, Any]:
    """The cells, what they are grouped by, and how they change."""
    frame_index = _Index([0])
    columns.add("node.parent", found.parents)
    columns.add("node.frame", [frame_index.place(profile.node_frame[node]) for node in found.nodes])
    used = found.attributes
    kinds = [kind for kind in KINDS if any(row.kind == kind for row in used)]
    owners = sorted({row.owner for row in used})
    roles = sorted({row.role for row in used}, key=lambda role: (ROLES + (role,)).index(role))
    libraries, threads = sorted({row.library for row in used}), sorted({row.thread for row in used})
    lines = _Index(row.line for row in used)
    sets = _Index(row.through for row in used)
    through = [tuple(map(lines.place, frames)) for frames in sets.values]
    # The names of fields of cells.Attributes.
    per_cell = [
        ("kind", _Index(kinds)),
        ("owner", _Index(owners)),
        ("role", _Index(roles)),
        ("library", _Index(libraries)),
        ("thread", _Index(threads)),
        ("line", lines),
        ("through", sets),
    ]
    for name, index in per_cell:
        places = [index.places[getattr(row, name)] for row in used]
        columns.add(f"cell.{name}", [places[cell.attributes] for cell in found.cells])
    columns.add("cell.node", [cell.node for cell in found.cells])
    columns.add("cell.places", [cell.places for cell in found.cells])
    columns.add("cell.inherited", [int(cell.is_inherited) for cell in found.cells])
    if profile.chosen is not None:
        columns.add("cell.chosen", [int(used[cell.attributes].is_chosen) for cell in found.cells])
    columns.add("row.cell", found.cell)
    for name, rows in (("bytes", found.live_bytes), ("blocks", found.live_blocks), ("allocated", found.allocated)):
        columns.add(f"row.{name}", rows, "signed")
    return {
        "kinds": [_kind(profile, kind) for kind in kinds],
        "owners": [
            {"name": owner, "group": profile.group_of.get(owner, "other"), "about": OWNERS.get(owner, "")}
            for owner in owners
        ],
        "groups": list(GROUPS + ("other",)),
        "roles": [role if role != NO_TENSOR else "" for role in roles],
        "libraries": [shown(library) for library in libraries],
        "threads": [shown(thread) for thread in threads],
        "lines": dict(
            _lines(profile, names, lines.values, directories, editor), through=[list(row) for row in through]
        ),
        "frames": _frames(profile, names, frame_index.values, directories, editor),
        "accounts": len(profile.accounts) - 1,
        "nodes": len(profile.node_frame) - 1,
    }


# ---- time ------------------------------------------------------------------------------------


def _moments(profile: Profile, found: Cells, columns: Columns) -> Dict[str, Any]:
    """The snapshots and peaks in order, and where the headline and the leaks are among them."""
    columns.add("moment.time", [moment.time for moment in found.moments])
    columns.add("moment.rows", [moment.n_rows for moment in found.moments])
    columns.add(
        "moment.id",
        [0 if moment.snapshot is None else profile.snapshots[moment.snapshot].id for moment in found.moments],
    )
    reasons = [
        f"peak-{moment.peak}" if moment.snapshot is None else profile.snapshots[moment.snapshot].reason
        for moment in found.moments
    ]
    kinds = sorted(set(reasons))
    columns.add("moment.reason", [kinds.index(reason) for reason in reasons])
    peaks = {}
    for index, moment in enumerate(found.moments):
        if moment.peak:
            peak = profile.peaks[moment.peak]
            peaks[moment.peak] = {"moment": index, "time": peak.time, "host": peak.host, "device": peak.device}
    at = {"peak": -1, "end": -1, "before_clean_up": -1, "exit": -1}
    for name in ("peak", "end"):
        chosen = select(profile, name)
        for index, moment in enumerate(found.moments):
            is_it = (
                moment.snapshot == chosen.snapshot if chosen.snapshot is not None else moment.peak == main_peak(profile)
            )
            if profile.snapshots and is_it:
                at[name] = index
    if profile.snapshots and profile.snapshots[-1].reason == "exit":
        at["exit"] = len(found.moments) - 1
    for index, moment in enumerate(found.moments):
        if moment.snapshot is not None and profile.snapshots[moment.snapshot].reason == "end":
            at["before_clean_up"] = index
    return {"reasons": kinds, "peaks": peaks, "at": at}


# In the order of the sum; the ledger stands between the first and the second, and is in the cells.
_BOOKS = (BEFORE, *BESIDE_LEDGER, *BESIDE_PROCESS)


def _books(profile: Profile, found: Cells) -> List[Dict[str, Any]]:
    """The books of the whole machine, for each moment that has them."""
    index_of = {moment.snapshot: index for index, moment in enumerate(found.moments) if moment.snapshot is not None}
    rows = []
    for snapshot in sampled(profile):
        made = books(profile, snapshot)
        row: Dict[str, Any] = {
            "moment": index_of[snapshot],
            "board": made.board,
            "held": made.held,
            "doubts": doubts(made),
        }
        row["names"] = {each.field: each.named(made) for each in _BOOKS}
        row["notes"] = {each.field: each.told(made) for each in _BOOKS}
        row.update((each.field, each.bytes(made)) for each in _BOOKS)
        rows.append(row)
    return rows


def _timeline(profile: Profile, columns: Columns) -> None:
    """The totals between snapshots. Of very many, the fullest of each of as many equal runs as are kept."""
    timeline = profile.timeline
    n_rows = len(timeline.time)
    rows: Sequence[int] = range(n_rows)
    if n_rows > _MAX_TIMELINE_ROWS:
        bounds = [place * n_rows // _MAX_TIMELINE_ROWS for place in range(_MAX_TIMELINE_ROWS + 1)]
        rows = [max(range(a, b), key=timeline.maximum.__getitem__) for a, b in zip(bounds, bounds[1:])]
    for name, column in zip(("time", "host", "device", "maximum"), timeline):
        columns.add(f"timeline.{name}", [column[row] for row in rows])


def _mapped(profile: Profile, found: Cells, columns: Columns) -> List[List[str]]:
    """The names that mapped memory goes by: library and kind."""
    changes = mapped(profile, found)
    columns.add("mapped.rows", changes.n_rows)
    columns.add("mapped.name", changes.name)
    for place, name in enumerate(MappedFigures._fields):
        columns.add(f"mapped.{name}", [figures[place] for figures in changes.figures])
    return [[shown(library), kind] for library, kind in changes.names]


# ---- blocks ----------------------------------------------------------------------------------


def _blocks(profile: Profile, found: Cells, share: float, columns: Columns) -> Dict[str, Any]:
    kept = blocks(profile, max(1, int(share * 20000)))
    columns.add("block.begin", [block.begin for block in kept.rows])
    columns.add("block.end", [block.end for block in kept.rows])
    columns.add("block.born", [block.born for block in kept.rows])
    columns.add("block.died", [block.died for block in kept.rows])
    columns.add("block.came", [block.came for block in kept.rows])
    columns.add("block.went", [block.went for block in kept.rows])
    columns.add("block.bytes", [block.bytes for block in kept.rows])
    columns.add("block.address", [block.address for block in kept.rows], "address")
    columns.add("block.cell", [found.cell_of[block.account] for block in kept.rows])
    return {
        "blocks_left_out": [kept.n_left_out, kept.left_out_bytes],
        "block_thresholds": [list(row) for row in profile.block_thresholds],
    }


def _temporaries(profile: Profile, names: Names, found: Cells) -> List[Dict[str, Any]]:
    rows = []
    for churn in hottest_temporaries(profile, _MAX_TEMPORARIES):
        _, kind, owner = profile.accounts[churn.account]
        rows.append(
            {
                "site": shown(names.site(churn.account) or "(memory without a stack)"),
                "kind": kind,
                "owner": owner,
                "temporaries": churn.temporaries,
                "blocks": churn.blocks,
                "bytes": churn.bytes,
                "cell": found.cell_of[churn.account],
            }
        )
    return rows


# ---- the run ---------------------------------------------------------------------------------


def _about(profile: Profile) -> Dict[str, Any]:
    failures = sorted(profile.failures.items(), key=lambda item: (-item[1], item[0]))
    counters = counted(profile)
    return {
        "facts": [[name, shown(text)] for name, text in about(profile)],
        "manifest": [[shown(key), shown(text)] for key, text in sorted(profile.manifest.items())],
        "failures": [{"name": shown(name), "code": code, "calls": n} for (name, code), n in failures[:_MAX_COUNTS]],
        "counters": [[shown(key), n] for key, n in counters.odd[:_MAX_COUNTS]],
        "without_size": [list(row) for row in counters.without_size],
        "notes": [note for note in [where_arenas_are(profile)] if note],
        "truncation": shown(profile.truncation or ""),
        "is_complete": profile.is_complete,
    }


def _answers(profile: Profile, names: Names) -> Dict[str, str]:
    """Where the memory went at each of the moments that have a name, in words."""
    texts: Dict[str, str] = {}
    for name in ("peak", "end") + tuple(f"peak-{which}" for which in PEAKS if which in profile.peaks):
        if name == "peak-total":
            if not profile.is_discrete:
                texts[name] = texts["peak"]
            continue
        chosen = select(profile, name)
        texts[name] = answer(profile, names, chosen.composition, ledger(profile, chosen.composition))
    return texts


def together(job: Processes, made: Headline) -> Dict[str, Any]:
    """What the processes of a job held together, with what forks share counted once. Times are on the common clock."""
    rows = job.timeline()
    step = len(rows) // _MAX_TIMELINE_ROWS + 1
    runs = [rows[at : at + step] for at in range(0, len(rows), step)]
    return {
        "headline": as_data(made),
        "no_clock": shown(job.no_clock),
        "time": [run[-1].time for run in runs],
        "host": [run[-1].host for run in runs],
        "device": [run[-1].device for run in runs],
        "maximum": [max(row.maximum for row in run) for run in runs],
        "peaks": {which: job.peak(which)._asdict() for which in PEAKS},
    }


def run_data(
    profile: Profile,
    share: float = 1.0,
    directories: _Source = (),
    offset: int = 0,
    has_parent: bool = False,
    names: Optional[Names] = None,
    editor: Optional[Editor] = None,
) -> RunData:
    """What the page knows of one process, with that share of a page's budget. Raises columns.TooLarge.

    `offset` is what its times are behind the clock that the page's processes have in common; see cells() for `has_parent`.
    """
    names = names or Names(profile)
    columns = Columns()
    found = cells(profile, names, share, has_parent)
    head: Dict[str, Any] = {
        "offset": offset,
        "pid": shown(profile.manifest.get("pid", "")),
        "command": shown(profile.manifest.get("command", "")),
        "unit": profile.time_unit,
        "is_discrete": profile.is_discrete,
        "end_time": profile.end.time if profile.end else None,
        "board_bytes": profile.number("mem-total-bytes"),
        "headline": as_data(headline(profile, names)),
        "answers": _answers(profile, names),
        "leaks": leaks_data(profile, names),
        "temporaries": _temporaries(profile, names, found),
        "sizes": sizes(profile, names),
        "filter": shown(profile.chosen_by),
    }
    head.update(_cells(profile, names, found, directories, editor, columns))
    head.update(_moments(profile, found, columns))
    head["books"] = _books(profile, found)
    head["others"] = [{**row, "tool": shown(row["tool"])} for row in others(profile, found)]
    chosen = select(profile, "peak")
    head["overlay"] = overlay_at(profile, chosen) if profile.snapshots else ""
    head["exhaustion"] = exhaustion(profile, names)
    head.update(events(profile))
    head.update(scopes(profile))
    head.update(_blocks(profile, found, share, columns))
    head.update(_about(profile))
    head["mapped"] = _mapped(profile, found, columns)
    head.update(machine_figures(profile, columns))
    _timeline(profile, columns)
    head["columns"] = columns.specs
    return RunData(head, columns.bytes())
