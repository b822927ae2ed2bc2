# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads weights into a model that is built already, then runs or trains it; prints the bytes of the weights."""

import json
import os
import sys
import tempfile
import time

import torch

torch.set_num_threads(1)


def main(is_training: bool) -> None:
    model = torch.nn.Sequential(*(torch.nn.Linear(1000, 1000) for _ in range(16)))
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "weights")
        torch.save(model.state_dict(), path)
        weights = torch.load(path)
    model.load_state_dict(weights)
    print(json.dumps({"weights": sum(each.numel() * each.element_size() for each in weights.values())}))
    time.sleep(0.5)  # a snapshot comes, as in the seconds for which real models load
    del weights
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(8):
        with torch.set_grad_enabled(is_training):
            loss = model(torch.ones(8, 1000)).square().mean()
        if is_training:
            loss.backward()
            optimizer.step()


main(sys.argv[1] == "train")
