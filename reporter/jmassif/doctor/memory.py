# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the memory at hand is what a program needs under Valgrind, and what takes it."""

import re
from typing import Dict, Iterator, Tuple

from jmassif.doctor.machine import FAILS, LOST, OK, Finding, Findings, Machine, fails, lost, ok
from jmassif.units import size

_MIB = 1 << 20

# What a process holds under jmassif before it does anything of its own, docs/performance.md: a C program, Python, a script that
# imports PyTorch 1.13 (with --low-footprint=yes), by the newest core.
_PLAIN, _PYTHON, _TORCH, _TORCH_LOW = 40 * _MIB, 64 * _MIB, 387 * _MIB, 289 * _MIB

_USES_TORCH = re.compile(r"^\s*(?:import|from)\s+(?:torch|ultralytics|transformers|torchvision)\b", re.MULTILINE)

# Of a desktop: these processes, as the kernel names them (at most 15 characters).
_DESKTOP = {
    "Xorg",
    "Xwayland",
    "gnome-shell",
    "gnome-session-b",
    "gdm-x-session",
    "compiz",
    "unity-settings-",
    "lxpanel",
    "lxsession",
    "pcmanfm",
    "openbox",
    "nautilus",
    "gnome-software",
    "update-manager",
    "xfce4-session",
    "xfdesktop",
    "plasmashell",
    "kwin_x11",
    "nautilus-deskto",
    "unity-panel-ser",
    "hud-service",
    "evolution-calen",
    "chromium",
    "chromium-browse",
    "firefox",
}
_STOP_DESKTOP = "sudo systemctl isolate multi-user.target (and graphical.target to have it back)"


# Of a version of control groups: where it is mounted, the limit and what is used of it.
_GROUPS = {
    "": ("/sys/fs/cgroup", "memory.max", "memory.current"),
    "memory": ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
}


def _own_groups(machine: Machine) -> Iterator[Tuple[str, str, str]]:
    """For each control group that this process is in, from its own to the outermost: its directory, limit and use."""
    for line in [*machine.text("/proc/self/cgroup").splitlines(), "0::/", "1:memory:/"]:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            if controller in _GROUPS:
                mounted, limit, used = _GROUPS[controller]
                names = [name for name in path.split("/") if name]
                for depth in range(len(names), -1, -1):
                    yield "/".join([mounted, *names[:depth]]), limit, used


def _cgroup_left(machine: Machine) -> Dict[str, int]:
    """By name of the limit, what the control groups of this process leave: both versions. In a container they are mounted as if
    its own were the outermost."""
    left: Dict[str, int] = {}
    for directory, limit, used in _own_groups(machine):
        most, now = (machine.text(f"{directory}/{name}").strip() for name in (limit, used))
        if most.isdigit() and now.isdigit() and int(most) < 1 << 60:
            # Files that nobody has looked at lately make way.
            cached = re.search(r"^inactive_file (\d+)$", machine.text(f"{directory}/memory.stat"), re.MULTILINE)
            here = max(0, int(most) - int(now) + (int(cached.group(1)) if cached else 0))
            left[limit] = min(left.get(limit, here), here)
    return left


def needed(machine: Machine) -> int:
    """Bytes that the program holds before it does anything of its own."""
    if machine.script and _USES_TORCH.search(machine.script):
        return _TORCH
    return _PYTHON if machine.script or not machine.program or "python" in machine.program[0] else _PLAIN


def check_memory(machine: Machine) -> Findings:
    """What is at hand against what is needed."""
    figures = machine.labelled_bytes("/proc/meminfo")
    if "MemTotal" not in figures:
        return lost(
            "memory", "/proc/meminfo cannot be read: reports will not have the machine's memory beside the program's"
        )
    available = figures.get("MemAvailable", figures.get("MemFree", 0))
    where = ""
    for name, left in _cgroup_left(machine).items():
        if left < available:
            available, where = left, f" ({name} of the control group)"
    free_swap = figures.get("SwapFree", 0)
    need = needed(machine)
    text = f"{size(available)} are available{where}"
    before = f"the {size(need)} that the program takes before it does anything"
    mend = "raise the group's limit (docker run --memory=…, systemd's MemoryMax=)" if where else ""
    mend = mend or f"close programs; {_STOP_DESKTOP}; add swap"
    if available + free_swap < need:
        return fails("memory", f"{text}, and {size(free_swap)} of swap: less than {before}", mend)
    if available < need:
        return lost("memory", f"{text}, less than {before}: it will swap, and be slow", mend)
    if available + free_swap < _TORCH:
        torch = f"{size(_TORCH)} ({size(_TORCH_LOW)} with --low-footprint=yes)"
        return lost("memory", f"{text}: too little for a script that imports PyTorch, which takes {torch}", mend)
    return ok(
        "memory", f"{text} of {size(figures['MemTotal'])}; the program takes {size(need)} before it does anything"
    )


def check_swap(machine: Machine) -> Findings:
    """What there is when memory ends."""
    figures = machine.labelled_bytes("/proc/meminfo")
    total = figures.get("SwapTotal", 0)
    if not total:
        mend = "sudo fallocate -l 4G /swapfile && sudo chmod 600 /swapfile && sudo mkswap /swapfile && sudo swapon /swapfile"
        if "MemTotal" in figures and figures["MemTotal"] > 9 << 30:
            return ok("swap", "none")
        return lost("swap", "none: a program that outgrows the memory is killed at once", mend)
    areas = [line.split()[0] for line in machine.text("/proc/swaps").splitlines()[1:] if line.split()]
    zram = [area for area in areas if "zram" in area]
    kind = "compressed memory (zram)" if zram and len(zram) == len(areas) else ", ".join(areas[:3]) or "on disk"
    return ok("swap", f"{size(figures.get('SwapFree', 0))} of {size(total)} free, {kind}")


def check_overcommit(machine: Machine) -> Findings:
    """Whether the kernel grants mappings that are never touched: Valgrind makes large ones."""
    mode = machine.text("/proc/sys/vm/overcommit_memory").strip()
    if mode != "2":
        return ok("overcommit", f"vm.overcommit_memory is {mode or 'not known'}")
    figures = machine.labelled_bytes("/proc/meminfo")
    left = figures.get("CommitLimit", 0) - figures.get("Committed_AS", 0)
    state = FAILS if left < 256 * _MIB else LOST
    text = (
        f"vm.overcommit_memory is 2: what is mapped counts in full, touched or not, and {size(max(0, left))} are left"
    )
    return [Finding("overcommit", state, text, "sudo sysctl vm.overcommit_memory=0")]


def check_desktop(machine: Machine) -> Findings:
    """What a desktop session takes of the memory that host and device share."""
    taken: Dict[str, int] = {}
    for pid in machine.names("/proc"):
        name = machine.text(f"/proc/{pid}/comm").strip() if pid.isdigit() else ""
        if name in _DESKTOP:
            words = machine.text(f"/proc/{pid}/statm").split()
            if len(words) >= 3:
                own = (int(words[1]) - int(words[2])) * 4096  # resident, less what is shared
                taken[name] = taken.get(name, 0) + max(0, own)
    if not taken:
        return ok("desktop", "no desktop session")
    largest = sorted(taken, key=lambda name: -taken[name])
    named = ", ".join(f"{name} {size(taken[name])}" for name in largest[:3])
    text = f"a session takes {size(sum(taken.values()))}: {named}"
    return lost("desktop", text, _STOP_DESKTOP) if sum(taken.values()) > 32 * _MIB else ok("desktop", text)
