# SPDX-License-Identifier: GPL-2.0-or-later
"""The page as Chromium prints it: pictures are whole on the sheet, from whatever screen they are printed."""

import re
import zlib
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Tuple

import pytest

from tests.reporter.traces import small_training_run
from tests.web.browser import look, write_page
from tests.web.pages import Page

ACCENT = (0x0B, 0x5C, 0xAD)  # of page.css: the rule at the chosen moment, which is the peak


class Picture(NamedTuple):
    """A canvas in a PDF."""

    width: int  # its own pixels
    height: int
    rgb: bytes
    left: float  # where it lies, as a share of the sheet's width
    right: float
    cut_at: float  # what is to the right of it is not printed


def _objects(pdf: bytes) -> Dict[int, bytes]:
    return {int(number): text for number, text in re.findall(rb"(\d+) 0 obj\b(.*?)\bendobj", pdf, re.DOTALL)}


def _stream(text: bytes) -> bytes:
    found = re.search(rb"stream\r?\n(.*)\r?\nendstream", text, re.DOTALL)
    assert found
    return zlib.decompress(found.group(1))


def _number(text: bytes, name: bytes) -> int:
    found = re.search(rb"/%s (\d+)" % name, text)
    assert found, name
    return int(found.group(1))


# A clip, and an image that is scaled, moved and drawn in it; in a page's own units, which the first clip tells.
_DRAWN = re.compile(
    rb"([-\d.]+) [-\d.]+ ([-\d.]+) [-\d.]+ re\nW\* n\nq\n([-\d.]+) 0 0 -[\d.]+ ([-\d.]+) [-\d.]+ cm\n[^Q]*?/X(\d+) Do"
)


def pictures(pdf: bytes) -> Iterator[Picture]:
    objects = _objects(pdf)
    for page in objects.values():
        if not re.search(rb"/Type\s*/Page\b", page):
            continue
        content = _stream(objects[_number(page, b"Contents")])
        sheet = re.search(rb"0 0 ([\d.]+) [\d.]+ re", content)
        assert sheet
        for clip_left, clip_width, width, left, number in _DRAWN.findall(content):
            image = objects[int(number)]
            edges = [float(left), float(left) + float(width), float(clip_left) + float(clip_width)]
            shares = [edge / float(sheet.group(1)) for edge in edges]
            yield Picture(_number(image, b"Width"), _number(image, b"Height"), _stream(image), *shares)


def columns_of(picture: Picture, colour: Tuple[int, int, int]) -> List[int]:
    """Columns of pixels that are mostly of a colour."""
    found = []
    for x in range(picture.width):
        at = [3 * (y * picture.width + x) for y in range(picture.height)]
        near = sum(all(abs(picture.rgb[i + c] - colour[c]) < 40 for c in range(3)) for i in at)
        if near > 0.6 * picture.height:
            found.append(x)
    return found


@pytest.mark.parametrize("width, height", [(1440, 900), (390, 844)])
def test_the_timeline_is_whole_on_paper_and_the_peak_is_on_it(tmp_path: Path, width: int, height: int) -> None:
    page = write_page(tmp_path, small_training_run().save(tmp_path))
    path = tmp_path / "report.pdf"
    look(page, ["pdf", str(path)], width=width, height=height)
    drawn = [picture for picture in pictures(path.read_bytes()) if picture.width > 300]
    assert drawn
    for picture in drawn:
        assert 0 <= picture.left and picture.right <= min(1, picture.cut_at) + 0.001
        assert picture.right - picture.left > 0.8
    (peak,) = {column // 3 for column in columns_of(drawn[0], ACCENT)} or {-1}
    assert 0.1 * drawn[0].width < 3 * peak < drawn[0].width


def test_after_printing_the_page_is_as_wide_as_before(tmp_path: Path) -> None:
    page = write_page(tmp_path, small_training_run().save(tmp_path))
    widths = "[...document.querySelectorAll('canvas, .flame svg')].map((e) => e.getBoundingClientRect().width)"
    before, _, after = look(page, ["evaluate", widths], ["pdf", str(tmp_path / "report.pdf")], ["evaluate", widths])
    assert before == after and max(before) > 800


def test_on_paper_each_part_of_the_bar_has_its_figure(training: Page) -> None:
    names = "[...document.querySelectorAll('.ladder .legend .labelled')].filter((e) => !e.checkVisibility()).length"
    cut = "[...document.querySelectorAll('.piece .label')].filter((e) => e.checkVisibility()).length"
    found = look(training.path, ["media", "print", 794, 1123], ["evaluate", names], ["evaluate", cut], tabs="none")
    assert found[1:] == [0, 0]
