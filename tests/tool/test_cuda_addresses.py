# SPDX-License-Identifier: GPL-2.0-or-later
"""What an address of device memory leads to, when it is mapped, imported, inherited, or another one's by now.

The libraries here are ours, so that they give out the addresses that a test needs.
"""

from pathlib import Path
from typing import List

import pytest

from tests.harness import Recording, compile_c, record
from tests.tool import programs, test_tensors
from tests.tool.programs import assert_readable, live_at

# What the recorder takes for PyTorch's, for the runtime (which may lie in any object), and for the driver.
C10 = programs.DIRECTORY / "c10" / "c10.cc"

DRIVER = """
#include <stddef.h>
typedef unsigned long long Address;
static Address handles = 0x1000;
static void *next_host;
void next_host_memory(void *p) { next_host = p; }
int cuMemCreate(Address *handle, size_t bytes, const void *what, Address flags) { *handle = handles += 0x100; return 0; }
int cuMemRelease(Address handle) { return 0; }
int cuMemMap(Address at, size_t bytes, size_t offset, Address handle, Address flags) { return 0; }
int cuMemUnmap(Address at, size_t bytes) { return 0; }
int cuMemHostAlloc(void **p, size_t bytes, unsigned flags) { *p = next_host; return 0; }
struct handle { char bytes[64]; };
int cuIpcOpenMemHandle_v2(Address *p, struct handle handle, unsigned flags) { *p = *(Address *)handle.bytes; return 0; }
int cuIpcCloseMemHandle(Address p) { return 0; }
int cuMemGetAddressRange_v2(Address *base, size_t *bytes, Address p) { *bytes = 1 << 20; return 0; }
int cuMemAlloc_v2(Address *p, size_t bytes) { return 0; } /* where *p says */
int cuMemFree_v2(Address p) { return 0; }
int cuMipmappedArrayCreate(Address *array, const void *shape, unsigned levels) { *array = handles += 0x100; return 0; }
"""

PROGRAM = """
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef unsigned long long Address;
struct handle { char bytes[64]; };
void next_host_memory(void *p);
int cuMemCreate(Address *, size_t, const void *, Address);
int cuMemRelease(Address);
int cuMemMap(Address, size_t, size_t, Address, Address);
int cuMemUnmap(Address, size_t);
int cuMemHostAlloc(void **, size_t, unsigned);
int cuIpcOpenMemHandle_v2(Address *, struct handle, unsigned);
int cuIpcCloseMemHandle(Address);
int cuMemAlloc_v2(Address *, size_t);
int cuMemFree_v2(Address);
int cuMipmappedArrayCreate(Address *, const void *, unsigned);
void report(Address, int64_t, size_t, size_t, int)
    __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
static const Address AT = 0x700000000000;
"""


def run_main(body: str, *options: str) -> Recording:
    driver = programs.library(DRIVER, "libcuda.so.1", "-w")
    c10 = programs.library(C10, "libc10.so", "-DFORM=20")
    text = f"{PROGRAM}\nint main(void)\n{{\n{body}\nreturn 7;\n}}\n"
    recording = record([compile_c(text, "-w", *programs.linked_to(driver, c10))], options, status=7)
    assert_readable(recording.trace)
    return recording


def live_device(recording: Recording) -> int:
    kinds = ("device", "vmm", "imported", "pool", "array")
    return sum(live_at(recording.profile, -1, kind) for kind in kinds)


@pytest.mark.parametrize("child", ["return 7;", "caching_free(a); return 7;", "malloc(100000); _exit(7);"])
def test_a_fork_with_expandable_segments(child: str, sim: Path) -> None:
    """A data loader's worker: the tensors and what they lie in are the parent's."""
    libraries = test_tensors.build(20, sim)
    text = f"""
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/wait.h>
    #include <unistd.h>
    int cudaMalloc(void **, size_t);
    char *expandable_alloc(size_t bytes);
    void caching_free(char *at);
    int main(void)
    {{
        void *first;
        if (cudaMalloc(&first, 1 << 20))
            return 1;
        char *a = expandable_alloc(40 << 20), *b = expandable_alloc(60 << 20), *c = expandable_alloc(20 << 20);
        caching_free(b);
        pid_t pid = fork();
        if (pid == 0) {{
            {child}
        }}
        int status;
        waitpid(pid, &status, 0);
        caching_free(a);
        caching_free(c);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
    }}
    """
    flags = [str(libraries / "libc10_cuda.so"), str(sim / "libcudart.so.10.2"), str(sim / "libcuda.so.1")]
    flags += [f"-Wl,-rpath,{libraries}:{sim}", f"-Wl,-rpath-link,{libraries}:{sim}"]
    recording = record([compile_c(text, *flags)], status=7)
    parent, forked = recording.traces
    assert_readable(parent)
    assert_readable(forked)
    kinds = ("device", "vmm")
    assert sum(live_at(recording.load(forked), -1, kind) for kind in kinds) == 0
    assert sum(live_at(recording.load(parent), -1, kind) for kind in kinds) >= 121 << 20


@pytest.mark.parametrize("size", ["known", "unknown"])
def test_imports_that_come_and_go_leave_nothing_behind(size: str) -> None:
    """Where the library can tell how large an import is, it is asked; else the import has no size."""
    recording = run_main(
        f"""
        for (int i = 0; i < 3000; i++) {{
            struct handle handle = {{0}};
            Address p, address = AT + (Address)(i % 50) * (1 << 19) + {int(size == "unknown")} * ((Address)1 << 40);
            memcpy(handle.bytes, &address, sizeof address);
            cuIpcOpenMemHandle_v2(&p, handle, 1);
            report(p, 4096, 4096, 1 << 20, 1);
            report(p, -4096, 0, 1 << 20, 1);
            cuIpcCloseMemHandle(p);
            report(p + 8192, 512, 512, 0, 1);
        }}
        """,
        "--pages=yes",
    )
    assert live_device(recording) == 0


