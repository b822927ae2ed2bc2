# SPDX-License-Identifier: GPL-2.0-or-later
"""Obstacles to recording on a machine: each check answers that all is well, what is lost, or that recording fails, and how to mend it."""

import errno
import glob
import os
import re
import resource
import shutil
import subprocess
import tempfile
from subprocess import DEVNULL, PIPE, STDOUT
from typing import Callable, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from jmassif.units import size


# ---- machine ----
# A machine is files, an environment, and the way to start the recorder. The files may lie below another directory than /: those of
# the board in a container, and in tests.

OK, LOST, FAILS = "ok", "lost", "FAILS"


class Verdict(NamedTuple):
    state: str  # OK; LOST: it works without what the text names; FAILS: it cannot work
    text: str
    mend: str = ""  # a command or a variable


class Machine(NamedTuple):
    """Files, environment and program."""

    root: str = ""
    tools: str = ""  # the recorder's directory
    valgrind: str = ""  # starts the recorder below it; "": that starts by itself
    program: Sequence[str] = ()
    environment: Mapping[str, str] = os.environ
    trace: str = ""  # of --jmassif-out-file; "": in the current directory
    recorder: str = "native"  # or "valgrind"

    def text(self, path: str) -> str:
        return _read(self.root + path)

    def which(self, name: str) -> str:
        return shutil.which(name, path=self.environment.get("PATH")) or ""

    def run(self, *command: str) -> Tuple[int, List[str]]:
        """The status of a command, and the lines of both its streams."""
        try:
            done = subprocess.run(command, env=dict(self.environment), stdin=DEVNULL, stdout=PIPE, stderr=STDOUT)
        except OSError as error:
            return 127, [f"{command[0]}: {error.strerror}"]
        return done.returncode, done.stdout.decode("utf-8", "replace").splitlines()


def _read(path: str) -> str:
    """The text of a file; "" if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


# ---- the recorder ----

_PLATFORM = {"x86_64": "amd64-linux", "aarch64": "arm64-linux"}.get(os.uname().machine, os.uname().machine)


_LIBRARY = "libjmassif-native.so"


def _obstacle(record: Callable[[str], Tuple[int, List[str]]]) -> str:
    """Why a program that does nothing is not recorded; "" if it is. `record` gets the trace's path."""
    with tempfile.TemporaryDirectory() as directory:
        trace = os.path.join(directory, "trace")
        status, lines = record(trace)
        if not status and os.path.exists(trace):
            return ""
    said = [line for line in (re.sub(r"^==\d+==", "", line).strip() for line in lines) if line]
    return f"does not record a program: {said[-1] if said else f'status {status}'}"


def _nothing(machine: Machine) -> str:
    """A program that does nothing."""
    return machine.which("true") or "/bin/true"


def check_native(machine: Machine) -> Verdict:
    path = os.path.join(machine.tools, _LIBRARY)
    if not os.path.exists(path):
        return Verdict(FAILS, f"{path} is missing", "install jmassif again, or record with --valgrind")

    def record(trace: str) -> Tuple[int, List[str]]:
        variables = {"LD_PRELOAD": path, "JMASSIF_NATIVE": f"--quiet\n--jmassif-out-file={trace}"}
        return machine._replace(environment={**machine.environment, **variables}).run(_nothing(machine))

    reason = _obstacle(record)
    return Verdict(FAILS, f"{path} {reason}", "record with --valgrind") if reason else Verdict(OK, path)


def _below_valgrind(machine: Machine, *arguments: str) -> Tuple[int, List[str]]:
    """Run the recorder below Valgrind with these arguments."""
    if machine.valgrind:
        start, variables = machine.valgrind, {"VALGRIND_LIB": machine.tools}
    else:
        start = os.path.join(machine.tools, f"jmassif-{_PLATFORM}")
        variables = {"JMASSIF_LIB": machine.tools, "VALGRIND_LAUNCHER": start}
    there = machine._replace(environment={**machine.environment, **variables})
    return there.run(start, "--tool=jmassif", *arguments)


