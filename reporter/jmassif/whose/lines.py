# SPDX-License-Identifier: GPL-2.0-or-later
"""What memory is charged to in the views by Python line, by function and by module (see charges.py)."""

from typing import Callable, Dict, NamedTuple

from jmassif.model.profile import Profile
from jmassif.units import printable
from jmassif.whose.names import Names

LINE_VIEWS = {"python-line": "line", "python-function": "function", "module": "module"}


class Charged(NamedTuple):
    """What memory is charged to."""

    label: str
    frame: int  # of the line; 0: it is no line
    is_place: bool  # False: what could not be charged to anything


def _module(profile: Profile, names: Names, frame: int, home: str) -> str:
    """The package of a frame; of the user's own files the path below the directory `home`, as import has it."""
    package = names.folding.internal(frame).package
    if package:
        return package
    path = profile.frame(frame).file
    is_below = home and path.startswith(home.rstrip("/") + "/")
    name = path[len(home.rstrip("/")) + 1 :] if is_below else names.file(frame)
    name = name[: -len(".py")] if name.endswith(".py") else name
    return ".".join(part for part in name.split("/") if part not in ("", ".", "__init__")) or name


def charges(
    profile: Profile, names: Names, view: str, is_folded: bool, is_below_cwd: bool = True
) -> Callable[[int], Charged]:
    """A function from an account to what it is charged to in one of LINE_VIEWS.

    Unless `is_below_cwd`, modules have names that do not depend on where the program was started.
    """
    home = profile.manifest.get("cwd", "") if is_below_cwd else ""
    nowhere = Charged(f"(no Python {LINE_VIEWS[view]})", 0, False)
    by_frame: Dict[int, Charged] = {}

    def charge(frame: int) -> Charged:
        fields = profile.frame(frame)
        if view == "python-line":
            return Charged(f"{names.file(frame)}:{fields.line}", frame, True)
        if view == "python-function":
            return Charged(printable(f"{fields.function or '?'} ({names.file(frame)})"), 0, True)
        return Charged(printable(_module(profile, names, frame, home)), 0, True)

    def charged(account: int) -> Charged:
        frame = names.charged(account, is_folded)
        if frame:
            if frame not in by_frame:
                by_frame[frame] = charge(frame)
            return by_frame[frame]
        if not profile.accounts[account].node:
            return Charged(f"({profile.accounts[account].kind}, without a stack)", 0, False)
        return Charged(names.library(account), 0, True) if view == "module" else nowhere

    return charged
