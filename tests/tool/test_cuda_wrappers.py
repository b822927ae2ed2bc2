# SPDX-License-Identifier: GPL-2.0-or-later
"""Every wrapper hands all arguments and the result through unchanged, and reports the call once.

For each row of the table of wrapped functions a function is made that checks what it is given, in a library of the name that
the wrapper expects, and a program that calls it. The functions return an error, so nothing is made of the arguments.
"""

import re
from typing import Dict, List, NamedTuple

from tests import harness
from tests.tool import programs
from tests.tool.cuda_ledger import assert_totals_are_sums, held_by_kind, last

_TABLE = harness.ROOT / "jmassif" / "preload" / "cuda_api.def"

SONAMES = {
    "RUNTIME": "libcudart.so.12",
    "DRIVER": "libcuda.so.1",
    "CUDNN": "libcudnn.so.9",
    "CUBLAS": "libcublasLt-77aa.so.12",
    "CUFFT": "libcufft.so.11",
    "CUSPARSE": "libcusparse.so.12",
    "CUSOLVER": "libcusolver.so.11",
    "CURAND": "libcurand.so.10",
    "NCCL": "libnccl.so.2",
    "NVINFER": "libnvinfer.so.10",
}
ERROR = 77
POINTER = 0x1122334455667788

# The types of the parameters by convention; plain words where there is none.
CONVENTIONS = {
    "EXTENT_AT_1": ["word", "extent"],
    "EXTENT_AT_2": ["word", "word", "extent", "word", "word"],
    "HANDLE64_AT_1": ["word", "handle", "word"],
    "ID128_AT_2": ["word", "word", "id", "word", "word"],
    "PITCHED_AT_0": ["pitched", "word", "extent", "word"],
}
COMMON = """
typedef unsigned long word;
typedef struct { word w[3]; } extent;
typedef struct { word w[4]; } pitched;
typedef struct { word w[8]; } handle;
typedef struct { word w[16]; } id;
"""


class Row(NamedTuple):
    library: str
    name: str
    types: List[str]
    result: int

    @property
    def declaration(self) -> str:
        parameters = ", ".join(f"{type_} a{i}" for i, type_ in enumerate(self.types))
        return f"word {self.name}({parameters or 'void'})"


def rows() -> List[Row]:
    found = []
    text = _TABLE.read_text()
    for library, name, n_args, convention, action in re.findall(
        r"^API\((\w+), (\w+), (\d+), (\w+), (\w+),", text, re.MULTILINE
    ):
        types = CONVENTIONS.get(convention) or ["word"] * int(n_args)
        if library in SONAMES:
            found.append(Row(library, name, types, POINTER if action == "SCOPE_POINTER" else ERROR))
    return found


def value(position: int, word: int) -> int:
    """Of an argument's word: all of its bits matter, and no two are alike."""
    return 0x8001020304050000 + position * 256 + word


def words_of(type_: str) -> int:
    return {"word": 1, "extent": 3, "pitched": 4, "handle": 8, "id": 16}[type_]


def library_source(functions: List[Row]) -> str:
    parts = [COMMON, "int n_wrong;\n"]
    for row in functions:
        checks = ""
        for i, type_ in enumerate(row.types):
            for word in range(words_of(type_)):
                place = f"a{i}" if type_ == "word" else f"a{i}.w[{word}]"
                checks += f"    n_wrong += {place} != {value(i, word)}u;\n"
        parts.append(f"{row.declaration}\n{{\n{checks}    return {row.result}u;\n}}\n")
    return "\n".join(parts)


def program_source(by_library: Dict[str, List[Row]]) -> str:
    parts = ["#include <dlfcn.h>\n#include <stdio.h>\n", COMMON]
    body = ""
    for library, functions in by_library.items():
        body += f'    library = dlopen("{SONAMES[library]}", RTLD_NOW | RTLD_LOCAL);\n'
        body += '    n_wrong = dlsym(library, "n_wrong");\n'
        for row in functions:
            arguments = []
            for i, type_ in enumerate(row.types):
                words = ", ".join(f"{value(i, word)}u" for word in range(words_of(type_)))
                arguments.append(words if type_ == "word" else f"(({type_}){{{{{words}}}}})")
            types = ", ".join(row.types) or "void"
            body += f'    *(void **)&f = dlsym(library, "{row.name}");\n    *n_wrong = 0;\n'
            body += f"    result = ((word (*)({types}))f)({', '.join(arguments)});\n"
            body += f'    printf("{row.name} %d %lu\\n", *n_wrong, result);\n'
    parts.append(f"int main(void)\n{{\n    void *library, (*f)(void);\n    int *n_wrong;\n    word result;\n{body}")
    parts.append("    return 0;\n}\n")
    return "\n".join(parts)


