# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks as a reader wants to see them: complete, named, with inlined calls, across libraries that come and go."""

import re
import subprocess
from pathlib import Path
from typing import Dict, List, Set, Tuple

import pytest

from jmassif.model.records import Frame
from jmassif.model.run import Profile
from tests.harness import compile_c, record
from tests.tool.programs import functions, heap_stacks, library, linked_to, own_memory, run_both, stack_of


def profile_of(text: str, *flags: str, suffix: str = ".c") -> Profile:
    return run_both([compile_c(text, "-fno-builtin", *flags, suffix=suffix)]).profile


def heap_frames(profile: Profile, n_bytes: int) -> List[Frame]:
    """The frames of the one stack that allocated this much, innermost first."""
    found = [
        [profile.frame(frame) for frame in profile.stack(profile.accounts[account].node)]
        for account, counts in profile.counts().items()
        if profile.accounts[account].kind == "heap" and counts.bytes == n_bytes
    ]
    assert len(found) == 1, f"{len(found)} stacks allocated {n_bytes} bytes"
    return found[0]


def test_frames_have_file_line_and_object() -> None:
    text = "#include <stdlib.h>\nstatic void *take(void)\n{\n    return malloc(1000);\n}\nint main(void)\n{\n"
    text += "    free(take());\n    return 0;\n}\n"
    inner, outer = heap_frames(profile_of(text), 1000)
    assert (inner.function, Path(inner.file).name, inner.line, inner.type) == ("take", "program.c", 4, "n")
    assert (outer.function, Path(outer.file).name, outer.line, outer.type) == ("main", "program.c", 8, "n")
    assert Path(inner.file).is_absolute()
    assert Path(inner.object).name == "program"


def test_main_is_the_outermost_frame_unless_asked_otherwise() -> None:
    compiled = compile_c("#include <stdlib.h>\nint main(void) { free(malloc(1000)); return 0; }", "-fno-builtin")
    assert heap_stacks(record([compiled]).profile) == {("main",): 1000}
    (below,) = heap_stacks(record([compiled], ["--show-below-main=yes"]).profile)
    assert below[0] == "main" and len(below) > 1


def test_inlined_calls_are_frames_of_their_own() -> None:
    text = """
    #include <stdlib.h>
    #define INLINED static inline __attribute__((always_inline))
    INLINED char *inner(size_t n) { return malloc(n); }
    INLINED char *middle(size_t n) { return inner(n * 2); }
    __attribute__((noinline)) char *real(size_t n) { char *p = middle(n); p[0] = 1; return p; }
    int main(void) { char *p = real(500), *q = middle(300); q[0] = p[0]; free(p); free(q); return 0; }
    """
    profile = profile_of(text, "-O2")
    assert stack_of_bytes(profile, 1000) == [("inner", "i"), ("middle", "i"), ("real", "n"), ("main", "n")]
    assert stack_of_bytes(profile, 600) == [("inner", "i"), ("middle", "i"), ("main", "n")]


@pytest.mark.parametrize("option, expected", [("", {"own"}), ("=yes", {"own", "libc.so.6"}), ("=no", set())])
def test_inlined_calls_of_the_c_library_are_frames_if_asked_for(option: str, expected: Set[str]) -> None:
    text = """
    #include <stdio.h>
    #include <stdlib.h>
    static inline __attribute__((always_inline)) void *inner(size_t n) { return malloc(n); }
    int main(void) { void *volatile p = inner(100); FILE *f = popen("true", "r"); pclose(f); free(p); return 0; }
    """
    compiled = compile_c(text, "-fno-builtin", "-O1", "-g")
    profile = record([compiled], [f"--read-inline-info{option}"] if option else []).profile
    frames = [profile.frame(frame) for frame in profile.frames]
    objects = {frame.object for frame in frames if frame.type == "i"}
    assert {"own" if path == str(compiled) else Path(path).name for path in objects} == expected


def stack_of_bytes(profile: Profile, n_bytes: int) -> List[Tuple[str, str]]:
    return [(frame.function, frame.type) for frame in heap_frames(profile, n_bytes)]


