# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Code of files that goes and makes room for other code: at the same address, of the same shape, and all that it
points to where that of the code before it was."""

import witness

CODE = """def {name}():
    held = 1
{blank_lines}    return held, bytearray(here())
"""

held = []


def run(file, name, blank_lines):
    source = CODE.format(name=name, blank_lines="\n" * blank_lines)
    scope = {"here": witness.here}
    exec(compile(source, file, "exec"), scope)
    held.append(scope[name]())
    place = id(scope[name].__code__)
    scope.clear()  # its functions hold it, and it them
    return place


def run_each(*variations):
    """At least a half of them in the place of an earlier one."""
    places = [run(*variation) for variation in variations]
    assert len(set(places)) <= len(places) / 2, places


def in_turn(make):
    return [make(i) for i in range(10)]


run_each(*in_turn(lambda i: (f"/removed/file{i}.py", "function", 5)))
run_each(*in_turn(lambda i: ("/removed/file.py", f"function{i}", 5)))
run_each(*in_turn(lambda i: ("/removed/file.py", "function", 5 + i)))