def test_wrappers_hand_through_what_they_are_given() -> None:
    by_library: Dict[str, List[Row]] = {}
    for row in rows():
        by_library.setdefault(row.library, []).append(row)
    assert set(by_library) == set(SONAMES)
    directories = []
    for library, functions in by_library.items():
        made = programs.library(library_source(functions), SONAMES[library])
        directories.append(str(made.parent))
    program = harness.compile_c(program_source(by_library), "-O1", "-ldl")
    env = {"LD_LIBRARY_PATH": ":".join(directories)}

    native = harness.run([program], env=env)
    assert native.returncode == 0, native.stderr
    assert native.stdout == "".join(f"{row.name} 0 {row.result}\n" for part in by_library.values() for row in part)

    recording = harness.record([program], env=env)
    assert recording.stdout == native.stdout
    assert recording.returncode == 0, recording.stderr
    assert_totals_are_sums(recording.trace)
    failures = recording.profile.failures
    assert failures == {(row.name, ERROR): 1 for row in rows() if row.result == ERROR}
    assert held_by_kind(recording.profile, last(recording.profile)) == {}


def test_functions_of_other_libraries_with_these_names_are_left_alone() -> None:
    driver = [row for row in rows() if row.library == "DRIVER"]
    made = programs.library(library_source(driver), "libother.so.1")
    source = program_source({"DRIVER": driver}).replace(SONAMES["DRIVER"], "libother.so.1")
    recording = harness.record(
        [harness.compile_c(source, "-O1", "-ldl")], env={"LD_LIBRARY_PATH": str(made.parent)}, status=0
    )
    assert not recording.profile.failures
    assert [scope.name for scope in recording.profile.scopes] == ["dlopen libother.so.1"]


# A runtime that asks its driver in ways of its own.
ALONE = """
#include <stddef.h>
typedef struct { size_t width, height, depth; } extent;
static char arrays[3];
int cudaMallocArray(void **array, const int *format, size_t width, size_t height, unsigned flags)
{
    *array = &arrays[0];
    return 0;
}
int cudaMalloc3DArray(void **array, const int *format, extent size, unsigned flags)
{
    *array = &arrays[1];
    return 0;
}
int cudaMallocMipmappedArray(void **array, const int *format, extent size, unsigned levels, unsigned flags)
{
    *array = &arrays[2];
    return 0;
}
"""
CALLS_IT = """
#include <stddef.h>
typedef struct { size_t width, height, depth; } extent;
int cudaMallocArray(void **, const int *, size_t, size_t, unsigned);
int cudaMalloc3DArray(void **, const int *, extent, unsigned);
int cudaMallocMipmappedArray(void **, const int *, extent, unsigned, unsigned);
int main(void)
{
    const int two_floats[] = {32, 32, 0, 0, 2};
    void *array;
    return cudaMallocArray(&array, two_floats, 64, 32, 1) | cudaMalloc3DArray(&array, two_floats, (extent){64, 32, 4}, 1) |
           cudaMallocMipmappedArray(&array, two_floats, (extent){64, 32, 0}, 3, 1);
}
"""


def test_where_the_driver_is_not_seen_the_runtimes_arguments_tell_the_size() -> None:
    runtime = programs.library(ALONE, SONAMES["RUNTIME"])
    recording = harness.record([harness.compile_c(CALLS_IT, "-O1", *programs.linked_to(runtime))])
    assert recording.returncode == 0, recording.stderr
    sizes = sorted(recording.profile.blocks.size)
    assert sizes == [8 * 64 * 32, 8 * (64 * 32 + 32 * 16 + 16 * 8), 8 * 64 * 32 * 4]
    assert held_by_kind(recording.profile, last(recording.profile)) == {"array": (sum(sizes), 3)}
