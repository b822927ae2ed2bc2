# SPDX-License-Identifier: GPL-2.0-or-later
"""The run itself: program, machine, software and end; its identity in a fleet; and the recorder's counters.

Objects of the kernel's driver without a size are as they should be on any board, so they stand apart from other counters.
"""

import hashlib
import re
import shlex
from collections import defaultdict
from signal import Signals
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, TypeVar

from jmassif.model.records import ALLOCATED, PEAKS
from jmassif.model.run import Profile
from jmassif.units import moment, printable, size


# ---- about ----
# Facts at the head of a report: the program, its machine and its end.


def _row(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def how_ended(profile: Profile) -> str:
    """exit, signal, end (of a recording that the program stopped), exec (became another program), dismissed (by its parent), cut (the trace is), running or unknown."""
    if profile.was_dismissed:
        return "dismissed"
    if profile.truncation:
        return "cut"
    if profile.end is None:
        return "exec" if profile.is_complete else "running" if profile.is_running else "unknown"
    return profile.end.reason


def ending(how: str, code: int) -> str:
    """ "exit status 0", "killed by signal 9 (SIGKILL)" """
    if how == "signal":
        name = next((f" ({known.name})" for known in Signals if known.value == code), "")
        return f"killed by signal {code}{name}" if code else "killed by a signal"
    return {
        "exec": "became another program (exec)",
        "end": "the program stopped the recording",
        "dismissed": "ended by its parent (SIGTERM)",
        "cut": "the trace is cut off",
        "running": "still running",
        "unknown": "no end record: killed, or still running",
    }.get(how, f"exit status {code}")


def ending_of(profile: Profile) -> str:
    return ending(how_ended(profile), profile.end.code if profile.end else 0)


def _peaks(profile: Profile) -> str:
    texts = []
    for which in PEAKS + (ALLOCATED,):
        peak = profile.peaks.get(which)
        if not peak or (which == "total" and profile.is_discrete):
            continue
        n_bytes = profile.allocated_bytes(peak.by_kind) if which == ALLOCATED else peak.bytes
        if n_bytes:
            texts.append(f"{which} {size(n_bytes)} at {moment(peak.time, profile.time_unit)}")
    return "; ".join(texts)


def recorder(profile: Profile) -> str:
    """ "native" or "valgrind"; "" if the trace does not say. Old traces only name Valgrind's version."""
    return profile.manifest.get("recorder") or ("valgrind" if profile.manifest.get("valgrind") else "")


def has_arenas(profile: Profile) -> bool:
    """It ran Python, whose small objects lie in arenas, and not each in a block of malloc's."""
    return bool(profile.manifest.get("python")) and not profile.manifest.get("env.PYTHONMALLOC", "").startswith(
        "malloc"
    )


def is_free_threaded(profile: Profile) -> bool:
    """Its Python has an allocator of its own for objects of all sizes, and refuses PYTHONMALLOC=malloc."""
    return profile.manifest.get("python", "").endswith("t")


def recorded(profile: Profile) -> str:
    """ "recorded natively", "recorded below Valgrind 3.24" """
    version = profile.manifest.get("valgrind", "")
    known = {"native": "recorded natively", "valgrind": f"recorded below Valgrind {version}".rstrip()}
    return known.get(recorder(profile), "")


STATIC = "not seen, since the program is linked statically"


def unseen_heap(profile: Profile) -> str:
    """STATIC, or "not recorded" by the user's choice; "" if the trace has the heap. Of a static program Valgrind, which
    replaces malloc in libraries, has seen one object, without a name of its own."""
    if profile.manifest.get("option.heap") == "no":
        return "not recorded"
    is_static = profile.objects and not any(each.soname for each in profile.objects)
    return STATIC if is_static and recorder(profile) == "valgrind" else ""


_NATIVE = (
    "native: it does not see raw system calls, nor an allocator that has other names than malloc's;"
    " of static programs that the program starts, it records nothing"
)


def about(profile: Profile) -> List[Tuple[str, str]]:
    """(name, fact) of what the trace has."""
    manifest = profile.manifest

    def known(form: str, key: str) -> str:
        return form.format(manifest[key]) if manifest.get(key) else ""

    memory = {
        "unified": "unified: host and device share the same memory and add up",
        "discrete": "discrete: host and device are two pools, not to be added up",
    }
    start = known("{}", "start"), known("pid {}", "pid"), known("forked from {}", "forked-from")
    release = jetpack(profile) and f"JetPack {jetpack(profile)}"
    board = known("{}", "board"), release, known("L4T {}", "l4t"), known("{}", "arch"), known("{} CPUs", "cpus")
    duration = moment(profile.last_time, profile.time_unit) if profile.end or profile.timeline.time else ""
    ram = f"{_installed_memory(profile)} of memory" if profile.number("mem-total-bytes") is not None else ""
    software = known("Python {}", "python"), known("PyTorch {}", "pytorch")
    recorders = known("jmassif {}", "jmassif"), known("Valgrind {}", "valgrind")
    by_key = sorted(pair for pair in manifest.items() if pair[0] not in OF_RANK)
    rows = [
        ("Command", manifest.get("command", "")),
        ("Run", _row(*start, duration, ending_of(profile))),
        ("Rank", _rank_row(profile)),
        ("Machine", _row(*board, ram, known("Linux {}", "kernel"))),
        ("Software", _row(*software, *recorders)),
        ("Recorder", _NATIVE if recorder(profile) == "native" else ""),
        ("Packages", _row(*(f"{key[8:]} {text}" for key, text in by_key if key.startswith("package.") and text))),
        ("Environment", _row(*(f"{key[4:]}={text}" for key, text in by_key if key[:4] == "env."))),
        ("Memory", memory.get(manifest.get("memory", ""), "") if any(profile.timeline.device) else ""),
        ("Peaks", _peaks(profile)),
        ("Stopped", manifest.get("stopped", "")),
        ("Truncated", profile.truncation or ""),
    ]
    return [(name, text) for name, text in rows if text]


class Rank(NamedTuple):
    """The place of a process in a distributed job."""

    number: int
    world: int  # how many ranks the job has
    local: str  # number on its machine; "" if not on record
    job: str  # likewise


# Variables of launchers, for number, world, local and job. torchrun's are first: Slurm or MPI may have started torchrun itself.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_JOB_ID"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "SLURM_JOB_ID"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_JOB_ID"),
)
OF_RANK = tuple(f"env.{name}" for names in _LAUNCHERS for name in names)


