# SPDX-License-Identifier: GPL-2.0-or-later
"""Colours of owners: told apart by people who see all colours, and by those who do not; seen on both backgrounds.

A colour is looked at as each kind of eye sees it (Machado, Oliveira and Fernandes 2009, severity 1), and distances are
Euclidean in Oklab, where 0.02 is about the least that is seen side by side.
"""

import itertools
import math
import re
from typing import Dict, List, Sequence, Tuple

import pytest

from jmassif.model.records import GROUPS
from tests.web.browser import in_node

Triple = Tuple[float, float, float]

EYES: Dict[str, List[Triple]] = {
    "all": [(1, 0, 0), (0, 1, 0), (0, 0, 1)],
    "no red": [
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ],
    "no green": [
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ],
    "no blue": [
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ],
}
# Of page.css: --back, light and dark.
BACKGROUNDS = ("#ffffff", "#15181c")

SCRIPT = """
import { ownerColour } from './src/runs/colours.js';
import { readFileSync } from 'node:fs';
const { groups, n } = JSON.parse(readFileSync(0, 'utf8'));
console.log(JSON.stringify(groups.map((group) => Array.from({ length: n }, (_, rank) => ownerColour(group, rank)))));
"""


def linear(colour: str) -> Triple:
    """oklch(…) as linear sRGB, within its gamut."""
    lightness, chroma, hue = map(float, re.findall(r"[\d.]+", colour))
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    cones = [
        (lightness / 100 + of_a * a + of_b * b) ** 3
        for of_a, of_b in ((0.3963377774, 0.2158037573), (-0.1055613458, -0.0638541728), (-0.0894841775, -1.2914855480))
    ]
    rows = (
        (4.0767416621, -3.3077115913, 0.2309699292),
        (-1.2684380046, 2.6097574011, -0.3413193965),
        (-0.0041960863, -0.7034186147, 1.7076147010),
    )
    return _clipped(rows, (cones[0], cones[1], cones[2]))


def _clipped(rows: Sequence[Triple], of: Triple) -> Triple:
    red, green, blue = (min(1.0, max(0.0, sum(part * value for part, value in zip(row, of)))) for row in rows)
    return red, green, blue


def oklab(rgb: Triple) -> Triple:
    rows = (
        (0.4122214708, 0.5363325363, 0.0514459929),
        (0.2119034982, 0.6806995451, 0.1073969566),
        (0.0883024619, 0.2817188376, 0.6299787005),
    )
    x, y, z = (sum(part * value for part, value in zip(row, rgb)) ** (1 / 3) for row in rows)
    return (
        0.2104542553 * x + 0.7936177850 * y - 0.0040720468 * z,
        1.9779984951 * x - 2.4285922050 * y + 0.4505937099 * z,
        0.0259040371 * x + 0.7827717662 * y - 0.8086757660 * z,
    )


def distance(one: str, other: str) -> float:
    """As the eyes that tell them apart worst see them."""
    seen = [[oklab(_clipped(eye, linear(colour))) for eye in EYES.values()] for colour in (one, other)]
    return min(math.sqrt(sum((p - q) ** 2 for p, q in zip(a, b))) for a, b in zip(*seen))


def luminance(rgb: Triple) -> float:
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]


def contrast(one: float, other: float) -> float:
    low, high = sorted((one, other))
    return (high + 0.05) / (low + 0.05)


def background(text: str) -> float:
    parts = [int(text[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return luminance((red, green, blue))


@pytest.fixture(scope="module", name="shades")
def fixture_shades() -> Dict[str, List[str]]:
    """By group, its owners' colours, by place."""
    groups = list(GROUPS) + ["other", "a group of tomorrow"]
    return dict(zip(groups, in_node(SCRIPT, {"groups": groups, "n": 6})))


def test_the_largest_owners_of_a_group_are_told_apart_by_all_eyes(shades: Dict[str, List[str]]) -> None:
    for group, colours in shades.items():
        least = min((distance(a, b), a, b) for a, b in itertools.combinations(colours[:3], 2))
        assert least[0] >= 0.06, (group, least)
        assert len(set(colours)) == len(colours)


def test_the_largest_owners_of_different_groups_are_told_apart(shades: Dict[str, List[str]]) -> None:
    firsts = [(group, colour) for group in list(GROUPS) + ["other"] for colour in shades[group][:3]]
    for (group, one), (other_group, other) in itertools.combinations(firsts, 2):
        if group != other_group:
            assert distance(one, other) >= 0.045, (group, one, other_group, other)


def test_colours_are_seen_on_both_backgrounds(shades: Dict[str, List[str]]) -> None:
    for group, colours in shades.items():
        for colour, back in itertools.product(colours[:3], BACKGROUNDS):
            assert contrast(luminance(linear(colour)), background(back)) >= 1.6, (group, colour, back)


def test_an_owners_shade_is_that_of_its_place_whatever_it_holds() -> None:
    script = """
    import { coloursOf, ownerColour } from './src/runs/colours.js';
    import { readFileSync } from 'node:fs';
    const owners = JSON.parse(readFileSync(0, 'utf8'));
    const run = { head: { owners }, dimension: () => ({ names: owners.map(({ name }) => name) }) };
    console.log(JSON.stringify([coloursOf(run, 'owner'), owners.map(({ group, place }) => ownerColour(group, place))]));
    """
    rows = [("app", "yours", 3), ("cudnn", "libraries", 3), ("lib", "libraries", 12), ("tensor", "yours", 0)]
    owners = [{"name": name, "group": group, "place": place} for name, group, place in rows]
    found, expected = in_node(script, owners)
    assert found == expected and len(set(found)) == len(found)


def test_tensors_and_native_code_are_told_apart(shades: Dict[str, List[str]]) -> None:
    """Tensors, the model, data and native code: all four are in most runs."""
    colours = shades["yours"][:4]
    assert min(distance(a, b) for a, b in itertools.combinations(colours, 2)) >= 0.06
