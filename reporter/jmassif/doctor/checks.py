# SPDX-License-Identifier: GPL-2.0-or-later
"""All checks in the order in which people read them, and those that every recording begins with."""

from typing import Callable, Tuple

from jmassif.doctor.devices import check_board, check_nodes
from jmassif.doctor.kernel import check_kernel, check_ptrace, check_seccomp
from jmassif.doctor.limits import check_directory, check_open_files, check_sizes, check_temporary
from jmassif.doctor.machine import FAILS, LOST, Findings, Machine
from jmassif.doctor.memory import check_desktop, check_memory, check_overcommit, check_swap

Check = Callable[[Machine], Findings]

# They ask the kernel for a few files and start nothing.
_QUICK: Tuple[Check, ...] = (check_memory, check_open_files, check_nodes, check_sizes, check_temporary, check_directory)


def all_findings(machine: Machine) -> Findings:
    """Starts Valgrind and the interpreter, so it takes a second or two."""
    from jmassif.doctor.processor import check_processor
    from jmassif.doctor.software import check_debug_information, check_python, check_valgrind, valgrind_version

    found = check_valgrind(machine)
    found += check_python(machine) + check_debug_information(machine) + check_board(machine) + check_nodes(machine)
    found += check_processor(machine, valgrind_version(machine))
    for check in (check_memory, check_swap, check_overcommit, check_desktop):
        found += check(machine)
    for check in (check_open_files, check_sizes, check_directory, check_temporary):
        found += check(machine)
    for check in (check_kernel, check_ptrace, check_seccomp):
        found += check(machine)
    return found


def urgent_findings(machine: Machine) -> Findings:
    """What would spoil the recording that is about to begin, the worst first."""
    found = [finding for check in _QUICK for finding in check(machine) if finding.state in (FAILS, LOST)]
    return sorted(found, key=lambda finding: finding.state != FAILS)
