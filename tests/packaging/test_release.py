# SPDX-License-Identifier: GPL-2.0-or-later
"""`make release`: what it refuses before it begins, and what it has left where somebody has run it."""

import hashlib
import os
import platform
import re
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.harness import ARCH, BUILD, ROOT, Run, check_run, released, run
from tests.packaging.test_bundle_build import without

VERSION = re.findall(r"^AC_INIT\(\[jmassif\], \[(.*)\]\)", (ROOT / "configure.ac").read_text(), re.MULTILINE)[0]


@pytest.fixture(name="release")
def fixture_release() -> Path:
    released("release/SHA256SUMS")
    return BUILD / "release"


def release_with_news(directory: Path, news: str, *more: str, path: str = os.environ["PATH"]) -> Run:
    """What make release says of these news; whatever it would do next is not there, and so fails."""
    (directory / "packaging/valgrind").mkdir(parents=True)
    for name in ("release", "epoch", "needed", "valgrind/source", *more):
        shutil.copy2(str(ROOT / "packaging" / name), str(directory / "packaging" / name))
    shutil.copy2(str(ROOT / "configure.ac"), str(directory))
    (directory / "NEWS").write_text(news)
    return run([directory / "packaging/release", directory, platform.machine()], env={"PATH": path})


@pytest.mark.parametrize(
    "news",
    [
        "",
        "jmassif 0.0.1\n\n- An older one.\n",
        f"jmassif {VERSION}1\n\n- One whose number begins alike.\n",
        f"jmassif {VERSION}\n\njmassif 0.0.1\n\n- Nothing is said of this version.\n",
    ],
)
def test_a_version_without_news_is_not_released(tmp_path: Path, news: str) -> None:
    done = release_with_news(tmp_path, news)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"packaging/release: NEWS has no entry for {VERSION}")
    assert not (tmp_path / "release.part").exists()


def test_news_of_what_is_not_released_are_told_of_and_no_hindrance(tmp_path: Path) -> None:
    done = release_with_news(tmp_path, f"jmassif {VERSION} (not yet released)\n====\n\n- The first.\n")
    assert "not yet released" in done.stderr.splitlines()[0] and "no entry" not in done.stderr
    assert "packaging/bundle: No such file" in done.stderr  # it has gone on


def test_all_that_is_missing_is_named_at_once_and_the_last_release_stays(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    (sources / "release").mkdir(parents=True)
    bare = without(tmp_path / "bin", "xz", "dpkg-deb", "node")
    done = release_with_news(sources, f"jmassif {VERSION}\n\n- The first.\n", "bundle", path=str(bare))
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.endswith("not installed: xz dpkg-deb node (apt-get install xz-utils dpkg nodejs)\n")
    assert (sources / "release").is_dir() and not (sources / "release.part").exists()


def test_a_release_is_complete_and_its_checksums_are_right(release: Path) -> None:
    names = {path.name for path in release.iterdir()}
    core = re.findall(r"^archive=(.*)$", (ROOT / "packaging/valgrind/source").read_text(), re.MULTILINE)[0]
    always = {f"jmassif-{VERSION}.tar.gz", f"jmassif-{VERSION}.NEWS", core}
    always |= {"install.sh", "Dockerfile", "test.sh", f"jmassif-fleet_{VERSION}_all.deb"}
    bundles = {name for name in names if re.fullmatch(rf"jmassif-{VERSION}-(x86_64|aarch64)\.tar\.xz", name)}
    packages = {name for name in names if re.fullmatch(rf"jmassif_{VERSION}_(amd64|arm64)\.deb", name)}
    wheels = {name for name in names if re.fullmatch(rf"jmassif-{VERSION}-py3-none-linux_(x86_64|aarch64)\.whl", name)}
    assert always | bundles | packages | wheels | {"SHA256SUMS"} == names
    assert len(bundles) == len(packages) == len(wheels) > 0
    lines = (release / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert sums == {name: hashlib.sha256((release / name).read_bytes()).hexdigest() for name in names - {"SHA256SUMS"}}


def test_a_release_installs_itself_and_names_a_command_that_works(release: Path, tmp_path: Path) -> None:
    done = run(["sh", release / "install.sh", f"--prefix={tmp_path}/own"], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    recorded = run(["sh", "-c", done.stdout.partition("next: ")[2]], cwd=tmp_path)
    assert recorded.returncode == 0 and re.search(r"(?m)^<string>:1 +64\.0 MiB", recorded.stdout), recorded.stderr


def test_make_install_with_the_bundles_core_brings_what_the_tool_needs(release: Path, tmp_path: Path) -> None:
    tree = BUILD / "bundle" / platform.machine()
    check_run(["make", "install", f"DESTDIR={tmp_path}"], cwd=tree)
    tools = {path.name for path in (tmp_path / "usr/lib/jmassif").iterdir()}
    with tarfile.open(str(next(release.glob(f"jmassif-*-{platform.machine()}.tar.xz")))) as bundle:
        packed = {Path(name).name for name in bundle.getnames() if Path(name).parent.name == "jmassif"}
    assert {name for name in packed if ARCH in name or name in ("vgdb", "libjmassif-native.so")} == tools
    assert "valgrind=''" in (tmp_path / "usr/bin/jmassif").read_text()
    check_run(["make", "uninstall", f"DESTDIR={tmp_path}"], cwd=tree)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_wheel_and_source_of_a_release_have_the_page_and_its_news_are_of_the_version(release: Path) -> None:
    for wheel in release.glob("*.whl"):
        with zipfile.ZipFile(str(wheel)) as files:
            assert files.read("jmassif/assets/page.js")
            assert files.read("jmassif/recorder/lib/jmassif/libjmassif-native.so")
    with tarfile.open(str(release / f"jmassif-{VERSION}.tar.gz")) as source:
        members = source.getmembers()
    packed = {member.name.partition("/")[2] for member in members}
    assert {"configure", "packaging/bundle", "reporter/jmassif/assets/page.js"} <= packed
    assert {(member.uid, member.gid) for member in members} == {(0, 0)} and len({m.mtime for m in members}) == 1
    news = (release / f"jmassif-{VERSION}.NEWS").read_text()
    assert news.startswith(f"jmassif {VERSION}") and news in (ROOT / "NEWS").read_text() and "\n- " in news


def test_packages_hold_what_the_bundles_do_and_have_no_file_of_the_distributions_valgrind(release: Path) -> None:
    theirs = set()
    if run(["dpkg-query", "-W", "valgrind"]).returncode == 0:
        theirs = {line.lstrip("/") for line in check_run(["dpkg-query", "-L", "valgrind"]).splitlines()}
    for package in release.glob("jmassif_*.deb"):
        listing = check_run(["dpkg-deb", "-c", package]).splitlines()
        files = {line.split()[5][2:] for line in listing if not line.startswith("d")}
        assert not files & theirs
        processor = {"amd64": "x86_64", "arm64": "aarch64"}[package.stem.rpartition("_")[2]]
        with tarfile.open(str(release / f"jmassif-{VERSION}-{processor}.tar.xz")) as bundle:
            unpacked = {m.name.partition("/")[2] for m in bundle.getmembers() if m.isfile()}
        unpacked = {name.replace("zsh/site-functions", "zsh/vendor-completions") for name in unpacked}
        documents = ("share/doc/", "share/man/")
        assert {f"usr/{name}" for name in unpacked if not name.startswith(documents)} <= files
