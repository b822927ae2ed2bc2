#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains a small image classifier for a few steps: something to profile.

    valgrind --tool=jmassif python3 train.py

Its images grow from step to step, as in training on several scales: what that does to a caching allocator is worth seeing.

On a board with PyTorch and CUDA this is an ordinary PyTorch program. Elsewhere it runs on the
simulated Jetson of tests/sim, which has CUDA's memory and none of its arithmetic: the same network's
tensors are allocated and freed in the order in which training does, by a caching allocator that
works like PyTorch's, and the loss printed is that of a tiny classifier trained in plain Python.
"""

import argparse
import importlib
import importlib.util
import os
import sys
from typing import Any, List, Tuple

FLOAT_BYTES = 4
CHANNELS = 3
CLASSES = 10
# Of the images, by step.
SIDES = (96, 128, 160, 192)
# Of the two linear layers: on the simulation they cost nothing but memory.
WIDTH = 256
SIMULATED_WIDTH = 5600

EPILOG = """\
--device=auto  looks whether this machine has an NVIDIA GPU and an installed PyTorch, without
               importing it (under Valgrind that alone takes half a minute and more); with both it
               takes cuda, otherwise sim
--device=cuda  PyTorch on the GPU
--device=cpu   PyTorch on the CPU, for a profile of the host alone, with images of a quarter of the side
--device=sim   the simulated Jetson; its libraries are looked for in $JMSIM_LIB, else in build/sim
               of the source tree and of the current directory. With --owners=jmsim.rules from
               there jmassif knows what the tensors are for