def test_blocks_that_overlap_end_one_by_one() -> None:
    """An import of memory that the program has itself, and blocks inside others."""
    recording = run_main(
        """
        static const struct { int from, bytes; } all[] = {{0, 100}, {50, 10}, {50, 60}, {20, 200}, {0, 5}, {300, 1}};
        for (int round = 0; round < 100; round++) {
            for (int i = 0; i < 6; i++) {
                Address p = AT + all[(i + round) % 6].from * 4096 + (i & 1);
                cuMemAlloc_v2(&p, all[(i + round) % 6].bytes * 4096);
            }
            for (int at = 0; at < 310; at += 7)
                report(AT + at * 4096, 4096, 0, 0, 1);
            for (int i = 5; i >= 0; i--)
                cuMemFree_v2(AT + all[(i + round) % 6].from * 4096 + (i & 1));
            for (int at = 0; at < 310; at += 7)
                report(AT + at * 4096, -4096, 0, 0, 1);
        }
        """
    )
    assert live_device(recording) == 0


def test_a_tensor_outlives_its_mapping_and_pinned_memory_comes_in_its_place() -> None:
    recording = run_main(
        """
        char *memory = aligned_alloc(4096, 1 << 21);
        Address at = (Address)(uintptr_t)memory, handle;
        void *pinned;
        cuMemCreate(&handle, 1 << 21, "", 0);
        cuMemMap(at, 1 << 21, 0, handle, 0);
        report(at, 1 << 20, 1 << 20, 1 << 21, 1);
        cuMemUnmap(at, 1 << 21);
        next_host_memory(memory);
        cuMemHostAlloc(&pinned, 1 << 21, 0);
        cuMemRelease(handle);
        report(at, -(1 << 20), 0, 0, 1);
        """
    )
    assert live_device(recording) == 0
    assert live_at(recording.profile, -1, "pinned") == 1 << 21


def test_a_tensor_that_reaches_from_device_memory_into_pinned_memory() -> None:
    recording = run_main(
        """
        char *memory = aligned_alloc(4096, 1 << 22);
        Address at = (Address)(uintptr_t)memory;
        void *pinned;
        cuMemAlloc_v2(&at, 1 << 20);
        next_host_memory(memory + (1 << 20));
        cuMemHostAlloc(&pinned, 1 << 20, 0);
        report(at + 4096, 1 << 20, 1 << 20, 1 << 20, 1);
        report(at + 4096, -(1 << 20), 0, 1 << 20, 1);
        cuMemFree_v2(at);
        """
    )
    assert live_device(recording) == 0


# The documentation of cuMipmappedArrayCreate says: levels down to one element, and layers and faces are never halved.
@pytest.mark.parametrize(
    "shape, n_levels, n_elements",
    [
        ("64, 0, 0, 0x20, 1, 0", 20, 64 + 32 + 16 + 8 + 4 + 2 + 1),
        ("8, 4, 2, 0x20, 1, 0", 20, 8 * 4 * 2 + 4 * 2 + 2 + 1),
        ("8, 8, 5, 0x20, 1, 1", 3, 5 * (64 + 16 + 4)),
        ("4, 4, 6, 0x20, 1, 4", 20, 6 * (16 + 4 + 1)),
    ],
    ids=["flat", "deep", "layered", "cubemap"],
)
def test_a_mipmap_has_the_levels_that_cuda_makes(shape: str, n_levels: int, n_elements: int) -> None:
    recording = run_main(
        f"""
        struct {{ size_t width, height, depth; unsigned format, n_channels, flags; }} shape = {{{shape}}};
        Address array;
        cuMipmappedArrayCreate(&array, &shape, {n_levels});
        """
    )
    assert live_at(recording.profile, -1, "array") == 4 * n_elements


def library_with(order: List[str]) -> Path:
    """A driver whose functions lie in this order, each at a multiple of 64 bytes from the first."""
    bodies = {
        "alloc": "int cuMemAlloc_v2(Address *p, unsigned long bytes) { *p = 0x700000000000; return 0; }",
        "free": "int cuMemFree_v2(Address p) { return 0; }",
        "context": "int cuCtxGetCurrent(Address *p) { *p = 5; return 0; }",
        "trap": "int trap(void) { __builtin_trap(); }",
    }
    text = "typedef unsigned long long Address;\n" + "\n".join(
        f"__attribute__((aligned(64))) {bodies[name]}" for name in order
    )
    return programs.library(text, "libcuda.so.1", "-w", "-O1", "-fno-toplevel-reorder")


def test_a_library_that_is_replaced_by_another_build_of_it() -> None:
    """The recorder asks the library that is there now, and not at the addresses of the one before."""
    first = library_with(["alloc", "free", "context", "trap"])
    second = library_with(["alloc", "free", "trap", "context"])
    text = f"""
    #include <dlfcn.h>
    #include <stdio.h>
    static void *use(const char *path)
    {{
        unsigned long long p;
        void *library = dlopen(path, RTLD_NOW);
        int (*alloc)(unsigned long long *, unsigned long) = dlsym(library, "cuMemAlloc_v2");
        int (*release)(unsigned long long) = dlsym(library, "cuMemFree_v2");
        alloc(&p, 4096);
        release(p);
        dlclose(library);
        return alloc;
    }}
    int main(void)
    {{
        return use("{first}") == use("{second}") ? 7 : 8;
    }}
    """
    # Which otherwise keeps a place for each file.
    recording = record([compile_c(text, "-w", "-ldl")], ["--code-cache=no"], status=7)
