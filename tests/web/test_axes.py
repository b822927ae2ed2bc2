# SPDX-License-Identifier: GPL-2.0-or-later
"""Axes: all ticks of one in one unit, and round in it (unit/ticks.test.mjs has the ticks themselves)."""

import re
from pathlib import Path

from tests.reporter.traces import Trace
from tests.web.browser import visit, write_page

GIB = 1 << 30

# What is written on canvases, which no selector reaches.
WRITTEN = """
    window.written = [];
    const fillText = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
        window.written.push(String(text));
        return fillText.call(this, text, ...rest);
    };
"""


def test_both_plots_of_the_page_have_such_axes(tmp_path: Path) -> None:
    """1.46 GiB at most: 500 MiB, 1000 MiB and 1.46 GiB stood there."""
    trace = Trace(memory="unified")
    tensor = trace.account("device", "tensor", ["main (a.c:1)"])
    trace.snapshot(0, "start", {})
    trace.block(10, 0x10000000, int(1.46 * GIB), tensor)
    trace.snapshot(900, "time", {tensor: (int(1.46 * GIB), 1)})
    trace.snapshot(1800, "exit", {tensor: (int(1.46 * GIB), 1)})
    visited = visit(write_page(tmp_path, trace.save(tmp_path)), ["evaluate", "window.written"], before=WRITTEN)
    sizes = {text for text in visited.results[0] if text.endswith("iB")}
    on_axes = {text for text in sizes if not text.startswith("peak")}
    assert "1.0 GiB" in on_axes
    assert on_axes <= {f"{tenths / 10} GiB" for tenths in range(1, 16)}
    times = {text for text in visited.results[0] if re.fullmatch(r"[\d.]+ (ms|s)", text)}
    assert {text.split()[1] for text in times} == {"s"} and "1.0 s" in times
