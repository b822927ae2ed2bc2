# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""usage: several.py SCRIPT… (runs each in turn: an interpreter takes long to start where it is emulated)"""

import runpy
import sys

for script in sys.argv[1:]:
    runpy.run_path(script, run_name="__main__")
