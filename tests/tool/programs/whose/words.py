# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""A dictionary of strings."""

import json
import sys


def words():
    return {f"key-{i:020}": f"value of {i:040}" for i in range(120_000)}


held = words()
texts = sum(map(sys.getsizeof, held)) + sum(map(sys.getsizeof, held.values()))
print(json.dumps({"words": sys.getsizeof(held) + texts}))
