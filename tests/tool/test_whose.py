# SPDX-License-Identifier: GPL-2.0-or-later
"""Whose memory it is, as a person would say it: programs that tell themselves what they hold, and a table that says whose.

A program prints how many bytes each of its functions has made that it still holds; WHOSE says which owner they must have.
"""

import json
from pathlib import Path
from typing import Dict, NamedTuple, Sequence

import pytest

from jmassif.model.run import Profile
from tests.harness import PYTHON, Argument, Recording, compile_c, need_module, record
from tests.tool.programs import functions, library, linked_to

SCRIPTS = Path(__file__).parent / "programs" / "whose"
CORRECT = 0.99  # of the bytes that a program says it holds


class Script(NamedTuple):
    """Owners by function; those of `child` are made in a process that it forks."""

    owner: Dict[str, str]
    child: Dict[str, str] = {}
    needs: str = "json"  # a module


WHOSE = {
    "arrays.py": Script({"fresh": "data", "copies": "data"}, needs="numpy"),
    "raw.py": Script({"made": "data", "joined": "data", "grown": "data", "read": "data"}),
    "integers.py": Script({"numbers": "data"}),
    "words.py": Script({"words": "data"}),
    "slots.py": Script({"points": "data", "notes": "data"}),
    "parsed.py": Script({"text": "data", "parsed": "data"}),
    "table.py": Script({"table": "data", "sums": "data"}, needs="pandas"),
    "image.py": Script({"drawn": "data", "smaller": "data", "as_array": "data"}, needs="PIL"),
    "tensors.py": Script({"weights": "tensor", "samples": "data"}, {"sample": "data"}, "torch"),
    "forked.py": Script({"parents": "data"}, {"childs": "data"}, "numpy"),
    "modules.py": Script({"table": "data", "found": "data"}, needs="numpy"),
    "threads.py": Script({"worker": "data", "task": "data"}, needs="numpy"),
}


def held_at_end(profile: Profile, function: str) -> Dict[str, int]:
    """By owner: the bytes that a function, or what it called, had made when the interpreter began to end.

    Without an interpreter that ends (a loader's worker leaves by _exit) what it had at last. Not at its peak: when pages are
    sampled, that may be the moment of the fork, for a child does not have its parent's pages of files.
    """
    reasons = [snapshot.reason for snapshot in profile.snapshots]
    composition = profile.composition(reasons.index("end") if "end" in reasons else len(reasons) - 1)
    held: Dict[str, int] = {}
    for account, (n_bytes, _) in composition.items():
        node, _, owner = profile.accounts[account]
        if function in functions(profile, node):
            held[owner] = held.get(owner, 0) + n_bytes
    return held


def forked(recording: Recording) -> Profile:
    (child,) = [profile for profile in map(recording.load, recording.traces) if "forked-from" in profile.manifest]
    return child


def first(recording: Recording) -> Profile:
    (parent,) = [profile for profile in map(recording.load, recording.traces) if "forked-from" not in profile.manifest]
    return parent


def correct_share(profile: Profile, said: Dict[str, int], whose: Dict[str, str]) -> float:
    """Of the bytes that the program says it holds, those that have the owner that they must have."""
    assert set(said) == set(whose) and min(said.values()) > 1 << 20
    correct = sum(
        min(n_bytes, held_at_end(profile, function).get(whose[function], 0)) for function, n_bytes in said.items()
    )
    return correct / sum(said.values())


@pytest.mark.parametrize("name", list(WHOSE))
def test_what_a_scripts_lines_make_is_its_own(name: str, tmp_path: Path) -> None:
    script = WHOSE[name]
    need_module(script.needs)
    of_child = tmp_path / "child"
    recording = record(
        [PYTHON, SCRIPTS / name, of_child], ["--pages=yes"], {"OMP_NUM_THREADS": "1"}, timeout=300, status=0
    )
    assert correct_share(first(recording), json.loads(recording.stdout), script.owner) >= CORRECT
    if script.child:
        assert correct_share(forked(recording), json.loads(of_child.read_text()), script.child) >= CORRECT


SOURCE = """
import json, numpy
def arrays(): return numpy.ones(1 << 20)
array = arrays()
buffer = bytearray(8 << 20)
print(json.dumps({"arrays": array.nbytes, "<module>": len(buffer) + array.nbytes}))
"""


def installed(directory: Path, text: str) -> Path:
    """A program that lies where packages do."""
    (directory / "site-packages").mkdir()
    file = directory / "site-packages" / "program.py"
    file.write_text(text)
    return file


# What an installed shell does with what is typed into it.
SHELL = "exec(compile({text!r}, '<ipython-input-3-0a1b>', 'exec'), {{'__name__': '__main__'}})"


