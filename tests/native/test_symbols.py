# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of functions, as the native host finds them: by the choices of Valgrind's core."""

import shutil
import subprocess
from pathlib import Path
from typing import Dict, List

import pytest

from tests.harness import ROOT, check_run, compile_c

SOURCE = Path(__file__).parent / "symbols.c"
MODULES = [
    "host/native/demangle.c",
    "host/native/functions.c",
    "host/native/symbols.c",
    "symbols/elf.c",
    "symbols/file_pages.c",
    "base/array.c",
    "base/client_memory.c",
    "base/kernel.c",
    "base/map.c",
    "base/table.c",
    "base/text.c",
]

LIBRARY = """
#include <utility>
#include <vector>
#ifdef NEWER
int moves_the_others(double a, double b) { return a * b + a / b; }
#endif
extern "C" {
__attribute__((noinline)) int a_longer_name(int n) { return n * 3 + 1; }
int shorter(int) __attribute__((alias("a_longer_name")));
int exporter(int) __attribute__((alias("exported")));
int pair_a(int) __attribute__((alias("pair_b")));
int pair_b(int n) { return n - 11; }
int exported(int n) { return a_longer_name(n) - 7; }
__attribute__((used)) static int hidden(int n) { return n * 11; }
int of_a_version_with_a_long_name(int n) { return n + 5; }
__asm__(".symver of_a_version_with_a_long_name, versioned@@ONE");
int generic_start_main(int n) { return n; }
}
namespace shapes {
template <class T> struct Box { T side; __attribute__((noinline)) T area(std::vector<T> const &v) const { return side * v[0]; } };
template int Box<int>::area(std::vector<int> const &) const;
__attribute__((noinline)) int sum(std::pair<int, char *> p, int (*f)(double)) { return p.first + f(2.5); }
}
__asm__(".text\\n.global outer, inner, no_size, one_range, longer_range\\n"
    ".type outer, @function\\n.type inner, @function\\nouter: nop\\nnop\\ninner: nop\\nnop\\n.size inner, 2\\nnop\\nnop\\n.size outer, 6\\n"
    ".type no_size, @function\\nno_size: nop\\nnop\\nnop\\n"
    ".type one_range, @function\\n.type longer_range, @function\\none_range:\\nlonger_range: nop\\nnop\\n.size one_range, 2\\nnop\\nnop\\n"
    ".size longer_range, 4\\n.previous");
"""


def driver() -> Path:
    if subprocess.run(["gcc", "-print-file-name=libiberty.a"], capture_output=True, text=True).stdout.count("/") == 0:
        pytest.skip("libiberty is not installed")
    flags = ["-std=gnu11", "-O2", "-w", "-fno-builtin", "-fvisibility=hidden", "-I", str(ROOT / "jmassif")]
    parts = [str(ROOT / "jmassif" / name) for name in MODULES]
    return compile_c(SOURCE, *flags, *parts, "-liberty", "-ldl", "-pthread")


def library(tmp_path: Path, *flags: str) -> Path:
    versions = tmp_path / "versions"
    versions.write_text("ONE { global: *; };")
    where = f"-Wl,--build-id,-soname,libshapes.so.1,--version-script={versions}"
    built = compile_c(LIBRARY, "-O1", "-fpic", "-shared", where, *flags, suffix=".cc")
    copy = tmp_path / "libshapes.so"
    shutil.copy(built, copy)
    return copy


def addresses(path: Path) -> Dict[str, int]:
    """By symbol, without its version."""
    lines = check_run(["nm", path]).splitlines()
    return {words[2].split("@")[0]: int(words[0], 16) for words in map(str.split, lines) if len(words) == 3}


def answers(path: Path, asked: List[str], becomes: str = "") -> List[str]:
    return check_run([driver(), path, becomes, *asked]).splitlines()


def names(path: Path, places: List[int], becomes: str = "") -> List[str]:
    return answers(path, [f"{place:x}" for place in places], becomes)[1:]


def test_of_aliases_the_shorter_is_chosen_and_then_the_first_by_alphabet(tmp_path: Path) -> None:
    path = library(tmp_path)
    at = addresses(path)
    assert names(path, [at["a_longer_name"], at["exporter"], at["pair_b"], at["hidden"], at["hidden"] + 1]) == [
        "shorter entry",
        "exported entry",
        "pair_a entry",
        "hidden entry",
        "hidden",
    ]


