# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""A list of 21 MiB: its numbers are small objects."""

import json
import sys


def numbers():
    return list(range(1 << 30, (1 << 30) + 610_000))


held = numbers()
print(json.dumps({"numbers": sys.getsizeof(held) + sum(map(sys.getsizeof, held))}))
