# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Processes made by fork."""

import multiprocessing
import os
import threading

from witness import here

held = []


def allocate(n=0):
    held.append(bytearray(here()))
    return n


def fork():
    pid = os.fork()
    if pid == 0:
        allocate()
        thread = threading.Thread(target=allocate)
        thread.start()
        thread.join()
        os._exit(0)
    os.waitpid(pid, 0)
    allocate()


if __name__ == "__main__":
    allocate()
    fork()
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    context = multiprocessing.get_context("fork")
    process = context.Process(target=allocate)
    process.start()
    process.join()
    pool = context.Pool(1)
    pool.map(allocate, range(2))
    pool.close()
    pool.join()
    allocate()
