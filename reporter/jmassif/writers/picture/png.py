# SPDX-License-Identifier: GPL-2.0-or-later
"""A picture as PNG, made of the SVG by the first program at hand that can: the reporter itself draws no pixels."""

import os
import re
import shutil
import subprocess
import tempfile
from typing import Callable, Dict, Iterator, List, Tuple

from jmassif.model.profile import Profile
from jmassif.writers.view import FormatError, View

_SECONDS = 60
_SCALE = 2  # pixels of the picture for one of the SVG, as screens have them


def _rsvg(program: str, source: str, target: str, _: Tuple[int, int]) -> List[str]:
    return [program, f"--zoom={_SCALE}", "--format=png", f"--output={target}", source]


def _inkscape(program: str, source: str, target: str, _: Tuple[int, int]) -> List[str]:
    return [program, f"--export-dpi={96 * _SCALE}", "--export-type=png", f"--export-filename={target}", source]


def _chromium(program: str, source: str, target: str, size: Tuple[int, int]) -> List[str]:
    # The superuser's browser has no sandbox; what it is to open is our own file, without scripts.
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    return [
        *(program, "--headless", *sandbox, "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
        *(f"--user-data-dir={os.path.dirname(target)}", f"--force-device-scale-factor={_SCALE}"),
        *(f"--window-size={size[0]},{size[1]}", f"--screenshot={target}", f"file://{source}"),
    ]


# In the order in which they are taken: by how soon they are done.
_CONVERTERS: Dict[str, Callable[[str, str, str, Tuple[int, int]], List[str]]] = {
    "rsvg-convert": _rsvg,
    "inkscape": _inkscape,
    "chromium": _chromium,
    "chromium-browser": _chromium,
    "google-chrome": _chromium,
}
_SIZE = re.compile(r'<svg [^>]*width="(\d+)" height="(\d+)')


def check() -> None:
    """Raises FormatError where nothing converts."""
    if not any(map(shutil.which, _CONVERTERS)):
        raise FormatError(
            "a PNG is made by rsvg-convert, inkscape or chromium, and none is installed: apt install librsvg2-bin,"
            " or write --format=svg"
        )


def convert(lines: Iterator[str]) -> bytes:
    """Of the lines of an SVG file. Raises FormatError."""
    name = next(filter(shutil.which, _CONVERTERS))
    text = "\n".join(lines)
    found = _SIZE.search(text)
    size = (int(found.group(1)), int(found.group(2)) + 1) if found else (1200, 800)
    with tempfile.TemporaryDirectory(prefix="jm_print.") as directory:
        source, target = os.path.join(directory, "picture.svg"), os.path.join(directory, "picture.png")
        with open(source, "w", encoding="ascii") as stream:
            stream.write(text)
        command = _CONVERTERS[name](shutil.which(name) or name, source, target, size)
        try:
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_SECONDS)
            with open(target, "rb") as made:
                png = made.read()
        except (OSError, subprocess.TimeoutExpired):
            png = b""
        if not png.startswith(b"\x89PNG"):
            raise FormatError(f"{name} made no PNG of the picture: write --format=svg and convert that")
    return png


def converted(write: Callable[..., Iterator[str]]) -> Callable[..., Iterator[bytes]]:
    """From what writes an SVG to what writes a PNG."""

    def write_png(*arguments: object) -> Iterator[bytes]:
        yield convert(write(*arguments))

    return write_png
