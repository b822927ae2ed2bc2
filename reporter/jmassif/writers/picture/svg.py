# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of an SVG file that any viewer shows alike: rectangles, paths, text of a known font size, and words on hover.

Nothing in it refers to anything outside, and there are no scripts and no style sheets. All text is made fit to be shown and
escaped here, whatever a program has named its functions; the file is ASCII, so that it is the same in every encoding.
"""

import unicodedata
from typing import Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from jmassif.units import printable

WIDTH = 1200
MARGIN = 16
BACK, TEXT, QUIET, GRID, ALARM = "#ffffff", "#1b1f24", "#57606a", "#e2e5e9", "#b3261e"
FONT = "system-ui, 'DejaVu Sans', 'Segoe UI', Helvetica, Arial, sans-serif"

# Of the font size, as wide as in DejaVu Sans, the widest of those that are likely.
_WIDTHS = {
    **dict.fromkeys("ijl'|", 0.3),
    **dict.fromkeys(' .,:;!()[]/\\frt-I`"', 0.4),
    **dict.fromkeys("abcdeghknopqsuvxyz0123456789_$*JLTF", 0.63),
    **dict.fromkeys("mwMWGOQ%@—…", 0.99),
}
_OTHER = 0.72

_MOST_TITLE = 300


def width_of(text: str, size: float) -> float:
    """About how wide a text is, rather too much than too little."""

    def units(character: str) -> float:
        return 1.0 if unicodedata.east_asian_width(character) in "WF" else _WIDTHS.get(character, _OTHER)

    return size * sum(map(units, text))


def fitted(text: str, width: float, size: float) -> str:
    """As much of the text as there is room for; "" where that says nothing."""
    # What is escaped grows: the rest of a name of a megabyte is not even looked at.
    text = printable(text[: int(width / (0.3 * size)) + 2])
    if width_of(text, size) <= width:
        return text
    while text and width_of(text + "…", size) > width:
        text = text[:-1]
    return f"{text}…" if len(text) > 2 else ""


def wrapped(text: str, width: float, size: float, most: int) -> List[str]:
    """Lines of whole words, `most` at most; what is left out shows as an ellipsis."""
    lines = [""]
    for word in printable(text[: int(most * width)]).split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if width_of(longer, size) <= width:
            lines[-1] = longer
        elif len(lines) == most:
            lines[-1] = fitted(longer, width, size)
            break
        else:
            lines.append(fitted(word, width, size))
    return lines


def number(value: float) -> str:
    """As short as a tenth of a pixel allows."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if "." in f"{value:.1f}" else f"{value:.1f}"


def escaped(text: str) -> str:
    """Fit for an element and for an attribute in double quotes, in ASCII."""
    text = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def title(text: str) -> str:
    """What is said of the element that it stands in, on hover and by screen readers."""
    cut = text if len(text) <= _MOST_TITLE else f"{text[:_MOST_TITLE]}…"
    return f"<title>{escaped(cut)}</title>"


def text(
    x: float, y: float, words: str, size: float = 13, fill: str = TEXT, anchor: str = "start", is_bold: bool = False
) -> str:
    weight = ' font-weight="600"' if is_bold else ""
    place = f'x="{number(x)}" y="{number(y)}"'
    return (
        f'<text {place} font-size="{number(size)}" fill="{fill}" text-anchor="{anchor}"{weight}>{escaped(words)}</text>'
    )


def rectangle(x: float, y: float, width: float, height: float, fill: str, inside: str = "", more: str = "") -> str:
    box = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    return f'<rect {box} fill="{fill}"{more}>{inside}</rect>' if inside else f'<rect {box} fill="{fill}"{more}/>'


def line(x1: float, y1: float, x2: float, y2: float, stroke: str, more: str = "") -> str:
    ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return f'<line {ends} stroke="{stroke}"{more}/>'


def path(points: Sequence[Tuple[float, float]]) -> str:
    """The attribute `d` of straight lines; points in the middle of a level stretch are left out."""
    shown = [(number(x), number(y)) for x, y in points]
    kept = [
        point
        for i, point in enumerate(shown)
        if i in (0, len(shown) - 1) or not shown[i - 1][1] == point[1] == shown[i + 1][1]
    ]
    return "M" + "L".join(f"{x},{y}" for x, y in kept)


class Key(NamedTuple):
    colour: str
    name: str
    figure: str = ""


def legend(keys: Iterable[Key], top: float, size: float = 13) -> Tuple[List[str], float]:
    """The keys side by side in as many rows as it takes, and where the last one ends."""
    parts: List[str] = []
    x, y = float(MARGIN), top
    for key in keys:
        name = fitted(key.name, WIDTH / 3, size)
        width = 20 + width_of(f"{name} {key.figure}", size) + 22
        if x > MARGIN and x + width > WIDTH - MARGIN:
            x, y = float(MARGIN), y + 22
        parts.append(rectangle(x, y + 2, 12, 12, key.colour, more=' rx="2"'))
        figure = f' <tspan font-weight="600">{escaped(key.figure)}</tspan>' if key.figure else ""
        parts.append(
            f'<text x="{number(x + 18)}" y="{number(y + 13)}" font-size="{number(size)}" fill="{TEXT}">{escaped(name)}{figure}</text>'
        )
        x += width
    return parts, y + 22


def head(name: str, subtitle: str, sentences: Sequence[Tuple[str, str]]) -> Tuple[List[str], float]:
    """The picture's name and what it is, the answer in (text, colour), and where they end."""
    room = WIDTH - 2 * MARGIN
    parts = [
        text(MARGIN, 30, fitted(name, room, 19), 19, is_bold=True),
        text(MARGIN, 50, fitted(subtitle, room, 13), 13, QUIET),
    ]
    y = 74.0
    for sentence, fill in sentences:
        for row in wrapped(sentence, room, 14, 3):
            parts.append(text(MARGIN, y, row, 14, fill))
            y += 20
    return parts, y


def document(name: str, height: float, parts: Iterable[str]) -> Iterator[str]:
    """The lines of the file."""
    size = f'width="{WIDTH}" height="{number(height)}" viewBox="0 0 {WIDTH} {number(height)}"'
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}" role="img">'
    yield title(name)
    yield rectangle(0, 0, WIDTH, height, BACK)
    yield from parts
    yield "</svg>"
