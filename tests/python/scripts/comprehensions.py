# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Comprehensions of every kind; each line is the one that allocates."""

from witness import here


def make(n):
    return bytearray(here())


def all_kinds():
    a_list = [bytearray(here()) for _ in range(2)]
    a_dict = {i: bytearray(here()) for i in range(2)}
    a_set = {len(bytearray(here())) for _ in range(2)}
    nested = [[make(i * j) for i in range(2)] for j in range(2)]
    a_generator = list(make(i) for i in range(2))
    called = [(lambda: make(i))() for i in range(2)]
    over_lines = [
        (
            make(i),
            make(-i),
        )
        for i in range(2)
        if make(i)
        and make(
            -i,
        )
    ]
    return a_list, a_dict, a_set, nested, a_generator, called, over_lines


class Body:
    attribute = [make(i) for i in range(2)]


held = all_kinds()
at_top = [make(i) for i in range(2)]
