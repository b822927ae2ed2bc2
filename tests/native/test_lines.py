# SPDX-License-Identifier: GPL-2.0-or-later
"""Source lines and inlined calls of native code: what readers find for the native recorder is what Valgrind's writes."""

import os
import shutil
from pathlib import Path
from typing import Dict, List, Mapping, Sequence, Set, Tuple

import pytest

from jmassif.live.run import Sums
from jmassif.model.run import Profile
from jmassif.reader import native_lines
from jmassif.reader.builder import load_file
from jmassif.reader.tokens import Reader
from tests.harness import HOST, Recording, check_run, record

if HOST != "valgrind":
    pytest.skip("records with both hosts in any case", allow_module_level=True)

HEADER = """
static inline __attribute__((always_inline)) void *inner(int n)
{
    return malloc(n * 2);
}
static inline __attribute__((always_inline)) void *grow(int n)
{
    return inner(n + 5);
}
"""
LIBRARY = """
#include <stdlib.h>
#include "grow.h"
void *from_library(int n)
{
    void *p = n > 3500 ? grow(n)
                       : malloc(n);
    if (!p)
        abort();
    return p;
}
"""
PROGRAM = """
#include <stdlib.h>
#include "grow.h"
void *from_library(int n);
void *kept[16];
__attribute__((noinline)) void two_sites(int n)
{
    kept[0] = malloc(n);
    kept[1] = malloc(n + 1);
    kept[2] = grow(n);
    kept[3] = grow(n + 2);
    kept[4] = malloc(n + 10), kept[5] = malloc(n + 11), kept[6] = malloc(n + 12);
}
int main(void)
{
    two_sites(1000);
    kept[7] = from_library(3000);
    kept[8] = from_library(4000);
    return 0;
}
"""
CXX = """
#include <cstdlib>
void *kept[4];
namespace shapes {
struct Box {
    __attribute__((always_inline)) Box(int n) { kept[0] = std::malloc(n); }
    template <class T> __attribute__((always_inline)) void *operator()(T n) const { return std::malloc(n); }
};
namespace { __attribute__((always_inline)) inline void *hidden(int n) { return std::malloc(n + 3); } }
}
int main()
{
    shapes::Box box(100);
    kept[1] = box(200);
    kept[2] = shapes::hidden(300);
}
"""

# Type, function, the file's name, and the line of each frame, innermost first.
Stack = Tuple[Tuple[str, str, str, int], ...]


def build(directory: Path, *flags: str) -> Path:
    """The program, with its library beside it."""
    directory.mkdir(exist_ok=True)
    for name, text in (("grow.h", HEADER), ("grow.c", LIBRARY), ("two.c", PROGRAM)):
        (directory / name).write_text(text)
    compiler = ["gcc", "-g", "-O2", "-Wl,--build-id", *flags]
    check_run([*compiler, "-fpic", "-shared", "-o", "libgrow.so", "grow.c"], cwd=directory)
    check_run([*compiler, "-o", "two", "two.c", "-L.", "-lgrow", "-Wl,-rpath,$ORIGIN"], cwd=directory)
    return directory / "two"


def stacks(profile: Profile) -> Dict[Stack, Tuple[int, int]]:
    """Bytes and blocks of the heap that were ever allocated."""
    found: Dict[Stack, Tuple[int, int]] = {}
    for account_id, counts in profile.counts().items():
        account = profile.accounts[account_id]
        if account.kind == "heap":
            frames = map(profile.frame, profile.stack(account.node))
            stack = tuple((each.type, each.function, Path(each.file).name, each.line) for each in frames)
            before = found.get(stack, (0, 0))
            found[stack] = (before[0] + counts.bytes, before[1] + counts.blocks)
    return found


def assert_same(program: Path) -> Profile:
    valgrind, native = (record([program], host=host, status=0).profile for host in ("valgrind", "native"))
    assert native.without_lines == ""
    assert stacks(native) == stacks(valgrind)
    return native


def innermost(profile: Profile) -> Set[Tuple[str, str, str, int]]:
    return {stack[0] for stack in stacks(profile)}


