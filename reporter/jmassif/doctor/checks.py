# SPDX-License-Identifier: GPL-2.0-or-later
"""Obstacles to recording on a machine: each check returns findings, which say that all is well, what is lost, or how to mend it."""

import errno
import glob
import os
import re
import resource
import shutil
import subprocess
import tempfile
from itertools import takewhile
from typing import Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from jmassif.units import size


# ---- machine ----
# A machine is files, an environment, and the way to start the recorder. The files may lie below another directory than /: those of
# the board in a container, and in tests.

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


class Machine(NamedTuple):
    """Files, environment and program."""

    root: str = ""
    tools: str = ""  # the recorder's directory
    valgrind: str = ""  # starts the recorder; "": it starts by itself
    program: Sequence[str] = ()
    environment: Mapping[str, str] = os.environ
    trace: str = ""  # of --jmassif-out-file; "": in the current directory

    def path(self, path: str) -> str:
        return self.root + path

    def text(self, path: str) -> str:
        return _read(self.path(path))

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
        rows = re.findall(r"^([^:\n]+):\s*(\d+)\s+kB\s*$", self.text(path), re.MULTILINE)
        return {label: int(number) * 1024 for label, number in rows}

    @property
    def is_python(self) -> bool:
        return bool(self.program) and os.path.basename(self.program[0]).startswith("python")

    @property
    def python(self) -> str:
        """The interpreter that runs the program, else the first on the path; "" for none."""
        return self.which(self.program[0] if self.is_python else "python3")

    def which(self, name: str) -> str:
        return shutil.which(name, path=self.environment.get("PATH")) or ""

    @property
    def script(self) -> str:
        """The text of the script that the program is; "" where it is none. Options of Python's with a value are not known."""
        words = takewhile(lambda word: word not in ("-c", "-m"), self.program[1:] if self.is_python else ())
        return next((_read(word) for word in words if word.endswith(".py")), "")


