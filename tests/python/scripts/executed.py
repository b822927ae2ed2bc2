# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Code that is made at run time."""

import runpy
import tempfile

from witness import here

held = []

exec("held.append(bytearray(here()))")
exec("\n\nheld.append(\n  bytearray(here()))\ndef f():\n  held.append(bytearray(here()))\nf()")
eval("held.append(bytearray(here()))")
eval("(lambda: held.append(bytearray(here())))()")
exec(compile("\n\nheld.append(bytearray(here()))", "some file", "exec"))
exec(compile("held.append(bytearray(here()))", "<module>", "exec"))
exec(compile("def f():\n held.append(bytearray(here()))\nf()", "f", "exec"))
exec(compile("def __init__():\n held.append(bytearray(here()))\n__init__()", "__init__", "exec"))
exec(compile("held.append(bytearray(here()))", "", "exec"))

# Each piece's code object, names and table may lie where those of the piece before it were.
for i in range(30):
    exec(compile("\n" * (i % 3) + "held.append(bytearray(here()))", f"<piece {i:2}>", "exec"))
for i in range(30):
    namespace = {"held": held, "here": here}
    exec(f"def piece_{i:02}(): held.append(bytearray(here()))\npiece_{i:02}()", namespace)
    del namespace
for i in range(30):
    exec("\n" * i + "held.append(bytearray(here()))")

with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
    file.write("import witness\n\nheld = bytearray(witness.here())\n")
    file.flush()
    runpy.run_path(file.name)
