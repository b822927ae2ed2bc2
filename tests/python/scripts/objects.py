# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Many small objects, each kind on a line of its own."""

held = [None] * 3000


def fill():
    for i in range(1000):
        held[i] = bytes(440)
    for i in range(1000, 3000):
        held[i] = bytes(441)


fill()
