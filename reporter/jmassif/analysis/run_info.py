# SPDX-License-Identifier: GPL-2.0-or-later
"""The run itself: program, machine, software and end; its identity in a fleet; and the recorder's counters.

Objects of the kernel's driver without a size are as they should be on any board, so they stand apart from other counters.
"""

import hashlib
import re
from collections import OrderedDict
from signal import Signals
from typing import Callable, Dict, List, Mapping, NamedTuple, Tuple

from jmassif.model.records import ALLOCATED, PEAKS
from jmassif.model.run import Profile
from jmassif.units import moment, size


# ---- about ----
# Facts at the head of a report: the program, its machine and its end.


def _words(profile: Profile, parts: List[Tuple[str, str]]) -> str:
    """ "Python 3.6.9, …" of the manifest keys that are there; a part is (format, key)."""
    found = []
    for form, key in parts:
        if profile.manifest.get(key):
            found.append(form.format(profile.manifest[key]))
    return ", ".join(found)


def _memory_of_machine(profile: Profile) -> str:
    total = profile.number("mem-total-bytes")
    return "" if total is None else f"{size(total)} of memory"


def ending(profile: Profile) -> str:
    """ "exit status 0", "killed by signal 9 (SIGKILL)", …"""
    if not profile.end:
        return "became another program (exec)" if profile.is_complete else "no end on record: killed, or still running"
    if profile.end.reason == "signal":
        code = profile.end.code
        name = next((f" ({known.name})" for known in Signals if known.value == code), "")
        return f"killed by signal {code}{name}" if code else "killed by a signal"
    return f"exit status {profile.end.code}"


def _duration(profile: Profile) -> str:
    times = [profile.end.time] if profile.end else []
    times += profile.timeline.time[-1:].tolist()
    return moment(max(times), profile.time_unit) if times else ""


def _packages(profile: Profile) -> str:
    packages = [
        f"{key[len('package.'):]} {version}"
        for key, version in sorted(profile.manifest.items())
        if key.startswith("package.") and version
    ]
    return ", ".join(packages)


def _peaks(profile: Profile) -> str:
    unit = profile.time_unit
    texts = []
    for which in PEAKS + (ALLOCATED,):
        peak = profile.peaks.get(which)
        if not peak or (which == "total" and profile.is_discrete):
            continue
        n_bytes = {
            "total": peak.host + peak.device,
            "host": peak.host,
            "device": peak.device,
            ALLOCATED: profile.allocated_bytes(peak.by_kind),
        }[which]
        if n_bytes:
            texts.append(f"{which} {size(n_bytes)} at {moment(peak.time, unit)}")
    return "; ".join(texts)


def about(profile: Profile) -> List[Tuple[str, str]]:
    """(name, fact) of what the trace has."""
    manifest = profile.manifest
    memory = {
        "unified": "unified: host and device share the same memory and add up",
        "discrete": "discrete: host and device are two pools, not to be added up",
    }
    has_device = any(profile.timeline.device)
    environment = [f"{k[4:]}={v}" for k, v in sorted(manifest.items()) if k.startswith("env.")]
    rows = [
        ("Command", manifest.get("command", "")),
        (
            "Run",
            ", ".join(
                part
                for part in (
                    _words(
                        profile,
                        [("{}", "start"), ("pid {}", "pid"), ("forked from {}", "forked-from")],
                    ),
                    _duration(profile),
                    ending(profile),
                )
                if part
            ),
        ),
        (
            "Machine",
            ", ".join(
                part
                for part in (
                    _words(profile, [("{}", "board"), ("L4T {}", "l4t"), ("{}", "arch")]),
                    _words(profile, [("{} CPUs", "cpus")]),
                    _memory_of_machine(profile),
                    _words(profile, [("Linux {}", "kernel")]),
                )
                if part
            ),
        ),
        (
            "Software",
            _words(
                profile,
                [
                    ("Python {}", "python"),
                    ("PyTorch {}", "pytorch"),
                    ("jmassif {}", "jmassif"),
                    ("Valgrind {}", "valgrind"),
                ],
            ),
        ),
        ("Packages", _packages(profile)),
        ("Environment", ", ".join(environment)),
        ("Memory", memory.get(manifest.get("memory", ""), "") if has_device else ""),
        ("Peaks", _peaks(profile)),
        ("Stopped", manifest.get("stopped", "")),
        ("Truncated", profile.truncation or ""),
    ]
    return [(name, text) for name, text in rows if text]


def used_sides(profile: Profile) -> List[str]:
    """The pools that ever held anything; the host's if none did."""
    columns = {"host": profile.timeline.host, "device": profile.timeline.device}
    used = [
        side
        for side, column in columns.items()
        if any(column) or any(getattr(peak, side) for peak in profile.peaks.values())
    ]
    return used or ["host"]