@pytest.mark.parametrize("how", ["-c", "a file", "standard input", "a cell"])
def test_code_without_a_file_is_its_own(how: str, tmp_path: Path) -> None:
    file = tmp_path / "code"
    file.write_text(SOURCE)
    command: Sequence[Argument] = [PYTHON, "-c", SOURCE] if how == "-c" else [PYTHON, file]
    if how == "standard input":
        command = ["sh", "-c", f"exec {PYTHON} <{file}"]
    if how == "a cell":
        command = [PYTHON, installed(tmp_path, SHELL.format(text=SOURCE))]
    recording = record(command, ["--pages=yes", "--trace-children=yes"], status=0)
    (profile,) = [profile for profile in map(recording.load, recording.traces) if profile.end]
    assert correct_share(profile, json.loads(recording.stdout), {"arrays": "data", "<module>": "data"}) >= CORRECT


def test_what_an_installed_program_makes_is_not_yours(tmp_path: Path) -> None:
    recording = record([PYTHON, installed(tmp_path, SOURCE)])
    held = held_at_end(recording.profile, "<module>")
    assert held["package"] >= 8 << 20 and held["python"] >= 8 << 20 and "data" not in held


def test_what_an_import_leaves_is_the_libraries(tmp_path: Path) -> None:
    for name in ("eager", "late", "dlopened"):
        (tmp_path / f"{name}.py").write_text(IMPORTS[name])
    for name in IMPORTS:
        recording = record([PYTHON, tmp_path / f"{name}.py"], ["--pages=yes"], status=0)
        held = held_at_end(recording.profile, "loads")
        assert sum(held.values()) > 1 << 20 and held.get("data", 0) < 0.01 * sum(held.values()), (name, held)


IMPORTS = {
    "eager": "def loads():\n    import numpy\nloads()\n",
    # A module of the library that imports another one when a function of it is called.
    "late": "import importlib\ndef loads():\n    importlib.import_module('numpy').ones(3)\nloads()\n",
    "dlopened": "import ctypes\ndef loads():\n    ctypes.CDLL('libcrypto.so.3')\nloads()\n",
}

BROUGHT = """
#include <stdlib.h>
#include <string.h>
static char *kept;
__attribute__((constructor)) static void keeps(void) { kept = malloc(3 << 20); memset(kept, 1, 3 << 20); }
"""
# That it is no module of Python's is found out when it is loaded, and it stays.
IMPORTS_IT = """
def loads():
    try:
        import extension
    except ImportError:
        pass
loads()
"""
LOADS_IT = "import ctypes\ndef loads():\n    ctypes.CDLL('{0}/libbrought.so.1')\nloads()\n"


def test_a_library_that_an_import_brings_is_the_packages(tmp_path: Path) -> None:
    brought = library(BROUGHT, "libbrought.so.1", "-fno-builtin")
    extension = compile_c("int unused;", "-shared", "-fpic", "-Wl,--no-as-needed", *linked_to(brought))
    (tmp_path / "extension.so").symlink_to(extension)
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "package.py").write_text(LOADS_IT.format(brought.parent))
    scripts = {
        "imports": (IMPORTS_IT, "package"),
        "imports what loads": ("import package", "package"),
        "loads": (LOADS_IT.format(brought.parent), "lib"),
    }
    for name, (text, owner) in scripts.items():
        (tmp_path / "script.py").write_text(text)
        recording = record(
            [PYTHON, tmp_path / "script.py"], env={"PYTHONPATH": str(tmp_path / "site-packages")}, status=0
        )
        held = held_at_end(recording.profile, "keeps")
        assert {whose: n_bytes for whose, n_bytes in held.items() if n_bytes >= 3 << 20}.keys() == {owner}, name


LIBRARY = """
#include <stdlib.h>
char *table(size_t n) { char *p = malloc(n); p[0] = 1; return p; }
"""
MAIN = """
#include <stdlib.h>
char *table(size_t);
static char *own(size_t n) { char *p = malloc(n); p[0] = 1; return p; }
int main(void)
{
    char *all[] = {own(5 << 20), table(3 << 20)};
    return all[0][0] + all[1][0] != 2;
}
"""
CPLUSPLUS = """
#include <map>
#include <string>
#include <unistd.h>
#include <vector>
static std::map<int, std::string> words() {
    std::map<int, std::string> made;
    for (int i = 0; i < 20000; i++) made[i] = std::string(100, 'x');
    return made;
}
static std::vector<double> numbers() { return std::vector<double>(1 << 18, 1.0); }
int main() {
    auto kept = words();
    auto also = numbers();
    _exit(kept.size() + also.size() == 0); // nothing is destroyed
}
"""


def test_a_program_without_python_has_no_data() -> None:
    lib = library(LIBRARY, "libtable.so.1", "-fno-builtin")
    c = record([compile_c(MAIN, "-fno-builtin", *linked_to(lib))]).profile
    assert correct_share(c, {"own": 5 << 20, "table": 3 << 20}, {"own": "app", "table": "lib"}) >= CORRECT
    cplusplus = record([compile_c(CPLUSPLUS, suffix=".cc")]).profile
    # A string of 100 characters and its end; a node of the map is a colour, three pointers and the pair.
    said = {"words()": 20000 * (101 + 32 + 40), "numbers()": 8 << 18}
    assert correct_share(cplusplus, said, {"words()": "app", "numbers()": "app"}) >= CORRECT
    assert not any(account.owner == "data" for profile in (c, cplusplus) for account in profile.accounts)
