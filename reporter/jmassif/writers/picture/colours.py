# SPDX-License-Identifier: GPL-2.0-or-later
"""The page's colours, as programs other than browsers know them.

The page has them in reporter/web/src/runs/colours.js and charts/flame.js, where it is told how they were picked;
tests/reporter/test_picture_colours.py holds these tables to those. CSS's oklch() is not known to most that open an SVG, so it is sRGB here.
"""

import math
from typing import Dict, List, Sequence, Tuple

Oklch = Tuple[float, float, float]  # lightness in percent, chroma, hue in degrees

SHADES: Dict[str, List[Oklch]] = {
    "yours": [
        (62, 0.12, 250),
        (84, 0.06, 243),
        (50, 0.06, 279),
        (72, 0.06, 255),
        (44, 0.15, 273),
        (74, 0.15, 297),
        (56, 0.15, 279),
        (42, 0.06, 291),
        (78, 0.06, 267),
        (66, 0.06, 261),
        (48, 0.12, 255),
        (68, 0.12, 243),
    ],
    "cached": [(80, 0.12, 82), (70, 0.15, 72), (56, 0.12, 72), (48, 0.06, 60), (62, 0.06, 96), (80, 0.06, 96)],
    "libraries": [
        (70, 0.12, 160),
        (44, 0.15, 143),
        (84, 0.15, 161),
        (56, 0.06, 203),
        (78, 0.06, 197),
        (62, 0.06, 161),
        (78, 0.09, 125),
        (70, 0.12, 125),
        (84, 0.15, 125),
        (50, 0.06, 161),
        (56, 0.12, 131),
        (42, 0.06, 137),
        (74, 0.12, 173),
        (66, 0.09, 137),
    ],
    "runtime": [
        (52, 0.15, 10),
        (64, 0.15, 35),
        (42, 0.15, 347),
        (76, 0.12, 11),
        (60, 0.15, 335),
        (64, 0.06, 17),
        (58, 0.15, 29),
        (72, 0.15, 35),
        (42, 0.06, 35),
        (82, 0.12, 347),
        (48, 0.15, 347),
        (58, 0.06, 11),
    ],
    "other": [
        (66, 0.03, 306),
        (42, 0.15, 312),
        (78, 0.12, 300),
        (54, 0.15, 306),
        (46, 0.06, 300),
        (72, 0.15, 306),
        (64, 0.15, 324),
        (84, 0.03, 318),
        (80, 0.09, 324),
        (48, 0.15, 318),
        (50, 0.03, 330),
        (54, 0.15, 330),
    ],
}
HUES = (250, 60, 165, 10, 300, 110, 210, 345, 140, 35, 275, 90)
# By type of a frame: hue and chroma.
FRAMES: Dict[str, Tuple[float, float]] = {
    "python": (80, 0.12),
    "native": (245, 0.07),
    "internal": (160, 0.05),
    "note": (250, 0.01),
}


def rgb(lightness: float, chroma: float, hue: float) -> str:
    """An oklch colour as "#rrggbb"; what a screen cannot show is cut, as browsers do. The matrices are those of CSS Color 4."""
    channels = _linear(lightness, chroma, hue)
    return "#" + "".join(f"{round(255 * _gamma(min(1.0, max(0.0, value)))):02x}" for value in channels)


def _linear(lightness: float, chroma: float, hue: float) -> List[float]:
    level, a, b = lightness / 100, chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    long = (level + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (level - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (level - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return [
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    ]


def _gamma(value: float) -> float:
    return 12.92 * value if value <= 0.0031308 else 1.055 * math.pow(value, 1 / 2.4) - 0.055


def owner_colour(group: str, rank: int) -> str:
    """`rank` is the owner's place in its group, the largest first."""
    shades = SHADES.get(group, SHADES["other"])
    lightness, chroma, hue = shades[rank % len(shades)]
    turn = rank // len(shades)
    least, most = 42, 86
    return rgb(least + (lightness - least + 3 * turn) % (most - least), chroma * 0.8**turn, hue + 5 * turn)


def list_colour(place: int) -> str:
    return rgb(68 if place % 24 < 12 else 55, 0.11, HUES[place % len(HUES)])


# What is a sum of many.
REST = rgb(70, 0.01, 250)


def _shade(name: str) -> float:
    """A number of the name's own, from 0 to 1."""
    units: Sequence[int] = name.encode("utf-16-le", "surrogatepass")
    found = 0
    for low, high in zip(units[0:80:2], units[1:80:2]):
        found = (found * 31 + low + 256 * high) % 997
    return found / 997


def frame_colour(type_: str, name: str) -> str:
    """Frames of a type are alike, and neighbours differ a little."""
    hue, chroma = FRAMES[type_]
    return rgb(76 + 9 * _shade(name), chroma, hue + 16 * _shade(f"{name}."))
