# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Threads that make what the program holds."""

import concurrent.futures
import json
import threading

import numpy

held = []


def worker():
    held.append(numpy.ones(1 << 20))


def task(n):
    return bytearray(n)


thread = threading.Thread(target=worker)
thread.start()
thread.join()
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    buffers = list(pool.map(task, [3 << 20, 2 << 20]))
print(json.dumps({"worker": held[0].nbytes, "task": 5 << 20}))
