# SPDX-License-Identifier: GPL-2.0-or-later
"""A rank of a job of torch.distributed: rank 2 keeps a tensor of each step; rank 1 is killed before the last step ends."""

import os
import signal

import torch
import torch.distributed


def main() -> None:
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    for step in range(4):
        if rank == 2:
            kept.append(torch.ones(2 << 20))
        if rank == 1 and step == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        model(torch.randn(32, 256)).square().mean().backward()
        for parameter in model.parameters():
            torch.distributed.all_reduce(parameter.grad)
        optimizer.step()


main()
