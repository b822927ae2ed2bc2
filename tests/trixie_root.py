# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs commands in the roots that trixie-root.sh makes."""

import subprocess
from pathlib import Path
from typing import Mapping, Sequence

SOURCES = Path(__file__).resolve().parents[1]
_ENTER = (
    'mount --bind "$1" "$2/src" && mount -t proc proc "$2/proc" && mount --bind /dev "$2/dev" && '
    'root=$2 && shift 2 && exec chroot "$root" "$@"'
)


def run_inside(
    root: Path, command: Sequence[str], variables: Mapping[str, str], seconds: float, launcher: Sequence[str] = ()
) -> "subprocess.CompletedProcess[str]":
    """A command with variables more, in mounts of its own, with the sources in /src; `launcher` starts it all."""
    words = [*launcher, "env", *(f"{name}={value}" for name, value in variables.items()), *command]
    return subprocess.run(
        ["unshare", "--mount", "bash", "-c", _ENTER, "-", str(SOURCES), str(root), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        timeout=seconds,
    )