def valgrind_version(machine: Machine) -> Tuple[int, ...]:
    """(3, 27, 1); () if it does not say."""
    found = re.search(r"valgrind-(\d+(?:\.\d+)*)", "\n".join(_below_valgrind(machine, "--version")[1]))
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def check_valgrind(machine: Machine) -> Verdict:
    """Only --valgrind needs it."""
    for name in (f"jmassif-{_PLATFORM}", f"vgpreload_jmassif-{_PLATFORM}.so", f"vgpreload_core-{_PLATFORM}.so"):
        path = os.path.join(machine.tools, name)
        if not os.path.exists(path):
            return Verdict(FAILS, f"{path} is missing: there is no --valgrind", "install jmassif again")
    version = ".".join(map(str, valgrind_version(machine))) or "unknown release"
    text = f"{version}, {machine.valgrind or machine.tools}"
    reason = _obstacle(lambda trace: _below_valgrind(machine, f"--jmassif-out-file={trace}", _nothing(machine)))
    return Verdict(FAILS, f"{text}, {reason}") if reason else Verdict(OK, text)


# ---- Python and PyTorch ----

_PYTHONS = ((3, 6), (3, 15))  # the recorder reads frames of these

# The interpreter describes itself, a line each. Torch is found, not imported, which takes seconds.
_INTERVIEW = """
import sys, importlib.util
print("%d.%d.%d" % sys.version_info[:3])
print(sys.implementation.name)
print(sys.executable)
found = importlib.util.find_spec("torch")
print(found.origin if found and found.origin else "")
"""


def check_python(machine: Machine) -> Verdict:
    """The interpreter that runs the program, else the first on the path, and PyTorch in it."""
    is_python = bool(machine.program) and os.path.basename(machine.program[0]).startswith("python")
    python = machine.which(machine.program[0] if is_python else "python3")
    if not python:
        return Verdict(OK, "not installed: only other programs can be recorded")
    status, lines = machine.run(python, "-c", _INTERVIEW)
    if status or len(lines) < 4:
        return Verdict(FAILS, f"{python} does not run: {lines[-1] if lines else f'status {status}'}")
    version, name, executable, torch = lines[-4:]
    text = f"{version}, {executable}"
    if torch:
        assigned = r"(?m)^__version__ *(?::.*)?= *['\"]([^'\"]+)"
        found = re.search(assigned, _read(os.path.join(os.path.dirname(torch), "version.py")))
        text += f", PyTorch {found[1] if found else 'of unknown version'}"
    if name != "cpython" or not _PYTHONS[0] <= tuple(map(int, version.split(".")[:2])) <= _PYTHONS[1]:
        known = " to ".join(".".join(map(str, each)) for each in _PYTHONS)
        return Verdict(LOST, f"{text}: stacks have no Python lines, which are read of CPython {known}")
    return Verdict(OK, text)


# ---- the board ----

_L4T = range(32, 40)  # releases with drivers that are decoded
_UNVERIFIED = {39: "36 (nvgpu) and 38 (nvmap, openrm)"}  # by the forms of these
# Packages of each library, and the oldest and newest major version that the wrappers know.
_LIBRARIES = {
    "CUDA": (r"cuda-cudart-\d+-\d+|cuda-runtime-\d+-\d+", 9, 13),
    "cuDNN": (r"libcudnn\d+(-cuda-\d+)?", 7, 9),
    "TensorRT": (r"libnvinfer\d+", 5, 10),
}


def check_board(machine: Machine) -> Optional[Verdict]:
    """The board, its JetPack, and what is installed of CUDA."""
    from jmassif.model.run_info import jetpack_of

    package = r"(?m)^Package: (\S+)\n(?:.+\n)*?Status: .* installed\n(?:.+\n)*?Version: (?:\d+:)?(\d\S*)$"
    packages = dict(re.findall(package, machine.text("/var/lib/dpkg/status")))
    # "# R32 (release), REVISION: 7.1, …" → "32.7.1"
    found = re.search(r"R(\d+).*REVISION: *([\d.]+)", machine.text("/etc/nv_tegra_release"))
    release = ".".join(found.groups()) if found else ""
    jetpack = jetpack_of(release, packages.get("nvidia-jetpack", ""))
    model = machine.text("/proc/device-tree/model").strip("\0\n ")
    words = [model, jetpack and f"JetPack {jetpack}", release and f"L4T {release}"]
    unknown = [f"L4T {release}"] if found and int(found[1]) not in _L4T else []
    for name, (pattern, oldest, newest) in _LIBRARIES.items():
        for version in sorted({packages[package] for package in packages if re.fullmatch(pattern, package)}):
            words.append(f"{name} {version}")
            if not oldest <= int(re.split(r"\D", version)[0]) <= newest:
                unknown.append(words[-1])
    text = ", ".join(filter(None, words))
    if unknown:
        return Verdict(LOST, f"{text}: device memory of {', '.join(unknown)} may be missed")
    if found and int(found[1]) in _UNVERIFIED:
        text += f"; its driver calls are read as those of L4T {_UNVERIFIED[int(found[1])]}; not verified on a board"
    return Verdict(OK, text) if text else None


