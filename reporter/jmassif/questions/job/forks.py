# SPDX-License-Identifier: GPL-2.0-or-later
"""What a fork shares, which counts once.

A forked child begins with all that its parent held (its *opening* balances); those pages are the parent's until one of the
two writes to them, which no trace tells. What the child inherited counts with the parent for as long as the parent has it, and
once with the parent's children where the parent has freed it or has ended. Of an account that frees and allocates it is not
known which of its blocks are the inherited ones; the bounds take both ends. A page of a file is the same for all who map it: a
child gets it when it touches it, and has none right after the fork. Of the mapping's pages, whichever they are, it has at
least as many in common with what was there at the fork as both together are more than it is long.
"""

from array import array
from typing import Callable, List, NamedTuple, Sequence, Tuple

from jmassif.model.job import Process
from jmassif.questions.job.curves import Curve, added, combined, curve_of, highest
from jmassif.questions.job.held import Balances


class Opening(NamedTuple):
    """The balances that a forked child began with, by account."""

    live: "array[int]"
    total: "array[int]"
    bytes: int


def opening_of(process: Process, measure: str) -> Opening:
    balances = Balances(process.profile, measure)
    for snapshot in process.profile.snapshots[:1]:
        balances.apply(snapshot.changes)
    held = sum(live for account, live in enumerate(balances.live) if balances.counts[account])
    return Opening(balances.live, balances.total, held)


class Left(NamedTuple):
    """Of what a process holds after a fork, over time: how much of the opening balances; and what is new, at most."""

    least: Curve
    most: Curve
    new: Curve


_UNKNOWN = 1 << 64  # more than any sum


def left_of(process: Process, opening: Opening, fork: int, measure: str) -> Left:
    """`process` is the child itself or its parent; `fork` is when, on the common clock."""
    least_of, most_of = array("Q", opening.live), array("Q", opening.live)
    since_of = array("Q", bytes(8 * len(process.profile.accounts)))
    new_of = array("Q", since_of)
    counts = Balances(process.profile, measure).counts
    is_file = [account.kind == "file" for account in process.profile.accounts]
    length_of = array("Q", since_of)  # of its mappings
    n_opening = len(opening.live)
    least, most, new = opening.bytes, opening.bytes, 0
    instants = [(fork, least, most, new)]
    new_between: List[int] = []
    for snapshot in process.profile.snapshots:
        time = snapshot.time + process.offset
        for account, length in zip(snapshot.pages.account, snapshot.pages.virtual):
            length_of[account] = length
        if time < fork:
            continue
        rows = snapshot.changes
        allocated = 0
        for account, live, total in zip(rows.account, rows.bytes, rows.all_bytes):
            if not counts[account]:
                continue
            opened, total_then = (opening.live[account], opening.total[account]) if account < n_opening else (0, 0)
            if is_file[account]:
                high = min(opened, live)
                low = min(high, max(0, opened + live - length_of[account]))
                since = live - low
            else:
                since = max(0, total - total_then)
                # Of its blocks the inherited ones may have been freed first, or last. What is gone stays gone.
                low = min(least_of[account], max(0, live - since)) if opened else 0
                high = min(most_of[account], live) if opened else 0
            allocated += max(0, since - since_of[account])
            since_of[account] = since
            new += min(live, since) - new_of[account]
            new_of[account] = min(live, since)
            if opened:
                least += low - least_of[account]
                most += high - most_of[account]
                least_of[account], most_of[account] = low, high
        new_between.append(instants[-1][3] + allocated)
        instants.append((time, least, most, new))
    if process.end > instants[-1][0]:
        is_told = process.profile.end is not None
        new_between.append(new if is_told else _UNKNOWN)
        instants.append((process.end, least if is_told else 0, most, new))
    return Left(
        curve_of([(i[0], i[1]) for i in instants], [min(i[1], j[1]) for i, j in zip(instants, instants[1:])], min),
        curve_of([(i[0], i[2]) for i in instants], [max(i[2], j[2]) for i, j in zip(instants, instants[1:])], max),
        curve_of([(i[0], i[3]) for i in instants], new_between, max),
    )


def let_go(children: Sequence[Tuple[Opening, Left, Left]], parents_own: int, parent_most: Curve) -> Tuple[Curve, Curve]:
    """What children of one parent still have of what it had, and it has no more: at least and at most.

    `parents_own` is what the parent inherited itself, which may be with its own parent still; `parent_most` is what counts
    for the parent in the sum.
    """
    # All that any of the children got: what the first one did, and what the parent has allocated until the last one.
    first, last = children[0][0], children[-1][0]
    n_first = len(first.total)
    everything = first.bytes + sum(
        max(0, total - (first.total[account] if account < n_first else 0)) for account, total in enumerate(last.total)
    )
    new = children[0][2].new
    # From the first fork until the parent has ended.
    is_after = Curve([new.times[0], new.times[-1]], [1, 1], [1, 0])

    def is_let_go(values: Sequence[int]) -> int:
        in_child, in_parent = values
        return max(0, in_child - in_parent - parents_own)

    def may_be_let_go(opening: Opening) -> Callable[[Sequence[int]], int]:
        return lambda values: min(values[0], opening.bytes - values[1])

    def most(values: Sequence[int]) -> int:
        of_each, in_parent, new_in_parent, is_after_fork = values
        bound = min(of_each, everything)
        # Whatever the parent frees in between is not in it any more.
        return min(bound, max(0, everything + new_in_parent - in_parent)) if is_after_fork else bound

    # Child by child, so that the work grows with their number and not with its square.
    least = highest([combined([own.least, parents.most], is_let_go) for _, own, parents in children])
    each = [combined([own.most, parents.least], may_be_let_go(opening)) for opening, own, parents in children]
    return least, combined([added(each), parent_most, new, is_after], most)
