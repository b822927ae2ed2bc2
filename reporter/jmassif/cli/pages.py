# SPDX-License-Identifier: GPL-2.0-or-later
"""Writing and opening a page.

Without -o a page becomes a file in the current directory, unless standard output is a file already; -o - is standard output.
"""

import os
import stat
import sys
import webbrowser
from pathlib import Path
from typing import Iterable, Optional, Sequence

from jmassif.cli.common import Problem, check_not_input, warn, write

STANDARD_OUTPUT = "-"


def _is_redirected() -> bool:
    try:
        return sys.stdout is not None and stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):  # closed, or none of the system's
        return False


def _page_file(given: Optional[str], default: str, is_opened: bool) -> Optional[str]:
    """The file that a page is written to; None: standard output."""
    if given == STANDARD_OUTPUT:
        return None
    return given if given or (_is_redirected() and not is_opened) else default


def _open_page(path: str) -> None:
    """Shows the file in the user's browser. Raises Problem."""
    address = Path(os.path.abspath(path)).as_uri()
    has_screen = (
        any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")) or sys.platform == "darwin"
    )
    try:
        is_opened = has_screen and webbrowser.open(address)
    except webbrowser.Error:
        is_opened = False
    if not is_opened:
        raise Problem(f"no browser to open {path} with: open {address}, or copy the file to where there is one")


def write_page(
    lines: Iterable[str], inputs: Sequence[str], given: Optional[str], default: str, is_opened: bool
) -> None:
    """Write a page to the file `given` by the user, else to `default`, which a warning names; open it. Raises Problem."""
    output = _page_file(given, default, is_opened)
    check_not_input(output, inputs)
    write(lines, output, "the page")
    if output and not given:
        warn(f"wrote {output} ({os.path.getsize(output) / 1e6:.1f} MB): open it in a browser")
    if output and is_opened:
        _open_page(output)
