# SPDX-License-Identifier: GPL-2.0-or-later
"""packaging/valgrind/build with a source that is built in no time: where its result lies, what is kept of it, and what it says."""

import hashlib
import os
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Callable, Dict

import pytest

from tests.harness import ROOT, Run, run

ARCH = platform.machine()
PATCH = """--- a/coregrind/m_transtab.c
+++ b/coregrind/m_transtab.c
@@ -1 +1 @@
-#define N_HTTES_PER_SECTOR 65521
+UInt VG_(transtab_slots) = 65521;
"""
SOURCE = {
    "coregrind/m_transtab.c": "#define N_HTTES_PER_SECTOR 65521\n",
    "config.h": "",
    "COPYING": "",
    "coregrind/vgdb": "",
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
    for name, text in SOURCE.items():
        (tree / name).write_text(text)
    (tree / "configure").write_text("#!/bin/sh\n")
    (tree / "configure").chmod(0o755)
    archive = tmp_path / "out/source/core.tar"
    archive.parent.mkdir(parents=True)
    with tarfile.open(str(archive), "w") as packed:
        packed.add(str(tree), tree.name)
    shutil.copy2(str(ROOT / "packaging/valgrind/build"), str(packaging))
    shutil.copy2(str(ROOT / "packaging/cache"), str(packaging.parent))
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    (packaging / "patches").mkdir()
    (packaging / "patches/0001-slots.patch").write_text(PATCH)
    (packaging / "source").write_text(f"version=9\narchive=core.tar\nsha256={sha256}\n")
    return packaging


def environment(packaging: Path) -> Dict[str, str]:
    """With a cache of cores that no other test has."""
    return {"JMASSIF_BUILD_CACHE": str(packaging.parents[1] / "cache")}


def build(packaging: Path, out: str = "out", **env: str) -> Run:
    """In a tree `out`, where the cache or another tree has the source."""
    directory = packaging.parents[1] / out
    if not directory.exists():
        shutil.copytree(str(directory.with_name("out") / "source"), str(directory / "source"))
    return run([packaging / "build", ARCH, directory], env={**environment(packaging), **env})


def built(done: Run) -> bool:
    """True if the core was compiled, which prints one line."""
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr == "" or done.stderr.count("\n") == 1 and "core 9" in done.stderr, done.stderr
    return done.stderr != ""


def assert_changed(core: Path) -> None:
    """This core is built from the patched source."""
    assert "VG_(transtab_slots) = 65521" in (core / "usr/m_transtab.c").read_text()


def test_the_core_is_built_once_and_its_makers_read_nothing_of_it(packaging: Path) -> None:
    """make bundle prints names of archives, and make release copies what has these names."""
    assert built(build(packaging))
    assert not built(build(packaging, JMASSIF_BUILD_CACHE="none"))
    assert_changed(packaging.parents[1] / "out" / ARCH)


def test_a_patch_that_does_not_apply_is_named_in_one_line(packaging: Path) -> None:
    (packaging / "patches/0002-again.patch").write_text(PATCH)
    done = build(packaging)
    assert (done.returncode, done.stdout) == (1, "")
    building, said = done.stderr.splitlines()
    assert "core 9" in building and said.endswith("0002-again.patch does not apply to Valgrind 9")
    assert not (packaging.parents[1] / "out" / ARCH).exists()


def test_a_source_that_is_another_is_not_built(packaging: Path) -> None:
    (packaging / "source").write_text("version=9\narchive=core.tar\nsha256=0\n")
    done = build(packaging)
    assert done.returncode == 1 and done.stdout == "" and "another than" in done.stderr
    assert not (packaging.parents[1] / "out" / ARCH).exists()


def test_a_fresh_tree_takes_core_and_source_from_the_cache(packaging: Path) -> None:
    assert built(build(packaging))
    fresh = packaging.parents[1] / "fresh"
    fresh.mkdir()  # without a source
    assert not built(build(packaging, "fresh"))
    assert_changed(fresh / ARCH)
    assert (fresh / "source/core.tar").read_bytes() == (fresh.with_name("out") / "source/core.tar").read_bytes()


@pytest.mark.parametrize("name", ["source", "build", "patches/0001-slots.patch"])
def test_another_source_script_or_patch_has_a_core_of_its_own(packaging: Path, name: str) -> None:
    assert built(build(packaging))
    with (packaging / name).open("a") as script:
        script.write("# changed\n")
    assert built(build(packaging, "second"))
    assert not built(build(packaging, "third"))


def entry(packaging: Path) -> Path:
    (found,) = (packaging.parents[1] / "cache/cores").glob(f"{ARCH}-*")
    return found


def damage(kept: Path) -> None:
    (kept / "usr/m_transtab.c").write_text("")


def remove_a_file(kept: Path) -> None:
    (kept / "usr/m_transtab.c").unlink()


def remove_the_end_mark(kept: Path) -> None:
    (kept / "made").unlink()


def remove_the_sums(kept: Path) -> None:
    (kept / "SHA256SUMS").write_text("")


@pytest.mark.parametrize("spoil", [damage, remove_a_file, remove_the_end_mark, remove_the_sums])
def test_a_kept_core_that_is_not_whole_is_built_again(packaging: Path, spoil: Callable[[Path], None]) -> None:
    assert built(build(packaging))
    spoil(entry(packaging))
    assert built(build(packaging, "second"))
    assert_changed(packaging.parents[1] / "second" / ARCH)
    assert not built(build(packaging, "third"))
    assert_changed(packaging.parents[1] / "third" / ARCH)


def test_a_core_whose_build_fails_is_not_kept(packaging: Path) -> None:
    script = packaging / "build"
    script.write_text(script.read_text().replace("    install_core\n", "    install_core\n    false\n"))
    done = build(packaging)
    assert done.returncode == 1 and "did not build" in done.stderr
    assert not list((packaging.parents[1] / "cache/cores").glob(f"{ARCH}-*"))


def test_a_kept_source_that_is_another_is_not_used(packaging: Path) -> None:
    assert built(build(packaging))
    cache = packaging.parents[1] / "cache/cores"
    (cache / "core.tar").write_bytes(b"another")
    (packaging.parents[1] / "fresh").mkdir()
    done = build(packaging, "fresh")
    assert done.returncode == 1 and "run this again" in done.stderr  # no fetch-packages beside these scripts
    assert not (packaging.parents[1] / "fresh/source").exists()


@pytest.mark.parametrize("directory", ["none", "/dev/null/cache"])
def test_without_a_cache_each_tree_has_its_core(packaging: Path, directory: str) -> None:
    for out in ("out", "second"):
        assert built(build(packaging, out, JMASSIF_BUILD_CACHE=directory))


def test_of_two_trees_at_once_one_builds(packaging: Path) -> None:
    trees = [packaging.parents[1] / name for name in ("out", "second")]
    shutil.copytree(str(trees[0] / "source"), str(trees[1] / "source"))
    both = [
        subprocess.Popen(
            [str(packaging / "build"), ARCH, str(tree)],
            env={**os.environ, **environment(packaging)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for tree in trees
    ]
    ends = [process.communicate(timeout=60) for process in both]
    done = [Run(process.returncode, out.decode(), err.decode()) for process, (out, err) in zip(both, ends)]
    assert sorted(map(built, done)) == [False, True]
    for tree in trees:
        assert_changed(tree / ARCH)