def ranks_of(profiles: Sequence[Profile]) -> List[Optional[Rank]]:
    """The ranks of a job's processes, all by the same launcher's variables. A job of one process has none."""
    for names in _LAUNCHERS:
        texts = [[profile.manifest.get(f"env.{name}", "") for name in names] for profile in profiles]
        found = [
            Rank(int(number), int(world), local, job)
            if re.fullmatch(r"[0-9]{1,9} [0-9]{1,9}", f"{number} {world}") and int(number) < int(world) > 1
            else None
            for number, world, local, job in texts
        ]
        if any(found):
            return found
    return [None] * len(profiles)


def _rank_row(profile: Profile) -> str:
    (rank,) = ranks_of([profile])
    if rank is None:
        return ""
    local, host = rank.local and f"local rank {rank.local}", profile.manifest.get("host", "")
    return _row(f"{rank.number} of {rank.world}", local, rank.job and f"job {rank.job}", host and f"on {host}")


_INTERPRETERS = ("python", "pypy")
_MOST_SPLIT = 4096
_MOST_NAME = 60  # characters


def short_command(command: str) -> str:
    """ "/usr/bin/python3 /a/train.py --device=sim" → "train.py --device=sim" """
    command = command[:_MOST_SPLIT]  # shlex takes seconds for a word of a megabyte
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    is_script = len(words) > 1 and words[0].rpartition("/")[2].startswith(_INTERPRETERS) and words[1][:1] != "-"
    words = words[1:] if is_script else words
    text = printable(" ".join([word.rpartition("/")[2] for word in words[:1]] + words[1:]))
    return text if len(text) <= _MOST_NAME else f"{text[:_MOST_NAME - 1]}…"


