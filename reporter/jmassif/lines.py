# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory by Python line, function or module: what each held at the peak, what is left of it, and all it ever allocated.

Every account is charged to one row (see charges.py), so the rows add up to the totals, to the byte.
"""

from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple

from jmassif.names import Names
from jmassif.profile import Composition, Profile, counted_blocks, side_of
from jmassif.units import printable

LINE_VIEWS = {"python-line": "line", "python-function": "function", "module": "module"}


class Figures(NamedTuple):
    """Of one side. Bytes, but for the blocks."""

    held: int  # at the peak
    blocks: int  # likewise
    growth: int  # net, from the start to the moment that was chosen
    allocated: int  # all in all

    def plus(self, other: "Figures") -> "Figures":
        return Figures(*(mine + theirs for mine, theirs in zip(self, other)))


class Charged(NamedTuple):
    """What memory is charged to."""

    label: str
    frame: int  # of the line; 0: it is no line
    is_place: bool  # False: what could not be charged to anything


class LineRow(NamedTuple):
    charged: Charged
    host: Figures
    device: Figures


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


def line_rows(
    profile: Profile, charged: Callable[[int], Charged], at_peak: Composition, now: Composition
) -> List[LineRow]:
    """The rows, in no order. Memory of kinds that are only listed is left out."""
    found: Dict[str, Tuple[Charged, Dict[str, List[int]]]] = {}
    nothing = (0, 0)
    allocated = profile.allocated()
    for account, (_, kind, _) in enumerate(profile.accounts):
        side = side_of(kind)
        held, blocks = at_peak.get(account, nothing)
        grown = now.get(account, nothing)[0]
        if side is None or not (held or blocks or grown or allocated[account]):
            continue
        to = charged(account)
        row = found.get(to.label)
        if row is None:
            row = found[to.label] = (to, {"host": [0] * 4, "device": [0] * 4})
        sums = row[1][side]
        sums[0] += held
        sums[1] += counted_blocks(kind, blocks)
        sums[2] += grown
        sums[3] += allocated[account]
    return [LineRow(to, Figures(*sums["host"]), Figures(*sums["device"])) for to, sums in found.values()]


def total(rows: Sequence[LineRow]) -> LineRow:
    host = device = Figures(0, 0, 0, 0)
    for row in rows:
        host, device = host.plus(row.host), device.plus(row.device)
    return LineRow(Charged("total", 0, False), host, device)
