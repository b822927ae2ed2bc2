# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Allocations while functions are being left: handlers, destructors, context managers."""

import contextlib
import gc
import weakref

from witness import here

held = []


def allocate():
    held.append(bytearray(here()))


class Dying:
    def __del__(self):
        allocate()


class Context:
    def __enter__(self):
        allocate()
        return self

    def __exit__(self, *exception):
        allocate()
        return True


def leave_with_local():
    dying = Dying()
    return 1


def leave_inner():
    leave_with_local()
    return (
        leave_with_local(),
        leave_with_local(),
    )


def leave_by_exception():
    dying = Dying()
    raise ValueError


def by_finally():
    try:
        return 1
    finally:
        allocate()


def by_handlers():
    try:
        leave_by_exception()
    except ValueError:
        allocate()
    try:
        try:
            leave_by_exception()
        finally:
            allocate()
    except ValueError:
        pass


def by_context():
    with Context(), Context():
        raise KeyError
    with contextlib.ExitStack() as stack:
        stack.callback(allocate)
        stack.enter_context(Context())
    with contextlib.suppress(KeyError):
        with Context():
            return 1


def by_reference():
    dying = [Dying()]
    dying.clear()
    dying = Dying()
    dying = None
    cycle = []
    cycle.append((cycle, Dying()))
    del cycle
    gc.collect()
    target = Context()
    reference = weakref.ref(target, lambda _: allocate())
    del target


def generator():
    dying = Dying()
    yield 1
    yield 2


leave_inner()
list(map(lambda _: leave_with_local(), range(2)))
by_finally()
by_handlers()
by_context()
by_reference()
for _ in generator():
    pass
next(generator())
leave_with_local()
