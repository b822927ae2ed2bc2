# SPDX-License-Identifier: GPL-2.0-or-later
"""What leaks, under one definition: what the program still held at its end, and what was still growing then.

*Held at the end* is read before an interpreter cleans up, since that frees what a script has kept for no use. Of what is
held then it leaves out what nobody means to free: what imports left, the interpreter's own tables, pages of files and
stacks, what a heap adds around blocks, and what a forked child was born with, which is its parent's to free. Reserves of
caching allocators, and the runtime's own memory (contexts, code), are held until the end on purpose as well, so they are in no
sum, but may be asked for by their names.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from jmassif.model.kinds import OTHER, counted_blocks, side_of
from jmassif.model.profile import Profile
from jmassif.model.records import Composition
from jmassif.questions.growth import NOT_FREED, Growing, Growth, find_growth, importing
from jmassif.questions.inherited import left_at
from jmassif.questions.moments import before_clean_up
from jmassif.units import count, size
from jmassif.whose.names import Names

_ON_PURPOSE = ("cached", "runtime")  # groups


class HeldAtEnd(NamedTuple):
    time: int
    snapshot: int  # index
    leaked: Composition
    # Of the groups that keep it on purpose, and what imports and the interpreter have left: bytes.
    on_purpose: Composition
    imports: int
    interpreter: int
    inherited: int  # what a forked child had from its parent, and never freed
    suppressed: int  # what a list of known leaks has

    @property
    def bytes(self) -> int:
        return sum(n_bytes for n_bytes, _ in self.leaked.values())


def held_at_end(profile: Profile, names: Names) -> Optional[HeldAtEnd]:
    """None if the trace has no snapshot."""
    if not profile.snapshots:
        return None
    index = before_clean_up(profile)
    is_import = importing(profile, names)
    leaked: Composition = {}
    on_purpose: Composition = {}
    left = {"imports": 0, "interpreter": 0, "inherited": 0, "suppressed": 0}
    known = profile.suppressed or bytearray(len(profile.accounts))
    born_with = left_at(profile, index)
    for account, held in profile.composition(index).items():
        node, kind, owner = profile.accounts[account]
        if side_of(kind) is None or kind in NOT_FREED or kind == "heap-overhead":
            continue
        if account in born_with:
            n_bytes, blocks = born_with[account]
            left["inherited"] += n_bytes
            held = (held[0] - n_bytes, held[1] - blocks)
            if not any(held):
                continue
        if is_import[account]:
            left["imports"] += held[0]
        elif owner == "python" and node and not names.charged(account, False):
            left["interpreter"] += held[0]
        elif profile.group_of.get(owner) in _ON_PURPOSE:
            on_purpose[account] = held
        elif known[account]:
            left["suppressed"] += held[0]
        else:
            leaked[account] = held
    return HeldAtEnd(profile.snapshots[index].time, index, leaked, on_purpose, **left)


def not_counted(profile: Profile, held: HeldAtEnd) -> List[Tuple[str, int]]:
    """What is in no sum of what leaks, in words, and bytes."""
    accounts = profile.accounts
    groups = [
        (profile.group_of.get(accounts[account].owner), n_bytes) for account, (n_bytes, _) in held.on_purpose.items()
    ]
    found = [
        ("inherited from the process that forked it", held.inherited),
        ("suppressed", held.suppressed),
        ("left by imports", held.imports),
        ("the interpreter's own", held.interpreter),
        ("reserved by caching allocators", sum(n_bytes for group, n_bytes in groups if group == "cached")),
        ("the runtime's", sum(n_bytes for group, n_bytes in groups if group == "runtime")),
    ]
    return [row for row in found if row[1]]


class LeakedPlace(NamedTuple):
    label: str
    owner: str
    kind: str
    bytes: int
    blocks: int


def leaked_places(profile: Profile, names: Names, composition: Composition) -> List[LeakedPlace]:
    """By Python line or, where there is none, by what allocated; the largest first."""
    found: Dict[Tuple[int, str, str], List[int]] = {}
    for account, (n_bytes, blocks) in composition.items():
        node, kind, owner = profile.accounts[account]
        frame = (names.charged(account) or names.site_id(account)) if node else 0
        sums = found.setdefault((frame, owner, kind), [0, 0])
        sums[0] += n_bytes
        sums[1] += counted_blocks(kind, blocks)
    places = [
        LeakedPlace(names.frame(frame) if frame else "(memory without a stack)", owner, kind, *sums)
        for (frame, owner, kind), sums in found.items()
    ]
    return sorted(places, key=lambda place: (-place.bytes, place))


# ---- in words --------------------------------------------------------------------------------

_UNITS: Dict[str, str] = {"ms": "second", "i": "million instructions", "B": "MiB allocated and freed"}
_SCALES: Dict[str, float] = {"ms": 1000.0, "i": 1e6, "B": float(1 << 20)}
_MAX_STEP = 30


def step_name(profile: Profile, grown: Growth) -> str:
    """What a slope is by: the program's own word for a repetition, or a unit of time."""
    if not grown.step:
        return _UNITS[profile.time_unit]
    step = grown.step if len(grown.step) <= _MAX_STEP else grown.step[: _MAX_STEP - 1] + "…"
    return step if step.isalnum() else f'"{step}"'


