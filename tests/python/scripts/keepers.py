# SPDX-License-Identifier: GPL-2.0-or-later
"""Leaks objects by a variable of the sort that is named, or none; prints how many it keeps."""

import sys
from collections import deque

N = 2000
HOW = sys.argv[1]


class Record:
    def __init__(self, number):
        self.number = number
        self.text = bytes(2000 + number % 7)


class Trainer:
    shared = []

    def __init__(self):
        self.losses = []


def collector():
    found = []

    def add(record):
        found.append(record)

    return add


DATA = [Record(number) for number in range(300)]
history, cache, seen, queue, callbacks, mixed = [], {}, set(), deque(), [], [None] * 90 * (HOW == "mixed")
trainer, add = Trainer(), collector()
last = []


def step(number):
    if HOW == "list":
        history.append(Record(number))
    elif HOW == "dict":
        cache[number] = Record(number)
    elif HOW == "set":
        seen.add(Record(number))
    elif HOW == "deque":
        queue.append(Record(number))
    elif HOW == "closure":
        add(Record(number))
    elif HOW == "instance":
        trainer.losses.append(Record(number))
    elif HOW == "class":
        Trainer.shared.append(Record(number))
    elif HOW == "callbacks":
        record = Record(number)
        callbacks.append(lambda: record)
    elif HOW == "mixed":
        mixed.append(Record(number))
    else:
        last[:] = [Record(number)]


for number in range(N):
    step(number)
gone = {Record(number) for number in range(100)}
gone -= set(list(gone)[:50])  # a set with removed entries
print(
    len(DATA),
    max(
        map(
            len,
            (
                history,
                cache,
                seen,
                queue,
                callbacks,
                mixed,
                trainer.losses,
                Trainer.shared,
                add.__closure__[0].cell_contents,
            ),
        )
    ),
    len(gone),
)
