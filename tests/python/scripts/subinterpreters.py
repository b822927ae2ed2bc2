# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""An interpreter inside another one: both run on one native stack, and each shows its own frames only."""

import sys

from witness import STEP, here, stack_of

try:
    import _interpreters as interpreters  # 3.13 on
except ImportError:
    import _xxsubinterpreters as interpreters

CODE = """
import sys
sys.path.insert(0, {path!r})
from witness import STEP, here

def inner(sizes=iter(range({size}, {size} + 10 * STEP, STEP))):
    return bytearray(here({outer!r}, sizes))

held = [inner(), inner()]
"""
# _ctypes of 3.12 loads only into interpreters that share their state.
OPTIONS = {"isolated": False} if sys.version_info[:2] == (3, 12) else {}


def run(n):
    interpreter = interpreters.create(**OPTIONS)
    outer = stack_of(sys._getframe())
    outer[0] = (*outer[0][:2], outer[0][2] + 2)
    interpreters.run_string(interpreter, CODE.format(path=sys.path[0], size=n, outer=outer))
    interpreters.destroy(interpreter)


held = [bytearray(here())]
run(10000 * STEP)
run(20000 * STEP)
held.append(bytearray(here()))