def test_names_of_cxx_are_demangled() -> None:
    text = """
    #include <vector>
    namespace net {
    template <typename T> struct Layer {
        std::vector<T> weights;
        __attribute__((noinline)) void resize(std::size_t n) { weights.resize(n); }
    };
    }
    int main()
    {
        net::Layer<double> layer;
        layer.resize(1000);
        return layer.weights[999] != 0;
    }
    """
    frames = heap_frames(profile_of(text, suffix=".cc"), 8000)
    names = [frame.function for frame in frames]
    assert names[-1] == "main"
    assert names[-2] == "net::Layer<double>::resize(unsigned long)"
    assert "std::vector<double, std::allocator<double> >::resize(unsigned long)" in names
    assert not any("operator new" in name or name.startswith("_Z") for name in names)


LIBRARY = """
#include <stdlib.h>
static __attribute__((noinline)) char *hidden(size_t n) { char *p = malloc(n); p[0] = 1; return p; }
static __attribute__((noinline)) char *other(size_t n) { char *p = malloc(n + 1); p[0] = 1; return p; }
char *take(size_t n) { char *p = hidden(n); p[0] = 2; return p; }
char *take_more(size_t n) { char *p = other(n); p[0] = 2; return p; }
"""
CALLER = """
#include <stdlib.h>
char *take(size_t);
char *take_more(size_t);
int main(void) { free(take(1000)); free(take_more(2000)); free(take(1000)); return 0; }
"""


def test_frames_without_symbols_have_the_objects_name_and_a_stable_address() -> None:
    stripped = library(LIBRARY, "libstripped.so", "-O1", "-s")
    compiled = compile_c(CALLER, *linked_to(stripped))
    runs = [record([compiled]).profile for _ in range(2)]
    hidden, take, main = heap_frames(runs[0], 2000)
    assert (hidden.function, hidden.line) == ("", 0)
    assert re.fullmatch(r"libstripped\.so|program", Path(hidden.object).name)
    # Exported functions keep their names, and two calls of one function are one frame.
    assert (take.function, main.function) == ("take", "main")
    other = heap_frames(runs[0], 2001)[0]
    assert other.function == "" and other.address != hidden.address
    # The address is the function's, so it is in every run the same distance from another one's.
    again = [heap_frames(runs[1], 2000)[0].address, heap_frames(runs[1], 2001)[0].address]
    assert again[1] - again[0] == other.address - hidden.address
    assert functions_start_at(stripped) >= {hidden.address & 0xFFF, other.address & 0xFFF}


def functions_start_at(shared: Path) -> "set[int]":
    """Where functions begin, within their page, according to the unwind table."""
    dump = subprocess.run(["readelf", "--debug-dump=frames", str(shared)], stdout=subprocess.PIPE, check=True)
    return {int(start, 16) & 0xFFF for start in re.findall(r"pc=([0-9a-f]+)\.\.", dump.stdout.decode())}