def _read(path: str) -> str:
    """The text of a file; "" if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


# ---- devices ----
# The nodes of NVIDIA's drivers, and NVIDIA's releases on a board.

# Those of a Jetson's GPU and those of other boards'; a program needs all that are there.
_NODES = [
    "/dev/" + name
    for name in """nvmap nvhost-ctrl nvhost-ctrl-gpu nvhost-gpu nvhost-as-gpu nvgpu/igpu0/ctrl nvgpu/igpu0/channel
    nvidiactl nvidia0 nvidia-uvm""".split()
]
# These are opened, as a container's rules and a simulated board show in nothing else. The others may wake the GPU.
_OPENED = ("/dev/nvmap", "/dev/nvidiactl")
_MENDS = {
    errno.EACCES: "sudo usermod -aG video $USER, and log in again",
    errno.EPERM: "in a container: start it with --runtime=nvidia",
    errno.EBUSY: "close the program that has it",
}


def _is_there(machine: Machine, node: str) -> bool:
    return machine.exists(node) or (node in _OPENED and machine.refusal(node) is None)


def _refusal(machine: Machine, node: str) -> Optional[OSError]:
    if not machine.may_use(node) and machine.exists(node):
        return PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return machine.refusal(node) if node in _OPENED else None


def check_nodes(machine: Machine) -> Findings:
    """Tries to open the nodes that wake no GPU."""
    nodes = [node for node in _NODES if _is_there(machine, node)]
    for node in nodes:
        error = _refusal(machine, node)
        if error:
            mend = _MENDS.get(error.errno or 0, "see dmesg: the driver does not answer")
            return fails("devices", f"{node} cannot be opened ({error.strerror}): CUDA will not start", mend)
    if not nodes:
        return ok("devices", "no NVIDIA device: host memory is recorded")
    return ok("devices", f"{', '.join(nodes[:3])}{' and others' if len(nodes) > 3 else ''} may be used")


def _l4t(machine: Machine) -> str:
    """ "# R32 (release), REVISION: 7.1, …" → "32.7.1" """
    found = re.search(r"R(\d+).*REVISION: *([\d.]+)", machine.text("/etc/nv_tegra_release"))
    return f"{found.group(1)}.{found.group(2)}" if found else ""


def _packages(machine: Machine) -> Dict[str, str]:
    """Version by package that is installed."""
    found = {}
    name, is_installed = "", False
    for line in machine.text("/var/lib/dpkg/status").splitlines():
        key, _, value = line.partition(": ")
        if key == "Package":
            name, is_installed = value, False
        elif key == "Status":
            is_installed = value.endswith(" installed")
        elif key == "Version" and is_installed:
            found[name] = value
    return found


# Packages of each library, and the oldest and newest major version that the wrappers know.
_LIBRARIES = {
    "CUDA": (r"cuda-cudart-\d+-\d+|cuda-runtime-\d+-\d+", 9, 13),
    "cuDNN": (r"libcudnn\d+(-cuda-\d+)?", 7, 9),
    "TensorRT": (r"libnvinfer\d+", 5, 10),
}


def check_board(machine: Machine) -> Findings:
    """The board, its JetPack, and what is installed of CUDA."""
    from jmassif.model.run_info import jetpack_of

    found = []
    model = machine.text("/proc/device-tree/model").strip("\0\n ")
    release = _l4t(machine)
    packages = _packages(machine)
    if release or model:
        jetpack = jetpack_of(release, packages.get("nvidia-jetpack", ""))
        words = [model or "a board without a name", jetpack and f"JetPack {jetpack}", release and f"L4T {release}"]
        known = not release or release.partition(".")[0] in ("32", "34", "35", "36", "38")
        text = ", ".join(filter(None, words)) + (
            "" if known else ": the driver's memory is not decoded for this release"
        )
        found.append(Finding("board", OK if known else LOST, text))
    for name, (pattern, oldest, newest) in _LIBRARIES.items():
        versions = sorted({packages[package] for package in packages if re.fullmatch(pattern, package)})
        for version in versions:
            major = re.match(r"(?:\d+:)?(\d+)", version)
            known = major is None or oldest <= int(major.group(1)) <= newest
            limits = "" if known else f": the wrappers know {oldest} to {newest}"
            found.append(Finding(name, OK if known else LOST, f"{version}{limits}"))
    return found


# ---- limits ----
# Limits of this process, which the program inherits, and places that are written to.

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
    if _is_there(machine, "/dev/nvmap") and hard < _BOARDS:
        reason = "buffers have the descriptors 1024 and up here, and the program cannot close or map them"
        return fails("open files", f"{text}: {reason}", "sudo prlimit --pid $$ --nofile=65536")
    if soft < _FEW:
        reason = f"the program has {soft - _VALGRINDS}, as Valgrind keeps {_VALGRINDS}"
        return lost("open files", f"{text}: {reason}", "ulimit -n 4096")
    return ok("open files", text)


def check_sizes(machine: Machine) -> Findings:
    """Limits of address space and of files."""
    space, file = (resource.getrlimit(which)[0] for which in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE))
    found = []
    if space != resource.RLIM_INFINITY:
        text = f"the address space is limited to {size(space)}, and Valgrind's part counts too"
        found.append(Finding("address space", FAILS if space < 512 * _MIB else LOST, text, "ulimit -v unlimited"))
    if file != resource.RLIM_INFINITY and file < _TRACE:
        text = f"files are limited to {size(file)}: a longer trace is cut off there"
        found.append(Finding("file size", FAILS if file < _MIB else LOST, text, "ulimit -f unlimited"))
    return found or [Finding("sizes", OK, "neither address space nor files are limited")]


def _free(directory: str) -> int:
    figures = os.statvfs(directory)
    return figures.f_bavail * figures.f_frsize


_ELSEWHERE = "jmassif -o DIRECTORY/jmassif.out.%p"


def check_room(machine: Machine) -> Findings:
    """Free space for the trace. A directory that cannot be written is the recorder's own error."""
    directory, pattern = os.path.dirname(machine.trace) or ".", machine.trace
    if "%" in directory or (os.path.exists(pattern) and not os.path.isfile(pattern)):
        return []  # an environment variable, or a pipe
    try:
        free = _free(directory)
    except OSError:
        return []
    where = "the current directory" if directory == "." else directory
    if free < _TRACE:
        text = f"{size(free)} free in {where}: the trace may be cut off"
        return [Finding("trace", FAILS if free < _MIB else LOST, text, _ELSEWHERE)]
    return ok("trace", f"{size(free)} free in {where}")


def _write_error(directory: str) -> str:
    try:
        with tempfile.TemporaryFile(dir=directory):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def check_directory(machine: Machine) -> Findings:
    """The current directory, where the trace goes."""
    error = _write_error(os.getcwd())
    if error:
        return fails("trace", f"the current directory cannot be written: {error}", _ELSEWHERE)
    return check_room(machine)


