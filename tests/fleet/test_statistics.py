# SPDX-License-Identifier: GPL-2.0-or-later
"""Intervals of medians and Holm's procedure, held against what is counted, and against fleets drawn by lot."""

import random
from bisect import bisect_right
from itertools import product
from typing import List

import pytest

from jmassif.fleet.compare import (
    _tails,
    distribution,
    fences,
    holm,
    interval_of,
    is_one_sided,
    quantile,
    smallest_error,
)


@pytest.mark.parametrize("n", [5, 8, 11])
def test_a_median_lies_within_its_interval_as_often_as_is_said(n: int) -> None:
    """By all ways in which n runs can lie below or above the true median."""
    for error in (0.5, 0.2, 0.07, 0.02):
        rank = bisect_right(_tails(n), error / 2)
        outside = sum(not rank <= sum(below) <= n - rank for below in product((0, 1), repeat=n))
        assert outside / 2**n <= error
        # One further in would be too narrow.
        outside = sum(not rank + 1 <= sum(below) <= n - rank - 1 for below in product((0, 1), repeat=n))
        assert outside / 2**n > error


def test_of_few_runs_nothing_is_said_at_a_high_level() -> None:
    assert interval_of([1, 2, 3], [11, 12, 13], 0.01) is None
    assert smallest_error([1, 2, 3], [11, 12, 13]) > 0.05
    assert smallest_error([], [1]) == 1.0


def test_equal_values_are_no_change_and_different_constants_are_one() -> None:
    assert smallest_error([5] * 40, [5] * 40) == 1.0
    assert smallest_error([5] * 40, [6] * 40) < 1e-9
    assert interval_of([5] * 40, [7] * 30, 0.001) == (2, 2)


@pytest.mark.parametrize("seed", range(5))
def test_the_error_of_a_change_is_the_least_whose_interval_is_on_one_side(seed: int) -> None:
    random_ = random.Random(seed)
    before = sorted(random_.randrange(1000) for _ in range(30))
    now = sorted(random_.randrange(1000) + 300 for _ in range(25))
    error = smallest_error(before, now)
    assert error < 1 and is_one_sided(interval_of(before, now, error))
    assert not is_one_sided(interval_of(before, now, error * 0.999))


def test_quantiles_are_those_that_counting_finds() -> None:
    random_ = random.Random(1)
    for n in range(1, 60):
        ordered = sorted(random_.randrange(20) for _ in range(n))
        for per_cent in (5, 25, 50, 75, 95):
            value = quantile(ordered, per_cent)
            assert 100 * sum(each <= value for each in ordered) >= per_cent * n
            assert 100 * sum(each < value for each in ordered) < per_cent * n


def test_holm_is_its_definition() -> None:
    """Of a row all with smaller errors must be changes too, and its error below level / (how many are not smaller)."""
    random_ = random.Random(3)
    for _ in range(200):
        errors = [random_.choice([1e-4, 1e-3, 0.004, 0.006, 0.02, 1.0]) for _ in range(random_.randrange(1, 9))]
        found = holm(errors, 0.05)
        ordered = sorted(range(len(errors)), key=lambda index: errors[index])
        is_on = True
        for place, index in enumerate(ordered):
            is_on = is_on and errors[index] <= 0.05 / (len(errors) - place)
            assert found[index][0] == is_on


def drawn(random_: random.Random, n: int, shift: int = 0) -> List[int]:
    """A cost with a long tail, many equal values, and boards of two kinds."""
    return sorted(int(random_.lognormvariate(8, 0.3) * random_.choice((1.0, 1.6))) // 64 * 64 + shift for _ in range(n))


def test_of_fleets_without_a_change_next_to_none_is_said_to_have_one() -> None:
    """200 fleets of 60 rows at 5 %: ten are allowed to have one. What is compared is the same each time this runs."""
    random_ = random.Random(20)
    n_alarms = 0
    for _ in range(200):
        errors = [smallest_error(drawn(random_, 40), drawn(random_, 60)) for _ in range(60)]
        n_alarms += any(is_change for is_change, _ in holm(errors, 0.05))
    assert n_alarms <= 10


def test_a_change_is_found_and_lies_in_its_interval() -> None:
    random_ = random.Random(21)
    for _ in range(20):
        before, now = drawn(random_, 800), drawn(random_, 800, 2000)
        interval = interval_of(before, now, 0.01 / 60)
        assert smallest_error(before, now) < 0.01 / 60
        assert interval and interval[0] <= 2000 <= interval[1]


def test_what_lies_far_out_is_beyond_the_fences() -> None:
    random_ = random.Random(4)
    values = sorted(int(random_.gauss(1e6, 1e4)) for _ in range(10000))
    bounds = fences(distribution(values))
    assert not [value for value in values if not bounds.least <= value <= bounds.most]
    assert not bounds.least <= 900000 <= bounds.most and not bounds.least <= 1100000 <= bounds.most
