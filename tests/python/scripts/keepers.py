# SPDX-License-Identifier: GPL-2.0-or-later
"""Leaks objects by a variable of the sort that is named, or none; prints how many it keeps."""

import sys
from collections import deque
from typing import Any, Callable, List

N = 2000
HOW = sys.argv[1]


class Record:
    def __init__(self, number: int) -> None:
        self.number = number
        self.text = bytes(2000 + number % 7)


class Trainer:
    shared: List[Record] = []

    def __init__(self) -> None:
        self.losses: List[Record] = []


def collector() -> Callable[[Record], None]:
    found: List[Record] = []

    def add(record: Record) -> None:
        found.append(record)

    return add


DATA = [Record(number) for number in range(300)]
history: List[Record] = []
cache = {}
seen = set()
queue: Any = deque()
callbacks: List[Callable[[], Record]] = []
mixed: List[Any] = [None] * 90 * (HOW == "mixed")
trainer, add = Trainer(), collector()
last: List[Record] = []


def step(number: int) -> None:
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


def found_by(function: Any) -> List[Record]:
    return function.__closure__[0].cell_contents  # type: ignore[no-any-return]


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
                found_by(add),
            ),
        )
    ),
    len(gone),
)
