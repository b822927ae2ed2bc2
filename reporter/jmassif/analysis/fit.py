# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory that a training needs with another batch size, or with other settings of PyTorch's allocator.

The steps of a run's caching allocator follow from its trace (allocator_steps.py), their sizes with another batch from a second
run (batches.py). What the allocator would have reserved for them is what its model reserves (allocator_replay.py). Sizes are bytes.
"""

from array import array
from bisect import bisect_left, bisect_right
from functools import lru_cache
from itertools import count
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.allocator_replay import Pools, replay, requests, rounded
from jmassif.analysis.allocator_steps import FitError, Steps, handed_out, steps_of
from jmassif.analysis.batches import NEARLY, Continued, Line, by_roles, continued, lines_of, settings_of
from jmassif.analysis.caching_allocator import ENDLESS, LARGE_SEGMENT, MIB, ROUNDED_SEGMENT, SMALL, Settings
from jmassif.analysis.oom import allocator_config, at_least
from jmassif.analysis.room import Room, StartupCost, pages_of, rest_of, room_of, space_of, startup_costs, unused_of
from jmassif.model.run import Profile
from jmassif.model.run_info import fact

_MOST_BATCH = 1 << 16
_MOST_GUESSES = 8  # of the largest batch that fits; then halves
# Batches below it that have to fit too, and steps that are replayed to see it.
_MOST_CHECKED, _MOST_REPLAYED = 64, 1 << 22


class Need(NamedTuple):
    """Memory that a batch size needs."""

    batch: int
    allocated: int  # at most, in PyTorch's tensors and workspaces
    reserved: int  # at most, by its allocator
    rest: int  # of the program
    least: int  # of `program`, where it is not certain
    most: int  # likewise
    unused: int  # free inside malloc, of a run on the CPU

    @property
    def program(self) -> int:
        return self.reserved + self.rest + self.unused

    @property
    def is_about(self) -> bool:
        return self.least < self.most


class Fit(NamedTuple):
    needs: List[Need]  # those asked for, and those at the limit, by batch
    largest: Optional[int]  # batch that fits; None: none does, or others were asked for
    room: Room
    lines: List[Line]  # that grow with the batch, the largest first
    recorded: int  # reserved by the run with the larger batch
    modelled: int  # what the model says of it
    batches: Tuple[int, ...]
    unlike: float  # Continued.unlike
    is_cut: bool  # a run did not come to its end
    startup: List[StartupCost]
    unused: int  # free inside malloc, of the run with the larger batch
    steps: Steps  # of the run with the larger batch

    def fits(self, need: Need) -> Optional[bool]:
        """None: it may."""
        return True if need.most <= self.room.available else False if need.least > self.room.available else None


# The batch does not explain a smaller difference of two runs.
_LEAST_GROWTH = 0.01
# Facts that two runs have to share, and their names.
_SAME = {
    "pytorch": "PyTorch", "cuda": "CUDA", "cudnn": "cuDNN", "arch": "the processor", "l4t": "the JetPack", "board": "the board"
}  # fmt: skip


def _check_alike(runs: Sequence[Profile]) -> None:
    """Raises FitError."""
    for key, what in _SAME.items():
        values = [fact(run, key) for run in runs]
        if values[0] != values[1]:
            raise FitError(
                f"the runs differ in more than the batch: {what} is {values[0] or 'unknown'} and {values[1] or 'unknown'}"
            )
    if settings_of(runs[0]) != settings_of(runs[1]):
        raise FitError("the runs differ in more than the batch: the settings of PyTorch's allocator are others")


def fit_batches(
    runs: Sequence[Profile],
    batches: Sequence[int],
    asked: List[int],
    board: Optional[int] = None,
    startup_of: Optional[Profile] = None,
    is_dry: bool = False,
) -> Fit:
    """For the batch sizes asked for and, without any, for the largest that fits. Raises FitError.

    `batches` are those of the runs, two or one; without any the answer is of the recorded run, as batch 1. `board` is the
    memory of the board in question, by default that of the runs. The start-up costs what it did in `startup_of`. `is_dry`:
    host and device are one memory there, whatever they were.
    """
    run, space = runs[-1], space_of(runs[-1], is_dry)
    is_recorded, batches = not batches, batches or (1,)
    if len(runs) == 2:
        if batches[0] == batches[1]:
            raise FitError("both runs have the same batch")
        if batches[0] > batches[1]:
            return fit_batches(runs[::-1], batches[::-1], asked, board, startup_of, is_dry)
        if "process" in run.manifest and run.manifest == runs[0].manifest:
            raise FitError("both traces are of the same run")
        _check_alike(runs)
        found = (continued((runs[0], run), (batches[0], batches[1])),)  # type: Tuple[Continued, ...]
    else:
        found = by_roles(run, batches[0])
    settings, costs = settings_of(run), startup_costs(run, startup_of, space) if startup_of or is_dry else []
    room = room_of(startup_of, board, False) if is_dry and startup_of else room_of(run, board, is_dry)
    is_host = found[0].steps.is_host
    rests = [rest_of(each, reserved, space, is_host) for each, reserved in zip(runs, found[0].reserved)]
    pages = [pages_of(each, space) for each in runs]
    unused = [unused_of(each) if is_host else 0 for each in runs]
    replaced = sum(row.replaced - row.recorded for row in costs)

    def straight(figures: List[int], batch: int, fixed: Sequence[int] = (0,)) -> int:
        """`fixed`: the part of each figure that the batch does not explain."""
        growth = figures[-1] - figures[0] - (fixed[-1] - fixed[0])
        if growth <= _LEAST_GROWTH * figures[-1]:
            return max(figures)
        return int(figures[-1] + growth / (batches[-1] - batches[0]) * (batch - batches[-1]))

    def beside(batch: int) -> Tuple[int, int]:
        """Memory of the rest of the program, and free inside malloc."""
        return max(0, straight(rests, batch, pages) + replaced), max(0, straight(unused, batch))

    @lru_cache(None)
    def made(guess: int, batch: int) -> Tuple[int, int]:
        """Reserved and allocated, at most."""
        steps = found[guess].steps
        reserved, blocks, _ = replay(steps, found[guess].sizes(batch), settings)
        return reserved, max(handed_out(steps.replayed, blocks))

    def need(batch: int) -> Need:
        reserved, allocated = zip(*(made(guess, batch) for guess in range(len(found))))
        rest, free = beside(batch)
        # A cache can be smaller than with the sizes of any guess, or have a segment more.
        least = reserved[0] if len(found) == 1 or batch in batches else min(allocated)
        most = max(reserved) + (LARGE_SEGMENT if least < reserved[0] and not found[0].steps.is_host else 0)
        return Need(batch, allocated[0], reserved[0], rest, least + rest, most + rest + free, free)

    def left(batch: int) -> int:
        return room.available - sum(beside(batch)) - made(0, batch)[0]

    # The recorded batches leave this; for the smaller it is an estimate.
    points = [
        (batch, room.available - sum(beside(batch)) - n_bytes + found[0].reserved[1] - found[0].modelled)
        for batch, n_bytes in zip(found[0].batches, found[0].reserved)
    ]
    known, lines = () if is_recorded else tuple(batches), lines_of(run, found[0])
    if len(known) == 2 and not lines:
        raise FitError("nothing that tensors hold at the peak differs between the runs: are their batches those named?")
    if len(known) == 1 and not lines and left(_MOST_BATCH - 1) >= 0:
        raise FitError("nothing grows with the batch: is the trace of a training with PyTorch?")
    checked = min(_MOST_CHECKED, _MOST_REPLAYED // len(found[0].steps.replayed))
    largest = None if is_recorded or asked else _largest(left, points[0], points[1], checked)
    wanted = asked or ({1} if is_recorded else {largest or 1, (largest or 0) + 1})
    is_cut = not all(each.is_complete for each in runs)
    needs, last = [need(batch) for batch in sorted(wanted)], found[0]
    figures = last.reserved[1], last.modelled, known, last.unlike
    return Fit(needs, largest, room, lines, *figures, is_cut, costs, unused[-1], last.steps)


_Point = Tuple[int, int]  # a batch, and the bytes that it leaves


def _largest(left: Callable[[int], int], before: _Point, last: _Point, checked: int = 0) -> Optional[int]:
    """The largest batch that leaves some bytes or none, and so do as many before it as are `checked`. Two points are a guess.

    More samples can need less memory: a tensor of 10 MiB has a segment of its own, a smaller one may leave half of one unused.
    """
    low, high = 0, _MOST_BATCH
    for tried in count():
        if high - low <= 1:
            break
        guess = (low + high) // 2
        if tried < _MOST_GUESSES and before[0] != last[0]:
            each = (before[1] - last[1]) / (last[0] - before[0])
            guess = last[0] + int(last[1] // each) if each > 0 else 2 * last[0]
        batch = min(max(guess, low + 1), high - 1)
        n_bytes = left(batch)
        low, high = (batch, high) if n_bytes >= 0 else (low, batch)
        before, last = last, (batch, n_bytes)
    batch = low
    while batch > max(1, low - checked):
        batch -= 1
        if left(batch) < 0:
            low = batch - 1
    return low or None


# ---- other settings -----------------------------------------------------------------------------


class Trial(NamedTuple):
    settings: Settings
    reserved: int  # at most


class Trials(NamedTuple):
    variable: str  # of the environment, that this PyTorch reads
    recorded: Settings
    reserved: int  # as recorded
    modelled: int  # what the model says of the recorded settings
    others: List[Trial]  # that need less than as recorded and than all tried before them, the least first
    steps: Steps
    # For PyTorch's allocator on the board asked for, beside the rest of the program and of the system.
    room: Optional[int]

    @property
    def holds(self) -> bool:
        return abs(self.modelled - self.reserved) <= NEARLY * self.reserved


# Expandable segments come last: boards without cuMemCreate need the best of the others.
TRIED = (
    Settings(),
    *(Settings(max_split_size=n * MIB) for n in (32, 64, 128, 256, 512)),
    Settings(roundup_power2_divisions=4),
    Settings(roundup_power2_divisions=8),
    Settings(max_split_size=128 * MIB, roundup_power2_divisions=8),
    Settings(expandable_segments=True),
    Settings(expandable_segments=True, roundup_power2_divisions=4),
    Settings(expandable_segments=True, roundup_power2_divisions=8),
)


def try_settings(run: Profile, board: Optional[int] = None) -> Trials:
    """Replay the steps with other settings of PyTorch's allocator; `board` has so much memory. Raises FitError."""
    steps, recorded = steps_of(run), settings_of(run)
    pools = Pools(steps, steps.sizes)
    made = pools.replay(recorded)
    pools.sizes = sizes = requests(steps, made)
    version = run.manifest.get("pytorch", "")
    of_large = array("Q", set(filter(SMALL.__lt__, sizes)))
    can_expand = run.manifest.get("cuda-vmm") != "no" and (not version or at_least(version, 2, 1))

    def effect(settings: Settings) -> Tuple[Settings, int, int]:
        """Limits have the same if no block or segment has a size between them."""
        asked = sorted(set(rounded(of_large, settings)))
        limit = settings.max_split_size or ENDLESS
        without = settings._replace(max_split_size=0)
        return without, bisect_left(asked, limit), bisect_right(asked, limit - ROUNDED_SEGMENT)

    tried = {effect(recorded)}
    better, least = [], made.reserved  # type: List[Trial], int
    for each in TRIED:
        if effect(each) in tried or each.expandable_segments > can_expand:
            continue
        tried.add(effect(each))
        reserved = pools.reserved(each, least)
        if reserved < least:
            better, least = [Trial(each, reserved), *better], reserved
    room = None if board is None else room_of(run, board).available - rest_of(run, steps.reserved, space_of(run))
    return Trials(allocator_config(run)[0], recorded, steps.reserved, made.reserved, better, steps, room)
