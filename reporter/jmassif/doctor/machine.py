# SPDX-License-Identifier: GPL-2.0-or-later
"""What the checks ask: the files of a machine, an environment, and how the recorder would be started. And what they answer.

The files may lie below another directory than / : in a container the board's own do, and in tests a machine is made of files.
"""

import os
import shutil
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

OK, LOST, FAILS = "ok", "lost", "FAILS"


class Finding(NamedTuple):
    """What one check has found."""

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
    """Where the checks look."""

    def __init__(
        self,
        root: str = "",
        tools: str = "",
        valgrind: str = "",
        program: Sequence[str] = (),
        environment: Optional[Mapping[str, str]] = None,
    ) -> None:
        """`tools` is the directory of the recorder; `valgrind` starts it, or it starts by itself. `program` will be recorded."""
        self.root = root
        self.tools = tools
        self.valgrind = valgrind
        self.program = list(program)
        self.environment: Mapping[str, str] = os.environ if environment is None else environment

    # ---- files ---------------------------------------------------------------------------------------

    def path(self, path: str) -> str:
        return self.root + path

    def text(self, path: str) -> str:
        """Of a small file; "" where it is not, or may not be read."""
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
        """What the kernel says to who opens the file, if it does not open."""
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
