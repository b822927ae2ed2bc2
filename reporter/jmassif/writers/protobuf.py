# SPDX-License-Identifier: GPL-2.0-or-later
"""Protocol Buffers' wire format, as far as writing a message needs it: varints and length-delimited fields.

A message is bytes; its fields are appended one after the other. Fields that hold their default, 0, are left out.
"""

from typing import Iterable

_VARINT, _DELIMITED = 0, 2


_SHORT = [bytes([number]) for number in range(0x80)]


def varint(number: int) -> bytes:
    """An unsigned number of at most 64 bits; a negative one as its two's complement."""
    if 0 <= number < len(_SHORT):
        return _SHORT[number]
    number &= (1 << 64) - 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def number(field: int, value: int) -> bytes:
    return varint(field << 3 | _VARINT) + varint(value) if value else b""


def delimited(field: int, content: bytes) -> bytes:
    """A string, a message in a message, or packed numbers."""
    return varint(field << 3 | _DELIMITED) + varint(len(content)) + content


def packed(field: int, values: Iterable[int]) -> bytes:
    content = b"".join(map(varint, values))
    return delimited(field, content) if content else b""
