# SPDX-License-Identifier: GPL-2.0-or-later
"""Mapped memory as the page is told it: at every moment, the figures of the text report."""

from typing import Dict, List, Tuple

from jmassif.analysis.system import mappings
from jmassif.analysis.moments import select
from jmassif.attribution.names import Names
from jmassif.html.cells import Columns, cells
from jmassif.html.data import MappedFigures, RunData, mapped
from jmassif.html.head import Packed, run_head
from jmassif.model.run import Profile
from tests.reporter.test_page_data import column
from tests.reporter.traces import Trace, small_training_run

MIB = 1 << 20

Named = Dict[Tuple[str, str], Tuple[int, ...]]


def pages(trace: Trace, account: int, virtual: int, shared: int = 0, swapped: int = 0) -> None:
    """In the snapshot that was written last."""
    trace.lines.insert(-1, f"v {account} {virtual} {shared} {swapped}")


def mapping_run() -> Trace:
    """Two libraries; of one the file is resident in parts, and at the peak, at 15, less of it than afterwards."""
    trace = Trace(command="mapping", time_unit="ms", **{"option.pages": "yes"})
    file = trace.account("file", "cudnn", ["mapped (libcudnn.so.8)", "main (a.c:1)"])
    more = trace.account("file", "cudnn", ["mapped (libcudnn.so.8)", "main (a.c:2)"])
    anon = trace.account("anon", "app", ["mmap (a.out)", "main (a.c:3)"])
    heap = trace.account("heap", "app", ["malloc (a.out)", "main (a.c:4)"])
    trace.snapshot(10, "time", {file: (2 * MIB, 1), anon: (MIB, 1), heap: (7 * MIB, 1)})
    pages(trace, file, 9 * MIB, MIB)
    pages(trace, anon, 8 * MIB, MIB, 5)
    trace.snapshot(
        20, "time", {file: (3 * MIB, 1), more: (MIB, 1)}, {"total": (15, {file: (2 * MIB, 1), heap: (90 * MIB, 2)})}
    )
    pages(trace, more, 0)
    trace.snapshot(30, "time", {file: (0, 0), more: (0, 0), anon: (MIB, 1)})
    pages(trace, file, 0)
    return trace


def copying_run() -> Trace:
    """A private mapping has copied 8 MiB of a file of 24; another process maps the rest, too."""
    trace = Trace(command="copying", time_unit="ms", **{"option.pages": "yes"})
    file = trace.account("file", "model", ["mapped-data (/a/w.safetensors)", "main (a.c:1)"])
    copies = trace.account("anon", "model", ["mapped-data (/a/w.safetensors)", "main (a.c:1)"])
    trace.snapshot(10, "time", {file: (24 * MIB, 1)})
    pages(trace, file, 24 * MIB, 12 * MIB)
    trace.snapshot(20, "time", {file: (16 * MIB, 1), copies: (8 * MIB, 1)})
    pages(trace, file, 24 * MIB, 16 * MIB)
    return trace


def test_the_share_of_copied_pages_goes_with_them() -> None:
    profile = copying_run().load()
    assert told(profile) == [model(profile, when) for when in ("1", "2")]
    assert told(profile)[0] == {("w.safetensors", "file"): (24 * MIB, 24 * MIB, 12 * MIB, 0)}
    assert told(profile)[1] == {
        ("w.safetensors", "file"): (16 * MIB, 24 * MIB, 8 * MIB, 0),
        ("w.safetensors", "anon"): (8 * MIB, 8 * MIB, 8 * MIB, 0),
    }


def model(profile: Profile, when: str) -> Named:
    rows = mappings(profile, Names(profile), select(profile, when))
    return {(row.name, row.kind): (row.resident, *row.pages) for row in rows if row.resident or row.pages.virtual}


def told(profile: Profile) -> List[Named]:
    """By moment."""
    columns = Columns()
    names = mapped(profile, cells(profile, Names(profile)), columns)
    run = RunData(run_head(Packed(columns.specs)), columns.bytes())
    rows = list(zip(*(column(run, f"mapped.{name}") for name in ("name", *MappedFigures._fields))))
    now: Named = {}
    found = []
    for n_rows in column(run, "mapped.rows"):
        for name, *figures in rows[:n_rows]:
            library, kind = names[name]
            now[library, kind] = tuple(figures)
        del rows[:n_rows]
        found.append({name: figures for name, figures in now.items() if figures[0] or figures[1]})
    assert not rows
    return found


def test_mapped_memory_is_the_models_at_every_moment() -> None:
    profile = mapping_run().load()
    assert told(profile) == [model(profile, when) for when in ("1", "peak", "2", "3")]
    # A mapping of which no size is told is at least as large as what is resident of it.
    assert told(profile)[2]["libcudnn.so.8", "file"] == (4 * MIB, 10 * MIB, MIB, 0)
    assert told(profile)[3] == {("a.out", "anon"): (MIB, 8 * MIB, MIB, 5)}


def test_a_trace_without_pages_has_none() -> None:
    profile = small_training_run().load()
    assert not any(told(profile)) and not mapped(profile, cells(profile, Names(profile)), Columns())
