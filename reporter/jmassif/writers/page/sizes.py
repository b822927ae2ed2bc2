# SPDX-License-Identifier: GPL-2.0-or-later
"""How large the blocks were that the program asked for, for the page: at the peak and in the whole run, of all, by owner and by line.

Summed as the accounts go by: there may be hundreds of thousands of them.
"""

from typing import Any, Dict, List, Optional, Tuple

from jmassif.model.profile import Profile
from jmassif.questions.moments import select
from jmassif.questions.sizes import Sizes, parts
from jmassif.units import moment
from jmassif.whose.names import Names
from jmassif.whose.sites import NO_STACK
from jmassif.writers.page.texts import shown

_MOST_LINES = 200


class _Row:
    def __init__(self) -> None:
        self.held = Sizes()
        self.asked = Sizes()
        self.at_once = 0

    def join(self, other: "_Row") -> None:
        self.held.join(other.held)
        self.asked.join(other.asked)
        self.at_once += other.at_once

    def data(self, name: str) -> Dict[str, Any]:
        return {"name": name, "held": _data(self.held), "asked": _data(self.asked), "at_once": self.at_once}


def _data(sizes: Sizes) -> Dict[str, Any]:
    classes = [[class_, sizes.blocks[class_], sizes.bytes[class_]] for class_ in sorted(sizes.blocks)]
    return {"classes": classes, "by_mean": sizes.by_mean}


def _ranked(rows: Dict[str, _Row], most: int) -> List[Dict[str, Any]]:
    """Who asks most often comes first; the last is all that are left out."""
    order = sorted(rows, key=lambda name: (-rows[name].asked.n_blocks, name))
    data = [rows[name].data(shown(name)) for name in order[:most]]
    rest = _Row()
    for name in order[most:]:
        rest.join(rows[name])
    return data + ([rest.data(f"({len(order) - most:,} other lines)")] if len(order) > most else [])


def sizes(profile: Profile, names: Names) -> Optional[Dict[str, Any]]:
    """None where no block is on record."""
    at = select(profile, "peak")
    temporaries = profile.lifetime().temporaries
    # By owner and frame: the line that is charged, 0 without a stack.
    found: Dict[Tuple[str, int], _Row] = {}
    for part in parts(profile, at):
        node, _, owner = profile.accounts[part.account]
        key = owner, (names.charged(part.account) or names.site_id(part.account)) if node else 0
        row = found.get(key)
        if row is None:
            row = found[key] = _Row()
        part.add_to(row.held if part.is_held else row.asked)
        row.at_once += 0 if part.is_held else temporaries[part.account]
    all_ = _Row()
    owners: Dict[str, _Row] = {}
    lines: Dict[str, _Row] = {}
    for (owner, frame), row in found.items():
        line = names.frame(frame) if frame else NO_STACK
        for sum_ in (all_, owners.setdefault(owner, _Row()), lines.setdefault(line, _Row())):
            sum_.join(row)
    if not all_.asked.n_blocks:
        return None
    return {
        "when": f"{at.name} ({moment(at.time, profile.time_unit)})",
        "has_all_records": profile.manifest.get("option.large") == "0",
        "all": all_.data(""),
        "owners": _ranked(owners, len(owners)),
        "lines": _ranked(lines, _MOST_LINES),
    }
