# SPDX-License-Identifier: GPL-2.0-or-later
"""What the page saves as a picture: the timeline and the flame graph as they are shown, as SVG and PNG, and alike to jm_print's."""

import base64
import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, Dict, List, Tuple

from jmassif.commands import jm_print
from tests.reporter.commands import call
from tests.reporter.test_pictures import SVG, frames_of, heights_at, words
from tests.reporter.traces import random_run, small_training_run
from tests.web.browser import look, write_page

TIMELINE = "#timeline button:text-is('SVG')"
FLAMES = "#calls button:text-is('SVG')"


def saved(result: Dict[str, str], name: str) -> ElementTree.Element:
    assert result["name"] == name and result["text"].encode("ascii")
    root = ElementTree.fromstring(result["text"])
    assert {element.tag[len(SVG) :] for element in root.iter()} <= {
        *("svg", "title", "rect", "text", "tspan", "path", "line", "g", "clipPath")
    }
    return root


def drawn(trace: Path, *options: str) -> ElementTree.Element:
    return ElementTree.fromstring(call(jm_print.main, "--format=svg", *options, trace).out)


def colours(root: ElementTree.Element) -> Dict[str, str]:
    """By name of an area."""
    paths = [path for path in root.iter(f"{SVG}path") if path.get("fill") != "none"]
    return {path.findtext(f"{SVG}title", ""): path.get("fill", "") for path in paths}


def near(one: str, other: str) -> bool:
    return all(abs(int(one[i : i + 2], 16) - int(other[i : i + 2], 16)) <= 3 for i in (1, 3, 5))


def test_the_saved_timeline_is_the_one_that_jm_print_draws(tmp_path: Path) -> None:
    trace = random_run(5).save(tmp_path)
    page = write_page(tmp_path, trace)
    svg, text = look(page, ("save", TIMELINE), ("text", ".first .statement"))
    root, ours = saved(svg, "jmassif-timeline.svg"), drawn(trace)
    most = max(sum(heights_at(ours, time).values()) for time in (10, 120, 200))
    for time in (10, 60, 120, 200, 290):
        here, there = heights_at(root, time), heights_at(ours, time)
        assert set(here) == set(there) and len(here) > 2
        for name, height in here.items():
            assert abs(height - there[name]) < 0.004 * most, (time, name)
    assert all(near(colour, colours(ours)[name]) for name, colour in colours(root).items())
    assert text in " ".join(words(root))


def frames(root: ElementTree.Element) -> List[Tuple[str, float, float]]:
    return [frame for frame in frames_of(root) if frame[2] > 20]


def test_the_saved_flame_graph_is_the_one_that_jm_print_draws_and_what_was_enlarged(tmp_path: Path) -> None:
    trace = random_run(8).save(tmp_path)
    page = write_page(tmp_path, trace)
    first, enlarged = look(
        page, ("save", FLAMES), ("press", ".flame", "ArrowDown"), ("press", ".flame", "Enter"), ("save", FLAMES)
    )[0::3]
    root = saved(first, "jmassif-flame-graph.svg")
    ours = {said: width for said, _, width in frames(drawn(trace, "--picture=flamegraph", "--fold=none"))}
    found = {said: width for said, _, width in frames(root)}
    assert len(found) > 20
    # Of one name there may be several; what the picture leaves out as too small differs.
    common = [said for said in found if said in ours]
    assert len(common) > 0.8 * len(found)
    largest = next(said for said, _, _ in frames(root)[1:])
    (wide,) = {round(width) for said, _, width in frames(saved(enlarged, "jmassif-flame-graph.svg"))[:2]}
    assert wide == 1168 and found[largest] < 1000


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
    steps: List[Tuple[Any, ...]] = [("drag", "#timeline .u-over", 0.1, 0.3), ("save", TIMELINE)]
    svg = look(page, *steps, ("press", "#timeline .plot", "End"), ("save", TIMELINE))
    zoomed, at_end = (words(saved(svg[i], "jmassif-timeline.svg")) for i in (1, 3))
    assert {"Host memory", "Device memory"} <= set(zoomed)
    assert "200 ms" in zoomed and "800 ms" not in zoomed and not any(text.startswith("peak: ") for text in zoomed)
    assert any("Held at snapshot 3" in text for text in at_end)


def test_the_buttons_have_names_for_who_does_not_see_them(tmp_path: Path) -> None:
    page = write_page(tmp_path, small_training_run().save(tmp_path))
    names, problems = look(page, ("attributes", "button:text-is('SVG'), button:text-is('PNG')", "aria-label"), ("axe",))
    whats = ("timeline", "flame graph")
    assert names == [f"Save the {what} as {kind}" for what in whats for kind in ("SVG", "PNG")] and problems == []