@pytest.mark.parametrize("flags", [["-fpie", "-pie"], ["-no-pie", "-fno-pie"], ["-gdwarf-4"], ["-gz"]], ids=" ".join)
def test_both_recorders_show_the_same_lines(tmp_path: Path, flags: Sequence[str]) -> None:
    library_flags = [flag for flag in flags if "pie" not in flag]
    program = build(tmp_path, *library_flags)
    check_run(["gcc", "-g", "-O2", *flags, "-o", "two", "two.c", "-L.", "-lgrow", "-Wl,-rpath,$ORIGIN"], cwd=tmp_path)
    found = stacks(assert_same(program))
    inlined = [("i", "inner", "grow.h", 4), ("i", "grow", "grow.h", 8), ("n", "two_sites", "two.c", 10)]
    assert found[(*inlined, ("n", "main", "two.c", 16))] == (2010, 1)
    # Three addresses of one line are one frame.
    assert found[("n", "two_sites", "two.c", 12), ("n", "main", "two.c", 16)] == (3033, 3)


def test_inlined_functions_of_c_plus_plus_have_the_names_of_debug_information(tmp_path: Path) -> None:
    (tmp_path / "box.cc").write_text(CXX)
    check_run(["g++", "-g", "-O2", "-o", "box", "box.cc"], cwd=tmp_path)
    functions = {stack[0][1] for stack in stacks(assert_same(tmp_path / "box"))}
    assert {"Box", "operator()<int>", "hidden"} <= functions


@pytest.mark.parametrize("tool", native_lines._TOOLS)
def test_any_of_the_tools_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    monkeypatch.setattr(native_lines, "_TOOLS", (tool,))
    assert_same(build(tmp_path))


def test_the_tools_differ_in_what_they_print() -> None:
    binutils = (
        "0x0000000000001197\ninner\n/a b/grow.h:4 (discriminator 2)\ntwo\n/a:1/two.c:9\n0x0000000000000010\n??\n??:0\n"
    )
    elfutils = "0x0000000000001197\ninner inlined at /a:1/two.c:9:1 in two\n/a b/grow.h:4:12\ntwo\n/a:1/two.c:9:15\n0x10\n??\n??:0\n"
    llvm = "0x1197\ninner\n/a b/grow.h:4\ntwo\n/a:1/two.c:9\n0x10\n??\n/a/two.c:?\n"
    expected = {0x1197: [("inner", "/a b/grow.h", 4), ("two", "/a:1/two.c", 9)], 0x10: [("", "", 0)]}
    assert [native_lines.parse(text) for text in (binutils, elfutils, llvm)] == [expected] * 3


@pytest.mark.parametrize(
    "function, name",
    [
        ("inner", "inner"),
        ("std::vector<int, std::allocator<int> >::push_back(int const&)", "push_back"),
        ("void foo<int>(int)", "foo<int>"),
        ("(anonymous namespace)::fail(int)", "fail"),
        ("main::{lambda(int)#1}::operator()(int) const", "operator()"),
        ("std::ostream& std::operator<< <char>(std::ostream&, char)", "operator<< <char>"),
        ("A::operator std::string() const", "operator std::string"),
        ("A::operator->() const", "operator->"),
        ("void (*f(int))(int)", "void (*f(int))(int)"),
    ],
)
def test_short_names(function: str, name: str) -> None:
    assert native_lines.short_name(function) == name


@pytest.fixture
def debug_file(tmp_path: Path) -> Path:
    """Of the program, whose own debug information has moved there."""
    program = build(tmp_path)
    notes = check_run(["readelf", "-n", program])
    build_id = notes.partition("Build ID: ")[2].split()[0]
    return Path(native_lines._DEBUG_FILES) / build_id[:2] / f"{build_id[2:]}.debug"