# Nodes of a Jetson's GPU and those of other boards'; a program needs all that are there.
_NODES = """nvmap nvhost-ctrl nvhost-ctrl-gpu nvhost-gpu nvhost-as-gpu nvgpu/igpu0/ctrl nvgpu/igpu0/channel
    nvidiactl nvidia0 nvidia-uvm""".split()
# These are opened, as a container's rules and a simulated board show in nothing else. The others may wake the GPU.
_OPENED = ("nvmap", "nvidiactl")
_MENDS = {
    errno.EACCES: "sudo usermod -aG video $USER, and log in again",
    errno.EPERM: "in a container: start it with --runtime=nvidia",
    errno.EBUSY: "close the program that has it",
}


def _refusal(machine: Machine, node: str) -> int:
    """The error number of opening a device: 0 where it may be used, ENOENT where there is none."""
    path = f"{machine.root}/dev/{node}"
    if node not in _OPENED:
        may_use = os.access(path, os.R_OK | os.W_OK)
        return 0 if may_use else errno.EACCES if os.path.lexists(path) else errno.ENOENT
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def check_devices(machine: Machine) -> Verdict:
    refusals = {node: _refusal(machine, node) for node in _NODES}
    nodes = [f"/dev/{node}" for node, error in refusals.items() if error != errno.ENOENT]
    for node, error in refusals.items():
        if error not in (0, errno.ENOENT):
            mend = _MENDS.get(error, "see dmesg: the driver does not answer")
            return Verdict(FAILS, f"/dev/{node} cannot be opened ({os.strerror(error)}): CUDA will not start", mend)
    if not nodes:
        return Verdict(OK, "no NVIDIA device: host memory is recorded")
    return Verdict(OK, f"{', '.join(nodes[:3])}{' and others' if len(nodes) > 3 else ''} may be used")


# ---- processor ----
# Instructions of the processor that Valgrind lacks. Libraries choose their code by what they find, some by asking the kernel past
# Valgrind, and an instruction that it does not know ends the program.

_NEVER = (99,)
# Flags of /proc/cpuinfo: a name, and the release of Valgrind that knows the instructions, by Valgrind's NEWS.
_FEATURES = {
    "asimddp": ("dot products", (3, 23)),
    "asimdhp": ("half precision", _NEVER),
    "i8mm": ("8-bit matrices", _NEVER),
    "bf16": ("bfloat16", _NEVER),
    "sve": ("SVE", _NEVER),
}
# Variables that keep libraries from choosing by themselves: OpenBLAS (NumPy), PyTorch, OpenSSL.
_VARIABLES = {"OPENBLAS_CORETYPE": "ARMV8", "ATEN_CPU_CAPABILITY": "default", "OPENSSL_armcap": "0"}


def check_processor(machine: Machine, valgrind: Tuple[int, ...]) -> Optional[Verdict]:
    """`valgrind` is the release that runs the program. On amd64 it answers cpuid itself, so libraries choose nothing that it lacks."""
    found = re.search(r"(?m)^Features\s*:(.*)", machine.text("/proc/cpuinfo"))
    if not found:
        return None
    present = found[1].split()
    lacking = [name for flag, (name, since) in _FEATURES.items() if flag in present and valgrind < since]
    if not lacking:
        return Verdict(OK, "Valgrind knows its instructions")
    text = f"Valgrind {'.'.join(map(str, valgrind))} lacks {', '.join(lacking)}: a library that uses them is killed"
    missing = [f"{name}={value}" for name, value in _VARIABLES.items() if machine.environment.get(name) != value]
    if not missing:
        return Verdict(OK, f"{text}; the variables that keep libraries from them are set")
    newer = "; Valgrind 3.23 or later has dot products" if "dot products" in lacking else ""
    return Verdict(LOST, text, f"export {' '.join(missing)}{newer}")


