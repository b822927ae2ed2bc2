#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains a small image classifier for a few steps: something to profile.

    valgrind --tool=jmassif python3 train.py

On a board with PyTorch and CUDA this is an ordinary PyTorch program. Elsewhere it runs on the
simulated Jetson of tests/sim, which has CUDA's memory and none of its arithmetic: the same network's
tensors are allocated and freed in the order in which training does, by a caching allocator that
works like PyTorch's, and the loss printed is that of a tiny classifier trained in plain Python.
"""

import argparse
import ctypes
import importlib
import importlib.util
import os
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

FLOAT_BYTES = 4
MIB = 1 << 20
IMAGE = (3, 32, 32)
CLASSES = 10

EPILOG = """\
--device=auto  looks whether this machine has an NVIDIA GPU and an installed PyTorch, without
               importing it (under Valgrind that alone takes half a minute and more); with both it
               takes cuda, otherwise sim
--device=cuda  PyTorch on the GPU
--device=cpu   PyTorch on the CPU, for a profile of the host alone
--device=sim   the simulated Jetson; its libraries are looked for in $JMSIM_LIB, else in build/sim
               of the source tree and of the current directory
"""


class SetupError(Exception):
    """What the program cannot start without, as one line for its user."""


# The network, as memory. PyTorch's version of it is in train_with_torch.


class Layer(NamedTuple):
    name: str
    weights: int  # how many numbers its parameters are
    outputs: int  # how many numbers it outputs for one image
    convolution: Optional[Tuple[int, int, int]]  # channels out, channels in, side of the image


LAYERS = (
    Layer("conv1", 32 * 3 * 9 + 32, 32 * 32 * 32, (32, 3, 32)),
    Layer("relu1", 0, 32 * 32 * 32, None),
    Layer("pool1", 0, 32 * 16 * 16, None),
    Layer("conv2", 64 * 32 * 9 + 64, 64 * 16 * 16, (64, 32, 16)),
    Layer("relu2", 0, 64 * 16 * 16, None),
    Layer("pool2", 0, 64 * 8 * 8, None),
    Layer("linear1", 4096 * 256 + 256, 256, None),
    Layer("relu3", 0, 256, None),
    Layer("linear2", 256 * CLASSES + CLASSES, CLASSES, None),
)


# The simulated Jetson.


def library_directory() -> str:
    """The directory with the simulated libraries. Raises SetupError when there is none."""
    source_tree = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    named = os.environ.get("JMSIM_LIB")
    places = [named] if named else [os.path.join(place, "build/sim") for place in (source_tree, ".")]
    for place in places:
        if os.path.exists(os.path.join(place, "libcudart.so.10.2")):
            return os.path.abspath(place)
    raise SetupError(
        "no simulated Jetson in %s: build one with tests/sim/build.sh build/sim, or set JMSIM_LIB"
        % " or ".join(os.path.normpath(place) for place in places)
    )


class CudaError(Exception):
    """A call of CUDA that failed, as one line for the user."""


class OutOfMemory(CudaError):
    pass


class Cuda:
    """The CUDA functions that the program calls."""

    OUT_OF_MEMORY = 2
    HOST_TO_DEVICE = 1

    def __init__(self) -> None:
        directory = library_directory()
        try:
            self.runtime = ctypes.CDLL(os.path.join(directory, "libcudart.so.10.2"))
            self.cudnn = ctypes.CDLL(os.path.join(directory, "libcudnn.so.8"))
            self.cublas = ctypes.CDLL(os.path.join(directory, "libcublas.so.10"))
        except OSError as error:
            raise SetupError(str(error))

    def check(self, code: int, call: str) -> None:
        if code == self.OUT_OF_MEMORY:
            raise OutOfMemory("out of memory: %s" % call)
        if code != 0:
            raise CudaError("%s failed with error %d" % (call, code))

    def malloc(self, n_bytes: int) -> int:
        pointer = ctypes.c_void_p()
        code = self.runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(n_bytes))
        self.check(code, "cudaMalloc of %d bytes" % n_bytes)
        return pointer.value or 0

    def free(self, address: int) -> None:
        self.check(self.runtime.cudaFree(ctypes.c_void_p(address)), "cudaFree")

    def malloc_host(self, n_bytes: int) -> int:
        pointer = ctypes.c_void_p()
        code = self.runtime.cudaMallocHost(ctypes.byref(pointer), ctypes.c_size_t(n_bytes))
        self.check(code, "cudaMallocHost of %d bytes" % n_bytes)
        return pointer.value or 0

    def copy_to_device(self, to: int, source: int, n_bytes: int) -> None:
        code = self.runtime.cudaMemcpy(
            ctypes.c_void_p(to),
            ctypes.c_void_p(source),
            ctypes.c_size_t(n_bytes),
            self.HOST_TO_DEVICE,
        )
        self.check(code, "cudaMemcpy")

    def create(self, library: ctypes.CDLL, function: str) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self.check(getattr(library, function)(ctypes.byref(handle)), function)
        return handle


class Block:
    """A part of a segment: a tensor's memory, or free."""

    def __init__(self, address: int, n_bytes: int, segment_bytes: int) -> None:
        self.address = address
        self.n_bytes = n_bytes
        self.segment_bytes = segment_bytes
        self.in_use = False
        self.before = None  # type: Optional[Block]
        self.after = None  # type: Optional[Block]


