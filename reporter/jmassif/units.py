# SPDX-License-Identifier: GPL-2.0-or-later
"""Sizes, times and names in words; sizes that a user writes ("800MiB", "+2%")."""

import re
from typing import TYPE_CHECKING, NamedTuple, Sequence, Union

if TYPE_CHECKING:
    from fractions import Fraction


# Every string of a trace comes from the profiled program and is untrusted: a function may be named after an escape
# sequence that clears the screen. Pass each through `printable` before it is shown.

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")


def _scaled(value: float, base: int, units: Sequence[str]) -> str:
    """Three digits and the unit that they take."""
    step = 0
    # 1023.5 would be shown as 1024 of the smaller unit.
    while value >= base - 0.5 and step < len(units) - 1:
        value /= base
        step += 1
    digits = 0 if not step or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} {units[step]}"


def size(n_bytes: int) -> str:
    """1234567 → "1.18 MiB"; three digits, binary units, a minus sign where it belongs."""
    return ("-" if n_bytes < 0 else "") + _scaled(abs(n_bytes), 1024, _BINARY)


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
        return f"{_scaled(time, 1000, _DECIMAL)}i"
    if time < 1000:
        return f"{time} ms"
    if time < 60 * 1000:
        return f"{time / 1000:.2f} s"
    if time < 3600 * 1000:
        return f"{int(time) // 60000} min {int(time) // 1000 % 60:02} s"
    return f"{int(time) // 3600000} h {int(time) // 60000 % 60:02} min"


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, see reader/tokens.py
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printable(text: str) -> str:
    """`text` with escapes for all characters that a terminal or an editor would act on: of the Unicode classes control,
    format (bidirectional overrides, zero width), surrogate, private, unassigned and line separator.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def unicode_text(text: str) -> str:
    """`text` as it is, but for bytes that were no UTF-8: those stand as \\xHH. For formats with an escaping of their own."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


# ---- quantities ----

UNITS = {
    "B": 1,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}

_QUANTITY = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?) ?([A-Za-z]*)")
_ALLOWANCE = re.compile(r"\+? ?([0-9]{1,20}(?:\.[0-9]{1,20})?) ?%")


class QuantityError(Exception):
    """A quantity that cannot be parsed. The message names a valid form."""


def parse_bytes(text: str) -> int:
    """ "800MiB" → 838860800, "4096" → 4096; parts of a byte do not count. Raises QuantityError."""
    match = _QUANTITY.fullmatch(text.strip())
    if not match or (match.group(2) or "B") not in UNITS:
        raise QuantityError(f'"{text}" is not a size: write a number and B, KiB, MiB, GiB, kB, MB or GB')
    whole, _, part = match.group(1).partition(".")
    n_bytes: int = int(whole + part) * UNITS[match.group(2) or "B"] // 10 ** len(part)
    return n_bytes


def parse_size(text: str) -> int:
    """Like parse_bytes, but a number alone may have been meant as megabytes: only 0 goes without a unit."""
    n_bytes = parse_bytes(text)
    if n_bytes and text.strip()[-1].isdigit():
        raise QuantityError(
            f'"{text.strip()}" has no unit: is it {text.strip()}B, {text.strip()}KiB or {text.strip()}MiB?'
        )
    return n_bytes


def parse_number(text: str) -> int:
    """ "12" → 12. Raises QuantityError."""
    if not re.fullmatch(r"[0-9]{1,20}", text.strip()):
        raise QuantityError(f'"{text}" is not a whole number')
    return int(text)


class Allowance(NamedTuple):
    """An allowed increase."""

    percent: "Fraction"
    bytes: int

    def beyond(self, before: int) -> int:
        """The largest value allowed after `before`."""
        return before + int(before * self.percent / 100) + self.bytes


def parse_allowance(text: str) -> Allowance:
    """ "+2%" or "+10MiB"; the sign may be missing. Raises QuantityError."""
    from fractions import Fraction

    percent = _ALLOWANCE.fullmatch(text.strip())
    if percent:
        return Allowance(Fraction(percent.group(1)), 0)
    try:
        return Allowance(Fraction(0), parse_size(re.sub(r"^\+", "", text.strip())))
    except QuantityError as error:
        if "unit" in str(error):
            raise
        raise QuantityError(f'"{text}" is not an allowance: write +2% or +10MiB')