# ---- memory ----

_MIB = 1 << 20

# MiB of a recorded process before it does anything, docs/performance.md: a C program, Python, a script that imports
# PyTorch 1.13.
_NEEDED = {"native": (4, 16, 285), "valgrind": (40, 64, 387)}

# Versions of control groups: where they are mounted, the files of limit and usage.
_GROUPS = {
    "": ("/sys/fs/cgroup", "memory.max", "memory.current"),
    "memory": ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
}


def _available(machine: Machine, figures: Mapping[str, int]) -> Tuple[int, str]:
    """Available bytes, and the name of the control group's limit that leaves no more."""
    found = [(figures["MemAvailable"], "")]
    # In a container the groups are mounted as if its own were the outermost.
    for line in [*machine.text("/proc/self/cgroup").splitlines(), "0::/", "1:memory:/"]:
        controllers, _, path = line.partition(":")[2].partition(":")
        for mounted, limit, usage in (_GROUPS[name] for name in controllers.split(",") if name in _GROUPS):
            directory = mounted + path.rstrip("/")
            while directory.startswith(mounted):
                most, used = (machine.text(f"{directory}/{name}").strip() for name in (limit, usage))
                if most.isdigit() and used.isdigit():
                    # Pages of files that were not used lately make way.
                    cached = re.search(r"(?m)^inactive_file (\d+)$", machine.text(f"{directory}/memory.stat"))
                    found.append((max(0, int(most) - int(used) + (int(cached[1]) if cached else 0)), limit))
                directory = os.path.dirname(directory)
    return min(found)


def needed(machine: Machine) -> int:
    """Bytes that the program holds before it does anything of its own."""
    plain, python, torch = _NEEDED[machine.recorder]
    script = next((_read(word) for word in machine.program if word.endswith(".py")), "")
    if re.search(r"(?m)^\s*(?:import|from)\s+(?:torch|ultralytics|transformers|torchvision)\b", script):
        return torch * _MIB
    return (python if not machine.program or "python" in machine.program[0] else plain) * _MIB


_STOP_DESKTOP = "sudo systemctl isolate multi-user.target (and graphical.target to have it back)"


def _meminfo(machine: Machine) -> Mapping[str, int]:
    rows = re.findall(r"(?m)^(\w+): *(\d+) kB$", machine.text("/proc/meminfo"))
    return {label: int(number) * 1024 for label, number in rows}


def check_memory(machine: Machine) -> Verdict:
    """Available memory, against that which the program needs."""
    figures = _meminfo(machine)
    if "MemAvailable" not in figures:
        return Verdict(LOST, "/proc/meminfo cannot be read: reports lack the machine's memory")
    available, limit = _available(machine, figures)
    swap, need = figures.get("SwapFree", 0), needed(machine)
    mend = f"close programs; {_STOP_DESKTOP}; add swap"
    text = f"{size(available)} available of {size(figures['MemTotal'])}, {size(swap)} of swap"
    if limit:
        text += f" ({limit} of the control group)"
        mend = "raise the group's limit (docker run --memory=…, systemd's MemoryMax=)"
    start = f"the program takes {size(need)} before it does anything"
    if available + swap < need:
        return Verdict(FAILS, f"{text}: {start}", mend)
    if available < need:
        return Verdict(LOST, f"{text}: {start}, so it will swap and be slow", mend)
    return Verdict(OK, f"{text}; {start}")


# Processes of a desktop, as the kernel names them (at most 15 characters).
_DESKTOP = "Xorg Xwayland gnome-shell compiz lxpanel xfdesktop plasmashell chromium chromium-browse firefox".split()


def _files(machine: Machine, pattern: str) -> List[str]:
    return sorted(glob.glob(glob.escape(machine.root) + pattern))


def _taken(machine: Machine, names: Sequence[str]) -> int:
    """Bytes of processes of these names."""
    taken = 0
    for process in _files(machine, "/proc/[0-9]*"):
        words = _read(f"{process}/statm").split() if _read(f"{process}/comm").strip() in names else []
        if len(words) >= 3:
            taken += max(0, int(words[1]) - int(words[2])) * resource.getpagesize()  # resident, less what is shared
    return taken