class CachingAllocator:
    """Hands out parts of segments and keeps what is freed, by the rules of PyTorch's allocator:

    blocks of up to 1 MiB come from 2 MiB segments, larger ones from 20 MiB segments, and from 10 MiB
    on each has its own; the smallest block that fits is split; free neighbours are joined."""

    GRANULE = 512
    SMALL = MIB
    SMALL_SEGMENT = 2 * MIB
    LARGE_SEGMENT = 20 * MIB
    OWN_SEGMENT_FROM = 10 * MIB

    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda
        self.free_blocks = []  # type: List[Block]
        self.allocated = 0
        self.reserved = 0
        self.peak_allocated = 0

    @staticmethod
    def round_up(n_bytes: int, to: int) -> int:
        return (n_bytes + to - 1) // to * to

    def segment_bytes(self, n_bytes: int) -> int:
        if n_bytes <= self.SMALL:
            return self.SMALL_SEGMENT
        if n_bytes < self.OWN_SEGMENT_FROM:
            return self.LARGE_SEGMENT
        return self.round_up(n_bytes, 2 * MIB)

    def cached_block(self, n_bytes: int) -> Optional[Block]:
        small = n_bytes <= self.SMALL
        fitting = [
            block
            for block in self.free_blocks
            if block.n_bytes >= n_bytes and (block.segment_bytes == self.SMALL_SEGMENT) == small
        ]
        if not fitting:
            return None
        return min(fitting, key=lambda block: (block.n_bytes, block.address))

    def new_segment(self, n_bytes: int) -> Block:
        size = self.segment_bytes(n_bytes)
        try:
            address = self.cuda.malloc(size)
        except OutOfMemory:
            self.empty_cache()
            address = self.cuda.malloc(size)
        self.reserved += size
        block = Block(address, size, size)
        self.free_blocks.append(block)
        return block

    def split(self, block: Block, n_bytes: int) -> None:
        rest = block.n_bytes - n_bytes
        if rest < (self.GRANULE if block.segment_bytes == self.SMALL_SEGMENT else MIB):
            return
        other = Block(block.address + n_bytes, rest, block.segment_bytes)
        other.before, other.after = block, block.after
        if block.after:
            block.after.before = other
        block.after = other
        block.n_bytes = n_bytes
        self.free_blocks.append(other)

    def malloc(self, n_bytes: int) -> Block:
        n_bytes = self.round_up(n_bytes, self.GRANULE)
        block = self.cached_block(n_bytes) or self.new_segment(n_bytes)
        self.free_blocks.remove(block)
        self.split(block, n_bytes)
        block.in_use = True
        self.allocated += block.n_bytes
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        return block

    def free(self, block: Block) -> None:
        block.in_use = False
        self.allocated -= block.n_bytes
        self.free_blocks.append(block)
        if block.after and not block.after.in_use:
            self.join(block, block.after)
        if block.before and not block.before.in_use:
            self.join(block.before, block)

    def join(self, low: Block, high: Block) -> None:
        self.free_blocks.remove(high)
        low.n_bytes += high.n_bytes
        low.after = high.after
        if low.after:
            low.after.before = low

    def empty_cache(self) -> None:
        for block in [b for b in self.free_blocks if not b.before and not b.after]:
            self.cuda.free(block.address)
            self.free_blocks.remove(block)
            self.reserved -= block.segment_bytes


