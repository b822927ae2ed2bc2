# SPDX-License-Identifier: GPL-2.0-or-later
"""What the page saves as a picture: the timeline and the flame graph as they are shown, as SVG and PNG, with the figures of
--format=json."""

import base64
import json
import re
import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

from jmassif.model.records import side_of
from tests.reporter.commands import jm_print
from tests.reporter.traces import random_run, small_training_run
from tests.web.browser import look, write_page
from tests.web.pages import WHOLE_RUN

SVG = "{http://www.w3.org/2000/svg}"
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
TIMES = {"ms": 1, "s": 1000, "min": 60000}
TIMELINE = "#timeline button:text-is('SVG')"
FLAMES = "#calls button:text-is('SVG')"


def saved(result: Dict[str, str], name: str) -> ElementTree.Element:
    assert result["name"] == name and result["text"].encode("ascii")
    root = ElementTree.fromstring(result["text"])
    assert {element.tag[len(SVG) :] for element in root.iter()} <= {
        *("svg", "title", "rect", "text", "tspan", "path", "line", "g", "clipPath")
    }
    return root


def data(trace: Path, *options: str) -> Any:
    return json.loads(jm_print("--format=json", *options, trace).out)


def words(root: ElementTree.Element) -> List[str]:
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def axis(root: ElementTree.Element, units: Dict[str, int], coordinate: str) -> Tuple[float, float, float]:
    """Of two ticks: a place, the value there, and the value of a unit of the picture."""
    found: List[Tuple[float, float]] = []
    for element in root.iter(f"{SVG}text"):
        match = re.fullmatch(r"([\d.]+) (\w+)", element.text or "")
        if match and match.group(2) in units and element.get("font-size") == "12":
            found.append((float(element.get(coordinate, "")), float(match.group(1)) * units[match.group(2)]))
    (a, of_a), (b, of_b) = found[0], found[-1]
    # The text of a tick on the axis of bytes stands a little below its line.
    return a - (4 if coordinate == "y" else 0), of_a, (of_b - of_a) / (b - a)


def edge_at(d: str, x: float) -> float:
    """Where an area's upper edge is at x; where it is upright, its last point."""
    points = [tuple(map(float, pair.split(","))) for pair in d.strip("MZ").split("L")][1:-1]
    before = [point for point in points if point[0] <= x + 0.06][-1]
    after = next((point for point in points if point[0] > before[0]), before)
    part = (x - before[0]) / (after[0] - before[0]) if after != before else 0.0
    return before[1] + part * (after[1] - before[1])


def heights_at(root: ElementTree.Element, time: int) -> Dict[str, float]:
    """By name of an area: bytes."""
    place, value, per_pixel = axis(root, TIMES, "x")
    x = place + (time - value) / per_pixel
    _, _, bytes_per_pixel = axis(root, UNITS, "y")
    areas = [path for path in root.iter(f"{SVG}path") if path.get("fill") != "none"]
    heights: Dict[str, float] = {}
    below = max(float(pair.split(",")[1]) for path in areas for pair in path.get("d", "").strip("MZ").split("L"))
    for path in reversed(areas):  # the largest area is drawn last, and lies lowest
        edge = edge_at(path.get("d", ""), x)
        heights[path.findtext(f"{SVG}title", "")] = (edge - below) * bytes_per_pixel
        below = edge
    return heights


def frames_of(root: ElementTree.Element) -> Iterator[Tuple[str, float, float]]:
    """(what is said on hover, left edge, width)"""
    for group in root.iter(f"{SVG}g"):
        box = group.find(f"{SVG}rect")
        assert box is not None
        yield group.findtext(f"{SVG}title", ""), float(box.get("x", "")), float(box.get("width", ""))


