# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""A program of which it is known what each line allocates: modules, inputs, lists of tensors, statements over several lines."""

import torch
from census import made, mark
from shelf import Shelf, fill, rows
from torch import nn

torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(300, 200)  # first
        self.second = nn.Linear(  # second
            200,
            100,
            bias=False,
        )
        self.register_buffer("mean", torch.zeros(300))  # mean

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = made("hidden", self.first(made("centred", x - self.mean)))  # centred hidden
        return made("scores", self.second(made("relu", torch.relu(hidden))))  # relu scores


def batches(n: int) -> list:
    return [made("batch", torch.ones(64, 300)) for _ in range(n)]  # batch


net = Net()
for tag, tensor in (("first", net.first.weight), ("first", net.first.bias), ("second", net.second.weight)):
    made(tag, tensor)
made("mean", net.mean)
inputs = batches(3)
shelf = Shelf(5000)
shelf.grow()
losses = []
kept = list(rows(3))
for step, batch in enumerate(inputs):
    scratch = made("scratch", torch.empty(100_000))  # scratch
    del scratch
    scores = net(batch)
    losses.append(made("losses", scores.detach().clone()))  # losses
    held = fill(100 * step + 1)
del scores
big = made("big", torch.empty(50, 1000, 100))  # big
mark("peak")
del big, inputs
copies = {name: made("copies", value.clone()) for name, value in net.state_dict().items()}  # copies
batch = held = None
doubled = made("doubled", kept[0].double())  # doubled
halved = made("halved", kept[1].half())  # halved
mark("end")
