# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Imports: the modules allocate while the frozen import machinery runs them."""

import importlib
import os
import sys
import tempfile

CODE = """import witness

held = [bytearray(witness.here())]


def {function}():
    held.append(
        bytearray(witness.here()))


{function}()
"""

# ASCII, Latin-1, the Basic Multilingual Plane, beyond it; a package; a name that a buffer of 512 bytes would cut.
NAMES = [
    "plain",
    "d\u00e9j\u00e0",
    "\u043c\u043e\u0434\u0443\u043b\u044c",
    "\u6a21\u584a",
    "\U00020000\U00020001",
    "package",
]

with tempfile.TemporaryDirectory() as directory:
    long_directory = os.path.join(directory, *["long" * 50] * 4)
    not_utf8 = os.path.join(os.fsencode(directory), b"\xff\xfe")
    for made in (long_directory, os.path.join(directory, "package"), os.fsdecode(not_utf8)):
        os.makedirs(made)
    sys.path.insert(0, directory)
    for name in NAMES:
        path = os.path.join(name, "__init__") if name == "package" else name
        with open(os.path.join(directory, path + ".py"), "w", encoding="utf-8") as file:
            file.write(CODE.format(function="f_" + name))
    for far in (long_directory, os.fsdecode(not_utf8)):
        with open(os.path.join(far, "far.py"), "w") as file:
            file.write(CODE.format(function="far"))
    importlib.invalidate_caches()
    for name in NAMES:
        importlib.import_module(name)
    import package as again

    for far in (long_directory, os.fsdecode(not_utf8)):
        sys.path.insert(0, far)
        sys.modules.pop("far", None)
        importlib.invalidate_caches()
        import far

        sys.path.pop(0)
    importlib.reload(again)
