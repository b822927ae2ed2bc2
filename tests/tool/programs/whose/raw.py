# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""bytes and bytearray, made, joined, grown and read."""

import json
import sys


def made():
    return [bytes(7 << 20), bytearray(b"x") * (5 << 20)]


def joined(pieces):
    return b"".join(pieces)


def grown():
    buffer = bytearray()
    for _ in range(3000):
        buffer += b"0123456789abcdef" * 64
    return buffer


def read():
    with open("/dev/zero", "rb") as file:
        return file.read(4 << 20)


pieces = made()
held = {"made": pieces, "joined": [joined(pieces)], "grown": [grown()], "read": [read()]}
print(json.dumps({name: sum(map(sys.getsizeof, buffers)) for name, buffers in held.items()}))
