# SPDX-License-Identifier: GPL-2.0-or-later
"""jm_print --format=svg and png: pictures that any viewer opens, whose areas and widths are the figures of --format=json."""

import json
import os
import re
import shutil
import stat
import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from jmassif.commands import jm_print
from jmassif.model.kinds import side_of
from tests.reporter.commands import assert_one_line_error, call
from tests.reporter.traces import Trace, random_run, small_training_run

SVG = "{http://www.w3.org/2000/svg}"
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
TIMES = {"ms": 1, "s": 1000, "min": 60000}


def picture(trace: Path, *options: str) -> ElementTree.Element:
    done = call(jm_print.main, "--format=svg", *options, trace)
    assert done.status == 0, done.err
    assert done.out.encode("ascii") and len(done.out.splitlines()) > 5
    return ElementTree.fromstring(done.out)


def data(trace: Path, *options: str) -> Any:
    return json.loads(call(jm_print.main, "--format=json", *options, trace).out)


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


@pytest.mark.parametrize("by", ["owner", "kind", "library"])
def test_areas_are_as_high_as_what_was_held_at_snapshots_and_at_the_peak(by: str, tmp_path: Path) -> None:
    trace = random_run(5).save(tmp_path)
    root = picture(trace, f"--by={by}")
    per_pixel = abs(axis(root, UNITS, "y")[2])
    for moment in ("2", "7", "13", "20", "30", "peak"):
        held = data(trace, f"--snapshot={moment}", f"--by={by}")
        rows = {
            row["name"]: sum(row[side]["live_bytes"] for side in ("host", "device")) for row in held["table"]["rows"]
        }
        drawn = heights_at(root, held["moment"]["time"])
        assert len(drawn) > 2 and sum(rows.values()) > 1 << 30
        for name, n_bytes in drawn.items():
            is_rest = name.endswith((" other", " others"))
            wanted = sum(rows[row] for row in rows if row not in drawn) if is_rest else rows.get(name, 0)
            assert abs(n_bytes - wanted) < 0.4 * per_pixel, (moment, name)


def test_what_lies_between_snapshots_is_as_high_as_the_totals(tmp_path: Path) -> None:
    trace = Trace(time_unit="ms", memory="unified", command="./a.out")
    trace.group("yours", "app")
    heap, device = trace.account("heap", "app", ["f (a.c:1)"]), trace.account("device", "cache", ["g (a.c:2)"])
    trace.snapshot(0, "start", {heap: (100 << 20, 1)})
    trace.totals(400, 300 << 20, 100 << 20, 700 << 20)
    trace.snapshot(1000, "exit", {heap: (200 << 20, 2), device: (200 << 20, 1)})
    trace.lines.append("Z 1000 exit 0")
    root = picture(trace.save(tmp_path))
    drawn = heights_at(root, 400)
    # Interpolated they would be 140 and 80 MiB: they are scaled to what is known of their sum.
    assert drawn == pytest.approx({"app": (400 << 20) * 140 / 220, "cache": (400 << 20) * 80 / 220}, rel=0.01)
    (outline,) = [path for path in root.iter(f"{SVG}path") if path.get("fill") == "none"]
    place, value, per_pixel = axis(root, UNITS, "y")
    highest = min(float(pair.split(",")[1]) for pair in outline.get("d", "").strip("M").split("L"))
    assert value + (highest - place) * per_pixel == pytest.approx(700 << 20, rel=0.01)


def test_the_picture_says_what_the_report_says_and_names_its_areas(tmp_path: Path) -> None:
    trace = small_training_run().save(tmp_path)
    told = " ".join(words(picture(trace)))
    assert "python3 train.py --epochs 2" in told and "by owner" in told
    assert data(trace)["headline"]["statements"][0]["text"] in told
    held = {row["name"]: row["device"]["live_bytes"] for row in data(trace)["table"]["rows"]}
    assert f"tensor {held['tensor'] >> 20:.1f} MiB" in told and "peak: 233 MiB at 600 ms" in told
    assert "Held at the peak (600 ms)" in told


def test_on_a_discrete_gpu_each_pool_has_a_plot_of_its_own(tmp_path: Path) -> None:
    trace = small_training_run("discrete").save(tmp_path)
    told = words(picture(trace))
    assert {"Host memory", "Device memory"} <= set(told)
    assert [text for text in told if text.startswith("peak: ")] == [
        "peak: 43.0 MiB at 900 ms",
        "peak: 190 MiB at 600 ms",
    ]


# ---- the flame graph ---------------------------------------------------------------------------


def frames_of(root: ElementTree.Element) -> Iterator[Tuple[str, float, float]]:
    """(what is said on hover, left edge, width)"""
    for group in root.iter(f"{SVG}g"):
        box = group.find(f"{SVG}rect")
        assert box is not None
        yield group.findtext(f"{SVG}title", ""), float(box.get("x", "")), float(box.get("width", ""))


def test_frames_are_as_wide_as_what_their_stacks_held(tmp_path: Path) -> None:
    trace = random_run(8).save(tmp_path)
    held = data(trace, "--snapshot=20")
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
    whole = held["snapshots"][19]["host"] + held["snapshots"][19]["device"]
    root = picture(trace, "--picture=flamegraph", "--snapshot=20", "--fold=none")
    (room,) = [width for said, _, width in frames_of(root) if said.startswith("all: ")]
    checked = [name for name, n_bytes in outermost.items() if n_bytes * 50 > whole]
    assert len(checked) > 2
    tops = list(frames_of(root))
    for name in checked:
        wanted = room * outermost[name] / whole
        assert any(said.startswith(f"{name}: ") and abs(width - wanted) < 1 for said, _, width in tops), (name, wanted)


