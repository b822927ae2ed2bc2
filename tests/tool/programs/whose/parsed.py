# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""What json.loads, a module of the standard library, makes of a text."""

import json
import sys


def text():
    return "[" + ",".join(f'{{"name": "row {i}", "value": {i + 0.5}}}' for i in range(60_000)) + "]"


def parsed(of):
    return json.loads(of)


source = text()
rows = parsed(source)
sizes = sum(sys.getsizeof(row) + sum(map(sys.getsizeof, row.values())) for row in rows)
print(json.dumps({"text": sys.getsizeof(source), "parsed": sizes + sys.getsizeof(rows)}))
