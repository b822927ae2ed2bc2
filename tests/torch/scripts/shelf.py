# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""The second module of inventory.py."""

from typing import Iterator, List

import torch
from census import made


def fill(n: int) -> torch.Tensor:
    return made("fill", torch.full((n, 256), 1.0))  # fill


def rows(n: int) -> Iterator[torch.Tensor]:
    for i in range(n):
        yield made("rows", torch.zeros(1000 + i))  # rows


class Shelf:
    def __init__(self, n: int) -> None:
        self.kept: List[torch.Tensor] = [made("kept", torch.empty(n, dtype=torch.int16)) for _ in range(4)]  # kept

    def grow(self) -> None:
        self.kept.append(
            made(
                "grow",
                torch.cat(  # grow
                    [self.kept[-1], self.kept[0]],
                ),
            )
        )
