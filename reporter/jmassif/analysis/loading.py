# SPDX-License-Identifier: GPL-2.0-or-later
"""Start-up and steady state: the largest total while a model was loaded, and since.

A model is loaded when PyTorch first runs it: weights may be read after its modules were built, and are held twice then. Nothing is
said unless the roles of tensors prove it: parameters have their final size when the model first runs, and keep it. So it is not
known of modules that are made at the first run, nor with a second model that comes later.
"""

from typing import NamedTuple, Optional, Tuple

from jmassif.analysis.moments import last_before_the_fall
from jmassif.attribution.names import Names
from jmassif.model.run import Profile

# Parameters differ by less than this share of their final size.
_SAME = 0.1
# Between the last snapshot before the model ran and the first after it, memory exceeded the peak by less than this share.
_EXACT = 0.05
_RUNS = ("activation", "gradient")


class Loading(NamedTuple):
    until: int  # time
    peak: int  # bytes: the largest total before
    peak_at: int  # time
    steady_peak: int  # bytes: the largest total since
    steady_peak_at: int
    is_training: bool  # there were gradients


def _largest(run: Profile, begin: int, end: int) -> Tuple[int, int]:
    """The largest total in (begin, end], and when it was recorded; 0 without any."""
    rows = [(most, -time) for time, most in zip(run.timeline.time, run.timeline.maximum) if begin < time <= end]
    most, time = max(rows, default=(0, 0))
    return most, -time


def _first_run(run: Profile) -> int:
    """The index of the first snapshot after the loaded model ran; 0: not known."""
    role_of = [run.roles.get(account, "") for account in range(len(run.accounts))]
    first, size, sizes = 0, 0, []
    for index, (snapshot, growths) in enumerate(run.growths()):
        changes = snapshot.changes
        if not first and any(n and role_of[account] in _RUNS for account, n in zip(changes.account, changes.all_bytes)):
            first = index
        size += sum(n_bytes for account, n_bytes, _ in growths if role_of[account] == "parameter")
        sizes.append(size)
    later = sizes[first : last_before_the_fall(run, before_return=True) + 1] if first else []
    final = sorted(later)[len(later) // 2] if later else 0
    while later and later[-1] < (1 - _SAME) * final:  # the script's last functions have freed them
        later.pop()
    return first if final and all(abs(size - final) <= _SAME * final for size in later) else 0


def find_loading(run: Profile, names: Names) -> Optional[Loading]:
    """None where it is not known."""
    return names.once(_find_loading)


def _find_loading(run: Profile, _names: Names) -> Optional[Loading]:
    # Totals between snapshots are of both memories.
    if not run.roles or not run.snapshots or (run.is_discrete and any(run.timeline.device)):
        return None
    first = _first_run(run)
    if not first:
        return None
    before, until = (run.snapshots[index].time for index in (first - 1, first))
    peak, between, steady = (_largest(run, *span) for span in ((-1, before), (before, until), (until, run.last_time)))
    # It may have been loaded until any moment between, and ran for the rest.
    if not steady[0] or peak[0] < between[0] * (1 - _EXACT):
        return None
    return Loading(until, *peak, *steady, "gradient" in run.roles.values())
