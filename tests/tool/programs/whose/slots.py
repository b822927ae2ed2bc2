# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Objects of a class of its own, with __slots__ and with attributes in a dictionary."""

import json
import sys


class Point:
    __slots__ = ("x", "y", "z")

    def __init__(self, x):
        self.x = self.y = self.z = x


class Note:
    def __init__(self, text):
        self.text = text


def points():
    return [Point(0.0) for _ in range(200_000)]


def notes():
    return [Note("") for _ in range(100_000)]


held = {"points": points(), "notes": notes()}
print(json.dumps({name: sum(map(sys.getsizeof, objects)) + sys.getsizeof(objects) for name, objects in held.items()}))
