# SPDX-License-Identifier: GPL-2.0-or-later
"""Benchmark: objects beyond Python's own pools, made and dropped at the end of a chain of Python calls.

    objects.py COUNT

The last forty lie between marks (steps.c).
"""

import ctypes
import sys

SYS_GETPGID, MARK = 121, 0x4A4D
_mark = ctypes.CDLL(None).syscall


def make(depth: int) -> bytearray:
    return make(depth - 1) if depth else bytearray(1000)


def main() -> None:
    count = int(sys.argv[1])
    for i in range(count):
        if i == count - 40:
            _mark(SYS_GETPGID, MARK)
        make(10)
    _mark(SYS_GETPGID, MARK)


main()
