# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Deep stacks, of Python alone and with native calls in between."""

import sys

from witness import here

held = []


def down(n):
    if n == 0:
        held.append(bytearray(here()))
        return 0
    return 1 + down(n - 1)


def down_natively(n):
    if n == 0:
        held.append(bytearray(here()))
        return 0
    return max(
        map(
            down_natively,
            [n - 1],
        )
    )


def down_and_up(n):
    held.append(bytearray(here()))
    if n:
        down_and_up(n - 1)
    held.append(bytearray(here()))


down(500)
down_natively(100)
down_and_up(20)
sys.setrecursionlimit(6000)
# Up to 3.10 every call takes three native frames, of which 8192 are recorded.
down(5000 if sys.version_info >= (3, 11) else 2000)
