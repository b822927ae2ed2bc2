# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""A module of the program's own, which makes an array when it is imported; and a module of the library."""

import json
import sys

import own_module


def found():
    return list(own_module.pairs())


held = found()
size = sum(sys.getsizeof(pair) + sys.getsizeof(pair.left) for pair in held) + sys.getsizeof(held)
print(json.dumps({"table": own_module.TABLE.nbytes, "found": size}))
