# SPDX-License-Identifier: GPL-2.0-or-later
"""What other tools showed, over time, for the page: sampled figures by their times, the ledger's by the page's moments."""

from typing import Any, Dict, List

from jmassif.model.profile import Profile
from jmassif.questions.others import counted_at, sampled_series
from jmassif.writers.page.cells import Cells


def others(profile: Profile, found: Cells) -> List[Dict[str, Any]]:
    """A row for each figure: `times` is null where `values` are those of the moments, in their order."""
    rows: List[Dict[str, Any]] = [
        {"tool": s.tool, "figure": s.figure, "leaves_out": s.leaves_out, "times": s.times, "values": s.values}
        for s in sampled_series(profile)
    ]
    by_moment = [
        counted_at(
            profile,
            profile.peak_composition(moment.peak) if moment.snapshot is None else profile.composition(moment.snapshot),
        )
        for moment in found.moments
    ]
    for place, first in enumerate(by_moment[0] if by_moment else []):
        values = [shown[place].bytes for shown in by_moment]
        row = {"tool": first.tool, "figure": first.figure, "leaves_out": first.leaves_out}
        rows.append({**row, "times": None, "values": values})
    if profile.overlay is not None:
        overlay = profile.overlay
        what = "memory used" if overlay.is_of_device else "RAM"
        row = {"tool": f"{overlay.tool}, by its log", "figure": what, "leaves_out": "whose it is"}
        rows.append({**row, "times": overlay.times, "values": overlay.values})
    return rows
