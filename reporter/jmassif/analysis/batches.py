# SPDX-License-Identifier: GPL-2.0-or-later
"""Sizes of a run's allocations with another batch size: from two runs, or by roles from one. Sizes are bytes.

Two runs with batches of `a` and `b` samples make the same steps with other sizes: allocations of the same stack are compared
one by one, and each size is continued in a straight line.
"""

import re
from array import array
from functools import lru_cache, partial
from itertools import chain, repeat
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from jmassif.analysis.allocator_replay import MOST_KNOWN, replay, requests
from jmassif.analysis.allocator_steps import FitError, Steps, any_steps
from jmassif.analysis.caching_allocator import MIB, Settings, SettingsError, parse_settings
from jmassif.analysis.oom import allocator_config
from jmassif.attribution.names import Names
from jmassif.model.run import Profile
from jmassif.units import size as size_text

# Share of the bytes at the peak. If more has no counterpart in the other run, they differ in more than the batch.
_MOST_UNLIKE = 0.1
_FIXED_ROLES = ("parameter", "gradient", "optimizer")
_SCALING_ROLES = ("activation", "input")
NEARLY = 0.01  # share of a difference that may be


def settings_of(run: Profile) -> Settings:
    """Settings of PyTorch's allocator as recorded. Raises FitError."""
    try:
        return parse_settings(allocator_config(run)[1])
    except SettingsError as error:
        raise FitError(str(error))


def _stack_keys(run: Profile) -> Dict[int, int]:
    """A number for the stack of each account that allocated, the same in runs of the same program."""
    keys: Dict[int, int] = {0: 0}
    parts: Dict[int, int] = {}

    def part(frame: int) -> int:
        known = parts.get(frame)
        if known is None:
            fields = run.frame(frame)
            # Addresses differ from run to run, lines of native code may not be known.
            is_python = fields.type == "p"
            place = (fields.function, fields.file, fields.line) if is_python else (fields.function or fields.object,)
            known = parts[frame] = hash(place)
        return known

    def key(node: int) -> int:
        path = []
        while node not in keys:
            path.append(node)
            node = run.node_parent[node]
        for each in reversed(path):
            keys[each] = hash((keys[run.node_parent[each]], part(run.node_frame[each])))
        return keys[path[0] if path else node]

    return {account: key(run.accounts.nodes[account]) for account in set(run.blocks.account)}


class Line(NamedTuple):
    """Bytes at the peak that a line has with each batch: `fixed` + `each` * batch."""

    label: str
    fixed: int
    each: float


