# SPDX-License-Identifier: GPL-2.0-or-later
"""The archive of `make bundle`, unpacked: it records and reports with nothing of what it was built with."""

import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from jmassif.reader.builder import load_file
from tests.board.test_packages_on_board import FLAGS, KEEPS
from tests.harness import ARCH, ARM64_SYSROOT, Run, allocated_by_function, compile_arm64, compile_c, released, run
from tests.tool import board
from tests.tool.test_driver_limit import hard_limit, limited

PROCESSOR = {"amd64": "x86_64", "arm64": "aarch64"}

SCRIPT = """\
import os, subprocess
kept = [bytearray(1 << 20) for _ in range(30)]
print(sorted(name for name in os.environ if "VALGRIND" in name))
print(subprocess.check_output(["/bin/echo", "child"]).decode().strip())
"""


def unpacked(processor: str, directory: Path) -> Path:
    (archive,) = released(f"jmassif-*-{processor}.tar.xz")
    subprocess.check_call(["tar", "-xf", str(archive), "-C", str(directory)])
    (home,) = directory.iterdir()
    return home


@pytest.fixture(scope="module", name="home")
def fixture_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the archive for this processor was unpacked."""
    return unpacked(PROCESSOR[ARCH], tmp_path_factory.mktemp("unpacked"))


def bare(*command: object, cwd: Path) -> Run:
    """Without anything in the environment that leads to a Valgrind."""
    return run(["env", "-i", "PATH=/usr/bin:/bin", *[str(word) for word in command]], cwd=cwd)


def test_it_records_python_from_elsewhere_through_a_link_and_shows_where(home: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(home / "bin" / "jmassif")
    (tmp_path / "train.py").write_text(SCRIPT)
    done = bare("./link", "--jmassif-out-file=trace", "/usr/bin/python3", "train.py", cwd=tmp_path)
    # Nothing that a child could take for its own is in the program's environment.
    assert (done.returncode, done.stdout) == (0, "[]\nchild\n"), done.stderr
    lines = bare(home / "bin/jm_print", "--by=python-line", "trace", cwd=tmp_path)
    assert re.search(r"train\.py:2 .* 30\.\d MiB", lines.stdout), lines.stdout
    page = bare(home / "bin/jm_print", "--format=html", "-o", "page.html", "trace", cwd=tmp_path)
    assert page.returncode == 0 and "train.py" in (tmp_path / "page.html").read_text()


def test_its_core_is_its_own(home: Path, tmp_path: Path) -> None:
    program = compile_c("int main(void) { return 7; }\n")
    done = bare(home / "bin/jmassif", "--valgrind", "--jmassif-out-file=trace", program, cwd=tmp_path)
    assert done.returncode == 7 and "Using Valgrind-3.27.1" in done.stderr
    said = json.loads(bare(home / "bin/jmassif", "doctor", "--json", cwd=tmp_path).stdout)
    assert any(row["text"].startswith("3.27.1, " + str(home / "lib")) for row in said["findings"])


def test_its_core_that_checks_mappings_takes_those_of_descriptors_beyond_1024(
    home: Path, sim: Path, tmp_path: Path
) -> None:
    board.require_board(sim)
    launcher = [*limited(1024, hard_limit()), *board.launcher(sim, "r32")]
    recorder = [str(home / "bin/jmassif"), "--valgrind", "--pages=no", "--jmassif-out-file=trace"]
    done = run([*launcher, *recorder, sim / "programs" / "cuda_driver"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert load_file(str(tmp_path / "trace")).peaks["device"].by_kind["driver"] > 0


def table_bytes(home: Path, directory: Path, *options: str) -> int:
    """What the core says that its tables of translated code take."""
    program = compile_c("int main(void) { return 7; }\n")
    done = bare(
        home / "bin/jmassif", "--valgrind", "--jmassif-out-file=trace", "--stats=yes", *options, program, cwd=directory
    )
    found = re.search(r"= ([\d,]+) total TT\n", done.stderr)
    assert found, done.stderr
    return int(found.group(1).replace(",", ""))


def test_sectors_of_translated_code_are_small_on_small_boards(home: Path, tmp_path: Path) -> None:
    two = table_bytes(home, tmp_path, "--num-transtab-sectors=2")
    assert 0.45 * two < table_bytes(home, tmp_path, "--low-footprint=yes") < 0.55 * two
    assert table_bytes(home, tmp_path, "--low-footprint=yes", "--num-transtab-sectors=2") == two  # as asked for


def test_the_bundle_for_boards_records_on_an_emulated_processor(tmp_path: Path) -> None:
    program = compile_arm64(KEEPS, *FLAGS)
    if shutil.which("qemu-aarch64-static") is None:
        pytest.skip("qemu-aarch64-static is not installed")
    (tmp_path / "unpacked").mkdir()
    home = unpacked("aarch64", tmp_path / "unpacked")
    # The tool, as the command jmassif starts it: the emulator does not follow an exec.
    tool = home / "lib/jmassif/jmassif-arm64-linux"
    done = run(
        [
            "qemu-aarch64-static",
            "-L",
            ARM64_SYSROOT,
            tool,
            "--tool=jmassif",
            "--jmassif-out-file=trace",
            "--pages=no",
            program,
        ],
        env={"JMASSIF_LIB": str(home / "lib/jmassif"), "VALGRIND_LAUNCHER": str(home / "bin/jmassif")},
        cwd=tmp_path,
    )
    assert done.returncode == 0 and "Using Valgrind-3.27.1" in done.stderr, done.stderr
    profile = load_file(str(tmp_path / "trace"))
    assert allocated_by_function(profile, program) == {"keeps": (5000000, 1)}


def test_a_bundle_has_licences_manual_and_the_page_and_no_name_of_who_made_it() -> None:
    for path in released("jmassif-*-*.tar.xz"):
        with tarfile.open(str(path)) as archive:
            members = archive.getmembers()
        names = {member.name.partition("/")[2] for member in members}
        assert {"share/doc/jmassif/COPYING.GPL-2", "share/doc/jmassif/COPYING.GPL-3"} <= names
        assert {"share/doc/jmassif/SOURCE", "share/man/man1/jmassif.1", "bin/jm_print", "bin/jmassif"} <= names
        assert {"share/jmassif/python/jmassif/assets/page.js", "include/jmassif/jmassif.h", "lib/jmassif/vgdb"} <= names
        assert {(member.uid, member.gid, member.uname) for member in members} == {(0, 0, "")}
        assert len({member.mtime for member in members}) == 1
