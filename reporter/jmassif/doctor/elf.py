# SPDX-License-Identifier: GPL-2.0-or-later
"""What an executable says of itself: its processor, who loads it, its build's id, whether it kept its symbols.

Only 64-bit little-endian files are read, which all that jmassif records are; others have a kind of their own.
"""

import struct
from typing import NamedTuple

_MACHINES = {0x3E: "x86_64", 0xB7: "aarch64", 0x28: "arm", 0x03: "i386"}
_INTERPRETER, _NOTE, _SYMBOLS, _BUILD_ID = 3, 4, 2, 3
_LONGEST = 1 << 16


class Elf(NamedTuple):
    machine: str  # "x86_64", "aarch64", "arm", another one's number; "" if it is no such file
    interpreter: str  # "" for none: linked statically
    build_id: str  # in hexadecimal, "" for none
    has_symbols: bool  # besides those that are needed at run time


def _build_id(notes: bytes) -> str:
    at = 0
    while at + 12 <= len(notes):
        n_name, n_value, kind = struct.unpack_from("<III", notes, at)
        value = at + 12 + (n_name + 3) // 4 * 4
        if kind == _BUILD_ID and notes[at + 12 : at + 16] == b"GNU\0":
            return notes[value : value + n_value].hex()
        at = value + (n_value + 3) // 4 * 4
    return ""


def read_elf(path: str) -> Elf:
    """Of a file that is no executable, or cut off, what could be read."""
    machine = interpreter = build_id = ""
    has_symbols = False
    try:
        with open(path, "rb") as stream:
            header = stream.read(64)
            if len(header) < 64 or header[:4] != b"\x7fELF":
                return Elf("", "", "", False)
            number = struct.unpack_from("<H", header, 18)[0]
            machine = _MACHINES.get(number, str(number))
            if header[4:6] != b"\x02\x01":
                return Elf(machine, "", "", False)
            segments, sections = struct.unpack_from("<QQ", header, 32)
            n_segments, _, n_sections = struct.unpack_from("<HHH", header, 56)
            for i in range(n_segments):
                stream.seek(segments + 56 * i)
                kind, _, offset, _, _, size = struct.unpack("<IIQQQQ", stream.read(40))
                if kind in (_INTERPRETER, _NOTE):
                    stream.seek(offset)
                    content = stream.read(min(size, _LONGEST))
                    if kind == _NOTE:
                        build_id = build_id or _build_id(content)
                    else:
                        interpreter = content.rstrip(b"\0").decode("utf-8", "replace")
            stream.seek(sections)
            for i in range(n_sections):
                entry = stream.read(64)
                has_symbols = has_symbols or struct.unpack_from("<I", entry, 4)[0] == _SYMBOLS
    except (OSError, struct.error):
        pass
    return Elf(machine, interpreter, build_id, has_symbols)
