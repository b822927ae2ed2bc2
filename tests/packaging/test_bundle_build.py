# SPDX-License-Identifier: GPL-2.0-or-later
"""packaging/bundle and packaging/deb with sources that are built in no time: what is checked first, and what a failure leaves."""

import platform
import re
import shutil
from pathlib import Path
from typing import Sequence

import pytest

from tests.harness import ARCH, ROOT, Run, compile_c, run

PROCESSOR = platform.machine()
OTHER = "aarch64" if PROCESSOR == "x86_64" else "x86_64"
LOOP = "void _start(void)\n{\n    for (;;)\n        ;\n}\n"

CORE = """#!/bin/sh
echo "core for $1" >&2
mkdir -p "$2/$1/usr/bin" "$2/$1/usr/libexec/valgrind"
touch "$2/$1/COPYING"
cp {program} "$2/$1/usr/bin/vgdb"
cp {library} "$2/$1/usr/libexec/valgrind/vgpreload_core-{arch}-linux.so"
"""
CONFIGURE = """#!/bin/sh
mkdir jmassif reporter docs
cp {program} jmassif/jmassif-{arch}-linux
cp {library} jmassif/vgpreload_jmassif-{arch}-linux.so
cp {library} jmassif/libjmassif.so
cp {library} jmassif/libjmassif-native.so
printf 'all:\\ninstall-dist_docDATA:\\n\\tmkdir -p $(DESTDIR)/usr/share/doc/jmassif && touch $(DESTDIR)/usr/share/doc/jmassif/NEWS\\n' >Makefile
printf 'install install-pkgincludeHEADERS install-dist_pkgdataDATA:\\n' | tee reporter/Makefile docs/Makefile >jmassif/Makefile
mkdir man
printf 'install:\\n\\tmkdir -p $(DESTDIR)/usr/share/man/man1 && touch $(DESTDIR)/usr/share/man/man1/jmassif.1\\n' >docs/Makefile
"""


@pytest.fixture(name="sources")
def fixture_sources(tmp_path: Path) -> Path:
    """A copy of the scripts, a core, and sources that configure and make as ours do."""
    sources = tmp_path / "sources"
    assets = sources / "reporter/jmassif/assets"
    for directory in (sources / "packaging/valgrind", assets, sources / "reporter/web"):
        directory.mkdir(parents=True)
    for name in ("bundle", "deb", "epoch", "needed", "jmassif.in", "SOURCE.in", "lintian-overrides", "valgrind/source"):
        shutil.copy2(str(ROOT / "packaging" / name), str(sources / "packaging" / name))
    for name in ("COPYING", "COPYING.BSD", "NEWS", "configure.ac"):
        shutil.copy2(str(ROOT / name), str(sources))
    (assets / "page.js").touch()
    built = {
        "program": compile_c(LOOP, "-nostdlib", "-static"),
        "library": compile_c("int one = 1;\n", "-nostdlib", "-shared", "-fPIC"),
        "arch": ARCH,
    }
    scripts = {"packaging/valgrind/build": CORE, "configure": CONFIGURE, "reporter/web/build-page": "#!/bin/sh\n"}
    for name, text in scripts.items():
        (sources / name).write_text(text.format(**built))
        (sources / name).chmod(0o755)
    return sources


def make(sources: Path, script: str, *processors: str, path: Sequence[Path] = (Path("/usr/bin"),)) -> Run:
    """bundle or deb, into the directory `out` beside the sources."""
    command = [sources / "packaging" / script, sources.with_name("out")]
    return run(["env", f"PATH={':'.join(map(str, path))}", *command, *(processors or [PROCESSOR])])


def without(directory: Path, *programs: str) -> Path:
    """/usr/bin without some programs, by links."""
    directory.mkdir()
    for program in Path("/usr/bin").iterdir():
        if program.name not in programs:
            (directory / program.name).symlink_to(program)
    return directory


def stub(directory: Path, program: str, text: str) -> Path:
    """A directory for the front of PATH, with a program of another behaviour."""
    directory.mkdir()
    (directory / program).write_text(f"#!/bin/sh\n{text}\n")
    (directory / program).chmod(0o755)
    return directory


def archives(sources: Path) -> Sequence[Path]:
    return sorted(path for path in sources.with_name("out").glob("jmassif[-_]*") if path.is_file())


