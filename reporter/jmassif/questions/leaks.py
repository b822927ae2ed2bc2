# SPDX-License-Identifier: GPL-2.0-or-later
"""What leaks, under one definition: what the program still held at its end, and what was still growing then.

*Held at the end* is read before an interpreter cleans up, since that frees what a script has kept for no use. Of what is
held then it leaves out what nobody means to free: what imports left, the interpreter's own tables, pages of files and
stacks, and what a heap adds around blocks. Reserves of caching allocators, and the runtime's own memory (contexts, code),
are held until the end on purpose as well, so they are in no sum, but may be asked for by their names.
"""

from typing import Dict, NamedTuple, Optional

from jmassif.model.kinds import side_of
from jmassif.model.profile import Profile
from jmassif.model.records import Composition
from jmassif.questions.growth import NOT_FREED, Growing, Growth, importing
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
    left = {"imports": 0, "interpreter": 0}
    for account, held in profile.composition(index).items():
        node, kind, owner = profile.accounts[account]
        if side_of(kind) is None or kind in NOT_FREED or kind == "heap-overhead":
            continue
        if is_import(account):
            left["imports"] += held[0]
        elif owner == "python" and node and not names.charged(account, False):
            left["interpreter"] += held[0]
        elif profile.group_of.get(owner) in _ON_PURPOSE:
            on_purpose[account] = held
        else:
            leaked[account] = held
    return HeldAtEnd(profile.snapshots[index].time, index, leaked, on_purpose, left["imports"], left["interpreter"])


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
    """ "4.00 KiB per step" """
    return f"{size(round(slope(profile, grown, line)))} per {step_name(profile, grown)}"


def growth_sentence(profile: Profile, grown: Growth) -> str:
    """The first thing to say of a run that leaks; "" of one that does not, or that does not tell. Safe to show."""
    if not grown.lines:
        return ""
    first, others = grown.lines[0], grown.lines[1:]
    text = f"Still growing at the end: {first.label} ({first.owner}), {rate(profile, grown, first)}"
    text += f", {size(first.grown)} so far"
    if others:
        more = sum(line.grown for line in others)
        text += f"; and {count(len(others), 'more line')}, {size(more)}"
    return text + "."