def test_areas_are_as_high_as_what_was_held_at_snapshots_and_at_the_peak(tmp_path: Path) -> None:
    trace = random_run(5).save(tmp_path)
    svg, text = look(write_page(tmp_path, trace), ("save", TIMELINE), ("text", "#headline .statement"))
    root = saved(svg, "jmassif-timeline.svg")
    per_pixel = abs(axis(root, UNITS, "y")[2])
    for moment in ("2", "7", "13", "20", "30", "peak"):
        held = data(trace, f"--snapshot={moment}", "--by=owner")
        rows = {row["name"]: row["held"]["host_bytes"] + row["held"]["device_bytes"] for row in held["table"]}
        drawn = heights_at(root, held["moment"]["time"])
        assert len(drawn) > 2 and sum(rows.values()) > 1 << 30
        for name, n_bytes in drawn.items():
            is_rest = name.endswith((" other", " others"))
            wanted = sum(rows[row] for row in rows if row not in drawn) if is_rest else rows.get(name, 0)
            assert abs(n_bytes - wanted) < 0.6 * per_pixel, (moment, name)
    assert text in " ".join(words(root))


def test_frames_are_as_wide_as_what_their_stacks_held_and_what_was_enlarged_is_widest(tmp_path: Path) -> None:
    trace = random_run(8).save(tmp_path)
    first, enlarged = look(
        write_page(tmp_path, trace),
        ("save", FLAMES),
        ("press", ".flame", "ArrowDown"),
        ("press", ".flame", "Enter"),
        ("save", FLAMES),
    )[0::3]
    held = data(trace)
    names = {row[0]: row[1] for row in held["frames"]["rows"]}
    parent = {row[0]: (row[1], names[row[2]]) for row in held["stacks"]["rows"]}
    columns = held["accounts"]["columns"]
    outermost: Dict[str, int] = {}
    for row in held["accounts"]["rows"]:
        account = dict(zip(columns, row))
        node = account["stack"]
        if not node or not side_of(account["kind"]):
            continue
        while parent[node][0]:
            node = parent[node][0]
        outermost[parent[node][1]] = outermost.get(parent[node][1], 0) + account["live_bytes"]
    total = held["ledger"]["total"]
    whole = total["host_bytes"] + total["device_bytes"]
    found = list(frames_of(saved(first, "jmassif-flame-graph.svg")))
    room = max(width for _, _, width in found)
    checked = [name for name, n_bytes in outermost.items() if n_bytes * 50 > whole]
    assert len(checked) > 2
    for name in checked:
        wanted = room * outermost[name] / whole
        assert any(said.startswith(f"{name}: ") and abs(width - wanted) < 1 for said, _, width in found), (name, wanted)
    wide = {round(width) for _, _, width in list(frames_of(saved(enlarged, "jmassif-flame-graph.svg")))[:2]}
    assert wide == {1168} and found[1][2] < 1000


def test_a_saved_png_is_one_with_something_in_it(tmp_path: Path) -> None:
    page = write_page(tmp_path, small_training_run().save(tmp_path))
    for section, name in (("timeline", "timeline"), ("calls", "flame-graph")):
        (result,) = look(page, ("save", f"#{section} button:text-is('PNG')", "base64"))
        png = base64.b64decode(result["text"])
        assert result["name"] == f"jmassif-{name}.png" and png.startswith(b"\x89PNG")
        width, height = struct.unpack(">II", png[16:24])
        assert width == 2400 and height > 400 and len(png) > 20000


def test_the_picture_is_of_the_span_and_the_moment_that_are_shown(tmp_path: Path) -> None:
    page = write_page(tmp_path, small_training_run("discrete").save(tmp_path))
    steps: List[Tuple[Any, ...]] = [tuple(WHOLE_RUN), ("drag", "#timeline .u-over", 0.1, 0.3), ("save", TIMELINE)]
    svg = look(page, *steps, ("press", "#timeline .plot", "End"), ("save", TIMELINE))
    zoomed, at_end = (words(saved(svg[i], "jmassif-timeline.svg")) for i in (2, 4))
    assert {"Host memory", "Device memory"} <= set(zoomed)
    assert "200 ms" in zoomed and "800 ms" not in zoomed and not any(text.startswith("peak: ") for text in zoomed)
    assert any("At snapshot 3" in text for text in at_end)


def test_the_buttons_have_names_for_who_does_not_see_them(tmp_path: Path) -> None:
    page = write_page(tmp_path, small_training_run().save(tmp_path))
    names, problems = look(page, ("attributes", "button:text-is('SVG'), button:text-is('PNG')", "aria-label"), ("axe",))
    whats = ("timeline", "flame graph")
    assert names == [f"Save the {what} as {kind}" for what in whats for kind in ("SVG", "PNG")] and problems == []
