# SPDX-License-Identifier: GPL-2.0-or-later
"""Other releases of Valgrind, unpacked beside the machine's own: jmassif builds for them and finds the same."""

import platform
import re
import resource
from pathlib import Path
from typing import List

import pytest

from tests.harness import BUILD, MADE, ROOT, Argument, compile_c, configure_and_make, record, run
from tests.tool.programs import DIRECTORY, heap_stacks

PROGRAM = r"""
#include <stdlib.h>

int main(void)
{
    char *a = malloc(1000), *b = calloc(10, 30), *c;
    if (posix_memalign((void **)&c, 256, 700))
        return 1;
    a = realloc(a, 5000);
    free(b);
    free(c);
    free(a);
    return 7;
}
"""
PEAK_BYTES = 5000 + 300 + 700


EACH_RELEASE = pytest.mark.parametrize("release", ["3.16", "3.24", "3.27"])


def unpacked(release: str) -> Path:
    root = BUILD / "compat" / release
    if not root.exists():
        pytest.skip(f"no Valgrind in {root}: ./bootstrap check fetches it where the distribution's mirror has it")
    version = unpacked_version(root)
    if not version.startswith(release + "."):
        pytest.skip(f"{root} holds Valgrind {version}, which nobody has looked at yet")
    return root


@EACH_RELEASE
def test_another_valgrind_records_the_same(release: str) -> None:
    root = unpacked(release)
    tree = configure_and_make(MADE / f"valgrind-{release}", f"--with-valgrind={root}")
    recording = record([compile_c(PROGRAM, "-O0")], build=tree, valgrind=str(root / "usr/bin/valgrind"))
    assert recording.returncode == 7, recording.stderr[-2000:]
    assert recording.profile.manifest["valgrind"] == unpacked_version(root)
    assert recording.profile.peaks["total"].by_kind["heap"] == PEAK_BYTES


@EACH_RELEASE
def test_another_valgrinds_unwinder_is_taken_over_too(release: str) -> None:
    root = unpacked(release)
    tree = configure_and_make(MADE / f"valgrind-{release}", f"--with-valgrind={root}")
    valgrind = str(root / "usr/bin/valgrind")
    tables = compile_c(DIRECTORY / "unwind_tables.c", "-O1", "-fno-builtin")
    ours = record([tables], ["--trace-cfi=yes"], build=tree, valgrind=valgrind)
    assert all("/jmassif-" in name for name in re.findall(r"^CFI info: name (.*)$", ours.stderr, re.MULTILINE))
    # Which frames lie below main is the release's idea.
    assert ("allocate", "in_register", "main") in {stack[:3] for stack in heap_stacks(ours.profile)}
    crash = record([compile_c(DIRECTORY / "crashes.c", "-pthread", "-O1"), "function"], build=tree, valgrind=valgrind)
    shown = re.findall(r"(?:at|by) 0x\w+: (\S+)", crash.stderr)
    assert shown[:5] == ["crash"] * 4 + ["main"]


@EACH_RELEASE
def test_another_valgrind_sees_what_dlopen_is_asked_for(release: str) -> None:
    """Since 3.22 a debug file's symbols are read when an address is asked for, which is too late to wrap a function."""
    root = unpacked(release)
    tree = configure_and_make(MADE / f"valgrind-{release}", f"--with-valgrind={root}")
    loads = compile_c('#include <dlfcn.h>\nint main(void) { return !dlopen("libm.so.6", RTLD_NOW); }\n', "-ldl")
    options = ["--pages=no"]  # their stacks ask for addresses
    recording = record([loads], options, build=tree, valgrind=str(root / "usr/bin/valgrind"))
    assert recording.returncode == 0, recording.stderr[-2000:]
    assert [scope.name for scope in recording.profile.scopes] == ["dlopen libm.so.6"]


ADA = """
#include <stdlib.h>
const char __gnat_ada_main_program_name[] = "_ada_main";
void __attribute__((noinline)) pack__inner__run(void) { abort(); }
int main(void) { pack__inner__run(); }
"""


@EACH_RELEASE
def test_another_valgrind_finds_what_it_looks_for_by_itself(release: str) -> None:
    """Symbols that no wrapper is for: of a program in Ada, and of the C library for a hint."""
    root = unpacked(release)
    tree = configure_and_make(MADE / f"valgrind-{release}", f"--with-valgrind={root}")
    valgrind = str(root / "usr/bin/valgrind")
    library = str(next(root.glob("usr/lib*/**/none-*-linux")).parent)
    program = compile_c(ADA, "-O0", "-g")
    options = ["-v", "--sim-hints=no-nptl-pthread-stackcache"]
    none = run([valgrind, "--tool=none", *options, program], env={"VALGRIND_LIB": library})
    ours = record([program], options, build=tree, valgrind=valgrind)
    told = r"(?:at|by) 0x\w+: (pack.*) |(deactivate nptl|could not find symbol)"
    assert re.findall(told, ours.stderr) == re.findall(told, none.stderr) != []


FMA = ROOT / "tests" / "bench" / "fma.c"


def children_s() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


@pytest.mark.skipif("fma" not in Path("/proc/cpuinfo").read_text().split(), reason="the processor has no FMA")
@EACH_RELEASE
def test_multiply_adds_are_no_slower_than_under_another_valgrinds_none(release: str) -> None:
    root = unpacked(release)
    tree = configure_and_make(MADE / f"valgrind-{release}", f"--with-valgrind={root}")
    valgrind = str(root / "usr/bin/valgrind")
    program: List[Argument] = [compile_c(FMA, "-O1", "-mavx2"), "3000000"]
    library = str(next(root.glob("usr/lib*/**/none-*-linux")).parent)
    ratios = []
    for _ in range(3):
        start = children_s()
        none = run([valgrind, "-q", "--tool=none", *program], env={"VALGRIND_LIB": library})
        middle = children_s()
        ours = record(program, build=tree, valgrind=valgrind)
        ratios.append((children_s() - middle) / (middle - start))
        assert none.returncode == 0 and ours.stdout == none.stdout
    assert min(ratios) < 1.5, ratios


def unpacked_version(root: Path) -> str:
    (description,) = root.glob(f"usr/lib/{platform.machine()}-linux-gnu/pkgconfig/valgrind.pc")
    found = re.search(r"^Version: *(.*)$", description.read_text(), re.MULTILINE)
    assert found
    return found.group(1)