def check_desktop(machine: Machine) -> Optional[Verdict]:
    """A desktop session takes memory that host and device share."""
    taken = _taken(machine, _DESKTOP)
    return Verdict(LOST, f"a session takes {size(taken)}", _STOP_DESKTOP) if taken > 32 * _MIB else None


_RESERVED = "/proc/device-tree/reserved-memory"


def _cells(path: str) -> List[int]:
    """The numbers of a property of the device tree; [] if it is not there."""
    try:
        with open(path, "rb") as stream:
            data = stream.read()
    except OSError:
        return []
    return [int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)]


def _reserved(machine: Machine) -> int:
    """Bytes of nodes with addresses that the device tree keeps from the kernel; a reusable one is CMA's."""
    n_address, n_size = ((_cells(f"{machine.root}{_RESERVED}/#{of}-cells") or [2])[0] for of in ("address", "size"))
    found = 0
    for path in _files(machine, f"{_RESERVED}/*/reg"):
        node, cells = os.path.dirname(path), _cells(path)
        if os.path.exists(f"{node}/reusable") or _read(f"{node}/status").strip("\0") == "disabled":
            continue
        for at in range(0, len(cells) - n_address - n_size + 1, n_address + n_size):
            size_cells = cells[at + n_address : at + n_address + n_size]
            found += sum(cell << 32 * place for place, cell in enumerate(reversed(size_cells)))
    return found


def check_board_memory(machine: Machine) -> Optional[Verdict]:
    """Memory that the board uses by itself, as the kernel's files have it, and how to get it back."""
    if not machine.text("/etc/nv_tegra_release"):
        return None
    figures, zram = _meminfo(machine), [_read(path).split() for path in _files(machine, "/sys/block/zram*/mm_stat")]
    get = lambda *labels: [figures.get(label, 0) for label in labels]  # noqa: E731
    available, free, cma, cma_free, swap, swap_free = get(
        "MemAvailable", "MemFree", "CmaTotal", "CmaFree", "SwapTotal", "SwapFree"
    )
    found = [  # name, bytes, what gives it back
        ("desktop", _taken(machine, _DESKTOP), "sudo systemctl isolate multi-user.target"),
        ("nvargus-daemon", _taken(machine, ("nvargus-daemon",)), "sudo systemctl stop nvargus-daemon (no cameras)"),
        (f"CMA ({size(cma_free)} of it free)", cma, "a smaller cma= in /boot/extlinux/extlinux.conf"),
        ("reserved-memory nodes", _reserved(machine), "the device tree: nodes of devices that are not used"),
        (
            "zram",
            sum(int(words[2]) for words in zram if len(words) > 2),
            "sudo swapoff /dev/zram*, if what is there fits",
        ),
        (
            "page cache",
            max(0, min(sum(get("Cached", "Buffers", "SReclaimable")), available - free)),
            "sync; echo 3 | sudo tee /proc/sys/vm/drop_caches",
        ),
        ("swap in use", swap - swap_free, "sudo swapoff -a, if what is there fits"),
    ]
    found = [row for row in found if row[1] >= _MIB]
    text = ", ".join(f"{name} {size(n_bytes)}" for name, n_bytes, _ in found)
    return (
        Verdict(OK, text, "; ".join(f"{name.partition(' (')[0]}: {mend}" for name, _, mend in found)) if found else None
    )


# ---- limits ----
# Limits of this process, which the program inherits, directories that are written to, and permissions of the kernel.

# Valgrind keeps twelve for itself above the program's; a program that loads libraries needs a few at once.
_VALGRINDS, _FEWEST, _FEW = 12, 20, 256
# JetPack's driver hands out descriptors from 1024 on.
_BOARDS = 4096

# Importing PyTorch is 22 MB of trace; from then on it grows with the logarithm of the time.
_TRACE = 64 * _MIB


def check_open_files(machine: Machine) -> Verdict:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (1 << 20 if limit == resource.RLIM_INFINITY else limit for limit in limits)
    text = f"the limit is {soft}" + (f" (hard {hard})" if hard != soft else "")
    if soft >= _FEWEST and hard < _BOARDS and _refusal(machine, "nvmap") not in (errno.ENOENT, errno.EMFILE):
        reason = "the board's buffers have descriptors from 1024 on, which the program cannot close or map"
        return Verdict(FAILS, f"{text}: {reason}", "sudo prlimit --pid $$ --nofile=65536")
    if soft < _FEW:
        left = f"the program has {max(0, soft - _VALGRINDS)}, as Valgrind keeps {_VALGRINDS}"
        return Verdict(FAILS if soft < _FEWEST else LOST, f"{text}: {left}", "ulimit -n 4096")
    return Verdict(OK, text)