def check_temporary(machine: Machine) -> Findings:
    """Valgrind does not start without a directory for its pipes."""
    directory = machine.environment.get("TMPDIR") or "/tmp"
    error = _write_error(directory)
    if error:
        text = f"{directory} cannot be written ({error}), and Valgrind does not start without"
        return fails("temporary", text, "export TMPDIR=DIRECTORY")
    return ok("temporary", f"{directory} can be written")


# ---- memory ----
# Memory that is available, against that which a program needs under Valgrind.

# Memory of a process under jmassif before it does anything, docs/performance.md: a C program, Python, a script that
# imports PyTorch 1.13 (with --low-footprint=yes), by the newest core.
_PLAIN, _PYTHON, _TORCH, _TORCH_LOW = 40 * _MIB, 64 * _MIB, 387 * _MIB, 289 * _MIB

_USES_TORCH = re.compile(r"^\s*(?:import|from)\s+(?:torch|ultralytics|transformers|torchvision)\b", re.MULTILINE)

# Processes of a desktop, as the kernel names them (at most 15 characters).
_DESKTOP = """
Xorg Xwayland gnome-shell gnome-session-b gdm-x-session compiz unity-settings- lxpanel lxsession pcmanfm
openbox nautilus gnome-software update-manager xfce4-session xfdesktop plasmashell kwin_x11 nautilus-deskto
unity-panel-ser hud-service evolution-calen chromium chromium-browse firefox
""".split()
_STOP_DESKTOP = "sudo systemctl isolate multi-user.target (and graphical.target to have it back)"


# Versions of control groups: mount point, limit, usage.
_GROUPS = {
    "": ("/sys/fs/cgroup", "memory.max", "memory.current"),
    "memory": ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
}


def _own_groups(machine: Machine) -> Iterator[Tuple[str, str, str]]:
    """For each control group that this process is in, from its own to the outermost: its directory, limit and use."""
    for line in [*machine.text("/proc/self/cgroup").splitlines(), "0::/", "1:memory:/"]:
        controllers, _, path = line.partition(":")[2].partition(":")
        for mounted, limit, used in (_GROUPS[name] for name in controllers.split(",") if name in _GROUPS):
            names = [name for name in path.split("/") if name]
            for depth in range(len(names), -1, -1):
                yield "/".join([mounted, *names[:depth]]), limit, used


