# SPDX-License-Identifier: GPL-2.0-or-later
"""What tells one run from all others in a fleet, and what it is to be found by: host, board, JetPack, process."""

import hashlib
from typing import List, Tuple

from jmassif.model.profile import Profile
from jmassif.questions.facts import jetpack

# Manifest keys by which a run is told from others. A program that has called exec keeps its process, and has a new start.
_KEYS = ("host", "process", "pid", "start-unix-ms", "command")


def run_id(profile: Profile) -> str:
    """32 hexadecimal digits: the same for each reading of a run's trace, also before and after it was complete.

    A trace whose manifest does not tell when it was recorded goes by what it holds.
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
