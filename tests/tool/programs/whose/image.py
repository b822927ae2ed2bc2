# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""An image of PIL, smaller and turned, and as an array."""

import json

import numpy
from PIL import Image


def drawn():
    return Image.new("RGB", (1600, 1200), "red")


def smaller(of):
    return of.resize((800, 600))


def as_array(of):
    return numpy.array(of)


# PIL keeps four bytes of a pixel.
image = drawn()
small = smaller(image)
array = as_array(image)
print(json.dumps({"drawn": 1600 * 1200 * 4, "smaller": 800 * 600 * 4, "as_array": array.nbytes}))
