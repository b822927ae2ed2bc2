# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Allocations while the interpreter shuts down."""

import atexit
import sys
import threading
import time
import weakref

from witness import here

held = []


class Dying:
    # Globals may be gone by then.
    def __del__(self, held=held, here=here):
        held.append(bytearray(here()))


def allocate():
    held.append(bytearray(here()))


def outlive():
    while True:
        time.sleep(0.01)


at_module_level = Dying()
finalised = Dying()
weakref.finalize(finalised, allocate)
sys.dying = Dying()
atexit.register(allocate)
atexit.register(lambda: allocate())
threading.Thread(target=outlive, daemon=True).start()
thread = threading.Thread(target=lambda: (time.sleep(0.2), allocate()))
thread.start()  # the main thread waits for it at its end
sys.exit(0)
