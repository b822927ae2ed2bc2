# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Code of files that goes and makes room for other code: at the same address, of the same shape, and all that it
points to where that of the code before it was."""

import _thread

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


def function():
    return bytearray(witness.here())


def run_as(renamed, name):
    """With a code object that is gone afterwards."""
    code = renamed.__code__
    names = {"co_name": name, "co_qualname": name} if hasattr(code, "co_qualname") else {"co_name": name}
    renamed.__code__ = code.replace(**names)
    held.append([bytes(100000 + i) for i in range(10)])
    return code


# By another thread than the one that runs it, whose own last stack had the code before.
if hasattr(function.__code__, "replace"):  # 3.8
    box, go, done = [function], _thread.allocate_lock(), _thread.allocate_lock()
    go.acquire()
    done.acquire()

    def worker(box=box, go=go.acquire, done=done.release, held=held):
        while True:
            go()
            held.append(box[0]())
            done()

    _thread.start_new_thread(worker, ())
    for letter in "abcdefghij":
        before = run_as(function, letter + "_name_that_ends_like_the_others")
        go.release()
        done.acquire()
        function.__code__ = before

# Names that differ neither in their ends nor in their beginnings, and whose places differ by what they differ in.
if hasattr(function.__code__, "replace"):
    names = [f"generate{digit}_layer" for digit in "01234567" for _ in range(40)]
    pairs = [(a, b) for a in names for b in names if a != b and id(a) ^ id(b) == (ord(a[8]) ^ ord(b[8])) << 8]
    for name in [name for pair in pairs[:10] for name in pair]:
        before = run_as(function, name)
        held.append(function())
        function.__code__ = before
