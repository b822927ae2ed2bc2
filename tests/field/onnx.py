#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""usage: onnx.py FILE
Writes three layers with random weights as an ONNX file (version 8 of the format, operators of version 13)."""

import random
import struct
import sys
from typing import Tuple

WIDTHS = (256, 1024, 512, 256)  # of the input and of each layer's output
FLOAT = 1  # TensorProto.FLOAT


def number(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def field(tag: int, value: bytes) -> bytes:
    """A message, a text or bytes."""
    return number(tag << 3 | 2) + number(len(value)) + value


def integer(tag: int, value: int) -> bytes:
    return number(tag << 3) + number(value)


def tensor(name: str, shape: Tuple[int, ...], draw: random.Random) -> bytes:
    count = 1
    for length in shape:
        count *= length
    values = struct.pack(f"<{count}f", *(draw.uniform(-0.1, 0.1) for _ in range(count)))
    return (
        b"".join(integer(1, length) for length in shape)
        + integer(2, FLOAT)
        + field(8, name.encode())
        + field(9, values)
    )


def value(name: str, width: int) -> bytes:
    """A tensor of one row, by name."""
    shape = b"".join(field(1, integer(1, length)) for length in (1, width))
    return field(1, name.encode()) + field(2, field(1, integer(1, FLOAT) + field(2, shape)))


def node(operator: str, inputs: Tuple[str, ...], output: str) -> bytes:
    return (
        b"".join(field(1, name.encode()) for name in inputs) + field(2, output.encode()) + field(4, operator.encode())
    )


def model() -> bytes:
    draw, graph = random.Random(1), field(2, b"layers")
    for layer, (n_in, n_out) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        graph += field(5, tensor(f"weight{layer}", (n_in, n_out), draw)) + field(
            5, tensor(f"bias{layer}", (n_out,), draw)
        )
        graph += field(1, node("Gemm", (f"x{layer}", f"weight{layer}", f"bias{layer}"), f"sum{layer}"))
        graph += field(1, node("Relu", (f"sum{layer}",), f"x{layer + 1}"))
    graph += field(11, value("x0", WIDTHS[0])) + field(12, value(f"x{len(WIDTHS) - 1}", WIDTHS[-1]))
    return integer(1, 8) + field(7, graph) + field(8, integer(2, 13))


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as made:
        made.write(model())