def slope(profile: Profile, grown: Growth, line: Growing) -> float:
    """Bytes by `step_name`."""
    return line.bytes_per_step * (1 if grown.step else _SCALES[profile.time_unit])


def rate(profile: Profile, grown: Growth, line: Growing) -> str:
    """ "4.00 KiB per step"; where the program tells of no steps "40 blocks of about 4.00 KiB".

    Seconds are the last resort: under Valgrind they are not the program's own.
    """
    if not grown.step and line.blocks == 1:
        return "in one block that grows"
    if not grown.step and line.blocks:
        return f"{count(line.blocks, 'block')} of about {size(line.held // line.blocks)}"
    return f"{size(round(slope(profile, grown, line)))} per {step_name(profile, grown)}"


def growth_sentence(profile: Profile, grown: Growth) -> str:
    """The first thing to say of a run that leaks; "" of one that does not, or that does not tell. Safe to show."""
    if not grown.lines:
        return ""
    first, others = grown.lines[0], grown.lines[1:]
    text = f"Still growing at the end: {first.label} ({first.owner}), {rate(profile, grown, first)}"
    in_blocks = not grown.step and first.blocks > 1  # by their size: those from before the slope are among them
    text += f", {size(first.held if in_blocks else first.grown)} so far"
    if others:
        more = sum(line.grown for line in others)
        text += f"; and {count(len(others), 'more line')}, {size(more)}"
    return text + "."


# ---- for programs ----------------------------------------------------------------------------

_MOST_PLACES = 100
_MAX_LABEL = 400


def as_data(profile: Profile, names: Names) -> Optional[Dict[str, Any]]:
    """What formats for programs, and the page, have of it; None if the trace has no snapshot."""
    held = held_at_end(profile, names)
    if held is None:
        return None
    grown = find_growth(profile, names)
    rows: Dict[str, Dict[str, Any]] = {}
    for account, (n_bytes, blocks) in held.leaked.items():
        _, kind, owner = profile.accounts[account]
        group = profile.group_of.get(owner, OTHER)
        row = rows.setdefault(owner, {"name": owner, "group": group, "host": 0, "device": 0, "blocks": 0})
        row[side_of(kind) or ""] += n_bytes
        row["blocks"] += counted_blocks(kind, blocks)
    places = leaked_places(profile, names, held.leaked)[:_MOST_PLACES]
    return {
        "time": held.time,
        "bytes": held.bytes,
        "owners": sorted(rows.values(), key=lambda row: (-row["host"] - row["device"], row["name"])),
        "places": [dict(place._asdict(), label=place.label[:_MAX_LABEL]) for place in places],
        "not_counted": [list(row) for row in not_counted(profile, held)],
        "step": step_name(profile, grown),
        "n_steps": grown.n_steps,
        "untold": grown.untold,
        "growing": [
            {
                "label": line.label[:_MAX_LABEL],
                "owner": line.owner,
                "slope": round(slope(profile, grown, line), 3),
                "grown": line.grown,
                "held": line.held,
                "since": line.since,
            }
            for line in grown.lines[:_MOST_PLACES]
        ],
    }
