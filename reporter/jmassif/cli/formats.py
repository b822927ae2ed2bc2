# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of output formats: what each is called, which module writes it, and which options mean something to it."""

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from jmassif.attribution.views import LINE_VIEWS
from jmassif.export import csv, folded, job_range, json, massif, memory_viz, perfetto, pprof, speedscope
from jmassif.html import page as html
from jmassif.render import processes, range_diff as ranges, text as report
from jmassif.render.view import BY


TEXT = "text"
BINARY = "binary"
LARGE = "large"  # text that programs read
PAGE = "page"  # a browser's

# The options of what shows a tree of calls at a moment.
_TREE = ("snapshot", "threshold", "by", "fold")
# The options of jm_print that choose what is shown; each format says which of them it takes.
_OVERLAY = ("overlay", "overlay-offset", "overlay-interval", "overlay-start")
_RANGE = ("from", "to")
# What only looks at who held what may look at some of it.
_FILTERS = ("only", "except")
_VIEW_OPTIONS = (
    _FILTERS
    + _OVERLAY
    + _TREE
    + _RANGE
    + ("no-source", "source", "x", "y", "segments", "sizes", "calls-of", "value", "editor")
)

# Percent. A flame graph of a screen's width shows nothing smaller.
_FLAMES = 0.01

_LINES = tuple(LINE_VIEWS)
_TABLES = ("owner", "kind", "library", "role", "thread") + _LINES


class Format(NamedTuple):
    name: str
    help: str  # a line: what opens it
    content: str  # one of those above
    # From a profile and a view to lines or bytes.
    write: Callable[..., Any]
    options: Tuple[str, ...]
    by: Tuple[str, ...] = ()  # what --by may be, the default first
    threshold: Optional[float] = None  # percent, by default; None: the recorder's
    fold: Optional[str] = None  # what --fold is by default; None: "internal" in views by line, and "none" in trees
    # From several processes' traces (processes.Processes), what makes a view of each, and whether each is reported on; None:
    # the format shows one process.
    write_several: Optional[Callable[..., Any]] = None
    # From several processes' traces, what makes a view of each, and whether each is shown, a range over all of them; None: likewise.
    write_range: Optional[Callable[..., Any]] = None
    check: Callable[[], Any] = lambda: None  # before a trace is read; raises view.FormatError
    remark: Callable[..., str] = lambda profile, view: ""  # what to say of what was written, on standard error

    def does_not_take(self, given: Tuple[str, ...]) -> Optional[str]:
        """The first of the options given that means nothing here."""
        return next((name for name in given if name in _VIEW_OPTIONS and name not in self.options), None)


_ALL = (
    Format(
        "text",
        "a report for a terminal",
        TEXT,
        report.write,
        _VIEW_OPTIONS[:-2],
        BY,
        fold="internal",
        write_several=processes.write,
        write_range=ranges.write,
    ),
    Format(
        "html",
        "a browser: one page, with everything in it",
        PAGE,
        html.write,
        _FILTERS + ("no-source", "source", "editor") + _OVERLAY,
        write_several=html.write_several,
        check=html.read_assets,
    ),
    Format("massif", "ms_print, massif-visualizer", TEXT, massif.write, _TREE, BY),
    Format(
        "json",
        "programs: the whole run, a documented schema",
        LARGE,
        json.write,
        _FILTERS + ("snapshot", "by", "fold", "sizes") + _OVERLAY + _RANGE,
        _TABLES,
        write_range=job_range.write,
    ),
    Format(
        "csv", "spreadsheets: a table, also over time", TEXT, csv.write, _FILTERS + ("snapshot", "by", "fold"), _TABLES
    ),
    Format(
        "folded",
        "flamegraph.pl",
        TEXT,
        folded.write,
        _FILTERS + _TREE + _RANGE + ("value",),
        BY,
        threshold=_FLAMES,
        write_range=folded.write_range,
    ),
    Format(
        "speedscope",
        "speedscope",
        LARGE,
        speedscope.write,
        _FILTERS + _TREE + _RANGE + ("value",),
        BY,
        threshold=_FLAMES,
        write_range=speedscope.write_range,
    ),
    Format("pprof", "go tool pprof, Pyroscope, Parca", BINARY, pprof.write, _FILTERS + ("snapshot",)),
    Format(
        "perfetto", "ui.perfetto.dev, chrome://tracing", LARGE, perfetto.write, ("threshold", "by", "fold"), _TABLES
    ),
    Format(
        "memory-viz",
        "PyTorch's memory_viz: what lies where on the device, and each step up to there",
        BINARY,
        memory_viz.write,
        ("snapshot", "segments", "by"),
        ("stack", "owner", "role"),
        remark=memory_viz.remark,
    ),
)

FORMATS: Dict[str, Format] = {format_.name: format_ for format_ in _ALL}
