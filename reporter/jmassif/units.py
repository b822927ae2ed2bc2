# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers and names as people read them.

Every string of a trace comes from the profiled program and is untrusted: a function may be named after an escape
sequence that clears the screen. Whatever is shown goes through `printable` first.
"""

from typing import Union

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")


def _three_digits(value: float) -> str:
    if value < 9.995:
        return f"{value:.2f}"
    if value < 99.95:
        return f"{value:.1f}"
    return f"{value:.0f}"


def size(n_bytes: int) -> str:
    """1234567 → "1.18 MiB"; three digits, binary units, a minus sign where it belongs."""
    value: float = abs(n_bytes)
    sign = "-" if n_bytes < 0 else ""
    if value < 1024:
        return f"{sign}{int(value)} B"
    step = 0
    # 1023.5 would be shown as 1024 of the smaller unit.
    while value >= 1023.5 and step < len(_BINARY) - 1:
        value /= 1024
        step += 1
    return f"{sign}{_three_digits(value)} {_BINARY[step]}"


def growth(n_bytes: int) -> str:
    """A signed size: "+1.18 MiB", "-3 B", "0"."""
    return f"+{size(n_bytes)}" if n_bytes > 0 else size(n_bytes) if n_bytes else "0"


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0:.1f} %"


def count(n: int, noun: str) -> str:
    """1, "block" → "1 block"; 2 → "2 blocks"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def moment(time: Union[int, float], unit: str) -> str:
    """A time of a trace, whose `unit` is "ms", "i" (instructions) or "B" (bytes allocated and freed)."""
    if unit == "B":
        return size(int(time))
    if unit == "i":
        value = float(time)
        step = 0
        while value >= 999.5 and step < len(_DECIMAL) - 1:
            value /= 1000
            step += 1
        return f"{_three_digits(value) if step else int(value)} {_DECIMAL[step]}i"
    if time < 1000:
        return f"{time} ms"
    if time < 60 * 1000:
        return f"{time / 1000:.2f} s"
    if time < 3600 * 1000:
        return f"{int(time) // 60000} min {int(time) // 1000 % 60:02} s"
    return f"{int(time) // 3600000} h {int(time) // 60000 % 60:02} min"


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8, see grammar.py
        code -= 0xDC00
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printable(text: str) -> str:
    """`text` with everything escaped that a terminal or a text editor would act on instead of showing it.

    That is what Unicode classes as control, format (bidirectional overrides, zero width), surrogate, private,
    unassigned or line separator.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def unicode_text(text: str) -> str:
    """`text` as it is, but for bytes that were no UTF-8: those stand as \\xHH. For formats with an escaping of their own."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
