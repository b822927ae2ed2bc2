# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Random sequences for PyTorch's allocator:  allocator.py FIRST LAST [FRACTION]

Prints a line of JSON for each sequence FIRST to LAST - 1: steps, and what the allocator had reserved and handed out after each.
A step is [stream, bytes, address], [number of an earlier allocation], or [] to empty the cache.
"""

import json
import random
import sys

import torch

MIB = 1 << 20
MOST_STEPS = 120


def any_size(random_: random.Random) -> int:
    scale = random_.choice((600, 40_000, MIB, 3 * MIB, 12 * MIB, 80 * MIB, 300 * MIB))
    return random_.randrange(1, scale)


def main() -> None:
    torch.cuda.init()
    if len(sys.argv) > 3:
        torch.cuda.set_per_process_memory_fraction(float(sys.argv[3]))
    side = torch.cuda.Stream()
    streams = (torch.cuda.current_stream().cuda_stream, side.cuda_stream)
    _, total = torch.cuda.mem_get_info()
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        random_ = random.Random(number)
        live, steps, figures = {}, [], []
        sizes = [any_size(random_) for _ in range(random_.randrange(2, 20))]
        for _ in range(random_.randrange(10, MOST_STEPS)):
            draw = random_.random()
            if draw < 0.55:
                stream = random_.random() < 0.3
                size = random_.choice(sizes) if random_.random() < 0.6 else any_size(random_)
                address = 0
                try:
                    live[len(steps)] = address = torch.cuda.caching_allocator_alloc(size, stream=streams[stream])
                except torch.cuda.OutOfMemoryError:
                    pass
                steps.append([int(stream), size, address])
            elif draw < 0.97 and live:
                one = random_.choice(list(live))
                torch.cuda.caching_allocator_delete(live.pop(one))
                steps.append([one])
            elif draw >= 0.97:
                torch.cuda.empty_cache()
                steps.append([])
            else:
                continue
            figures.append([torch.cuda.memory_reserved(), torch.cuda.memory_allocated()])
        for address in live.values():
            torch.cuda.caching_allocator_delete(address)
        torch.cuda.empty_cache()
        assert torch.cuda.memory_reserved() == 0
        print(json.dumps({"number": number, "total": total, "steps": steps, "figures": figures}))


main()
