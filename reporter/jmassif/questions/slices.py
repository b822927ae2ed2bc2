# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions and calls as slices of their threads, and tracks on which slices nest."""

from typing import Any, Dict, List, NamedTuple

from jmassif.model.profile import Profile
from jmassif.questions.regions import region_figures
from jmassif.questions.scopes import growth_by_side

# Threads of the second track on, whose numbers must not be those of real threads.
_FIRST_TRACK = 1 << 24


class Slice(NamedTuple):
    thread: int
    begin: int
    end: int
    category: str
    name: str
    figures: Dict[str, Any]


def slices(profile: Profile) -> List[Slice]:
    """In order of time, the outer one first."""
    found = []
    for region in profile.regions:
        end = max(region.begin, profile.last_time) if region.end is None else region.end
        most, host, device = region_figures(profile, region)
        figures = {"most_bytes": most, "host_growth_bytes": host, "device_growth_bytes": device}
        if region.end is None:
            figures["still_open"] = True
        found.append(Slice(region.thread, region.begin, end, "region", region.text, figures))
    for scope in sorted(profile.scopes, key=lambda scope: (scope.begin, -scope.end, scope.id)):
        host, device = growth_by_side(scope.growths)
        figures = {"host_growth_bytes": host, "device_growth_bytes": device}
        figures.update((f"{growth.kind}_blocks", growth.blocks) for growth in scope.growths)
        found.append(Slice(scope.thread, scope.begin, scope.end, "scope", scope.name, figures))
    # Stable: of slices with the same ends the region is the outer one, and a scope that was begun first.
    return sorted(found, key=lambda slice_: (slice_.begin, -slice_.end))


class Tracks:
    """Which track of its thread a slice goes to: the first where it nests in those that are open."""

    def __init__(self) -> None:
        self._open: Dict[int, List[List[int]]] = {}  # by thread and track: the ends of the open slices
        self.names: Dict[int, str] = {}

    def place(self, slice_: Slice) -> int:
        tracks = self._open.setdefault(slice_.thread, [])
        for number, ends in enumerate(tracks):
            # One that ends where this one begins is not around it.
            while ends and ends[-1] <= slice_.begin and ends[-1] < slice_.end:
                ends.pop()
            if not ends or slice_.end <= ends[-1]:
                break
        else:
            number, ends = len(tracks), []
            tracks.append(ends)
        ends.append(slice_.end)
        if not number:
            self.names[slice_.thread] = f"thread {slice_.thread}"
            return slice_.thread
        track = _FIRST_TRACK * number + slice_.thread
        self.names[track] = f"thread {slice_.thread}, overlapping ({number + 1})"
        return track
