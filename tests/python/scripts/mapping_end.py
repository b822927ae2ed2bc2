# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Allocates natively while a frame's code, and what that names, seem to lie where a mapping ends, at every length."""

import ctypes
import mmap
import os
import sys

from witness import here

native = ctypes.PyDLL(os.environ["WITNESS_LIBRARY"])
libc = ctypes.CDLL(None)
PAGE = mmap.PAGESIZE

pages = mmap.mmap(-1, 2 * PAGE)
start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
libc.mprotect(ctypes.c_void_p(start + PAGE), ctypes.c_size_t(PAGE), 0)


def word_at(address):
    return ctypes.c_size_t.from_address(address).value


def places_of(wanted, holder, n_words):
    """The addresses of the words of an object that point to another one."""
    return [at for at in range(holder, holder + 8 * n_words, 8) if word_at(at) == wanted]


def inner():
    frame = sys._getframe()
    code = frame.f_code
    lines = code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab
    holder = word_at(id(frame) + 24) if sys.version_info >= (3, 11) else id(frame)
    places = [(id(code), at) for at in places_of(id(code), holder, 10)[:1]]
    assert places
    for part in (code.co_filename, code.co_name, lines):
        places += [(id(part), at) for at in places_of(id(part), id(code), 26)]
    for shown, place in places:
        for n_bytes in range(8, 208, 8):
            end_of_page = start + PAGE
            ctypes.memmove(end_of_page - n_bytes, shown, n_bytes)
            native.allocate_while_wrong(
                ctypes.c_void_p(place), ctypes.c_size_t(end_of_page - n_bytes), ctypes.c_size_t(1000)
            )
    return bytearray(here())


def outer():
    return inner()


held = outer()