@pytest.mark.parametrize("strip", ["-g", "-s"])
def test_lines_are_found_in_a_separate_debug_file(tmp_path: Path, debug_file: Path, strip: str) -> None:
    try:
        debug_file.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        pytest.skip(f"{debug_file.parent} cannot be written")
    program = tmp_path / "two"
    try:
        check_run(["objcopy", "--only-keep-debug", program, debug_file])
        check_run(["strip", strip, program])
        assert ("n", "two_sites", "two.c", 8) in innermost(assert_same(program))
        # It has the same build-id; the program itself is not needed.
        recording = record([program], host="native", status=0)
        program.unlink()
        assert ("n", "two_sites", "two.c", 8) in innermost(recording.profile)
    finally:
        debug_file.unlink()
        debug_file.parent.rmdir() if not list(debug_file.parent.iterdir()) else None


WITHOUT_LINES = {("n", "two_sites", "", 0), ("n", "from_library", "", 0)}


def frames_in_trace(recording: Recording, function: str) -> int:
    """How many the trace has of a function."""
    lines = recording.trace.read_text().splitlines()
    id_ = next(line.split()[1] for line in lines if line.startswith("s ") and line.endswith(f" {function}"))
    return sum(line.startswith("f ") and line.split()[3] == id_ for line in lines)


def test_without_line_tables_a_function_is_one_frame_in_the_trace(tmp_path: Path) -> None:
    program = build(tmp_path)
    assert frames_in_trace(record([program], host="native"), "two_sites") == 7
    check_run(["strip", "-g", program, tmp_path / "libgrow.so"])
    recording = record([program], host="native")
    assert frames_in_trace(recording, "two_sites") == 1
    assert innermost(recording.profile) == WITHOUT_LINES
    assert recording.profile.without_lines == ""


@pytest.mark.parametrize("flags", [[], ["-Wl,--build-id=none"]], ids=["build-id", "size and time"])
@pytest.mark.parametrize("becomes", ["other", "gone", "pipe"])
def test_a_changed_file_is_not_used(tmp_path: Path, flags: List[str], becomes: str) -> None:
    program = build(tmp_path, *flags)
    recording = record([program], host="native", status=0)
    for each in (program, tmp_path / "libgrow.so"):
        each.unlink()
    if becomes == "other":
        build(tmp_path, "-DOTHER", "-O1", *flags)
    elif becomes == "pipe":
        os.mkfifo(program)
    profile = recording.profile
    assert innermost(profile) == WITHOUT_LINES
    assert len(stacks(profile)) == len(WITHOUT_LINES)
    assert "changed or is gone: libgrow.so, two" in profile.without_lines


@pytest.mark.parametrize(
    "path", ["/bin/sh", "/", "relative", "-e", "", "/a\0b", "/a\udc80b", "/dev/zero", "/proc/self/mem"]
)
@pytest.mark.parametrize("version", ["", "build-id", "build-id ..", "build-id 00", "file", "file 1 2", "file x y z"])
def test_any_path_and_version_may_stand_in_a_trace(path: str, version: str) -> None:
    profile = Profile()
    profile.strings.update({1: path, 2: version})
    profile.frames[1] = ("n", 0, 1, 0, 0, 0x4000)
    profile.line_places[1] = (2, (1 << 64) - 1)
    profile.node_parent.append(0)
    profile.node_frame.append(1)
    native_lines.find_lines(profile)
    assert [profile.frame(frame).line for frame in profile.stack(1)] == [0]


def test_damaged_object_files_are_read_without_an_error(tmp_path: Path) -> None:
    program = build(tmp_path)
    whole = program.read_bytes()
    assert native_lines._object(str(program)) is not None
    for n in (*range(0x140), *range(len(whole) - 0x900, len(whole), 7)):
        program.write_bytes(whole[:n] + bytes([whole[n] ^ 0xFF]) + whole[n + 1 :])
        native_lines._object(str(program))
        program.write_bytes(whole[:n])
        found = native_lines._object(str(program))
        assert found is None or n >= 64


