# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Functions in all the ways they are called."""

import functools

from witness import here

held = []


def plain(n):
    held.append(bytearray(here()))
    return n


def outer():
    def inner():
        def innermost(*numbers, key, **others):
            return plain(sum(numbers))

        return innermost(1, *[2, 3], key=4, **{"other": 5})

    return inner()


class Class:
    def method(self):
        return plain(1)

    @classmethod
    def of_class(cls):
        return cls().method()

    @staticmethod
    def static():
        return Class.of_class()

    class Inner:
        def __call__(self, *arguments):
            return Class.static()


def with_default(n=plain(0)):
    return n


held.append(bytearray(here()))
plain(1)
outer()
Class.Inner()(1, 2)
(lambda: (lambda n: plain(n))(3))()
functools.partial(plain, 4)()
Class.method(Class())
for _ in range(100):  # specialised
    with_default(_)
plain(2)
plain(3) if held else None
assert plain(4) == 4
