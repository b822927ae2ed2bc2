# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers as people read them, and strings that do nothing to a terminal."""

import pytest

from jmassif.units import count, growth, moment, percent, printable, size


@pytest.mark.parametrize(
    "n_bytes, text",
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (10239, "10.0 KiB"),
        (1048063, "1023 KiB"),
        (1048064, "1.00 MiB"),
        (1048576, "1.00 MiB"),
        (-1536, "-1.50 KiB"),
        (2**64 - 1, "16.0 EiB"),
    ],
)
def test_size(n_bytes: int, text: str) -> None:
    assert size(n_bytes) == text


def test_growth_is_signed() -> None:
    assert [growth(n) for n in (2048, 0, -2048)] == ["+2.00 KiB", "0", "-2.00 KiB"]


def test_percent_of_nothing_is_zero() -> None:
    assert (percent(1, 3), percent(5, 0)) == ("33.3 %", "0.0 %")


def test_count_knows_one_from_many() -> None:
    assert [count(n, "block") for n in (0, 1, 1200)] == ["0 blocks", "1 block", "1,200 blocks"]


@pytest.mark.parametrize(
    "time, unit, text",
    [
        (999, "ms", "999 ms"),
        (1000, "ms", "1.00 s"),
        (59_999, "ms", "60.00 s"),
        (60_000, "ms", "1 min 00 s"),
        (754_000, "ms", "12 min 34 s"),
        (3_600_000, "ms", "1 h 00 min"),
        (90_000_000, "ms", "25 h 00 min"),
        (999, "i", "999 i"),
        (1_500, "i", "1.50 ki"),
        (4_567_890_123, "i", "4.57 Gi"),
        (2048, "B", "2.00 KiB"),
    ],
)
def test_moment(time: int, unit: str, text: str) -> None:
    assert moment(time, unit) == text


@pytest.mark.parametrize(
    "raw, shown",
    [
        ("at::empty(long) ünïcödé 中文", "at::empty(long) ünïcödé 中文"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("a\nb\tc\r\0\x7f", "a\\x0ab\\x09c\\x0d\\x00\\x7f"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp.exe\u2066\u200b\ufeff", "\\u202egnp.exe\\u2066\\u200b\\ufeff"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\udc9b2J", "\\x9b2J"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_printable_escapes_what_acts(raw: str, shown: str) -> None:
    assert printable(raw) == shown
    assert printable(raw).isprintable()