def _cgroup_left(machine: Machine) -> Dict[str, int]:
    """Free bytes by name of the limit, of both versions of control groups. In a container they are mounted as if
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
    """Available memory, against that which the program needs."""
    figures = machine.labelled_bytes("/proc/meminfo")
    if "MemTotal" not in figures:
        text = "/proc/meminfo cannot be read: reports will not have the machine's memory beside the program's"
        return lost("memory", text)
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
    """Swap, for when memory ends."""
    figures = machine.labelled_bytes("/proc/meminfo")
    total = figures.get("SwapTotal", 0)
    if not total:
        mend = "sudo fallocate -l 4G /swapfile && sudo chmod 600 /swapfile && sudo mkswap /swapfile && sudo swapon /swapfile"
        if "MemTotal" in figures and figures["MemTotal"] > 9 << 30:
            return ok("swap", "none")
        return lost("swap", "none: a program that outgrows the memory is killed at once", mend)
    areas = [line.split()[0] for line in machine.text("/proc/swaps").splitlines()[1:] if line.split()]
    kind = ", ".join(areas[:3]) or "on disk"
    return ok("swap", f"{size(figures.get('SwapFree', 0))} of {size(total)} free, {kind}")


def check_overcommit(machine: Machine) -> Findings:
    """Strict overcommit refuses mappings that are never touched: Valgrind makes large ones."""
    mode = machine.text("/proc/sys/vm/overcommit_memory").strip()
    if mode != "2":
        return ok("overcommit", f"vm.overcommit_memory is {mode or 'not known'}")
    figures = machine.labelled_bytes("/proc/meminfo")
    left = figures.get("CommitLimit", 0) - figures.get("Committed_AS", 0)
    text = (
        f"vm.overcommit_memory is 2: what is mapped counts in full, touched or not, and {size(max(0, left))} are left"
    )
    return [Finding("overcommit", FAILS if left < 256 * _MIB else LOST, text, "sudo sysctl vm.overcommit_memory=0")]


def check_desktop(machine: Machine) -> Findings:
    """A desktop session takes memory that host and device share."""
    taken: Dict[str, int] = {}
    for pid in filter(str.isdigit, machine.names("/proc")):
        name = machine.text(f"/proc/{pid}/comm").strip()
        words = machine.text(f"/proc/{pid}/statm").split() if name in _DESKTOP else []
        if len(words) >= 3:
            own = (int(words[1]) - int(words[2])) * 4096  # resident, less what is shared
            taken[name] = taken.get(name, 0) + max(0, own)
    if not taken:
        return ok("desktop", "no desktop session")
    largest = sorted(taken, key=lambda name: -taken[name])
    named = ", ".join(f"{name} {size(taken[name])}" for name in largest[:3])
    text = f"a session takes {size(sum(taken.values()))}: {named}"
    return lost("desktop", text, _STOP_DESKTOP) if sum(taken.values()) > 32 * _MIB else ok("desktop", text)


# ---- processor ----
# Instructions of the processor that Valgrind lacks. Libraries choose their code by what they find, some by asking the kernel past
# Valgrind, and an instruction that it does not know ends the program.

Version = Tuple[int, ...]
_NEVER: Version = (99,)


# Flags of /proc/cpuinfo: a name, and the release of Valgrind that knows the instructions, by Valgrind's NEWS.
_ARM64 = {
    "atomics": ("atomics (LSE)", (3, 15)),
    "asimddp": ("dot products", (3, 23)),
    "asimdhp": ("half precision", _NEVER),
    "i8mm": ("8-bit matrices", _NEVER),
    "bf16": ("bfloat16", _NEVER),
    "sve": ("SVE", _NEVER),
}
_AMD64 = {"avx512f": ("AVX-512", _NEVER), "amx_tile": ("AMX", _NEVER)}
# Variables that keep libraries from choosing by themselves: OpenBLAS (NumPy), PyTorch, OpenSSL.
_VARIABLES: Dict[str, str] = {"OPENBLAS_CORETYPE": "ARMV8", "ATEN_CPU_CAPABILITY": "default", "OPENSSL_armcap": "0"}


def check_processor(machine: Machine, valgrind: Version) -> Findings:
    """`valgrind` is the release that runs the program."""
    flags = re.search(r"^(Features|flags)\s*:(.*)", machine.text("/proc/cpuinfo"), re.MULTILINE)
    label, present = (flags.group(1), flags.group(2).split()) if flags else ("flags", [])
    table = _ARM64 if label == "Features" else _AMD64
    lacking = [shown for name, (shown, since) in table.items() if name in present and valgrind < since]
    if not lacking:
        return ok("processor", "has nothing that libraries ask for and Valgrind lacks")
    what = ", ".join(lacking)
    if table is _AMD64:
        # Valgrind answers cpuid itself, so libraries do not choose these.
        text = f"{what}: hidden from programs; one that was compiled for it (-march=native) ends with an illegal instruction"
        return ok("processor", text)
    missing = {name: value for name, value in _VARIABLES.items() if machine.environment.get(name) != value}
    text = f"Valgrind {'.'.join(map(str, valgrind))} lacks what it can do: {what}; a library that uses it ends with an illegal instruction"
    if not missing:
        return ok("processor", text + "; the variables that keep libraries from it are set")
    mend = "if so: export " + " ".join(f"{name}={value}" for name, value in missing.items())
    if "dot products" in lacking:
        mend += "; Valgrind 3.23 or later has them"
    return lost("processor", text, mend)


# ---- software ----
# The recorder, the interpreter, PyTorch, and the symbols of the C library: what there is, and whether they know each other.

_PLATFORMS = {"x86_64": "amd64-linux", "aarch64": "arm64-linux"}
_PYTHONS = ((3, 6), (3, 15))  # the recorder reads frames of these
_SLOW_S = 120  # a small board takes some seconds


_Answer = Tuple[int, str]  # the status of a command that was run, and both its streams


def _ask(command: Sequence[str], machine: Machine) -> _Answer:
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
        return 127, f"{command[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return 124, f"no end after {_SLOW_S} s"
    return done.returncode, done.stdout.decode("utf-8", "replace")


def _missing(machine: Machine) -> str:
    """The first file that the recorder needs and is not there."""
    platform = _PLATFORMS.get(os.uname().machine, os.uname().machine)
    names = (f"jmassif-{platform}", f"vgpreload_jmassif-{platform}.so", f"vgpreload_core-{platform}.so")
    paths = (os.path.join(machine.tools, name) for name in names)
    return next((path for path in paths if not os.path.exists(path)), "")


def _recorder(machine: Machine) -> Tuple[List[str], Machine]:
    """The command that starts the recorder, and a machine with the environment for it."""
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
    found = re.search(r"valgrind-(\d+(?:\.\d+)*)", _ask([*command, "--version"], started)[1])
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
        status, output = _ask([*command, f"--jmassif-out-file={trace}", machine.which("true") or "/bin/true"], started)
        if status or not os.path.exists(trace):
            lines = [line for line in re.sub(r"(?m)^==\d+== ?", "", output).splitlines() if line.strip()]
            said = lines[-1].strip() if lines else f"status {status}"
            return fails("Valgrind", f"{version or 'of no known release'}, {where}, does not record a program: {said}")
    return ok("Valgrind", f"{version}, {where}")


# The interpreter describes itself, a line each. Torch is found, not imported, which takes seconds.
_INTERVIEW = """
import sys, sysconfig, importlib.util
print("%d.%d.%d" % sys.version_info[:3])
print(sys.implementation.name)
print(sysconfig.get_platform())
print(sys.executable)
found = importlib.util.find_spec("torch")
print(found.origin if found and found.origin else "")
"""


def check_python(machine: Machine) -> Findings:
    """The interpreter that is profiled, and PyTorch in it."""
    if not machine.python:
        return ok("Python", "there is none; programs that need none are recorded, and read elsewhere")
    status, output = _ask([machine.python, "-c", _INTERVIEW], machine)
    lines = output.splitlines()
    if status or len(lines) < 5:
        said = lines[-1] if lines else f"status {status}"
        return fails("Python", f"{machine.python} does not run: {said}")
    version, name, platform, executable, torch = lines[-5:]
    found = _interpreter(version, name, platform, executable)
    if torch:
        found += _torch(machine, os.path.dirname(torch))
    return found


def _interpreter(version: str, name: str, platform: str, executable: str) -> Findings:
    here, text = os.uname().machine, f"{version}, {executable}"
    if platform != f"linux-{here}":
        return fails("Python", f"{text}, is for {platform}, and the recorder for {here}", f"a Python for {here}")
    number = tuple(int(part) for part in version.split(".")[:2])
    if name != "cpython" or not _PYTHONS[0] <= number <= _PYTHONS[1]:
        known = " to ".join(".".join(map(str, each)) for each in _PYTHONS)
        return lost("Python", f"{text}: no lines of Python in stacks, which are read of CPython {known}")
    return ok("Python", text)


def _torch(machine: Machine, package: str) -> Findings:
    """Its version, and whether its allocator reports by a function that is wrapped."""
    found = re.search(
        r"^__version__ *(?::.*)?= *['\"]([^'\"]+)", _read(os.path.join(package, "version.py")), re.MULTILINE
    )
    version = found.group(1) if found else ""
    text = f"{version or 'of no known version'}, {package}"
    libraries = glob.glob(os.path.join(package, "lib", "libc10.so")) + glob.glob("/usr/lib/*/libc10.so*")
    if not libraries:
        return lost("PyTorch", f"{text}: there is no libc10.so: tensors count as its cache")
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


# ---- checks ----

Check = Callable[[Machine], Findings]

# They read a few files of the kernel and start nothing.
_QUICK: Tuple[Check, ...] = (check_memory, check_open_files, check_nodes, check_sizes, check_temporary, check_room)


def _check_processor(machine: Machine) -> Findings:
    return check_processor(machine, valgrind_version(machine))


# In the order in which people read them. The first two start Valgrind and the interpreter, which takes a second or two.
_ALL: Tuple[Check, ...] = (
    *(check_valgrind, check_python, check_board, check_nodes, _check_processor),
    *(check_memory, check_swap, check_overcommit, check_desktop),
    *(check_open_files, check_sizes, check_directory, check_temporary, check_kernel, check_ptrace),
)


def all_findings(machine: Machine) -> Findings:
    return [finding for check in _ALL for finding in check(machine)]


def urgent_findings(machine: Machine) -> Findings:
    """Findings that would spoil the recording that is about to begin, the worst first."""
    found = [finding for check in _QUICK for finding in check(machine) if finding.state != OK]
    return sorted(found, key=lambda finding: finding.state != FAILS)
