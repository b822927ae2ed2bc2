# SPDX-License-Identifier: GPL-2.0-or-later
"""What every board of the simulated fleet runs: a few steps of training on the simulated Jetson, of its memory alone.

    program.py SIMULATION STEPS

From the third step on all steps are alike, so the peak does not depend on their number.
"""

import os
import sys
from typing import Any

SIDE, BATCH, CHANNELS = 64, 8, 3


def layers_of(layer: Any) -> Any:
    return (
        layer("conv1", 32 * CHANNELS * 9 + 32, 32, 1, (32, CHANNELS)),
        layer("relu1", 0, 32, 1, None),
        layer("conv2", 64 * 32 * 9 + 64, 64, 2, (64, 32)),
        layer("pool2", 0, 64, 4, None),
        layer("linear", 64 * 16 * 16 * 256 + 256, 256, 0, None),
    )


def vocabulary() -> bytearray:
    return bytearray(24 << 20)


def train(jmsim: Any, simulation: str, steps: int) -> None:
    device = jmsim.Device(simulation)
    words = vocabulary()
    net = jmsim.Network(device, layers_of(jmsim.Layer))
    optimizer = jmsim.SGD(net)
    for _ in range(steps):
        images = device.upload(bytearray(4 * CHANNELS * SIDE * SIDE * BATCH))
        net.backward(net.forward(images, BATCH, SIDE))
        optimizer.step()
    print(len(words))


def main() -> None:
    simulation, steps = sys.argv[1:]
    sys.path.insert(0, os.path.join(simulation, "site-packages"))
    import jmsim  # type: ignore[import]

    train(jmsim, simulation, int(steps))


main()
