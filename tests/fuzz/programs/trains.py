# SPDX-License-Identifier: GPL-2.0-or-later
"""Trains until it is killed, with workers that load batches, on the simulated board; writes what it has had to a log.

    trains.py LIBRARIES LOG SEED

Each line of the log is TIME PID WHAT BYTES: when (CLOCK_MONOTONIC, nanoseconds), and how much the function WHAT of this
process has allocated in all; of "committed", what the board's kernel has committed for it, which here only grows. A line
is written after what it tells of. Now and then everybody waits for a long time.
"""

import fcntl
import multiprocessing
import os
import random
import struct
import sys
import time
from typing import Any, List

sys.path.insert(0, os.path.join(sys.argv[1], "site-packages"))

from jmsim import Device  # type: ignore[import]  # noqa: E402

LOG = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
SEED = int(sys.argv[3])
N_WORKERS = 2
N_KEPT = 16
LONG_SECONDS = 2.0

BOARD = "/dev/jmsim-board"
BOOKS = struct.Struct("<8Q6L")  # struct jmsim_books
READ_BOOKS = 2 << 30 | BOOKS.size << 16 | ord("J") << 8 | 0xB0
PROCESS_BYTES = 5


def log(what: str, n_bytes: int) -> None:
    os.write(LOG, b"%d %d %s %d\n" % (time.monotonic_ns(), os.getpid(), what.encode(), n_bytes))


def committed() -> int:
    with open(BOARD, "rb", buffering=0) as board:
        books = bytearray(BOOKS.size)
        fcntl.ioctl(board, READ_BOOKS, books)
        return int(BOOKS.unpack(books)[PROCESS_BYTES])


def load_batch(number: int) -> bytearray:
    return bytearray(100000 + number)


def make_tensor(device: Any, number: int) -> Any:
    return device.allocator.malloc(200000 + number * 512)


def work(worker: int, pipe: Any) -> None:
    choose = random.Random(SEED * N_WORKERS + worker)
    kept: List[bytearray] = []
    total = 0
    for number in range(1 << 30):
        batch = load_batch(number)
        total += len(batch)
        log("load_batch", total)
        kept.append(batch)
        del kept[:-N_KEPT]
        pipe.send_bytes(b"batch")
        time.sleep(LONG_SECONDS if choose.random() < 0.02 else 0.005)


def main() -> None:
    pipes = []
    for worker in range(N_WORKERS):
        ours, theirs = multiprocessing.Pipe(duplex=False)
        multiprocessing.get_context("fork").Process(target=work, args=(worker, theirs), daemon=True).start()
        pipes.append(ours)
    device = Device(sys.argv[1])
    log("committed", committed())
    kept: List[Any] = []
    total = 0
    for number in range(1 << 30):
        for pipe in pipes:
            pipe.recv_bytes()
        tensor = make_tensor(device, number % 1000)
        total += tensor.n_bytes
        log("make_tensor", total)
        kept.append(tensor)
        while len(kept) > N_KEPT:
            device.allocator.free(kept.pop(0))
        if number % 16 == 0 and number < 1000:
            device.cuda.malloc(1 << 20)
            log("committed", committed())


main()