"""


class SetupError(Exception):
    """What the program cannot start without, as one line for its user."""


class OutOfMemory(Exception):
    """What could not be had, likewise."""


def side_at(step: int, steps: int) -> int:
    """All sides have their turn, whatever the number of steps."""
    return SIDES[step * len(SIDES) // steps]


def size(n_bytes: int) -> str:
    """As jm_print has it: three digits."""
    number, unit = n_bytes / 1024.0, "KiB"
    for unit in ("KiB", "MiB", "GiB"):
        if number < 1023.5 or unit == "GiB":
            break
        number /= 1024.0
    return "%.*f %s" % (2 if number < 9.995 else 1 if number < 99.95 else 0, number, unit)


def print_memory(allocated: int, peak: int, reserved: int) -> None:
    print("tensors %s, at most %s; reserved by the allocator %s" % (size(allocated), size(peak), size(reserved)))


# The simulated Jetson.


def library_directory() -> str:
    """The directory with the simulated libraries. Raises SetupError when there is none."""
    source_tree = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    named = os.environ.get("JMSIM_LIB")
    places = [named] if named else [os.path.join(place, "build/sim") for place in (source_tree, ".")]
    for place in places:
        if os.path.exists(os.path.join(place, "site-packages/jmsim/__init__.py")):
            return os.path.abspath(place)
    raise SetupError(
        "no simulated Jetson in %s: build one with tests/sim/build.sh build/sim, or set JMSIM_LIB"
        % " or ".join(os.path.normpath(place) for place in places)
    )


class TinyClassifier:
    """A line through points of a plane, fitted by gradient descent: an honest loss for next to
    nothing."""

    def __init__(self) -> None:
        self.slope = 0.0
        self.offset = 0.0
        self.points = [(x / 8.0, 1.5 * x / 8.0 - 0.5) for x in range(-8, 9)]

    def step(self) -> float:
        """One step of gradient descent. Returns the mean squared error before it."""
        errors = [(x, self.slope * x + self.offset - y) for x, y in self.points]
        n = len(errors)
        self.slope -= 0.4 * sum(2.0 * e * x for x, e in errors) / n
        self.offset -= 0.4 * sum(2.0 * e for _, e in errors) / n
        return sum(e * e for _, e in errors) / n


def layers_of(layer: Any) -> Tuple[Any, ...]:
    """The network of train_with_torch, as memory, and wider."""
    width = SIMULATED_WIDTH
    return (
        layer("conv1", 32 * CHANNELS * 9 + 32, 32, 1, (32, CHANNELS)),
        layer("relu1", 0, 32, 1, None),
        layer("pool1", 0, 32, 2, None),
        layer("conv2", 64 * 32 * 9 + 64, 64, 2, (64, 32)),
        layer("relu2", 0, 64, 2, None),
        layer("pool2", 0, 64, 4, None),
        layer("average", 0, 64 * 16 * 16, 0, None),
        layer("linear1", 64 * 16 * 16 * width + width, width, 0, None),
        layer("relu3", 0, width, 0, None),
        layer("linear2", width * 1024 + 1024, 1024, 0, None),
        layer("relu4", 0, 1024, 0, None),
        layer("linear3", 1024 * CLASSES + CLASSES, CLASSES, 0, None),
    )


def train_on_simulation(steps: int, batch: int) -> None:
    directory = library_directory()
    sys.path.insert(0, os.path.join(directory, "site-packages"))
    jmsim = importlib.import_module("jmsim")
    try:
        device = jmsim.Device(directory)
    except OSError as error:
        raise SetupError(str(error))
    print("a simulated Jetson (memory only), %d steps of %d images" % (steps, batch))
    try:
        train_with_jmsim(jmsim, device, steps, batch)
    except jmsim.CudaError as error:
        raise OutOfMemory(str(error))


def train_with_jmsim(jmsim: Any, device: Any, steps: int, batch: int) -> None:
    net = jmsim.Network(device, layers_of(jmsim.Layer))
    optimizer = jmsim.SGD(net)
    classifier = TinyClassifier()
    for step in range(steps):
        side = side_at(step, steps)
        images = bytearray(FLOAT_BYTES * CHANNELS * side * side * batch)
        on_device = device.upload(images)
        outputs = net.forward(on_device, batch, side)
        net.backward(outputs)
        optimizer.step()
        print("step %d, images of %d x %d: loss %.6f" % (step + 1, side, side, classifier.step()))
    weights = device.download(net.parameters["linear2"])
    print("weights of the second linear layer, on the host: %s" % size(len(weights)))
    allocator = device.allocator
    print_memory(allocator.allocated, allocator.peak_allocated, allocator.reserved)


# PyTorch.


def train_with_torch(torch: Any, device: str, steps: int, batch: int) -> None:
    print("PyTorch %s on %s, %d steps of %d images" % (torch.__version__, device, steps, batch))
    torch.manual_seed(1)
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(CHANNELS, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(8),
        nn.Flatten(),
        nn.Linear(64 * 8 * 8, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, CLASSES),
    ).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    loss_function = nn.CrossEntropyLoss()
    for step in range(steps):
        side = side_at(step, steps) // (4 if device == "cpu" else 1)
        images, labels = torch.randn(batch, CHANNELS, side, side), torch.randint(0, CLASSES, (batch,))
        optimizer.zero_grad()
        loss = loss_function(net(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        print("step %d, images of %d x %d: loss %.6f" % (step + 1, side, side, loss.item()))
    if device == "cuda":
        cuda = torch.cuda
        print_memory(cuda.memory_allocated(), cuda.max_memory_allocated(), cuda.memory_reserved())


def import_torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise SetupError("PyTorch cannot be imported: %s" % error)


# What Tegra's drivers (nvgpu, and the newer nvidia) and a desktop's offer to programs.
GPU_NODES = ("/dev/nvhost-gpu", "/dev/nvgpu", "/dev/nvidia0")


def has_gpu_and_torch() -> bool:
    gpu = any(os.path.exists(node) for node in GPU_NODES)
    return gpu and importlib.util.find_spec("torch") is not None


def train(device: str, steps: int, batch: int) -> None:
    wants_torch = device in ("cuda", "cpu") or (device == "auto" and has_gpu_and_torch())
    if not wants_torch:
        train_on_simulation(steps, batch)
        return
    torch = import_torch()
    if device == "cpu":
        train_with_torch(torch, "cpu", steps, batch)
    elif torch.cuda.is_available():
        train_with_torch(torch, "cuda", steps, batch)
    elif device == "cuda":
        raise SetupError("PyTorch is here, but it has no CUDA device")
    else:
        train_on_simulation(steps, batch)


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def parse_arguments(arguments: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="train.py",
        description=(__doc__ or "").split("\n")[0],
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", choices=["auto", "cuda", "cpu", "sim"], default="auto")
    parser.add_argument("--steps", type=positive, default=6, metavar="N", help="default 6")
    parser.add_argument("--batch", type=positive, default=32, metavar="N", help="default 32")
    return parser.parse_args(arguments)


def main(arguments: List[str]) -> int:
    options = parse_arguments(arguments)
    try:
        train(options.device, options.steps, options.batch)
    except SetupError as error:
        print("train.py: %s" % error, file=sys.stderr)
        return 2
    except OutOfMemory as error:
        print("train.py: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