class Convolution:
    """A convolution by cuDNN: descriptors, and a workspace for as long as a call takes."""

    def __init__(self, cuda: Cuda, handle: ctypes.c_void_p, batch: int, layer: Layer) -> None:
        assert layer.convolution
        channels_out, channels_in, side = layer.convolution
        self.cuda = cuda
        self.handle = handle
        create = cuda.create
        self.x = create(cuda.cudnn, "cudnnCreateTensorDescriptor")
        self.y = create(cuda.cudnn, "cudnnCreateTensorDescriptor")
        self.filter = create(cuda.cudnn, "cudnnCreateFilterDescriptor")
        self.convolution = create(cuda.cudnn, "cudnnCreateConvolutionDescriptor")
        cudnn = cuda.cudnn
        cudnn.cudnnSetTensor4dDescriptor(self.x, 0, 0, batch, channels_in, side, side)
        cudnn.cudnnSetTensor4dDescriptor(self.y, 0, 0, batch, channels_out, side, side)
        cudnn.cudnnSetFilter4dDescriptor(self.filter, 0, 0, channels_out, channels_in, 3, 3)
        cudnn.cudnnSetConvolution2dDescriptor(self.convolution, 1, 1, 1, 1, 1, 1, 0, 0)

    def workspace_bytes(self) -> int:
        n_bytes = ctypes.c_size_t()
        code = self.cuda.cudnn.cudnnGetConvolutionForwardWorkspaceSize(
            self.handle, self.x, self.filter, self.convolution, self.y, 1, ctypes.byref(n_bytes)
        )
        self.cuda.check(code, "cudnnGetConvolutionForwardWorkspaceSize")
        return n_bytes.value

    def forward(self, allocator: CachingAllocator, x: Block, weights: Block, y: Block) -> None:
        n_bytes = self.workspace_bytes()
        workspace = allocator.malloc(n_bytes)
        scale = ctypes.c_float(1.0)
        code = self.cuda.cudnn.cudnnConvolutionForward(
            self.handle,
            ctypes.byref(scale),
            self.x,
            ctypes.c_void_p(x.address),
            self.filter,
            ctypes.c_void_p(weights.address),
            self.convolution,
            1,
            ctypes.c_void_p(workspace.address),
            ctypes.c_size_t(n_bytes),
            ctypes.byref(scale),
            self.y,
            ctypes.c_void_p(y.address),
        )
        self.cuda.check(code, "cudnnConvolutionForward")
        allocator.free(workspace)


