# SPDX-License-Identifier: GPL-2.0-or-later
"""Quantities as a user writes them: "800MiB", "1.5 GB", "+2%"."""

import re
from fractions import Fraction
from typing import NamedTuple

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
    """What was written is no such quantity. The message says what would be one."""


def parse_bytes(text: str) -> int:
    """ "800MiB" → 838860800, "4096" → 4096; parts of a byte do not count. Raises QuantityError."""
    match = _QUANTITY.fullmatch(text.strip())
    if not match or (match.group(2) or "B") not in UNITS:
        raise QuantityError(f'"{text}" is no size: write a number and B, KiB, MiB, GiB, kB, MB or GB')
    return int(Fraction(match.group(1)) * UNITS[match.group(2) or "B"])


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
        raise QuantityError(f'"{text}" is no whole number')
    return int(text)


class Allowance(NamedTuple):
    """How much more than before something may be."""

    percent: Fraction
    bytes: int

    def beyond(self, before: int) -> int:
        """The most that is allowed where there was `before`."""
        return before + int(before * self.percent / 100) + self.bytes


def parse_allowance(text: str) -> Allowance:
    """ "+2%" or "+10MiB"; the sign may be missing. Raises QuantityError."""
    percent = _ALLOWANCE.fullmatch(text.strip())
    if percent:
        return Allowance(Fraction(percent.group(1)), 0)
    try:
        return Allowance(Fraction(0), parse_size(re.sub(r"^\+", "", text.strip())))
    except QuantityError as error:
        if "unit" in str(error):
            raise
        raise QuantityError(f'"{text}" is no allowance: write +2% or +10MiB')