def is_pytorch(profile: Profile) -> bool:
    return "pytorch" in profile.manifest or any("libc10_cuda" in loaded.path for loaded in profile.objects)


def was_short(profile: Profile) -> Optional[int]:
    """When the recorder first found memory short; None if it never did."""
    return next((snapshot.time for snapshot in profile.snapshots if snapshot.reason == "low-memory"), None)


def used_sides(profile: Profile) -> List[str]:
    """The pools that ever held anything; the host's if none did."""

    def is_used(side: str) -> bool:
        return any(getattr(profile.timeline, side)) or any(getattr(peak, side) for peak in profile.peaks.values())

    return [side for side in ("host", "device") if is_used(side)] or ["host"]


# ---- facts ----
# The software and the machine of a run, as people name them: JetPack 5.1.2, CUDA 11.4, cuDNN 8.6.
#
# The trace has the release of L4T (Jetson Linux), the packages that are installed, and the files of the libraries that
# the program loaded. What was loaded counts before what is installed: a wheel brings libraries of its own.

# NVIDIA's names for releases of Jetson Linux, as its "JetPack Archive" has them: taken from the tables that public projects keep
# of it, such as those of jetson_stats and jetson-containers.
JETPACKS = dict(
    row.split(": ")
    for row in (
        "32.3.1: 4.3, 32.4.3: 4.4, 32.4.4: 4.4.1, 32.5: 4.5, 32.5.1: 4.5.1, 32.6.1: 4.6, 32.7.1: 4.6.1, 32.7.2: 4.6.2, "
        "32.7.3: 4.6.3, 32.7.4: 4.6.4, 32.7.5: 4.6.5, 32.7.6: 4.6.6, 34.1: 5.0 DP, 34.1.1: 5.0.1 DP, "
        "35.1: 5.0.2, 35.2.1: 5.1, 35.3.1: 5.1.1, 35.4.1: 5.1.2, 35.5: 5.1.3, 35.6: 5.1.4, 35.6.1: 5.1.5, "
        "36.2: 6.0 DP, 36.3: 6.0, 36.4: 6.1, 36.4.3: 6.2, 36.4.4: 6.2.1, 36.4.7: 6.2.1, 36.5: 6.2.2, "
        "38.2: 7.0, 38.2.1: 7.0, 38.4: 7.1, 39.2: 7.2, 39.2.1: 7.2.1"
    ).split(", ")
)


def jetpack_of(release: str, package: str) -> str:
    """ "5.1.2", "" where that is not known. The package nvidia-jetpack is not always installed."""
    release = release[:-2] if release.count(".") == 2 and release.endswith(".0") else release
    return JETPACKS.get(release) or package.partition("-")[0]


def jetpack(profile: Profile) -> str:
    return jetpack_of(profile.manifest.get("l4t", "").strip(), profile.manifest.get("package.nvidia-jetpack", ""))


# NVIDIA's libraries: the soname, and a pattern of the manifest's keys.
_LIBRARIES = {
    "cuda": ("libcudart", r"package\.cuda-cudart-\d+-\d+"),
    "cudnn": ("libcudnn", r"package\.libcudnn\d+(?:-cuda-\d+)?"),
    "cublas": ("libcublas", r"package\.libcublas(?:-?\d+(?:-\d+)?)?"),
    "tensorrt": ("libnvinfer", r"package\.libnvinfer\d+"),
}


