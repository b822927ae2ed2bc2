# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Runs the board out of memory: once so that giving the cache back helps, once so that it does not. Then goes on."""

import torch

from figures import tell

MIB = 1 << 20


def block(mib: int) -> torch.Tensor:
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def main() -> None:
    torch.cuda.init()
    tell("start")
    free, _ = torch.cuda.mem_get_info()
    part = free // MIB // 4
    kept = block(part)
    freed = [block(part), block(part)]
    tell("three quarters")
    del freed
    tell("half of it cached")
    # Fits in neither of the two cached segments, and not beside them.
    large = block(2 * part)
    tell("retried")
    try:
        block(2 * part)
    except torch.cuda.OutOfMemoryError:
        tell("out of memory")
    del large
    again = block(part)
    tell("went on")
    # No retry: the failure before it was told.
    del kept, again
    torch.cuda.empty_cache()
    again = block(part)
    tell("from scratch")
    odd = [torch.empty(n, dtype=torch.uint8, device="cuda") for n in (1, 511, 513, 3 * MIB + 1, 11 * MIB + 7)]
    tell("odd sizes")
    del odd[::2]
    tell("holes")
    del again, odd
    torch.cuda.empty_cache()
    tell("empty")


main()