def where_arenas_are(profile: Profile) -> str:
    """A sentence on where in the figures a Python program's own objects are; "" for other programs."""
    if not profile.manifest.get("python") or profile.manifest.get("env.PYTHONMALLOC", "").startswith("malloc"):
        return ""
    if profile.has_pages:
        return (
            "Python keeps objects up to 512 bytes in arenas from mmap, unless it is run with PYTHONMALLOC=malloc: the pages of"
            " an arena are anon memory of the line that needed it, so lines and owners can be off by about an arena (1 MiB, before"
            " Python 3.10 256 KiB)."
        )
    return (
        "Objects up to 512 bytes of owners data and python are not in here: Python keeps them in arenas from mmap, unless it is"
        " run with PYTHONMALLOC=malloc."
    )


# ---- facts ----
# The software and the machine of a run, as people name them: JetPack 5.1.2, CUDA 11.4, cuDNN 8.6.
#
# The trace has the release of L4T (Jetson Linux), the packages that are installed, and the files of the libraries that
# the program loaded. What was loaded counts before what is installed: a wheel brings libraries of its own.

# NVIDIA's names for releases of Jetson Linux, as its "JetPack Archive" has them: taken from the tables that public projects keep
# of it, such as those of jetson_stats and jetson-containers.
JETPACKS = {
    "32.3.1": "4.3",
    "32.4.3": "4.4",
    "32.4.4": "4.4.1",
    "32.5": "4.5",
    "32.5.1": "4.5.1",
    "32.6.1": "4.6",
    "32.7.1": "4.6.1",
    "32.7.2": "4.6.2",
    "32.7.3": "4.6.3",
    "32.7.4": "4.6.4",
    "32.7.5": "4.6.5",
    "32.7.6": "4.6.6",
    "34.1": "5.0 DP",
    "34.1.1": "5.0.1 DP",
    "35.1": "5.0.2",
    "35.2.1": "5.1",
    "35.3.1": "5.1.1",
    "35.4.1": "5.1.2",
    "35.5": "5.1.3",
    "35.6": "5.1.4",
    "35.6.1": "5.1.5",
    "36.2": "6.0 DP",
    "36.3": "6.0",
    "36.4": "6.1",
    "36.4.3": "6.2",
    "36.4.4": "6.2.1",
    "36.5": "6.2.2",
    "38.2": "7.0",
    "38.2.1": "7.0",
    "38.4": "7.1",
}


def jetpack(profile: Profile) -> str:
    """ "5.1.2", "" where that is not known. The package nvidia-jetpack is not always installed."""
    release = profile.manifest.get("l4t", "").strip()
    release = release[:-2] if release.count(".") == 2 and release.endswith(".0") else release
    return JETPACKS.get(release) or profile.manifest.get("package.nvidia-jetpack", "").partition("-")[0]


class Library(NamedTuple):
    """One of NVIDIA's libraries: where its version is to be found."""

    soname: str  # without the version
    packages: str  # pattern of the manifest's keys


_LIBRARIES = {
    "cuda": Library("libcudart", r"package\.cuda-cudart-\d+-\d+"),
    "cudnn": Library("libcudnn", r"package\.libcudnn\d+"),
    "cublas": Library("libcublas", r"package\.libcublas(?:-?\d+(?:-\d+)?)?"),
    "tensorrt": Library("libnvinfer", r"package\.libnvinfer\d+"),
}


def _loaded_version(profile: Profile, soname: str) -> str:
    """The version in the file's name, at its most exact: libcudnn.so.8.6.0 → "8.6.0"."""
    pattern = re.compile(re.escape(soname) + r"(?:-[0-9a-f]{8})?\.so\.(\d+(?:\.\d+)*)")
    found = [pattern.fullmatch(name) for loaded in profile.objects for name in (_base(loaded.path), loaded.soname)]
    return max((match.group(1) for match in found if match), key=len, default="")


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _package_version(profile: Profile, pattern: str) -> str:
    """8.6.0.166-1+cuda11.4 → "8.6.0.166"; of several packages the newest."""
    keys = [key for key in profile.manifest if re.fullmatch(pattern, key)]
    versions = [re.sub(r"^\d+:|[-+~].*", "", profile.manifest[key]) for key in keys]
    return max(versions, key=version_order, default="")


def _library(name: str) -> Callable[[Profile], str]:
    soname, packages = _LIBRARIES[name]

    def version(profile: Profile) -> str:
        loaded = _loaded_version(profile, soname)
        installed = _package_version(profile, packages)
        # Sonames from CUDA 11 on have the major version alone, written as 11.0. The package has more, unless it is
        # of another version than what was loaded.
        major = loaded[: -len(".0")] if loaded.endswith(".0") and loaded.count(".") == 1 else loaded
        if not loaded or ("." not in major and installed.split(".")[0] == major):
            return installed
        return major

    return version


def _manifest(key: str) -> Callable[[Profile], str]:
    return lambda profile: profile.manifest.get(key, "")


def _installed_memory(profile: Profile) -> str:
    total = profile.number("mem-total-bytes")
    return "" if total is None else size(total)