def _write_error(directory: str) -> str:
    try:
        with tempfile.TemporaryFile(dir=directory):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _free(directory: str) -> int:
    figures = os.statvfs(directory)
    return figures.f_bavail * figures.f_frsize


def check_trace(machine: Machine) -> Optional[Verdict]:
    """The directory that the trace is written to."""
    directory = os.path.dirname(machine.trace) or "."
    is_elsewhere = "%" in directory or (os.path.exists(machine.trace) and not os.path.isfile(machine.trace))
    if is_elsewhere or not os.path.isdir(directory):
        return None  # an environment variable or a pipe; without a directory the recorder says so
    where = "the current directory" if directory == "." else directory
    mend = "jmassif -o DIRECTORY/jmassif.out.%p"
    error = _write_error(directory)
    if error:
        return Verdict(FAILS, f"{where} cannot be written: {error}", mend)
    free = _free(directory)
    if free < _TRACE:
        return Verdict(FAILS if free < _MIB else LOST, f"{size(free)} free in {where}: the trace may be cut off", mend)
    return Verdict(OK, f"{size(free)} free in {where}")


def check_temporary(machine: Machine) -> Verdict:
    """Valgrind does not start without a directory for its pipes."""
    directory = machine.environment.get("TMPDIR") or "/tmp"
    error = _write_error(directory)
    if error:
        return Verdict(FAILS, f"{directory} cannot be written: {error}", "export TMPDIR=DIRECTORY")
    return Verdict(OK, f"{directory} can be written")


def check_kernel(machine: Machine) -> Verdict:
    """The release, and whether pages can be sampled."""
    release = f"Linux {machine.text('/proc/sys/kernel/osrelease').strip() or os.uname().release}"
    if not machine.text("/proc/self/smaps"):
        text = f"{release}: /proc/self/smaps cannot be read: pages of libraries, mappings and stacks are not recorded"
        return Verdict(LOST, text, "mount -t proc proc /proc")
    return Verdict(OK, release)


# ---- checks ----


class Check(NamedTuple):
    name: str
    verdict: Callable[[Machine], Optional[Verdict]]  # None: it does not concern this machine
    is_quick: bool = False  # made before each recording: it reads a few files and starts nothing
    is_valgrinds: bool = False  # says nothing of a native recording


# In the order in which people read them. Those of Valgrind and the interpreter take a second or two.
CHECKS = (
    Check("native", check_native),
    Check("Valgrind", check_valgrind, False, True),
    Check("Python", check_python),
    Check("board", check_board),
    Check("devices", check_devices, True),
    Check("processor", lambda machine: check_processor(machine, valgrind_version(machine)), False, True),
    Check("memory", check_memory, True),
    Check("desktop", check_desktop),
    Check("board's own", check_board_memory),
    Check("open files", check_open_files, True, True),
    Check("trace", check_trace, True),
    Check("temporary", check_temporary, True, True),
    Check("kernel", check_kernel),
)


def verdicts(machine: Machine, checks: Iterable[Check] = CHECKS) -> List[Tuple[str, Verdict]]:
    """The verdict of each check that concerns the machine, with the check's name."""
    found = []
    for check in checks:
        verdict = check.verdict(machine)
        if verdict and verdict.state == FAILS and check.is_valgrinds and machine.recorder == "native":
            verdict = verdict._replace(state=LOST)
        if verdict:
            found.append((check.name, verdict))
    return found


def urgent(machine: Machine) -> List[Tuple[str, Verdict]]:
    """Verdicts that would spoil the recording that is about to begin, the worst first."""
    checks = [
        check for check in CHECKS if check.is_quick and (machine.recorder == "valgrind" or not check.is_valgrinds)
    ]
    found = [(name, verdict) for name, verdict in verdicts(machine, checks) if verdict.state != OK]
    return sorted(found, key=lambda row: row[1].state != FAILS)
