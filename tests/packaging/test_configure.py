# SPDX-License-Identifier: GPL-2.0-or-later
"""How configure finds Valgrind, what it says when it cannot, and what the build makes of what it found."""

from pathlib import Path

from tests.harness import ARCH, BUILD, ROOT, Run, compile_c, run, source_tree


def configure(directory: Path, *options: str) -> Run:
    return run([source_tree() / "configure", "--quiet", *options], cwd=directory, timeout=300)


def pretend_valgrind(prefix: Path, version: str, arch: str) -> None:
    """As much of an installed Valgrind as pkg-config sees."""
    pkgconfig = prefix / "lib" / "pkgconfig"
    pkgconfig.mkdir(parents=True)
    (pkgconfig / "valgrind.pc").write_text(
        f"prefix={prefix}\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\narch={arch}\n"
        f"valt_load_address=0x58000000\nName: Valgrind\nDescription: a pretence\nVersion: {version}\n"
    )


def last_error(done: Run) -> str:
    assert done.returncode != 0
    return done.stderr[done.stderr.index("configure: error:") :]


def test_a_valgrind_that_is_too_old_is_refused(tmp_path: Path) -> None:
    pretend_valgrind(tmp_path / "old", "3.14.0", ARCH)
    error = last_error(configure(tmp_path, f"--with-valgrind={tmp_path}/old"))
    assert "Valgrind 3.14.0 is too old; jmassif needs 3.15" in error


def test_a_valgrind_for_another_architecture_is_refused(tmp_path: Path) -> None:
    pretend_valgrind(tmp_path / "mips", "3.19.0", "mips64")
    error = last_error(configure(tmp_path, f"--with-valgrind={tmp_path}/mips"))
    assert "this Valgrind is for mips64" in error


def test_a_directory_without_valgrind_is_refused(tmp_path: Path) -> None:
    error = last_error(configure(tmp_path, f"--with-valgrind={tmp_path}"))
    assert f"no valgrind.pc below {tmp_path}" in error


def test_a_platform_that_jmassif_does_not_know_is_refused(tmp_path: Path) -> None:
    error = last_error(configure(tmp_path, "--host=s390x-linux-gnu", "CC=gcc"))
    assert "not on s390x" in error


def test_a_valgrind_without_its_libraries_is_refused_by_the_library(tmp_path: Path) -> None:
    pretend_valgrind(tmp_path / "vg", "3.19.0", ARCH)
    include = tmp_path / "vg" / "include" / "valgrind"
    include.mkdir(parents=True)
    (include / "pub_tool_tooliface.h").touch()
    error = last_error(configure(tmp_path, f"--with-valgrind={tmp_path}/vg"))
    assert "no libcoregrind-" in error


def test_a_directory_that_no_library_is_loaded_from_is_refused(tmp_path: Path) -> None:
    (tmp_path / "my build").mkdir()
    assert f'libraries from "{tmp_path}/my build": build in a directory' in last_error(configure(tmp_path / "my build"))
    assert 'libraries from "/opt/my tools": take a --prefix' in last_error(
        configure(tmp_path, "--prefix=/opt/my tools")
    )


def test_without_python_it_is_named(tmp_path: Path) -> None:
    assert "install the package python3" in last_error(configure(tmp_path, "PYTHON=/bin/false"))


def test_the_rules_are_compiled_in_byte_by_byte() -> None:
    program = compile_c(
        '#include <stdio.h>\ntypedef char HChar;\n#include "attribution/owners_rules.h"\n'
        "int main(void) { return fputs(jm_owners_rules, stdout) < 0; }\n",
        f"-I{BUILD}/jmassif",
    )
    assert run([program]).stdout == (ROOT / "jmassif" / "attribution" / "owners.rules").read_text()


def test_libraries_that_need_nothing_are_bound_at_once() -> None:
    """Not what is preloaded below Valgrind: it names functions that a program without a C library lacks."""
    for name in ("libjmassif.so", "libjmassif-native.so"):
        assert "BIND_NOW" in run(["readelf", "-d", BUILD / "jmassif" / name]).stdout, name
