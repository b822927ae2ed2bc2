# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Generators resumed by Python and by native code, and delegating to each other."""

import contextlib
import itertools

from witness import here

held = []


def numbers(n):
    for i in range(n):
        held.append(bytearray(here()))
        yield i


def delegating(n):
    held.append(bytearray(here()))
    got = yield from numbers(n)
    held.append(bytearray(here()))
    return got


def twice(n):
    yield from delegating(n)
    yield from delegating(n)


def echo():
    got = None
    while True:
        try:
            got = yield got
            held.append(bytearray(here()))
        except ValueError:
            held.append(bytearray(here()))
        finally:
            held.append(bytearray(here()))


@contextlib.contextmanager
def context():
    held.append(bytearray(here()))
    yield
    held.append(bytearray(here()))


def consume():
    for _ in twice(2):
        held.append(bytearray(here()))
    list(twice(1))  # resumed by native code
    next(numbers(1))
    sum(itertools.islice(itertools.chain(numbers(2), numbers(1)), 3))
    [*numbers(1)]
    first, *rest = numbers(2)


def talk():
    generator = echo()
    next(generator)
    generator.send(1)
    generator.throw(ValueError())
    generator.close()


consume()
talk()
sum(len(bytearray(here())) for _ in range(2))
max(x for x in (len(bytearray(here())) for _ in range(2)))
with context():
    held.append(bytearray(here()))
abandoned = echo()
next(abandoned)
del abandoned  # runs its finally