def test_a_bundle_and_a_package_are_made_and_each_step_is_shown(sources: Path) -> None:
    done = make(sources, "deb")
    assert done.returncode == 0, done.stderr
    assert [path.suffix for path in archives(sources)] == [".xz", ".deb", ".deb"]
    assert sorted(done.stdout.split()) == [str(path) for path in archives(sources)]
    fleet = archives(sources)[1]
    said = run(["dpkg-deb", "-f", fleet]).stdout
    assert "Package: jmassif-fleet\n" in said and "Architecture: all\n" in said
    needs = re.search(r"^Depends: jmassif \(= [^)]+\), (.*)\nRecommends: (.*)$", said, re.MULTILINE)
    assert needs and needs.group(1).split(", ")[1:] == ["python3-sqlalchemy", "python3-pandas", "python3-scipy"]
    assert needs.group(2).split(", ") == ["python3-distributed", "python3-psycopg2"]
    steps = done.stderr.splitlines()
    assert steps[0] == f"core for {PROCESSOR}" and f"building recorder and reporter for {PROCESSOR}" in steps[1]


@pytest.mark.parametrize(
    "script, program, packages",
    [
        ("bundle", "xz", "xz-utils"),
        ("bundle", "bzip2", "bzip2"),
        ("deb", "dpkg-deb", "dpkg"),
        ("deb", "bzip2", "bzip2"),
    ],
)
def test_a_missing_program_is_named_before_anything_is_built(
    sources: Path, tmp_path: Path, script: str, program: str, packages: str
) -> None:
    done = make(sources, script, path=[without(tmp_path / "bin", program)])
    named = f"not installed: {program} (apt-get install {packages})\n"
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.endswith(named), done.stderr
    assert done.stderr.count("\n") == 1 and not archives(sources)


def test_a_missing_cross_compiler_is_named_before_this_processors_core_is_built(sources: Path, tmp_path: Path) -> None:
    tools = [f"{OTHER}-linux-gnu-{tool}" for tool in ("gcc", "objdump", "strip")]
    done = make(sources, "bundle", PROCESSOR, OTHER, path=[without(tmp_path / "bin", *tools)])
    assert done.returncode == 2 and not archives(sources)
    first, second = done.stderr.splitlines()
    assert first.endswith(f"not installed: {' '.join(tools)} (apt-get install gcc-{OTHER.replace('_', '-')}-linux-gnu)")
    assert second.endswith(f"make bundle BUNDLE_ARCHS={PROCESSOR}")


def test_without_the_page_nodejs_is_needed_too(sources: Path, tmp_path: Path) -> None:
    (sources / "reporter/jmassif/assets/page.js").unlink()
    done = make(sources, "bundle", path=[without(tmp_path / "bin", "node", "npm")])
    assert done.returncode == 2 and "not installed: node npm (apt-get install nodejs npm)" in done.stderr


def test_a_processor_that_there_is_no_bundle_for_is_named_first(sources: Path) -> None:
    for script in ("bundle", "deb"):
        done = make(sources, script, PROCESSOR, "mips")
        assert done.returncode == 2 and "there is no mips, only x86_64 and aarch64" in done.stderr
        assert "core for" not in done.stderr and not archives(sources)


def test_sources_that_are_configured_themselves_are_named_first(sources: Path) -> None:
    (sources / "config.status").touch()
    done = make(sources, "bundle")
    assert done.returncode == 2 and "make distclean" in done.stderr and done.stderr.count("\n") == 1


def test_a_build_that_fails_shows_the_end_of_its_log(sources: Path) -> None:
    (sources / "configure").write_text("#!/bin/sh\necho 'configure: error: no such luck' >&2\nexit 1\n")
    done = make(sources, "bundle")
    assert done.returncode == 1 and "configure: error: no such luck" in done.stderr and not archives(sources)


@pytest.mark.parametrize(
    "script, program, text",
    [("bundle", "xz", "echo half; exit 1"), ("deb", "dpkg-deb", 'for last; do :; done; echo half >"$last"; exit 1')],
)
def test_a_half_written_archive_never_has_the_archives_name(
    sources: Path, tmp_path: Path, script: str, program: str, text: str
) -> None:
    fails = [stub(tmp_path / "bin", program, text), Path("/usr/bin")]
    if script == "deb":
        assert make(sources, "bundle").returncode == 0
    before = archives(sources)
    assert make(sources, script, path=fails).returncode != 0
    assert archives(sources) == before

    assert make(sources, "deb").returncode == 0
    whole = {path: path.read_bytes() for path in archives(sources)}
    assert len(whole) == 3 and make(sources, script, path=fails).returncode != 0
    assert {path: path.read_bytes() for path in archives(sources)} == whole
