# SPDX-License-Identifier: GPL-2.0-or-later
"""The JSON that the page of runs receives, as records. docs/contributing.md describes the columns that it names.

Every text is fit to be shown and of a bearable length. html/typescript.py writes the page's types from these records.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from jmassif.export.json import data
from jmassif.render.job import Statement


class ColumnSpec(NamedTuple):
    """A column of numbers, in planes: the lowest bytes of all rows come first."""

    type: str  # "number", "signed" or "address"
    rows: int
    planes: int
    at: int


# ---- cells -----------------------------------------------------------------------------------


class Kind(NamedTuple):
    name: str
    side: str  # "host", "device" or ""
    is_handle: bool


class Owner(NamedTuple):
    """`about` describes it, and is empty for an owner of the user's own rules. `place`: in its group, the same in all runs."""

    name: str
    group: str
    about: str
    is_tensors: bool  # its device memory is what its allocator has handed out
    place: int


class Frames(NamedTuple):
    """Columns. `arounds` are pieces of source, each around a line."""

    label: List[str]
    type: List[str]
    package: List[int]
    library: List[int]
    around: List[int]
    packages: List[str]
    libraries: List[str]
    arounds: List[str]


class Lines(NamedTuple):
    """Columns of Python lines. `through`: sets of lines that memory was called through, for `cell.through`."""

    label: List[str]
    function: List[str]
    path: List[str]
    source: List[str]
    around: List[str]
    changed: List[str]
    through: List[List[int]]


class CellNames(NamedTuple):
    """Names that cells are grouped by."""

    kinds: List[Kind]
    owners: List[Owner]
    groups: List[str]
    roles: List[str]
    libraries: List[str]
    threads: List[str]  # by name; "" alone without a record
    lines: Lines
    frames: Frames


# ---- time ------------------------------------------------------------------------------------


class Peak(NamedTuple):
    moment: int
    time: int
    host: int
    device: int


class ChosenMoments(NamedTuple):
    """Indices of moments, or -1. `first`: of the first screen."""

    first: int = -1
    peak: int = -1
    end: int = -1


class Moments(NamedTuple):
    reasons: List[str]
    peaks: Dict[str, Peak]
    at: ChosenMoments


class MachineFigure(NamedTuple):
    label: str
    rows: int
    worst: int  # bytes: the least of what is free, the most of what is used
    is_of_process: bool


class Mark(NamedTuple):
    time: int
    text: str


class Region(NamedTuple):
    text: str
    begin: int
    end: Optional[int]
    depth: int


class Scope(NamedTuple):
    name: str
    depth: int
    begin: int
    end: int


class Events(NamedTuple):
    machine: Sequence[MachineFigure] = ()
    short_at: Optional[int] = None  # when memory ran short
    marks: Sequence[Mark] = ()
    regions: Sequence[Region] = ()
    scopes: Sequence[Scope] = ()


# ---- figures of the report -------------------------------------------------------------------


class ShownRung(NamedTuple):
    """As the text report has it. `group`: of owners, or "others" for what is not the program's."""

    key: str
    role: str  # "shown", "sum", "less" or "plus"
    bytes: int
    label: str
    number: int
    group: str


class ShownLadder(NamedTuple):
    pool: str
    title: str
    note: str
    rows: List[ShownRung]


class ShownLine(NamedTuple):
    label: str
    path: str
    source: str
    tensors: int
    cache: int
    total: int


class NamedReport(NamedTuple):
    """The report's statements at a moment. `figures`: memory spaces, "" for both, and bytes; `space`: of the lines."""

    moment: int
    name: str
    when: str
    capacity: str
    space: str
    figures: List[Tuple[str, int]]
    statements: List[Statement]
    ladders: List[ShownLadder]
    lines: List[ShownLine]


TableCell = Union[int, float, str]


