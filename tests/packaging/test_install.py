# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make install` puts where, that it works from there, and that `make uninstall` takes all of it away again.

With --prefix the tool gets a directory of its own; without, it joins Valgrind's tools.
"""

import re
import tarfile
from pathlib import Path
from typing import Set

import pytest

from jmassif.cli.main import COMMANDS
from tests.harness import ARCH, BUILD, MADE, ROOT, Run, check_run, configure_and_make, made_each_run, run, source_tree


def files_below(directory: Path) -> Set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir()}


def directories_below(directory: Path) -> Set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_dir()}


def valgrind_libexec(tree: Path) -> Path:
    found = re.search(r"^VG_LIBEXEC = (.*)$", (tree / "Makefile").read_text(), re.MULTILINE)
    assert found
    return Path(found.group(1))


@pytest.fixture(scope="module", name="private_tree")
def fixture_private_tree() -> Path:
    # -O1 without -g compiles in half of the time, and installs the same files.
    return configure_and_make(MADE / "private", f"--prefix={MADE}/prefix", "CFLAGS=-O1 -g0")


@pytest.fixture(scope="module", name="default_tree")
def fixture_default_tree() -> Path:
    """Configured without --prefix, as ./bootstrap configures the build tree that is tested."""
    if "--prefix" not in check_run([BUILD / "config.status", "--config"]):
        return BUILD
    return configure_and_make(MADE / "default")


@pytest.fixture(scope="module", name="prefix")
def fixture_prefix(private_tree: Path) -> Path:
    """The path is compiled in, so there is one, which tests only read."""

    def install(_: Path) -> None:
        check_run(["make", "install"], cwd=private_tree)

    return made_each_run("prefix", install)


def record_true(prefix: Path, trace: Path) -> Run:
    return run([prefix / "bin" / "jmassif", f"--jmassif-out-file={trace}", "true"])


def test_an_installation_with_prefix_records_and_reports(prefix: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    recorded = record_true(prefix, trace)
    assert recorded.returncode == 0, recorded.stderr
    reported = run([prefix / "bin" / "jm_print", trace], cwd=tmp_path)
    assert reported.returncode == 0, reported.stderr
    assert "true" in reported.stdout


def test_make_install_ends_with_a_command_that_works_as_printed(
    private_tree: Path, prefix: Path, tmp_path: Path
) -> None:
    command = check_run(["make", "install"], cwd=private_tree).splitlines()[-1]
    assert command.startswith(f"  {prefix}/bin/jmassif ")
    done = run(["sh", "-c", command], cwd=tmp_path)
    assert done.returncode == 0 and re.search(r"(?m)^<string>:1 +64\.[02] MiB", done.stdout), done.stdout + done.stderr


def test_a_prefix_that_is_not_the_configured_one_is_refused(default_tree: Path, tmp_path: Path) -> None:
    tool = valgrind_libexec(default_tree) / f"jmassif-{ARCH}-linux"
    before = tool.exists() and tool.stat().st_mtime_ns
    done = run(["make", "install", f"prefix={tmp_path}"], cwd=default_tree)
    assert done.returncode != 0 and f"configure --prefix={tmp_path} " in done.stderr
    assert not files_below(tmp_path) and (tool.exists() and tool.stat().st_mtime_ns) == before


def test_an_installation_with_prefix_has_all_that_valgrind_looks_for(private_tree: Path, prefix: Path) -> None:
    tools = prefix / "libexec" / "jmassif"
    missing = {name for name in files_below(valgrind_libexec(private_tree)) if not (tools / name).exists()}
    assert not missing


def test_every_module_of_the_reporter_is_installed(prefix: Path) -> None:
    installed = {
        name for name in files_below(prefix / "share" / "jmassif" / "python" / "jmassif") if name.endswith(".py")
    }
    assert installed == {name for name in files_below(ROOT / "reporter" / "jmassif") if name.endswith(".py")}


def test_every_command_is_installed_with_its_manual(prefix: Path) -> None:
    for command in ("jm_print", "jm_diff"):
        version = run([prefix / "bin" / command, "--version"])
        assert version.returncode == 0 and version.stdout.startswith(f"{command} ")
        assert (prefix / "share/man/man1" / f"{command}.1").exists()
    for command in COMMANDS:
        assert run([prefix / "bin/jmassif", command, "--help"]).stdout.startswith(f"usage: jmassif {command} ")
        assert (prefix / "share/man/man1" / f"jmassif-{command}.1").exists()


def test_manual_header_and_client_library_are_installed(prefix: Path) -> None:
    expected = {
        "share/man/man1/jm_print.1",
        "share/man/man1/jmassif.1",
        "include/jmassif/jmassif.h",
        "lib/libjmassif.so",
        "share/jmassif/owners.rules",
        "share/jmassif/python/jmassif/py.typed",
        "share/bash-completion/completions/jm_print",
        "share/zsh/site-functions/_jmassif",
        "share/fish/vendor_completions.d/jmassif.fish",
    }
    assert expected <= files_below(prefix)


def test_bash_finds_the_completion_of_every_command(prefix: Path) -> None:
    commands = sorted(path.name for path in (prefix / "bin").iterdir())
    assert commands == ["jm_diff", "jm_print", "jmassif"]
    script = """
        . "$1/share/bash-completion/completions/$2"
        COMP_WORDS=($2 $3 --) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        $(complete -p "$2" | sed 's/.* -F \\([a-z_]*\\) .*/\\1/') "$2"
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    for command in commands:
        words = [command] + ["diff"] * (command == "jmassif")
        offered = run(["bash", "-c", script, "bash", prefix, *words], env={"PATH": f"{prefix}/bin:/usr/bin:/bin"})
        assert "--format=" in offered.stdout.split() and offered.stderr == ""


