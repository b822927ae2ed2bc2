# SPDX-License-Identifier: GPL-2.0-or-later
"""What memory is charged to in the views by Python line, by function and by module (see charges.py)."""

from typing import Callable, Dict, List, NamedTuple, Tuple

from jmassif.model.profile import Profile
from jmassif.units import printable
from jmassif.whose.charges import callers
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


class _Places:
    """From a frame to what it is called in one of LINE_VIEWS. Remembers."""

    def __init__(self, profile: Profile, names: Names, view: str, home: str) -> None:
        self._profile, self._names, self._view, self._home = profile, names, view, home
        self._known: Dict[int, Charged] = {}

    def __call__(self, frame: int) -> Charged:
        if frame not in self._known:
            self._known[frame] = self._named(frame)
        return self._known[frame]

    def _named(self, frame: int) -> Charged:
        profile, names = self._profile, self._names
        fields = profile.frame(frame)
        if self._view == "python-line":
            return Charged(f"{names.file(frame)}:{fields.line}", frame, True)
        if self._view == "python-function":
            return Charged(printable(f"{fields.function or '?'} ({names.file(frame)})"), 0, True)
        return Charged(printable(_module(profile, names, frame, self._home)), 0, True)


def totals(profile: Profile, names: Names, view: str, is_folded: bool) -> Callable[[int], List[Charged]]:
    """A function from an account to all that has it in its total, each once: what is charged, and what had called that."""
    place = _Places(profile, names, view, profile.manifest.get("cwd", ""))
    passed = callers(profile, names.folding, is_folded)
    known: Dict[Tuple[int, ...], List[Charged]] = {}

    def charged(account: int) -> List[Charged]:
        frames = passed(profile.accounts[account].node)
        if frames not in known:
            known[frames] = list({to.label: to for to in map(place, frames)}.values())
        return known[frames]

    return charged


def charges(
    profile: Profile, names: Names, view: str, is_folded: bool, is_below_cwd: bool = True
) -> Callable[[int], Charged]:
    """A function from an account to what it is charged to in one of LINE_VIEWS.

    Unless `is_below_cwd`, modules have names that do not depend on where the program was started.
    """
    place = _Places(profile, names, view, profile.manifest.get("cwd", "") if is_below_cwd else "")
    nowhere = Charged(f"(no Python {LINE_VIEWS[view]})", 0, False)

    def charged(account: int) -> Charged:
        frame = names.charged(account, is_folded)
        if frame:
            return place(frame)
        if not profile.accounts[account].node:
            return Charged(f"({profile.accounts[account].kind}, without a stack)", 0, False)
        return Charged(names.library(account), 0, True) if view == "module" else nowhere

    return charged