class ReadyTable(NamedTuple):
    """A table that follows no moment. `view`: the section that it is in; `limit`: rows that are shown until more are asked for.

    Columns have a head, and how their figures are shown ("" for a text, else as in charts/table.tsx).
    """

    view: str
    caption: str
    note: str
    limit: int
    columns: List[Tuple[str, str]]
    rows: List[List[TableCell]]
    total: List[TableCell]


class Balance(NamedTuple):
    """The machine's memory at a moment: `board` is the sum of the others, of which some may be negative.

    `names` and `notes` by field; a note says what a row is, or why it is negative.
    """

    moment: int
    board: int
    held: int
    doubts: List[str]
    names: Dict[str, str]
    notes: Dict[str, str]
    before: int
    untouched: int
    allocators: int
    valgrind: int
    unaccounted: int
    elsewhere: int
    free: int


class OtherFigure(NamedTuple):
    """A figure of another tool. `times` is null where the values are those of the moments."""

    tool: str
    figure: str
    leaves_out: str
    times: Optional[List[int]]
    values: List[int]


class DrawnSegment(NamedTuple):
    """`parts`: bytes and owner; "" for a hole."""

    address: str
    bytes: int
    free: int
    parts: List[Tuple[int, str]]


class Incident(NamedTuple):
    """An allocation that failed for lack of memory, with its further tries."""

    number: int
    time: int
    snapshot: int
    outcome: str
    verdict: str
    text: str
    helps: List[str]
    arithmetic: List[Tuple[str, int, str]]
    line: str
    stack: List[str]
    map: List[DrawnSegment]
    segments_left_out: int


class OutOfMemory(NamedTuple):
    incidents: Sequence[Incident] = ()
    not_shown: int = 0


class Figures(NamedTuple):
    reports: Sequence[NamedReport] = ()
    tables: Sequence[ReadyTable] = ()
    balances: Sequence[Balance] = ()
    balance_of: Sequence[int] = ()  # by moment
    others: Sequence[OtherFigure] = ()
    oom: OutOfMemory = OutOfMemory()
    mapped: Sequence[Tuple[str, str]] = ()  # library and kind
    blocks_left_out: Tuple[int, int] = (0, 0)
    block_thresholds: Sequence[Tuple[int, int]] = ()  # time and bytes


# ---- the run ---------------------------------------------------------------------------------


class About(NamedTuple):
    facts: Sequence[Tuple[str, str]] = ()
    notes: Sequence[Statement] = ()


class Identity(NamedTuple):
    unit: str  # of times: "ms", "i" or "B"
    is_discrete: bool
    offset: int = 0
    pid: str = ""
    key: str = ""  # of the run at its server: after exec the pid is the same
    command: str = ""
    end_time: Optional[int] = None
    board_bytes: Optional[int] = None
    filter: str = ""  # of --include and --exclude
    about: str = ""
    is_pytorch: bool = False


class Packed(NamedTuple):
    columns: Dict[str, ColumnSpec]
    columns_at: int = 0  # among those of all runs


RUN = (Identity, Figures, CellNames, Moments, Events, About, Packed)


def run_head(*parts: Union[Identity, Figures, CellNames, Moments, Events, About, Packed]) -> Dict[str, Any]:
    """The members of one record of each of RUN."""
    return {name: value for part in parts for name, value in data(part).items()}


class SumPeak(NamedTuple):
    bytes: int
    time: int


class Together(NamedTuple):
    """The sum of several processes, on the common clock. The first of the page's runs has the rest."""

    summary: List[Statement]
    peaks: Dict[str, SumPeak]


# ---- a fleet ---------------------------------------------------------------------------------


class FleetRuns(NamedTuple):
    """Columns, of the runs of a group. `report`: its address below the page's; "" or none where there is none."""

    host: List[str]
    board: List[str]
    file: List[str]
    start: List[str]
    report: List[str]


class FleetPage(NamedTuple):
    """A comparison of groups of runs. Tables of parts have these in order, a row a group; columns "PART.GROUP" the bytes in each run."""

    groups: List[str]
    parts: List[str]
    runs: List[FleetRuns]
    tables: List[ReadyTable]
