# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""NumPy arrays, copies of them, and views, which cost nothing."""

import json

import numpy


def fresh():
    return numpy.ones(3 << 20)


def copies(of):
    return [of[::2].copy(), of.astype("float32")]


def views(of):
    return [of[i:] for i in range(64)]


array = fresh()
halves = copies(array)
seen = views(array)
print(json.dumps({"fresh": array.nbytes, "copies": sum(half.nbytes for half in halves)}))
