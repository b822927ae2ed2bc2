# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""A table of pandas, what is worked out of it, and its index."""

import json

import pandas


def table():
    return pandas.DataFrame({"step": range(600_000), "loss": 0.5, "rate": 1e-3})


def sums(of):
    return of.rolling(10).mean()


frame = table()
rolling = sums(frame)
held = {"table": frame, "sums": rolling}
print(json.dumps({name: int(of.memory_usage(index=False).sum()) for name, of in held.items()}))
