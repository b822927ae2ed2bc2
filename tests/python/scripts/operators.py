# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Operators that compilers think rare: they may lie in another part of the evaluation loop than the rest."""

from witness import here

held = []


class Operand:
    pass


def allocate(*operands):
    held.append(bytearray(here()))
    return Operand()


for name in "pos neg invert".split() + "add sub mul matmul truediv floordiv mod pow lshift rshift and xor or".split():
    setattr(Operand, f"__{name}__", allocate)
    setattr(Operand, f"__i{name}__", allocate)


def apply():
    a = b = Operand()
    +a, -a, ~a
    a + b, a - b, a * b, a @ b, a / b, a // b, a % b, a**b, a << b, a >> b, a & b, a ^ b, a | b
    a += b
    a -= b
    a *= b
    a @= b
    a /= b
    a //= b
    a %= b
    a **= b
    a <<= b
    a >>= b
    a &= b
    a ^= b
    a |= b


apply()
