# SPDX-License-Identifier: GPL-2.0-or-later
"""The software and the machine of a run, as people name them: JetPack 5.1.2, CUDA 11.4, cuDNN 8.6.

The trace tells the release of L4T (Jetson Linux), the packages that are installed, and the files of the libraries that
the program loaded. What was loaded counts before what is installed: a wheel brings libraries of its own.
"""

import re
from collections import OrderedDict
from typing import Callable, Dict, List, Mapping, NamedTuple, Tuple

from jmassif.model.profile import Profile
from jmassif.units import size

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
    """Of the file's name, at its most exact: libcudnn.so.8.6.0 → "8.6.0"."""
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
        # Sonames from CUDA 11 on tell the major version alone, and write it as 11.0. The package tells more, unless it is
        # of another version than what was loaded.
        major = loaded[: -len(".0")] if loaded.endswith(".0") and loaded.count(".") == 1 else loaded
        if not loaded or ("." not in major and installed.split(".")[0] == major):
            return installed
        return major

    return version


def _manifest(key: str) -> Callable[[Profile], str]:
    return lambda profile: profile.manifest.get(key, "")


def _memory_of_machine(profile: Profile) -> str:
    total = profile.number("mem-total-bytes")
    return "" if total is None else size(total)


# By key: what to call it, and how it is found. What is first here stands first in a header.
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
        ("mem-total-bytes", ("RAM", _memory_of_machine)),
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


def is_told_by_others(key: str) -> bool:
    """Whether a report that has the other facts can do without this one."""
    return bool(_TOLD_BY_OTHERS.fullmatch(key))


# Of one run alone: they always differ, or mean nothing elsewhere.
_OF_ONE_RUN = ("process", "pid", "ppid", "start", "start-unix-ms", "cwd", "user", "forked-from")
_PREFIXES = (("option.", "--"), ("env.", ""), ("package.", "package "))


def label(key: str) -> str:
    """What to call a fact in a report: "JetPack", "--depth", "CUDA_VISIBLE_DEVICES"."""
    if key in _FACTS:
        return _FACTS[key][0]
    for prefix, shown in _PREFIXES:
        if key.startswith(prefix):
            return shown + key[len(prefix) :]
    return key


def fact(profile: Profile, key: str) -> str:
    """A fact by its key: one of those above, or any key of the manifest. "" where the trace does not tell."""
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
