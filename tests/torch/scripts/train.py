# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Training on the CPU in the ways that people do it; PyTorch's own arithmetic is printed at every mark.

Bytes are elements times their size, each tensor once. Nothing else of the program has these roles.
"""

import copy
import ctypes
import json
import os

import torch
from torch import nn

LIBRARY = ctypes.CDLL(os.environ["CENSUS_LIBRARY"])
SAMPLES = [(torch.randn(1, 24, 24), torch.tensor(i % 10)) for i in range(64)]
alive = []  # models
leaves = []  # parameters of no model
optimizers = []


def n_bytes(tensors) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def mark(name: str, **figures: int) -> None:
    parameters = [p for model in alive for p in model.parameters()] + leaves
    state = [value for o in optimizers for values in o.state.values() for value in values.values()]
    line = {
        "mark": name,
        "parameter": n_bytes(parameters) + n_bytes(b for model in alive for b in model.buffers()),
        "gradient": n_bytes(p.grad for p in parameters if p.grad is not None),
        "optimizer": n_bytes(value for value in state if isinstance(value, torch.Tensor)),
        **figures,
    }
    print(json.dumps(line), flush=True)
    LIBRARY.jmassif_mark(name.encode())


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 5), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.head = nn.Sequential(nn.Linear(800, 333), nn.Tanh(), nn.LayerNorm(333), nn.Linear(333, 10))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(images))


def forward(model, images):
    """The scores, and the bytes of what autograd keeps of them for the backward pass and has made itself."""
    kept = {}

    def keep(tensor):
        kept[tensor.storage().data_ptr()] = tensor.storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        scores = model(images)
    keep(scores)
    others = [images, *model.parameters(), *model.buffers()]
    return scores, sum(kept.values()) - sum(kept.get(t.storage().data_ptr(), 0) for t in others)


def train(name, make, set_to_none, n_backwards=1):
    """Three steps of a new model. `make` gives the optimizer for its parameters."""
    model = Net()
    alive.append(model)
    optimizer = make(model.parameters())
    optimizers.append(optimizer)
    mark(f"{name} model")
    loader = torch.utils.data.DataLoader(SAMPLES, batch_size=32)
    for step in range(3):
        for images, labels in loader:
            optimizer.zero_grad(set_to_none=set_to_none)
            mark(f"{name} {step} zeroed", input=n_bytes([images, labels]))
            for backward in range(n_backwards):
                scores, n_kept = forward(model, images)
                mark(
                    f"{name} {step} forward {backward}", input=n_bytes([images, labels]), activation=n_kept, temporary=0
                )
                nn.functional.cross_entropy(scores, labels).backward()
                del scores
            mark(f"{name} {step} backward", input=n_bytes([images, labels]), activation=0, temporary=0)
            optimizer.step()
            mark(f"{name} {step} step", input=n_bytes([images, labels]), activation=0, temporary=0)
            break
    return model, optimizer


def close(name):
    """An optimizer that calls the training itself, as frameworks around PyTorch have it."""
    model = Net()
    alive.append(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizers.append(optimizer)
    images = torch.randn(32, 1, 24, 24)

    def closure():
        optimizer.zero_grad()
        scores, n_kept = forward(model, images)
        mark(f"{name} {step} forward", activation=n_kept, temporary=0)
        scores.sum().backward()
        mark(f"{name} {step} backward", temporary=0)

    for step in range(2):
        optimizer.step(closure)
        mark(f"{name} {step} step", activation=0, temporary=0)


def peak_inside(name):
    """The program's peak is inside a backward pass: some gradients are made by then, and nothing tells them apart yet."""
    model = Net()
    alive.append(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizers.append(optimizer)

    def at_peak(gradient):
        large = torch.empty(10_000_000)
        mark(name)
        del large

    for step in range(2):
        hidden = model.head[:2](model.body(torch.randn(32, 1, 24, 24)))
        if step == 1:
            hidden.register_hook(at_peak)
        optimizer.zero_grad(set_to_none=True)
        model.head[2:](hidden).sum().backward()
        optimizer.step()


class Registered(nn.Module):
    """A class of the script's own: what its frames make looks like any other tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(70, 30))
        self.frozen = nn.Parameter(torch.zeros(71, 30), requires_grad=False)
        self.register_buffer("table", torch.arange(72.0 * 30))
        self.register_buffer("mask", torch.zeros(73, 30, dtype=torch.bool), persistent=False)


def made_in_every_way(name):
    values = torch.zeros(60, 30)
    other = torch.zeros(61, 30)
    mark(f"{name} nothing")
    leaves.append(nn.Parameter(values))
    mark(f"{name} of a tensor")
    leaves.extend([torch.zeros(62, 30, requires_grad=True), torch.zeros(63, 30).requires_grad_()])
    mark(f"{name} leaves")
    alive.append(Registered())
    mark(f"{name} registered")
    alive[0].register_buffer("late", other)
    del alive[0].frozen
    mark(f"{name} registered from outside")
    mean = torch.optim.swa_utils.AveragedModel(alive[0])
    alive.append(mean)
    mean.update_parameters(alive[0])
    mark(f"{name} averaged")
    alive.append(copy.deepcopy(alive[0]).half())
    mark(f"{name} half")
    weights = copy.deepcopy(alive[0].state_dict())
    mark(f"{name} copied, but not a model")
    alive[0].load_state_dict(weights)
    optimizer = torch.optim.Adam([*alive[0].parameters(), *leaves], amsgrad=True)
    optimizers.append(optimizer)
    (alive[0].weight.sum() + sum(leaf.sum() for leaf in leaves)).backward()
    nn.utils.clip_grad_norm_(leaves, 1.0)
    mark(f"{name} backward")
    belongs_to_nobody = torch.autograd.grad(leaves[0].pow(2).sum(), leaves[0])
    mark(f"{name} another gradient")
    optimizer.step()
    mark(f"{name} step")
    state = copy.deepcopy(optimizer.state_dict())
    mark(f"{name} state copied")
    optimizer.load_state_dict(state)
    mark(f"{name} state loaded")
    kept = alive[0].weight.detach()
    alive.clear()
    del optimizer, mean
    optimizers.clear()
    mark(f"{name} no longer")
    del belongs_to_nobody, state, weights, kept, values, other


def forget() -> None:
    alive.clear()
    leaves.clear()
    optimizers.clear()


torch.manual_seed(1)
torch.set_num_threads(1)
mark("start")
train("sgd", lambda parameters: torch.optim.SGD(parameters, lr=0.1), True)
forget()
train("momentum", lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01), False)
forget()
train(
    "foreach", lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9, nesterov=True, foreach=True), True, 2
)
forget()
model, optimizer = train("adam", torch.optim.Adam, True)
mean = copy.deepcopy(model)  # with its gradients
alive.append(mean)
mark("copied")
mean.zero_grad(set_to_none=True)
mean.load_state_dict(model.state_dict())
restored = torch.optim.Adam(mean.parameters())
restored.load_state_dict(optimizer.state_dict())
optimizers.append(restored)
mark("restored")
del model, optimizer, mean, restored
forget()
close("closure")
forget()
peak_inside("peak")
forget()
made_in_every_way("made")
forget()
mark("freed")
