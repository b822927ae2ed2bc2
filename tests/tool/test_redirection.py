# SPDX-License-Identifier: GPL-2.0-or-later
"""Whatever a program wraps by itself is wrapped as under a tool that does nothing, though the core is shown few symbols."""

from typing import Dict, List

import pytest

from tests.harness import VALGRIND, compile_c, record, run
from tests.tool.programs import library

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
# By what is wrapped, as it is encoded (Za: a star): how many of the twelve calls are.
PATTERNS: Dict[str, int] = {
    "f": 1,
    "fo": 1,
    "foo": 1,
    "foobar": 1,
    "otherZuname": 2,  # either name of the function
    "cudaless": 1,
    "malleable": 1,
    "hidden": 1,
    "ZuZZebra": 1,
    "foobZa": 3,
    "reaZa": 1,
    "fZa": 6,
    "Zales": 0,
    "Zaless": 1,
    "Zoo": 0,
}


def wrappers(functions: List[str]) -> str:
    """A star fits functions of other objects as well."""
    return "".join(
        WRAPPER.format(soname="libsubjectZdsoZd1" if "Za" in function else "Za", function=function)
        for function in functions
    )


def calls(source: str, name: str, *options: str) -> List[str]:
    """What the calls gave under a tool that does nothing, having compared it with what they give here."""
    subject = library(SUBJECT, "libsubject.so.1", "-O0")
    preloaded = library(source, f"lib{name}.so.1", "-O1", "-isystem/usr/include")
    command = [compile_c(LOADS, "-ldl"), subject]
    env = {"LD_PRELOAD": str(preloaded)}
    expected = run([VALGRIND, "--tool=none", "-q", *options, *command], env=env)
    recording = record(command, ["-q", *options], env=env)
    assert expected.returncode == 0, expected.stderr
    assert (recording.returncode, recording.stdout) == (0, expected.stdout), recording.stderr
    return expected.stdout.split()


@pytest.mark.parametrize("pattern", sorted(PATTERNS))
def test_a_function_is_wrapped(pattern: str) -> None:
    results = calls(wrappers([pattern]), f"wraps-{pattern}")
    assert len(results) == 24
    assert sum(int(result) > 1000 for result in results) == 2 * PATTERNS[pattern]


def test_many_are() -> None:
    exact = [pattern for pattern in PATTERNS if "Za" not in pattern]
    n_wrapped = sum(PATTERNS[pattern] for pattern in exact)
    assert sum(int(result) > 1000 for result in calls(wrappers(exact), "wraps-exact")) == 2 * n_wrapped
    with_stars = exact + ["reaZa"]  # which takes none of the others'
    assert sum(int(result) > 1000 for result in calls(wrappers(with_stars), "wraps-some")) == 2 * (n_wrapped + 1)


def test_an_object_wraps_its_own() -> None:
    source = (
        wrappers(["own"])
        + """
#include <stdio.h>
__attribute__((noinline)) int own(int n) { return n; }
int main(void) { return printf("%d\\n", own(5)) < 0; }
"""
    )
    recording = record([compile_c(source, "-O0")])
    assert recording.stdout == "1005\n", recording.stderr


@pytest.mark.parametrize("symbol, is_there", [("foobar", True), ("*idde*", True), ("nothing_like_it", False)])
def test_a_symbol_that_is_required_is_looked_for_among_all(symbol: str, is_there: bool) -> None:
    subject = library(SUBJECT, "libsubject.so.1", "-O0")
    command = [compile_c(LOADS, "-ldl"), subject]
    option = f"--require-text-symbol=:*libsubject*:{symbol}"
    recording = record(command, [option])
    assert (recording.returncode == 0) == is_there
    assert run([VALGRIND, "--tool=none", option, *command]).returncode == recording.returncode
    assert ("Cannot continue" in recording.stderr) != is_there
