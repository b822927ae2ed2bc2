# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""What runs when classes are made and used."""

import collections
import functools

from witness import here

held = []


def allocate():
    held.append(bytearray(here()))


class Meta(type):
    def __new__(mcs, name, bases, namespace):
        allocate()
        return super().__new__(mcs, name, bases, namespace)

    def __call__(cls, *arguments):
        allocate()
        return super().__call__(*arguments)


class Named:
    def __set_name__(self, owner, name):
        allocate()

    def __get__(self, instance, owner):
        allocate()
        return 1


class Base:
    held.append(bytearray(here()))  # in the body

    class Inner:
        held.append(bytearray(here()))

    def __init_subclass__(cls, **keywords):
        allocate()

    def __init__(self, n):
        self.n = n
        if n % 100 == 99:
            allocate()


class Derived(Base):
    descriptor = Named()

    def __new__(cls, n):
        if n % 100 == 99:
            allocate()
        return super().__new__(cls)

    def __init__(self, n):
        super().__init__(n)

    @property
    def value(self):
        allocate()
        return 1

    @value.setter
    def value(self, value):
        allocate()

    @functools.lru_cache(maxsize=None)
    def cached(self):
        allocate()

    def __getattr__(self, name):
        allocate()
        return name

    def __add__(self, other):
        allocate()
        return other

    def __contains__(self, item):
        allocate()
        return True

    def __getitem__(self, item):
        allocate()
        return item

    def __bool__(self):
        allocate()
        return True

    def __repr__(self):
        allocate()
        return ""


class Made(metaclass=Meta):
    pass


for i in range(200):  # the calls are specialised after the first few
    derived = Derived(i)
    base = Base(i)
derived.value
derived.value = 1
derived.cached()
derived.cached()
derived.missing
derived.descriptor
derived + 1
1 in derived
derived[1]
if derived:
    f"{derived!r}"
Made()
Point = collections.namedtuple("Point", "x y")
collections.defaultdict(lambda: bytearray(here()))["key"]


def many_times(class_):
    for i in range(200):
        class_(i)


many_times(Base)
many_times(Derived)
