# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Scripts that leak, and scripts that only look like it: keeps.py BEHAVIOUR. None tells jmassif of its steps. Each prints how
many bytes its steps have added to what it keeps, by the sizes that Python and NumPy give.
"""

import sys

STEPS = 60

kept = []


def work():
    return sum(float(n) * n for n in range(4000))


def copies():
    """Keeps a part of each batch, as a copy so that the batch can go."""
    import numpy

    for step in range(STEPS):
        batch = numpy.full((100, 1000), float(step))
        work()
        kept.append(batch[:10].copy())  # leak
    return sum(part.nbytes for part in kept)


def listing():
    for step in range(STEPS):
        for n in range(20):
            kept.append("%2000d of %d" % (n, step))  # leak
        work()
    return sum(map(sys.getsizeof, kept)) + sys.getsizeof(kept)


def cache():
    """Fills up in the first half, and is used in the second."""
    for step in range(STEPS):
        if len(kept) < STEPS // 2:
            kept.append(bytearray(50000))
        kept[step % len(kept)][step] = 1
        work()
    return 0


def once():
    """A list of what is worked on is made before."""
    kept.extend("item %d" % n for n in range(20000))
    for step in range(STEPS):
        kept[step] = kept[step].upper()
        work()
    return 0


def warm_up():
    """The first steps make what the others use again."""
    for step in range(STEPS):
        if step < STEPS // 6:
            kept.append(bytearray(200000))
        kept[step % len(kept)][step] = 1
        work()
    return 0


def arena():
    """Doubles until the objects of twenty steps fit in it."""
    for step in range(STEPS):
        used = step % 20 * 60000
        while not kept or len(kept[0]) < used:
            kept[:] = [bytearray(2 * len(kept[0]) if kept else 1 << 16)]
        work()
    return 0


def buffer():
    """Is made anew when larger objects come, which they do four times."""
    for step in range(STEPS):
        size = (step * 4 // STEPS + 1) * 400000
        if not kept or len(kept[0]) < size:
            kept[:] = [bytearray(size)]
        work()
    return 0


print(globals()[sys.argv[1]]())
