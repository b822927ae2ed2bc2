# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the command that records a program: jmassif or, where that is not installed, Valgrind with the tool."""

import os
from typing import List, Optional, Sequence, Tuple


class LaunchError(Exception):
    """No such command. The message says what is missing, without a subject."""


_PACKAGE = os.path.dirname(os.path.realpath(__file__))
_OF_WHEEL = os.path.join(_PACKAGE, "recorder", "bin", "jmassif")  # in a wheel with the recorder


def record_by_wheel(words: List[str]) -> None:
    """Become the command that records, and knows where the recorder lies, where this is a wheel that has it."""
    if os.path.exists(_OF_WHEEL):
        os.environ["JMASSIF_MODULES"] = os.path.dirname(_PACKAGE)
        os.execv("/bin/sh", ["/bin/sh", _OF_WHEEL, *words])


def _recording_command() -> Optional[str]:
    """The first jmassif on PATH that records. That of a wheel is a Python script."""
    import shutil

    for directory in os.get_exec_path():
        path = shutil.which("jmassif", path=directory)
        if path:
            with open(path, "rb") as stream:
                if b"python" not in stream.readline():
                    return path
    return None


_CHOICES = ("--native", "--native=device", "--valgrind", "--auto")


def launcher(options: Sequence[str] = ()) -> List[str]:
    """The words before the recorder's options. $VALGRIND names another Valgrind, $VALGRIND_LIB another directory of tools;
    neither counts where the options choose a recorder, which only the command jmassif can do.

    Raises LaunchError.
    """
    import shutil

    is_chosen = not set(_CHOICES).isdisjoint(options)
    asked = None if is_chosen else os.environ.get("VALGRIND")
    if not asked:
        own = _recording_command()
        if own and (is_chosen or not os.environ.get("VALGRIND_LIB")):
            return [own]
        if os.path.exists(_OF_WHEEL):
            os.environ["JMASSIF_MODULES"] = os.path.dirname(_PACKAGE)
            return ["/bin/sh", _OF_WHEEL]
        if is_chosen:
            raise LaunchError("needs the command jmassif, which is not on PATH")
    valgrind = shutil.which(asked or "valgrind")
    if not valgrind:
        raise LaunchError("needs the recorder: neither jmassif nor valgrind is on PATH")
    return [valgrind, "--tool=jmassif"]


def split_options(words: List[str]) -> Tuple[List[str], List[str]]:
    """Options of the recorder, and after them a script, "-m" or "-c" and the rest."""
    n = 0
    while n < len(words) and words[n][:1] == "-" and words[n] not in ("-m", "-c"):
        n += 2 if words[n] in ("-o", "--output") else 1
    return words[:n], words[n:]
