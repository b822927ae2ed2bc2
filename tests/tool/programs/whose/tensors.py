# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Tensors, arrays that they share, and a loader's worker, which holds what its data set keeps."""

import json
import sys

import numpy
import torch


class Kept(torch.utils.data.Dataset):
    def __init__(self):
        self.kept = []

    def __len__(self):
        return 6

    def __getitem__(self, i):
        self.kept.append(sample())
        if i == 5:
            with open(sys.argv[1], "w") as file:
                json.dump({"sample": sum(kept.nbytes for kept in self.kept)}, file)
        return i


def sample():
    return numpy.ones(1 << 18)


def weights():
    return torch.ones(1 << 21)


def samples():
    return numpy.ones(1 << 20)


def shared(array):
    return torch.from_numpy(array)


tensor = weights()
array = samples()
same = shared(array)
for _ in torch.utils.data.DataLoader(Kept(), num_workers=1):
    pass
print(json.dumps({"weights": tensor.numel() * 4, "samples": array.nbytes}))