def test_what_is_too_narrow_is_one_grey_frame_so_that_widths_add_up(tmp_path: Path) -> None:
    trace = Trace(time_unit="ms", memory="unified", command="./a.out")
    accounts = {trace.account("heap", "app", [f"f{i} (a.c:{i + 1})", "main (a.c:9)"]): (1000, 1) for i in range(2000)}
    accounts[trace.account("heap", "app", ["large (b.c:1)", "main (a.c:9)"])] = (2000000, 1)
    trace.snapshot(1, "time", accounts)
    trace.lines.append("Z 2 exit 0")
    frames = {said: width for said, _, width in frames_of(picture(trace.save(tmp_path), "--picture=flamegraph"))}
    assert frames["2,000 places too small to be told apart here: 1.91 MiB, 50.0 %"] == pytest.approx(584, abs=1)
    assert frames["large (b.c:1): 1.91 MiB, 50.0 %"] == pytest.approx(584, abs=1) and len(frames) == 4


def test_the_flame_graph_takes_what_the_folded_stacks_take(tmp_path: Path) -> None:
    trace = small_training_run().save(tmp_path)
    told = words(picture(trace, "--picture=flamegraph", "--by=owner", "--value=allocated-blocks"))
    assert any("blocks allocated in the whole run" in text for text in told)
    assert [said for said, _, _ in frames_of(picture(trace, "--picture=flamegraph", "--by=owner"))][1].startswith(
        "tensor: "
    )
    told = words(picture(trace, "--picture=flamegraph", "--from=start", "--to=end"))
    assert any("allocated in the range, and held at its end, from the start to the end" in text for text in told)


# ---- what may go wrong ---------------------------------------------------------------------------

HOSTILE = "</svg><script>alert(1)</script>\"&'\x1b[2J\u202e\udcff]]>"


@pytest.mark.parametrize("which", ["timeline", "flamegraph"])
def test_hostile_names_are_text(which: str, tmp_path: Path) -> None:
    trace = Trace(time_unit="ms", memory="unified", command=HOSTILE)
    account = trace.account("heap", "app", [f"{HOSTILE} (a.c:1)", f"py {HOSTILE * 9} (/{HOSTILE}.py:9)"])
    trace.snapshot(1, "time", {account: (1000, 1)})
    trace.lines.append("Z 2 exit 0")
    root = picture(trace.save(tmp_path), f"--picture={which}", *(["--by=python-line"] if which == "timeline" else []))
    allowed = {f"{SVG}{name}" for name in ("svg", "title", "rect", "text", "tspan", "path", "line", "g")}
    assert {element.tag for element in root.iter()} <= allowed
    assert not [
        name for element in root.iter() for name in element.attrib if name.startswith(("on", "{")) or "href" in name
    ]
    assert any("<script>" in text for text in root.itertext())
    assert all(text.isprintable() or text.isspace() for text in root.itertext())


def test_what_means_nothing_to_a_picture_is_refused(tmp_path: Path) -> None:
    trace = small_training_run().save(tmp_path)
    for options, says in (
        (
            ["--format=svg", "--snapshot=2"],
            ["--snapshot", "--format=svg", "--picture=flamegraph"],
        ),
        (["--format=svg", "--picture=timeline", "--only=x"], ["--only", "--picture=flamegraph"]),
        (["--picture=timeline"], ["--picture means nothing to --format=text, only to: svg, png"]),
        (["--format=svg", "--by=stack"], ["--by=stack"]),
        (["--format=svg", "--picture=flamegraph", "--only=no_such_function"], ["holds nothing"]),
    ):
        done = call(jm_print.main, *options, trace)
        assert_one_line_error("jm_print", done, *says)
    empty = tmp_path / "empty"
    empty.write_text("jmassif-trace 3\nm time-unit ms\n")
    done = call(jm_print.main, "--format=svg", empty)
    assert done.status == 2 and "snapshot" in done.err


# ---- PNG -----------------------------------------------------------------------------------------


BASH = shutil.which("bash")


def _program(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!{BASH}\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_png_is_made_by_what_is_at_hand(tmp_path: Path, monkeypatch: "pytest.MonkeyPatch") -> None:
    trace = small_training_run().save(tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    target = tmp_path / "memory.png"
    arguments = ["--format=png", "-o", target, trace]
    assert_one_line_error("jm_print", call(jm_print.main, *arguments), "rsvg-convert", "apt install", "--format=svg")
    assert not target.exists()
    script = 'for word; do case $word in --output=*) printf "\\x89PNG made of " >"${word#*=}"; echo "$(<"${!#}")" >>"${word#*=}";; esac; done'
    _program(programs, "rsvg-convert", script)
    assert call(jm_print.main, *arguments).status == 0
    made = target.read_bytes()
    ElementTree.fromstring(made[made.index(b"<?xml") :])
    _program(programs, "rsvg-convert", "exit 1")
    target.unlink()
    assert_one_line_error("jm_print", call(jm_print.main, *arguments), "rsvg-convert made no PNG")
    assert not target.exists()


@pytest.mark.skipif(
    not any(map(shutil.which, ("rsvg-convert", "inkscape", "chromium"))), reason="nothing converts here"
)
def test_a_png_is_twice_as_large_as_the_svg(tmp_path: Path) -> None:
    trace = small_training_run().save(tmp_path)
    target = tmp_path / "memory.png"
    done = call(jm_print.main, "--format=png", "-o", target, trace)
    assert done.status == 0, done.err
    width, height = struct.unpack(">II", target.read_bytes()[16:24])
    root = picture(trace)
    assert width == 2 * int(root.get("width", "")) and abs(height - 2 * float(root.get("height", ""))) <= 2
    assert os.listdir(tmp_path) and not list(tmp_path.glob(".jm_print*"))
