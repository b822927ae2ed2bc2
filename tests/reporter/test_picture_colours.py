# SPDX-License-Identifier: GPL-2.0-or-later
"""Pictures and the page have the same colours: the tables of one are those of the other."""

import re
from typing import List

import pytest

from jmassif.writers.picture import colours
from tests.reporter.traces import ROOT

SOURCES = ROOT / "reporter" / "web" / "src"


def numbers(text: str) -> List[float]:
    return [float(each) for each in re.findall(r"\d+(?:\.\d+)?", text)]


def test_owners_and_lists_have_the_page_s_colours() -> None:
    text = (SOURCES / "runs" / "colours.js").read_text()
    table = text[text.index("const SHADES = {") : text.index("const HUES")]
    rows = dict(re.findall(r"^    (\w+): \[(.*)\],$", table, re.MULTILINE))
    assert set(rows) == set(colours.SHADES)
    for group, row in rows.items():
        assert numbers(row) == [number for shade in colours.SHADES[group] for number in shade]
    assert numbers(text[text.index("const HUES") :].split(";")[0]) == list(colours.HUES)
    assert "lightness - least + 3 * round" in text and "chroma * 0.8 ** round, hue + 5 * round" in text
    assert "place % 24 < 12 ? 68 : 55, 0.11" in text and "REST = colour(70, 0.01, 250)" in text


def test_frames_have_the_page_s_colours() -> None:
    text = (SOURCES / "charts" / "flame.js").read_text()
    hues = re.search(r"const HUES = .*", text)
    assert hues
    for name, (hue, chroma) in colours.FRAMES.items():
        assert f"{name}: [{hue:g}, {chroma:g}]" in hues.group()
    assert "76 + 9 * shade(name)" in text and "hue + 16 * shade(`${name}.`)" in text


@pytest.mark.parametrize(
    ("oklch", "shown"),
    [
        # As CSS Color 4 has them: white, black, and the primaries.
        ((100, 0, 0), "#ffffff"),
        ((0, 0, 0), "#000000"),
        ((62.796, 0.25768, 29.234), "#ff0000"),
        ((86.644, 0.29483, 142.495), "#00ff00"),
        ((45.201, 0.31321, 264.052), "#0000ff"),
    ],
)
def test_oklch_becomes_srgb(oklch: colours.Oklch, shown: str) -> None:
    found = colours.rgb(*oklch)
    assert all(abs(int(found[i : i + 2], 16) - int(shown[i : i + 2], 16)) <= 2 for i in (1, 3, 5)), found
