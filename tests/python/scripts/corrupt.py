# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Allocates natively while one word of what the interpreter keeps is wrong, for each word that tells of frames."""

import ctypes
import os
import sys

from witness import here

native = ctypes.PyDLL(os.environ["WITNESS_LIBRARY"])
ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p


def word_at(address):
    return ctypes.c_size_t.from_address(address).value


def inner():
    frame = sys._getframe()
    code = frame.f_code
    state = ctypes.pythonapi.PyThreadState_Get()
    runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    # Where things start, and how many words there are of interest.
    places = [
        (runtime, 120),
        (word_at(state + 16), 10),  # the interpreter
        (state, 48),
        (id(frame), 16),
        (id(code), 26),
        # Their headers: what a string holds never changes.
        (id(code.co_filename), 5),
        (id(code.co_name), 5),
        (id(code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab), 4),
    ]
    if sys.version_info >= (3, 11):
        places.append((word_at(id(frame) + 24), 10))  # the frame proper
    for start, n_words in places:
        for address in range(start, start + 8 * n_words, 8):
            # Nothing, no address, absurd sizes, an address outside of user space, one in the zero page, circles.
            for wrong in (0, 1, 2**63 - 1, 2**64 - 1, 2**48, 4096, address, start):
                native.allocate_while_wrong(ctypes.c_void_p(address), ctypes.c_size_t(wrong), ctypes.c_size_t(1000))
    return bytearray(here())


def outer():
    return inner()


held = outer()
