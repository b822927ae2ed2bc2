# SPDX-License-Identifier: GPL-2.0-or-later
"""Distributions of what runs held, and what is known of the difference between two of them.

Asked is by how much the medians of two groups differ. The interval comes from the order of the runs alone: between which two of its
runs a group's median lies follows from the binomial distribution, whatever shape the costs have, and with how many equal
values. Each group's interval has half of the error, and the difference lies between the outermost differences of both. So an
interval is never too narrow, at any number of runs; of few runs there is none at a high level, and then that is said.

Of many rows some would differ by chance. Holm's procedure keeps the chance that any one of all rows is called a change and is none
below the level: the row with the smallest error is held against level / m, the next one against level / (m - 1), and so on.
"""

from bisect import bisect_right
from math import exp, lgamma, log
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

Interval = Tuple[int, int]


class Distribution(NamedTuple):
    n: int
    median: int
    spread: int  # between the quartiles
    low: int  # 5th percentile
    high: int  # 95th


def quantile(ordered: Sequence[int], per_cent: int) -> int:
    """The smallest value that as many per cent of all are not above. `ordered` has at least one."""
    rank = -(-len(ordered) * per_cent // 100)
    return ordered[max(rank, 1) - 1]


def distribution(ordered: Sequence[int]) -> Distribution:
    if not ordered:
        return Distribution(0, 0, 0, 0, 0)
    quarter, median, three = (quantile(ordered, per_cent) for per_cent in (25, 50, 75))
    return Distribution(len(ordered), median, three - quarter, quantile(ordered, 5), quantile(ordered, 95))


class Fences(NamedTuple):
    """What lies outside is far from its group."""

    least: int
    most: int


# So many times as far from the median as 5 % of all are. Of a normal distribution that is five standard deviations.
_FAR = 3


def fences(of: Distribution) -> Fences:
    return Fences(of.median - _FAR * (of.median - of.low), of.median + _FAR * (of.high - of.median))


class _Ranks:
    """Of n runs: between which of them the median lies, with which error."""

    def __init__(self, n: int) -> None:
        # The chance that k or fewer of n runs lie below the median.
        self.tails: List[float] = []
        total = 0.0
        for k in range(n // 2):
            total += exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2))
            self.tails.append(total)

    def rank(self, error: float) -> int:
        """The median is not below the run of this rank, and not above that of the same rank from the end. 0: nothing is known."""
        return bisect_right(self.tails, error / 2)


class Medians:
    """Compares medians of groups; keeps what depends on the numbers of runs alone."""

    def __init__(self) -> None:
        self._ranks: Dict[int, _Ranks] = {}
        self._errors: Dict[Tuple[int, int], List[float]] = {}

    def _of(self, n: int) -> _Ranks:
        if n not in self._ranks:
            self._ranks[n] = _Ranks(n)
        return self._ranks[n]

    def interval(self, before: Sequence[int], now: Sequence[int], error: float) -> Optional[Interval]:
        """In which the difference of the medians lies but for this error; None: of so few runs nothing can be said.

        Both are in order, as in the next one.
        """
        first = self._of(len(before)).rank(error / 2)
        second = self._of(len(now)).rank(error / 2)
        if not first or not second:
            return None
        return now[second - 1] - before[-first], now[-second] - before[first - 1]

    def error(self, before: Sequence[int], now: Sequence[int]) -> float:
        """The smallest error with which the interval is on one side of zero; 1: with none."""
        key = (len(before), len(now))
        if key not in self._errors:
            tails = self._of(key[0]).tails + self._of(key[1]).tails
            # The interval changes where another run becomes the outermost one.
            self._errors[key] = sorted({4 * tail for tail in tails if 4 * tail <= 1} | {1.0})
        errors = self._errors[key]
        low, high = 0, len(errors)
        while low < high:
            middle = (low + high) // 2
            if is_one_sided(self.interval(before, now, errors[middle])):
                high = middle
            else:
                low = middle + 1
        return errors[low] if low < len(errors) else 1.0


def is_one_sided(interval: Optional[Interval]) -> bool:
    return interval is not None and (interval[0] > 0 or interval[1] < 0)


def holm(errors: Sequence[float], level: float) -> List[Tuple[bool, float]]:
    """Of each of several comparisons whether it tells a change, and the error that it, and its interval, are held against."""
    found: List[Tuple[bool, float]] = [(False, level)] * len(errors)
    m = len(errors)
    is_on = True
    allowed = level / m if m else level
    for place, index in enumerate(sorted(range(m), key=lambda index: errors[index])):
        if is_on:
            allowed = level / (m - place)
            is_on = errors[index] <= allowed
        found[index] = (is_on, allowed)
    return found
