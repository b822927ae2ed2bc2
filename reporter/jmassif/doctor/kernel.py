# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kernel lets the recorder see and do."""

import os

from jmassif.doctor.machine import Findings, Machine, lost, ok


def check_kernel(machine: Machine) -> Findings:
    """The release, and the files that pages are read from."""
    release = machine.text("/proc/sys/kernel/osrelease").strip() or os.uname().release
    if not machine.text("/proc/self/smaps"):
        text = f"Linux {release}; /proc/self/smaps cannot be read: pages of libraries, mappings and stacks are not recorded"
        return lost("kernel", text, "mount -t proc proc /proc")
    return ok("kernel", f"Linux {release}")


def check_ptrace(machine: Machine) -> Findings:
    """Only vgdb traces a process; the recorder does not."""
    scope = machine.text("/proc/sys/kernel/yama/ptrace_scope").strip()
    if scope in ("2", "3"):
        reason = "vgdb cannot ask a program that sleeps in the kernel; recording needs no ptrace"
        return lost(
            "ptrace",
            f"kernel.yama.ptrace_scope is {scope}: {reason}",
            "sudo sysctl kernel.yama.ptrace_scope=1" if scope == "2" else "",
        )
    return ok("ptrace", "allowed")


def check_seccomp(machine: Machine) -> Findings:
    """A filter of a container's stays on what the program and Valgrind ask of the kernel."""
    for line in machine.text("/proc/self/status").splitlines():
        if line.startswith("Seccomp:") and line.split()[1:] == ["2"]:
            text = "a filter is on, as in a container: what it forbids shows as errors of the program's"
            return ok("seccomp", text)
    return ok("seccomp", "no filter")
