# SPDX-License-Identifier: GPL-2.0-or-later
"""What the sections of a text report share: the page, headings, and the pools that have columns."""

from textwrap import wrap
from typing import List

from jmassif.profile import Profile

PAGE = 80

Lines = List[str]


def heading(title: str) -> Lines:
    return ["", f"--- {title} {'-' * max(3, PAGE - len(title) - 5)}"]


def paragraph(text: str) -> Lines:
    return wrap(text, PAGE, break_long_words=False, break_on_hyphens=False)


def used_sides(profile: Profile) -> List[str]:
    """The pools that ever held anything; the host's if none did."""
    columns = {"host": profile.timeline.host, "device": profile.timeline.device}
    used = [
        side
        for side, column in columns.items()
        if any(column) or any(getattr(peak, side) for peak in profile.peaks.values())
    ]
    return used or ["host"]


def arena_note(profile: Profile) -> Lines:
    """Where in the figures a Python program's own objects are."""
    if not profile.manifest.get("python") or profile.manifest.get("env.PYTHONMALLOC", "").startswith("malloc"):
        return []
    if profile.has_pages:
        return paragraph(
            "Python keeps objects up to 512 bytes in arenas from mmap, unless it is run with PYTHONMALLOC=malloc: the"
            " pages of those are anon memory of owner python."
        )
    return paragraph(
        "Owner python is without objects up to 512 bytes: Python keeps them in arenas from mmap, unless it is run with"
        " PYTHONMALLOC=malloc."
    )
