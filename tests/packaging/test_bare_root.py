# SPDX-License-Identifier: GPL-2.0-or-later
"""Bundle and package in a bare root of Debian 12, where nothing of ours or of Valgrind is: tests/packaging/in-roots."""

import os
import re
import shutil
from pathlib import Path
from typing import Set

import pytest

from tests.harness import BUILD, ROOT, Run, released, run

SUITE = "bookworm"


def in_root(root: str) -> Run:
    if os.geteuid() != 0:
        pytest.skip("only root can enter a root")
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is not installed")
    released("jmassif-*-*.tar.xz")
    released("jmassif_*_*.deb")
    return run([ROOT / "tests/packaging/in-roots", "--bare", BUILD, root], timeout=600)


def mounted() -> Set[str]:
    """Mount points where in-roots and debootstrap mount."""
    points = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    return {point for point in points if point.startswith("/mnt") or "/roots/" in point}


def test_bundle_and_package_record_and_report_in_a_bare_root_and_purge_leaves_nothing() -> None:
    before = mounted()
    done = in_root(SUITE)
    assert done.returncode == 0, done.stdout + done.stderr
    title, bundle, page, package = done.stdout.splitlines()
    assert title == f"== {SUITE}"
    assert re.fullmatch(r"  bundle: C, Python; C library [\d.]+, Python 3\.11\.\d+, valgrind none", bundle)
    assert int(re.findall(r"^  page: (\d+) bytes$", page)[0]) > 100000
    assert re.fullmatch(r"  package, without valgrind: jmassif .*, Valgrind 3\.27\.1; purge leaves nothing", package)
    assert mounted() == before


def test_a_root_in_which_nothing_runs_is_a_failure_and_leaves_no_mount(tmp_path: Path) -> None:
    before = mounted()
    for directory in ("proc", "dev", "etc"):
        (tmp_path / "roots" / directory).mkdir(parents=True)
    done = in_root(str(tmp_path / "roots"))
    assert done.returncode == 1 and done.stdout == "== roots\n"
    assert mounted() == before and sorted(path.name for path in (tmp_path / "roots").iterdir()) == [
        "dev",
        "etc",
        "proc",
    ]