def test_uninstall_leaves_only_directories_that_others_share(private_tree: Path, tmp_path: Path) -> None:
    staged = f"DESTDIR={tmp_path}"
    prefix = tmp_path / (MADE / "prefix").relative_to("/")
    check_run(["make", "install", staged], cwd=private_tree)
    used = run([prefix / "bin/jm_print", "--version"], env={"PYTHONDONTWRITEBYTECODE": ""})
    assert used.returncode == 0 and list(prefix.rglob("__pycache__/*.pyc"))
    check_run(["make", "uninstall", staged], cwd=private_tree)
    assert files_below(prefix) == set()
    shared = {"bin", "include", "lib", "libexec", "share", "share/doc", "share/man", "share/man/man1"}
    shared |= {"share/bash-completion", "share/bash-completion/completions"}
    shared |= {"share/zsh", "share/zsh/site-functions", "share/fish", "share/fish/vendor_completions.d"}
    assert directories_below(prefix) <= shared


def test_with_valgrinds_prefix_the_tool_joins_it_too(tmp_path: Path) -> None:
    prefix = check_run(["pkg-config", "--variable=prefix", "valgrind"]).strip()
    configured = check_run([source_tree() / "configure", "--quiet", f"--prefix={prefix}"], cwd=tmp_path)
    assert f"the tool goes:  {valgrind_libexec(tmp_path)}\n" in configured


def test_without_prefix_the_tool_joins_valgrinds_own(default_tree: Path, tmp_path: Path) -> None:
    check_run(["make", "install", f"DESTDIR={tmp_path}"], cwd=default_tree)
    libexec = valgrind_libexec(default_tree)
    ours = files_below(tmp_path / libexec.relative_to("/"))
    names = {re.sub(r"-(amd64|arm64)-linux", "", name) for name in ours}
    assert names == {"jmassif", "vgpreload_jmassif.so", "libjmassif-native.so"}
    assert (tmp_path / "usr/local/bin/jm_print").exists()
    assert (tmp_path / "usr/local/bin/jmassif").exists()

    check_run(["make", "uninstall", f"DESTDIR={tmp_path}"], cwd=default_tree)
    assert files_below(tmp_path) == set()


def test_the_release_is_complete(default_tree: Path) -> None:
    check_run(["make", "--no-print-directory", "dist"], cwd=default_tree, timeout=300)
    (archive,) = default_tree.glob("jmassif-*.tar.gz")
    with tarfile.open(str(archive)) as release:
        packed = {name.partition("/")[2] for name in release.getnames()}
    tracked = set(check_run(["git", "ls-files"], cwd=ROOT).splitlines())
    assert sorted(tracked - packed) == [".ci/run", ".gitignore"]


def test_the_release_builds_installs_and_cleans_up_by_itself_at_length(default_tree: Path) -> None:
    # A few of its tests prove that what was packed is enough: the recorder, a program of the tests, the reporter.
    tests = "TESTS=tests/tool/test_heap_peak.py tests/reporter/test_ledger.py"
    check_run(["make", "--no-print-directory", "distcheck", tests, "PYTESTFLAGS="], cwd=default_tree, timeout=1500)
