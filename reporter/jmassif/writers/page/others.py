# SPDX-License-Identifier: GPL-2.0-or-later
"""What other tools showed, over time, for the page: sampled figures by their times, the ledger's by the page's moments."""

from typing import Any, Dict, List

from jmassif.model.profile import Profile
from jmassif.questions.others import counted_over_time, sampled_series
from jmassif.writers.page.cells import Cells


def others(profile: Profile, found: Cells) -> List[Dict[str, Any]]:
    """A row for each figure: `times` is null where `values` are those of the moments, in their order."""
    rows: List[Dict[str, Any]] = [
        {"tool": s.tool, "figure": s.figure, "leaves_out": s.leaves_out, "times": s.times, "values": s.values}
        for s in sampled_series(profile)
    ]
    moments = [(moment.snapshot, moment.peak) for moment in found.moments]
    for shown, values in counted_over_time(profile, moments):
        row = {"tool": shown.tool, "figure": shown.figure, "leaves_out": shown.leaves_out}
        rows.append({**row, "times": None, "values": values})
    if profile.overlay is not None:
        overlay = profile.overlay
        what = "memory used" if overlay.is_of_device else "RAM"
        row = {"tool": f"{overlay.tool}, by its log", "figure": what, "leaves_out": "whose it is"}
        rows.append({**row, "times": overlay.times, "values": overlay.values})
    return rows
