# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Processes that start an interpreter of their own."""

import multiprocessing
import subprocess
import sys

from witness import here

held = []


def allocate(n=0):
    held.append(bytearray(here()))
    return n


if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=allocate)
    process.start()
    process.join()
    code = "import sys; sys.path.insert(0, sys.argv[1]); import witness; held = bytearray(witness.here())"
    subprocess.check_call([sys.executable, "-c", code, sys.path[0]])
    allocate()
