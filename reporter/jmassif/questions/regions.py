# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions that the program named (NVTX, jmassif.region): what was held inside them.

The recorder writes the totals at both ends of a region, so these figures are exact.
"""

from typing import Dict, List, NamedTuple

from jmassif.model.profile import Profile
from jmassif.model.records import Region


class RegionFigures(NamedTuple):
    most: int  # bytes: the largest host + device inside it
    host: int  # bytes: how much more the program held at its end than at its beginning; negative if less
    device: int


class NamedRegions(NamedTuple):
    """All regions of one name."""

    text: str
    calls: int
    time: int  # of those that have ended, in the trace's unit
    # Over those that were recorded one by one:
    told: int
    most: int
    host: int
    device: int


def region_figures(profile: Profile, region: Region) -> RegionFigures:
    timeline = profile.timeline
    last = (len(timeline.time) if region.end is None else region.end_row) - 1
    first = region.begin_row - 1

    def total(row: int) -> int:
        return timeline.host[row] + timeline.device[row] if row >= 0 else 0

    most = max(timeline.maximum[first + 1 : last + 1], default=0)
    host = (timeline.host[last] if last >= 0 else 0) - (timeline.host[first] if first >= 0 else 0)
    device = (timeline.device[last] if last >= 0 else 0) - (timeline.device[first] if first >= 0 else 0)
    return RegionFigures(max(most, total(first)), host, device)


def regions_by_name(profile: Profile) -> List[NamedRegions]:
    """A row a name, in the order in which the names first came."""
    rows: Dict[str, NamedRegions] = {}
    for region in profile.regions:
        figures = region_figures(profile, region)
        row = rows.get(region.text, NamedRegions(region.text, 0, 0, 0, 0, 0, 0))
        rows[region.text] = row._replace(
            calls=row.calls + 1,
            time=row.time + (0 if region.end is None else region.end - region.begin),
            told=row.told + 1,
            most=max(row.most, figures.most),
            host=row.host + figures.host,
            device=row.device + figures.device,
        )
    for sums in profile.region_sums.values():
        row = rows.get(sums.text, NamedRegions(sums.text, 0, 0, 0, 0, 0, 0))
        rows[sums.text] = row._replace(calls=max(row.calls, sums.calls), time=max(row.time, sums.time))
    return list(rows.values())