def test_where_functions_overlap_the_earlier_ends_and_of_two_starts_the_longer_begins_later(tmp_path: Path) -> None:
    path = library(tmp_path)
    at = addresses(path)
    places = [at["outer"], at["outer"] + 1, at["inner"], at["inner"] + 1, at["inner"] + 2, at["no_size"]]
    assert names(path, places) == ["outer entry", "outer", "inner entry", "inner", "?", "?"]
    assert names(path, [at["one_range"] + i for i in range(5)])[:4] == [
        "one_range entry",
        "one_range",
        "longer_range entry",
        "longer_range",
    ]


def test_names_are_demangled_as_binutils_do_it_and_have_no_version(tmp_path: Path) -> None:
    path = library(tmp_path)
    at = addresses(path)
    mangled = [name for name in at if name.startswith("_ZN")]
    assert len(mangled) >= 2
    expected = check_run(["c++filt", *mangled]).splitlines()
    assert names(path, [at[name] + 1 for name in mangled]) == expected
    assert names(path, [at["versioned"] + 1]) == ["versioned"]


def test_start_up_code_has_the_name_that_ends_stacks(tmp_path: Path) -> None:
    path = library(tmp_path)
    assert names(path, [addresses(path)["generic_start_main"] + 1]) == ["(below main)"]


def test_a_stripped_library_has_its_exported_names(tmp_path: Path) -> None:
    path = library(tmp_path)
    at = addresses(path)
    check_run(["strip", path])
    assert names(path, [at["exported"], at["hidden"]]) == ["exported entry", "?"]


def test_of_a_removed_file_the_mapped_names_are_left(tmp_path: Path) -> None:
    path = library(tmp_path)
    at = addresses(path)
    assert names(path, [at["exported"] + 1, at["inner"], at["hidden"]], becomes="-") == ["exported", "inner entry", "?"]


def test_a_file_that_replaced_the_mapped_one_is_not_read(tmp_path: Path) -> None:
    path = library(tmp_path)
    at = addresses(path)
    other = tmp_path / "other"
    other.mkdir()
    newer = library(other, "-DNEWER")
    assert addresses(newer)["exported"] != at["exported"]
    assert names(path, [at["exported"], at["hidden"]], becomes=str(newer)) == ["exported entry", "?"]


def test_a_copy_with_the_same_build_id_is_read(tmp_path: Path) -> None:
    path = library(tmp_path)
    at = addresses(path)
    copy = tmp_path / "copy"
    shutil.copy(path, copy)
    assert names(path, [at["exported"], at["hidden"]], becomes=str(copy)) == ["exported entry", "hidden entry"]


def test_the_object_is_known_by_its_soname(tmp_path: Path) -> None:
    assert answers(library(tmp_path), [])[0] == "libshapes.so.1 libshapes.so.1"


@pytest.mark.parametrize(
    "symbol, name",
    [
        ("_ZN3foo3bar17h05af221e174051e9E", "foo::bar"),  # Rust
        ("_RNvC1a1b", "a::b"),
        ("_Z3fooi.isra.0", "foo(int) [clone .isra.0]"),
        ("_ZZ1fvENKUliE12_clEi", "f()::{lambda(int)#14}::operator()(int) const"),
        ("_Z1fIXLi12345EEEvv", "void f<12345>()"),
        ("_Z", "_Z"),
    ],
)
def test_symbols_of_languages_are_demangled(symbol: str, name: str, tmp_path: Path) -> None:
    assert answers(library(tmp_path), [symbol])[1:] == [name]


def test_the_deepest_names_are_demangled_on_a_small_stack(tmp_path: Path) -> None:
    deep, deeper = (f"_Z1f{'P' * n}i" for n in (1000, 2000))  # libiberty refuses more than 1024 characters
    assert answers(library(tmp_path), [deep, deeper])[1:] == [f"f(int{'*' * 1000})", deeper]


def test_a_name_that_doubles_with_each_part_stays_a_symbol(tmp_path: Path) -> None:
    doubled = "".join(f"S_IS{n}_S{n}_E" for n in "123456789ABCDEFGHIJK")
    symbol = f"_Z1fSt4pairI1aS0_E{doubled}"
    assert answers(library(tmp_path), [symbol])[1:] == [symbol]