def _loaded_version(profile: Profile, soname: str) -> str:
    """The version in the file's name, at its most exact: libcudnn.so.8.6.0 → "8.6.0"."""
    pattern = re.compile(re.escape(soname) + r"(?:-[0-9a-f]{8})?\.so\.(\d+(?:\.\d+)*)")
    names = (name for loaded in profile.objects for name in (loaded.path.rpartition("/")[2], loaded.soname))
    return max((match.group(1) for match in map(pattern.fullmatch, names) if match), key=len, default="")


def _package_version(profile: Profile, pattern: str) -> str:
    """8.6.0.166-1+cuda11.4 → "8.6.0.166"; of several packages the newest."""
    keys = [key for key in profile.manifest if re.fullmatch(pattern, key)]
    versions = [re.sub(r"^\d+:|[-+~].*", "", profile.manifest[key]) for key in keys]
    return max(versions, key=version_order, default="")


def _library(profile: Profile, name: str) -> str:
    soname, packages = _LIBRARIES[name]
    loaded, installed = _loaded_version(profile, soname), _package_version(profile, packages)
    # Sonames from CUDA 11 on have the major version alone, written as 11.0. The package has more, unless it is
    # of another version than what was loaded.
    major = loaded[: -len(".0")] if loaded.endswith(".0") and loaded.count(".") == 1 else loaded
    return installed if not loaded or ("." not in major and installed.split(".")[0] == major) else major


def _installed_memory(profile: Profile) -> str:
    total = profile.number("mem-total-bytes")
    return "" if total is None else size(total)


# Names of facts, in the order of a header. Those that have no function are the manifest's.
_NAMES = {
    "command": "Command",
    "jetpack": "JetPack",
    "l4t": "L4T",
    "board": "Board",
    "host": "Host",
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "cublas": "cuBLAS",
    "tensorrt": "TensorRT",
    "pytorch": "PyTorch",
    "python": "Python",
    "memory": "Memory",
    "mem-total-bytes": "RAM",
    "cpus": "CPUs",
    "arch": "Architecture",
    "kernel": "Linux",
    "jmassif": "jmassif",
    "recorder": "Recorder",
    "valgrind": "Valgrind",
}

# Packages that other facts are read from, or that say the same once more.
_REDUNDANT = re.compile(
    "|".join([packages for _, packages in _LIBRARIES.values()] + [r"package\.nvidia-(?:jetpack|l4t-.*)"])
)


def is_redundant(key: str) -> bool:
    """True for a fact that others imply."""
    return bool(_REDUNDANT.fullmatch(key))


# Facts of one run alone: they always differ, or mean nothing elsewhere.
_OF_ONE_RUN = ("process", "pid", "ppid", "start", "start-unix-ms", "cwd", "user", "forked-from", *OF_RANK)
_PREFIXES = (("option.", "--"), ("env.", ""), ("package.", "package "))


def label(key: str) -> str:
    """The name of a fact in a report: "JetPack", "--depth", "CUDA_VISIBLE_DEVICES"."""
    if key in _NAMES:
        return _NAMES[key]
    for prefix, shown in _PREFIXES:
        if key.startswith(prefix):
            return shown + key[len(prefix) :]
    return key


def fact(profile: Profile, key: str) -> str:
    """A fact by its key: one of those above, or any key of the manifest; "" if it is not known."""
    if key in _LIBRARIES:
        return _library(profile, key)
    found = {"jetpack": jetpack, "mem-total-bytes": _installed_memory, "recorder": recorder}.get(key)
    return found(profile) if found else profile.manifest.get(key, "")


def facts(profile: Profile) -> Dict[str, str]:
    """All facts of a run that can be compared with another's, in the order in which a report lists them."""
    found = {key: fact(profile, key) for key in _NAMES}
    for key in sorted(profile.manifest, key=_rank):
        if key not in _OF_ONE_RUN:
            found.setdefault(key, profile.manifest[key])
    return found


