# SPDX-License-Identifier: GPL-2.0-or-later
"""The output formats: the function that writes each, which is imported when the format is chosen, and the options it supports."""

from importlib import import_module
from typing import Any, Dict, NamedTuple, Optional, Tuple

from jmassif.cli.common import Problem
from jmassif.render.view import BY

TEXT = "text"
BINARY = "binary"
LARGE = "large"  # text that programs read
PAGE = "page"  # for a browser

_TREE = ("snapshot", "threshold", "by", "fold")
_RANGE = ("from", "to")
_FILTERS = ("include", "exclude")
_SOURCE = ("source", "no-source")
# Options that choose what is shown. The others work with every format.
_CHOICES = _FILTERS + _TREE + _RANGE + _SOURCE + ("overlay", "width", "height", "segments", "sizes", "value", "pages")

_TABLES = tuple(view for view in BY if view != "stack")
_FLAMES = 0.01  # percent; a flame graph as wide as a screen shows nothing smaller


class Format(NamedTuple):
    name: str
    help: str  # a line: the programs that open it
    content: str  # one of those above
    module: str  # below jmassif; has `one`(run, view)
    options: Tuple[str, ...]
    by: Tuple[str, ...] = ()  # the values of --by, the default first
    threshold: Optional[float] = None  # percent; None: the recorder's
    fold: Optional[str] = None  # None: "internal" in views by line, and "none" in trees
    one: str = "write"
    # Functions that write several processes, and a range over several; "": the format has one process.
    several: str = ""
    several_in_range: str = ""

    def write(self, run: Any, view: Any) -> Any:
        """Lines, or bytes, of one run."""
        return self.function(self.one)(run, view)

    def function(self, name: str) -> Any:
        """A function of the format's module, or of another one as MODULE.NAME; None if there is none."""
        module, _, name = f"{self.module}.{name}".rpartition(".") if "." not in name else name.rpartition(".")
        return getattr(import_module(f"jmassif.{module}"), name, None)

    def check_option(self, option: str) -> None:
        """Raises Problem if the format does not support an option, named without dashes."""
        if option in _CHOICES and option not in self.options:
            supported = ", ".join(other.name for other in FORMATS.values() if option in other.options)
            raise Problem(f"--{option} is not supported by --format={self.name} (supported: {supported})")


_ALL = (
    Format(
        "text",
        "a report for a terminal",
        TEXT,
        "render.text",
        tuple(option for option in _CHOICES if option not in ("value", "pages")),
        BY,
        fold="internal",
        several="render.processes.write",
        several_in_range="render.range_diff.write",
    ),
    Format(
        "html", "a browser: one page", PAGE, "html.page", _FILTERS + _SOURCE + ("overlay",), several="write_several"
    ),
    Format("massif", "ms_print, massif-visualizer", TEXT, "export.massif", _TREE + ("pages",), BY),
    Format(
        "json",
        "programs: the whole run, with a schema",
        LARGE,
        "export.json",
        _FILTERS + ("snapshot", "by", "fold", "sizes", "overlay") + _RANGE,
        _TABLES,
        several="export.job_range.write_job",
        several_in_range="export.job_range.write",
    ),
    Format(
        "csv",
        "spreadsheets: a table, also over time",
        TEXT,
        "export.csv",
        _FILTERS + ("snapshot", "by", "fold"),
        _TABLES,
    ),
    Format(
        "folded",
        "flamegraph.pl",
        TEXT,
        "export.flames",
        _FILTERS + _TREE + _RANGE + ("value",),
        BY,
        threshold=_FLAMES,
        one="write_folded",
        several_in_range="write_folded_range",
    ),
    Format(
        "speedscope",
        "speedscope",
        LARGE,
        "export.flames",
        _FILTERS + _TREE + _RANGE + ("value",),
        BY,
        threshold=_FLAMES,
        one="write_speedscope",
        several_in_range="write_speedscope_range",
    ),
    Format("pprof", "go tool pprof, Pyroscope, Parca", BINARY, "export.pprof", _FILTERS + ("snapshot",)),
    Format(
        "perfetto",
        "ui.perfetto.dev, chrome://tracing",
        LARGE,
        "export.perfetto",
        ("threshold", "by", "fold"),
        _TABLES,
    ),
    Format(
        "memory-viz",
        "PyTorch's memory_viz: the device's memory over time",
        BINARY,
        "export.memory_viz",
        ("snapshot", "segments", "by"),
        ("stack", "owner", "role"),
    ),
    Format("plot", "PNG, SVG or PDF, as -o FILE ends (needs matplotlib)", BINARY, "export.plot", ()),
)

FORMATS: Dict[str, Format] = {format_.name: format_ for format_ in _ALL}
EXPORTS = tuple(name for name in FORMATS if name not in ("text", "html"))