DLOPENS = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char *call(const char *path, const char *name)
{
    void *handle = dlopen(path, RTLD_NOW);
    char *(*take)(size_t) = dlsym(handle, name);
    char *p = take(5000);
    printf("%lx\\n", (unsigned long)take & 0xfff);
    dlclose(handle);
    return p;
}
int main(int argc, char **argv)
{
    char *blocks[4];
    for (int i = 0; i < 4; i++)
        blocks[i] = call(argv[1 + i % 2], i % 2 ? "second" : "first");
    for (int i = 0; i < 4; i++)
        free(blocks[i]);
    return 0;
}
"""


def plugin(name: str, caller: str) -> Path:
    # Both have the same layout, so that the second is mapped where the first one was.
    text = f"#include <stdlib.h>\nchar *{name}(size_t n) {{ char *{caller}(size_t); return {caller}(n); }}\n"
    text += f"char *{caller}(size_t n) {{ char *p = malloc(n); p[0] = 1; return p; }}\n"
    return library(text, f"libplugin-{name}.so", "-fno-builtin")


def test_libraries_that_were_closed_keep_their_names() -> None:
    """The second library takes the place of the first, and the first the place of the second."""
    first, second = plugin("first", "of_first"), plugin("second", "of_second")
    compiled = compile_c(DLOPENS, "-ldl")
    # A place is kept for each file otherwise.
    profile = run_both([compiled, first, second], "--code-cache=no").profile
    stacks = {stack: n_bytes for stack, n_bytes in heap_stacks(profile).items() if n_bytes == 10000}
    assert stacks == {("of_first", "first", "call", "main"): 10000, ("of_second", "second", "call", "main"): 10000}
    addresses = {
        frame.function: (frame.address, Path(frame.object).name)
        for frame in map(profile.frame, frame_ids(profile))
        if frame.function in ("first", "second")
    }
    # The test is worth nothing unless they were at the same place.
    assert addresses["first"][0] == addresses["second"][0]
    mapped = [Path(obj.path).name for obj in profile.objects if obj.end is not None]
    assert len(mapped) == 4


def frame_ids(profile: Profile) -> List[int]:
    return sorted({frame for account in profile.counts() for frame in profile.stack(profile.accounts[account].node)})


def test_recursion_keeps_every_frame() -> None:
    text = """
    #include <stdlib.h>
    static char *deep(int n) { if (n == 0) return malloc(1000); char *p = deep(n - 1); p[0] = 1; return p; }
    int main(void) { free(deep(3000)); return 0; }
    """
    names = [frame.function for frame in heap_frames(profile_of(text), 1000)]
    assert names == ["deep"] * 3001 + ["main"]


def test_stacks_lead_through_the_c_librarys_callbacks() -> None:
    text = """
    #include <stdlib.h>
    static int compare(const void *a, const void *b)
    {
        free(malloc(10));
        return *(const int *)a - *(const int *)b;
    }
    static void work(int *numbers) { qsort(numbers, 2, sizeof *numbers, compare); }
    int main(void) { int numbers[] = {2, 1}; work(numbers); return numbers[0] - 1; }
    """
    stack = stack_of(profile_of(text), "compare")
    assert "qsort_r" in stack or "qsort" in stack
    assert stack[-2:] == ("work", "main")


HANDLES = """
#include <signal.h>
#include <stdlib.h>
static char own_stack[1 << 17];
static void handler(int number) { free(malloc(1000 + (number == 0))); }
static void interrupted(void) { raise(SIGUSR1); }
int main(int argc, char **argv)
{
    stack_t alternate = {.ss_sp = own_stack, .ss_size = sizeof own_stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = argc > 1 ? SA_ONSTACK : 0};
    sigaction(SIGUSR1, &action, NULL);
    interrupted();
    free(malloc(77));
    return 0;
}
"""


def test_signal_handlers_lead_to_what_they_interrupted() -> None:
    profile = run_both([compile_c(HANDLES, "-fno-builtin")]).profile
    names = [frame.function for frame in heap_frames(profile, 1000)]
    assert names[0] == "handler"
    assert names[-2:] == ["interrupted", "main"]


def test_signal_handlers_may_have_a_stack_of_their_own() -> None:
    """The core's unwinder does not cross from one stack to another, so theirs ends where it began."""
    profile = run_both([compile_c(HANDLES, "-fno-builtin"), "alternate"]).profile
    assert heap_frames(profile, 1000)[0].function == "handler"
    assert [frame.function for frame in heap_frames(profile, 77)] == ["main"]


def test_after_a_longjmp_stacks_are_those_of_where_it_went() -> None:
    text = """
    #include <setjmp.h>
    #include <stdlib.h>
    static jmp_buf out;
    static void leaves(int n) { malloc(1000); if (n == 0) longjmp(out, 1); leaves(n - 1); malloc(1); }
    static void stays(void) { malloc(50); }
    int main(void)
    {
        for (int i = 0; i < 3; i++) {
            if (!setjmp(out))
                leaves(4);
            stays();
        }
        return 0;
    }
    """
    stacks = heap_stacks(profile_of(text))
    expected: Dict[Tuple[str, ...], int] = {("leaves",) * n + ("main",): 3000 for n in range(1, 6)}
    expected[("stays", "main")] = 150
    assert stacks == expected