def _rank(key: str) -> Tuple[int, str]:
    """Options and the environment before packages, of which there are many."""
    return (next((rank for rank, (prefix, _) in enumerate(_PREFIXES) if key.startswith(prefix)), -1), key)


_Part = Tuple[int, int, str]


def version_order(text: str) -> List[_Part]:
    """A key to sort versions by: 4.6.1 before 5.0 DP before 5.0 before 5.0.2 before 10.2."""
    found = re.findall(r"(\d+)|([^\d.]+)", text)
    return [(1, int(number), "") if number else (-1, 0, words) for number, words in found] + [(0, 0, "")]


_Run = TypeVar("_Run")
# Values of these need the fact's name.
_VERSIONS = ("jetpack", "l4t", "cuda", "cudnn", "cublas", "tensorrt", "pytorch", "python", "jmassif", "valgrind")
_MAX_CHOICES = 12


def grouped_by(key: str, runs: Sequence[_Run], value_of: Callable[[_Run], str]) -> List[Tuple[str, str, List[_Run]]]:
    """Each value of a fact in the order of versions, a label for it that is safe to show, and the runs that have it."""
    found: Dict[str, List[_Run]] = defaultdict(list)
    for run in runs:
        found[value_of(run)].append(run)
    name = f"{label(key)} " if key in _VERSIONS or key.startswith("package.") else ""
    values = sorted(found, key=lambda value: (value != "", version_order(value), value))
    return [(value, printable(f"{name}{value}") if value else "unknown", found[value]) for value in values]


def suggestions(key: str, known: Sequence[str]) -> str:
    """Known keys that are like an unknown one; if none is, the first ones."""
    import difflib

    near = difflib.get_close_matches(key, known, 5, 0.5) or known[:_MAX_CHOICES]
    return ", ".join(map(printable, near))


# ---- identity ----
# The identity of a run in a fleet, and labels to find it by: host, board, JetPack, process.


def run_id(profile: Profile) -> str:
    """32 hexadecimal digits: the same for each reading of a run's trace, also before and after it was complete.

    A program that has called exec keeps its process, and has a new start; a trace without its start goes by what it holds.
    """
    manifest = profile.manifest
    facts = [manifest.get(key, "") for key in ("host", "process", "pid", "start-unix-ms", "command")]
    if not manifest.get("start-unix-ms"):
        facts += [repr(sorted(manifest.items())), repr([snapshot[:4] for snapshot in profile.snapshots])]
    text = "\n".join(facts).encode("utf-8", "surrogateescape")
    return hashlib.sha256(text).hexdigest()[:32]


def labels_of_run(profile: Profile) -> List[Tuple[str, str]]:
    """(name, text) of what is known."""
    manifest = profile.manifest
    labels = [(key, manifest.get(key, "")) for key in ("host", "board")] + [("jetpack", jetpack(profile))]
    labels += [("l4t", manifest.get("l4t", "")), ("process", manifest.get("pid", "")), ("run", run_id(profile))]
    return [(name, text) for name, text in labels if text]


# ---- counters ----

# The noun of each counter.
_WITHOUT_SIZE = {
    "driver-address-spaces": "GPU address space",
    "driver-channels": "GPU channel",
    "driver-rm-channels": "GPU channel",
    "driver-objects-without-size": "other object",
}


class Counted(NamedTuple):
    odd: List[Tuple[str, int]]  # counters by name; those that end in -bytes are of bytes
    without_size: List[Tuple[str, int]]  # noun, and how many there were when they were last recorded


def counted(profile: Profile) -> Counted:
    counters = [(key, n) for key, n in sorted(profile.counters.items()) if n]
    without: Dict[str, int] = defaultdict(int)
    for key in filter(_WITHOUT_SIZE.__contains__, dict(counters)):
        without[_WITHOUT_SIZE[key]] += profile.counters[key]
    return Counted([row for row in counters if row[0] not in _WITHOUT_SIZE], list(without.items()))
