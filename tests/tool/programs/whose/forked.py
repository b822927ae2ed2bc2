# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""A child makes arrays and objects of its own."""

import json
import os
import sys

import numpy


def parents():
    return numpy.ones(1 << 20)


def childs():
    # so many that what fits into the arenas of the parent, another owner, is below half a per cent
    return [numpy.ones(1 << 20), list(range(1 << 30, (1 << 30) + 1_200_000))]


array = parents()
child = os.fork()
if child == 0:
    held = childs()
    size = held[0].nbytes + sys.getsizeof(held[1]) + sum(map(sys.getsizeof, held[1]))
    with open(sys.argv[1], "w") as file:
        json.dump({"childs": size}, file)
    sys.exit()
os.waitpid(child, 0)
print(json.dumps({"parents": array.nbytes}))