# Names of facts and the functions that find them, by key, in the order of a header.
_FACTS: Mapping[str, Tuple[str, Callable[[Profile], str]]] = OrderedDict(
    [
        ("command", ("Command", _manifest("command"))),
        ("jetpack", ("JetPack", jetpack)),
        ("l4t", ("L4T", _manifest("l4t"))),
        ("board", ("Board", _manifest("board"))),
        ("host", ("Host", _manifest("host"))),
        ("cuda", ("CUDA", _library("cuda"))),
        ("cudnn", ("cuDNN", _library("cudnn"))),
        ("cublas", ("cuBLAS", _library("cublas"))),
        ("tensorrt", ("TensorRT", _library("tensorrt"))),
        ("pytorch", ("PyTorch", _manifest("pytorch"))),
        ("python", ("Python", _manifest("python"))),
        ("memory", ("Memory", _manifest("memory"))),
        ("mem-total-bytes", ("RAM", _installed_memory)),
        ("cpus", ("CPUs", _manifest("cpus"))),
        ("arch", ("Architecture", _manifest("arch"))),
        ("kernel", ("Linux", _manifest("kernel"))),
        ("jmassif", ("jmassif", _manifest("jmassif"))),
        ("valgrind", ("Valgrind", _manifest("valgrind"))),
    ]
)

# Packages that other facts are read from, or that say the same once more.
_TOLD_BY_OTHERS = re.compile(
    "|".join([library.packages for library in _LIBRARIES.values()] + [r"package\.nvidia-(?:jetpack|l4t-.*)"])
)


def is_redundant(key: str) -> bool:
    """True for a fact that others imply."""
    return bool(_TOLD_BY_OTHERS.fullmatch(key))


# Facts of one run alone: they always differ, or mean nothing elsewhere.
_OF_ONE_RUN = ("process", "pid", "ppid", "start", "start-unix-ms", "cwd", "user", "forked-from")
_PREFIXES = (("option.", "--"), ("env.", ""), ("package.", "package "))


def label(key: str) -> str:
    """The name of a fact in a report: "JetPack", "--depth", "CUDA_VISIBLE_DEVICES"."""
    if key in _FACTS:
        return _FACTS[key][0]
    for prefix, shown in _PREFIXES:
        if key.startswith(prefix):
            return shown + key[len(prefix) :]
    return key


def fact(profile: Profile, key: str) -> str:
    """A fact by its key: one of those above, or any key of the manifest; "" if it is not known."""
    return _FACTS[key][1](profile) if key in _FACTS else profile.manifest.get(key, "")


def facts(profile: Profile) -> Dict[str, str]:
    """All facts of a run that can be compared with another's, in the order in which a report lists them."""
    found = OrderedDict((key, fact(profile, key)) for key in _FACTS)
    for key in sorted(profile.manifest, key=_rank):
        if key not in _OF_ONE_RUN:
            found.setdefault(key, profile.manifest[key])
    return found


def _rank(key: str) -> Tuple[int, str]:
    """Options and the environment before packages, of which there are many."""
    ranks = [number for number, (prefix, _) in enumerate(_PREFIXES) if key.startswith(prefix)]
    return (ranks[0] if ranks else -1, key)


_Part = Tuple[int, int, str]


def version_order(text: str) -> List[_Part]:
    """A key to sort versions by: 4.6.1 before 5.0 DP before 5.0 before 5.0.2 before 10.2."""
    found = re.findall(r"(\d+)|([^\d.]+)", text)
    return [(1, int(number), "") if number else (-1, 0, words) for number, words in found] + [(0, 0, "")]


# ---- identity ----
# The identity of a run in a fleet, and labels to find it by: host, board, JetPack, process.

# Manifest keys that identify a run. A program that has called exec keeps its process, and has a new start.
_KEYS = ("host", "process", "pid", "start-unix-ms", "command")


def run_id(profile: Profile) -> str:
    """32 hexadecimal digits: the same for each reading of a run's trace, also before and after it was complete.

    A trace without its time of recording goes by what it holds.
    """
    facts = [profile.manifest.get(key, "") for key in _KEYS]
    if not profile.manifest.get("start-unix-ms"):
        facts.append(repr(sorted(profile.manifest.items())))
        facts.append(repr([snapshot[:4] for snapshot in profile.snapshots]))
    text = "\n".join(facts).encode("utf-8", "surrogateescape")
    return hashlib.sha256(text).hexdigest()[:32]


def labels_of_run(profile: Profile) -> List[Tuple[str, str]]:
    """(name, text) of what is known."""
    manifest = profile.manifest
    labels = [
        ("host", manifest.get("host", "")),
        ("board", manifest.get("board", "")),
        ("jetpack", jetpack(profile)),
        ("l4t", manifest.get("l4t", "")),
        ("process", manifest.get("pid", "")),
        ("run", run_id(profile)),
    ]
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
    odd = []
    without: Dict[str, int] = {}
    for key, n in sorted(profile.counters.items()):
        if key in _WITHOUT_SIZE:
            without[_WITHOUT_SIZE[key]] = without.get(_WITHOUT_SIZE[key], 0) + n
        elif n:
            odd.append((key, n))
    return Counted(odd, [(noun, n) for noun, n in without.items() if n])
