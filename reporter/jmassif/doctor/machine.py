# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine that the checks inspect, and its kernel."""

import os
import shutil
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence


# ---- machine ----
# A machine is files, an environment, and the way to start the recorder.
#
# The files may lie below another directory than / : in a container the board's own do, and in tests a machine is made of files.

OK, LOST, FAILS = "ok", "lost", "FAILS"


class Finding(NamedTuple):
    """The result of one check."""

    name: str
    state: str  # OK; LOST: it works without what the text says; FAILS: it cannot work
    text: str
    mend: str = ""  # a command or a variable; several are separated by "; "


Findings = List[Finding]


def ok(name: str, text: str) -> Findings:
    return [Finding(name, OK, text)]


def lost(name: str, text: str, mend: str = "") -> Findings:
    return [Finding(name, LOST, text, mend)]


def fails(name: str, text: str, mend: str = "") -> Findings:
    return [Finding(name, FAILS, text, mend)]


class Machine:
    """Files, environment and program."""

    def __init__(
        self,
        root: str = "",
        tools: str = "",
        valgrind: str = "",
        program: Sequence[str] = (),
        environment: Optional[Mapping[str, str]] = None,
        trace: str = "",
    ) -> None:
        """`tools` is the directory of the recorder; `valgrind` starts it, or it starts by itself. `program` will be recorded
        in the file `trace`, as --jmassif-out-file has it; "": in the current directory."""
        self.root = root
        self.tools = tools
        self.valgrind = valgrind
        self.program = list(program)
        self.trace = trace
        self.environment: Mapping[str, str] = os.environ if environment is None else environment

    # ---- files ---------------------------------------------------------------------------------------

    def path(self, path: str) -> str:
        return self.root + path

    def text(self, path: str) -> str:
        """The text of a small file; "" if it cannot be read."""
        try:
            with open(self.path(path), encoding="utf-8", errors="replace") as stream:
                return stream.read()
        except OSError:
            return ""

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.path(path))

    def names(self, directory: str) -> List[str]:
        try:
            return sorted(os.listdir(self.path(directory)))
        except OSError:
            return []

    def may_use(self, path: str) -> bool:
        return os.access(self.path(path), os.R_OK | os.W_OK)

    def refusal(self, path: str) -> Optional[OSError]:
        """The kernel's error if the file cannot be opened."""
        try:
            os.close(os.open(self.path(path), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        except OSError as error:
            return error
        return None

    def labelled_bytes(self, path: str) -> Dict[str, int]:
        """Lines such as "MemFree:  123 kB" of a file of the kernel's, in bytes."""
        found = {}
        for line in self.text(path).splitlines():
            label, _, rest = line.partition(":")
            words = rest.split()
            if len(words) == 2 and words[1] == "kB" and words[0].isdigit():
                found[label] = int(words[0]) * 1024
        return found

    # ---- the program -----------------------------------------------------------------------------------

    @property
    def python(self) -> str:
        """The interpreter that the program is run by, else the first on the path; "" for none."""
        if self.program and os.path.basename(self.program[0]).startswith("python"):
            return self.which(self.program[0])
        return self.which("python3")

    def which(self, name: str) -> str:
        return shutil.which(name, path=self.environment.get("PATH")) or ""

    @property
    def script(self) -> str:
        """The text of the script that the program is; "" where it is none. Options of Python's with a value are not known."""
        if self.program and os.path.basename(self.program[0]).startswith("python"):
            for argument in self.program[1:]:
                if argument.endswith(".py"):
                    return _script(argument)
                if argument in ("-c", "-m"):
                    break
        return ""


def _script(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(1 << 20)
    except OSError:
        return ""


# ---- kernel ----
# Permissions that the kernel gives the recorder.


def check_kernel(machine: Machine) -> Findings:
    """The release, and the files that pages are read from."""
    release = machine.text("/proc/sys/kernel/osrelease").strip() or os.uname().release
    if not machine.text("/proc/self/smaps"):
        text = f"Linux {release}; /proc/self/smaps cannot be read: pages of libraries, mappings and stacks are not recorded"
        return lost("kernel", text, "mount -t proc proc /proc")
    return ok("kernel", f"Linux {release}")


def _ptrace_error() -> str:
    """The kernel's answer to a child that asks to be traced; "" if it may be."""
    child = os.fork()
    if not child:
        error = -1
        try:
            import ctypes

            libc = ctypes.CDLL(None, use_errno=True)
            error = ctypes.get_errno() if libc.ptrace(0, 0, None, None) < 0 else 0  # PTRACE_TRACEME
        finally:
            os._exit(error & 0xFF)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return os.strerror(os.WEXITSTATUS(status)) if os.WEXITSTATUS(status) else ""


def check_ptrace(machine: Machine) -> Findings:
    """Only vgdb traces a process; the recorder does not."""
    reason = "vgdb cannot query a program that sleeps in the kernel; recording needs no ptrace"
    scope = machine.text("/proc/sys/kernel/yama/ptrace_scope").strip()
    if scope in ("2", "3"):
        mend = "sudo sysctl kernel.yama.ptrace_scope=1" if scope == "2" else ""
        return lost("ptrace", f"kernel.yama.ptrace_scope is {scope}: {reason}", mend)
    error = _ptrace_error()
    if error:
        mend = "in a container: start it with --cap-add=SYS_PTRACE"
        return lost("ptrace", f"denied ({error}), by a seccomp filter or a debugger: {reason}", mend)
    return ok("ptrace", "allowed")


def check_seccomp(machine: Machine) -> Findings:
    """A filter of a container's stays on what the program and Valgrind ask of the kernel."""
    for line in machine.text("/proc/self/status").splitlines():
        if line.startswith("Seccomp:") and line.split()[1:] == ["2"]:
            text = "a filter is on, as in a container: what it forbids shows as errors of the program's"
            return ok("seccomp", text)
    return ok("seccomp", "no filter")
