# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""What tensors are for, where no stack tells:  roles.py

Parameters that are made in every way there is (a tensor that becomes one, a leaf, a buffer of a class of the script's own),
copies of models (deep, averaged, half), gradients beside what else passes and clipping leave, optimizers' state. At every
mark the script adds up, by PyTorch's own objects, the allocator's blocks of 512 bytes that each role has.
"""

import copy
from typing import Callable, Iterable, List

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from figures import optimizer_tensors, tell

BLOCK = 512  # the allocator's rounding
BATCH, LENGTH, WORDS, WIDTH = 16, 12, 400, 96


class Attention(nn.Module):
    """A model's own class: parameters of ready tensors, of tensors made on the device, and buffers of both sorts."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.scale = nn.Parameter(torch.full((WIDTH,), 1.0))
        self.shift = nn.Parameter(torch.zeros(3, WIDTH, device="cuda"))
        self.frozen = nn.Parameter(torch.zeros(7, WIDTH, device="cuda"), requires_grad=False)
        positions = torch.arange(LENGTH * WIDTH, device="cuda").reshape(LENGTH, WIDTH)
        self.register_buffer("places", positions.float())
        self.register_buffer("mask", torch.zeros(LENGTH, LENGTH, dtype=torch.bool, device="cuda"), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * self.scale + self.shift[0] + self.places
        return self.mix(x, x, x, need_weights=False, attn_mask=self.mask)[0]


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.attention = Attention()
        self.rnn = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.norm = nn.BatchNorm1d(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)
        self.head.weight = self.words.weight  # one block, two names

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.attention(self.words(tokens))
        x = self.rnn(x)[0][:, -1]
        return self.head(self.norm(x))


class Books:
    """PyTorch's arithmetic over all that the script has made, each storage once."""

    def __init__(self) -> None:
        self.modules: List[nn.Module] = []
        self.leaves: List[torch.Tensor] = []
        self.optimizers: List[torch.optim.Optimizer] = []

    def parameters(self) -> Iterable[torch.Tensor]:
        for module in self.modules:
            yield from module.parameters()
            yield from module.buffers()
        yield from self.leaves

    def tell(self, mark: str) -> None:
        state = [tensor for optimizer in self.optimizers for tensor in optimizer_tensors(optimizer)]
        tell(
            mark,
            parameter=blocks(self.parameters()),
            gradient=blocks(tensor.grad for tensor in self.parameters() if tensor.grad is not None),
            optimizer=blocks(state),
        )


def blocks(tensors: Iterable[torch.Tensor]) -> int:
    storages = {
        t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors if t.is_cuda and t.numel()
    }
    return sum((n_bytes + BLOCK - 1) // BLOCK * BLOCK for n_bytes in storages.values())


def batch() -> torch.Tensor:
    return torch.zeros(BATCH, LENGTH, dtype=torch.long).to("cuda")


def loss_of(model: nn.Module) -> torch.Tensor:
    return nn.functional.cross_entropy(model(batch()), torch.zeros(BATCH, dtype=torch.long, device="cuda"))


def parameters_of_all_sorts(books: Books) -> None:
    values = torch.zeros(50, WIDTH, device="cuda")
    other = torch.zeros(60, WIDTH, device="cuda")
    books.leaves.append(nn.Parameter(values))
    books.tell("a tensor becomes a parameter")
    books.leaves.append(torch.zeros(40, WIDTH, device="cuda", requires_grad=True))
    books.leaves.append(torch.zeros(30, WIDTH, device="cuda").requires_grad_())
    books.tell("leaves")
    with torch.device("cuda"):
        books.modules.append(nn.Linear(WIDTH, 33))
        books.leaves.append(nn.Parameter(torch.randn(20, WIDTH)))
    books.tell("a device for all")
    late = nn.Module()
    late.register_buffer("table", torch.zeros(70, WIDTH, device="cuda"))
    late.register_buffer("other", other)
    late.register_parameter("weight", nn.Parameter(torch.empty(80, WIDTH, device="cuda")))
    books.modules.append(nn.ModuleList([late]))
    books.tell("registered from outside")
    temporary = nn.Parameter(torch.empty(90, WIDTH, device="cuda"))
    del temporary, late.other, other
    books.tell("gone again")


def train(books: Books, model: nn.Module, optimizer: torch.optim.Optimizer, name: str, context: Callable) -> None:
    average = AveragedModel(model)  # stochastic weight averaging
    follower = copy.deepcopy(model).requires_grad_(False)  # an exponential moving average
    books.modules += [average, follower]
    books.tell(f"{name}: copies")
    for step in range(2):
        for part in range(2):  # gradients are accumulated
            with context():
                loss = loss_of(model)
            books.tell(f"{name} {step}.{part}: forward")
            loss.backward()
            del loss
            books.tell(f"{name} {step}.{part}: backward")
        length = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        books.tell(f"{name} {step}: clipped")
        nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        books.tell(f"{name} {step}: step")
        average.update_parameters(model)
        with torch.no_grad():
            for mine, theirs in zip(follower.parameters(), model.parameters()):
                mine.lerp_(theirs, 0.1)
        books.tell(f"{name} {step}: averaged")
        optimizer.zero_grad(set_to_none=step == 0)
        books.tell(f"{name} {step}: zeroed")
        del length


def main() -> None:
    torch.manual_seed(1)
    torch.backends.cudnn.enabled = False
    torch.cuda.init()
    books = Books()
    books.tell("start")
    parameters_of_all_sorts(books)
    model = Model().to("cuda")
    books.modules.append(model)
    books.tell("model")
    optimizer = torch.optim.Adam(model.parameters(), amsgrad=True)
    books.optimizers.append(optimizer)
    train(books, model, optimizer, "adam", lambda: torch.autocast("cuda", dtype=torch.bfloat16, enabled=False))
    saved = copy.deepcopy(optimizer.state_dict())
    books.tell("a copy of the state")
    optimizer.load_state_dict(saved)
    del saved
    books.tell("the state loaded")
    half = copy.deepcopy(model).half()
    books.modules.append(half)
    books.tell("half")
    momentum = torch.optim.SGD(half.parameters(), lr=0.1, momentum=0.9)
    books.optimizers.append(momentum)
    train(books, half, momentum, "sgd", lambda: torch.autocast("cuda", enabled=False))
    train(books, model, optimizer, "mixed", lambda: torch.autocast("cuda", dtype=torch.bfloat16))
    found = torch.autograd.grad(model.head(model.words(batch())).tanh().sum(), model.head.weight, create_graph=True)
    norm = found[0].pow(2).sum()
    books.tell("a gradient that belongs to nobody")
    norm.backward()
    books.tell("second derivatives")
    del norm, found
    state = {key: value.clone() for key, value in model.state_dict().items()}
    books.tell("a copy of the weights")
    model.load_state_dict(state)
    del state
    books.tell("weights loaded")
    books.modules.clear()
    books.optimizers.clear()
    del model, optimizer, half, momentum
    books.tell("models gone")
    books.leaves.clear()
    books.tell("leaves gone")
    torch.cuda.empty_cache()
    books.tell("empty")


main()
