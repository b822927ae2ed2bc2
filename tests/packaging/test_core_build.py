# SPDX-License-Identifier: GPL-2.0-or-later
"""packaging/valgrind/build with a source that is built in no time: where its result lies, and what it says where."""

import hashlib
import platform
import shutil
import tarfile
from pathlib import Path

import pytest

from tests.harness import ROOT, Run, run

ARCH = platform.machine()
# What is changed is looked for in the source.
HEADERS = {
    "coregrind/pub_core_libcproc.h": '#define VALGRIND_LIB "VALGRIND_LIB"\n',
    "coregrind/m_transtab.c": "#define N_HTTES_PER_SECTOR /*10007*/ 65521\n",
}
MAKEFILE = """default.supp include/vgversion.h valgrind.pc all vgdb install-pkgconfigDATA install-vglibDATA:
\t@:
install:
\t@mkdir -p $(DESTDIR)/usr && cp ../coregrind/*.[ch] $(DESTDIR)/usr
"""


@pytest.fixture(name="packaging")
def fixture_packaging(tmp_path: Path) -> Path:
    """A copy of the scripts, and a source as they name it."""
    packaging, tree = tmp_path / "packaging/valgrind", tmp_path / "core-9"
    packaging.mkdir(parents=True)
    for part in ("include", "VEX", "coregrind", "none"):
        (tree / part).mkdir(parents=True)
    for directory in (tree, *(path for path in tree.iterdir() if path.is_dir())):
        (directory / "Makefile").write_text(MAKEFILE)
    for name, text in {**HEADERS, "config.h": "", "COPYING": "", "coregrind/vgdb": ""}.items():
        (tree / name).write_text(text)
    (tree / "configure").write_text("#!/bin/sh\n")
    (tree / "configure").chmod(0o755)
    archive = tmp_path / "out/source/core.tar"
    archive.parent.mkdir(parents=True)
    with tarfile.open(str(archive), "w") as packed:
        packed.add(str(tree), tree.name)
    shutil.copy2(str(ROOT / "packaging/valgrind/build"), str(packaging))
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    (packaging / "source").write_text(f"version=9\narchive=core.tar\nsha256={sha256}\n")
    return packaging


def build(packaging: Path) -> Run:
    return run([packaging / "build", ARCH, packaging.parents[1] / "out"])


def test_the_core_is_built_once_and_its_makers_read_nothing_of_it(packaging: Path) -> None:
    """make bundle prints names of archives, and make release copies what has these names."""
    first, second = build(packaging), build(packaging)
    assert (first.returncode, first.stdout) == (0, ""), first.stderr
    assert first.stderr.count("\n") == 1 and "core 9" in first.stderr
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    there = packaging.parents[1] / "out" / ARCH
    assert "VG_(transtab_slots) = 65521" in (there / "usr/m_transtab.c").read_text()
    assert '"JMASSIF_LIB"' in (there / "usr/pub_core_libcproc.h").read_text()


def test_a_source_that_is_another_is_not_built(packaging: Path) -> None:
    (packaging / "source").write_text("version=9\narchive=core.tar\nsha256=0\n")
    done = build(packaging)
    assert done.returncode == 1 and done.stdout == "" and "another than" in done.stderr
    assert not (packaging.parents[1] / "out" / ARCH).exists()