class Continued(NamedTuple):
    """Two runs as one, for any batch size."""

    steps: Steps  # of the run with the larger batch
    batches: Tuple[int, int]
    reserved: Tuple[int, int]  # as recorded
    modelled: int  # of the second run
    before: "array[int]"  # size of each allocation in the run with the smaller batch
    was_whole: bytearray  # 1: taken as it was, likewise
    whole: bytearray
    unlike: float  # share of the bytes at the peak without a counterpart there, which their role does not explain
    at_peak: List[int]  # numbers of allocations

    def sizes(self, batch: int) -> "array[int]":
        """Sizes of at least as many allocations as are replayed."""
        (a, b), rounded_to = self.batches, self.steps.rounded_to

        @lru_cache(MOST_KNOWN)
        def at(before: int, was_whole: int, size: int, whole: int) -> int:
            """As the allocator rounds it."""
            if size <= before:
                return size
            if not a:
                return max(1, -(-size * batch // (b * rounded_to))) * rounded_to
            # Samples alone, if what is known leaves that open; else nothing of the batch's; else a fixed part besides.
            most, least = min(before / a, size / b), _least(size, whole, rounded_to)
            if max(_least(before, was_whole, rounded_to) / a, least / b) <= most:
                n_bytes = (most if was_whole == whole else before / a if whole else size / b) * batch
            elif least <= before:
                return before
            else:
                n_bytes = before + (size - before) / (b - a) * (batch - a)
            return max(1, -(-int(n_bytes) // rounded_to)) * rounded_to

        return array("Q", map(at, self.before, self.was_whole, self.steps.sizes, self.whole))


def _least(size: int, is_whole: int, rounded_to: int) -> int:
    """As little may have been asked for of a block."""
    return max(1, size - rounded_to + 1 - (MIB if is_whole else 0))


def _sizes_of_model(steps: Steps, roles: Dict[int, Optional[str]]) -> Set[int]:
    """Those of parameters, gradients and optimizer state; cast for autocast, they have half of it."""
    sizes = {size for size, account in zip(steps.sizes, steps.accounts) if roles[account] in _FIXED_ROLES}
    return sizes | {-(-size // 2 // steps.rounded_to) * steps.rounded_to for size in sizes}


def _compared(steps: Steps, at_peak: List[int]) -> int:
    """So many allocations are compared with another run's: those that are replayed, and those at the peak."""
    return max(next(step for step in reversed(steps.replayed) if step >= 0), at_peak[-1]) + 1


def continued(runs: Tuple[Profile, Profile], batches: Tuple[int, int]) -> Continued:
    """The first run is that with the smaller batch. Raises FitError."""
    smaller, larger = (any_steps(run) for run in runs)
    if smaller.is_host != larger.is_host and not all(run.is_complete for run in runs):
        raise FitError("only one of the runs used a GPU: was the other killed before it did?")
    if smaller.is_host != larger.is_host:
        raise FitError("the runs differ in more than the batch: one used a GPU, the other did not")
    keys = [_stack_keys(run) for run in runs]
    made = [
        replay(steps, steps.sizes, settings_of(run), has_small=steps is larger)
        for steps, run in zip((smaller, larger), runs)
    ]
    likes: Dict[int, "array[int]"] = {}  # numbers of allocations by the key of their stack
    of = {account: likes.setdefault(key, array("i")).append for account, key in keys[0].items()}
    for number, account in enumerate(smaller.accounts):
        of[account](number)
    # A run with more steps repeats the last.
    ends: Dict[int, Iterator[int]] = {key: chain(found, repeat(found[-1])) for key, found in likes.items() if found}
    counterparts = {account: ends.get(key, repeat(-1)) for account, key in keys[1].items()}
    # Smaller blocks of the heap have no records; of another program nothing is supposed.
    programs = {re.sub(r"\d+", "", run.manifest.get("command", "")) for run in runs}
    least_recorded = runs[0].option("large", 0) if len(programs) == 1 else 0
    least_of = partial(_least, rounded_to=larger.rounded_to)

    @lru_cache(MOST_KNOWN)
    def judged(n_bytes: int, whole: int, other_bytes: int, other_whole: int) -> Tuple[int, int, bool]:
        """Size of the counterpart, whether it was taken whole, and whether it is none. `other_bytes` is 0 without one."""
        if larger.is_host and not other_bytes and n_bytes * batches[0] < least_recorded * batches[1]:
            other_bytes, other_whole = n_bytes * batches[0] // batches[1], whole
        least, other_least = least_of(n_bytes, whole), least_of(other_bytes, other_whole)
        if other_bytes and n_bytes >= other_least and least * batches[0] <= other_bytes * batches[1]:
            return other_bytes, other_whole, False
        return n_bytes, whole, True

    at_peak = larger.held_at_peak()
    before, was_whole, unmatched = array("Q"), bytearray(), bytearray()
    roles = {account: runs[1].role(account) for account in counterparts}
    scaling, growth = {account for account, role in roles.items() if role in _SCALING_ROLES}, 0
    wholes = [bytearray(map(bool, each.above)) for each in made]
    for account, n_bytes, whole in zip(larger.accounts[: _compared(larger, at_peak)], larger.sizes, wholes[1]):
        like = next(counterparts[account])
        other = (smaller.sizes[like], wholes[0][like]) if like >= 0 else (0, 0)
        if account in scaling and like >= 0:
            growth += n_bytes - other[0]
        size, is_whole, is_unlike = judged(n_bytes, whole, *other)
        before.append(size)
        was_whole.append(is_whole)
        unmatched.append(is_unlike)
    if growth < 0:
        raise FitError(
            f"activations and inputs of batch {batches[1]} are smaller than those of batch {batches[0]}:"
            " name the batches in the order of their runs"
        )
    parameters = [
        sum(steps.sizes[n] for n in numbers if run.role(steps.accounts[n]) == "parameter")
        for run, steps, numbers in zip(runs, (smaller, larger), (smaller.held_at_peak(), at_peak))
    ]
    if abs(parameters[0] - parameters[1]) > NEARLY * max(parameters):
        raise FitError(
            "the runs differ in more than the batch: parameters have {} and {}".format(*map(size_text, parameters))
        )
    # Gradients and optimizer state have no other size than the parameters, which are the same.
    unlike = sum(
        larger.sizes[n] for n in at_peak if unmatched[n] and runs[1].role(larger.accounts[n]) not in _FIXED_ROLES
    )
    reserved, share = (smaller.reserved, larger.reserved), unlike / max(1, larger.allocated)
    if batches[0] == 1:
        # Other kernels run on one sample. Tensors grow with the batch as they seem to from one run, from what was asked for.
        fixed, sizes = _sizes_of_model(larger, roles), requests(larger, made[1])
        for n, is_open in enumerate(unmatched):
            role = roles[larger.accounts[n]]
            if role in _FIXED_ROLES:
                before[n] = larger.sizes[n]
            elif is_open and role and larger.sizes[n] not in fixed:
                before[n] = -(-sizes[n] // (batches[1] * larger.rounded_to)) * larger.rounded_to
                was_whole[n] = unmatched[n] = 0
                wholes[1][n] &= sizes[n] == larger.sizes[n]
                larger.sizes[n] = sizes[n]
    found = Continued(larger, batches, reserved, made[1].reserved, before, was_whole, wholes[1], share, at_peak)
    is_workspace = bytearray(
        owner in ("workspace", "cudnn") for owner in runs[1].accounts.by_type(lambda type_: type_.owner)
    )
    left = sum(
        larger.sizes[n]
        for n in at_peak
        if unmatched[n]
        and roles[larger.accounts[n]] not in _FIXED_ROLES
        and not (batches[0] == 1 and is_workspace[larger.accounts[n]])
    )
    if left > _MOST_UNLIKE * larger.allocated:
        raise FitError(
            f"PyTorch works in other ways on a batch of 1: {left / larger.allocated:.0%} of its bytes at the peak of batch {batches[1]} have no"
            " counterpart there; record batches 2 and 4 instead"
            if 1 in batches
            else f"the runs differ in more than the batch: {share:.0%} of PyTorch's bytes at the peak of the larger have no"
            " counterpart in the other"
        )
    return found


def by_roles(run: Profile, batch: int) -> Tuple[Continued, Continued, Continued]:
    """A run as if of two, of which the smaller had no samples: as it seems, and if all that is open was fixed, or scaled.

    Open are temporary tensors, what has no role, and all else that is as large as a parameter or, cast for autocast, half of it.
    The latter seem fixed, the others scaled.
    """
    steps = any_steps(run)
    modelled = replay(steps, steps.sizes, settings_of(run))
    roles = {account: run.role(account) for account in set(steps.accounts)}
    of_model = _sizes_of_model(steps, roles)
    at_peak = steps.held_at_peak()
    accounts = steps.accounts[: _compared(steps, at_peak)]

    def made(scales: Callable[[int, Optional[str]], bool]) -> Continued:
        @lru_cache(MOST_KNOWN)
        def fixed(size: int, account: int) -> int:
            return 0 if scales(size, roles[account]) else size

        before = array("Q", map(fixed, steps.sizes, accounts))
        whole = bytearray(len(before))
        reserved = steps.reserved, steps.reserved
        return Continued(steps, (0, batch), reserved, modelled.reserved, before, whole, whole, 0.0, at_peak)

    return (
        made(lambda size, role: role not in (None, *_FIXED_ROLES) and size not in of_model),
        made(lambda size, role: role in _SCALING_ROLES and size not in of_model),
        made(lambda size, role: role not in _FIXED_ROLES and (role is not None or not steps.is_host)),
    )


def lines_of(run: Profile, found: Continued) -> List[Line]:
    names, steps = Names(run), found.steps
    sums: Dict[str, List[int]] = {}
    for number in found.at_peak:
        both = sums.setdefault(names.line(steps.accounts[number]), [0, 0])
        both[0] += found.before[number]
        both[1] += steps.sizes[number]
    a, b = found.batches
    lines = [Line(label, int(n - (n - m) / (b - a) * b), (n - m) / (b - a)) for label, (m, n) in sums.items() if n > m]
    return sorted(lines, key=lambda line: (-line.each, line.label))
