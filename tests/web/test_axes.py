# SPDX-License-Identifier: GPL-2.0-or-later
"""Axes: all ticks of one in one unit, and round in it."""

import re
from pathlib import Path
from typing import Any, List

import pytest

from tests.reporter.traces import Trace
from tests.web.browser import in_node, visit, write_page

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

SCRIPT = """
import { labels, ticksOf } from './src/base/ticks.js';
import { readFileSync } from 'node:fs';
const asked = JSON.parse(readFileSync(0, 'utf8'));
console.log(JSON.stringify(asked.map(([kind, least, most]) => labels(kind, ticksOf(kind, least, most, 6), least, most))));
"""

# What is written on canvases, which no selector reaches.
WRITTEN = """
    window.written = [];
    const fillText = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
        window.written.push(String(text));
        return fillText.call(this, text, ...rest);
    };
"""


def ticks(*asked: List[Any]) -> List[List[str]]:
    found: List[List[str]] = in_node(SCRIPT, asked)
    return found


def test_sizes_are_in_one_unit_with_round_steps() -> None:
    (board, heap, few, zoomed) = ticks(
        ["B", 0, 3.9 * GIB], ["B", 0, 1.46 * GIB], ["B", 0, 5 * KIB], ["ms", 100200, 100300]
    )
    assert board == ["0", "1 GiB", "2 GiB", "3 GiB"]
    assert heap == ["0", "0.5 GiB", "1.0 GiB"]
    assert few == ["0", "1 KiB", "2 KiB", "3 KiB", "4 KiB", "5 KiB"]
    assert zoomed == ["100200 ms", "100220 ms", "100240 ms", "100260 ms", "100280 ms", "100300 ms"]


@pytest.mark.parametrize("kind", ["B", "ms", "i"])
def test_any_axis_has_a_few_ticks_that_are_round_and_apart(kind: str) -> None:
    tops = [10 * 1.37**n for n in range(90)]
    for most, texts in zip(tops, ticks(*([kind, 0, most] for most in tops))):
        assert texts[0] == "0" and 2 <= len(texts) <= 7, (most, texts)
        figures = [re.fullmatch(r"([\d.]+) (\D+)", text) for text in texts[1:]]
        assert all(figures), texts
        assert len({figure.group(2) for figure in figures if figure}) == 1, texts
        numbers = [float(figure.group(1)) for figure in figures if figure]
        step = numbers[0]
        assert numbers == pytest.approx([step * (n + 1) for n in range(len(numbers))]), texts
        assert f"{step:e}"[:3].rstrip("0.") in ("1", "2", "5"), texts


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