def test_exceptions_unwind_through_frames_that_allocated() -> None:
    text = """
    #include <cstdio>
    #include <memory>
    #include <stdexcept>
    static std::unique_ptr<char[]> hold(int n)
    {
        std::unique_ptr<char[]> mine(new char[1000]);
        if (n == 0)
            throw std::runtime_error("thrown");
        return hold(n - 1);
    }
    static char *recover() { return new char[333]; }
    int main()
    {
        try {
            hold(5);
        } catch (const std::exception &error) {
            std::puts(error.what());
            delete[] recover();
        }
        return 0;
    }
    """
    profile = profile_of(text, suffix=".cc")
    assert [frame.function for frame in heap_frames(profile, 333)] == ["recover()", "main"]
    held = [stack for stack, n_bytes in heap_stacks(profile).items() if n_bytes == 1000]
    assert sorted(map(len, held)) == list(range(2, 8))
    thrown = [stack for stack in heap_stacks(profile) if stack[0] == "__cxa_allocate_exception"]
    assert thrown and all(stack[-1] == "main" for stack in thrown)


def test_threads_begin_at_their_function() -> None:
    text = """
    #include <pthread.h>
    #include <stdlib.h>
    static void *worker(void *unused) { free(malloc(1000)); return unused; }
    int main(void)
    {
        pthread_t thread;
        pthread_create(&thread, NULL, worker, NULL);
        pthread_join(thread, NULL);
        return 0;
    }
    """
    profile = profile_of(text, "-pthread")
    names = [frame.function for frame in heap_frames(profile, 1000)]
    assert names[0] == "worker" and "main" not in names
    assert functions(profile, next(iter(profile.counts())))


def test_names_of_any_bytes_survive() -> None:
    """A directory with a space, a backslash and letters beyond ASCII."""
    compiled = compile_c("#include <stdlib.h>\nint main(void) { free(malloc(1000)); return 0; }", "-fno-builtin")
    directory = compiled.parent / "an odd\\name ü\n"
    directory.mkdir(exist_ok=True)
    odd = directory / "program"
    if not odd.exists():
        odd.write_bytes(compiled.read_bytes())
        odd.chmod(0o755)
    profile = record([odd]).profile
    assert heap_frames(profile, 1000)[0].object == str(odd)
    assert profile.manifest["command"] == str(odd)


def test_the_nodes_of_new_stacks_share_a_record() -> None:
    text = """
    #include <stdlib.h>
    static __attribute__((noinline)) void *down(int n) { void *volatile p = n ? down(n - 1) : malloc(1000); return p; }
    int main(void) { return !down(100); }
    """
    recording = record([compile_c(text, "-fno-builtin")])
    assert stack_of_bytes(recording.profile, 1000) == [("down", "n")] * 101 + [("main", "n")]
    longest = max(line.count(" ") for line in recording.trace.read_text().splitlines() if line.startswith("n "))
    assert longest > 90


def test_a_library_that_comes_and_goes_is_kept_once() -> None:
    """What is kept of its code does not grow with each time, and neither does the time to look for it."""
    guest = library(
        """
        #include <stdlib.h>
        void *inner(int n) { return malloc(100 + n); }
        __attribute__((constructor)) static void begin(void) { free(inner(1)); free(inner(2)); }
        """,
        "libguest.so",
        "-fno-builtin",
    )
    text = f"""
    #include <dlfcn.h>
    #include <stdlib.h>
    int main(int argc, char **argv)
    {{
        for (int n = atoi(argv[1]); n > 0; n--)
            dlclose(dlopen("{guest}", RTLD_NOW));
        return 7;
    }}
    """
    program = compile_c(text, "-ldl")
    few, many = (record([program, rounds], ["--profile-heap=yes"], status=7) for rounds in ("20", "2000"))
    assert own_memory(few)["jm.location"] == own_memory(many)["jm.location"]
