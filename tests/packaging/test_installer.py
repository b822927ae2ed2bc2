# SPDX-License-Identifier: GPL-2.0-or-later
"""install.sh with a release of one small file: where it comes from, what is refused in one line, and what a failure leaves."""

import hashlib
import os
import platform
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Iterator

import pytest

from tests.harness import ROOT, Run, check_run, run
from tests.packaging.test_bundle_build import without

ARCHIVE = f"jmassif-1.2-{platform.machine()}.tar.xz"


@pytest.fixture(name="release")
def fixture_release(tmp_path: Path) -> Path:
    command = tmp_path / "jmassif-1.2/bin/jmassif"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\necho recorded\n")
    command.chmod(0o755)
    release = tmp_path / "release"
    release.mkdir()
    check_run(["tar", "-cJf", release / ARCHIVE, "-C", tmp_path, "jmassif-1.2"])
    digest = hashlib.sha256((release / ARCHIVE).read_bytes()).hexdigest()
    (release / "SHA256SUMS").write_text(f"{digest}  {ARCHIVE}\n{64 * '0'}  jmassif-1.2-mips.tar.xz\n")
    return release


@pytest.fixture(name="served")
def fixture_served(release: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(release))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def install(prefix: Path, *words: object, path: str = "") -> Run:
    command = ["sh", str(ROOT / "packaging/install.sh"), f"--prefix={prefix}", *map(str, words)]
    return run(command, env={"PATH": path or os.environ["PATH"], "http_proxy": ""})


def is_installed(prefix: Path) -> bool:
    """Whole, and with nothing left of how it came there."""
    left = [path.name for path in (prefix / "opt").iterdir()]
    return left == ["jmassif"] and check_run([prefix / "bin/jmassif"]) == "recorded\n"


def test_a_directory_is_installed_over_an_older_release(release: Path, tmp_path: Path) -> None:
    (tmp_path / "own/opt/jmassif/old").mkdir(parents=True)
    done = install(tmp_path / "own", release)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(f"next: {tmp_path}/own/bin/jmassif /")
    assert is_installed(tmp_path / "own") and not (tmp_path / "own/opt/jmassif/old").exists()


@pytest.mark.parametrize("absent", ["curl", "wget"])
def test_a_url_is_installed_with_the_program_that_is_there(served: str, absent: str, tmp_path: Path) -> None:
    done = install(tmp_path / "own", served, path=str(without(tmp_path / "bin", absent)))
    assert (done.returncode, done.stderr) == (0, "") and is_installed(tmp_path / "own")


def test_without_python_it_is_installed_all_the_same_and_says_what_is_missing(release: Path, tmp_path: Path) -> None:
    done = install(tmp_path / "own", release, path=str(without(tmp_path / "bin", "python3")))
    assert done.stdout == f"next: {tmp_path}/own/bin/jmassif PROGRAM (reports need python3)\n"
    assert (done.returncode, done.stderr) == (0, "") and is_installed(tmp_path / "own")


def refused(done: Run, prefix: Path) -> str:
    """The one line, of a run that leaves nothing."""
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    assert not prefix.exists() or not list((prefix / "opt").iterdir())
    return done.stderr


def test_what_cannot_be_installed_is_refused_in_one_line(release: Path, served: str, tmp_path: Path) -> None:
    prefix = tmp_path / "own"
    assert "take a --prefix without spaces" in refused(install(tmp_path / "my own", release), tmp_path / "my own")
    assert "--quiet: usage: install.sh" in refused(install(prefix, "--quiet"), prefix)
    assert f"no SHA256SUMS in {tmp_path}: " in refused(install(prefix, tmp_path), prefix)
    assert f"no SHA256SUMS in {served}/absent: " in refused(install(prefix, f"{served}/absent"), prefix)
    bare = without(tmp_path / "bin", "xz", "curl", "wget")
    assert "xz is needed (apt-get install xz-utils)" in refused(install(prefix, release, path=str(bare)), prefix)
    assert "curl or wget is needed" in refused(install(prefix, served, path=str(bare)), prefix)
    (release / ARCHIVE).write_bytes(b"half")
    assert f"{ARCHIVE} is damaged" in refused(install(prefix, release), prefix)
    (release / "SHA256SUMS").write_text(f"{64 * '0'}  jmassif-1.2-mips.tar.xz\n")
    assert f"no archive for {platform.machine()} in" in refused(install(prefix, release), prefix)