def test_without_addr2line_a_note_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from jmassif.cli.common import read

    recording = record([build(tmp_path)], host="native", status=0)
    monkeypatch.setenv("PATH", "/nowhere")
    assert innermost(read(str(recording.trace), "")) == WITHOUT_LINES
    notes = capfd.readouterr().err.splitlines()
    assert len(notes) == 1 and "install addr2line (of binutils)" in notes[0]
    monkeypatch.undo()
    assert innermost(load_file(str(recording.trace), has_lines=False)) == WITHOUT_LINES


def test_a_run_that_is_followed_has_a_line_for_each_function(tmp_path: Path) -> None:
    recording = record([build(tmp_path)], host="native", status=0)
    sums = Sums(Profile())
    with open(recording.trace, "rb") as stream:
        Reader(sums.handlers()).read(stream)
    shown = [line.name for line in sums.lines("held", 50) if "(two)" in line.name or "(libgrow.so)" in line.name]
    assert sorted(shown) == ["from_library (libgrow.so)", "two_sites (two)"]


MANY = """
#include <stdlib.h>
static void *k[1000];
#define FOUR(i) k[i] = malloc(100 + i), k[i + 1] = malloc(200), k[i + 2] = malloc(30000), k[i + 3] = malloc(4000)
int main(void)
{
    for (int round = 0; round < 60; round++) {
        FOUR(round * 8); FOUR(round * 8 + 4);
        if (round == 40)
            for (int i = 0; i < 200; i++) { free(k[i * 2]); k[i * 2] = NULL; }
    }
    for (int i = 0; i < 400; i++)
        free(k[i]);
    FOUR(0);
}
"""


def test_all_addresses_of_a_line_are_one_account(tmp_path: Path) -> None:
    (tmp_path / "many.c").write_text(MANY)
    check_run(["gcc", "-g", "-O1", "-o", "many", "many.c"], cwd=tmp_path)
    options = ["--time-unit=B", "--large=10000"]
    valgrind, native = (record([tmp_path / "many"], options, host=host).profile for host in ("valgrind", "native"))
    assert stacks(native) == stacks(valgrind)

    def held(profile: Profile, live: Mapping[int, Tuple[int, int]]) -> List[Tuple[int, int]]:
        """By account, so that one account is not two."""
        return sorted(pair for account, pair in live.items() if profile.accounts.kind(account) == "heap")

    def end(profile: Profile) -> List[Tuple[int, int]]:
        return held(profile, profile.composition(len(profile.snapshots) - 1))

    assert len(end(native)) == 2 and end(native) == end(valgrind)
    assert held(native, native.peak_composition("host")) == held(valgrind, valgrind.peak_composition("host"))
    for snapshot in range(len(native.snapshots)):
        composition = native.composition(snapshot)
        assert sum(n_bytes for n_bytes, _ in composition.values()) == native.snapshots[snapshot].host
    n_accounts = [len(set(profile.blocks.account)) for profile in (valgrind, native)]
    assert n_accounts == [2, 2]


def test_a_forked_child_has_lines_of_its_parents_stacks(tmp_path: Path) -> None:
    program = build(tmp_path)
    source = tmp_path / "two.c"
    source.write_text(PROGRAM.replace("return 0;", "int fork(void); fork(); return 0;"))
    check_run(["gcc", "-w", "-g", "-O2", "-o", "two", "two.c", "-L.", "-lgrow", "-Wl,-rpath,$ORIGIN"], cwd=tmp_path)
    recording = record([program], ["--trace-children=yes"], host="native", status=0)
    parent, child = map(recording.load, recording.traces)
    assert stacks(child) == stacks(parent)


def test_anonymized_traces_have_lines_and_no_home_directory(tmp_path: Path) -> None:
    home = tmp_path / "home"
    program = build(home)
    recording = record([program], ["--anonymize=yes"], env={"HOME": str(home)}, host="native", status=0)
    before = os.environ.get("HOME", "")
    os.environ["HOME"] = str(home)
    try:
        profile = recording.profile
    finally:
        os.environ["HOME"] = before
    assert ("n", "two_sites", "two.c", 8) in innermost(profile)
    assert {frame.file for frame in map(profile.frame, profile.frames) if frame.file.endswith("two.c")} == {"~/two.c"}
