# SPDX-License-Identifier: GPL-2.0-or-later
"""What ran, where, and how it ended: the facts at the head of a report."""

from signal import Signals
from typing import List, Tuple

from jmassif.model.kinds import ALLOCATED, PEAKS
from jmassif.model.profile import Profile
from jmassif.units import moment, size


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
    """(name, fact), as the trace has it; what it does not tell is left out."""
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
