# SPDX-License-Identifier: GPL-2.0-or-later
"""The core of `make bundle`, with packaging/valgrind/patches, against the Valgrind that is installed."""

import resource
from typing import List

import pytest

from tests.harness import ARCH, VALGRIND, Argument, compile_c, run
from tests.packaging.test_bundle import PROCESSOR, unpacked
from tests.tool.programs import library

CALLS = """
#include <stdio.h>
long called(long);
__asm__("called: mov %rdi, %rax\\n.rept 90000\\n call 1f\\n.endr\\n ret\\n 1: add $1, %rax\\n ret");
int main(void) { printf("%ld\\n", called(0)); return 0; }
"""


@pytest.fixture(scope="module", name="jmassif")
def fixture_jmassif(tmp_path_factory: pytest.TempPathFactory) -> List[Argument]:
    """The command of the archive, and where its traces go."""
    directory = tmp_path_factory.mktemp("unpacked")
    home = unpacked(PROCESSOR[ARCH], directory)
    return [home / "bin/jmassif", "--valgrind", "-q", "--code-cache=no", f"--jmassif-out-file={directory}/trace"]


@pytest.mark.skipif(ARCH != "amd64", reason="instructions of x86-64")
def test_code_that_is_called_in_many_places_is_discarded_faster(jmassif: List[Argument]) -> None:
    """transtab-edges: a discarded sector's jumps are removed from the function's incoming ones, one by one."""
    program = compile_c(CALLS)

    def user_seconds(*command: Argument) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        options = ["-q", "--num-transtab-sectors=2", "--vex-guest-max-insns=20", "--vex-guest-chase=no"]
        done = run([*command, *options, program])
        assert (done.returncode, done.stdout) == (0, "90000\n"), done.stderr
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    assert user_seconds(*jmassif) < 0.6 * user_seconds(VALGRIND, "--tool=none")


# Names that begin as those of malloc and CUDA do, short ones, one of two for a function, one that only its file knows.
SUBJECT = r"""
#include <stdio.h>
#define FUNCTION(name) __attribute__((noinline)) int name(int n) { return n + 1; }
FUNCTION(f) FUNCTION(fo) FUNCTION(foo) FUNCTION(foobar) FUNCTION(foobaz) FUNCTION(cudaless) FUNCTION(malleable)
FUNCTION(realist) FUNCTION(mallocs) FUNCTION(_Zebra)
static FUNCTION(hidden)
int other_name(int n) __attribute__((alias("foobaz")));
void call_all(void)
{
    printf("%d %d %d %d %d %d %d %d %d %d %d %d\n", f(1), fo(2), foo(3), foobar(4), foobaz(5), cudaless(6), malleable(7),
           realist(8), mallocs(9), hidden(10), other_name(11), _Zebra(12));
}
"""
LOADS = r"""
#include <dlfcn.h>
int main(int argc, char **argv)
{
    for (int i = 0; i < 2; i++) {
        void *loaded = dlopen(argv[1], RTLD_NOW);
        ((void (*)(void))dlsym(loaded, "call_all"))();
        dlclose(loaded);
    }
    return 0;
}
"""
WRAPPER = """
#include <valgrind/valgrind.h>
int I_WRAP_SONAME_FNNAME_ZZ({soname}, {function})(int n)
{{
    OrigFn original;
    int result;
    VALGRIND_GET_ORIG_FN(original);
    CALL_FN_W_W(result, original, n);
    return result + 1000;
}}
"""
# Function names, as they are encoded.
EXACT = ["f", "fo", "foo", "foobar", "otherZuname", "cudaless", "malleable", "hidden", "ZuZZebra"]


def wrappers(functions: List[str]) -> str:
    """A star fits functions of other objects as well."""
    return "".join(
        WRAPPER.format(soname="libsubjectZdsoZd1" if "Za" in function else "Za", function=function)
        for function in functions
    )


@pytest.mark.parametrize("patterns", [EXACT, EXACT + ["foobZa"], ["fZa"], ["Zaless"]])  # Za: a star
def test_what_a_program_wraps_by_itself_is_wrapped(jmassif: List[Argument], patterns: List[str]) -> None:
    """redir-prefix: the core matches few symbols, and all where a star is among a pattern's first characters."""
    subject = library(SUBJECT, "libsubject.so.1", "-O0")
    preloaded = library(wrappers(patterns), f"libwraps-{'-'.join(patterns)}.so.1", "-O1", "-isystem/usr/include")
    command = [compile_c(LOADS, "-ldl"), subject]
    env = {"LD_PRELOAD": str(preloaded)}
    expected = run([VALGRIND, "--tool=none", "-q", *command], env=env)
    patched = run([*jmassif, *command], env=env)
    assert (patched.returncode, patched.stdout) == (0, expected.stdout), patched.stderr
    assert any(int(result) > 1000 for result in patched.stdout.split())