class SimulatedNet:
    """The network and its optimizer, on the simulated device."""

    def __init__(self, cuda: Cuda, batch: int) -> None:
        self.cuda = cuda
        self.batch = batch
        self.allocator = CachingAllocator(cuda)
        self.gradients = {}  # type: Dict[str, Block]
        self.momentum = {}  # type: Dict[str, Block]
        self.parameters = self.make_parameters()
        self.cublas = cuda.create(cuda.cublas, "cublasCreate_v2")
        self.cudnn = cuda.create(cuda.cudnn, "cudnnCreate")
        self.convolutions = {
            layer.name: Convolution(cuda, self.cudnn, batch, layer) for layer in LAYERS if layer.convolution
        }
        self.image_bytes = FLOAT_BYTES * IMAGE[0] * IMAGE[1] * IMAGE[2] * batch
        self.staging = cuda.malloc_host(self.image_bytes)

    def make_parameters(self) -> Dict[str, Block]:
        return {layer.name: self.allocator.malloc(FLOAT_BYTES * layer.weights) for layer in LAYERS if layer.weights}

    def load_batch(self, images: bytearray) -> Block:
        source = (ctypes.c_char * len(images)).from_buffer(images)
        ctypes.memmove(self.staging, source, len(images))
        on_device = self.allocator.malloc(self.image_bytes)
        self.cuda.copy_to_device(on_device.address, self.staging, self.image_bytes)
        return on_device

    def forward(self, images: Block) -> List[Block]:
        outputs = [images]
        for layer in LAYERS:
            output = self.allocator.malloc(FLOAT_BYTES * layer.outputs * self.batch)
            if layer.convolution:
                convolution = self.convolutions[layer.name]
                weights = self.parameters[layer.name]
                convolution.forward(self.allocator, outputs[-1], weights, output)
            outputs.append(output)
        return outputs

    def backward(self, outputs: List[Block]) -> None:
        """Frees each layer's output when its gradient, one layer further in, is there."""
        flowing = self.allocator.malloc(FLOAT_BYTES * CLASSES * self.batch)
        for layer in reversed(LAYERS):
            output = outputs.pop()
            if layer.weights and layer.name not in self.gradients:
                self.gradients[layer.name] = self.allocator.malloc(FLOAT_BYTES * layer.weights)
            inward = self.allocator.malloc(outputs[-1].n_bytes)
            self.allocator.free(output)
            self.allocator.free(flowing)
            flowing = inward
        self.allocator.free(flowing)
        self.allocator.free(outputs.pop())

    def optimizer_step(self) -> None:
        for layer in LAYERS:
            if layer.weights and layer.name not in self.momentum:
                self.momentum[layer.name] = self.allocator.malloc(FLOAT_BYTES * layer.weights)

    def step(self, images: bytearray) -> None:
        outputs = self.forward(self.load_batch(images))
        self.backward(outputs)
        self.optimizer_step()


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


def make_dataset(n_batches: int, batch: int) -> List[bytearray]:
    n_bytes = FLOAT_BYTES * IMAGE[0] * IMAGE[1] * IMAGE[2] * batch
    return [bytearray(n_bytes) for _ in range(n_batches)]


def train_on_simulation(steps: int, batch: int) -> None:
    cuda = Cuda()
    print("simulated Jetson (memory only), %d steps of %d images" % (steps, batch))
    dataset = make_dataset(4, batch)
    net = SimulatedNet(cuda, batch)
    classifier = TinyClassifier()
    for step in range(steps):
        net.step(dataset[step % len(dataset)])
        print("step %d: loss %.6f" % (step + 1, classifier.step()))
    print(
        "tensors %.1f MiB, at most %.1f MiB; reserved by the allocator %.1f MiB"
        % (
            net.allocator.allocated / MIB,
            net.allocator.peak_allocated / MIB,
            net.allocator.reserved / MIB,
        )
    )


# PyTorch.


def train_with_torch(torch: Any, device: str, steps: int, batch: int) -> None:
    print("PyTorch %s on %s, %d steps of %d images" % (torch.__version__, device, steps, batch))
    torch.manual_seed(1)
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(4096, 256),
        nn.ReLU(),
        nn.Linear(256, CLASSES),
    ).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    loss_function = nn.CrossEntropyLoss()
    dataset = [(torch.randn(batch, *IMAGE), torch.randint(0, CLASSES, (batch,))) for _ in range(4)]
    for step in range(steps):
        images, labels = dataset[step % len(dataset)]
        optimizer.zero_grad()
        loss = loss_function(net(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        print("step %d: loss %.6f" % (step + 1, loss.item()))
    if device == "cuda":
        print(
            "tensors %.1f MiB, at most %.1f MiB; reserved by the allocator %.1f MiB"
            % (
                torch.cuda.memory_allocated() / MIB,
                torch.cuda.max_memory_allocated() / MIB,
                torch.cuda.memory_reserved() / MIB,
            )
        )


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
    parser.add_argument("--batch", type=positive, default=64, metavar="N", help="default 64")
    return parser.parse_args(arguments)


def main(arguments: List[str]) -> int:
    options = parse_arguments(arguments)
    try:
        train(options.device, options.steps, options.batch)
    except SetupError as error:
        print("train.py: %s" % error, file=sys.stderr)
        return 2
    except CudaError as error:
        print("train.py: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
