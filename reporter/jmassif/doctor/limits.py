# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits of this process, which the program inherits, and places that are written to."""

import os
import resource
import tempfile
from typing import Optional

from jmassif.doctor.devices import is_nvmap_board
from jmassif.doctor.machine import FAILS, LOST, OK, Finding, Findings, Machine, fails, lost, ok
from jmassif.units import size

_MIB = 1 << 20

# Valgrind keeps twelve for itself above the program's; a program that loads libraries needs a few at once.
_VALGRINDS, _FEWEST, _FEW = 12, 20, 256
# JetPack's driver hands out descriptors from 1024 on.
_BOARDS = 4096

# Importing PyTorch is 22 MB of trace; from then on it grows with the logarithm of the time.
_TRACE = 64 * _MIB


def check_open_files(machine: Machine) -> Findings:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (1 << 20 if limit == resource.RLIM_INFINITY else limit for limit in (soft, hard))
    text = f"the limit is {soft}" + (f" (hard {hard})" if hard != soft else "")
    if soft < _FEWEST:
        return fails("open files", f"{text}: Valgrind keeps {_VALGRINDS} of them", "ulimit -n 4096")
    if is_nvmap_board(machine) and hard < _BOARDS:
        reason = "buffers have the descriptors 1024 and up here, and the program cannot close or map them"
        return fails("open files", f"{text}: {reason}", "sudo prlimit --pid $$ --nofile=65536")
    if soft < _FEW:
        reason = f"the program has {soft - _VALGRINDS}, as Valgrind keeps {_VALGRINDS}"
        return lost("open files", f"{text}: {reason}", "ulimit -n 4096")
    return ok("open files", text)


def _limit(which: int) -> Optional[int]:
    soft = resource.getrlimit(which)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def check_sizes(machine: Machine) -> Findings:
    """Limits of address space and of files."""
    space, file = _limit(resource.RLIMIT_AS), _limit(resource.RLIMIT_FSIZE)
    found = []
    if space is not None:
        text = f"the address space is limited to {size(space)}, and Valgrind's part counts too"
        found.append(Finding("address space", FAILS if space < 512 * _MIB else LOST, text, "ulimit -v unlimited"))
    if file is not None and file < _TRACE:
        text = f"files are limited to {size(file)}: a longer trace is cut off there"
        found.append(Finding("file size", FAILS if file < _MIB else LOST, text, "ulimit -f unlimited"))
    return found or [Finding("sizes", OK, "neither address space nor files are limited")]


def _free(directory: str) -> int:
    figures = os.statvfs(directory)
    return figures.f_bavail * figures.f_frsize


def check_directory(machine: Machine) -> Findings:
    """The trace goes to the current directory."""
    try:
        here = os.getcwd()
        with tempfile.TemporaryFile(dir=here):
            free = _free(here)
    except OSError as error:
        reason = error.strerror or "it is gone"
        text = f"the trace goes to the current directory, which cannot be written: {reason}"
        return fails("trace", text, "cd to another, or --jmassif-out-file=DIRECTORY/jmassif.out.%p")
    if free < _TRACE:
        text = f"{size(free)} are free in the current directory, where the trace goes: it may be cut off"
        return [Finding("trace", FAILS if free < _MIB else LOST, text, "--jmassif-out-file=DIRECTORY/jmassif.out.%p")]
    return ok("trace", f"{size(free)} are free in the current directory")


def check_temporary(machine: Machine) -> Findings:
    """Valgrind does not start without a directory for its pipes."""
    directory = machine.environment.get("TMPDIR") or "/tmp"
    try:
        with tempfile.TemporaryFile(dir=directory):
            return ok("temporary", f"{directory} can be written")
    except OSError as error:
        text = f"{directory} cannot be written ({error.strerror}), and Valgrind does not start without"
        return fails("temporary", text, "export TMPDIR=DIRECTORY")
