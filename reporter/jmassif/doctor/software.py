# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorder, the interpreter, PyTorch, and the symbols of the C library: what there is, and whether they know each other."""

import glob
import os
import re
import subprocess
import tempfile
from typing import List, NamedTuple, Sequence, Tuple

from jmassif.doctor.elf import read_elf
from jmassif.doctor.machine import Findings, Machine, fails, lost, ok

_PLATFORMS = {"x86_64": "amd64-linux", "aarch64": "arm64-linux"}
_PYTHONS = ((3, 6), (3, 15))  # whose frames the recorder reads
_SLOW_S = 120  # a small board takes some seconds


class Answer(NamedTuple):
    """Of a command that was run."""

    status: int
    output: str  # both streams


def _ask(command: Sequence[str], machine: Machine) -> Answer:
    try:
        done = subprocess.run(
            list(command),
            env=dict(machine.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SLOW_S,
        )
    except OSError as error:
        return Answer(127, f"{command[0]}: {error.strerror}")
    except subprocess.TimeoutExpired:
        return Answer(124, f"no end after {_SLOW_S} s")
    return Answer(done.returncode, done.stdout.decode("utf-8", "replace"))


def _missing(machine: Machine) -> str:
    """The first file that the recorder needs and is not there."""
    platform = _PLATFORMS.get(os.uname().machine, os.uname().machine)
    for name in (f"jmassif-{platform}", f"vgpreload_jmassif-{platform}.so", f"vgpreload_core-{platform}.so"):
        path = os.path.join(machine.tools, name)
        if not os.path.exists(path):
            return path
    return ""


def _recorder(machine: Machine) -> Tuple[List[str], Machine]:
    """The command that starts the recorder, and a machine whose environment it starts in."""
    platform = _PLATFORMS.get(os.uname().machine, "")
    environment = dict(machine.environment)
    if machine.valgrind:
        environment["VALGRIND_LIB"] = machine.tools
        start = [machine.valgrind]
    else:
        start = [os.path.join(machine.tools, f"jmassif-{platform}")]
        environment.update(JMASSIF_LIB=machine.tools, VALGRIND_LAUNCHER=start[0])
    return [*start, "--tool=jmassif"], Machine(environment=environment)


def valgrind_version(machine: Machine) -> Tuple[int, ...]:
    """(3, 27, 1); () if it does not say."""
    command, started = _recorder(machine)
    found = re.search(r"valgrind-(\d+(?:\.\d+)*)", _ask([*command, "--version"], started).output)
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()


def check_valgrind(machine: Machine) -> Findings:
    """Which it is, and that it records: a program that does nothing is run."""
    missing = _missing(machine)
    if missing:
        return fails("Valgrind", f"there is no {missing}", "install jmassif again")
    version = ".".join(map(str, valgrind_version(machine)))
    where = machine.valgrind or machine.tools
    with tempfile.TemporaryDirectory() as directory:
        command, started = _recorder(machine)
        trace = os.path.join(directory, "trace")
        answer = _ask([*command, f"--jmassif-out-file={trace}", machine.which("true") or "/bin/true"], started)
        if answer.status or not os.path.exists(trace):
            lines = [line for line in re.sub(r"(?m)^==\d+== ?", "", answer.output).splitlines() if line.strip()]
            said = lines[-1].strip() if lines else f"status {answer.status}"
            return fails("Valgrind", f"{version or 'of no known release'}, {where}, does not record a program: {said}")
    return ok("Valgrind", f"{version}, {where}")


# What the interpreter says of itself, a line each. Torch is found, not imported, which takes seconds.
_INTERVIEW = """
import sys, importlib.util
print("%d.%d.%d" % sys.version_info[:3])
print(sys.implementation.name)
print(sys.executable)
found = importlib.util.find_spec("torch")
print(found.origin if found and found.origin else "")
"""


def check_python(machine: Machine) -> Findings:
    """The interpreter that is profiled, and PyTorch in it."""
    if not machine.python:
        return ok("Python", "there is none; programs that need none are recorded, and read elsewhere")
    answer = _ask([machine.python, "-c", _INTERVIEW], machine)
    lines = answer.output.splitlines()
    if answer.status or len(lines) < 4:
        said = lines[-1] if lines else f"status {answer.status}"
        return fails("Python", f"{machine.python} does not run: {said}")
    version, name, executable, torch = lines[-4:]
    found = _interpreter(version, name, executable)
    if torch:
        found += _torch(machine, os.path.dirname(torch))
    return found


def _interpreter(version: str, name: str, executable: str) -> Findings:
    here, other = os.uname().machine, read_elf(os.path.realpath(executable)).machine
    text = f"{version}, {executable}"
    if other and other != here:
        return fails("Python", f"{text}, is for {other}, and the recorder for {here}", f"a Python for {here}")
    number = tuple(int(part) for part in version.split(".")[:2])
    if name != "cpython" or not _PYTHONS[0] <= number <= _PYTHONS[1]:
        known = " to ".join(".".join(map(str, each)) for each in _PYTHONS)
        return lost("Python", f"{text}: no lines of Python in stacks, which are read of CPython {known}")
    return ok("Python", text)


def _torch(machine: Machine, package: str) -> Findings:
    """Its version, and whether its allocator reports by a function that is wrapped."""
    version = ""
    try:
        with open(os.path.join(package, "version.py"), encoding="utf-8", errors="replace") as stream:
            found = re.search(r"^__version__ *(?::.*)?= *['\"]([^'\"]+)", stream.read(), re.MULTILINE)
            version = found.group(1) if found else ""
    except OSError:
        pass
    text = f"{version or 'of no known version'}, {package}"
    libraries = glob.glob(os.path.join(package, "lib", "libc10.so")) + glob.glob("/usr/lib/*/libc10.so*")
    if not libraries:
        return lost("PyTorch", f"{text}: there is no libc10.so, so tensors inside its cache are not told apart")
    wrapped = _wrapped_of_c10(machine)
    with open(os.path.realpath(libraries[0]), "rb") as library:
        content = library.read()
    if wrapped and not any(name + b"\0" in content for name in wrapped):
        return lost("PyTorch", f"{text}: its allocator reports in a way that is not known: tensors count as its cache")
    return ok("PyTorch", text)


def _wrapped_of_c10(machine: Machine) -> List[bytes]:
    """The functions of libc10 that the preload library wraps, by the names of its wrappers."""
    for path in glob.glob(os.path.join(machine.tools, "vgpreload_jmassif-*.so")):
        with open(path, "rb") as stream:
            return re.findall(rb"_vgw\d+ZU_libc10Za_(_ZN3c10\w*reportMemory\w+)", stream.read())
    return []


def check_debug_information(machine: Machine) -> Findings:
    """The function of the dynamic loader that is wrapped for dlopen has a symbol only in the C library's debug package."""
    interpreter = read_elf(os.path.realpath(machine.python or "/bin/true")).interpreter
    if not interpreter:
        return []
    loader = read_elf(os.path.realpath(interpreter))
    separate = f"/usr/lib/debug/.build-id/{loader.build_id[:2]}/{loader.build_id[2:]}.debug"
    by_name = "/usr/lib/debug" + os.path.realpath(interpreter)
    if loader.has_symbols or machine.exists(separate) or machine.exists(by_name):
        return ok("dlopen", "the dynamic loader's symbols are here")
    text = "the dynamic loader has no symbols here: what dlopen of a library cost has no row of its own"
    return lost("dlopen", text, "sudo apt install libc6-dbg")
